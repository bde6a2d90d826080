//! IOVA spaces: what a device can address, without reserved regions.

use lanemark_units::Iova;

/// A reserved part of a device's address space, such as the window of message-signalled interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Name, for messages.
    pub name: &'static str,
    /// First byte.
    pub first: Iova,
    /// Last byte.
    pub last: Iova,
}

/// The window in which x86 root complexes take writes as interrupts: such writes never reach memory.
///
/// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 3A, "Message Address Register Format".
pub const MSI_WINDOW: Region = Region { name: "MSI window", first: Iova(0xfee0_0000), last: Iova(0xfeef_ffff) };

/// The first page, for devices that treat address 0 as "no buffer".
pub const PAGE_ZERO: Region = Region { name: "page zero", first: Iova(0), last: Iova(0xfff) };

/// Invalid descriptions of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// An unsupported number of address bits.
    #[error("a device with {0} address bits: PCIe devices have 12 to 64 (most 32 or 64)")]
    Bits(u32),
    /// An unsupported page size, in bytes.
    #[error("pages of {0} B: the page size must be a power of two, at most 2^31")]
    Page(u64),
    /// No whole page is free.
    #[error("no whole page of {page_bytes} B is free between {first} and {last}: reserve less, or use a larger space")]
    Nothing {
        /// First byte of the space.
        first: Iova,
        /// Last byte of the space.
        last: Iova,
        /// Page size in bytes.
        page_bytes: u64,
    },
    /// A region that ends before its start.
    #[error("{name} ends at {last}, before its first byte {first}")]
    Backwards {
        /// Name of the region.
        name: &'static str,
        /// First byte.
        first: Iova,
        /// Last byte.
        last: Iova,
    },
}

/// The IOVAs that one domain may allocate.
///
/// ```
/// use lanemark_dma::{MSI_WINDOW, PAGE_ZERO, Space};
/// // A device with 32 address bits on an x86 machine.
/// let space = Space::of_device(32)?.without(PAGE_ZERO)?.without(MSI_WINDOW)?;
/// assert_eq!(space.free_pages(), (1 << 20) - 256 - 1);
/// # Ok::<(), lanemark_dma::SpaceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    first: u64,
    last: u64,
    page_bits: u32,
    /// First page and length of each free span: sorted, whole pages, not adjacent.
    free: Vec<PageSpan>,
}

/// Contiguous pages, by page number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageSpan {
    pub first: u64,
    pub pages: u64,
}

impl Space {
    /// Page size of most platforms, in bytes.
    pub const PAGE_BYTES: u64 = 4096;

    /// All addresses that a device with `bits` address bits reaches, in pages of 4 KiB.
    ///
    /// # Errors
    /// [`SpaceError::Bits`] outside 12 to 64.
    pub fn of_device(bits: u32) -> Result<Space, SpaceError> {
        match bits {
            12..=64 => Space::between(Iova(0), Iova(u64::MAX >> (64 - bits)), Space::PAGE_BYTES),
            _ => Err(SpaceError::Bits(bits)),
        }
    }

    /// The whole pages of `page_bytes` from `first` to `last`, both included.
    ///
    /// # Errors
    /// [`SpaceError::Page`] if `page_bytes` is no power of two or above 2^31; [`SpaceError::Nothing`] if there is no
    /// whole page.
    pub fn between(first: Iova, last: Iova, page_bytes: u64) -> Result<Space, SpaceError> {
        if !page_bytes.is_power_of_two() || page_bytes > 1 << 31 {
            return Err(SpaceError::Page(page_bytes));
        }
        let bits = page_bytes.trailing_zeros();
        let first_page = (first.0 >> bits) + u64::from(first.0 & (page_bytes - 1) != 0);
        // One past the last whole page; 128 bits wide, because the last address may be 2^64 - 1.
        let end_page = u64::try_from((u128::from(last.0) + 1) >> bits).unwrap_or(u64::MAX);
        if end_page <= first_page {
            return Err(SpaceError::Nothing { first, last, page_bytes });
        }
        let free = vec![PageSpan { first: first_page, pages: end_page - first_page }];
        Ok(Space { first: first.0, last: last.0, page_bits: bits, free })
    }

    /// Removes the pages that `region` touches.
    ///
    /// # Errors
    /// [`SpaceError::Backwards`] for a region that ends before its start; [`SpaceError::Nothing`] if no page is left.
    pub fn without(mut self, region: Region) -> Result<Space, SpaceError> {
        let Region { name, first, last } = region;
        if last < first {
            return Err(SpaceError::Backwards { name, first, last });
        }
        let (from, end) = (first.0 >> self.page_bits, (last.0 >> self.page_bits).saturating_add(1));
        let left = self.free.iter().flat_map(|span| {
            let span_end = span.first + span.pages;
            let before = PageSpan { first: span.first, pages: from.min(span_end).saturating_sub(span.first) };
            let start = end.max(span.first);
            [before, PageSpan { first: start, pages: span_end.saturating_sub(start) }]
        });
        self.free = left.filter(|span| span.pages > 0).collect();
        if self.free.is_empty() {
            return Err(SpaceError::Nothing {
                first: Iova(self.first),
                last: Iova(self.last),
                page_bytes: self.page_bytes(),
            });
        }
        Ok(self)
    }

    /// Page size in bytes.
    #[must_use]
    pub const fn page_bytes(&self) -> u64 {
        1 << self.page_bits
    }

    /// log2 of the page size.
    pub(crate) const fn page_bits(&self) -> u32 {
        self.page_bits
    }

    /// Number of pages that can be allocated.
    #[must_use]
    pub fn free_pages(&self) -> u64 {
        self.free.iter().map(|span| span.pages).sum()
    }

    /// Page spans that can be allocated, in order.
    pub(crate) fn free_spans(&self) -> &[PageSpan] {
        &self.free
    }

    /// Whether all of these bytes can be allocated.
    #[must_use]
    pub fn contains(&self, at: Iova, len_bytes: u64) -> bool {
        let Some(last) = len_bytes.checked_sub(1).and_then(|more| at.0.checked_add(more)) else { return false };
        let (first, last) = (at.0 >> self.page_bits, last >> self.page_bits);
        self.free.iter().any(|span| span.first <= first && last < span.first + span.pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_reaches_as_much_as_its_address_bits_allow() {
        assert_eq!(Space::of_device(32).unwrap().free_pages(), 1 << 20);
        assert_eq!(Space::of_device(64).unwrap().free_pages(), 1 << 52);
        assert_eq!(Space::of_device(12).unwrap().free_pages(), 1);
        assert_eq!(Space::of_device(11), Err(SpaceError::Bits(11)));
        assert_eq!(Space::of_device(65), Err(SpaceError::Bits(65)));
        let space = Space::of_device(64).unwrap();
        assert!(space.contains(Iova(u64::MAX), 1) && !space.contains(Iova(u64::MAX), 2) && !space.contains(Iova(0), 0));
    }

    #[test]
    fn only_whole_pages_are_allocated() {
        let pages = |first, last| Space::between(Iova(first), Iova(last), 4096).map(|space| space.free_pages());
        assert_eq!(pages(0, 4095), Ok(1));
        assert_eq!(pages(0, 8190), Ok(1));
        assert_eq!(pages(1, 8191), Ok(1));
        assert!(matches!(pages(0, 4094), Err(SpaceError::Nothing { .. })));
        assert!(matches!(pages(1, 8190), Err(SpaceError::Nothing { .. })));
        assert_eq!(Space::between(Iova(0), Iova(4095), 3000).unwrap_err(), SpaceError::Page(3000));
        assert_eq!(Space::between(Iova(0), Iova(u64::MAX), 1 << 32).unwrap_err(), SpaceError::Page(1 << 32));
    }

    #[test]
    fn a_page_that_a_region_touches_is_reserved_and_its_neighbours_are_not() {
        let space = Space::of_device(32).unwrap().without(MSI_WINDOW).unwrap();
        assert!(space.contains(Iova(0xfedf_f000), 0x1000) && !space.contains(Iova(0xfedf_f000), 0x1001));
        assert!(space.contains(Iova(0xfef0_0000), 0x1000) && !space.contains(Iova(0xfeef_ffff), 1));
        let one_byte = Region { name: "one byte", first: Iova(0x1fff), last: Iova(0x1fff) };
        let space = Space::between(Iova(0), Iova(0x2fff), 4096).unwrap().without(one_byte).unwrap();
        assert_eq!(space.free_spans(), [PageSpan { first: 0, pages: 1 }, PageSpan { first: 2, pages: 1 }]);
        let two = Region { name: "two bytes", first: Iova(0xfff), last: Iova(0x2000) };
        assert!(matches!(space.clone().without(two), Err(SpaceError::Nothing { .. })));
        let backwards = Region { name: "wrong", first: Iova(2), last: Iova(1) };
        assert!(matches!(space.without(backwards), Err(SpaceError::Backwards { .. })));
        let above = Region { name: "above", first: Iova(1 << 40), last: Iova(1 << 41) };
        assert_eq!(Space::of_device(32).unwrap().without(above), Space::of_device(32));
    }
}
