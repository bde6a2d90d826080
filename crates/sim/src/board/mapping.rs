//! DMA mappings of a board: an operating system that writes the table of the IOMMU.
//!
//! DMA memory is identity-mapped at first. Writing the table takes no time; invalidating the IOTLB does, through the
//! invalidation queue.

use super::Board;
use crate::iommu::Iommu;
use crate::iommu::fault_queue::{FaultQueue, TranslationFault};
use crate::iommu::invalidation_queue::{Command, InvalidationQueue, QueueFull, Step};
use crate::iommu::translation_table::Entry;
use crate::ports::Port;
use lanemark_dma::{Abilities, Ability, Attributes, Backend, BackendError, Invalidated, IovaRange};
use lanemark_units::{HostPhys, Iova, Ticks};
use std::io::{Error, ErrorKind};

/// Longest wait of software for an invalidation.
///
/// Source: `ARM_SMMU_CMDQ_SYNC_TIMEOUT_US` of Linux, for another kind of IOMMU.
const LONGEST: Ticks = Ticks::whole_ns(1_000_000_000);

/// Identifies a queued invalidation command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Invalidating(u64);

impl Board {
    /// Unmaps the DMA memory: from now on devices reach only what is [mapped](Backend::map). This includes the words
    /// and descriptors of drivers.
    ///
    /// ```
    /// use lanemark_dma::{Buffer, Domain, Invalidation, MapRequest, Permission, Ranges, Space};
    /// use lanemark_units::HostPhys;
    /// let platform = lanemark_platform::preset("card-gen5-x16-iommu").unwrap()?;
    /// let mut board = lanemark_sim::Board::new(&platform)?;
    /// board.map_nothing()?;
    /// let page = HostPhys(board.mapped_at() + 7 * 4096);
    /// let mut domain = Domain::new("card", Ranges::new(Space::of_device(32)?)?, board, Invalidation::Strict)?;
    /// let request = MapRequest::new(domain.attach("card")?, Permission::Read);
    /// let mapping = domain.map(&mut Buffer::new(page, 4096), request, domain.backend().now())?;
    /// // The card uses `mapping.iova()`. Unmapping invalidates it, while the board advances its time.
    /// assert_ne!(mapping.iova().0, page.0);
    /// domain.unmap(mapping, domain.backend().now())?;
    /// assert_eq!(domain.backend().now().as_ns(), 1000.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`BackendError::Os`] where no IOMMU translates.
    pub fn map_nothing(&mut self) -> Result<(), BackendError> {
        self.own_table(false).map(|_| ())
    }

    /// Makes the table changeable, with the DMA memory identity-mapped.
    pub(super) fn make_table_changeable(&mut self) {
        let _ = self.table_of_its_own();
    }

    fn own_table(&mut self, is_lent: bool) -> Result<&mut Iommu, BackendError> {
        let iommu = self.iommu.as_mut().ok_or_else(no_iommu)?;
        iommu.own_table(is_lent, &self.root_routes.ranges);
        let caches = self.endpoints.iter_mut().filter_map(|endpoint| endpoint.dma.as_mut()?.atc.as_mut());
        caches.for_each(|atc| atc.invalidate_all());
        Ok(iommu)
    }

    /// Returns the IOMMU with a changeable table.
    fn table_of_its_own(&mut self) -> Result<&mut Iommu, BackendError> {
        if !self.iommu.as_ref().is_some_and(Iommu::has_own_table) {
            self.own_table(true)?;
        }
        self.iommu.as_mut().ok_or_else(no_iommu)
    }

    /// Takes the oldest recorded translation fault.
    pub fn take_translation_fault(&mut self) -> Option<TranslationFault> {
        self.iommu.as_mut()?.faults_mut()?.take()
    }

    /// Returns the number of translation faults that found the queue full.
    #[must_use]
    pub fn lost_translation_faults(&self) -> u64 {
        self.iommu.as_ref().and_then(Iommu::faults).map_or(0, FaultQueue::overflowed)
    }

    /// Returns the recorded translation fault of a request.
    pub(crate) fn translation_fault(&self, requester: u16, address: u64) -> Option<&TranslationFault> {
        // The newest record counts: an earlier one may have another reason.
        let faults = self.iommu.as_ref()?.faults()?.iter();
        faults.filter(|fault| fault.requester == requester && fault.at.0 == address).last()
    }

    /// Queues an invalidation command without waiting for its completion.
    ///
    /// # Errors
    /// [`QueueFull`]; a board without an IOMMU has no entries.
    pub fn put_invalidation(&mut self, command: Command) -> Result<Invalidating, QueueFull> {
        let none = QueueFull { entries: 0 };
        let is_full = self.table_of_its_own().map_err(|_| none)?.queue().is_none_or(InvalidationQueue::is_full);
        // A rejected command cannot hang.
        let (now, hangs) = (self.now, !is_full && self.hangs_invalidation());
        let queue = self.iommu.as_mut().and_then(Iommu::queue_mut).ok_or(none)?;
        if hangs {
            queue.hang_next();
        }
        let number = queue.put(now, command)?;
        self.refresh_iommu();
        Ok(Invalidating(number))
    }

    /// Returns whether a command has completed.
    #[must_use]
    pub fn is_invalidated(&self, number: Invalidating) -> bool {
        self.iommu.as_ref().and_then(Iommu::queue).is_some_and(|queue| queue.done() >= number.0)
    }

    pub(super) fn refresh_iommu(&mut self) {
        let due = self.iommu.as_ref().map_or(Ticks::NEVER, Iommu::due);
        self.set(Port::Iommu, due.max(self.now));
    }

    /// Executes the due steps of the first invalidation command.
    #[inline]
    pub(super) fn invalidate_what_is_due(&mut self) {
        let now = self.now;
        while let Some(step) = self.iommu.as_mut().and_then(|iommu| iommu.queue_mut()?.step(now)) {
            let until = match step {
                Step::Invalidate(command) => self.iommu.as_mut().map(|iommu| iommu.invalidate(now, command)),
                Step::Left if self.request_invalidations() => None,
                Step::Left => self.reached_at(),
                Step::Ended => continue,
            };
            if let (Some(until), Some(queue)) = (until, self.iommu.as_mut().and_then(Iommu::queue_mut)) {
                queue.wait_until(until);
            }
        }
    }

    /// Advances time until a condition holds, or for the longest wait; returns an error in the latter case.
    fn wait_for(&mut self, from: Ticks, mut is_so: impl FnMut(&Board) -> bool) -> Result<(), BackendError> {
        let until = from + LONGEST;
        if self.run_while(until, |board| !is_so(board)) {
            return Ok(());
        }
        self.run_until(until);
        Err(self.silent_devices().unwrap_or(BackendError::Timeout { after: LONGEST }))
    }

    /// Returns an error with the devices whose Invalidate Completion is outstanding, if the queue waits for them.
    fn silent_devices(&self) -> Option<BackendError> {
        let silent = self.iommu.as_ref().and_then(Iommu::queue).map(InvalidationQueue::silent)?;
        let names: Vec<&str> = silent.iter().map(|requester| self.port_of_card(*requester)).collect();
        let text = format!("no Invalidate Completion of {} after {LONGEST}", names.join(", "));
        let source = Error::new(ErrorKind::TimedOut, text);
        (!names.is_empty()).then_some(BackendError::Os { doing: "invalidating", source })
    }

    /// Returns the page numbers of a range of IOVAs, which must be whole pages of the IOMMU.
    fn pages_of(&self, range: IovaRange) -> Result<std::ops::Range<u64>, BackendError> {
        let page_bytes = self.page_bytes();
        let end = range.at.0.checked_add(range.len_bytes).ok_or(BackendError::NotThere { at: range.at })?;
        if !range.at.0.is_multiple_of(page_bytes) || !end.is_multiple_of(page_bytes) {
            let source = Error::new(
                ErrorKind::InvalidInput,
                format!("{} and {} B are not whole IOMMU pages of {page_bytes} B", range.at, range.len_bytes),
            );
            return Err(BackendError::Os { doing: "finding pages", source });
        }
        Ok(range.at.0 / page_bytes..end / page_bytes)
    }

    fn page_bytes(&self) -> u64 {
        self.iommu.as_ref().map_or(1, Iommu::page_bytes)
    }

    /// Checks that every page of `range` is mapped, or that none is.
    fn all_are(&mut self, range: IovaRange, mapped: bool) -> Result<std::ops::Range<u64>, BackendError> {
        let page_bytes = self.page_bytes();
        let iommu = self.table_of_its_own()?;
        let other = (range.at.0 / page_bytes..range.at.0.saturating_add(range.len_bytes) / page_bytes).find(|page| {
            let at = Iova(page * page_bytes);
            let is_mapped = iommu.table().is_some_and(|table| table.find(*page).is_some());
            // Message addresses and ranges below root ports are never mapped.
            let is_taken = iommu.means_something_else(at);
            if mapped { !is_mapped || is_taken } else { is_mapped || is_taken }
        });
        match other.map(|page| Iova(page * page_bytes)) {
            None => self.pages_of(range),
            Some(at) if mapped => Err(BackendError::NotThere { at }),
            Some(at) => Err(BackendError::Overlap { at }),
        }
    }

    fn write_entries(
        &mut self,
        pages: std::ops::Range<u64>,
        memory: HostPhys,
        attributes: Attributes,
    ) -> Result<(), BackendError> {
        let (page_bytes, now, permission) = (self.page_bytes(), self.now, attributes.permission());
        let (lent, len) = self.iommu.as_ref().map_or((0, 0), Iommu::lent);
        let bytes = (pages.end - pages.start) * page_bytes;
        let within = memory.0.checked_sub(lent).filter(|offset| *offset < len).map_or(0, |offset| len - offset);
        if within < bytes {
            // The first page that does not lie in memory.
            let at = memory.0 + within / page_bytes * page_bytes;
            let because = format!("it is outside the {len} B of memory from {lent:#x} on");
            return Err(BackendError::Pin { at, because });
        }
        if !memory.0.is_multiple_of(page_bytes) {
            let because = format!("it is not aligned to a page of {page_bytes} B");
            return Err(BackendError::Pin { at: memory.0, because });
        }
        if let Some(table) = self.table_of_its_own()?.table_mut(now) {
            for (page, of_host) in pages.zip(memory.0 / page_bytes..) {
                table.set(page, Some(Entry { page: of_host, permission }));
            }
        }
        Ok(())
    }
}

fn no_iommu() -> BackendError {
    let source = Error::new(ErrorKind::Unsupported, "the platform has no IOMMU that translates; add [iommu]");
    BackendError::Os { doing: "mapping", source }
}

/// Splits a range of pages into naturally aligned powers of two, one for each command.
///
/// Source: Intel Virtualization Technology for Directed I/O, section 6.5.2.3, the address mask of an IOTLB invalidate descriptor.
fn commands_for(pages: std::ops::Range<u64>) -> Vec<Command> {
    let (mut first, mut commands) = (pages.start, Vec::new());
    while first < pages.end {
        let aligned = if first == 0 { u64::MAX } else { 1 << first.trailing_zeros() };
        let pages = aligned.min(1 << (pages.end - first).ilog2());
        commands.push(Command::Pages { first, pages });
        first += pages;
    }
    commands
}

impl Backend for Board {
    type Memory = HostPhys;

    fn name(&self) -> &'static str {
        "IOMMU of the board"
    }

    fn abilities(&self) -> Abilities {
        Abilities::NONE | Ability::SetAttributes | Ability::Remap | Ability::PartialUnmap
    }

    fn map(&mut self, range: IovaRange, memory: HostPhys, attributes: Attributes) -> Result<(), BackendError> {
        let pages = self.all_are(range, false)?;
        self.write_entries(pages, memory, attributes)
    }

    fn unmap(&mut self, range: IovaRange) -> Result<(), BackendError> {
        let (pages, now) = (self.all_are(range, true)?, self.now);
        if let Some(table) = self.table_of_its_own()?.table_mut(now) {
            pages.for_each(|page| table.set(page, None));
        }
        Ok(())
    }

    fn set_attributes(&mut self, range: IovaRange, attributes: Attributes) -> Result<(), BackendError> {
        let (pages, now, permission) = (self.all_are(range, true)?, self.now, attributes.permission());
        if let Some(table) = self.table_of_its_own()?.table_mut(now) {
            for page in pages {
                let entry = table.find(page).map(|entry| Entry { permission, ..entry });
                table.set(page, entry);
            }
        }
        Ok(())
    }

    fn remap(&mut self, range: IovaRange, memory: HostPhys, attributes: Attributes) -> Result<(), BackendError> {
        let pages = self.all_are(range, true)?;
        self.write_entries(pages, memory, attributes)
    }

    /// Queues the commands, waiting while the queue is full, and advances time until the last one has completed.
    fn invalidate(&mut self, stale: Invalidated) -> Result<Ticks, BackendError> {
        let before = self.now;
        self.table_of_its_own()?;
        let commands = match stale {
            Invalidated::All => vec![Command::All],
            Invalidated::Range { range, .. } => commands_for(self.pages_of(range)?),
        };
        let mut last = None;
        for command in commands {
            self.wait_for(before, |board| {
                board.iommu.as_ref().and_then(Iommu::queue).is_some_and(|queue| !queue.is_full())
            })?;
            let full = |error: QueueFull| BackendError::Os { doing: "invalidating", source: Error::other(error) };
            last = Some(self.put_invalidation(command).map_err(full)?);
        }
        if let Some(last) = last {
            self.wait_for(before, |board| board.is_invalidated(last))?;
        }
        Ok(self.now.since(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_split_into_the_fewest_aligned_commands() {
        let of = |first, pages| Command::Pages { first, pages };
        assert_eq!(commands_for(0..8), [of(0, 8)]);
        assert_eq!(commands_for(3..12), [of(3, 1), of(4, 4), of(8, 4)]);
        assert_eq!(commands_for(5..6), [of(5, 1)]);
        for (start, end) in [(0, 1), (1, 100), (7, 8), (64, 192)] {
            let pages: u64 = commands_for(start..end)
                .iter()
                .map(|command| if let Command::Pages { pages, .. } = command { *pages } else { 0 })
                .sum();
            assert_eq!(pages, end - start);
        }
    }
}
