//! A DMA engine: issues requests of a device and receives their completions.
//!
//! ```text
//!  command --start--> channels, a job each --data path--egress--> link
//!                        ^ tags, send buffers, bytes in TX or EP_TX
//!  sink, RX <--beats--- data path <--ingress-- completions
//! ```
//!
//! Ports: [`DmaEngine::start`] gives a [channel] a job; [`DmaEngine::issue`] issues its next request when that is
//! [due](DmaEngine::due); [`DmaEngine::left`] is called when a request leaves for the link; [`DmaEngine::arrive`]
//! receives completions from the link, and [`DmaEngine::take_data`] stores them.
//!
//! A request occupies its channel for the beats of header and payload, and for its fixed cost. All channels share the
//! data path and the tags, and are served round-robin. A full-duplex engine has a data path for each direction, a
//! channel for the second one, and may have a part that requests of both directions occupy first. A completion occupies the inbound data path. A job may follow
//! each of its writes by a read. The data of a write encodes its address and iteration, as for stores of a core.
//!
//! A job may have a driver ([`DmaEngine::arm`]), one for each channel. Each transfer then begins when the channel's
//! [doorbell](DmaEngine::store_arrives) is rung, may wait for a [fetched](crate::device::descriptor_fetcher)
//! descriptor, and is notified on completion. The notification is a word in host memory or a message behind the last
//! write, or a register once the last write has left and the last read has completed. A message of a masked
//! [vector](crate::device::msi_x) is sent when it is unmasked.
//!
//! Recorded stall causes: `Engine` while the channel is busy, `Tag` when no tag is free, `ReadRoundTrip` when the
//! limit of outstanding transfers is reached, `Descriptor` when none has arrived, the cause of the link when no send
//! buffer is free, and `Fifo` when a queue is empty, or too full for the data of a read.
//!
//! [channel]: crate::device::channel

use crate::busy::Busy;
use crate::critical_path::{CriticalPath, Milestone, Place};
use crate::device::atc::Atc;
use crate::device::bells::Bells;
use crate::device::channel::{Channel, Open, Shared};
use crate::device::data_path::DataPath;
use crate::device::descriptor_fetcher::{self, DescriptorFetcher};
use crate::device::interconnect::{Interconnect, Mode, Queue};
use crate::device::job::{Job, Piece, RequestLimits};
use crate::device::msi_x::{MsiX, Vector};
use crate::device::region::Region;
use crate::host::small_copies::Rings;
use crate::host::stored_data::stored_bytes;
use crate::index::CardIndex;
use crate::requester::FIRST_INJECTED_TAG;
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

/// Bytes of a notification word or message.
const NOTICE_BYTES: u64 = 4;

/// Initial fill of a sink, which differs from the content of memory at the same place.
const EMPTY: u8 = 0x5A;

/// An outstanding read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Read {
    /// Bytes that have not arrived, and those that have not been received from the link.
    left: u32,
    unreceived: u32,
    /// Remaining minimum time for which its data occupy the inbound data path.
    least: Ticks,
    /// Its channel.
    channel: usize,
    /// Number of its transfer.
    transfer: u64,
    /// Issue time, and the end address.
    asked: Ticks,
    end: u64,
}

/// A transfer of reads whose data have been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Received {
    channel: usize,
    number: u64,
    milestone: Milestone,
}

/// A request and the channel that issues it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The channel.
    pub channel: usize,
    /// Time at which it reaches the link.
    pub at: Ticks,
    /// The TLP.
    pub tlp: Tlp,
}

impl Made {
    /// An empty slot.
    pub const INVALID: Made = Made { channel: 0, at: Ticks::NEVER, tlp: Tlp::of(TlpKind::MWr) };
}

/// The completion of a read that was injected at a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Time of its last beat.
    pub at: Ticks,
    /// The tag of the read.
    pub tag: u16,
    /// Address of its first byte.
    pub address: u64,
    /// Its bytes; `None` if the read was refused or the data are poisoned.
    pub data: Option<Vec<u8>>,
}

/// State of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmaEngine {
    spec: Spec,
    /// Its place on critical paths.
    place: Place,
    channels: Vec<Channel>,
    /// The channel that issued the last request.
    served: usize,
    /// Time and channel of the next request, as last computed by [`DmaEngine::due`].
    next: (Ticks, usize),
    /// The only channel with a job, if there is one and no ATC.
    only: Option<usize>,
    /// The channel whose status register must be updated, until it is taken.
    status_due: Option<usize>,
    path: DataPath,
    /// The data path of read requests of a full-duplex engine, and the part that both directions share.
    read_path: DataPath,
    shared_part: DataPath,
    reads: Vec<Read>,
    free_tags: Vec<u16>,
    /// Time at which the last tag was returned when none was free, and its stall cause.
    tag_at: Ticks,
    tag_because: Cause,
    tag: Milestone,
    /// Arrival of the last answer of the IOMMU.
    answered: Milestone,
    /// Inbound completions, in the order in which their last beats are received.
    arriving: Wire<Tlp>,
    data_until: Ticks,
    /// End of the beats of the last completion.
    data: Milestone,
    /// Use of the request logic, and of the data path by direction.
    pub(crate) busy: EngineBusy,
    /// Time at which the last completion was taken.
    taken_at: Ticks,
    /// Time at which the last data are stored, and the milestone.
    stored_until: Ticks,
    stored: Milestone,
    /// Transfers whose end is signalled later, in order.
    ending: Wire<Received>,
    /// The queues to the user circuit, if there are any.
    pub queues: Option<Interconnect>,
    /// The MSI-X vectors, if it uses MSI-X.
    pub(crate) msi_x: Option<MsiX>,
    /// The ATC, if it has ATS.
    pub atc: Option<Box<Atc>>,
    /// Received bytes, at their offset in the window.
    pub sink: Memory,
    /// Completions of reads that were injected at the card.
    pub(crate) fetched: Vec<Fetched>,
    /// Time of the last received bytes, and the milestone.
    pub received_at: Ticks,
    pub(crate) received: Milestone,
    /// Number of received bytes.
    pub received_bytes: u64,
    /// Latencies of reads, if the job limits outstanding transfers, in the order of completion; at most
    /// [`Samples::MOST_LATENCIES`].
    pub latencies: Vec<Ticks>,
    /// Address of the first read that was refused.
    pub refused: Option<u64>,
    /// Stall time of the channels since their start, by [`Cause::index`].
    pub waits: [Ticks; Cause::ALL.len()],
}

/// Time for which the parts of an engine were occupied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EngineBusy {
    /// Request logic of each channel.
    pub(crate) requests: Vec<Busy>,
    /// Beats of sent TLPs; of a full-duplex engine, of writes.
    pub(crate) sent: Busy,
    /// Beats of read requests of a full-duplex engine, and use of the part that both directions share.
    pub(crate) sent_reads: Busy,
    pub(crate) shared_part: Busy,
    /// Beats of received completions.
    pub(crate) received: Busy,
}

impl DmaEngine {
    /// Creates an idle engine.
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
            channels: (0..spec.all_channels()).map(|_| Channel::new(fetchers.next())).collect(),
            served: 0,
            next: (Ticks::NEVER, 0),
            only: None,
            status_due: None,
            path: DataPath::default(),
            read_path: DataPath::default(),
            shared_part: DataPath::default(),
            reads: vec![Read::default(); usize::from(spec.tags)],
            free_tags: (0..spec.tags).rev().collect(),
            tag_at: Ticks::ZERO,
            tag_because: Cause::Tag,
            tag: Milestone::NONE,
            answered: Milestone::NONE,
            arriving: Wire::default(),
            data_until: Ticks::ZERO,
            data: Milestone::NONE,
            taken_at: Ticks::ZERO,
            stored_until: Ticks::ZERO,
            stored: Milestone::NONE,
            ending: Wire::default(),
            queues: spec.queues.map(Interconnect::new),
            msi_x: spec.vectors.zip(spec.mailboxes.first()).map(|(table, mailbox)| MsiX::new(table, mailbox.message)),
            atc: spec.atc.map(|atc| Box::new(Atc::new(atc))),
            sink: Memory::holding(EMPTY),
            fetched: Vec::new(),
            received_at: Ticks::ZERO,
            received: Milestone::NONE,
            received_bytes: 0,
            latencies: Vec::new(),
            refused: None,
            waits: [Ticks::ZERO; Cause::ALL.len()],
            busy: EngineBusy {
                requests: vec![Busy::default(); spec.all_channels()],
                sent: Busy::default(),
                sent_reads: Busy::default(),
                shared_part: Busy::default(),
                received: Busy::default(),
            },
            place: Place::engine(CardIndex::of_requester(spec.requester)),
            spec,
        }
    }

    /// Returns whether its queues are joined, so that a request affects other cards.
    #[inline]
    #[must_use]
    pub fn joins_queues(&self) -> bool {
        self.queues.as_ref().is_some_and(Interconnect::is_joined)
    }

    /// Returns the number of channels, with the one for the second direction of a full-duplex engine.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Returns whether each direction has a data path of its own.
    #[must_use]
    pub fn is_full_duplex(&self) -> bool {
        self.spec.full_duplex
    }

    /// Returns the channel for the next job of a plan with at most one job for each direction: the first one, or if
    /// that has requests left, the one for the second direction.
    #[must_use]
    pub fn next_channel(&self) -> usize {
        let is_taken = |first: &Channel| first.job.as_ref().is_some_and(|job| job.piece.is_some());
        if self.channels.first().is_some_and(is_taken) { self.second_channel() } else { 0 }
    }

    /// Returns the channel for a job of the second direction.
    #[must_use]
    pub fn second_channel(&self) -> usize {
        if self.spec.full_duplex { self.channels.len() - 1 } else { 1 }
    }

    /// Returns the channel for reads beside writes on the first channel: the next one, or that of the second direction.
    #[must_use]
    pub fn reading_channel(&self) -> usize {
        if self.spec.channels > 1 { 1 } else { self.second_channel() }
    }

    /// Returns the limits of its requests.
    #[must_use]
    pub fn request_limits(&self) -> RequestLimits {
        self.spec.requests
    }

    /// Starts a job on a channel.
    pub fn start(&mut self, now: Ticks, channel: usize, job: Job) {
        self.invalidate(&job);
        let from = now + self.spec.start_of(job.transfer.verb);
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.begin(now, job.released(), from, self.spec.tick);
        }
        self.look_for_only();
    }

    /// Starts a job whose transfers begin when all of their bytes are in the queue.
    pub fn start_whole(&mut self, now: Ticks, channel: usize, job: Job) {
        self.start(now, channel, job);
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.is_whole = true;
        }
    }

    /// Starts the transfer of `call` on a channel, `passes` times, each when its doorbell is rung. Returns the number
    /// of transfers notified before; `None` if the channel does not exist or has no driver interface.
    pub fn arm(&mut self, now: Ticks, call: &DmaCall, base: u64, passes: u64, first_pass: u64) -> Option<u64> {
        let mailbox = *self.spec.mailboxes.get(call.channel as usize)?;
        let job = Job::new(&call.transfer, base, passes, first_pass, self.request_limits());
        self.invalidate(&job);
        let channel = self.channels.get_mut(call.channel as usize)?;
        channel.begin(now, job, Ticks::ZERO, self.spec.tick);
        channel.arm(call, mailbox);
        let done = channel.done;
        self.look_for_only();
        Some(done)
    }

    /// Finds the only channel with a job.
    fn look_for_only(&mut self) {
        let mut working = (0..self.channels.len()).filter(|place| self.channels[*place].job.is_some());
        let first = working.next();
        self.only = first.filter(|_| working.next().is_none() && self.atc.is_none());
    }

    /// Makes the transfers of a channel's job parts of copies, whose last part has `last_part` bytes.
    pub fn in_parts(&mut self, channel: usize, last_part: u64) {
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.job = channel.job.take().map(|job| job.in_parts(last_part));
        }
    }

    /// Makes one notification report the end of all transfers of an iteration, which doorbells start by these rules.
    pub fn in_group(&mut self, channel: usize, rings: Rings) {
        if let Some(calls) = self.channels.get_mut(channel).and_then(|channel| channel.calls.as_mut()) {
            calls.group = Some(Bells::new(rings));
        }
    }

    /// Skips `passes` iterations of a channel's job.
    pub fn leave_out(&mut self, channel: usize, passes: u64) {
        if let Some(job) = self.channels.get_mut(channel).and_then(|channel| channel.job.as_mut()) {
            job.leave_out(passes);
        }
    }

    /// Clears the observations of previous jobs.
    fn invalidate(&mut self, job: &Job) {
        // Transfers that a stopped job began and did not request will never complete.
        self.channels.iter_mut().filter(|channel| channel.job.is_none()).for_each(Channel::drop_open);
        self.latencies.clear();
        if job.transfer.outstanding.is_some() {
            self.latencies.reserve(job.transfers.min(Samples::MOST_LATENCIES as u64) as usize);
        }
        (self.refused, self.waits) = (None, [Ticks::ZERO; Cause::ALL.len()]);
    }

    /// Receives a store to the card, accepted at `milestone`. A store to a doorbell starts the next transfer of its
    /// channel; returns whether it did.
    #[inline]
    pub fn store_arrives(&mut self, now: Ticks, address: u64, milestone: Milestone) -> bool {
        let Some(first) = self.spec.mailboxes.first() else { return false };
        let nth = address.wrapping_sub(first.doorbell) / Mailbox::REGISTER_BYTES;
        let Some(channel) = self.channels.get_mut(nth as usize) else { return false };
        let is_rung = channel.calls.as_ref().is_some_and(|calls| calls.mailbox.doorbell == address);
        if is_rung {
            channel.ring(now, milestone, &self.spec);
        }
        is_rung
    }

    /// Returns the bus addresses of the MSI-X table, if there is one.
    pub(crate) fn vectors_at(&self) -> Option<Range<u64>> {
        self.msi_x.as_ref().map(MsiX::table)
    }

    /// Updates the vectors after a store to the MSI-X table; returns whether a message may be sent.
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

    /// Stops new requests; outstanding ones complete.
    pub fn stop(&mut self) {
        self.channels.iter_mut().for_each(|channel| channel.stop(self.spec.tick));
        self.look_for_only();
        if let Some(queues) = &mut self.queues {
            queues.join(Mode::Straight, 0);
        }
    }

    /// Stops new requests and notifications; outstanding reads complete.
    pub fn halt(&mut self) {
        self.channels.iter_mut().for_each(Channel::halt);
    }

    fn read_of(&self, tag: u16) -> Option<&Read> {
        self.reads.get(usize::from(tag)).filter(|read| read.left > 0)
    }

    /// Returns the issue time of the outstanding read with this tag, of data or of a descriptor.
    #[must_use]
    pub fn asked_at(&self, tag: u16) -> Option<Ticks> {
        let of_descriptor = || self.channels.get(self.fetching_channel(tag)?)?.fetcher.as_ref()?.asked_at(tag);
        let of_question = || self.atc.as_ref()?.asked_at(tag);
        self.read_of(tag).map(|read| read.asked).or_else(of_question).or_else(of_descriptor)
    }

    /// Returns the end address of the outstanding read with this tag.
    #[must_use]
    pub fn read_until(&self, tag: u16) -> Option<u64> {
        self.read_of(tag).map(|read| read.end)
    }

    /// Returns whether every request was issued and every read completed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.channels.iter().all(Channel::is_done)
    }

    /// Returns the number of transfers that a channel has notified and the register to update with it, or the pending
    /// bits of its vector; once for each change.
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

    /// Returns the bus address of a channel's status register.
    #[must_use]
    pub fn status_at(&self, channel: usize) -> Option<u64> {
        self.spec.mailboxes.get(channel).map(|mailbox| mailbox.status)
    }

    /// Returns the number of transfers that a channel has notified.
    #[must_use]
    pub fn done(&self, channel: usize) -> Option<u64> {
        self.channels.get(channel).map(|channel| channel.done)
    }

    /// Returns the timer of a channel; 0 if the channel does not exist.
    #[must_use]
    pub fn timer_at(&self, channel: usize, now: Ticks) -> u64 {
        self.channels.get(channel).map_or(0, |channel| channel.timer_at(now, self.spec.tick))
    }

    /// Writes the timer of a channel.
    pub fn set_timer(&mut self, channel: usize, now: Ticks, value: u64) {
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.set_timer(now, value, self.spec.tick);
        }
    }

    /// Returns the bytes received for a channel.
    #[must_use]
    pub fn received_by(&self, channel: usize) -> u64 {
        self.channels.get(channel).map_or(0, |channel| channel.received_bytes)
    }

    /// Returns the time for which a channel stalled for descriptors since it was armed.
    #[must_use]
    pub fn fetching(&self, channel: usize) -> Ticks {
        let calls = self.channels.get(channel).and_then(|channel| channel.calls.as_ref());
        calls.map_or(Ticks::ZERO, |calls| calls.fetching)
    }

    /// Returns the time of the last request.
    #[must_use]
    pub fn issued_at(&self) -> Ticks {
        self.channels.iter().map(|channel| channel.issued_at).max().unwrap_or(Ticks::ZERO)
    }

    /// Returns the stall cause, if requests or completions are pending.
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
            tag: self.tag,
            answered: self.answered,
            queues: self.queues.as_ref(),
        }
    }

    /// Finds the next request, as far as is known now; channels that can issue one are served round-robin.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    pub fn due(&mut self) -> Ticks {
        let shared = self.shared();
        // Fast path: most boards use one channel of a card.
        if let Some(only) = self.only {
            let due = self.channels[only].due(&shared);
            // A channel that is never due is not the next one.
            self.next = (due, if due < Ticks::NEVER { only } else { self.served });
            return due;
        }
        self.due_of_several()
    }

    /// Finds the next request of several channels, or of one with an ATC, as [`DmaEngine::due`].
    #[inline(never)]
    fn due_of_several(&mut self) -> Ticks {
        let shared = self.shared();
        let mut next = (Ticks::NEVER, self.served);
        // Round-robin: channels behind the last served one come first.
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

    /// Issues the next request into `made`, if it is due; returns whether it did.
    #[inline]
    pub fn issue(&mut self, now: Ticks, slab: &mut Slab, path: &mut CriticalPath, made: &mut Made) -> bool {
        let (due, channel) = self.next;
        if due > now {
            return false;
        }
        (self.served, made.channel) = (channel, channel);
        if self.atc.is_some() && self.issue_ats_message(channel, now, path, made) {
            return true;
        }
        let at = if self.channels[channel].calls.is_some() {
            self.issue_of_call(channel, now, slab, path, &mut made.tlp)
        } else {
            self.issue_of(channel, now, slab, path, &mut made.tlp)
        };
        made.at = at.unwrap_or(Ticks::NEVER);
        at.is_some()
    }

    /// Builds the next request of a channel with a driver: a descriptor read, a notification or data.
    fn issue_of_call(
        &mut self,
        place: usize,
        now: Ticks,
        slab: &mut Slab,
        path: &mut CriticalPath,
        made: &mut Tlp,
    ) -> Option<Ticks> {
        let channel = &mut self.channels[place];
        let calls = channel.calls?;
        if channel.fetch_due(&calls, &self.spec) <= now {
            let fetcher = channel.fetcher.as_mut()?;
            let (room_at, room) = fetcher.room();
            *made = fetcher.ask(now)?;
            channel.wait_for_last(&[(room_at, room, Cause::Descriptor)]);
            self.translate(made);
            return Some(self.send(place, now, self.spec.read.request, path, made));
        }
        if channel.notice_due(&calls, &self.spec) <= now {
            return self.tell(place, now, slab, path, made);
        }
        self.issue_of(place, now, slab, path, made)
    }

    /// Builds the next data request of a channel; returns when it reaches the link.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    fn issue_of(
        &mut self,
        place: usize,
        now: Ticks,
        slab: &mut Slab,
        path: &mut CriticalPath,
        made: &mut Tlp,
    ) -> Option<Ticks> {
        let channel = self.channels.get_mut(place)?;
        let piece = channel.job.as_ref()?.piece?;
        let Piece { number, chunk, offset, verb } = piece;
        let is_first = channel.begins_descriptor(&piece, &self.spec);
        let (cause, waited) = self.charge(place, now, &piece, is_first);
        self.waits[cause.index()] += waited;
        let channel = self.channels.get_mut(place)?;
        if cause == Cause::Fifo {
            channel.waited_for = (path.add(channel.waited_for.0, now, self.place, Cause::Fifo), Cause::Transit);
        }
        let (ended, limit) = channel.waited_for;
        if cause == Cause::Engine && limit == Cause::ReadRoundTrip {
            // The read has been in the queue since that transfer ended.
            channel.waited_for = (path.add_after(limit, ended, now, self.place, Cause::Engine), Cause::Transit);
        }
        let job = channel.job.as_mut()?;
        let (address, length_dw, first_be, last_be) = span(chunk.address, u64::from(chunk.bytes));
        let Spec { requester, relaxed, id_based, .. } = self.spec;
        *made = Tlp { address, length_dw, first_be, last_be, requester, relaxed, id_based, ..Tlp::of(TlpKind::MWr) };
        let rate = if verb == Verb::Store {
            made.payload = slab.take();
            // The tag of a write is unused by the protocol; here it carries the channel.
            made.tag = place as u16;
            let skip = (chunk.address - address) as usize;
            let data = &mut slab.bytes_mut(made.payload)[skip..skip + chunk.bytes as usize];
            let turn = job.turn_of(number);
            let mut is_given = false;
            if let Some(queues) = &mut self.queues {
                let feeder = Channel::feeder(job);
                is_given = queues.give(now, feeder, data);
                queues.set_drained(feeder, channel.waited_for.0);
            }
            if !is_given {
                stored_bytes(chunk.address, turn, data);
            }
            slab.note(made.payload, number);
            made.pauses = self.spec.write.link_pauses_before(offset, chunk.bytes);
            &self.spec.write
        } else {
            made.kind = TlpKind::MRd;
            made.tag = self.free_tags.pop()?;
            let end = chunk.address + u64::from(chunk.bytes);
            let least = self.spec.read_data.as_ref().map_or(Ticks::ZERO, |data| data.least_time_of(chunk.bytes));
            let (left, unreceived) = (chunk.bytes, chunk.bytes);
            self.reads[usize::from(made.tag)] =
                Read { left, unreceived, least, channel: place, transfer: number, asked: now, end };
            if channel.open.back().is_none_or(|last| last.number != number) {
                let begun = self.atc.as_ref().map_or(now, |atc| atc.begun(now));
                let begun = Channel::leave_queue(
                    &mut channel.queued,
                    channel.open.len(),
                    begun,
                    now,
                    &job.transfer,
                    &self.spec,
                );
                channel.open.push_back(Open { number, left: job.bytes_of(number), begun });
            }
            &self.spec.read
        };
        channel.described = Some((number, verb));
        let is_described = is_first && job.transfer.partner == Partner::Host;
        job.advance();
        let descriptor = if is_described { self.spec.descriptor } else { Ticks::ZERO };
        let besides = rate.besides(chunk, offset, self.beats_of(made));
        if self.atc.is_some() {
            self.translate(made);
        }
        Some(self.send(place, now, descriptor + besides, path, made))
    }

    /// Returns the stall cause and stall time of a channel's request; consumes its fetched descriptor.
    #[inline]
    fn charge(&mut self, place: usize, now: Ticks, piece: &Piece, is_first: bool) -> (Cause, Ticks) {
        let (tag_at, tag_because) = (Some(self.tag_at), self.tag_because);
        let shared = Shared {
            spec: &self.spec,
            tag_at,
            tag_because,
            tag: self.tag,
            answered: self.answered,
            queues: self.queues.as_ref(),
        };
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

    /// Reserves the beats of a TLP on the data path, after `before`, and adds its milestones; returns when it reaches
    /// the link.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    fn send(&mut self, place: usize, now: Ticks, before: Ticks, path: &mut CriticalPath, tlp: &mut Tlp) -> Ticks {
        let beats = self.beats_of(tlp);
        let is_second = self.spec.full_duplex && tlp.kind != TlpKind::MWr;
        let mut shared_until = now + before;
        if self.spec.shared_request > Ticks::ZERO {
            shared_until = self.shared_part.reserve(now, now + before, self.spec.shared_request);
            self.busy.shared_part.occupy(self.spec.shared_request, shared_until);
        }
        let data_path = if is_second { &mut self.read_path } else { &mut self.path };
        let until = data_path.reserve(now, shared_until, beats);
        let channel = &mut self.channels[place];
        channel.occupied_until = until;
        channel.unsent += 1;
        let started = channel.starts_until.take();
        let start = started.map_or(Ticks::ZERO, |_| self.spec.start);
        self.busy.requests[place].occupy(start + before, now + before);
        let sent = if is_second { &mut self.busy.sent_reads } else { &mut self.busy.sent };
        sent.occupy(beats, until);
        let at_link = until + self.spec.egress;
        if path.is_on() {
            let (mut waited_for, mut limit) = channel.waited_for;
            // Its start is work of the engine, unless the request waited for something else after it.
            if let Some(started) = started.filter(|_| waited_for == channel.free) {
                let is_by_kernel =
                    channel.calls.is_some_and(|calls| calls.group.is_some_and(|bells| bells.starts_by_kernel()));
                let cause = if is_by_kernel { Cause::Compute } else { Cause::Engine };
                waited_for = path.add_after(limit, waited_for, started.min(now), self.place, cause);
                limit = Cause::Transit;
            }
            if shared_until > now {
                waited_for = path.add_after(limit, waited_for, shared_until, self.place, Cause::Engine);
                limit = Cause::Transit;
            }
            channel.free = path.add_after(limit, waited_for, until, self.place, Cause::DataPath);
            // The latency to the link is part of that of the link.
            tlp.milestone = channel.free;
        }
        at_link
    }

    /// Builds the notification of one more completed transfer.
    fn tell(
        &mut self,
        place: usize,
        now: Ticks,
        slab: &mut Slab,
        path: &mut CriticalPath,
        made: &mut Tlp,
    ) -> Option<Ticks> {
        let channel = &mut self.channels[place];
        let (left_at, left) = channel.last_departure();
        channel.wait_for_last(&[(left_at, left, Cause::Transit), (channel.open_at, channel.ended, Cause::Transit)]);
        let ended = channel.moved_at();
        let calls = channel.calls.as_mut()?;
        if calls.group.is_some_and(|bells| bells.ends_by_kernel()) {
            channel.waited_for = (path.add(channel.waited_for.0, now, self.place, Cause::Compute), Cause::Transit);
        }
        let mut vector = None;
        if let Some(msi_x) = self.msi_x.as_mut().filter(|_| calls.completion == Completion::Interrupt) {
            self.status_due = Some(place);
            vector = msi_x.send(msi_x.vector_of(place));
            if vector.is_none() {
                calls.held_until = Ticks::NEVER;
                return None;
            }
        }
        let ended_now = if calls.group.is_some() { channel.job.as_ref()?.transfer.count } else { 1 };
        calls.notified += ended_now;
        channel.done += ended_now;
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
        Some(self.send(place, now, self.spec.write.request, path, made))
    }

    #[inline]
    fn beats(&self, bytes: u32) -> Ticks {
        self.spec.beat * u64::from((bytes + self.spec.beat_bytes - 1) >> self.spec.beat_bytes.trailing_zeros())
    }

    /// Records that a request of a channel left for the link after a stall for `because`; returns whether the next
    /// request may be due at another time.
    #[inline]
    pub fn left(
        &mut self,
        now: Ticks,
        channel: usize,
        because: Option<Cause>,
        departed: Milestone,
        path: &mut CriticalPath,
    ) -> bool {
        let channel = &mut self.channels[channel];
        // A request that waited for nothing has no milestone after its beats.
        let departed = if channel.awaits_departure(&self.spec) {
            path.add(departed, now, self.place, Cause::Transit)
        } else {
            departed
        };
        let matters = channel.left(now, because, departed, &self.spec);
        self.atc.is_some() && self.all_left() || matters
    }

    /// Receives a completion that is checked at `at`. The call may precede that time, because completions arrive in
    /// order. Returns whether the next completion may be due at another time.
    #[inline]
    pub fn arrive(&mut self, at: Ticks, mut tlp: Tlp, path: &mut CriticalPath) -> bool {
        let at_engine = at + self.spec.ingress;
        let begins = self.data_until.max(at_engine);
        let beats = self.beats_of(&tlp);
        let beats = if self.spec.read_data.is_some() { self.with_pushes(&tlp, beats) } else { beats };
        self.data_until = begins + beats;
        self.busy.received.occupy(beats, self.data_until);
        if path.is_on() {
            let before = if begins > at_engine {
                self.data
            } else {
                path.add(tlp.milestone, at_engine, self.place, Cause::Transit)
            };
            tlp.milestone = path.add(before, self.data_until, self.place, Cause::DataPath);
            self.data = tlp.milestone;
        }
        if !self.atc.as_mut().is_some_and(|atc| atc.comes(self.data_until, tlp)) {
            self.arriving.send(self.data_until, tlp);
        }
        self.arriving.len() == 1 || self.atc.is_some()
    }

    /// Returns the time for which a completion occupies the inbound data path: its `beats`, and with the last of a read
    /// what is missing to the minimum of the read.
    fn with_pushes(&mut self, tlp: &Tlp, beats: Ticks) -> Ticks {
        let Some(read) = self.reads.get_mut(usize::from(tlp.tag)).filter(|read| read.unreceived > 0) else {
            return beats;
        };
        read.least = Ticks(read.least.0.saturating_sub(beats.0));
        if tlp.kind != TlpKind::CplD {
            read.unreceived = 0;
            return beats;
        }
        read.unreceived = read.unreceived.saturating_sub(tlp.enabled_bytes());
        if read.unreceived == 0 { beats + read.least } else { beats }
    }

    /// Returns the time of a TLP's beats.
    #[inline]
    fn beats_of(&self, tlp: &Tlp) -> Ticks {
        self.beats(u32::from(tlp.header_dw()) * 4 + tlp.payload_bytes())
    }

    /// Returns when a completion's data fit into their queue; [`Ticks::NEVER`] while it is full.
    fn room_at(&self, tlp: &Tlp) -> Ticks {
        let is_data = tlp.kind == TlpKind::CplD && usize::from(tlp.tag) < self.reads.len();
        let queues = self.queues.as_ref().filter(|_| is_data);
        queues.map_or(Ticks::ZERO, |queues| queues.takes_at(Queue::Rx, u64::from(tlp.enabled_bytes())))
    }

    /// Returns the fetcher that issued a descriptor read with this tag. Such tags follow those of data; each channel
    /// has as many as it prefetches.
    #[inline]
    fn fetcher_of(&mut self, tag: u16) -> Option<&mut DescriptorFetcher> {
        let nth = self.fetching_channel(tag)?;
        self.channels.get_mut(nth)?.fetcher.as_mut()
    }

    /// Returns the channel whose descriptor reads use this tag.
    fn fetching_channel(&self, tag: u16) -> Option<usize> {
        Some(usize::from(tag.checked_sub(self.spec.tags)?.checked_div(self.spec.prefetch_descriptors)?))
    }

    /// Returns when the next completion is received.
    #[inline]
    #[must_use]
    pub fn data_due(&self) -> Ticks {
        let answered = self.atc.as_ref().map_or(Ticks::NEVER, |atc| atc.answer_due());
        answered.min(self.put_away_due()).min(self.ending.due())
    }

    /// Returns when the next completion of a read is received.
    #[inline]
    fn put_away_due(&self) -> Ticks {
        let due = self.arriving.due();
        match self.arriving.first().filter(|_| self.queues.is_some()) {
            // A delayed completion delays those behind it.
            Some(tlp) => due.max(self.taken_at + self.beats_of(tlp)).max(self.room_at(tlp)),
            None => due,
        }
    }

    /// Stores the next completion, if it has been received and fits; returns whether the next request may be due at
    /// another time.
    #[inline]
    pub fn take_data(&mut self, now: Ticks, slab: &mut Slab, path: &mut CriticalPath) -> bool {
        if self.atc.is_some() && self.take_answer(now, slab) {
            return true;
        }
        if let Some(Received { channel, number, milestone }) = self.ending.take(now) {
            (self.received_at, self.received) = (now, milestone);
            self.end_transfer(now, channel, number, milestone);
            return true;
        }
        let due = self.arriving.due();
        // Without connections, a queue changes only when a completion is stored, and the time is known since then.
        if due > now || self.joins_queues() && self.put_away_due() > now {
            return false;
        }
        let is_late = now > due;
        let Some(mut tlp) = self.arriving.take(now) else { return false };
        if is_late {
            let before = self.queues.as_ref().map_or(tlp.milestone, |queues| queues.drained(Queue::Rx));
            tlp.milestone = path.add_after(Cause::Fifo, before, now, self.place, Cause::Fifo);
        }
        self.taken_at = now;
        let Some(read) = self.reads.get_mut(usize::from(tlp.tag)) else {
            self.take_descriptor(now, &tlp, slab);
            return true;
        };
        if read.left == 0 {
            // The read was abandoned.
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
                    queues.set_filled(Queue::Rx, tlp.milestone);
                }
            }
            self.received_bytes += u64::from(bytes);
            channel.received_bytes += u64::from(bytes);
            (self.received_at, self.received) = (now, tlp.milestone);
        } else {
            self.refused.get_or_insert(address);
        }
        slab.give_back(tlp.payload);
        let mut is_received = false;
        let awaits = |open: &Open| open.number == number && open.left > 0;
        // Data arrive in order, mostly.
        let is_first = channel.open.front().is_some_and(awaits);
        let nth = if is_first { Some(0) } else { channel.open.iter().position(awaits) };
        if let Some(open) = nth.and_then(|nth| channel.open.get_mut(nth)) {
            open.left -= u64::from(came).min(open.left);
            is_received = open.left == 0;
        }
        self.store(now, &tlp, is_received.then_some((place, number)), path);
        if is_last {
            self.free_tag(now, &tlp, is_late);
            if let Some(atc) = &mut self.atc {
                atc.read_ends(tlp.tag);
            }
        }
        // The last completion of a read may end its transfer.
        is_last
    }

    /// Stores the data of a completion, and ends the transfer whose last data these are.
    #[inline]
    fn store(&mut self, now: Ticks, tlp: &Tlp, ends: Option<(usize, u64)>, path: &mut CriticalPath) {
        let Some(data) = &self.spec.read_data else {
            if let Some((channel, number)) = ends {
                self.end_transfer(now, channel, number, tlp.milestone);
            }
            return;
        };
        let is_data = tlp.kind == TlpKind::CplD;
        let until = now + if is_data { data.stored_after(tlp.payload_bytes()) } else { Ticks::ZERO };
        if until >= self.stored_until {
            self.stored_until = until;
            self.stored =
                if until > now { path.add(tlp.milestone, until, self.place, Cause::Engine) } else { tlp.milestone };
        }
        let Some((channel, number)) = ends else { return };
        let at = self.stored_until + data.signal;
        if at <= now {
            return self.end_transfer(now, channel, number, tlp.milestone);
        }
        let milestone =
            if data.signal > Ticks::ZERO { path.add(self.stored, at, self.place, Cause::Engine) } else { self.stored };
        self.ending.send(at, Received { channel, number, milestone });
    }

    /// Ends a transfer whose data are stored.
    fn end_transfer(&mut self, now: Ticks, place: usize, number: u64, milestone: Milestone) {
        let channel = &mut self.channels[place];
        let ended = channel.open.iter().position(|open| open.number == number && open.left == 0);
        let Some(Open { begun, .. }) = ended.and_then(|nth| channel.open.remove(nth)) else { return };
        (channel.open_at, channel.ended) = (now, milestone);
        let is_limited = channel.job.as_ref().is_some_and(|job| job.transfer.outstanding.is_some());
        if is_limited {
            channel.queue_next(now, &self.spec);
            if self.latencies.len() < Samples::MOST_LATENCIES {
                self.latencies.push(now.since(begun));
            }
        }
    }

    /// Returns the tag of a read to the free list with its last completion.
    #[inline]
    fn free_tag(&mut self, now: Ticks, last: &Tlp, is_late: bool) {
        if self.free_tags.is_empty() {
            self.tag = last.milestone;
            (self.tag_at, self.tag_because) = (now, if is_late { Cause::Fifo } else { Cause::Tag });
        }
        self.free_tags.push(last.tag);
    }

    /// Receives a descriptor, or a completion of an injected read.
    fn take_descriptor(&mut self, now: Ticks, tlp: &Tlp, slab: &mut Slab) {
        if tlp.tag >= FIRST_INJECTED_TAG {
            let skip = tlp.first_be.trailing_zeros().min(3) as usize;
            let is_good = tlp.kind == TlpKind::CplD && tlp.flaw == Flaw::None;
            let data = || slab.bytes(tlp.payload)[skip..skip + tlp.enabled_bytes() as usize].to_vec();
            let (at, tag, address, data) = (now, tlp.tag, tlp.address + skip as u64, is_good.then(data));
            self.fetched.push(Fetched { at, tag, address, data });
        } else if let Some(fetcher) = self.fetcher_of(tlp.tag) {
            fetcher.arrive(now, tlp.milestone);
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
