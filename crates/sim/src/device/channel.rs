//! A channel of a DMA engine: issues the requests of one job in order.
//!
//! Tags, data path and queues belong to the engine. A channel has its own descriptor, request and send buffers, so
//! that another channel issues requests while it processes a descriptor. Its driver interface is its own, too: a
//! doorbell, a descriptor ring with its fetcher, a status register, a word in host memory and a message.

use crate::critical_path::Milestone;
use crate::device::bells::Started;
use crate::device::calls::Calls;
use crate::device::descriptor_fetcher::DescriptorFetcher;
use crate::device::dma_engine::spec::Spec;
use crate::device::interconnect::{Interconnect, Queue};
use crate::device::job::{Job, Piece};
use crate::device::timer::Timer;
use crate::host::driver::blocks;
use crate::steady::Survey;
use lanemark_machine::{Cause, Completion, Descriptors, DmaCall, Partner, Transfer, Verb};
use lanemark_platform::Mailbox;
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// State of the engine that its channels share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub spec: &'a Spec,
    /// Time at which the last tag was returned when none was free; `None` if none is free.
    pub tag_at: Option<Ticks>,
    /// Stall cause of that tag, and its return.
    pub tag_because: Cause,
    pub tag: Milestone,
    /// Arrival of the last answer of the IOMMU.
    pub answered: Milestone,
    pub queues: Option<&'a Interconnect>,
}

/// An outstanding transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub number: u64,
    /// Bytes that have not arrived.
    pub left: u64,
    pub begun: Ticks,
}

/// State of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub(crate) job: Option<Job>,
    /// Whether a transfer begins only when all of its bytes are in the queue.
    pub(crate) is_whole: bool,
    /// The driver interface, if the job has a driver.
    pub(crate) calls: Option<Calls>,
    pub(crate) fetcher: Option<DescriptorFetcher>,
    /// Transfers notified to a driver since construction.
    pub(crate) done: u64,
    /// Departure time of the last request.
    left_at: Ticks,
    /// Transfer and direction of the last request.
    pub(crate) described: Option<(u64, Verb)>,
    /// Time until which the channel is busy with its last request or command.
    pub(crate) occupied_until: Ticks,
    /// When it was free last, and what its current request waited for last, with the limit that this was.
    pub(crate) free: Milestone,
    pub(crate) waited_for: (Milestone, Cause),
    /// End of the start of the engine, until the next request.
    pub(crate) starts_until: Option<Ticks>,
    /// Time of the last request, or of the start command.
    pub(crate) issued_at: Ticks,
    /// Requests in the send buffers.
    pub(crate) unsent: usize,
    /// Time at which the last full send buffer was freed, and its stall cause.
    room: (Ticks, Option<Cause>),
    room_made: Milestone,
    /// Departure of the last request.
    left: Milestone,
    /// Outstanding transfers, the oldest one first.
    pub(crate) open: VecDeque<Open>,
    /// Times at which further transfers may leave the queue, if their number is limited: one for each that ended.
    pub(crate) queued: VecDeque<(Ticks, Milestone)>,
    /// Time at which an outstanding transfer ended while their number was at its limit.
    pub(crate) open_at: Ticks,
    /// End of the last outstanding transfer that ended.
    pub(crate) ended: Milestone,
    /// Bytes received since construction.
    pub(crate) received_bytes: u64,
    /// Runs while a transfer is outstanding.
    pub(crate) timer: Timer,
}

impl Channel {
    /// Creates an idle channel, with a fetcher if it has a driver interface.
    #[must_use]
    pub fn new(fetcher: Option<DescriptorFetcher>) -> Channel {
        Channel {
            job: None,
            is_whole: false,
            calls: None,
            fetcher,
            done: 0,
            left_at: Ticks::ZERO,
            described: None,
            occupied_until: Ticks::ZERO,
            free: Milestone::NONE,
            waited_for: (Milestone::NONE, Cause::Transit),
            starts_until: None,
            issued_at: Ticks::ZERO,
            unsent: 0,
            room: (Ticks::ZERO, None),
            room_made: Milestone::NONE,
            left: Milestone::NONE,
            open: VecDeque::new(),
            queued: VecDeque::new(),
            open_at: Ticks::ZERO,
            ended: Milestone::NONE,
            received_bytes: 0,
            timer: Timer::default(),
        }
    }

    /// Starts a job whose first request is issued at `from` at the earliest; `tick` is the card's clock period.
    pub(crate) fn begin(&mut self, now: Ticks, job: Job, from: Ticks, tick: Ticks) {
        self.timer.stop(self.moved_at(), tick);
        if job.piece.is_some() {
            self.timer.start(now);
        }
        self.job = Some(job);
        self.calls = None;
        self.is_whole = false;
        self.described = None;
        (self.free, self.waited_for) = (Milestone::NONE, (Milestone::NONE, Cause::Transit));
        self.drop_open();
        self.issued_at = now;
        self.occupied_until = self.occupied_until.max(from);
        self.starts_until = Some(from).filter(|from| *from > now);
    }

    /// Drops the outstanding transfers of an earlier job.
    pub(crate) fn drop_open(&mut self) {
        self.open.clear();
        self.queued.clear();
    }

    /// Returns when the last byte arrived or departed.
    pub(crate) fn moved_at(&self) -> Ticks {
        self.occupied_until.max(self.open_at)
    }

    /// Returns when the timer stops, if every request was issued and no driver is notified; otherwise a notification
    /// stops it.
    fn timed_until(&self) -> Ticks {
        let is_over = self.open.is_empty() && self.job.as_ref().is_none_or(|job| job.piece.is_none());
        if self.calls.is_none() && is_over { self.moved_at() } else { Ticks::NEVER }
    }

    /// Returns the value of the timer.
    pub(crate) fn timer_at(&self, now: Ticks, tick: Ticks) -> u64 {
        self.timer.at(now.min(self.timed_until()), tick)
    }

    /// Writes the timer.
    pub(crate) fn set_timer(&mut self, now: Ticks, value: u64, tick: Ticks) {
        if self.timed_until() <= now {
            self.timer.stop(self.moved_at(), tick);
        }
        self.timer.set(now, value);
    }

    /// Stops new requests and notifications; outstanding reads complete.
    pub(crate) fn halt(&mut self) {
        if let Some(job) = &mut self.job {
            (job.piece, job.released, job.transfers) = (None, job.next, job.next);
        }
        self.calls = None;
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.stop();
        }
    }

    /// Attaches the driver interface to the job.
    pub(crate) fn arm(&mut self, call: &DmaCall, mailbox: Mailbox) {
        let is_fetched = call.descriptors == Descriptors::Fetched;
        self.calls = Some(Calls {
            mailbox,
            is_fetched,
            completion: call.completion,
            notified: 0,
            held_until: Ticks::ZERO,
            fetching: Ticks::ZERO,
            group: None,
        });
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.stop();
        }
    }

    /// Rings the doorbell for the next transfer, by a store that was accepted at `milestone`.
    pub(crate) fn ring(&mut self, now: Ticks, milestone: Milestone, spec: &Spec) {
        let (Some(job), Some(calls)) = (&mut self.job, &mut self.calls) else { return };
        let Started { transfers, from } = match &mut calls.group {
            Some(bells) => bells.ring(now, job.transfer.count),
            None => Started { transfers: 1, from: now },
        };
        for _ in 0..transfers {
            self.release(from, milestone, spec);
        }
    }

    /// Releases the next transfer, which begins at `now` at the earliest.
    fn release(&mut self, now: Ticks, milestone: Milestone, spec: &Spec) {
        let (Some(job), Some(calls)) = (&mut self.job, &self.calls) else { return };
        if job.released == job.transfers {
            return;
        }
        let start = job.base + job.transfer.window.place(job.released, job.transfer.bytes);
        let starts = spec.start_of(job.transfer.verb);
        let bytes = job.bytes_of(job.released);
        job.released += 1;
        if job.piece.is_none() {
            job.advance();
        }
        self.timer.start(now);
        if now + starts > self.occupied_until {
            (self.occupied_until, self.free) = (now + starts, milestone);
            let is_by_kernel = calls.group.is_some_and(|bells| bells.starts_by_kernel());
            self.starts_until = Some(now + starts).filter(|_| starts > Ticks::ZERO || is_by_kernel);
        }
        self.issued_at = now;
        if let Some(fetcher) = self.fetcher.as_mut().filter(|_| calls.is_fetched) {
            fetcher.want(now, blocks(start, bytes, spec.descriptor_bytes));
            fetcher.set_room(milestone);
        }
    }

    /// Stops new requests; `tick` is the card's clock period.
    pub(crate) fn stop(&mut self, tick: Ticks) {
        self.timer.stop(self.moved_at(), tick);
        (self.job, self.calls) = (None, None);
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.stop();
        }
    }

    /// Returns whether every request was issued, every read completed and every transfer notified.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let is_told = |calls: &Calls| self.job.as_ref().is_none_or(|job| calls.notified == job.transfers);
        self.job.as_ref().is_none_or(|job| job.piece.is_none())
            && self.unsent == 0
            && self.open.is_empty()
            && self.calls.as_ref().is_none_or(is_told)
    }

    /// Returns the stall cause, if requests or completions are pending.
    pub(crate) fn waiting_for(&self, shared: &Shared<'_>) -> Option<Cause> {
        if self.unsent >= shared.spec.send_buffers {
            return Some(Cause::Credit);
        }
        if shared.tag_at.is_none() {
            return Some(Cause::Tag);
        }
        if !self.open.is_empty() {
            return Some(Cause::ReadRoundTrip);
        }
        let piece = self.job.as_ref()?.piece?;
        let is_starved = piece.verb == Verb::Store && self.fed_at(&piece, shared) == Ticks::NEVER;
        Some(if is_starved { Cause::Fifo } else { Cause::Engine })
    }

    /// Returns when the next request is issued, as far as is known now.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    pub(crate) fn due(&self, shared: &Shared<'_>) -> Ticks {
        match &self.calls {
            // Fast path: most channels have no job.
            None if self.job.is_none() => Ticks::NEVER,
            None => self.data_request_due(shared),
            Some(calls) => self.call_due(calls, shared),
        }
    }

    /// Returns when the next request of a channel with a driver is issued.
    #[inline(never)]
    fn call_due(&self, calls: &Calls, shared: &Shared<'_>) -> Ticks {
        let request = self.fetch_due(calls, shared.spec).min(self.described_due(calls, shared));
        request.min(self.notice_due(calls, shared.spec))
    }

    /// Returns when the next descriptor read is issued.
    pub(crate) fn fetch_due(&self, calls: &Calls, spec: &Spec) -> Ticks {
        let due = self.fetcher.as_ref().filter(|_| calls.is_fetched).map_or(Ticks::NEVER, DescriptorFetcher::due);
        if self.unsent >= spec.send_buffers { Ticks::NEVER } else { due.max(self.occupied_until).max(self.room.0) }
    }

    /// Returns when the next data request is issued, if it may need a descriptor first.
    fn described_due(&self, calls: &Calls, shared: &Shared<'_>) -> Ticks {
        let Some(Job { piece: Some(piece), .. }) = &self.job else { return Ticks::NEVER };
        let needs_one = calls.is_fetched && self.begins_descriptor(piece, shared.spec);
        let held = self.fetcher.as_ref().filter(|_| needs_one).map_or(Ticks::ZERO, DescriptorFetcher::held_since);
        self.data_request_due(shared).max(held)
    }

    /// Returns when the completion of the last transfer is notified.
    pub(crate) fn notice_due(&self, calls: &Calls, spec: &Spec) -> Ticks {
        let least = if calls.group.is_some() { self.job.as_ref().map_or(1, |job| job.transfer.count) } else { 1 };
        let Some(job) = self.job.as_ref().filter(|job| job.piece.is_none() && job.next >= calls.notified + least)
        else {
            return Ticks::NEVER;
        };
        let is_in_register = calls.completion == Completion::Register;
        let has_room = if is_in_register { self.unsent == 0 } else { self.unsent < spec.send_buffers };
        if !has_room || !self.open.is_empty() {
            return Ticks::NEVER;
        }
        let come = if job.transfer.verb == Verb::Load { self.open_at } else { Ticks::ZERO };
        let free = if is_in_register { self.left_at } else { self.occupied_until.max(self.room.0) };
        let due = come.max(free).max(calls.held_until);
        calls.group.map_or(due, |bells| bells.notice_at(due))
    }

    /// Returns when the next data request is issued.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    fn data_request_due(&self, shared: &Shared<'_>) -> Ticks {
        let Some(Job { piece: Some(piece), transfer, read, .. }) = &self.job else {
            return Ticks::NEVER;
        };
        if self.unsent >= shared.spec.send_buffers {
            return Ticks::NEVER;
        }
        let number = piece.number;
        if piece.verb == Verb::Store {
            let free = self.occupied_until.max(self.room.0).max(self.fed_at(piece, shared));
            let Some(most) = transfer.outstanding.filter(|_| read.is_some()) else { return free };
            // The first write of the next pair waits for the reads of the previous pairs.
            let begins = self.described.is_none_or(|(last, _)| last != number);
            return if begins && self.open.len() >= most as usize { Ticks::NEVER } else { free.max(self.open_at) };
        }
        let begins = Channel::begins_transfer(&self.open, number);
        let most = transfer.outstanding.map_or(usize::MAX, |most| most as usize);
        match shared.tag_at {
            Some(tag_at) if !(begins && self.open.len() >= most) => {
                let (leaves_queue, _) = Channel::leaves_queue_at(&self.queued, &self.open, number, transfer);
                self.occupied_until.max(self.room.0).max(tag_at).max(self.open_at).max(leaves_queue)
            }
            _ => Ticks::NEVER,
        }
    }

    /// Returns whether a read is the first one of transfer `number`.
    #[inline]
    fn begins_transfer(open: &VecDeque<Open>, number: u64) -> bool {
        open.back().is_none_or(|last| last.number != number)
    }

    /// Returns when a read of transfer `number` may leave the queue, and the end of the transfer before it in the
    /// queue; later reads of a transfer do not wait there.
    #[inline]
    fn leaves_queue_at(
        queued: &VecDeque<(Ticks, Milestone)>,
        open: &VecDeque<Open>,
        number: u64,
        transfer: &Transfer,
    ) -> (Ticks, Milestone) {
        let Some(next) = queued.front().filter(|_| Channel::begins_transfer(open, number)) else {
            return (Ticks::ZERO, Milestone::NONE);
        };
        // Each of the first ones has been in the queue since the start.
        let waits = transfer.outstanding.is_some_and(|most| open.len() + queued.len() >= most as usize);
        if waits { *next } else { (Ticks::ZERO, Milestone::NONE) }
    }

    /// Puts the next transfer into the queue when another one has ended.
    #[inline]
    pub(crate) fn queue_next(&mut self, now: Ticks, spec: &Spec) {
        let is_of_reads = self.job.as_ref().is_some_and(|job| job.transfer.verb == Verb::Load);
        if is_of_reads && spec.queue() > Ticks::ZERO {
            self.queued.push_back((now + spec.queue(), self.ended));
        }
    }

    /// Lets the next transfer leave the queue, with `open` others outstanding, whose first read is issued at `issued`;
    /// returns when it entered the queue, if it would begin at `begun` without one.
    #[inline]
    pub(crate) fn leave_queue(
        queued: &mut VecDeque<(Ticks, Milestone)>,
        open: usize,
        begun: Ticks,
        issued: Ticks,
        transfer: &Transfer,
        spec: &Spec,
    ) -> Ticks {
        if transfer.verb != Verb::Load || spec.queue() == Ticks::ZERO {
            return begun;
        }
        let waits = transfer.outstanding.is_some_and(|most| open + queued.len() >= most as usize);
        if waits || queued.front().is_some_and(|(at, _)| *at <= issued) {
            queued.pop_front();
        }
        Ticks(begun.0.saturating_sub(spec.queue().0))
    }

    /// Returns when the data of the next write became available in its queue.
    #[inline]
    fn fed_at(&self, piece: &Piece, shared: &Shared<'_>) -> Ticks {
        let (Some(queues), Some(job)) = (shared.queues, &self.job) else { return Ticks::ZERO };
        let begins = self.described.is_none_or(|(last, _)| last != piece.number);
        queues.gives_at(Channel::feeder(job), Channel::awaited_bytes(job, piece, self.is_whole && begins))
    }

    /// Returns the bytes that a write waits for in its queue: its own, or those of its whole transfer.
    #[inline]
    fn awaited_bytes(job: &Job, piece: &Piece, is_whole: bool) -> u64 {
        if is_whole { job.transfer.bytes } else { u64::from(piece.chunk.bytes) }
    }

    /// Returns the queue that feeds its writes.
    pub(crate) fn feeder(job: &Job) -> Queue {
        if job.transfer.partner == Partner::Host { Queue::Tx } else { Queue::EpTx }
    }

    /// Returns whether a piece begins a descriptor. Pieces end at page boundaries, so the first piece of a descriptor
    /// starts at such a boundary or with its transfer.
    #[inline]
    pub(crate) fn begins_descriptor(&self, piece: &Piece, spec: &Spec) -> bool {
        let address = piece.chunk.address;
        self.described != Some((piece.number, piece.verb)) || address & (spec.descriptor_bytes - 1) == 0
    }

    /// Returns the last stall cause of a request for `piece` at `now`, and the time since the previous request.
    /// `held` is when its descriptor arrived, `answered` when its translation did.
    #[inline]
    pub(crate) fn charge(
        &mut self,
        now: Ticks,
        piece: &Piece,
        [held, answered]: [Ticks; 2],
        shared: &Shared<'_>,
    ) -> (Cause, Ticks) {
        let mut last = (self.occupied_until, Cause::Engine);
        self.waited_for = (self.free, Cause::Transit);
        if held > last.0 {
            last = (held, Cause::Descriptor);
            let came = self.fetcher.as_ref().map_or(Milestone::NONE, DescriptorFetcher::came);
            self.waited_for = (came, Cause::Descriptor);
        }
        if self.room.0 > last.0 {
            // If the request that made room waited for nothing else, its way to the link was the limit.
            last = (self.room.0, self.room.1.unwrap_or(Cause::SendBuffers));
            let limit = if self.room.1.is_none() { Cause::SendBuffers } else { Cause::Transit };
            self.waited_for = (self.room_made, limit);
        }
        if answered > last.0 {
            last = (answered, Cause::Translation);
            self.waited_for = (shared.answered, Cause::Translation);
        }
        let mut look = |at: Ticks, cause: Cause, milestone: Milestone, limit: Cause| {
            if at > last.0 {
                last = (at, cause);
                self.waited_for = (milestone, limit);
            }
        };
        let Some(job) = &self.job else { return (last.1, Ticks::ZERO) };
        if piece.verb == Verb::Load {
            look(shared.tag_at.unwrap_or(Ticks::ZERO), shared.tag_because, shared.tag, Cause::Tag);
            look(self.open_at, Cause::ReadRoundTrip, self.ended, Cause::ReadRoundTrip);
            let queue = Channel::leaves_queue_at(&self.queued, &self.open, piece.number, &job.transfer);
            let (leaves_queue, before) = queue;
            // The queue begins when another transfer ends.
            look(leaves_queue, Cause::Engine, before, Cause::ReadRoundTrip);
        } else {
            if job.read.is_some() {
                look(self.open_at, Cause::ReadRoundTrip, self.ended, Cause::ReadRoundTrip);
            }
            if let Some(queues) = shared.queues {
                let begins = self.described.is_none_or(|(last, _)| last != piece.number);
                let feeder = Channel::feeder(job);
                let fed_at = queues.gives_at(feeder, Channel::awaited_bytes(job, piece, self.is_whole && begins));
                look(fed_at, Cause::Fifo, queues.filled(feeder), Cause::Fifo);
            }
        }
        let span = now.since(self.issued_at);
        self.issued_at = now;
        if let Some(calls) = self.calls.as_mut().filter(|_| last.1 == Cause::Descriptor) {
            calls.fetching += span;
        }
        (last.1, span)
    }

    /// Records that a notification or a descriptor read waits for nothing but this channel, or for `others`.
    pub(crate) fn wait_for_last(&mut self, others: &[(Ticks, Milestone, Cause)]) {
        let own = [(self.occupied_until, self.free, Cause::Transit), (self.room.0, self.room_made, Cause::Transit)];
        let last = own.iter().chain(others).max_by_key(|(at, ..)| *at);
        self.waited_for = last.map_or((self.free, Cause::Transit), |(_, milestone, limit)| (*milestone, *limit));
    }

    /// Returns the departure of the last request.
    pub(crate) fn last_departure(&self) -> (Ticks, Milestone) {
        (self.left_at, self.left)
    }

    /// Visits the state of a channel of card `owner`; returns the number of transfers begun, before and after the
    /// visit.
    pub(crate) fn visit(&mut self, view: &mut impl Survey, owner: u16) -> [u64; 2] {
        let Channel {
            job,
            is_whole,
            calls,
            fetcher,
            done,
            left_at,
            described,
            occupied_until,
            free: _,
            waited_for: _,
            starts_until: _,
            issued_at,
            unsent,
            room: (room_at, room_because),
            room_made: _,
            left: _,
            open,
            queued,
            open_at,
            ended: _,
            received_bytes,
            timer,
        } = self;
        let begun = job.as_ref().map_or(0, |job| job.next);
        if let Some(job) = job {
            job.visit(view, owner);
        }
        let now_begun = job.as_ref().map_or(0, |job| job.next);
        let moved = now_begun - begun;
        view.flag(*is_whole);
        view.flag(calls.is_some());
        if let Some(calls) = calls {
            calls.visit(view);
        }
        if let Some(fetcher) = fetcher {
            fetcher.visit(view);
        }
        view.state(*done);
        view.time(left_at);
        view.flag(described.is_some());
        if let Some((number, verb)) = described {
            view.state(begun.wrapping_sub(*number));
            *number += moved;
            view.count(*verb as usize);
        }
        view.time(occupied_until);
        // The next request subtracts from it and sets it anew; if it does not change, there is no request.
        view.time(issued_at);
        view.count(*unsent);
        view.time(room_at);
        view.count(room_because.map_or(0, |because| because.index() + 1));
        view.count(open.len());
        for Open { number, left, begun: since } in open {
            view.state(begun.wrapping_sub(*number));
            *number += moved;
            view.state(*left);
            view.moment(since);
        }
        view.count(queued.len());
        for (at, _) in queued {
            view.time(at);
        }
        view.time(open_at);
        view.counter(received_bytes);
        timer.visit(view);
        [begun, now_begun]
    }

    /// Returns whether something may wait for the departure of the next request that leaves.
    #[inline]
    pub(crate) fn awaits_departure(&self, spec: &Spec) -> bool {
        self.unsent == spec.send_buffers || self.calls.is_some()
    }

    /// Records that a request left for the link after a stall for `because`; returns whether the next request may be
    /// due at another time.
    #[inline]
    pub(crate) fn left(&mut self, now: Ticks, because: Option<Cause>, departed: Milestone, spec: &Spec) -> bool {
        self.left = departed;
        let was_full = self.unsent == spec.send_buffers;
        if was_full {
            (self.room, self.room_made) = ((now, because), departed);
        }
        self.unsent -= 1;
        self.left_at = now;
        was_full || self.calls.is_some()
    }
}
