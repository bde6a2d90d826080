//! The completer of the host: answers the reads of the device.

use crate::situation::{Coverage, Situation};
use crate::stream::Outgoing;
use crate::twist::{self, Piece};
use fastrand::Rng;
use lanemark_wire::byte_enable::{byte_count, lower_address};
use lanemark_wire::{Completion, FunctionId, Header, MemoryRequest, Rcb};
use std::collections::{BTreeMap, VecDeque};

/// ID of the root complex.
pub(crate) const HOST: FunctionId = FunctionId(0);
/// Clocks by which the last legal completion precedes the timeout of the device.
const MARGIN: u64 = 24;

/// How reads are answered.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Manner {
    pub split: Option<Situation>,
    pub order: Option<Situation>,
    pub delay: Option<Situation>,
}

/// The rest of an answer.
#[derive(Debug)]
struct Answer {
    pieces: VecDeque<Piece>,
    is_started: bool,
    due: u64,
    /// Clock at which the last piece has to be delivered; `None` after it has passed on purpose.
    deadline: Option<u64>,
    tag: u16,
}

/// An outstanding read of the device.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Clock from which the device may consider it as timed out.
    expires: u64,
}

/// Limits of completions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub mps: u16,
    pub tags: u16,
    pub timeout_clocks: u64,
    /// Most clocks by which a timer of the device may exceed `timeout_clocks`.
    pub timer_slack_clocks: u64,
    pub rcb: Rcb,
    pub beat_bytes: usize,
}

/// Outstanding reads of the device, and what is still to be sent to it.
#[derive(Debug)]
pub(crate) struct Completer {
    pub manner: Manner,
    pub limits: Limits,
    /// The illegal situation to create, and the number of reads before it.
    pub twist: Option<(Situation, u32)>,
    answers: Vec<Answer>,
    open: BTreeMap<u16, Open>,
    /// The illegal situation that was applied last, until it is taken.
    pub applied: Option<Situation>,
    /// Whether the device accepts or offers beats slowly, because the partner wants that.
    pub is_slow: bool,
    /// Tag that is answered at once.
    favourite: Option<u16>,
    /// Tags that were used before.
    seen: Vec<u16>,
}

impl Completer {
    pub fn new(limits: Limits) -> Completer {
        Completer {
            manner: Manner::default(),
            limits,
            twist: None,
            applied: None,
            is_slow: false,
            answers: Vec::new(),
            open: BTreeMap::new(),
            favourite: None,
            seen: Vec::new(),
        }
    }

    /// Whether nothing is left to send.
    pub fn is_idle(&self) -> bool {
        self.answers.is_empty()
    }

    /// Whether the device waits for the read with this tag.
    pub fn is_open(&self, tag: u16, clock: u64) -> bool {
        self.open.get(&tag).is_some_and(|open| clock < open.expires)
    }

    /// Whether the device waits for any read.
    pub fn has_open(&self, clock: u64) -> bool {
        self.open.values().any(|open| clock < open.expires)
    }

    /// Releases the tag of a completed read.
    pub fn finished(&mut self, tag: u16) {
        self.open.remove(&tag);
    }

    /// Forgets which reads the device waits for: it was reset. Their completions are still sent.
    pub fn reset_device(&mut self) {
        self.open.clear();
        self.twist = None;
    }

    /// Prepares the completions of a read. `data` are the DWs from its address.
    pub fn read(&mut self, request: &MemoryRequest, data: &[u8], clock: u64, random: &mut Rng) {
        let MemoryRequest { tag, address, first_be, last_be, length, requester_id, .. } = *request;
        let (count, lower) = (byte_count(first_be, last_be, length), lower_address(address, first_be));
        let mut pieces = VecDeque::new();
        let (mut at, mut left) = (0_u32, u32::from(count));
        let start = u32::from(lower);
        while left > 0 {
            let bytes = self.piece_bytes(start + at, left, random);
            let from = (start + at) & !3;
            let to = (start + at + bytes).next_multiple_of(4);
            let first_dw = u32::from(lower) & !3;
            let payload = &data[(from - first_dw) as usize..(to - first_dw) as usize];
            let low = ((start + at) & 0x7f) as u8;
            let mut completion = Completion::data(HOST, requester_id, tag, low, left as u16, bytes as u16);
            completion.common = request.common;
            completion.common.td = false;
            let mut tlp = vec![0; 12];
            // The completion is legal: the split follows the rules of the specification.
            let _ = Header::Completion(completion).emit(&mut tlp);
            tlp.extend_from_slice(payload);
            at += bytes;
            left -= bytes;
            pieces.push_back(Piece::legal(tlp, (left == 0).then_some(tag)));
        }
        let mut answer = self.answer(tag, clock, random);
        answer.pieces = pieces;
        match self.twist {
            Some((situation, 0)) => {
                // A completer that fails may fail for good.
                let is_for_good = situation == Situation::NoCompletion && random.bool();
                self.twist = is_for_good.then_some((situation, 0));
                self.applied = Some(situation);
                let idle = self.idle_tag(tag, clock, random);
                twist::apply(situation, &mut answer.pieces, idle, random);
                match situation {
                    Situation::NoCompletion => answer.pieces.clear(),
                    Situation::LateCompletion => {
                        let late = random.u64(self.limits.timeout_clocks / 16..self.limits.timeout_clocks / 2);
                        let timeout = self.limits.timeout_clocks + self.limits.timer_slack_clocks;
                        answer.due = clock + timeout + 64 + late;
                        answer.deadline = None;
                    }
                    _ => {}
                }
            }
            Some((situation, reads)) => self.twist = Some((situation, reads - 1)),
            None => {}
        }
        // A reused tag ends what was to come for the former read.
        self.answers.retain(|other| other.tag != tag || other.deadline.is_some());
        let expires = clock + self.limits.timeout_clocks - MARGIN / 2;
        self.open.insert(tag, Open { expires });
        if !self.seen.contains(&tag) {
            self.seen.push(tag);
        }
        if !answer.pieces.is_empty() {
            self.answers.push(answer);
        }
    }

    fn answer(&mut self, tag: u16, clock: u64, random: &mut Rng) -> Answer {
        let deadline = clock + self.limits.timeout_clocks - MARGIN;
        let due = match self.manner.delay {
            Some(Situation::DelayedToTimeout) => deadline,
            Some(Situation::RandomDelays) => clock + random.u64(0..self.limits.timeout_clocks / 4),
            Some(Situation::TagsReusedAtOnce) => {
                let favourite = *self.favourite.get_or_insert(tag);
                if favourite == tag { clock } else { clock + self.limits.timeout_clocks / 4 }
            }
            _ => clock,
        };
        Answer { pieces: VecDeque::new(), is_started: false, due, deadline: Some(deadline), tag }
    }

    /// Bytes of the completion at `at` (modulo 128), of `left` bytes.
    fn piece_bytes(&self, at: u32, left: u32, random: &mut Rng) -> u32 {
        let rcb = self.limits.rcb.bytes();
        let to_boundary = rcb - at % rcb;
        let most = u32::from(self.limits.mps);
        let longest = (most / rcb).max(1) * rcb - at % rcb;
        let wanted = match self.manner.split {
            Some(Situation::SplitAtEveryRcb) => to_boundary,
            Some(Situation::SplitAnywhere) => to_boundary + rcb * random.u32(0..most.div_ceil(rcb).max(1)),
            _ => longest,
        };
        wanted.min(longest).min(left)
    }

    /// A tag that the device does not use now: one that differs in one bit, or that it used before, or any.
    fn idle_tag(&self, tag: u16, clock: u64, random: &mut Rng) -> Option<u16> {
        let idle = |tag: &u16| !self.open.contains_key(tag) && !self.is_open(*tag, clock);
        let alias = tag ^ 1 << random.u8(0..8);
        if alias < self.limits.tags && idle(&alias) && random.bool() {
            return Some(alias);
        }
        let used: Vec<u16> = self.seen.iter().copied().filter(idle).collect();
        if !used.is_empty() && random.bool() {
            return Some(used[random.usize(0..used.len())]);
        }
        let free: Vec<u16> = (0..self.limits.tags.min(256)).filter(idle).collect();
        (!free.is_empty()).then(|| free[random.usize(0..free.len())])
    }

    /// The TLPs to send next; empty if none is due.
    pub fn next(&mut self, clock: u64, random: &mut Rng, coverage: &mut Coverage) -> Vec<Outgoing> {
        if self.answers.is_empty() {
            return Vec::new();
        }
        let piece = |piece: &Piece| (piece.bytes() / self.limits.beat_bytes) as u64 + 2;
        let beats = |answer: &Answer| answer.pieces.iter().map(piece).sum::<u64>();
        let pending: u64 = self.answers.iter().filter(|answer| answer.deadline.is_some()).map(beats).sum();
        let first = self.answers.iter().enumerate().filter_map(|(place, answer)| Some((answer.deadline?, place))).min();
        // Requests of the host go between, and the device may not accept each beat at once.
        let pending = if self.is_slow { 2 * pending + 128 } else { pending + pending / 2 + 32 };
        let urgent = first.filter(|(deadline, _)| clock + pending >= *deadline).map(|(_, place)| place);
        let place = match urgent {
            Some(place) => place,
            None => match self.choose(clock, random) {
                Some(place) => place,
                None => return Vec::new(),
            },
        };
        self.count(place, clock, coverage);
        let answer = &mut self.answers[place];
        answer.is_started = true;
        let piece = answer.pieces.pop_front();
        if answer.pieces.is_empty() {
            self.answers.remove(place);
        }
        let mut outgoing = piece.map(Piece::into_outgoing).unwrap_or_default();
        // A tag that was idle when the situation was planned may be in use now.
        let is_unexpected = |outgoing: &Outgoing| outgoing.twist == Some(Situation::UnexpectedTag);
        outgoing.retain(|outgoing| {
            !is_unexpected(outgoing) || outgoing.hazard.is_some_and(|tag| !self.open.contains_key(&tag))
        });
        outgoing
    }

    fn choose(&self, clock: u64, random: &mut Rng) -> Option<usize> {
        let due: Vec<usize> = (0..self.answers.len()).filter(|place| self.answers[*place].due <= clock).collect();
        if due.is_empty() {
            return None;
        }
        let favourite = due.iter().find(|place| Some(self.answers[**place].tag) == self.favourite);
        if let (Some(Situation::TagsReusedAtOnce), Some(place)) = (self.manner.delay, favourite) {
            return Some(*place);
        }
        Some(match self.manner.order {
            Some(Situation::InterleavedAcrossTags) => due[random.usize(0..due.len())],
            Some(Situation::ReorderedAcrossTags) => {
                let started = due.iter().find(|place| self.answers[**place].is_started);
                started.copied().unwrap_or_else(|| due[random.usize(0..due.len())])
            }
            _ => due[0],
        })
    }

    /// Counts what sending from this place shows to the device.
    fn count(&self, place: usize, clock: u64, coverage: &mut Coverage) {
        let answer = &self.answers[place];
        if let Some(split) = self.manner.split
            && answer.pieces.len() > 1
            && !answer.is_started
        {
            coverage.count(split);
        }
        let interleaved = answer.is_started && self.answers[..place].iter().any(|other| other.is_started)
            || !answer.is_started && self.answers.iter().any(|other| other.is_started);
        if interleaved {
            coverage.count(Situation::InterleavedAcrossTags);
        } else if place > 0 && !answer.is_started {
            coverage.count(Situation::ReorderedAcrossTags);
        }
        match self.manner.delay {
            Some(Situation::DelayedToTimeout)
                if answer.deadline.is_some_and(|deadline| clock + self.limits.timeout_clocks / 8 >= deadline) =>
            {
                coverage.count(Situation::DelayedToTimeout);
            }
            Some(Situation::RandomDelays) => coverage.count(Situation::RandomDelays),
            Some(Situation::TagsReusedAtOnce) if Some(answer.tag) == self.favourite && self.answers.len() > 1 => {
                coverage.count(Situation::TagsReusedAtOnce);
            }
            _ => {}
        }
    }

    /// Begins a transfer.
    pub fn begin(&mut self, manner: Manner, twist: Option<(Situation, u32)>) {
        self.manner = manner;
        self.twist = twist;
        self.favourite = None;
    }
}
