//! The observer of a board: records link traffic and stalls, up to a limit.
//!
//! No simulation result depends on it. Without an observer, a board makes one comparison for each TLP.
//!
//! TLPs of a board hold what parts need. The observer adds the rest of the header: function IDs, the completer, and
//! the Byte Count of completions. Core `n` is function `n` of bus 0 and, beyond 256, of the next buses. Links have
//! the following buses, depth first, as firmware numbers them; a component on a link is its device 0.

use crate::error::BoardError;
use crate::fabric::End;
use crate::fabric::dllp::{self, Gone, Watch};
use crate::fabric::link::Sent;
use crate::header::{Parties, header_of};
use crate::index::{CardIndex, DirectionIndex, LinkIndex};
use crate::ports::root_input;
use crate::requester::ROOT_COMPLEX;
use crate::tlp::{Flaw, Tlp, TlpKind};
use lanemark_engine::{Slab, Slot};
use lanemark_machine::{Cause, CreditsLeft, Direction, Dllp, DllpKind, Frame, StallSite, Trace, TraceGap, Waited};
use lanemark_platform::{PeerRoute, Platform};
use lanemark_units::Ticks;
use lanemark_wire::{FunctionId, Header, Packet};
use std::collections::{BTreeMap, VecDeque};

/// Byte of a header with TD and EP.
const FLAGS_BYTE: usize = 2;
const TD: u8 = 0x80;
const EP: u8 = 0x40;

/// A direction of a link, for the observer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) from: End,
    pub(crate) to: End,
}

/// A TLP that was sent.
#[derive(Clone, Copy)]
pub(crate) struct Went<'a> {
    pub(crate) at: Ticks,
    /// Line time.
    pub(crate) on_line: Ticks,
    pub(crate) direction: DirectionIndex,
    pub(crate) sent: &'a Sent,
    /// Credits that its sender has left.
    pub(crate) credits_left: CreditsLeft,
    /// Whether it was corrupted.
    pub(crate) is_damaged: bool,
}

/// Records the last events.
#[derive(Debug)]
pub(crate) struct Observer {
    /// Origin of all times.
    origin: Ticks,
    most: usize,
    lines: Vec<Line>,
    links: Vec<String>,
    /// Function ID of each card.
    ids: Vec<FunctionId>,
    /// Function ID of the root complex in reads of peers that it splits.
    peer_requester: FunctionId,
    /// Requester and completer of reads that the root complex completes with its own ID.
    completed_by_root: Vec<(usize, usize)>,
    /// Address ranges of BARs, and their cards.
    bars: Vec<(u64, u64, CardIndex)>,
    frames: VecDeque<Frame>,
    bytes: usize,
    waits: VecDeque<Waited>,
    dropped: TraceGap,
    /// Number of requests.
    requests: u64,
    /// Numbers of reads by requester ID and tag, and of writes by their payload slot.
    reads: BTreeMap<(u16, u16), u64>,
    writes: BTreeMap<u32, u64>,
    /// Numbers of Invalidate Requests, by target and `ITag`.
    invalidations: BTreeMap<(u16, u16), u64>,
    /// Bytes of completions that have not crossed a link, by link, requester ID and tag.
    left: BTreeMap<(LinkIndex, u16, u16), u32>,
    /// Corrupted TLPs that will be replayed on this direction.
    again: Vec<(DirectionIndex, Tlp)>,
}

impl Observer {
    /// Creates an observer of a board with these directions, from `origin` on, that keeps `most` frames and as many
    /// stalls.
    pub(crate) fn new(
        platform: &Platform,
        lines: Vec<Line>,
        bars_at: &[[u64; 6]],
        origin: Ticks,
        most: usize,
    ) -> Result<Observer, BoardError> {
        let most = most.clamp(1, Trace::MOST);
        let bars = bars_at.iter().enumerate().flat_map(|(card, at)| {
            platform.bars.iter().filter_map(move |bar| {
                let start = *at.get(bar.index.value as usize)?;
                Some((start, start + bar.size_bytes.value, CardIndex(card)))
            })
        });
        let ids = function_ids(&lines, bars_at.len(), platform.core.cores.value).ok_or_else(|| BoardError {
            platform: platform.name.clone(),
            because: "a trace names functions by their bus, and it has more than 256 buses".to_owned(),
        })?;
        Ok(Observer {
            origin,
            most,
            peer_requester: FunctionId(platform.root_complex.peer_requester_id.value as u16),
            completed_by_root: completed_by_root(platform, bars_at.len()),
            links: lines.iter().step_by(2).map(|line| name(platform, line.to)).collect(),
            bars: bars.collect(),
            ids,
            lines,
            frames: VecDeque::new(),
            bytes: 0,
            waits: VecDeque::new(),
            dropped: TraceGap::default(),
            requests: 0,
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            invalidations: BTreeMap::new(),
            left: BTreeMap::new(),
            again: Vec::new(),
        })
    }

    /// Returns the trace, with these DLLPs of each direction.
    pub(crate) fn into_trace(mut self, watched: impl Iterator<Item = (DirectionIndex, Watch, Ticks)>) -> Trace {
        let mut dllps = Vec::new();
        for (direction, watch, on_line) in watched {
            self.dropped.dllps += watch.dropped;
            dllps.extend(watch.seen.into_iter().map(|gone| self.dllp(direction, gone, on_line)));
        }
        // DLLPs at the same time stay in the order of the links: the sort is stable.
        dllps.sort_by_key(|dllp| dllp.starts);
        let too_many = dllps.len().saturating_sub(self.most);
        dllps.drain(..too_many);
        self.dropped.dllps += too_many as u64;
        let (frames, waits) = (self.frames.into(), self.waits.into());
        Trace { links: self.links, frames, dllps, waits, dropped: self.dropped }
    }

    fn dllp(&self, direction: DirectionIndex, gone: Gone, on_line: Ticks) -> Dllp {
        Dllp {
            link: direction.link().0,
            direction: way(direction),
            kind: match gone.kind {
                dllp::DllpKind::Ack => DllpKind::Ack,
                dllp::DllpKind::Nak => DllpKind::Nak,
                dllp::DllpKind::UpdatePosted => DllpKind::UpdateFcPosted,
                dllp::DllpKind::UpdateNonPosted => DllpKind::UpdateFcNonPosted,
                dllp::DllpKind::UpdateCompletion => DllpKind::UpdateFcCompletion,
            },
            starts: gone.went.since(self.origin),
            ends: (gone.went + on_line).since(self.origin),
            arrives: gone.comes.since(self.origin),
        }
    }

    /// Records a TLP.
    pub(crate) fn sent(&mut self, went: Went<'_>, slab: &Slab) {
        let Went { at, on_line, direction, sent, credits_left, is_damaged } = went;
        let link = direction.link();
        let request = self.number(direction, sent);
        let left = (link, sent.tlp.requester, sent.tlp.tag);
        let left_before = self.left.get(&left).copied();
        let Some(tlp) = self.encode(direction, &sent.tlp, slab) else {
            self.dropped.illegal += 1;
            return;
        };
        if is_damaged {
            self.again.push((direction, sent.tlp));
            if let Some(before) = left_before {
                self.left.insert(left, before);
            }
        }
        self.bytes += tlp.len();
        self.frames.push_back(Frame {
            link: link.0,
            direction: way(direction),
            request,
            ready: sent.ready.min(at).since(self.origin),
            starts: at.since(self.origin),
            ends: (at + on_line).since(self.origin),
            arrives: sent.arrives.since(self.origin),
            because: sent.because,
            credits_left,
            is_damaged,
            tlp,
        });
        while self.frames.len() > self.most || self.bytes > Trace::MOST_BYTES {
            let Some(oldest) = self.frames.pop_front() else { break };
            self.bytes -= oldest.tlp.len();
            self.dropped.frames += 1;
        }
    }

    /// Adds a flaw to the last TLP, if it used this direction: EP, or a digest that is not the ECRC.
    ///
    /// Faults are injected at the receiver, so the TLP was recorded without its flaw.
    pub(crate) fn flawed(&mut self, direction: DirectionIndex, flaw: Flaw) {
        let is_it = |frame: &&mut Frame| (frame.link, frame.direction) == (direction.link().0, way(direction));
        let Some(frame) = self.frames.back_mut().filter(is_it) else { return };
        let Some(flags) = frame.tlp.get_mut(FLAGS_BYTE) else { return };
        match flaw {
            Flaw::Poisoned => *flags |= EP,
            Flaw::BadEcrc if *flags & TD == 0 => {
                *flags |= TD;
                let ecrc = Packet::new(&frame.tlp).ok().and_then(|packet| packet.expected_ecrc());
                frame.tlp.extend(ecrc.unwrap_or_default().map(|byte| !byte));
                self.bytes += 4;
            }
            _ => {}
        }
    }

    /// Records the growth of stall counters from `before` to `after`. The last stall ended at `now`, when the
    /// kernel's work begins.
    pub(crate) fn waited(
        &mut self,
        who: StallSite,
        now: Ticks,
        before: &[Ticks; Cause::ALL.len()],
        after: &[Ticks; Cause::ALL.len()],
    ) {
        // Several stalls up to now follow each other in the order of causes: a transfer, then its interrupt.
        let mut next = now;
        let first = self.waits.len();
        for (cause, (before, after)) in Cause::ALL.into_iter().zip(before.iter().zip(after)).rev() {
            let span = after.since(*before);
            if span == Ticks::ZERO {
                continue;
            }
            let (from, until) =
                if cause == Cause::Driver { (now, now + span) } else { (Ticks(next.0.saturating_sub(span.0)), next) };
            if cause != Cause::Driver {
                next = from;
            }
            let (from, until) = (from.since(self.origin), until.since(self.origin));
            self.waits.insert(first, Waited { who, from, until, cause });
        }
        while self.waits.len() > self.most {
            self.waits.pop_front();
            self.dropped.waits += 1;
        }
    }

    /// Returns the number of the request of a TLP; a new number on its first link.
    fn number(&mut self, direction: DirectionIndex, sent: &Sent) -> u64 {
        let tlp = &sent.tlp;
        let goes_again = self.again.iter().position(|again| *again == (direction, *tlp));
        let goes_again = goes_again.map(|place| self.again.swap_remove(place)).is_some();
        let begins = !goes_again
            && match self.lines[direction].from {
                End::Root(_) => {
                    sent.input == root_input::CORES
                        || tlp.requester == ROOT_COMPLEX && tlp.kind == TlpKind::MRd
                        || tlp.kind == TlpKind::MsgD
                }
                End::Endpoint(_) => true,
                End::Switch { .. } => false,
            };
        let known = match tlp.kind {
            TlpKind::MRd | TlpKind::MWr | TlpKind::MsgD if begins => None,
            TlpKind::MsgD | TlpKind::Msg => self.invalidations.get(&(tlp.requester, tlp.tag)).copied(),
            TlpKind::MWr => self.writes.get(&tlp.payload.number()).copied(),
            TlpKind::MRd | TlpKind::CplD | TlpKind::Cpl => self.reads.get(&(tlp.requester, tlp.tag)).copied(),
        };
        known.unwrap_or_else(|| {
            self.requests += 1;
            let name = (tlp.requester, tlp.tag);
            match tlp.kind {
                TlpKind::MWr => self.writes.insert(tlp.payload.number(), self.requests),
                TlpKind::MsgD | TlpKind::Msg => self.invalidations.insert(name, self.requests),
                TlpKind::MRd | TlpKind::CplD | TlpKind::Cpl => self.reads.insert(name, self.requests),
            };
            self.requests
        })
    }

    /// Returns header and payload as bytes; `None` for an illegal TLP.
    fn encode(&mut self, direction: DirectionIndex, tlp: &Tlp, slab: &Slab) -> Option<Vec<u8>> {
        let header = self.header(direction, tlp);
        let mut bytes = vec![0; Header::MAX_BYTES];
        let used = header.emit(&mut bytes).ok()?;
        bytes.truncate(used);
        if tlp.payload != Slot::NONE {
            bytes.extend_from_slice(slab.bytes(tlp.payload).get(..tlp.payload_bytes() as usize)?);
        }
        if tlp.kind == TlpKind::MWr {
            // Disabled bytes have arbitrary values.
            let last_dw = bytes.len().checked_sub(4)?;
            blank(bytes.get_mut(used..used + 4)?, tlp.first_be);
            if tlp.length_dw > 1 {
                blank(bytes.get_mut(last_dw..)?, tlp.last_be);
            }
        }
        Some(bytes)
    }

    fn header(&mut self, direction: DirectionIndex, tlp: &Tlp) -> Header {
        let key = (direction.link(), tlp.requester, tlp.tag);
        let bytes = tlp.enabled_bytes();
        let left = match tlp.kind {
            TlpKind::MWr | TlpKind::Cpl | TlpKind::MsgD | TlpKind::Msg => bytes,
            TlpKind::MRd => {
                let bytes = tlp.returned_bytes();
                self.left.insert(key, bytes);
                bytes
            }
            TlpKind::CplD => {
                let left = self.left.get(&key).copied().unwrap_or(bytes).max(bytes);
                self.left.insert(key, left - bytes);
                // The Byte Count of a zero-length read is 1.
                left.max(1)
            }
        };
        let parties = Parties { requester: self.id(tlp.requester), completer: self.completer(direction, tlp) };
        header_of(tlp, parties, left as u16)
    }

    fn id(&self, requester: u16) -> FunctionId {
        if requester == ROOT_COMPLEX {
            return self.peer_requester;
        }
        self.ids.get(CardIndex::of_requester(requester).0).copied().unwrap_or(FunctionId(requester))
    }

    /// Returns the completer of a TLP: the card of the BAR, the root complex, or the ID that this gives to completions
    /// of peers.
    fn completer(&self, direction: DirectionIndex, tlp: &Tlp) -> FunctionId {
        let found = self.bars.iter().find(|(start, end, _)| (*start..*end).contains(&tlp.address));
        let Some((.., card)) = found else { return FunctionId::default() };
        if direction.is_downstream()
            && !self.completed_by_root.is_empty()
            && tlp.requester != ROOT_COMPLEX
            && self.completed_by_root.contains(&(CardIndex::of_requester(tlp.requester).0, card.0))
        {
            return self.peer_requester;
        }
        self.ids.get(card.0).copied().unwrap_or_default()
    }
}

/// Returns the pairs of requester and completer whose reads the root complex splits and completes with its own ID.
fn completed_by_root(platform: &Platform, cards: usize) -> Vec<(usize, usize)> {
    let root = &platform.root_complex;
    if !root.peer_completer_is_root.value || root.peer_read_bytes.value == 0 {
        return Vec::new();
    }
    let pairs = (0..cards).flat_map(|from| (0..cards).map(move |to| (from, to)));
    pairs.filter(|(from, to)| platform.peer_route(*from, *to) == Some(PeerRoute::ByRoot)).collect()
}

/// Returns whether a direction is downstream or upstream.
fn way(direction: DirectionIndex) -> Direction {
    if direction.is_downstream() { Direction::Downstream } else { Direction::Upstream }
}

/// Clears the disabled bytes of a DW.
fn blank(dw: &mut [u8], enabled: u8) {
    for (place, byte) in dw.iter_mut().enumerate() {
        if enabled >> place & 1 == 0 {
            *byte = 0;
        }
    }
}

/// Returns the name of the component below a link.
fn name(platform: &Platform, below: End) -> String {
    let found = match below {
        End::Switch { switch, .. } => platform.switches.get(switch).map(|switch| &switch.name),
        End::Endpoint(card) => platform.slots.get(card.0).map(|slot| &slot.name),
        End::Root(_) => None,
    };
    found.cloned().unwrap_or_else(|| "card".to_owned())
}

/// Returns the function of each card: buses are numbered depth first, after those of cores. `None` if there are too
/// many.
fn function_ids(lines: &[Line], cards: usize, cores: u32) -> Option<Vec<FunctionId>> {
    let mut ids = vec![FunctionId::default(); cards];
    let mut bus = cores.saturating_sub(1) / 256;
    // Links below such an end, the last one first.
    let down_from = |is_it: &dyn Fn(&End) -> bool| -> Vec<LinkIndex> {
        (0..lines.len() / 2).rev().map(LinkIndex).filter(|link| is_it(&lines[link.down().0].from)).collect()
    };
    // A stack of links whose lower end must be numbered; the next one is last.
    let mut next = down_from(&|end| matches!(end, End::Root(_)));
    while let Some(link) = next.pop() {
        bus += 1;
        match lines[link.down().0].to {
            End::Endpoint(card) => *ids.get_mut(card.0)? = FunctionId::new(u8::try_from(bus).ok()?, 0, 0)?,
            End::Switch { switch, .. } => {
                // The internal bus of the switch, with its downstream ports.
                bus += 1;
                next.extend(down_from(&|end| matches!(end, End::Switch { switch: other, .. } if *other == switch)));
            }
            End::Root(_) => {}
        }
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{PortIndex, RootPortIndex};

    /// Returns the directions of root ports with a card each.
    fn cards(count: usize) -> Vec<Line> {
        let both = |card| {
            let (root, card) = (End::Root(RootPortIndex(card)), End::Endpoint(CardIndex(card)));
            [Line { from: root, to: card }, Line { from: card, to: root }]
        };
        (0..count).flat_map(both).collect()
    }

    #[test]
    fn buses_follow_those_of_the_cores_and_end_at_255() {
        let ids = |count, cores| function_ids(&cards(count), count, cores);
        assert_eq!(ids(2, 1), Some(vec![FunctionId(0x0100), FunctionId(0x0200)]));
        assert_eq!(ids(1, 256), Some(vec![FunctionId(0x0100)]));
        assert_eq!(ids(1, 257), Some(vec![FunctionId(0x0200)]));
        assert_eq!(ids(255, 1).and_then(|ids| ids.last().copied()), Some(FunctionId(0xFF00)));
        assert_eq!(ids(256, 1), None);
        assert_eq!(ids(255, 257), None);
    }

    #[test]
    fn a_switch_takes_a_bus_for_its_ports_before_those_below_it() {
        let below = |port, to| Line { from: End::Switch { switch: 0, port: PortIndex(port) }, to };
        let (root, card) = (|port| End::Root(RootPortIndex(port)), |card| End::Endpoint(CardIndex(card)));
        let up = Line { from: card(0), to: root(0) };
        let lines = [
            Line { from: root(0), to: End::Switch { switch: 0, port: PortIndex::UPSTREAM } },
            up,
            below(1, card(1)),
            up,
            below(2, card(0)),
            up,
            Line { from: root(1), to: card(2) },
            up,
        ];
        let ids = function_ids(&lines, 3, 1).unwrap();
        assert_eq!(ids.iter().map(|id| id.bus()).collect::<Vec<_>>(), [4, 3, 5]);
    }
}
