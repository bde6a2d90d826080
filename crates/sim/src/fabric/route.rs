//! Routing: by address for requests, by requester ID for completions.

use crate::tlp::{Tlp, TlpKind};

/// A range of bus addresses and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<P> {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// The port.
    pub port: P,
}

/// The routing table of a root complex or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes<P> {
    /// Address ranges below its ports.
    pub ranges: Vec<Range<P>>,
    /// Requester IDs below its ports.
    pub requesters: Vec<(u16, P)>,
}

impl<P: Copy> Routes<P> {
    /// Returns an empty table.
    #[must_use]
    pub const fn none() -> Routes<P> {
        Routes { ranges: Vec::new(), requesters: Vec::new() }
    }

    /// Returns the port below which the destination of a TLP lies; `None` if it lies above.
    #[inline]
    #[must_use]
    pub fn below(&self, tlp: &Tlp) -> Option<P> {
        match tlp.kind {
            TlpKind::MWr | TlpKind::MRd => self.of_address(tlp.address),
            // The destination of an Invalidate Completion is the root complex.
            TlpKind::Msg => None,
            TlpKind::CplD | TlpKind::Cpl | TlpKind::MsgD => {
                self.requesters.iter().find(|(other, _)| *other == tlp.requester).map(|(_, port)| *port)
            }
        }
    }

    /// Returns the port below which an address lies.
    #[inline]
    #[must_use]
    pub fn of_address(&self, address: u64) -> Option<P> {
        self.ranges.iter().find(|range| (range.start..range.end).contains(&address)).map(|range| range.port)
    }
}
