//! Host memory to be mapped, in the address space of a backend.

use lanemark_units::{HostPhys, HostVirt};
use std::fmt;

/// A host address, of the kind that a backend uses.
///
/// The kind depends on the backend: an IOMMU's table holds [`HostPhys`]; VFIO type 1 takes [`HostVirt`] and pins the
/// pages. A domain accepts only the kind of its backend.
pub trait HostAddress: Copy + Eq + Ord + fmt::Debug + fmt::Display {
    /// The address as a number.
    fn value(self) -> u64;
    /// The address with this number.
    fn from_value(value: u64) -> Self;
}

impl HostAddress for HostPhys {
    fn value(self) -> u64 {
        self.0
    }
    fn from_value(value: u64) -> HostPhys {
        HostPhys(value)
    }
}

impl HostAddress for HostVirt {
    fn value(self) -> u64 {
        self.0
    }
    fn from_value(value: u64) -> HostVirt {
        HostVirt(value)
    }
}

/// A contiguous range of host memory. [`Domain::map`](crate::Domain::map) advances its start, so that it holds the part
/// that is not mapped yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer<M> {
    /// First address.
    pub at: M,
    /// Length in bytes.
    pub len_bytes: u64,
}

impl<M: HostAddress> Buffer<M> {
    /// `len_bytes` bytes from `at`.
    pub const fn new(at: M, len_bytes: u64) -> Buffer<M> {
        Buffer { at, len_bytes }
    }

    /// Whether its length is 0.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    /// The address at `offset` bytes; `offset` may equal the length. `None` beyond that.
    #[must_use]
    pub fn address(&self, offset: u64) -> Option<M> {
        if offset > self.len_bytes { None } else { self.at.value().checked_add(offset).map(M::from_value) }
    }
}
