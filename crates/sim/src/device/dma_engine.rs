//! A DMA engine: makes a device's own requests, and takes what comes back.
//!
//! ```text
//!  command --start--> channels, a job each --data path--egress--> link
//!                        ^ tags, room before the link, bytes in TX or EP_TX
//!  sink, RX <--beats--- data path <--ingress-- completions
//! ```
//!
//! Ports: [`DmaEngine::start`] gives a [channel] a job; [`DmaEngine::issue`] makes its next request when that is
//! [due](DmaEngine::due); [`DmaEngine::left`] hears that a request has left for the link; [`DmaEngine::arrive`] takes
//! completions from the link, and [`DmaEngine::take_data`] puts them away.
//!
//! A request occupies its channel for its beats, header and payload, and what a request costs besides; all channels share the data
//! path and the tags, and those that can make a request take turns. A completion occupies the way of data in. A job may have a
//! read behind each of its writes. What a write carries says where it goes and in which pass, as a core's stores do.
//!
//! A job may come with a driver ([`DmaEngine::arm`]), each channel with its own: each of its transfers then begins when the
//! channel's [doorbell](DmaEngine::store_arrives) is rung, may have to wait for a descriptor that is
//! [fetched](crate::device::descriptor_fetcher), and is told of when it is over: by a word in host memory or a message behind its
//! last write, or in a register when its last write has left and its last read has come. A message of a masked
//! [vector](crate::device::msi_x) goes when that is unmasked.
//!
//! Waits recorded: `Engine` while it is occupied, `Tag` when as many reads as there are tags were under way,
//! `ReadRoundTrip` when as many transfers as the job allows were, `Descriptor` when none had come, and what the link waited
//! for when there was no room before it; `Fifo` when a queue was empty, or too full for what was read.
//!
//! [channel]: crate::device::channel

use crate::device::atc::Atc;
use crate::device::channel::{Channel, Open, Shared};
use crate::device::data_path::DataPath;
use crate::device::descriptor_fetcher::{self, DescriptorFetcher};
use crate::device::interconnect::{Interconnect, Mode, Queue};
use crate::device::job::{Job, MostBytes, Piece};
use crate::device::msi_x::{MsiX, Vector};
use crate::device::region::Region;
use crate::host::stored_data::stored_bytes;
use crate::tlp::{Flaw, Tlp, TlpKind, span};
use lanemark_engine::{Memory, Slab, Wire};
use lanemark_machine::{Cause, Completion, DmaCall, Partner, Samples, Verb};
use lanemark_platform::Mailbox;
use lanemark_units::Ticks;
use std::ops::Range;

mod ats;
pub mod spec;
mod steady;

pub use spec::Spec;

/// Bytes of the word or message that tells of an end.
const NOTICE_BYTES: u64 = 4;

/// What a sink holds before anything arrived: nothing that memory holds at the same place.
const EMPTY: u8 = 0x5A;

/// A read under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Read {
    /// Bytes that have not come.
    left: u32,
    /// Whose it is.
    channel: usize,
    /// The number of its transfer.
    transfer: u64,
    /// When it was made, and the address behind its last byte.
    asked: Ticks,
    end: u64,
}

/// The next request and the channel that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Which channel.
    pub channel: usize,
    /// When it is at the link.
    pub at: Ticks,
    /// The packet.
    pub tlp: Tlp,
}

impl Made {
    /// Where one is put.
    pub const INVALID: Made = Made { channel: 0, at: Ticks::NEVER, tlp: Tlp::of(TlpKind::MWr) };
}

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmaEngine {
    spec: Spec,
    channels: Vec<Channel>,
    /// Which channel made the last request.
    served: usize,
    /// When the next one is made, and by which channel: as [`DmaEngine::due`] found last.
    next: (Ticks, usize),
    /// The channel whose status register does not know yet what it has done, until somebody took it.
    status_due: Option<usize>,
    path: DataPath,
    reads: Vec<Read>,
    free_tags: Vec<u16>,
    /// When a tag became free while there was none, and what it had waited for.
    tag_at: Ticks,
    tag_because: Cause,
    /// Completions on their way in, by the time their last beat is taken.
    arriving: Wire<Tlp>,
    data_until: Ticks,
    /// When the last one was taken.
    taken_at: Ticks,
    /// The queues between it and the user's circuit, if there are any.
    pub queues: Option<Interconnect>,
    /// Its vectors, if it interrupts by MSI-X.
    pub(crate) msi_x: Option<MsiX>,
    /// The translations that it keeps, if it has ATS.
    pub atc: Option<Box<Atc>>,
    /// What came, at its offset in the window's space.
    pub sink: Memory,
    /// When the last bytes came.
    pub received_at: Ticks,
    /// Bytes that came.
    pub received_bytes: u64,
    /// How long reads took that a job wants to be few at once, in the order in which they ended, up to
    /// [`Samples::MOST_LATENCIES`].
    pub latencies: Vec<Ticks>,
    /// The first address of a read that was refused.
    pub refused: Option<u64>,
    /// What its channels waited for since they were told to begin, by [`Cause::index`].
    pub waits: [Ticks; Cause::ALL.len()],
}

impl DmaEngine {
    /// With nothing to do.
    #[must_use]
    pub fn new(spec: Spec) -> DmaEngine {
        let mut fetchers = spec.mailboxes.iter().zip(0..).map(|(mailbox, nth)| {
            DescriptorFetcher::new(descriptor_fetcher::Spec {
                requester: spec.requester,
                first_tag: spec.tags + nth * spec.prefetch_descriptors,
                depth: spec.prefetch_descriptors,
                entry_bytes: spec.descriptor_entry_bytes,
                ring: mailbox.ring,
                ring_bytes: mailbox.ring_bytes,
            })
        });
        DmaEngine {
            channels: (0..spec.channels.max(1)).map(|_| Channel::new(fetchers.next())).collect(),
            served: 0,
            next: (Ticks::NEVER, 0),
            status_due: None,
            path: DataPath::default(),
            reads: vec![Read::default(); usize::from(spec.tags)],
            free_tags: (0..spec.tags).rev().collect(),
            tag_at: Ticks::ZERO,
            tag_because: Cause::Tag,
            arriving: Wire::default(),
            data_until: Ticks::ZERO,
            taken_at: Ticks::ZERO,
            queues: spec.queues.map(Interconnect::new),
            msi_x: spec.vectors.zip(spec.mailboxes.first()).map(|(table, mailbox)| MsiX::new(table, mailbox.message)),
            atc: spec.atc.map(|atc| Box::new(Atc::new(atc))),
            sink: Memory::holding(EMPTY),
            received_at: Ticks::ZERO,
            received_bytes: 0,
            latencies: Vec::new(),
            refused: None,
            waits: [Ticks::ZERO; Cause::ALL.len()],
            spec,
        }
    }

    /// Whether its queues are joined, so that what passes one matters to others.
    #[inline]
    #[must_use]
    pub fn joins_queues(&self) -> bool {
        self.queues.as_ref().is_some_and(Interconnect::is_joined)
    }

    /// How many jobs it can have at once.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Most bytes of its requests.
    #[must_use]
    pub fn most_bytes(&self) -> MostBytes {
        MostBytes { read: self.spec.read_bytes, write: self.spec.write_bytes }
    }

    /// Tells a channel to make a job.
    pub fn start(&mut self, now: Ticks, channel: usize, job: Job) {
        self.invalidate(&job);
        let from = now + self.spec.start;
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.begin(now, job.released(), from, self.spec.tick);
        }
    }

    /// The same of one that begins a transfer when all of it is in the queue before it.
    pub fn start_whole(&mut self, now: Ticks, channel: usize, job: Job) {
        self.start(now, channel, job);
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.is_whole = true;
        }
    }

    /// Tells a channel to make the transfer of `call`, `passes` times, each when its bell is rung; says how many it has told
    /// of before. `None` if there is no such channel, or none meets a driver.
    pub fn arm(&mut self, now: Ticks, call: &DmaCall, base: u64, passes: u64, first_pass: u64) -> Option<u64> {
        let mailbox = *self.spec.mailboxes.get(call.channel as usize)?;
        let job = Job::new(&call.transfer, base, passes, first_pass, self.most_bytes());
        self.invalidate(&job);
        let channel = self.channels.get_mut(call.channel as usize)?;
        channel.begin(now, job, Ticks::ZERO, self.spec.tick);
        channel.arm(call, mailbox);
        Some(channel.done)
    }

    /// The transfers of a channel's calls are parts of copies, the last of each of so many bytes.
    pub fn in_parts(&mut self, channel: usize, last_part: u64) {
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.job = channel.job.take().map(|job| job.in_parts(last_part));
        }
    }

    /// So many passes of a channel's job are not made.
    pub fn leave_out(&mut self, channel: usize, passes: u64) {
        if let Some(job) = self.channels.get_mut(channel).and_then(|channel| channel.job.as_mut()) {
            job.leave_out(passes);
        }
    }

    /// Forgets what it observed of jobs before.
    fn invalidate(&mut self, job: &Job) {
        self.latencies.clear();
        if job.transfer.outstanding.is_some() {
            self.latencies.reserve(job.transfers.min(Samples::MOST_LATENCIES as u64) as usize);
        }
        (self.refused, self.waits) = (None, [Ticks::ZERO; Cause::ALL.len()]);
    }

    /// A store to the card was accepted: if it is to a doorbell, the next transfer of its channel may begin. Says whether it was.
    #[inline]
    pub fn store_arrives(&mut self, now: Ticks, address: u64) -> bool {
        let Some(first) = self.spec.mailboxes.first() else { return false };
        let nth = address.wrapping_sub(first.doorbell) / Mailbox::REGISTER_BYTES;
        let Some(channel) = self.channels.get_mut(nth as usize) else { return false };
        let is_rung = channel.calls.as_ref().is_some_and(|calls| calls.mailbox.doorbell == address);
        if is_rung {
            channel.ring(now, &self.spec);
        }
        is_rung
    }

    /// Its table of vectors, if it has one, by bus address.
    pub(crate) fn vectors_at(&self) -> Option<Range<u64>> {
        self.msi_x.as_ref().map(MsiX::table)
    }

    /// A store to a region of the card: if it is to the table of vectors, that is another now. Says whether a message may go.
    #[inline]
    pub(crate) fn vectors_change(&mut self, now: Ticks, tlp: &Tlp, region: &mut Region) -> bool {
        let Some(msi_x) = self.msi_x.as_mut().filter(|msi_x| msi_x.is_touched(tlp)) else { return false };
        msi_x.read_from(&mut region.memory, msi_x.table_at() - region.spec.address);
        let mut goes = false;
        for (nth, channel) in self.channels.iter_mut().enumerate() {
            let is_masked = msi_x.is_masked(msi_x.vector_of(nth));
            if let Some(calls) = channel.calls.as_mut().filter(|calls| calls.held_until == Ticks::NEVER && !is_masked) {
                (calls.held_until, goes) = (now, true);
            }
        }
        goes
    }

    /// Makes no more requests; what is under way arrives.
    pub fn stop(&mut self) {
        self.channels.iter_mut().for_each(|channel| channel.stop(self.spec.tick));
        if let Some(queues) = &mut self.queues {
            queues.join(Mode::Straight, 0);
        }
    }

    /// Makes no more requests and tells nobody of an end; what was asked for still comes to its place.
    pub fn halt(&mut self) {
        self.channels.iter_mut().for_each(Channel::halt);
    }

    fn read_of(&self, tag: u16) -> Option<&Read> {
        self.reads.get(usize::from(tag)).filter(|read| read.left > 0)
    }

    /// When the read of this tag was made, of data or of a descriptor, if it is under way.
    #[must_use]
    pub fn asked_at(&self, tag: u16) -> Option<Ticks> {
        let of_descriptor = || self.channels.get(self.fetching_channel(tag)?)?.fetcher.as_ref()?.asked_at(tag);
        let of_question = || self.atc.as_ref()?.asked_at(tag);
        self.read_of(tag).map(|read| read.asked).or_else(of_question).or_else(of_descriptor)
    }

    /// The address behind the last byte of the read of this tag, if it is under way.
    #[must_use]
    pub fn read_until(&self, tag: u16) -> Option<u64> {
        self.read_of(tag).map(|read| read.end)
    }

    /// Whether everything was asked for and every read has come.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.channels.iter().all(Channel::is_done)
    }

    /// How many transfers a channel has told a driver of, and the register that says so, if that does not know yet; or its
    /// vector's pending bits.
    #[inline]
    pub fn take_status(&mut self) -> Option<(u64, u64)> {
        let nth = self.status_due.take()?;
        let channel = self.channels.get(nth)?;
        let interrupts = channel.calls.as_ref().is_some_and(|calls| calls.completion == Completion::Interrupt);
        match &self.msi_x {
            Some(msi_x) if interrupts => Some(msi_x.pending_word(msi_x.vector_of(nth))),
            _ => Some((self.status_at(nth)?, channel.done)),
        }
    }

    /// Bus address of the register that says what a channel has done.
    #[must_use]
    pub fn status_at(&self, channel: usize) -> Option<u64> {
        self.spec.mailboxes.get(channel).map(|mailbox| mailbox.status)
    }

    /// How many transfers a channel has told a driver of.
    #[must_use]
    pub fn done(&self, channel: usize) -> Option<u64> {
        self.channels.get(channel).map(|channel| channel.done)
    }

    /// What the timer of a channel shows; 0 of one that is not there.
    #[must_use]
    pub fn timer_at(&self, channel: usize, now: Ticks) -> u64 {
        self.channels.get(channel).map_or(0, |channel| channel.timer_at(now, self.spec.tick))
    }

    /// Somebody writes to the timer of a channel.
    pub fn set_timer(&mut self, channel: usize, now: Ticks, value: u64) {
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.set_timer(now, value, self.spec.tick);
        }
    }

    /// Bytes that came for a channel.
    #[must_use]
    pub fn received_by(&self, channel: usize) -> u64 {
        self.channels.get(channel).map_or(0, |channel| channel.received_bytes)
    }

    /// How long the requests of a channel waited for descriptors since it was told to take calls.
    #[must_use]
    pub fn fetching(&self, channel: usize) -> Ticks {
        let calls = self.channels.get(channel).and_then(|channel| channel.calls.as_ref());
        calls.map_or(Ticks::ZERO, |calls| calls.fetching)
    }

    /// When it made its last request.
    #[must_use]
    pub fn issued_at(&self) -> Ticks {
        self.channels.iter().map(|channel| channel.issued_at).max().unwrap_or(Ticks::ZERO)
    }

    /// What it waits for, if there is something to be asked for or to come.
    #[must_use]
    pub fn waiting_for(&self) -> Option<Cause> {
        let held = self.arriving.first().is_some_and(|tlp| self.room_at(tlp) == Ticks::NEVER);
        let shared = self.shared();
        if self.atc.as_ref().is_some_and(|atc| atc.awaits_answers()) {
            return Some(Cause::Translation);
        }
        if held { Some(Cause::Fifo) } else { self.channels.iter().find_map(|channel| channel.waiting_for(&shared)) }
    }

    #[inline]
    fn shared(&self) -> Shared<'_> {
        Shared {
            spec: &self.spec,
            tag_at: (!self.free_tags.is_empty()).then_some(self.tag_at),
            tag_because: self.tag_because,
            queues: self.queues.as_ref(),
        }
    }

    /// Looks when the next request is made, as far as is known now: channels that can make one take turns.
    #[inline]
    pub fn due(&mut self) -> Ticks {
        let shared = self.shared();
        let mut next = (Ticks::NEVER, self.served);
        // Those behind the one that was served last come before those up to it.
        let comes_before = |one: usize, other: usize| (one <= self.served, one) < (other <= self.served, other);
        for (place, channel) in self.channels.iter().enumerate().filter(|(_, channel)| channel.job.is_some()) {
            let mut due = channel.due(&shared);
            if let Some(atc) = &self.atc {
                due = due.max(atc.held_until(place));
            }
            if due < next.0 || due == next.0 && comes_before(place, next.1) {
                next = (due, place);
            }
        }
        if self.atc.as_ref().is_some_and(|atc| atc.is_done()) {
            next.0 = Ticks::ZERO;
        }
        self.next = next;
        next.0
    }

    /// Makes the next request, if it is due, to where the caller wants it; says whether it did.
    #[inline]
    pub fn issue(&mut self, now: Ticks, slab: &mut Slab, made: &mut Made) -> bool {
        let (due, channel) = self.next;
        if due > now {
            return false;
        }
        (self.served, made.channel) = (channel, channel);
        if self.atc.is_some() && self.speaks_of_translations(channel, now, made) {
            return true;
        }
        let at = if self.channels[channel].calls.is_some() {
            self.issue_of_call(channel, now, slab, &mut made.tlp)
        } else {
            self.issue_of(channel, now, slab, &mut made.tlp)
        };
        made.at = at.unwrap_or(Ticks::NEVER);
        at.is_some()
    }

    /// The next request of a channel that meets a driver: for a descriptor, of a notice, or for data.
    fn issue_of_call(&mut self, place: usize, now: Ticks, slab: &mut Slab, made: &mut Tlp) -> Option<Ticks> {
        let channel = &mut self.channels[place];
        let calls = channel.calls?;
        if channel.fetch_due(&calls, &self.spec) <= now {
            *made = channel.fetcher.as_mut()?.ask(now)?;
            self.translate(made);
            return Some(self.send(place, now, self.beats_of(made), self.spec.read.request));
        }
        if channel.notice_due(&calls, &self.spec) <= now {
            return self.tell(place, now, slab, made);
        }
        self.issue_of(place, now, slab, made)
    }

    /// The next request of a channel for data; says when it is at the link.
    #[inline]
    fn issue_of(&mut self, place: usize, now: Ticks, slab: &mut Slab, made: &mut Tlp) -> Option<Ticks> {
        let piece = self.channels[place].job.as_ref()?.piece?;
        let Piece { number, chunk, offset, verb } = piece;
        let is_first = self.channels[place].begins_descriptor(&piece, &self.spec);
        let (cause, waited) = self.charge(place, now, &piece, is_first);
        self.waits[cause.index()] += waited;
        let channel = &mut self.channels[place];
        let job = channel.job.as_mut()?;
        let (address, length_dw, first_be, last_be) = span(chunk.address, u64::from(chunk.bytes));
        let Spec { requester, relaxed, id_based, .. } = self.spec;
        let mut tlp =
            Tlp { address, length_dw, first_be, last_be, requester, relaxed, id_based, ..Tlp::of(TlpKind::MWr) };
        if verb == Verb::Store {
            tlp.payload = slab.take();
            // Nobody looks at the tag of a write: it says whose it is.
            tlp.tag = place as u16;
            let skip = (chunk.address - address) as usize;
            let data = &mut slab.bytes_mut(tlp.payload)[skip..skip + chunk.bytes as usize];
            let turn = job.turn_of(number);
            let feeder = Channel::feeder(job);
            if !self.queues.as_mut().is_some_and(|queues| queues.give(now, feeder, data)) {
                stored_bytes(chunk.address, turn, data);
            }
            slab.note(tlp.payload, number);
        } else {
            tlp.kind = TlpKind::MRd;
            tlp.tag = self.free_tags.pop()?;
            let end = chunk.address + u64::from(chunk.bytes);
            self.reads[usize::from(tlp.tag)] =
                Read { left: chunk.bytes, channel: place, transfer: number, asked: now, end };
            if channel.open.back().is_none_or(|last| last.number != number) {
                let begun = self.atc.as_ref().map_or(now, |atc| atc.begun(now));
                channel.open.push_back(Open { number, left: job.bytes_of(number), begun });
            }
        }
        channel.described = Some((number, verb));
        let is_described = is_first && job.transfer.partner == Partner::Host;
        job.advance();
        let descriptor = if is_described { self.spec.descriptor } else { Ticks::ZERO };
        if self.atc.is_some() {
            self.translate(&mut tlp);
        }
        let rate = if verb == Verb::Store { &self.spec.write } else { &self.spec.read };
        let beats = self.beats_of(&tlp);
        let besides = rate.besides(chunk, offset, beats);
        *made = tlp;
        Some(self.send(place, now, beats, descriptor + besides))
    }

    /// What a channel waited for before a request, and how long; a descriptor that was fetched for it is begun.
    #[inline]
    fn charge(&mut self, place: usize, now: Ticks, piece: &Piece, is_first: bool) -> (Cause, Ticks) {
        let (tag_at, tag_because) = (Some(self.tag_at), self.tag_because);
        let shared = Shared { spec: &self.spec, tag_at, tag_because, queues: self.queues.as_ref() };
        let answered_at = self.atc.as_ref().map_or(Ticks::ZERO, |atc| atc.answered_at(place));
        let channel = &mut self.channels[place];
        let is_fetched = channel.calls.is_some_and(|calls| calls.is_fetched);
        let fetched = channel.fetcher.as_mut().filter(|_| is_first && is_fetched);
        let held = fetched.map_or(Ticks::ZERO, |fetcher| {
            let held = fetcher.held_since();
            fetcher.begin(now);
            held
        });
        channel.charge(now, piece, [held, answered_at], &shared)
    }

    /// A TLP of so many beats occupies its channel, before them too, and is on its way; says when it is at the link.
    #[inline]
    fn send(&mut self, place: usize, now: Ticks, beats: Ticks, before: Ticks) -> Ticks {
        let until = self.path.reserve(now, now + before, beats);
        let channel = &mut self.channels[place];
        channel.occupied_until = until;
        channel.unsent += 1;
        until + self.spec.egress
    }

    /// Tells the driver that one more transfer is over.
    fn tell(&mut self, place: usize, now: Ticks, slab: &mut Slab, made: &mut Tlp) -> Option<Ticks> {
        let channel = &mut self.channels[place];
        let ended = channel.moved_at();
        let calls = channel.calls.as_mut()?;
        let mut vector = None;
        if let Some(msi_x) = self.msi_x.as_mut().filter(|_| calls.completion == Completion::Interrupt) {
            self.status_due = Some(place);
            vector = msi_x.send(msi_x.vector_of(place));
            if vector.is_none() {
                calls.held_until = Ticks::NEVER;
                return None;
            }
        }
        calls.told += 1;
        channel.done += 1;
        channel.timer.stop(ended, self.spec.tick);
        let at = match calls.completion {
            Completion::Register => {
                self.status_due = Some(place);
                return None;
            }
            Completion::Flag => calls.mailbox.flag,
            Completion::Interrupt => vector.map_or(calls.mailbox.message, |vector| vector.address),
        };
        let data = vector.map_or(channel.done as u32, |Vector { data, .. }| data);
        let (address, length_dw, first_be, last_be) = span(at, NOTICE_BYTES);
        let payload = slab.take();
        slab.bytes_mut(payload)[..NOTICE_BYTES as usize].copy_from_slice(&data.to_le_bytes());
        let requester = self.spec.requester;
        let tag = place as u16;
        *made = Tlp { address, length_dw, first_be, last_be, requester, tag, payload, ..Tlp::of(TlpKind::MWr) };
        self.translate(made);
        Some(self.send(place, now, self.beats_of(made), self.spec.write.request))
    }

    #[inline]
    fn beats(&self, bytes: u32) -> Ticks {
        self.spec.beat * u64::from((bytes + self.spec.beat_bytes - 1) >> self.spec.beat_bytes.trailing_zeros())
    }

    /// One of a channel's requests left for the link, having waited for `because`; says whether its next one may be due at
    /// another time now.
    #[inline]
    pub fn left(&mut self, now: Ticks, channel: usize, because: Option<Cause>) -> bool {
        let matters = self.channels[channel].left(now, because, &self.spec);
        self.atc.is_some() && self.all_left() || matters
    }

    /// A completion is checked at `at`. It may be told so before that time: completions come in order.
    #[inline]
    pub fn arrive(&mut self, at: Ticks, tlp: Tlp) {
        self.data_until = self.data_until.max(at + self.spec.ingress) + self.beats_of(&tlp);
        if !self.atc.as_mut().is_some_and(|atc| atc.comes(self.data_until, tlp)) {
            self.arriving.send(self.data_until, tlp);
        }
    }

    /// Beats of a TLP.
    #[inline]
    fn beats_of(&self, tlp: &Tlp) -> Ticks {
        self.beats(u32::from(tlp.header_dw()) * 4 + tlp.payload_bytes())
    }

    /// When there is room for what a completion brings; never while the queue for it is full.
    fn room_at(&self, tlp: &Tlp) -> Ticks {
        let is_data = tlp.kind == TlpKind::CplD && usize::from(tlp.tag) < self.reads.len();
        let queues = self.queues.as_ref().filter(|_| is_data);
        queues.map_or(Ticks::ZERO, |queues| queues.takes_at(Queue::Rx, u64::from(tlp.enabled_bytes())))
    }

    /// Who asked for a descriptor with this tag: behind those of data, each channel has as many as it fetches ahead.
    #[inline]
    fn fetcher_of(&mut self, tag: u16) -> Option<&mut DescriptorFetcher> {
        let nth = self.fetching_channel(tag)?;
        self.channels.get_mut(nth)?.fetcher.as_mut()
    }

    /// The channel whose descriptors are fetched by reads of this tag.
    fn fetching_channel(&self, tag: u16) -> Option<usize> {
        Some(usize::from(tag.checked_sub(self.spec.tags)?.checked_div(self.spec.prefetch_descriptors)?))
    }

    /// When the next completion has come in.
    #[inline]
    #[must_use]
    pub fn data_due(&self) -> Ticks {
        let answered = self.atc.as_ref().map_or(Ticks::NEVER, |atc| atc.answer_due());
        answered.min(self.put_away_due())
    }

    /// The same of one that is no answer to a question.
    #[inline]
    fn put_away_due(&self) -> Ticks {
        let due = self.arriving.due();
        match self.arriving.first().filter(|_| self.queues.is_some()) {
            // One that was held up holds up those behind it.
            Some(tlp) => due.max(self.taken_at + self.beats_of(tlp)).max(self.room_at(tlp)),
            None => due,
        }
    }

    /// Puts the next completion away, if it has come in and there is room for it; says whether the next request may be due at
    /// another time now.
    #[inline]
    pub fn take_data(&mut self, now: Ticks, slab: &mut Slab) -> bool {
        if self.take_answer(now, slab) {
            return true;
        }
        if self.put_away_due() > now {
            return false;
        }
        let is_late = now > self.arriving.due();
        let Some(tlp) = self.arriving.take(now) else { return false };
        self.taken_at = now;
        let Some(read) = self.reads.get_mut(usize::from(tlp.tag)) else {
            self.take_descriptor(now, &tlp, slab);
            return true;
        };
        if read.left == 0 {
            // Nobody waits for it any more.
            slab.give_back(tlp.payload);
            return false;
        }
        let bytes = tlp.enabled_bytes();
        let (number, place) = (read.transfer, read.channel);
        let address = tlp.address.wrapping_add(self.atc.as_ref().map_or(0, |atc| atc.above(tlp.tag)));
        let is_good = tlp.kind == TlpKind::CplD && tlp.flaw == Flaw::None;
        let came = if tlp.kind == TlpKind::CplD { bytes.min(read.left) } else { read.left };
        read.left -= came;
        let is_last = read.left == 0;
        let channel = &mut self.channels[place];
        if is_good {
            if let Some(job) = &channel.job {
                let skip = tlp.first_be.trailing_zeros() as usize;
                let data = &slab.bytes(tlp.payload)[skip..skip + bytes as usize];
                self.sink.write(address + skip as u64 - job.base + job.parts_before(number), data);
                if let Some(queues) = &mut self.queues {
                    queues.take(now, Queue::Rx, data);
                }
            }
            self.received_bytes += u64::from(bytes);
            channel.received_bytes += u64::from(bytes);
            self.received_at = now;
        } else {
            self.refused.get_or_insert(address);
        }
        slab.give_back(tlp.payload);
        if let Some(nth) = channel.open.iter().position(|open| open.number == number) {
            let open = &mut channel.open[nth];
            open.left -= u64::from(came).min(open.left);
            if open.left == 0 {
                let begun = channel.open.remove(nth).map_or(now, |open| open.begun);
                channel.open_at = now;
                let is_timed = channel.job.as_ref().is_some_and(|job| job.transfer.outstanding.is_some());
                if is_timed && self.latencies.len() < Samples::MOST_LATENCIES {
                    self.latencies.push(now.since(begun));
                }
            }
        }
        if is_last {
            self.free_tag(now, tlp.tag, is_late);
            if let Some(atc) = &mut self.atc {
                atc.read_ends(tlp.tag);
            }
        }
        // A transfer that ends does so with the last completion of a read.
        is_last
    }

    /// Nobody has this tag any more.
    #[inline]
    fn free_tag(&mut self, now: Ticks, tag: u16, is_late: bool) {
        if self.free_tags.is_empty() {
            (self.tag_at, self.tag_because) = (now, if is_late { Cause::Fifo } else { Cause::Tag });
        }
        self.free_tags.push(tag);
    }

    /// A descriptor has come.
    fn take_descriptor(&mut self, now: Ticks, tlp: &Tlp, slab: &mut Slab) {
        if let Some(fetcher) = self.fetcher_of(tlp.tag) {
            fetcher.arrive(now);
            if tlp.kind != TlpKind::CplD || tlp.flaw != Flaw::None {
                self.refused.get_or_insert(tlp.address);
            }
        }
        if let Some(atc) = &mut self.atc {
            atc.read_ends(tlp.tag);
        }
        slab.give_back(tlp.payload);
    }
}
