//! The receipt for what is lent.

use crate::allocator::IovaRange;
use crate::attributes::Attributes;
use lanemark_units::Iova;
use std::panic::Location;

/// Where in a program something was asked for.
pub type CallSite = &'static Location<'static>;

/// Memory that is lent, as the device sees it. It may be copied, kept in a ring and handed on; whoever takes the
/// memory back gives it to [`Domain::unmap`](crate::Domain::unmap), once.
///
/// It is a receipt, not the loan: dropping it takes nothing back, and the domain reports what nobody took back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "what is mapped stays lent until this is unmapped"]
pub struct Mapping {
    pub(crate) range: IovaRange,
    pub(crate) ticket: Ticket,
    pub(crate) domain: u32,
    pub(crate) attributes: Attributes,
    pub(crate) mapped_at: CallSite,
}

/// Where the ledger keeps a mapping. A place is used again with the next generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub slot: u32,
    pub generation: u32,
}

impl Mapping {
    /// The first byte, for the device.
    #[must_use]
    pub const fn iova(&self) -> Iova {
        self.range.at
    }

    /// How long it is, in bytes.
    #[must_use]
    pub const fn len_bytes(&self) -> u64 {
        self.range.len_bytes
    }

    /// Both.
    #[must_use]
    pub const fn range(&self) -> IovaRange {
        self.range
    }

    /// What its pages had when it was mapped.
    #[must_use]
    pub const fn attributes(&self) -> Attributes {
        self.attributes
    }

    /// Who mapped it.
    #[must_use]
    pub const fn mapped_at(&self) -> CallSite {
        self.mapped_at
    }
}
