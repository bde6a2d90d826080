//! Reference allocator: holes in a B-tree, lowest fit first. Simple and slow; tests compare the others with it.

use super::{AllocError, AllocRequest, Device, IovaAllocator, IovaRange, Pages};
use crate::space::Space;
use lanemark_units::Iova;
use std::collections::BTreeMap;

/// Grants from the lowest hole that fits the request.
#[derive(Debug, Clone)]
pub struct FreeList {
    space: Space,
    /// First page and number of pages of each hole; adjacent holes are merged.
    holes: BTreeMap<u64, u64>,
    /// First page and number of pages of each allocated range.
    out: BTreeMap<u64, u64>,
}

impl FreeList {
    /// An allocator with all of `space` free.
    #[must_use]
    pub fn new(space: Space) -> FreeList {
        let holes = space.free_spans().iter().map(|span| (span.first, span.pages)).collect();
        FreeList { space, holes, out: BTreeMap::new() }
    }

    /// Number of holes: one for each contiguous part of the space while nothing is allocated.
    #[must_use]
    pub fn holes(&self) -> usize {
        self.holes.len()
    }
}

impl IovaAllocator for FreeList {
    fn name(&self) -> &'static str {
        "free list"
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn longest_bytes(&self) -> u64 {
        !(self.space.page_bytes() - 1)
    }

    fn alloc(&mut self, ask: AllocRequest) -> Result<IovaRange, AllocError> {
        let bits = self.space.page_bits();
        let wanted = Pages::of(ask, bits, self.longest_bytes())?;
        let fits = self.holes.iter().find_map(|(&hole, &pages)| {
            let first = hole.checked_next_multiple_of(wanted.align)?;
            (first - hole + wanted.count <= pages).then_some((hole, pages, first))
        });
        let (hole, pages, first) = fits.ok_or_else(|| {
            let (free, longest) = (self.holes.values().sum(), self.holes.values().max());
            ask.exhausted(self.space.page_bytes(), free, longest.copied().unwrap_or(0))
        })?;
        self.holes.remove(&hole);
        let (end, hole_end) = (first + wanted.count, hole + pages);
        if first > hole {
            self.holes.insert(hole, first - hole);
        }
        if end < hole_end {
            self.holes.insert(end, hole_end - end);
        }
        self.out.insert(first, wanted.count);
        Ok(IovaRange { at: Iova(first << bits), len_bytes: wanted.count << bits })
    }

    fn free(&mut self, _: Device, range: IovaRange) -> Result<(), AllocError> {
        let bits = self.space.page_bits();
        let (mut first, mut pages) = (range.at.0 >> bits, range.len_bytes >> bits);
        let is_pages = (range.at.0 | range.len_bytes) & (self.space.page_bytes() - 1) == 0;
        if !is_pages || self.out.get(&first) != Some(&pages) {
            return Err(AllocError::NotOut { range });
        }
        self.out.remove(&first);
        if let Some((&before, &len)) = self.holes.range(..first).next_back()
            && before + len == first
        {
            self.holes.remove(&before);
            (first, pages) = (before, len + pages);
        }
        if let Some(after) = self.holes.remove(&(first + pages)) {
            pages += after;
        }
        self.holes.insert(first, pages);
        Ok(())
    }
}
