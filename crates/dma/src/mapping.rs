//! The handle of a mapping.

use crate::allocator::IovaRange;
use crate::attributes::Attributes;
use lanemark_units::Iova;
use std::panic::Location;

/// A source location of the calling program.
pub type CallSite = &'static Location<'static>;

/// Handle of a DMA mapping: its IOVA range and attributes. It may be copied, stored in a ring and passed on; it is
/// given to [`Domain::unmap`](crate::Domain::unmap) once.
///
/// Dropping a handle unmaps nothing; the domain reports mappings that were never unmapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the memory stays mapped until this is unmapped"]
pub struct Mapping {
    pub(crate) range: IovaRange,
    pub(crate) ticket: Ticket,
    pub(crate) domain: u32,
    pub(crate) attributes: Attributes,
    pub(crate) mapped_at: CallSite,
}

/// Slot and generation in the ledger. A reused slot has the next generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub slot: u32,
    pub generation: u32,
}

impl Mapping {
    /// First IOVA.
    #[must_use]
    pub const fn iova(&self) -> Iova {
        self.range.at
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len_bytes(&self) -> u64 {
        self.range.len_bytes
    }

    /// First IOVA and length.
    #[must_use]
    pub const fn range(&self) -> IovaRange {
        self.range
    }

    /// The attributes at the time of mapping.
    #[must_use]
    pub const fn attributes(&self) -> Attributes {
        self.attributes
    }

    /// Call site that mapped it.
    #[must_use]
    pub const fn mapped_at(&self) -> CallSite {
        self.mapped_at
    }
}
