//! One direction of a link: serialises TLPs, keeps flow-control credits, delivers after a latency.
//!
//! Ports: [`Transmitter::offer`] takes TLPs from whoever sends, [`Transmitter::send`] says when each
//! arrives at the other end, [`Transmitter::give_back`] takes the receiver's credits, which are here a
//! link's latency later.
//!
//! Credits on their way back lie in a line of their own and are counted when the next TLP goes: no event
//! of theirs is needed, because the times at which they arrive are known. A test compares this with a
//! link that counts each credit when it arrives.
//!
//! Waits recorded: `LinkBusy` when the line was sending, `Credit` or `Device` when credits came last.
//!
//! DLLPs travel against the data here and cost nothing; SKP ordered sets, replay and errors are not here
//! yet.

use crate::engine::Wire;
use crate::tlp::{Tlp, TlpKind};
use lanemark_machine::Cause;
use lanemark_units::Ticks;
use lanemark_wire::{Generation, Lanes, dw_ticks, tlp_wire_bytes};

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

    fn add(&mut self, back: &Credits) {
        self.posted_header += back.posted_header;
        self.posted_data += back.posted_data;
        self.nonposted_header += back.nonposted_header;
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

/// A TLP on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The packet.
    pub tlp: Tlp,
    /// When it is checked at the other end.
    pub arrives: Ticks,
    /// What it had waited for last, if it had.
    pub because: Option<Cause>,
}

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmitter {
    spec: Spec,
    /// Time of one DW on the line.
    dw: Ticks,
    waiting: Wire<Tlp>,
    left: Credits,
    /// Credits on their way back, and why they come no earlier.
    returning: Wire<(Credits, Cause)>,
    busy_until: Ticks,
    /// Counted since the last reset.
    pub crossed: Crossed,
}

impl Transmitter {
    /// An idle transmitter with all its credits.
    #[must_use]
    pub fn new(spec: Spec) -> Transmitter {
        let left = spec.credits;
        Transmitter {
            dw: dw_ticks(spec.generation, spec.lanes),
            spec,
            waiting: Wire::default(),
            left,
            returning: Wire::default(),
            busy_until: Ticks::ZERO,
            crossed: Crossed::default(),
        }
    }

    /// Queues a TLP that may go from `at` on, but not before those that already wait.
    #[inline]
    pub fn offer(&mut self, at: Ticks, tlp: Tlp) {
        self.waiting.send(at.max(self.waiting.last_due()), tlp);
    }

    /// TLPs that have not started to go.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> usize {
        self.waiting.len()
    }

    /// When the first waiting TLP can go, as far as is known now; if none waits, when the last credit is
    /// back.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        match self.waiting.first() {
            Some(tlp) => self.waiting.due().max(self.busy_until).max(self.covered_at(&Credits::of(tlp))),
            None if self.returning.is_empty() => Ticks::NEVER,
            None => self.returning.last_due(),
        }
    }

    /// When there are credits for `needed`; never, while too few of them are on their way back.
    #[inline]
    fn covered_at(&self, needed: &Credits) -> Ticks {
        let mut have = self.left;
        if have.covers(needed) {
            return Ticks::ZERO;
        }
        for (at, (back, _)) in self.returning.iter() {
            have.add(back);
            if have.covers(needed) {
                return *at;
            }
        }
        Ticks::NEVER
    }

    /// Sends the first waiting TLP, if it can go.
    #[inline]
    pub fn send(&mut self, now: Ticks) -> Option<Sent> {
        let needed = self.waiting.first().map(Credits::of);
        let mut covered = (Ticks::ZERO, None);
        while self.returning.due() <= now {
            let at = self.returning.due();
            let short = needed.is_some_and(|needed| !self.left.covers(&needed));
            let Some((back, because)) = self.returning.take(now) else { break };
            self.left.add(&back);
            if short {
                covered = (at, Some(because));
            }
        }
        let needed = needed.filter(|needed| self.left.covers(needed))?;
        let ready = self.waiting.due();
        let tlp = self.waiting.take(now)?;
        self.left.posted_header -= needed.posted_header;
        self.left.posted_data -= needed.posted_data;
        self.left.nonposted_header -= needed.nonposted_header;
        let because = match covered {
            (at, Some(cause)) if at > ready.max(self.busy_until) => Some(cause),
            _ if self.busy_until > ready => Some(Cause::LinkBusy),
            _ => None,
        };
        let wire_bytes = tlp_wire_bytes(self.spec.generation, tlp.header_dw(), tlp.payload_bytes(), false);
        self.busy_until = now + self.dw * u64::from(wire_bytes / 4);
        self.count(&tlp, wire_bytes);
        Some(Sent { tlp, arrives: self.busy_until + self.spec.latency, because })
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

    /// The receiver gives back credits at `now`; `because` says why it did so no earlier.
    #[inline]
    pub fn give_back(&mut self, now: Ticks, back: Credits, because: Cause) {
        self.returning.send(now + self.spec.latency, (back, because));
    }

    /// Credits not in use at `now`.
    #[must_use]
    pub fn credits_left(&self, now: Ticks) -> Credits {
        let mut left = self.left;
        self.returning.iter().filter(|(at, _)| *at <= now).for_each(|(_, (back, _))| left.add(back));
        left
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
        // 64 B + 16 B header + 8 B framing = 88 B at 4 GB/s, then the latency.
        assert_eq!(link.send(Ticks::ZERO).unwrap().arrives, Ticks::whole_ns(122));
    }

    #[test]
    fn the_last_header_credit_lets_a_write_go_and_none_holds_the_next() {
        let mut link = link(1, 32);
        link.offer(Ticks::ZERO, write(64));
        link.offer(Ticks::ZERO, write(64));
        assert_eq!(link.due(), Ticks::ZERO);
        assert!(link.send(Ticks::ZERO).is_some());
        assert_eq!(link.due(), Ticks::NEVER);
        assert_eq!(link.send(Ticks::whole_ns(500)), None);
        link.give_back(Ticks::whole_ns(500), Credits::of(&write(64)), Cause::Device);
        assert_eq!(link.due(), Ticks::whole_ns(600), "the credit needs the link's latency");
        assert_eq!(link.send(Ticks(link.due().0 - 1)), None);
        assert!(link.send(Ticks::whole_ns(600)).is_some());
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
        assert_eq!(link.send(Ticks::ZERO).unwrap().because, None);
        link.give_back(Ticks::ZERO, Credits::of(&write(64)), Cause::Device);
        assert_eq!(link.send(link.due()).unwrap().because, Some(Cause::Device), "credits after the line was free");
        let mut link = self::link(9, 32);
        for _ in 0..2 {
            link.offer(Ticks::ZERO, write(64));
        }
        link.send(Ticks::ZERO);
        assert_eq!(link.send(link.due()).unwrap().because, Some(Cause::LinkBusy));
    }

    #[test]
    fn an_offer_with_an_earlier_time_goes_behind_what_waits() {
        let mut link = link(9, 32);
        link.offer(Ticks::whole_ns(50), write(64));
        link.offer(Ticks::ZERO, write(4));
        assert_eq!(link.send(link.due()).unwrap().tlp.length_dw, 16);
        assert_eq!(link.send(link.due()).unwrap().tlp.length_dw, 1);
    }

    /// A link that counts every credit when it arrives, tick by tick.
    fn eager(credits: Credits, offers: &[(u64, u64)], hold: u64, latency: u64) -> Vec<(u64, Option<Cause>)> {
        let (mut left, mut busy, mut gone) = (credits, 0, Vec::new());
        let mut back: Vec<(u64, Credits)> = Vec::new();
        let mut credited = (0, false);
        for now in 0.. {
            let Some((ready, len)) = offers.get(gone.len()).copied() else { break };
            let needed = Credits::of(&write(len));
            while back.first().is_some_and(|first| first.0 <= now) {
                credited = (now, !left.covers(&needed));
                left.add(&back.remove(0).1);
            }
            if now < ready || now < busy || !left.covers(&needed) {
                continue;
            }
            let because = match credited {
                (at, true) if at > ready.max(busy) => Some(Cause::Device),
                _ if busy > ready => Some(Cause::LinkBusy),
                _ => None,
            };
            credited.1 = false;
            left.posted_header -= needed.posted_header;
            left.posted_data -= needed.posted_data;
            busy = now + u64::from(tlp_wire_bytes(Generation::Gen2, 4, len as u32, false)) / 4;
            back.push((busy + latency + hold + latency, needed));
            gone.push((now, because));
        }
        gone
    }

    #[test]
    fn counting_credits_lazily_gives_the_times_and_causes_of_counting_them_as_they_arrive() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let credits = Credits {
                posted_header: 1 + random(4) as u32,
                posted_data: 4 + random(12) as u32,
                nonposted_header: 1,
            };
            let (hold, latency) = (random(60), random(40));
            let mut at = 0;
            let offers: Vec<(u64, u64)> = (0..30)
                .map(|_| {
                    at += random(40);
                    (at, [4, 16, 32, 64][random(4) as usize])
                })
                .collect();
            let mut lazy = Transmitter::new(Spec {
                generation: Generation::Gen2,
                lanes: Lanes::new(8).unwrap(),
                latency: Ticks(latency),
                credits,
            });
            lazy.dw = Ticks(1);
            let mut gone = Vec::new();
            let (mut next, mut accepting) = (0, std::collections::VecDeque::new());
            while gone.len() < offers.len() {
                let offer = offers.get(next).map_or(Ticks::NEVER, |offer| Ticks(offer.0));
                let accept = accepting.front().map_or(Ticks::NEVER, |first: &(Ticks, Credits)| first.0);
                let send = lazy.due();
                if offer <= accept && offer <= send {
                    lazy.offer(offer, write(offers[next].1));
                    next += 1;
                } else if accept <= send {
                    lazy.give_back(accept, accepting.pop_front().unwrap().1, Cause::Device);
                } else if let Some(sent) = lazy.send(send) {
                    gone.push((send.0, sent.because));
                    accepting.push_back((sent.arrives + Ticks(hold), Credits::of(&sent.tlp)));
                }
            }
            assert_eq!(gone, eager(credits, &offers, hold, latency));
        }
    }
}
