//! Which port leads where: by address for requests, by who asked for completions.

use crate::tlp::{Tlp, TlpKind};

/// A bus address range and the port that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<P> {
    /// Its first byte.
    pub start: u64,
    /// Behind its last byte.
    pub end: u64,
    /// Which port.
    pub port: P,
}

/// What lies below each port of a root complex or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes<P> {
    /// Address ranges below.
    pub ranges: Vec<Range<P>>,
    /// Requesters below, with their ports.
    pub requesters: Vec<(u16, P)>,
}

impl<P: Copy> Routes<P> {
    /// Nothing lies below any port.
    #[must_use]
    pub const fn none() -> Routes<P> {
        Routes { ranges: Vec::new(), requesters: Vec::new() }
    }

    /// The port below which a TLP is at its end; `None` if it is nowhere below.
    #[inline]
    #[must_use]
    pub fn below(&self, tlp: &Tlp) -> Option<P> {
        match tlp.kind {
            TlpKind::MWr | TlpKind::MRd => self.of_address(tlp.address),
            // What is to be told that all is forgotten is the root complex.
            TlpKind::Msg => None,
            TlpKind::CplD | TlpKind::Cpl | TlpKind::MsgD => {
                self.requesters.iter().find(|(other, _)| *other == tlp.requester).map(|(_, port)| *port)
            }
        }
    }

    /// The port below which an address is.
    #[inline]
    #[must_use]
    pub fn of_address(&self, address: u64) -> Option<P> {
        self.ranges.iter().find(|range| (range.start..range.end).contains(&address)).map(|range| range.port)
    }
}
