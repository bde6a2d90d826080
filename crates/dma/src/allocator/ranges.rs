//! Fixed-length ranges from a bitmap, lowest free one first; each mapping gets a whole range.

use super::bitmap::Bitmap;
use super::{Align, AllocError, AllocRequest, Device, IovaAllocator, IovaRange};
use crate::space::Space;
use lanemark_units::Iova;

/// Grants ranges of a fixed length (8 pages), lowest free one first.
///
/// Single pages are not managed: allocating and freeing is one bit of a bitmap, and a mapping of one page owns a whole
/// range. Because the lowest free range is granted, `n` allocated ranges are the first `n` of the space, except those
/// allocated while more were in use.
///
/// An IOTLB indexed by the *upper* bits of an address (direct-mapped with `n` entries, as in [`Ranges::over_entries`])
/// then holds `n` ranges without a conflict.
///
/// ```
/// use lanemark_dma::{AllocRequest, Device, IovaAllocator, Ranges, Space};
/// // A page directory of 2^20 pages, and an IOTLB indexed by the upper 8 of the 20 bits.
/// let mut ranges = Ranges::new(Space::of_device(32)?)?.over_entries(256)?;
/// let mut entry = || ranges.alloc(AllocRequest::bytes(Device(0), 4096)).map(|range| range.at.0 >> 24);
/// let entries: Vec<u64> = (0..257).map(|_| entry()).collect::<Result<_, _>>()?;
/// assert!((0..256).all(|range| entries[range] == range as u64));
/// assert_eq!(entries[256], 0, "the 257th shares an entry with the first");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ranges {
    space: Space,
    /// log2 of the bytes of a range.
    range_bits: u32,
    /// Number of the lowest range.
    first: u64,
    /// Free ranges, numbered in the order of allocation.
    free: Bitmap,
    /// Reserved places: first, and one past the last. `gaps_hull` is a range that contains all of them.
    gaps: Vec<(u64, u64)>,
    gaps_hull: (u64, u64),
    range_bytes: u64,
    spread: Option<Spread>,
}

/// Permutation from allocation order to place: the low bits of the number are the high bits of the place.
#[derive(Debug, Clone, Copy)]
struct Spread {
    entry_bits: u32,
    /// Bits of a place within an entry.
    within_bits: u32,
}

impl Ranges {
    /// Default number of pages of a range.
    pub const PAGES: u64 = 8;
    /// Maximum number of ranges: 2 MiB of bitmap, 512 GiB of ranges of 8 pages.
    pub const MOST: u64 = 1 << 24;

    /// Ranges of 8 pages in all of `space`.
    ///
    /// # Errors
    /// As [`Ranges::of_pages`].
    pub fn new(space: Space) -> Result<Ranges, AllocError> {
        Ranges::of_pages(space, Ranges::PAGES)
    }

    /// Ranges of `pages` pages, naturally aligned, in all of `space`. Parts of a space shorter than a range are not
    /// granted.
    ///
    /// # Errors
    /// [`AllocError::TooMany`] beyond [`Ranges::MOST`] ranges: use a shorter space
    /// ([`Space::between`](crate::Space::between)) or longer ranges. [`AllocError::Align`] if `pages` is no power of
    /// two, or above 2^20. [`AllocError::Exhausted`] if the space has no whole range.
    pub fn of_pages(space: Space, pages: u64) -> Result<Ranges, AllocError> {
        if !pages.is_power_of_two() || pages > 1 << 20 {
            return Err(AllocError::Align { align_bytes: pages, most_bytes: 1 << 20 });
        }
        let whole: Vec<(u64, u64)> = space
            .free_spans()
            .iter()
            .map(|span| (span.first.div_ceil(pages), (span.first + span.pages) / pages))
            .filter(|(first, end)| first < end)
            .collect();
        let range_bits = space.page_bits() + pages.trailing_zeros();
        let (Some(&(first, _)), Some(&(_, end))) = (whole.first(), whole.last()) else {
            let longest = space.free_spans().iter().map(|span| span.pages).max().unwrap_or(0);
            let range = AllocRequest::bytes(Device::default(), 1 << range_bits);
            return Err(range.exhausted(space.page_bytes(), space.free_pages(), longest));
        };
        if end - first > Ranges::MOST {
            return Err(AllocError::TooMany { what: "ranges", wanted: end - first, most: Ranges::MOST });
        }
        let mut free = Bitmap::none_free((end - first) as usize);
        for number in whole.iter().flat_map(|&(from, to)| from..to) {
            free.put((number - first) as usize);
        }
        let range_bytes = 1 << range_bits;
        let ranges =
            Ranges { space, range_bits, first, free, gaps: Vec::new(), gaps_hull: (0, 0), range_bytes, spread: None };
        Ok(ranges.reserved(whole.windows(2).map(|pair| (pair[0].1 - first, pair[1].0 - first)).collect()))
    }

    /// Changes the order of allocation so that `entries` consecutive ranges differ in the upper bits of their
    /// addresses, which index an IOTLB of that many entries. Nothing may be allocated.
    ///
    /// # Errors
    /// [`AllocError::Align`] if `entries` is no power of two, or above the size of the smallest directory of 2^k ranges
    /// that contains the space; [`AllocError::TooMany`] if that directory has more than [`Ranges::MOST`].
    pub fn over_entries(self, entries: u64) -> Result<Ranges, AllocError> {
        let spans = self.space.free_spans();
        let pages = 1 << (self.range_bits - self.space.page_bits());
        let end = spans.last().map_or(0, |span| (span.first + span.pages) / pages);
        // The smallest directory that contains the space.
        let is_too_short = |ranges: &u64| self.first / ranges != (end - 1) / ranges;
        let ranges = (0..63).map(|bits| 1 << bits).find(|ranges| !is_too_short(ranges)).unwrap_or(1 << 63);
        let first = self.first & !(ranges - 1);
        if !entries.is_power_of_two() || entries > ranges {
            return Err(AllocError::Align { align_bytes: entries, most_bytes: ranges });
        }
        if ranges > Ranges::MOST {
            return Err(AllocError::TooMany { what: "ranges", wanted: ranges, most: Ranges::MOST });
        }
        let entry_bits = entries.trailing_zeros();
        let spread = Spread { entry_bits, within_bits: ranges.trailing_zeros() - entry_bits };
        let mut free = Bitmap::none_free(ranges as usize);
        let before = self.first - first;
        for place in (0..end - self.first).filter(|place| self.free.is_free(*place as usize)) {
            free.put(spread.number(before + place).unwrap_or(u64::MAX) as usize);
        }
        let mut gaps: Vec<_> = self.gaps.iter().map(|(from, to)| (before + from, before + to)).collect();
        gaps.extend([(0, before), (end - first, ranges)]);
        Ok(Ranges { first, free, spread: Some(spread), ..self }.reserved(gaps))
    }

    /// Records the reserved places.
    fn reserved(mut self, gaps: Vec<(u64, u64)>) -> Ranges {
        self.gaps = gaps.into_iter().filter(|(from, end)| from < end).collect();
        self.gaps_hull = match (self.gaps.iter().min(), self.gaps.iter().map(|gap| gap.1).max()) {
            (Some(&(from, _)), Some(end)) => (from, end - from),
            _ => (0, 0),
        };
        self
    }

    #[cold]
    fn is_reserved(&self, place: u64) -> bool {
        self.gaps.iter().any(|&(from, end)| from <= place && place < end)
    }

    /// Number of free ranges.
    #[must_use]
    pub fn free_ranges(&self) -> u64 {
        self.free.free()
    }

    /// Length of a range in bytes.
    #[must_use]
    pub const fn range_bytes(&self) -> u64 {
        self.range_bytes
    }

    /// The number of the range that contains `at`, low where few are allocated; arbitrary for an address in no range.
    pub(super) fn number(&self, at: Iova) -> usize {
        let place = (at.0 >> self.range_bits).wrapping_sub(self.first);
        match self.spread {
            None => place as usize,
            Some(spread) => spread.number(place).unwrap_or(u64::MAX) as usize,
        }
    }

    fn range(&self, number: usize) -> IovaRange {
        let place = match self.spread {
            None => number as u64,
            Some(spread) => spread.place(number as u64),
        };
        IovaRange { at: Iova((self.first + place) << self.range_bits), len_bytes: self.range_bytes() }
    }

    /// Slow path: an alignment above the length of a range, or an error.
    #[cold]
    fn alloc_slow(&mut self, len_bytes: u64, align: Align) -> Result<IovaRange, AllocError> {
        let ask = AllocRequest { device: Device::default(), len_bytes, align };
        let wanted = super::Pages::of(ask, self.space.page_bits(), self.range_bytes())?;
        let step = (wanted.align << self.space.page_bits() >> self.range_bits).max(1);
        let len = self.space.free_spans().last().map_or(0, |span| span.first + span.pages)
            >> (self.range_bits - self.space.page_bits());
        let place = (self.first.next_multiple_of(step)..len)
            .step_by(usize::try_from(step).unwrap_or(usize::MAX))
            .find(|place| self.free.is_free(self.number(Iova(place << self.range_bits))));
        // Ranges may be free although none is aligned as requested.
        let free = self.free_ranges();
        let place = place.ok_or_else(|| ask.exhausted(self.range_bytes, free, free.min(1)))?;
        let number = self.number(Iova(place << self.range_bits));
        self.free.take(number);
        Ok(self.range(number))
    }
}

impl Spread {
    const fn number(self, place: u64) -> Option<u64> {
        if place >> (self.within_bits + self.entry_bits) != 0 {
            return None;
        }
        Some((place & ((1 << self.within_bits) - 1)) << self.entry_bits | place >> self.within_bits)
    }

    const fn place(self, number: u64) -> u64 {
        (number & ((1 << self.entry_bits) - 1)) << self.within_bits | number >> self.entry_bits
    }
}

impl IovaAllocator for Ranges {
    fn name(&self) -> &'static str {
        "ranges"
    }

    fn space(&self) -> &Space {
        &self.space
    }

    #[inline]
    fn longest_bytes(&self) -> u64 {
        self.range_bytes()
    }

    #[inline]
    fn alloc(&mut self, ask: AllocRequest) -> Result<IovaRange, AllocError> {
        // Every range is naturally aligned.
        if ask.len_bytes.wrapping_sub(1) >= self.range_bytes || ask.align.bits() > self.range_bits {
            return self.alloc_slow(ask.len_bytes, ask.align);
        }
        match self.free.take_lowest() {
            Some(number) => Ok(self.range(number)),
            None => Err(ask.exhausted(self.range_bytes, 0, 0)),
        }
    }

    #[inline]
    fn release(&mut self, _: Device, range: IovaRange) -> Result<(), AllocError> {
        if self.free.put(self.number(range.at)) { Ok(()) } else { Err(AllocError::NotOut { range }) }
    }

    #[inline]
    fn free(&mut self, _: Device, range: IovaRange) -> Result<(), AllocError> {
        let is_range = range.len_bytes == self.range_bytes() && range.at.0 & (self.range_bytes() - 1) == 0;
        let place = (range.at.0 >> self.range_bits).wrapping_sub(self.first);
        // A reserved range is never allocated, and must not become free.
        let (from, len) = self.gaps_hull;
        let may_be_reserved = place.wrapping_sub(from) < len;
        let number = self.number(range.at);
        let is_here = is_range && self.free.contains(number) && !(may_be_reserved && self.is_reserved(place));
        if !is_here || !self.free.put(number) {
            return Err(AllocError::NotOut { range });
        }
        Ok(())
    }
}
