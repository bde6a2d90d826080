//! Mappings in the table of an IOMMU: checks and writes of ranges of pages, and the commands that invalidate them.

use super::Iommu;
use crate::iommu::invalidation_queue::Command;
use crate::iommu::translation_table::Entry;
use lanemark_dma::{Attributes, BackendError, IovaRange};
use lanemark_units::{HostPhys, Iova, Ticks};
use std::io::{Error, ErrorKind};
use std::ops::Range;

impl Iommu {
    /// Returns whether the page of an address overlaps a message address or a range below a root port.
    fn is_taken(&self, at: Iova) -> bool {
        let last = at.0.saturating_add(self.spec.page_bytes - 1);
        self.own.as_ref().is_some_and(|own| own.mean_something_else(at.0, last))
    }

    /// Returns the page numbers of a range of IOVAs.
    ///
    /// # Errors
    /// [`BackendError`] unless the range is whole pages.
    pub(crate) fn pages_of(&self, range: IovaRange) -> Result<Range<u64>, BackendError> {
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

    /// Returns the page numbers of a range of IOVAs in which every page is mapped, or none.
    ///
    /// # Errors
    /// [`BackendError`] with the first page that is not so, or unless the range is whole pages.
    pub(crate) fn pages_all(&self, range: IovaRange, mapped: bool) -> Result<Range<u64>, BackendError> {
        let page_bytes = self.page_bytes();
        let other = (range.at.0 / page_bytes..range.at.0.saturating_add(range.len_bytes) / page_bytes).find(|page| {
            let is_mapped = self.table().is_some_and(|table| table.find(*page).is_some());
            // Message addresses and ranges below root ports are never mapped.
            let is_taken = self.is_taken(Iova(page * page_bytes));
            if mapped { !is_mapped || is_taken } else { is_mapped || is_taken }
        });
        match other.map(|page| Iova(page * page_bytes)) {
            None => self.pages_of(range),
            Some(at) if mapped => Err(BackendError::NotThere { at }),
            Some(at) => Err(BackendError::Overlap { at }),
        }
    }

    /// Maps pages to host memory.
    ///
    /// # Errors
    /// [`BackendError::Pin`] unless the memory is aligned DMA memory.
    pub(crate) fn map_pages(
        &mut self,
        now: Ticks,
        pages: Range<u64>,
        memory: HostPhys,
        attributes: Attributes,
    ) -> Result<(), BackendError> {
        let (page_bytes, permission) = (self.page_bytes(), attributes.permission());
        let (start, len) = self.spec.lent;
        let bytes = (pages.end - pages.start) * page_bytes;
        let within = memory.0.checked_sub(start).filter(|offset| *offset < len).map_or(0, |offset| len - offset);
        if within < bytes {
            // The first page that does not lie in memory.
            let at = memory.0 + within / page_bytes * page_bytes;
            let because = format!("it is outside the {len} B of memory from {start:#x} on");
            return Err(BackendError::Pin { at, because });
        }
        if !memory.0.is_multiple_of(page_bytes) {
            let because = format!("it is not aligned to a page of {page_bytes} B");
            return Err(BackendError::Pin { at: memory.0, because });
        }
        if let Some(table) = self.table_mut(now) {
            for (page, of_host) in pages.zip(memory.0 / page_bytes..) {
                table.set(page, Some(Entry { page: of_host, permission }));
            }
        }
        Ok(())
    }

    /// Changes the entry of each page of a range; `None` unmaps it.
    pub(crate) fn change_pages(&mut self, now: Ticks, pages: Range<u64>, change: impl Fn(Entry) -> Option<Entry>) {
        if let Some(table) = self.table_mut(now) {
            for page in pages {
                let entry = table.find(page).and_then(&change);
                table.set(page, entry);
            }
        }
    }
}

/// Splits a range of pages into naturally aligned powers of two, one for each command.
///
/// Source: Intel Virtualization Technology for Directed I/O, section 6.5.2.3, the address mask of an IOTLB invalidate descriptor.
pub(crate) fn commands_for(pages: Range<u64>) -> Vec<Command> {
    let (mut first, mut commands) = (pages.start, Vec::new());
    while first < pages.end {
        let aligned = if first == 0 { u64::MAX } else { 1 << first.trailing_zeros() };
        let pages = aligned.min(1 << (pages.end - first).ilog2());
        commands.push(Command::Pages { first, pages });
        first += pages;
    }
    commands
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
