//! The reference backend: a page table in memory, with an IOTLB that keeps every translation until it is invalidated.

use crate::allocator::{IovaRange, Purge};
use crate::attributes::Attributes;
use crate::backend::{Abilities, Ability, Backend, BackendError, CacheCare, Coherence, Invalidated};
use crate::buffer::{Buffer, HostAddress};
use lanemark_units::{Iova, Ticks};
use std::collections::BTreeMap;

/// A page table that tests and simulators can inspect.
///
/// It has every ability unless some are removed. [`PageTable::translate`] looks an address up in the table;
/// [`PageTable::reach`] models the worst IOTLB, which keeps every translation until it is invalidated.
///
/// ```
/// use lanemark_dma::*;
/// use lanemark_units::{HostPhys, Iova, Ticks};
/// let mut table = PageTable::new(4096);
/// let page = IovaRange { at: Iova(0x1000), len_bytes: 4096 };
/// table.map(page, HostPhys(0x7000), MapRequest::new(Device(0), Permission::Read).attributes())?;
/// table.unmap(page)?;
/// assert_eq!(table.translate(Iova(0x1010)), None);
/// assert_eq!(table.reach(Iova(0x1010)).map(|page| page.memory), Some(HostPhys(0x7010)), "still in the IOTLB");
/// table.invalidate(Invalidated::All)?;
/// assert_eq!(table.reach(Iova(0x1010)), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct PageTable<M> {
    page_bits: u32,
    abilities: Abilities,
    coherence: Coherence,
    line_bytes: u64,
    pages: BTreeMap<u64, Translation<M>>,
    /// Old translations of changed pages that an IOTLB may still hold.
    stale: BTreeMap<u64, Translation<M>>,
    /// Duration of an invalidation.
    invalidation: Ticks,
    counts: Counts,
    cared: Vec<(CacheCare, Buffer<M>)>,
}

/// Translation of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translation<M> {
    /// The host address.
    pub memory: M,
    /// The attributes of the page.
    pub attributes: Attributes,
}

/// Number of invalidation requests of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requests to overwrite the entries of a range.
    pub entries: u64,
    /// Requests to remove the translations of a range.
    pub matching: u64,
    /// Requests to remove all translations.
    pub all: u64,
}

impl<M: HostAddress> PageTable<M> {
    /// An empty table with pages of `page_bytes`, rounded up to a power of two.
    #[must_use]
    pub fn new(page_bytes: u64) -> PageTable<M> {
        PageTable {
            page_bits: page_bytes.checked_next_power_of_two().unwrap_or(1 << 63).trailing_zeros(),
            abilities: Abilities::ALL,
            coherence: Coherence::Coherent,
            line_bytes: 64,
            pages: BTreeMap::new(),
            stale: BTreeMap::new(),
            invalidation: Ticks::ZERO,
            counts: Counts::default(),
            cared: Vec::new(),
        }
    }

    /// Restricts the abilities.
    #[must_use]
    pub fn with_abilities(self, abilities: Abilities) -> PageTable<M> {
        PageTable { abilities, ..self }
    }

    /// Sets the coherence and the line size of the platform.
    #[must_use]
    pub fn on_platform(self, coherence: Coherence, line_bytes: u64) -> PageTable<M> {
        PageTable { coherence, line_bytes, ..self }
    }

    /// Sets the duration of an invalidation.
    #[must_use]
    pub fn with_invalidation(self, took: Ticks) -> PageTable<M> {
        PageTable { invalidation: took, ..self }
    }

    /// Translation of `at` by the table.
    #[must_use]
    pub fn translate(&self, at: Iova) -> Option<Translation<M>> {
        self.look(&self.pages, at)
    }

    /// Translation of `at` by the worst IOTLB: the oldest stale translation, else the one in the table.
    #[must_use]
    pub fn reach(&self, at: Iova) -> Option<Translation<M>> {
        self.look(&self.stale, at).or_else(|| self.translate(at))
    }

    /// Number of mapped pages: entries of an IOMMU's table.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.pages.len()
    }

    /// Number of invalidation requests so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes the list of flushed and purged lines, in order.
    pub fn take_cared(&mut self) -> Vec<(CacheCare, Buffer<M>)> {
        std::mem::take(&mut self.cared)
    }

    fn look(&self, pages: &BTreeMap<u64, Translation<M>>, at: Iova) -> Option<Translation<M>> {
        let page = pages.get(&(at.0 >> self.page_bits))?;
        let offset = at.0 & ((1 << self.page_bits) - 1);
        Some(Translation { memory: M::from_value(page.memory.value() | offset), ..*page })
    }

    fn page_numbers(&self, range: IovaRange) -> std::ops::Range<u64> {
        let first = range.at.0 >> self.page_bits;
        first..first + (range.len_bytes >> self.page_bits)
    }

    /// Checks that all pages of `range` are mapped, or that none is; the error names the first exception.
    fn check_mapped(&self, range: IovaRange, mapped: bool) -> Result<(), BackendError> {
        let other = self.page_numbers(range).find(|page| self.pages.contains_key(page) != mapped);
        let at = |page: u64| Iova(page << self.page_bits);
        match other {
            None => Ok(()),
            Some(page) if mapped => Err(BackendError::NotThere { at: at(page) }),
            Some(page) => Err(BackendError::Overlap { at: at(page) }),
        }
    }

    fn need(&self, ability: Ability) -> Result<(), BackendError> {
        if self.abilities.has(ability) { Ok(()) } else { Err(BackendError::Unsupported(ability)) }
    }

    fn write(&mut self, range: IovaRange, memory: M, attributes: Attributes) {
        for (offset, page) in self.page_numbers(range).enumerate() {
            let memory = M::from_value(memory.value() + ((offset as u64) << self.page_bits));
            if let Some(old) = self.pages.insert(page, Translation { memory, attributes }) {
                // The oldest translation that the IOTLB can hold counts.
                self.stale.entry(page).or_insert(old);
            }
        }
    }
}

impl<M: HostAddress> Backend for PageTable<M> {
    type Memory = M;

    fn name(&self) -> &'static str {
        "page table"
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn coherence(&self) -> Coherence {
        self.coherence
    }

    fn line_bytes(&self) -> u64 {
        self.line_bytes
    }

    fn map(&mut self, range: IovaRange, memory: M, attributes: Attributes) -> Result<(), BackendError> {
        self.check_mapped(range, false)?;
        self.write(range, memory, attributes);
        Ok(())
    }

    fn unmap(&mut self, range: IovaRange) -> Result<(), BackendError> {
        self.check_mapped(range, true)?;
        for page in self.page_numbers(range) {
            if let Some(old) = self.pages.remove(&page) {
                self.stale.entry(page).or_insert(old);
            }
        }
        Ok(())
    }

    fn set_attributes(&mut self, range: IovaRange, attributes: Attributes) -> Result<(), BackendError> {
        self.need(Ability::SetAttributes)?;
        self.check_mapped(range, true)?;
        for page in self.page_numbers(range) {
            if let Some(translation) = self.pages.get_mut(&page) {
                self.stale.entry(page).or_insert(*translation);
                translation.attributes = attributes;
            }
        }
        Ok(())
    }

    fn remap(&mut self, range: IovaRange, memory: M, attributes: Attributes) -> Result<(), BackendError> {
        self.need(Ability::Remap)?;
        self.check_mapped(range, true)?;
        self.write(range, memory, attributes);
        Ok(())
    }

    fn invalidate(&mut self, stale: Invalidated) -> Result<Ticks, BackendError> {
        match stale {
            Invalidated::All => {
                self.counts.all += 1;
                self.stale.clear();
            }
            Invalidated::Range { range, by } => {
                match by {
                    Purge::Entries => self.counts.entries += 1,
                    Purge::Matching => self.counts.matching += 1,
                }
                for page in self.page_numbers(range) {
                    self.stale.remove(&page);
                }
            }
        }
        Ok(self.invalidation)
    }

    fn care(&mut self, care: CacheCare, buffer: Buffer<M>) -> Result<(), BackendError> {
        self.need(Ability::CacheCare)?;
        self.cared.push((care, buffer));
        Ok(())
    }
}
