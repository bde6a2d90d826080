//! The trait of allocators: its requests, its errors, and the ranges that it grants.

use crate::space::Space;
use lanemark_units::Iova;
use std::fmt;

/// Number of a device in its domain, as [`Domain::attach`](crate::Domain::attach) returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Device(pub u32);

/// A contiguous range of IOVAs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IovaRange {
    /// First IOVA.
    pub at: Iova,
    /// Length in bytes.
    pub len_bytes: u64,
}

impl fmt::Display for IovaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B at {}", self.len_bytes, self.at)
    }
}

/// Alignment of the start of a range: a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Align(u8);

impl Align {
    /// Alignment to a page.
    pub const PAGE: Align = Align(0);
    /// 2 MiB: a backend can use large pages if the memory is aligned too.
    pub const MIB_2: Align = Align(21);
    /// 1 GiB.
    pub const GIB_1: Align = Align(30);

    /// An alignment of `align_bytes`, rounded up to a page; `None` if it is no power of two.
    #[must_use]
    pub const fn of_bytes(align_bytes: u64) -> Option<Align> {
        if align_bytes.is_power_of_two() { Some(Align(align_bytes.trailing_zeros() as u8)) } else { None }
    }

    /// The alignment in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << self.0
    }

    #[inline]
    pub(super) const fn bits(self) -> u32 {
        self.0 as u32
    }
}

/// An allocation request to a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocRequest {
    /// The device that will use the range.
    pub device: Device,
    /// Length in bytes; the granted range may be longer.
    pub len_bytes: u64,
    /// Alignment of the start of the range.
    pub align: Align,
}

impl AllocRequest {
    /// A request for `len_bytes` at page alignment.
    #[must_use]
    pub const fn bytes(device: Device, len_bytes: u64) -> AllocRequest {
        AllocRequest { device, len_bytes, align: Align::PAGE }
    }

    /// The error for a request that does not fit `free` free pages, `longest` of them contiguous.
    pub(super) const fn exhausted(self, page_bytes: u64, free: u64, longest: u64) -> AllocError {
        AllocError::Exhausted {
            len_bytes: self.len_bytes,
            align_bytes: self.align.bytes(),
            // A full 64-bit space has one byte more than fits.
            free_bytes: free.saturating_mul(page_bytes),
            longest_bytes: longest.saturating_mul(page_bytes),
        }
    }
}

/// Alignment as the end of a noun phrase; empty for an alignment of 1.
struct At(u64);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 1 { write!(f, " aligned to {} B", self.0) } else { Ok(()) }
    }
}

/// Order in which a device uses its mapped buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessOrder {
    /// Any order: disks.
    #[default]
    Any,
    /// In the order of mapping: networks.
    Sequential,
}

/// Method that removes the translations of a mapping from an IOTLB, where hardware has two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// Overwrites the entries that the pages index, whatever they hold. Correct if no other live mapping indexes them.
    Entries,
    /// Removes exactly the translations of the pages. Correct if neighbouring pages stay in use.
    Matching,
}

/// Reasons why a strategy refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// No free range fits the request.
    #[error(
        "{len_bytes} contiguous bytes{} requested; {free_bytes} B are free, the longest run is {longest_bytes} B; unmap something, or use a larger space",
        At(*align_bytes)
    )]
    Exhausted {
        /// Requested length.
        len_bytes: u64,
        /// Requested alignment.
        align_bytes: u64,
        /// Free bytes available to this device, without ranges that wait for invalidation.
        free_bytes: u64,
        /// Longest contiguous free run, as the strategy grants it.
        longest_bytes: u64,
    },
    /// Longer than the strategy ever grants.
    #[error("{len_bytes} contiguous bytes requested; this strategy grants at most {longest_bytes} B; map in pieces")]
    TooLong {
        /// Requested length.
        len_bytes: u64,
        /// Longest range that the strategy grants.
        longest_bytes: u64,
    },
    /// Length 0.
    #[error("0 B requested")]
    Empty,
    /// An alignment above the maximum of the strategy, or no power of two.
    #[error("alignment to {align_bytes} B: it must be a power of two, at most {most_bytes} with this strategy")]
    Align {
        /// Requested alignment.
        align_bytes: u64,
        /// Largest alignment that the strategy grants.
        most_bytes: u64,
    },
    /// The freed range is not allocated, or was allocated with another length.
    #[error("{range} is freed but not allocated: it was freed before, or allocated with another length")]
    NotOut {
        /// The freed range.
        range: IovaRange,
    },
    /// The strategy has one access order only.
    #[error("this strategy has no access order per device; use Sequential")]
    OneOrder,
    /// More than the maximum of the strategy.
    #[error("{what}: {wanted}; at most {most}")]
    TooMany {
        /// Name of the quantity.
        what: &'static str,
        /// Requested number.
        wanted: u64,
        /// Maximum.
        most: u64,
    },
}

/// A strategy: it records which IOVAs are allocated, and nothing about their translations.
///
/// A granted range lies within the space, touches no reserved region, overlaps no allocated range, and is aligned as
/// requested.
pub trait IovaAllocator {
    /// Name, for messages.
    fn name(&self) -> &'static str;

    /// The space it allocates from; the page size of the space is the unit.
    fn space(&self) -> &Space;

    /// The longest contiguous range it grants, in bytes: whole pages.
    fn longest_bytes(&self) -> u64;

    /// Allocates a contiguous range for a device.
    ///
    /// # Errors
    /// [`AllocError`]; nothing is allocated then.
    fn alloc(&mut self, ask: AllocRequest) -> Result<IovaRange, AllocError>;

    /// Frees a range that `alloc` granted, as a whole.
    ///
    /// # Errors
    /// [`AllocError::NotOut`] if the strategy detects that the range is not allocated; nothing has changed then.
    fn free(&mut self, device: Device, range: IovaRange) -> Result<(), AllocError>;

    /// Frees a range on behalf of a caller that records allocations and never frees one twice. A strategy may skip the
    /// costly checks of [`IovaAllocator::free`].
    ///
    /// # Errors
    /// As [`IovaAllocator::free`], as far as it is checked.
    fn release(&mut self, device: Device, range: IovaRange) -> Result<(), AllocError> {
        self.free(device, range)
    }

    /// The method that removes a device's translations from an IOTLB.
    fn purge(&self, device: Device) -> Purge {
        let _ = device;
        Purge::Entries
    }

    /// Sets the order in which a device uses buffers mapped from now on.
    ///
    /// # Errors
    /// [`AllocError::OneOrder`] if the strategy treats all devices alike.
    fn set_order(&mut self, device: Device, order: AccessOrder) -> Result<(), AllocError> {
        let _ = (device, order);
        Err(AllocError::OneOrder)
    }

    /// Drops all state kept for a detached device, whose ranges are all freed.
    fn invalidate(&mut self, device: Device) {
        let _ = device;
    }
}

impl<T: IovaAllocator + ?Sized> IovaAllocator for Box<T> {
    fn name(&self) -> &'static str {
        (**self).name()
    }
    fn space(&self) -> &Space {
        (**self).space()
    }
    fn longest_bytes(&self) -> u64 {
        (**self).longest_bytes()
    }
    fn alloc(&mut self, ask: AllocRequest) -> Result<IovaRange, AllocError> {
        (**self).alloc(ask)
    }
    fn free(&mut self, device: Device, range: IovaRange) -> Result<(), AllocError> {
        (**self).free(device, range)
    }
    fn release(&mut self, device: Device, range: IovaRange) -> Result<(), AllocError> {
        (**self).release(device, range)
    }
    fn purge(&self, device: Device) -> Purge {
        (**self).purge(device)
    }
    fn set_order(&mut self, device: Device, order: AccessOrder) -> Result<(), AllocError> {
        (**self).set_order(device, order)
    }
    fn invalidate(&mut self, device: Device) {
        (**self).invalidate(device);
    }
}

/// A request in whole pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pages {
    pub(super) count: u64,
    pub(super) align: u64,
}

impl Pages {
    /// `ask` rounded up to pages of 2^`bits` bytes; at most `longest_bytes`.
    pub(super) fn of(ask: AllocRequest, bits: u32, longest_bytes: u64) -> Result<Pages, AllocError> {
        let AllocRequest { len_bytes, align, .. } = ask;
        if len_bytes == 0 {
            return Err(AllocError::Empty);
        }
        if len_bytes > longest_bytes {
            return Err(AllocError::TooLong { len_bytes, longest_bytes });
        }
        Ok(Pages { count: ((len_bytes - 1) >> bits) + 1, align: (align.bytes() >> bits).max(1) })
    }
}
