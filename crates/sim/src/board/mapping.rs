//! DMA mappings of a board: an operating system that writes the table of the IOMMU.
//!
//! DMA memory is identity-mapped at first. Writing the table takes no time; invalidating the IOTLB does, through the
//! invalidation queue.

use super::Board;
use crate::iommu::Iommu;
use crate::iommu::fault_queue::{FaultQueue, TranslationFault};
use crate::iommu::invalidation_queue::{Command, InvalidationQueue, QueueFull, Step};
use crate::iommu::mapping::commands_for;
use crate::iommu::translation_table::Entry;
use crate::ports::Port;
use lanemark_dma::{Abilities, Ability, Attributes, Backend, BackendError, Invalidated, IovaRange};
use lanemark_units::{HostPhys, Ticks};
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

    /// Empties every cache of translations: the IOTLB, the paging-structure cache and the ATCs of all cards, and the
    /// last-level cache if walks read through it. Mappings stay.
    pub fn clear_translations(&mut self) {
        let Some(iommu) = &mut self.iommu else { return };
        iommu.clear_caches(self.events.now);
        if iommu.walks_through_cache() {
            self.memory.cache.clear();
        }
        self.endpoints.invalidate_atcs();
    }

    /// Makes the table changeable, with the DMA memory identity-mapped.
    pub(super) fn make_table_changeable(&mut self) {
        let _ = self.table_of_its_own();
    }

    fn own_table(&mut self, is_identity: bool) -> Result<&mut Iommu, BackendError> {
        let iommu = self.iommu.as_mut().ok_or_else(no_iommu)?;
        iommu.own_table(is_identity, &self.root_complex.routes.ranges);
        self.endpoints.invalidate_atcs();
        Ok(iommu)
    }

    /// Returns the current time and the IOMMU with a changeable table.
    fn table_of_its_own(&mut self) -> Result<(Ticks, &mut Iommu), BackendError> {
        if !self.iommu.as_ref().is_some_and(Iommu::has_own_table) {
            self.own_table(true)?;
        }
        Ok((self.events.now, self.iommu.as_mut().ok_or_else(no_iommu)?))
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
        let is_full = self.table_of_its_own().map_err(|_| none)?.1.queue().is_none_or(InvalidationQueue::is_full);
        // A rejected command cannot hang.
        let (now, hangs) = (self.events.now, !is_full && self.hangs_invalidation());
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
        self.events.set(Port::Iommu, due.max(self.events.now));
    }

    /// Executes the due steps of the first invalidation command.
    #[inline]
    pub(super) fn invalidate_what_is_due(&mut self) {
        let now = self.events.now;
        while let Some(step) = self.iommu.as_mut().and_then(|iommu| iommu.queue_mut()?.step(now)) {
            let until = match step {
                Step::Invalidate(command) => self.iommu.as_mut().map(|iommu| iommu.invalidate(now, command)),
                Step::Left if self.request_invalidations() => None,
                Step::Left => self.root_complex.reached_at(),
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
        let names: Vec<&str> = silent.iter().map(|requester| self.fabric.card_port(*requester)).collect();
        let text = format!("no Invalidate Completion of {} after {LONGEST}", names.join(", "));
        let source = Error::new(ErrorKind::TimedOut, text);
        (!names.is_empty()).then_some(BackendError::Os { doing: "invalidating", source })
    }
}

fn no_iommu() -> BackendError {
    let source = Error::new(ErrorKind::Unsupported, "the platform has no IOMMU that translates; add [iommu]");
    BackendError::Os { doing: "mapping", source }
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
        let (now, iommu) = self.table_of_its_own()?;
        let pages = iommu.pages_all(range, false)?;
        iommu.map_pages(now, pages, memory, attributes)
    }

    fn unmap(&mut self, range: IovaRange) -> Result<(), BackendError> {
        let (now, iommu) = self.table_of_its_own()?;
        let pages = iommu.pages_all(range, true)?;
        iommu.change_pages(now, pages, |_| None);
        Ok(())
    }

    fn set_attributes(&mut self, range: IovaRange, attributes: Attributes) -> Result<(), BackendError> {
        let ((now, iommu), permission) = (self.table_of_its_own()?, attributes.permission());
        let pages = iommu.pages_all(range, true)?;
        iommu.change_pages(now, pages, |entry| Some(Entry { permission, ..entry }));
        Ok(())
    }

    fn remap(&mut self, range: IovaRange, memory: HostPhys, attributes: Attributes) -> Result<(), BackendError> {
        let (now, iommu) = self.table_of_its_own()?;
        let pages = iommu.pages_all(range, true)?;
        iommu.map_pages(now, pages, memory, attributes)
    }

    /// Queues the commands, waiting while the queue is full, and advances time until the last one has completed.
    fn invalidate(&mut self, stale: Invalidated) -> Result<Ticks, BackendError> {
        let before = self.events.now;
        let (_, iommu) = self.table_of_its_own()?;
        let commands = match stale {
            Invalidated::All => vec![Command::All],
            Invalidated::Range { range, .. } => commands_for(iommu.pages_of(range)?),
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
        Ok(self.events.now.since(before))
    }
}
