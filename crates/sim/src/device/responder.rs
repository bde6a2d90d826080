//! A function of the device that a core calls by stores: push, poll, fetch.
//!
//! ```text
//!  stores to the data --> [busy] --> the status register counts the request
//! ```
//!
//! It has no event: a load of the status register shows the requests that are finished at that time. The result is not
//! computed; the data stays in its place.

use crate::steady::Survey;
use crate::tlp::{Tlp, TlpKind};
use lanemark_units::Ticks;
use std::ops::Range;

/// Constants of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Bus addresses of the data.
    pub data: Range<u64>,
    /// Bus address of the status register.
    pub status: u64,
    /// Time from the arrival of the last byte until the status register counts the request.
    pub busy: Ticks,
}

/// State of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Responder {
    spec: Spec,
    /// Bytes of the current request that have arrived.
    arrived: u64,
    /// End of the last request that has arrived.
    over_at: Ticks,
    /// Requests that have arrived.
    requests: u64,
}

/// Bytes of the status register.
const STATUS_BYTES: u64 = 8;

impl Responder {
    /// Creates an idle function.
    #[must_use]
    pub const fn new(spec: Spec) -> Responder {
        Responder { spec, arrived: 0, over_at: Ticks::ZERO, requests: 0 }
    }

    /// Receives a write to the card, accepted at `now`.
    #[inline]
    pub(crate) fn store_arrives(&mut self, now: Ticks, tlp: &Tlp) {
        let address = tlp.address + u64::from(tlp.first_be.trailing_zeros());
        if !self.spec.data.contains(&address) {
            return;
        }
        self.arrived += u64::from(tlp.enabled_bytes());
        if self.arrived >= self.spec.data.end - self.spec.data.start {
            (self.arrived, self.over_at) = (0, now + self.spec.busy);
            self.requests += 1;
        }
    }

    /// Returns the address of the status register and its value at `now`, if a TLP loads it.
    #[inline]
    pub(crate) fn shown(&self, now: Ticks, tlp: &Tlp) -> Option<(u64, u64)> {
        let Spec { status, .. } = self.spec;
        let end = tlp.address + u64::from(tlp.length_dw) * 4;
        let is_asked = tlp.kind == TlpKind::MRd && tlp.address < status + STATUS_BYTES && status < end;
        is_asked.then_some((status, self.requests - u64::from(self.over_at > now)))
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let Responder { spec: _, arrived, over_at, requests } = self;
        view.state(*arrived);
        view.time(over_at);
        view.state(*requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlp(kind: TlpKind, address: u64, dw: u16) -> Tlp {
        let length_dw = dw;
        Tlp { address, length_dw, first_be: 0xF, last_be: if dw > 1 { 0xF } else { 0 }, ..Tlp::of(kind) }
    }

    #[test]
    fn a_request_starts_with_its_last_byte_and_is_counted_when_its_time_is_over() {
        let mut function = Responder::new(Spec { data: 0x1040..0x1050, status: 0x1008, busy: Ticks(100) });
        let at = |function: &Responder, now| function.shown(Ticks(now), &tlp(TlpKind::MRd, 0x1008, 2));
        function.store_arrives(Ticks(10), &tlp(TlpKind::MWr, 0x1040, 2));
        function.store_arrives(Ticks(15), &tlp(TlpKind::MWr, 0x1050, 2));
        assert_eq!(at(&function, 500), Some((0x1008, 0)), "half of the data has not arrived");
        function.store_arrives(Ticks(20), &tlp(TlpKind::MWr, 0x1048, 2));
        assert_eq!((at(&function, 119), at(&function, 120)), (Some((0x1008, 0)), Some((0x1008, 1))));
        assert_eq!(function.shown(Ticks(120), &tlp(TlpKind::MRd, 0x1000, 2)), None, "another register");
        assert_eq!(function.shown(Ticks(120), &tlp(TlpKind::MRd, 0x1010, 2)), None, "the next register");
        assert_eq!(function.shown(Ticks(120), &tlp(TlpKind::MRd, 0x100C, 1)), Some((0x1008, 1)), "its upper half");
        assert_eq!(function.shown(Ticks(120), &tlp(TlpKind::MWr, 0x1008, 2)), None, "a store");
    }
}
