//! Who hands out IOVAs: strategies behind one trait.
//!
//! | strategy | hands out | for |
//! | --- | --- | --- |
//! | [`Ranges`] | ranges of 8 pages, the lowest free one first | disks: buffers of up to 32 KiB that come and go in any order |
//! | [`Sequential`] | pages of ranges that a device keeps | networks: many buffers that a device takes in turn |
//! | [`Pool`] | objects within what is mapped already | objects smaller than a page, and where mapping takes microseconds |
//! | [`MagazineCore`] | runs of pages from what its core gave back last | many cores |
//! | [`Buddy`] | runs of 2^n pages at multiples of their length | large pages, and behind the magazines |
//! | [`FreeList`] | the lowest hole that is long enough | reading, and holding the others against it |

mod bitmap;
mod buddy;
mod free_list;
mod magazine;
mod pool;
mod ranges;
mod sequential;

pub use buddy::Buddy;
pub use free_list::FreeList;
pub use magazine::{Magazine, MagazineCore};
pub use pool::{Pool, PoolError};
pub use ranges::Ranges;
pub use sequential::Sequential;

use crate::space::Space;
use lanemark_units::Iova;
use std::fmt;

/// A device of a domain, as [`Domain::attach`](crate::Domain::attach) numbered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Device(pub u32);

/// IOVAs in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IovaRange {
    /// The first.
    pub at: Iova,
    /// How many, in bytes.
    pub len_bytes: u64,
}

impl fmt::Display for IovaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B at {}", self.len_bytes, self.at)
    }
}

/// What the start of a range is a multiple of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Align(u8);

impl Align {
    /// The start of any page.
    pub const PAGE: Align = Align(0);
    /// 2 MiB: with memory that is as much aligned, a backend can use large pages.
    pub const MIB_2: Align = Align(21);
    /// 1 GiB.
    pub const GIB_1: Align = Align(30);

    /// A power of two, in bytes; below a page it means a page. `None` for what is none.
    #[must_use]
    pub const fn of_bytes(align_bytes: u64) -> Option<Align> {
        if align_bytes.is_power_of_two() { Some(Align(align_bytes.trailing_zeros() as u8)) } else { None }
    }

    /// As a number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << self.0
    }

    #[inline]
    const fn bits(self) -> u32 {
        self.0 as u32
    }
}

/// What is asked of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// For whom.
    pub device: Device,
    /// How long, in bytes; what is granted may be longer.
    pub len_bytes: u64,
    /// What its start is a multiple of.
    pub align: Align,
}

impl Ask {
    /// So many bytes, at the start of any page.
    #[must_use]
    pub const fn bytes(device: Device, len_bytes: u64) -> Ask {
        Ask { device, len_bytes, align: Align::PAGE }
    }

    /// It cannot be had: so many pages of `page_bytes` are free, and so many of them in a row.
    const fn exhausted(self, page_bytes: u64, free: u64, longest: u64) -> AllocError {
        AllocError::Exhausted {
            len_bytes: self.len_bytes,
            align_bytes: self.align.bytes(),
            // All there is is one byte more than can be said.
            free_bytes: free.saturating_mul(page_bytes),
            longest_bytes: longest.saturating_mul(page_bytes),
        }
    }
}

/// Where something starts, as words; nothing where any byte will do.
struct At(u64);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 1 { write!(f, " at a multiple of {} B", self.0) } else { Ok(()) }
    }
}

/// In which order a device uses the buffers that are lent to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessOrder {
    /// In any: disks.
    #[default]
    Any,
    /// One after the other, as they were lent: networks.
    Sequential,
}

/// How the translations of a mapping are taken out of an IOTLB, where hardware has two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// The entries that its pages fall into are overwritten, whoever is in them: right where no other mapping
    /// in use falls there.
    Entries,
    /// A command takes out what translates its pages, and nothing else: right where neighbours stay in use.
    Matching,
}

/// Why a strategy did not do what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// Nothing that long is free.
    #[error(
        "{len_bytes} B in a row{} are wanted, {free_bytes} B are free, and the longest piece of them has {longest_bytes} B; unmap something, or take a longer space",
        At(*align_bytes)
    )]
    Exhausted {
        /// What was asked for.
        len_bytes: u64,
        /// What its start was to be a multiple of.
        align_bytes: u64,
        /// What is free for whoever asked: in all, without what waits for its invalidation.
        free_bytes: u64,
        /// The most that is free in a row, as the strategy hands it out.
        longest_bytes: u64,
    },
    /// Longer than this strategy ever gives.
    #[error("{len_bytes} B in a row are more than the {longest_bytes} B this strategy gives; map in pieces")]
    TooLong {
        /// What was asked for.
        len_bytes: u64,
        /// What it gives at most.
        longest_bytes: u64,
    },
    /// No bytes at all.
    #[error("0 B were asked for")]
    Empty,
    /// More than this strategy gives, or no power of two.
    #[error("multiples of {align_bytes} B: it must be a power of two, up to {most_bytes} with this strategy")]
    Align {
        /// What was asked for.
        align_bytes: u64,
        /// What it gives at most.
        most_bytes: u64,
    },
    /// What comes back is not out, or not of that length.
    #[error("{range} came back and is not out: it came back before, or as another length")]
    NotOut {
        /// What came back.
        range: IovaRange,
    },
    /// The strategy has one order only.
    #[error("this strategy does not know devices apart; take Sequential")]
    OneOrder,
    /// More than a strategy keeps track of.
    #[error("{what} of {wanted}: at most {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many it would be.
        wanted: u64,
        /// How many it may be.
        most: u64,
    },
}

/// A strategy: it knows which IOVAs are out, and nothing of what they translate to.
///
/// What is granted lies within its space, touches no reserved region, overlaps nothing that is out, and starts at the
/// alignment asked for.
pub trait IovaAllocator {
    /// Its name, for messages.
    fn name(&self) -> &'static str;

    /// Where it hands out; the size of its pages is the unit.
    fn space(&self) -> &Space;

    /// The most it grants in a row, in bytes: whole pages.
    fn longest_bytes(&self) -> u64;

    /// Bytes in a row, for a device.
    ///
    /// # Errors
    /// [`AllocError`] says why not; nothing is out then that was not before.
    fn alloc(&mut self, ask: Ask) -> Result<IovaRange, AllocError>;

    /// What `alloc` granted comes back, whole.
    ///
    /// # Errors
    /// [`AllocError::NotOut`] where it can tell that it is not out; nothing has changed then.
    fn free(&mut self, device: Device, range: IovaRange) -> Result<(), AllocError>;

    /// What `alloc` granted comes back from somebody who keeps books, and does not give back what is not out: a strategy may
    /// leave out the checks of [`IovaAllocator::free`] that cost.
    ///
    /// # Errors
    /// As [`IovaAllocator::free`], where it is looked at.
    fn take_back(&mut self, device: Device, range: IovaRange) -> Result<(), AllocError> {
        self.free(device, range)
    }

    /// How what this device had is taken out of an IOTLB.
    fn purge(&self, device: Device) -> Purge {
        let _ = device;
        Purge::Entries
    }

    /// From now on this device uses what it is lent in such an order.
    ///
    /// # Errors
    /// [`AllocError::OneOrder`] where the strategy makes no difference.
    fn set_order(&mut self, device: Device, order: AccessOrder) -> Result<(), AllocError> {
        let _ = (device, order);
        Err(AllocError::OneOrder)
    }

    /// The device is gone and all it had has come back: nothing is kept for it.
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
    fn alloc(&mut self, ask: Ask) -> Result<IovaRange, AllocError> {
        (**self).alloc(ask)
    }
    fn free(&mut self, device: Device, range: IovaRange) -> Result<(), AllocError> {
        (**self).free(device, range)
    }
    fn take_back(&mut self, device: Device, range: IovaRange) -> Result<(), AllocError> {
        (**self).take_back(device, range)
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

/// An ask in whole pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pages {
    count: u64,
    align: u64,
}

impl Pages {
    /// `ask` rounded up to pages of 2^`bits` bytes, `longest_bytes` at most.
    fn of(ask: Ask, bits: u32, longest_bytes: u64) -> Result<Pages, AllocError> {
        let Ask { len_bytes, align, .. } = ask;
        if len_bytes == 0 {
            return Err(AllocError::Empty);
        }
        if len_bytes > longest_bytes {
            return Err(AllocError::TooLong { len_bytes, longest_bytes });
        }
        Ok(Pages { count: ((len_bytes - 1) >> bits) + 1, align: (align.bytes() >> bits).max(1) })
    }
}
