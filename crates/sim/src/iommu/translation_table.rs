//! The translation table of an IOMMU: the host page and the permission of each device page.
//!
//! Initially, DMA memory is identity-mapped for reads and writes, and no other page is mapped. Ports:
//! [`TranslationTable::find`] reads an entry, [`TranslationTable::set`] writes one. Pages are page numbers on both
//! sides.

use lanemark_dma::Permission;
use std::collections::BTreeMap;

/// A table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The host page.
    pub page: u64,
    /// The permitted accesses.
    pub permission: Permission,
}

/// State of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationTable {
    /// First page and number of pages that are identity-mapped where `entries` has no entry.
    identical: (u64, u64),
    entries: BTreeMap<u64, Option<Entry>>,
}

impl TranslationTable {
    /// Creates a table that identity-maps `pages` pages from `first` on.
    #[must_use]
    pub const fn identical(first: u64, pages: u64) -> TranslationTable {
        TranslationTable { identical: (first, pages), entries: BTreeMap::new() }
    }

    /// Returns the entry of a page; `None` if it is not mapped.
    #[must_use]
    pub fn find(&self, page: u64) -> Option<Entry> {
        let (first, pages) = self.identical;
        let itself = || (page.wrapping_sub(first) < pages).then_some(Entry { page, permission: Permission::ReadWrite });
        self.entries.get(&page).copied().unwrap_or_else(itself)
    }

    /// Sets the entry of a page; `None` unmaps it.
    pub fn set(&mut self, page: u64, entry: Option<Entry>) {
        let (first, pages) = self.identical;
        if entry.is_none() && page.wrapping_sub(first) >= pages {
            self.entries.remove(&page);
        } else {
            self.entries.insert(page, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_leads_to_itself_until_an_entry_says_otherwise() {
        let mut table = TranslationTable::identical(16, 4);
        assert_eq!(table.find(19).map(|entry| entry.page), Some(19));
        table.set(19, None);
        table.set(7, Some(Entry { page: 18, permission: Permission::Read }));
        assert_eq!((table.find(19), table.find(7).map(|entry| entry.page), table.find(20)), (None, Some(18), None));
    }
}
