//! Peer-to-peer forwarding in a root complex, between cards below different root ports.
//!
//! ```text
//!  root port --> MRd --> pieces, own requester ID and tags --> other root port
//!  root port <-- CplD, in address order <-- pieces <---------- other root port
//! ```
//!
//! Ports: writes, and reads that are not split, are forwarded when they are [ready](PeerForwarder::ready). Split
//! reads, and the completions of their pieces, are received by [`PeerForwarder::receive`]. [`PeerForwarder::step`]
//! processes arrivals, and puts the TLPs to be sent in [`PeerForwarder::out`]. [`PeerForwarder::left`] is called when
//! a piece has left, and [`PeerForwarder::freed`] lists the root ports whose receive buffer a read has left, which is
//! when its last piece has left.
//!
//! A piece holds its tag from its request until all of its data is forwarded, which bounds the held completions.
//! Completions of one read are returned in address order, as the specification requires; those of several reads in
//! order of arrival, or in the order of the reads. Where completions are collected, consecutive ones become one, up to
//! the next multiple of the maximum payload. What is held leaves early if the rest needs a tag and none is free.

use crate::critical_path::{CriticalPath, Milestone, Place};
use crate::index::RootPortIndex;
use crate::requester::ROOT_COMPLEX;
use crate::steady::Survey;
use crate::tlp::{Flaw, Tlp, TlpKind, span};
use lanemark_engine::{Slab, Slot, Wire};
use lanemark_machine::Cause;
use lanemark_platform::Platform;
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// Constants of the forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Whether peer reads are forwarded; otherwise root ports complete them with UR.
    pub reads: bool,
    /// Whether peer writes are forwarded.
    pub writes: bool,
    /// From a TLP checked at one root port to its departure at the other.
    pub latency: Ticks,
    /// Boundary in bytes at which reads are split; 0 for no split.
    pub read_bytes: u32,
    /// Number of tags: pieces outstanding or held.
    pub tags: u16,
    /// Whether reads are completed in their order.
    pub in_order: bool,
    /// Multiple in bytes up to which completions are collected; 0 to forward each one.
    pub collects: u32,
    /// Requester ID of the pieces.
    pub requester: u16,
}

/// A TLP to be sent by a root port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Out {
    /// Earliest departure.
    pub at: Ticks,
    /// The root port.
    pub port: RootPortIndex,
    /// The TLP.
    pub tlp: Tlp,
}

/// An incomplete read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    number: u64,
    /// The root port that received it, and the one above its completer.
    came_at: RootPortIndex,
    goes_to: RootPortIndex,
    tlp: Tlp,
    /// Earliest departure of its pieces.
    ready: Ticks,
    /// Addresses up to which it is requested and completed.
    asked_to: u64,
    answered_to: u64,
    end: u64,
    /// Pieces that have not left.
    unsent: u32,
    /// Whether it occupies the receive buffer of its port.
    holds_credit: bool,
}

/// A piece of a read, by its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    read: u64,
    /// Bytes that have not been forwarded.
    left: u32,
}

impl Spec {
    /// Reads the constants of a platform's root complex.
    #[must_use]
    pub fn new(platform: &Platform) -> Spec {
        let root = &platform.root_complex;
        Spec {
            reads: root.peer_reads.value,
            writes: root.peer_writes.value,
            latency: root.peer_forward_ns.value,
            // Completions end at a read completion boundary, so pieces are at least that long.
            read_bytes: match root.peer_read_bytes.value {
                0 => 0,
                bytes => bytes.max(platform.link.rcb_bytes.value),
            },
            tags: root.peer_tags.value as u16,
            in_order: root.peer_in_order.value,
            collects: if root.peer_collects.value { platform.smallest_mps_bytes() } else { 0 },
            requester: ROOT_COMPLEX,
        }
    }
}

/// State of the forwarder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerForwarder {
    spec: Spec,
    /// TLPs received by each root port; for reads, with the root port above their completer.
    coming: Vec<Wire<(Tlp, RootPortIndex)>>,
    reads: VecDeque<Read>,
    /// Number of reads received.
    count: u64,
    pieces: Vec<Option<Piece>>,
    free_tags: VecDeque<u16>,
    /// Completions held until their turn.
    held: Vec<(u64, Tlp)>,
    /// Return of the last tag.
    tag: Milestone,
    /// TLPs to be sent, until they are taken.
    pub out: VecDeque<Out>,
    /// Root ports whose receive buffer a read has left, once for each read.
    pub freed: VecDeque<RootPortIndex>,
}

/// Returns the address of the first enabled byte.
fn first_byte(tlp: &Tlp) -> u64 {
    tlp.address + u64::from(tlp.first_be.trailing_zeros().min(3))
}

/// Appends the data of a completion to those of the one before it, which ends at a DW.
fn collect(all: &mut Tlp, more: &Tlp, slab: &mut Slab) {
    let (from, len) = (usize::from(all.length_dw) * 4, usize::from(more.length_dw) * 4);
    if all.payload != Slot::NONE && more.payload != Slot::NONE {
        for place in (0..len).step_by(64) {
            let mut line = [0; 64];
            let line = &mut line[..(len - place).min(64)];
            line.copy_from_slice(&slab.bytes(more.payload)[place..place + line.len()]);
            slab.bytes_mut(all.payload)[from + place..from + place + line.len()].copy_from_slice(line);
        }
    }
    slab.give_back(more.payload);
    all.length_dw += more.length_dw;
    all.last_be = if more.length_dw > 1 { more.last_be } else { more.first_be };
}

impl PeerForwarder {
    /// Creates an idle forwarder between `root_ports` root ports.
    #[must_use]
    pub fn new(spec: Spec, root_ports: usize) -> PeerForwarder {
        PeerForwarder {
            spec,
            coming: vec![Wire::default(); root_ports],
            reads: VecDeque::new(),
            count: 0,
            pieces: vec![None; usize::from(spec.tags)],
            free_tags: (0..spec.tags).collect(),
            held: Vec::new(),
            tag: Milestone::NONE,
            out: VecDeque::new(),
            freed: VecDeque::new(),
        }
    }

    /// Returns whether TLPs of this kind are forwarded.
    #[inline]
    #[must_use]
    pub fn forwards(&self, kind: TlpKind) -> bool {
        match kind {
            TlpKind::MRd => self.spec.reads,
            TlpKind::MWr => self.spec.writes,
            TlpKind::CplD | TlpKind::Cpl => true,
            TlpKind::MsgD | TlpKind::Msg => false,
        }
    }

    /// Returns whether TLPs of this kind are split.
    #[inline]
    #[must_use]
    pub fn splits(&self, kind: TlpKind) -> bool {
        kind == TlpKind::MRd && self.spec.read_bytes > 0
    }

    /// Returns the earliest departure of a TLP that is checked at `at`.
    #[inline]
    #[must_use]
    pub fn ready(&self, at: Ticks) -> Ticks {
        at + self.spec.latency
    }

    /// Receives a read with its completer below root port `goes_to`, or a completion of a piece, that root port
    /// `port` checks at `at`. The call may precede that time.
    pub fn receive(&mut self, at: Ticks, port: RootPortIndex, goes_to: RootPortIndex, tlp: Tlp) {
        self.coming[port].send(at, (tlp, goes_to));
    }

    /// Receives a UR completion for a piece sent below root port `port`; it arrives after everything already in
    /// flight there.
    pub fn refuse(&mut self, now: Ticks, port: RootPortIndex, refusal: Tlp) {
        let at = now.max(self.coming[port].last_due());
        self.receive(at, port, port, refusal);
    }

    /// Returns the next arrival.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        self.coming.iter().map(Wire::due).min().unwrap_or(Ticks::NEVER)
    }

    /// Processes every arrival up to `now`.
    pub fn step(&mut self, now: Ticks, slab: &mut Slab, path: &mut CriticalPath) {
        for port in (0..self.coming.len()).map(RootPortIndex) {
            while let Some((tlp, goes_to)) = self.coming[port].take(now) {
                match tlp.kind {
                    TlpKind::MRd => self.begin(now, port, goes_to, tlp),
                    TlpKind::CplD => self.hold(tlp, slab),
                    TlpKind::MWr | TlpKind::Cpl | TlpKind::MsgD | TlpKind::Msg => self.fail(now, &tlp, slab),
                }
            }
        }
        self.release(now, slab);
        self.ask(now, path);
    }

    fn begin(&mut self, now: Ticks, came_at: RootPortIndex, goes_to: RootPortIndex, tlp: Tlp) {
        let start = first_byte(&tlp);
        self.count += 1;
        self.reads.push_back(Read {
            number: self.count,
            came_at,
            goes_to,
            tlp,
            ready: now + self.spec.latency,
            asked_to: start,
            answered_to: start,
            end: start + u64::from(tlp.enabled_bytes()),
            unsent: 0,
            holds_credit: true,
        });
    }

    /// Requests pieces, those of the oldest read first, while tags are free.
    fn ask(&mut self, now: Ticks, path: &mut CriticalPath) {
        let step = u64::from(self.spec.read_bytes.max(1));
        for read in self.reads.iter_mut().filter(|read| read.asked_to < read.end) {
            while read.asked_to < read.end {
                let Some(tag) = self.free_tags.pop_front() else { return };
                let end = ((read.asked_to / step + 1) * step).min(read.end);
                let (address, length_dw, first_be, last_be) = span(read.asked_to, end - read.asked_to);
                let requester = self.spec.requester;
                let has_waited = now + self.spec.latency > read.ready;
                let milestone = if has_waited {
                    path.add_after(Cause::Tag, self.tag, now, Place::ROOT_COMPLEX, Cause::Transit)
                } else {
                    read.tlp.milestone
                };
                let flaw = Flaw::None;
                let tlp = Tlp { address, length_dw, first_be, last_be, requester, tag, flaw, milestone, ..read.tlp };
                let left = (end - read.asked_to) as u32;
                self.pieces[usize::from(tag)] = Some(Piece { read: read.number, left });
                (read.asked_to, read.unsent) = (end, read.unsent + 1);
                self.out.push_back(Out { at: read.ready.max(now), port: read.goes_to, tlp });
            }
        }
    }

    /// Records that the piece with this tag has left for its link.
    pub fn left(&mut self, tag: u16) {
        let Some(piece) = self.pieces.get(usize::from(tag)).copied().flatten() else { return };
        let Some(read) = self.reads.iter_mut().find(|read| read.number == piece.read) else { return };
        read.unsent -= 1;
        self.give_back();
    }

    /// Frees the receive buffers of reads whose last piece has left, and removes completed reads.
    fn give_back(&mut self) {
        for read in &mut self.reads {
            if read.holds_credit && read.unsent == 0 && read.asked_to == read.end {
                read.holds_credit = false;
                self.freed.push_back(read.came_at);
            }
        }
        self.reads.retain(|read| read.holds_credit || read.answered_to < read.end);
    }

    fn hold(&mut self, tlp: Tlp, slab: &mut Slab) {
        let Some(piece) = self.pieces.get(usize::from(tlp.tag)).copied().flatten() else {
            return slab.give_back(tlp.payload);
        };
        if self.reads.iter().any(|read| read.number == piece.read && read.answered_to < read.end) {
            return self.held.push((piece.read, tlp));
        }
        // A piece of a read that was refused.
        slab.give_back(tlp.payload);
        self.pass(tlp.tag, tlp.enabled_bytes());
    }

    /// Accounts for forwarded bytes of a piece; the last ones free its tag.
    fn pass(&mut self, tag: u16, bytes: u32) {
        if let Some(piece) = &mut self.pieces[usize::from(tag)] {
            piece.left -= bytes.min(piece.left);
            if piece.left == 0 {
                self.pieces[usize::from(tag)] = None;
                self.free_tags.push_back(tag);
            }
        }
    }

    /// Fails the read of a refused piece: no further piece is requested, and later completions are dropped.
    fn fail(&mut self, now: Ticks, tlp: &Tlp, slab: &mut Slab) {
        let Some(piece) = self.pieces.get(usize::from(tlp.tag)).copied().flatten() else { return };
        self.pass(tlp.tag, u32::MAX);
        let number = piece.read;
        let Some(read) = self.reads.iter_mut().find(|read| read.number == number && read.answered_to < read.end) else {
            return;
        };
        (read.asked_to, read.answered_to) = (read.end, read.end);
        let refusal = Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, flaw: tlp.flaw, ..read.tlp };
        self.out.push_back(Out { at: now + self.spec.latency, port: read.came_at, tlp: refusal });
        while let Some(place) = self.held.iter().position(|(other, _)| *other == number) {
            let (_, dropped) = self.held.swap_remove(place);
            slab.give_back(dropped.payload);
            self.pass(dropped.tag, dropped.enabled_bytes());
        }
        self.give_back();
    }

    /// Forwards the completions whose turn it is.
    fn release(&mut self, now: Ticks, slab: &mut Slab) {
        for place in 0..self.reads.len() {
            let mut read = self.reads[place];
            while let Some(came) = self.take_next(&mut read, slab) {
                let Tlp { requester, tag, relaxed, id_based, .. } = read.tlp;
                let tlp = Tlp { requester, tag, relaxed, id_based, ..came };
                self.out.push_back(Out { at: now + self.spec.latency, port: read.came_at, tlp });
                self.tag = came.milestone;
            }
            self.reads[place] = read;
            if self.spec.in_order && read.answered_to < read.end {
                break;
            }
        }
        self.give_back();
    }

    /// Takes the next completion of a read, as it came or collected from several; `None` if it must wait.
    fn take_next(&mut self, read: &mut Read, slab: &mut Slab) -> Option<Tlp> {
        let next = |held: &[(u64, Tlp)], at: u64| {
            held.iter().position(|(number, tlp)| *number == read.number && first_byte(tlp) == at)
        };
        let until = match u64::from(self.spec.collects) {
            0 => read.answered_to + 1,
            most => ((read.answered_to / most + 1) * most).min(read.end),
        };
        let mut end = read.answered_to;
        while end < until
            && let Some(place) = next(&self.held, end)
        {
            end += u64::from(self.held[place].1.enabled_bytes());
        }
        // The rest cannot be requested before a tag of these is free.
        let is_stuck = end == read.asked_to && self.free_tags.is_empty();
        if end < until && !is_stuck {
            return None;
        }
        let mut all: Option<Tlp> = None;
        while read.answered_to < end {
            let (_, came) = self.held.swap_remove(next(&self.held, read.answered_to)?);
            let bytes = came.enabled_bytes();
            read.answered_to += u64::from(bytes);
            self.pass(came.tag, bytes);
            match &mut all {
                None => all = Some(came),
                Some(all) => {
                    collect(all, &came, slab);
                    all.milestone = came.milestone;
                }
            }
        }
        all
    }

    /// Visits the state. Its own tags are visited by value, because it uses them in turn.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let PeerForwarder { spec: _, coming, reads, count, pieces, free_tags, held, tag: _, out, freed } = self;
        for coming in coming {
            coming.visit(view, |view, (tlp, goes_to)| {
                view.tlp(tlp);
                view.count(goes_to.0);
            });
        }
        let before = *count;
        view.counter(count);
        let moved = *count - before;
        view.count(reads.len());
        for read in reads {
            let Read { number, came_at, goes_to, tlp, ready, asked_to, answered_to, end, unsent, holds_credit } = read;
            view.state(before - *number);
            *number += moved;
            view.count(came_at.0);
            view.count(goes_to.0);
            let start = first_byte(tlp);
            view.tlp(tlp);
            let moved = first_byte(tlp).wrapping_sub(start);
            for at in [asked_to, answered_to, end] {
                view.state(at.wrapping_sub(start));
                *at = at.wrapping_add(moved);
            }
            view.moment(ready);
            view.state(u64::from(*unsent));
            view.flag(*holds_credit);
        }
        let mut outstanding = 0;
        for (tag, Piece { read, left }) in (0..).zip(pieces).filter_map(|(tag, piece)| Some((tag, piece.as_mut()?))) {
            for value in [tag, before - *read, u64::from(*left)] {
                view.state(value);
            }
            *read += moved;
            outstanding += 1;
        }
        view.count(outstanding);
        // With no piece outstanding, the next tag does not matter.
        for tag in free_tags.iter().filter(|_| outstanding > 0) {
            view.state(u64::from(*tag));
        }
        view.count(held.len());
        for (number, tlp) in held {
            view.state(before - *number);
            *number += moved;
            view.tlp(tlp);
        }
        // Always taken in the same event.
        view.count(out.len());
        view.count(freed.len());
    }

    /// Returns whether nothing is outstanding.
    #[must_use]
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.reads.is_empty() && self.due() == Ticks::NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_engine::Visitor;
    use lanemark_machine::Verb;

    const SPEC: Spec = Spec {
        reads: true,
        writes: true,
        latency: Ticks(5),
        read_bytes: 64,
        tags: 8,
        in_order: false,
        collects: 0,
        requester: 99,
    };

    fn read(tag: u16, address: u64, len: u64) -> Tlp {
        let (address, length_dw, first_be, last_be) = span(address, len);
        Tlp { address, length_dw, first_be, last_be, requester: 7, tag, ..Tlp::of(TlpKind::MRd) }
    }

    /// Returns the completion of a piece.
    fn answer(piece: &Tlp) -> Tlp {
        Tlp { kind: TlpKind::CplD, ..*piece }
    }

    struct Stage {
        forwarder: PeerForwarder,
        slab: Slab,
    }

    impl Stage {
        fn new(spec: Spec) -> Stage {
            Stage { forwarder: PeerForwarder::new(spec, 3), slab: Slab::new(256) }
        }

        /// Receives a TLP and returns the TLPs to be sent.
        fn come(&mut self, at: u64, port: usize, tlp: Tlp) -> Vec<Out> {
            self.forwarder.receive(Ticks(at), RootPortIndex(port), RootPortIndex(1), tlp);
            assert_eq!(self.forwarder.due(), Ticks(at));
            self.forwarder.step(Ticks(at), &mut self.slab, &mut CriticalPath::default());
            self.forwarder.out.drain(..).collect()
        }
    }

    /// Returns address, length and tag of each TLP.
    fn spans(out: &[Out]) -> Vec<(u64, u32, u16)> {
        out.iter().map(|out| (first_byte(&out.tlp), out.tlp.enabled_bytes(), out.tlp.tag)).collect()
    }

    #[test]
    fn a_read_of_512_becomes_eight_of_64_with_another_requester_and_its_own_tags() {
        let mut stage = Stage::new(SPEC);
        let pieces = stage.come(100, 0, read(3, 0x1000, 512));
        let expected: Vec<(u64, u32, u16)> = (0..8).map(|nth| (0x1000 + 64 * nth, 64, nth as u16)).collect();
        assert_eq!(spans(&pieces), expected);
        assert!(pieces.iter().all(|out| (out.at, out.port.0, out.tlp.requester) == (Ticks(105), 1, 99)));
        // Crosses a 64 B boundary, with addresses that are not multiples of 4.
        let pieces = Stage::new(SPEC).come(100, 0, read(3, 0x103D, 6));
        assert_eq!(spans(&pieces), [(0x103D, 3, 0), (0x1040, 3, 1)]);
    }

    #[test]
    fn completions_of_one_read_are_in_order_and_its_last_piece_frees_the_receive_buffer() {
        let mut stage = Stage::new(SPEC);
        let pieces = stage.come(0, 0, read(3, 0x1000, 128));
        stage.forwarder.left(0);
        assert!(stage.forwarder.freed.is_empty());
        stage.forwarder.left(1);
        assert_eq!(stage.forwarder.freed, [RootPortIndex(0)]);
        assert_eq!(stage.come(10, 1, answer(&pieces[1].tlp)), []);
        let back = stage.come(20, 1, answer(&pieces[0].tlp));
        assert_eq!(spans(&back), [(0x1000, 64, 3), (0x1040, 64, 3)]);
        assert!(back.iter().all(|out| (out.at, out.port.0, out.tlp.requester) == (Ticks(25), 0, 7)));
        assert!(stage.forwarder.is_idle());
    }

    #[test]
    fn completions_of_several_reads_follow_arrival_or_read_order() {
        for in_order in [false, true] {
            let mut stage = Stage::new(Spec { in_order, ..SPEC });
            let first = stage.come(0, 0, read(3, 0x1000, 64));
            let second = stage.come(0, 0, read(4, 0x2000, 64));
            let early = stage.come(10, 2, answer(&second[0].tlp));
            assert_eq!(early.len(), usize::from(!in_order));
            let late = stage.come(20, 1, answer(&first[0].tlp));
            let tags: Vec<u16> = early.iter().chain(&late).map(|out| out.tlp.tag).collect();
            assert_eq!(tags, if in_order { [3, 4] } else { [4, 3] });
        }
    }

    #[test]
    fn a_piece_without_a_tag_waits_until_one_is_free() {
        let mut stage = Stage::new(Spec { tags: 2, ..SPEC });
        let pieces = stage.come(0, 0, read(3, 0x1000, 192));
        assert_eq!(pieces.len(), 2);
        stage.forwarder.left(0);
        stage.forwarder.left(1);
        assert!(stage.forwarder.freed.is_empty(), "a piece has not left");
        let next = stage.come(30, 1, answer(&pieces[0].tlp));
        assert_eq!(spans(&next), [(0x1000, 64, 3), (0x1080, 64, 0)]);
        assert_eq!(next[1].at, Ticks(30), "the read arrived long before");
        stage.forwarder.left(0);
        assert_eq!(stage.forwarder.freed, [RootPortIndex(0)]);
    }

    #[test]
    fn collected_completions_end_at_multiples_of_the_maximum_payload() {
        let mut stage = Stage::new(Spec { collects: 256, ..SPEC });
        let pieces = stage.come(0, 0, read(3, 0x1041, 400));
        assert_eq!(pieces.len(), 7);
        for piece in &pieces {
            stage.forwarder.left(piece.tlp.tag);
        }
        let mut back = Vec::new();
        for (at, nth) in [1, 0, 2, 5, 4, 3, 6].into_iter().enumerate() {
            let Out { tlp, .. } = pieces[nth];
            let payload = stage.slab.take();
            let data: Vec<u8> = (0..64).map(|byte| (tlp.address as u8).wrapping_add(byte)).collect();
            stage.slab.bytes_mut(payload)[..64].copy_from_slice(&data);
            back.extend(stage.come(10 + at as u64, 1, Tlp { payload, ..answer(&tlp) }));
        }
        assert_eq!(spans(&back), [(0x1041, 191, 3), (0x1100, 209, 3)]);
        assert_eq!(back.iter().map(|out| out.at.0).collect::<Vec<_>>(), [17, 21]);
        for Out { tlp, .. } in back {
            let bytes = &stage.slab.bytes(tlp.payload)[..usize::from(tlp.length_dw) * 4];
            assert!((0..).zip(bytes).all(|(place, byte)| *byte == (tlp.address as u8).wrapping_add(place)), "{tlp:?}");
            stage.slab.give_back(tlp.payload);
        }
        assert!(stage.forwarder.is_idle() && stage.slab.in_use() == 0);
    }

    #[test]
    fn collected_data_leave_early_if_the_rest_needs_their_tag() {
        let mut stage = Stage::new(Spec { collects: 256, tags: 2, ..SPEC });
        let pieces = stage.come(0, 0, read(3, 0x1000, 256));
        assert_eq!(stage.come(10, 1, answer(&pieces[0].tlp)), [], "the second piece is outstanding");
        let out = stage.come(20, 1, answer(&pieces[1].tlp));
        assert_eq!(spans(&out), [(0x1000, 128, 3), (0x1080, 64, 0), (0x10C0, 64, 1)]);
        assert_eq!(stage.come(30, 1, answer(&out[1].tlp)), []);
        assert_eq!(spans(&stage.come(40, 1, answer(&out[2].tlp))), [(0x1080, 128, 3)]);
    }

    #[test]
    fn a_refused_piece_refuses_its_read_once_and_frees_everything() {
        let mut stage = Stage::new(Spec { tags: 3, ..SPEC });
        let pieces = stage.come(0, 0, read(3, 0x1000, 512));
        for tag in 0..3 {
            stage.forwarder.left(tag);
        }
        let payload = stage.slab.take();
        assert_eq!(stage.come(10, 1, Tlp { payload, ..answer(&pieces[2].tlp) }), []);
        let refused = stage.come(20, 1, Tlp { kind: TlpKind::Cpl, ..pieces[0].tlp });
        assert_eq!(refused.len(), 1);
        assert_eq!((refused[0].tlp.kind, refused[0].tlp.tag, refused[0].port.0), (TlpKind::Cpl, 3, 0));
        assert_eq!(stage.forwarder.freed, [RootPortIndex(0)]);
        let payload = stage.slab.take();
        assert_eq!(stage.come(30, 1, Tlp { payload, ..answer(&pieces[1].tlp) }), []);
        assert!(stage.forwarder.is_idle() && stage.slab.in_use() == 0);
        // Every tag is free again.
        assert_eq!(stage.come(40, 0, read(4, 0x1000, 512)).len(), 3);
    }

    /// Moves counters by 5 and records the values of the state.
    #[derive(Default)]
    struct Moved(Vec<u64>);

    impl Visitor for Moved {
        fn state(&mut self, value: u64) {
            self.0.push(value);
        }
        fn moment(&mut self, _: &mut Ticks) {}
        fn time(&mut self, _: &mut Ticks) {}
        fn mark(&mut self, _: &mut Ticks) {}
        fn counter(&mut self, count: &mut u64) {
            *count += 5;
        }
        fn log(&mut self, _: &mut Vec<Ticks>, _: usize) {}
    }

    impl Survey for Moved {
        fn tlp(&mut self, _: &mut Tlp) {}
        fn place(&mut self, _: u16, _: Verb, _: u64, _: &mut u64) {}
        fn tag(&mut self, _: u16, tag: u16) -> u64 {
            tag.into()
        }
    }

    #[test]
    fn outstanding_pieces_belong_to_their_read_after_its_number_has_moved() {
        let mut stage = Stage::new(SPEC);
        let pieces = stage.come(0, 0, read(3, 0x1000, 128));
        let mut moved = Moved::default();
        stage.forwarder.visit(&mut moved);
        // Two pieces, the six free tags, and nothing held, to be sent or freed.
        assert!(moved.0.ends_with(&[2, 2, 3, 4, 5, 6, 7, 0, 0, 0]), "{:?}", moved.0);
        for (nth, piece) in pieces.iter().enumerate() {
            stage.forwarder.left(nth as u16);
            let back = stage.come(10, 1, answer(&piece.tlp));
            assert_eq!(spans(&back), [(0x1000 + 64 * nth as u64, 64, 3)]);
        }
        assert!(stage.forwarder.is_idle());
    }
}
