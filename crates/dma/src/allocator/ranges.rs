//! Ranges of pages from a bitmap, the lowest free one first: whoever maps gets a whole range.

use super::bitmap::Bitmap;
use super::{Align, AllocError, Ask, Device, IovaAllocator, IovaRange};
use crate::space::Space;
use lanemark_units::Iova;

/// Ranges of a fixed length (8 pages), handed out in order.
///
/// No pages are managed, so taking and giving back is one bit of a bitmap, and a mapping of one page has the whole
/// range. What is freed last is not what is handed out next: the lowest is, so that as long as `n` are out, they are
/// (but for what was taken while there were more) the first `n`.
///
/// An IOTLB that finds its entry by the *upper* bits of an address (a direct-mapped one of `n` entries, as in
/// [`Ranges::over_entries`]) then serves `n` ranges without two in one entry.
///
/// ```
/// use lanemark_dma::{Ask, Device, IovaAllocator, Ranges, Space};
/// // A page directory of 2^20 pages, and an IOTLB whose entry is chosen by the upper 8 bits of the 20.
/// let mut ranges = Ranges::new(Space::of_device(32)?)?.over_entries(256)?;
/// let mut entry = || ranges.alloc(Ask::bytes(Device(0), 4096)).map(|range| range.at.0 >> 24);
/// let entries: Vec<u64> = (0..257).map(|_| entry()).collect::<Result<_, _>>()?;
/// assert!((0..256).all(|range| entries[range] == range as u64));
/// assert_eq!(entries[256], 0, "the 257th shares an entry with the first");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ranges {
    space: Space,
    /// A range is 2^this bytes.
    range_bits: u32,
    /// The number of the lowest range.
    first: u64,
    /// Numbers in the order in which ranges are handed out.
    free: Bitmap,
    /// Places that are reserved: from, and one past the last. In `gaps_hull` are all of them, and others perhaps.
    gaps: Vec<(u64, u64)>,
    gaps_hull: (u64, u64),
    range_bytes: u64,
    spread: Option<Spread>,
}

/// How the number in the order of handing out becomes a place: its low bits are the place's high ones.
#[derive(Debug, Clone, Copy)]
struct Spread {
    entry_bits: u32,
    /// Of a place within an entry.
    within_bits: u32,
}

impl Ranges {
    /// Pages of a range, unless said otherwise.
    pub const PAGES: u64 = 8;
    /// The most ranges that are kept track of: 2 MiB of bitmap, 512 GiB of ranges of 8 pages.
    pub const MOST: u64 = 1 << 24;

    /// Ranges of 8 pages in all of `space`.
    ///
    /// # Errors
    /// As [`Ranges::of_pages`].
    pub fn new(space: Space) -> Result<Ranges, AllocError> {
        Ranges::of_pages(space, Ranges::PAGES)
    }

    /// Ranges of `pages` pages, at multiples of their length, in all of `space`. What of a space is not a whole range
    /// is not handed out.
    ///
    /// # Errors
    /// [`AllocError::TooMany`] beyond [`Ranges::MOST`] ranges: take a shorter space
    /// ([`Space::between`](crate::Space::between)) or longer ranges. [`AllocError::Align`] where `pages` is no power of
    /// two, or above 2^20. [`AllocError::Exhausted`] where there is no whole range.
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
            let range = Ask::bytes(Device::default(), 1 << range_bits);
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

    /// The same in such an order that `entries` ranges after each other differ in the upper bits of their addresses:
    /// those by which an IOTLB of that many entries finds one. Nothing may be out.
    ///
    /// # Errors
    /// [`AllocError::Align`] where `entries` is no power of two, or more than the shortest directory of 2^k ranges that has
    /// all of them; [`AllocError::TooMany`] where that has more than [`Ranges::MOST`].
    pub fn over_entries(self, entries: u64) -> Result<Ranges, AllocError> {
        let spans = self.space.free_spans();
        let pages = 1 << (self.range_bits - self.space.page_bits());
        let end = spans.last().map_or(0, |span| (span.first + span.pages) / pages);
        // The shortest directory that has all of them.
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

    /// The same with these places reserved.
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

    /// How many ranges are free.
    #[must_use]
    pub fn free_ranges(&self) -> u64 {
        self.free.free()
    }

    /// Bytes of a range.
    #[must_use]
    pub const fn range_bytes(&self) -> u64 {
        self.range_bytes
    }

    /// The number under which the range with `at` is kept, low where few are out; for an address that is in no range,
    /// any.
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

    /// What is not asked for every day: an alignment of more than a range, or an error.
    #[cold]
    fn alloc_seldom(&mut self, len_bytes: u64, align: Align) -> Result<IovaRange, AllocError> {
        let ask = Ask { device: Device::default(), len_bytes, align };
        let wanted = super::Pages::of(ask, self.space.page_bits(), self.range_bytes())?;
        let step = (wanted.align << self.space.page_bits() >> self.range_bits).max(1);
        let len = self.space.free_spans().last().map_or(0, |span| span.first + span.pages)
            >> (self.range_bits - self.space.page_bits());
        let place = (self.first.next_multiple_of(step)..len)
            .step_by(usize::try_from(step).unwrap_or(usize::MAX))
            .find(|place| self.free.is_free(self.number(Iova(place << self.range_bits))));
        // Where nothing is aligned like that, ranges may be free.
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
    fn alloc(&mut self, ask: Ask) -> Result<IovaRange, AllocError> {
        // Each range is at a multiple of its length.
        if ask.len_bytes.wrapping_sub(1) >= self.range_bytes || ask.align.bits() > self.range_bits {
            return self.alloc_seldom(ask.len_bytes, ask.align);
        }
        match self.free.take_lowest() {
            Some(number) => Ok(self.range(number)),
            None => Err(ask.exhausted(self.range_bytes, 0, 0)),
        }
    }

    #[inline]
    fn take_back(&mut self, _: Device, range: IovaRange) -> Result<(), AllocError> {
        if self.free.put(self.number(range.at)) { Ok(()) } else { Err(AllocError::NotOut { range }) }
    }

    #[inline]
    fn free(&mut self, _: Device, range: IovaRange) -> Result<(), AllocError> {
        let is_range = range.len_bytes == self.range_bytes() && range.at.0 & (self.range_bytes() - 1) == 0;
        let place = (range.at.0 >> self.range_bits).wrapping_sub(self.first);
        // A reserved range is never out, and must not become free.
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
