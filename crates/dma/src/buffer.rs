//! What is lent: bytes of the host, in the address space that a backend speaks.

use lanemark_units::{HostPhys, HostVirt};
use std::fmt;

/// An address of the host by which a backend is told where memory is.
///
/// Which one is the backend's affair: an IOMMU's table holds [`HostPhys`], VFIO type 1 takes [`HostVirt`] and
/// pins what is there. A domain takes the kind of its backend and no other.
pub trait HostAddress: Copy + Eq + Ord + fmt::Debug + fmt::Display {
    /// The address as a number.
    fn value(self) -> u64;
    /// A number as such an address.
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

/// Bytes of the host, one after the other. [`Domain::map`](crate::Domain::map) shortens one from the front as it
/// goes, so what is left in it is what is not lent yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer<M> {
    /// Where it starts.
    pub at: M,
    /// How long it is, in bytes.
    pub len_bytes: u64,
}

impl<M: HostAddress> Buffer<M> {
    /// `len_bytes` bytes from `at`.
    pub const fn new(at: M, len_bytes: u64) -> Buffer<M> {
        Buffer { at, len_bytes }
    }

    /// Is nothing left?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    /// The address `offset` bytes into it, which may be one past its end.
    #[must_use]
    pub fn address(&self, offset: u64) -> Option<M> {
        if offset > self.len_bytes { None } else { self.at.value().checked_add(offset).map(M::from_value) }
    }
}
