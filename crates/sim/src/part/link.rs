//! One direction of a link: serialises TLPs, keeps flow-control credits, delivers after a latency.
//!
//! Ports: `waiting` takes TLPs from whoever sends; `wire` delivers them to the other end; credits come
//! back through [`Transmitter::credit`].
//!
//! Waits recorded: `LinkBusy` when the line was sending, `Credit` or `Device` when credits came last.
//!
//! DLLPs travel against the data here and cost nothing; SKP ordered sets, replay and errors are not here
//! yet.

use crate::engine::Wire;
use crate::tlp::{Tlp, TlpKind};
use lanemark_machine::Cause;
use lanemark_units::Ticks;
use lanemark_wire::{Generation, Lanes, tlp_ticks, tlp_wire_bytes};

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Speed.
    pub generation: Generation,
    /// Width.
    pub lanes: Lanes,
    /// From the last bit sent to the packet checked at the other end.
    pub latency: Ticks,
    /// Credits the receiver advertised at initialisation.
    pub credits: Credits,
}

/// Flow-control credits of the classes that travel here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    /// Posted headers.
    pub posted_header: u32,
    /// Posted data, 16 B each.
    pub posted_data: u32,
    /// Non-posted headers.
    pub nonposted_header: u32,
}

impl Credits {
    /// More than anybody uses: what `infinite` is at initialisation.
    pub const INFINITE: Credits =
        Credits { posted_header: u32::MAX / 2, posted_data: u32::MAX / 2, nonposted_header: u32::MAX / 2 };

    /// What one TLP takes.
    #[must_use]
    pub const fn of(tlp: &Tlp) -> Credits {
        match tlp.kind {
            TlpKind::MWr => {
                Credits { posted_header: 1, posted_data: tlp.payload_bytes().div_ceil(16), nonposted_header: 0 }
            }
            TlpKind::MRd => Credits { posted_header: 0, posted_data: 0, nonposted_header: 1 },
            TlpKind::CplD | TlpKind::Cpl => Credits { posted_header: 0, posted_data: 0, nonposted_header: 0 },
        }
    }

    const fn covers(&self, needed: &Credits) -> bool {
        self.posted_header >= needed.posted_header
            && self.posted_data >= needed.posted_data
            && self.nonposted_header >= needed.nonposted_header
    }
}

/// What crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Crossed {
    /// Memory writes.
    pub writes: u64,
    /// Memory reads.
    pub reads: u64,
    /// Completions.
    pub completions: u64,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// Bytes on the line, framing and headers too.
    pub wire_bytes: u64,
}

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmitter {
    spec: Spec,
    waiting: Wire<Tlp>,
    left: Credits,
    busy_until: Ticks,
    /// Why the first waiting TLP could not go when it wanted to.
    held: Option<Cause>,
    /// On their way to the other end.
    pub wire: Wire<Tlp>,
    /// Counted since the last reset.
    pub crossed: Crossed,
}

impl Transmitter {
    /// An idle transmitter with all its credits.
    #[must_use]
    pub fn new(spec: Spec) -> Transmitter {
        let left = spec.credits;
        Transmitter {
            spec,
            waiting: Wire::default(),
            left,
            busy_until: Ticks::ZERO,
            held: None,
            wire: Wire::default(),
            crossed: Crossed::default(),
        }
    }

    /// Queues a TLP that may go from `at` on.
    #[inline]
    pub fn offer(&mut self, at: Ticks, tlp: Tlp) {
        self.waiting.send(at, tlp);
    }

    /// TLPs that have not started to go.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> usize {
        self.waiting.len()
    }

    /// When the first waiting TLP can go; never, while credits are missing.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        match self.waiting.first() {
            Some(tlp) if self.left.covers(&Credits::of(tlp)) => self.waiting.due().max(self.busy_until),
            _ => Ticks::NEVER,
        }
    }

    /// Sends the first waiting TLP and says what it had waited for, if it had.
    #[inline]
    pub fn send(&mut self, now: Ticks) -> Option<Cause> {
        let ready = self.waiting.due();
        let tlp = self.waiting.take(now)?;
        let needed = Credits::of(&tlp);
        debug_assert!(self.left.covers(&needed), "the link sends without credits at {now:?}");
        self.left.posted_header -= needed.posted_header;
        self.left.posted_data -= needed.posted_data;
        self.left.nonposted_header -= needed.nonposted_header;
        let wire_bytes = tlp_wire_bytes(self.spec.generation, tlp.header_dw(), tlp.payload_bytes(), false);
        let cause = match self.held.take() {
            Some(cause) if now > self.busy_until => Some(cause),
            _ if now > ready && now == self.busy_until => Some(Cause::LinkBusy),
            held => held,
        };
        self.busy_until = now + tlp_ticks(self.spec.generation, self.spec.lanes, wire_bytes);
        self.wire.send(self.busy_until + self.spec.latency, tlp);
        self.count(&tlp, wire_bytes);
        cause
    }

    fn count(&mut self, tlp: &Tlp, wire_bytes: u32) {
        match tlp.kind {
            TlpKind::MWr => self.crossed.writes += 1,
            TlpKind::MRd => self.crossed.reads += 1,
            TlpKind::CplD | TlpKind::Cpl => self.crossed.completions += 1,
        }
        self.crossed.payload_bytes += u64::from(tlp.payload_bytes());
        self.crossed.wire_bytes += u64::from(wire_bytes);
    }

    /// Takes back credits; `because` says why they came no earlier.
    #[inline]
    pub fn credit(&mut self, back: Credits, because: Cause) {
        let blocked = self.waiting.first().is_some_and(|tlp| !self.left.covers(&Credits::of(tlp)));
        self.left.posted_header += back.posted_header;
        self.left.posted_data += back.posted_data;
        self.left.nonposted_header += back.nonposted_header;
        if blocked {
            self.held = Some(because);
        }
    }

    /// Credits not in use.
    #[must_use]
    pub fn credits_left(&self) -> Credits {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Slot;
    use crate::tlp::span;

    fn write(len: u64) -> Tlp {
        let (address, length_dw, first_be, last_be) = span(0x1_0000_0000, len);
        Tlp { kind: TlpKind::MWr, address, length_dw, first_be, last_be, requester: 0, tag: 0, payload: Slot::NONE }
    }

    fn link(posted_header: u32, posted_data: u32) -> Transmitter {
        Transmitter::new(Spec {
            generation: Generation::Gen2,
            lanes: Lanes::new(8).unwrap(),
            latency: Ticks::whole_ns(100),
            credits: Credits { posted_header, posted_data, nonposted_header: 1 },
        })
    }

    #[test]
    fn a_64_byte_write_takes_22_ns_of_a_gen2_x8_link() {
        let mut link = link(8, 32);
        link.offer(Ticks::ZERO, write(64));
        link.send(Ticks::ZERO);
        // 64 B + 16 B header + 8 B framing = 88 B at 4 GB/s, then the latency.
        assert_eq!(link.wire.due(), Ticks::whole_ns(122));
    }

    #[test]
    fn the_last_header_credit_lets_a_write_go_and_none_holds_the_next() {
        let mut link = link(1, 32);
        link.offer(Ticks::ZERO, write(64));
        link.offer(Ticks::ZERO, write(64));
        assert_eq!(link.due(), Ticks::ZERO);
        link.send(Ticks::ZERO);
        assert_eq!(link.due(), Ticks::NEVER);
        link.credit(Credits::of(&write(64)), Cause::Device);
        assert_eq!(link.due(), Ticks::whole_ns(22), "then the line itself is the limit");
    }

    #[test]
    fn data_credits_are_counted_in_units_of_16_bytes() {
        let mut link = link(8, 4);
        link.offer(Ticks::ZERO, write(64));
        assert_eq!(link.due(), Ticks::ZERO);
        let mut short = self::link(8, 3);
        short.offer(Ticks::ZERO, write(64));
        assert_eq!(short.due(), Ticks::NEVER);
        assert_eq!(Credits::of(&write(1)).posted_data, 1);
        assert_eq!(Credits::of(&write(17)).posted_data, 2);
    }

    #[test]
    fn a_wait_is_charged_to_what_became_ready_last() {
        let mut link = link(1, 32);
        for _ in 0..2 {
            link.offer(Ticks::ZERO, write(64));
        }
        assert_eq!(link.send(Ticks::ZERO), None);
        link.credit(Credits::of(&write(64)), Cause::Device);
        assert_eq!(link.send(Ticks::whole_ns(50)), Some(Cause::Device), "credits after the line was free");
        let mut link = self::link(9, 32);
        for _ in 0..2 {
            link.offer(Ticks::ZERO, write(64));
        }
        link.send(Ticks::ZERO);
        assert_eq!(link.send(link.due()), Some(Cause::LinkBusy));
    }
}
