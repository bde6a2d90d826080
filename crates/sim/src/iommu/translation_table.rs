//! The table of an IOMMU: where each page that a device names leads, and what it may do there.
//!
//! At first what is lent leads to itself, for reads and writes, and nothing else leads anywhere. Ports: [`TranslationTable::find`] reads
//! an entry, [`TranslationTable::set`] writes one. Pages are numbers of whole pages, on both sides.

use lanemark_dma::Permission;
use std::collections::BTreeMap;

/// Where a page leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// To this page of the host.
    pub page: u64,
    /// What devices may do there.
    pub permission: Permission,
}

/// All entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationTable {
    /// The first page that leads to itself where no entry says otherwise, and how many do.
    identical: (u64, u64),
    entries: BTreeMap<u64, Option<Entry>>,
}

impl TranslationTable {
    /// So many pages lead to themselves, from this one on.
    #[must_use]
    pub const fn identical(first: u64, pages: u64) -> TranslationTable {
        TranslationTable { identical: (first, pages), entries: BTreeMap::new() }
    }

    /// Where a page leads; `None` if nowhere.
    #[must_use]
    pub fn find(&self, page: u64) -> Option<Entry> {
        let (first, pages) = self.identical;
        let itself = || (page.wrapping_sub(first) < pages).then_some(Entry { page, permission: Permission::ReadWrite });
        self.entries.get(&page).copied().unwrap_or_else(itself)
    }

    /// From now on a page leads there; `None` for nowhere.
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
