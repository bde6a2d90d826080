//! Buddy allocator: blocks of 2^n pages, naturally aligned, split on demand and merged when both halves are free.

use super::{AllocError, AllocRequest, Device, IovaAllocator, IovaRange, Pages};
use crate::space::Space;
use lanemark_units::Iova;
use std::collections::BTreeSet;

/// Grants blocks of 2^n pages at multiples of their length, so 2 MiB and 1 GiB blocks are aligned. A request is refused
/// only if no such block is free.
#[derive(Debug, Clone)]
pub struct Buddy {
    space: Space,
    /// First pages of the free blocks of 2^index pages.
    blocks: Vec<BTreeSet<u64>>,
}

/// Number of block sizes; a 64-bit space has 2^52 pages of 4 KiB.
const ORDERS: u32 = 64;

impl Buddy {
    /// An allocator with all of `space` free.
    #[must_use]
    pub fn new(space: Space) -> Buddy {
        let mut buddy = Buddy { space, blocks: vec![BTreeSet::new(); ORDERS as usize] };
        for span in buddy.space.free_spans().to_vec() {
            let (mut first, end) = (span.first, span.first + span.pages);
            while first < end {
                let order = first.trailing_zeros().min((end - first).ilog2());
                buddy.blocks[order as usize].insert(first);
                first += 1 << order;
            }
        }
        buddy
    }

    /// The order (log2 of pages) of the block that `ask` needs.
    pub(super) fn order(&self, ask: AllocRequest) -> Result<u32, AllocError> {
        let pages = Pages::of(ask, self.space.page_bits(), self.longest_bytes())?;
        Ok(pages.count.next_power_of_two().max(pages.align).trailing_zeros())
    }

    /// Takes a block of 2^`order` pages and returns its first page.
    pub(super) fn take(&mut self, order: u32) -> Option<u64> {
        let (from, first) = (order..ORDERS).find_map(|from| Some((from, self.blocks[from as usize].pop_first()?)))?;
        for half in order..from {
            self.blocks[half as usize].insert(first + (1 << half));
        }
        Some(first)
    }

    /// The error for a request without a free block.
    pub(super) fn exhausted(&self, ask: AllocRequest) -> AllocError {
        let blocks = || self.blocks.iter().zip(0..).filter(|(firsts, _)| !firsts.is_empty());
        let free = blocks().map(|(firsts, order)| (firsts.len() as u64) << order).sum();
        ask.exhausted(self.space.page_bytes(), free, blocks().map(|(_, order)| 1 << order).max().unwrap_or(0))
    }

    /// Frees the block of 2^`order` pages at `first`; false if any part of it is free already.
    pub(super) fn put(&mut self, first: u64, order: u32) -> bool {
        let last = first + ((1 << order) - 1);
        let is_free =
            |page: u64| (0..ORDERS).any(|of| self.blocks[of as usize].contains(&(page & !((1_u64 << of) - 1))));
        // A free part of it is in a block that holds one of its ends, or in a block within it.
        let within = || (0..order).any(|of| self.blocks[of as usize].range(first..=last).next().is_some());
        if is_free(first) || is_free(last) || within() {
            return false;
        }
        let (mut first, mut order) = (first, order);
        while order + 1 < ORDERS && self.blocks[order as usize].remove(&(first ^ (1 << order))) {
            first &= !(1 << order);
            order += 1;
        }
        self.blocks[order as usize].insert(first);
        true
    }

    /// A block as a range of IOVAs.
    pub(super) fn range(&self, first: u64, order: u32) -> IovaRange {
        let bits = self.space.page_bits();
        IovaRange { at: Iova(first << bits), len_bytes: 1 << (order + bits) }
    }

    /// A range of IOVAs as a block: first page and order.
    pub(super) fn block(&self, range: IovaRange) -> Result<(u64, u32), AllocError> {
        let bits = self.space.page_bits();
        let order = range.len_bytes.trailing_zeros();
        let is_block = range.len_bytes.is_power_of_two()
            && order >= bits
            && range.at.0 & (range.len_bytes - 1) == 0
            && self.space.contains(range.at, range.len_bytes);
        if is_block { Ok((range.at.0 >> bits, order - bits)) } else { Err(AllocError::NotOut { range }) }
    }
}

impl IovaAllocator for Buddy {
    fn name(&self) -> &'static str {
        "buddy"
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn longest_bytes(&self) -> u64 {
        1 << 62
    }

    fn alloc(&mut self, ask: AllocRequest) -> Result<IovaRange, AllocError> {
        let order = self.order(ask)?;
        let first = self.take(order).ok_or_else(|| self.exhausted(ask))?;
        Ok(self.range(first, order))
    }

    fn free(&mut self, _: Device, range: IovaRange) -> Result<(), AllocError> {
        let (first, order) = self.block(range)?;
        if self.put(first, order) { Ok(()) } else { Err(AllocError::NotOut { range }) }
    }
}
