//! A channel of a DMA engine: makes the requests of one job, one after the other.
//!
//! Tags, data path and queues are the engine's; a channel has its descriptor, its request and its room before the link for
//! itself, so that another one makes requests while it works on a descriptor. So has it what a driver meets it by: a doorbell, a
//! list or ring of descriptors with its own fetcher, a status register, a word in host memory and a message.

use crate::device::descriptor_fetcher::DescriptorFetcher;
use crate::device::dma_engine::spec::Spec;
use crate::device::interconnect::{Interconnect, Queue};
use crate::device::job::{Job, Piece};
use crate::device::timer::Timer;
use crate::host::driver::blocks;
use crate::steady::Survey;
use lanemark_machine::{Cause, Completion, Descriptors, DmaCall, Partner, Verb};
use lanemark_platform::Mailbox;
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// How a driver and the engine tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calls {
    pub mailbox: Mailbox,
    pub is_fetched: bool,
    pub completion: Completion,
    /// Transfers that somebody was told of.
    pub told: u64,
    /// Until when a message is held back, because its vector is masked.
    pub held_until: Ticks,
    /// What its requests waited for descriptors.
    pub fetching: Ticks,
}

/// What a channel shares with the others.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub spec: &'a Spec,
    /// When a tag became free while there was none; `None` if there is none.
    pub tag_at: Option<Ticks>,
    /// What that tag had waited for.
    pub tag_because: Cause,
    pub queues: Option<&'a Interconnect>,
}

/// A transfer under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub number: u64,
    /// Its bytes that have not come.
    pub left: u64,
    pub begun: Ticks,
}

/// Everything that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub(crate) job: Option<Job>,
    /// A transfer begins when all of it is in the queue.
    pub(crate) is_whole: bool,
    /// Who is told, if the job came with a driver.
    pub(crate) calls: Option<Calls>,
    pub(crate) fetcher: Option<DescriptorFetcher>,
    /// Transfers that a driver was told of, ever.
    pub(crate) done: u64,
    /// When the last request left for the link.
    left_at: Ticks,
    /// The transfer that the last request belonged to, and which way it went.
    pub(crate) described: Option<(u64, Verb)>,
    /// Until when it is occupied by its last request, or its command.
    pub(crate) occupied_until: Ticks,
    /// When it made its last request, or was told to begin.
    pub(crate) issued_at: Ticks,
    /// Requests that have not left for the link.
    pub(crate) unsent: usize,
    /// When the last one left, and what it had waited for.
    room: (Ticks, Option<Cause>),
    /// Transfers under way, the oldest first.
    pub(crate) open: VecDeque<Open>,
    /// When one of them ended while there might be no more.
    pub(crate) open_at: Ticks,
    /// Bytes that came for it, ever.
    pub(crate) received_bytes: u64,
    /// Runs while it has a transfer to make.
    pub(crate) timer: Timer,
}

impl Channel {
    /// With nothing to do; with a fetcher if it meets a driver.
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
            issued_at: Ticks::ZERO,
            unsent: 0,
            room: (Ticks::ZERO, None),
            open: VecDeque::new(),
            open_at: Ticks::ZERO,
            received_bytes: 0,
            timer: Timer::default(),
        }
    }

    /// Takes a job, of which some may begin at `from`; `tick` is that of the card's clock.
    pub(crate) fn begin(&mut self, now: Ticks, job: Job, from: Ticks, tick: Ticks) {
        self.timer.stop(self.moved_at(), tick);
        if job.piece.is_some() {
            self.timer.start(now);
        }
        self.job = Some(job);
        self.calls = None;
        self.is_whole = false;
        self.described = None;
        // What a job that was stopped had begun and not asked for will never come.
        self.open.clear();
        self.issued_at = now;
        self.occupied_until = self.occupied_until.max(from);
    }

    /// When its last byte came, or went on its way.
    pub(crate) fn moved_at(&self) -> Ticks {
        self.occupied_until.max(self.open_at)
    }

    /// When its timer stops or has stopped, if all is on its way and no driver is told: then it is stopped when that is.
    fn timed_until(&self) -> Ticks {
        let is_over = self.open.is_empty() && self.job.as_ref().is_none_or(|job| job.piece.is_none());
        if self.calls.is_none() && is_over { self.moved_at() } else { Ticks::NEVER }
    }

    /// What its timer shows.
    pub(crate) fn timer_at(&self, now: Ticks, tick: Ticks) -> u64 {
        self.timer.at(now.min(self.timed_until()), tick)
    }

    /// Somebody writes to its timer.
    pub(crate) fn set_timer(&mut self, now: Ticks, value: u64, tick: Ticks) {
        if self.timed_until() <= now {
            self.timer.stop(self.moved_at(), tick);
        }
        self.timer.set(now, value);
    }

    /// Makes no more requests and tells nobody of an end; what was asked for still comes to its place.
    pub(crate) fn halt(&mut self) {
        if let Some(job) = &mut self.job {
            (job.piece, job.released, job.transfers) = (None, job.next, job.next);
        }
        self.calls = None;
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.stop();
        }
    }

    /// Takes calls for the job.
    pub(crate) fn arm(&mut self, call: &DmaCall, mailbox: Mailbox) {
        let is_fetched = call.descriptors == Descriptors::Fetched;
        self.calls = Some(Calls {
            mailbox,
            is_fetched,
            completion: call.completion,
            told: 0,
            held_until: Ticks::ZERO,
            fetching: Ticks::ZERO,
        });
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.stop();
        }
    }

    /// A driver rings for the next transfer.
    pub(crate) fn ring(&mut self, now: Ticks, spec: &Spec) {
        let (Some(job), Some(calls)) = (&mut self.job, &self.calls) else { return };
        if job.released == job.transfers {
            return;
        }
        let start = job.base + job.transfer.window.place(job.released, job.transfer.bytes);
        let bytes = job.bytes_of(job.released);
        job.released += 1;
        if job.piece.is_none() {
            job.advance();
        }
        self.timer.start(now);
        self.occupied_until = self.occupied_until.max(now + spec.start);
        self.issued_at = now;
        if let Some(fetcher) = self.fetcher.as_mut().filter(|_| calls.is_fetched) {
            fetcher.want(now, blocks(start, bytes, spec.descriptor_bytes));
        }
    }

    /// Makes no more requests; `tick` is that of the card's clock.
    pub(crate) fn stop(&mut self, tick: Ticks) {
        self.timer.stop(self.moved_at(), tick);
        (self.job, self.calls) = (None, None);
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.stop();
        }
    }

    /// Whether everything was asked for, every read has come, and all is told.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let is_told = |calls: &Calls| self.job.as_ref().is_none_or(|job| calls.told == job.transfers);
        self.job.as_ref().is_none_or(|job| job.piece.is_none())
            && self.unsent == 0
            && self.open.is_empty()
            && self.calls.as_ref().is_none_or(is_told)
    }

    /// What it waits for, if there is something to be asked for or to come.
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

    /// When the next request is made, as far as is known now.
    #[inline]
    pub(crate) fn due(&self, shared: &Shared<'_>) -> Ticks {
        match &self.calls {
            // Most channels have nothing to do, and that is seen here.
            None if self.job.is_none() => Ticks::NEVER,
            None => self.data_request_due(shared),
            Some(calls) => {
                let request = self.fetch_due(calls, shared.spec).min(self.described_due(calls, shared));
                request.min(self.notice_due(calls, shared.spec))
            }
        }
    }

    /// When it asks for the next descriptor.
    pub(crate) fn fetch_due(&self, calls: &Calls, spec: &Spec) -> Ticks {
        let due = self.fetcher.as_ref().filter(|_| calls.is_fetched).map_or(Ticks::NEVER, DescriptorFetcher::due);
        if self.unsent >= spec.send_buffers { Ticks::NEVER } else { due.max(self.occupied_until).max(self.room.0) }
    }

    /// When it makes the next request for data, if that may need a descriptor first.
    fn described_due(&self, calls: &Calls, shared: &Shared<'_>) -> Ticks {
        let Some(Job { piece: Some(piece), .. }) = &self.job else { return Ticks::NEVER };
        let needs_one = calls.is_fetched && self.begins_descriptor(piece, shared.spec);
        let held = self.fetcher.as_ref().filter(|_| needs_one).map_or(Ticks::ZERO, DescriptorFetcher::held_since);
        self.data_request_due(shared).max(held)
    }

    /// When it tells of the end of the transfer begun last.
    pub(crate) fn notice_due(&self, calls: &Calls, spec: &Spec) -> Ticks {
        let Some(job) = self.job.as_ref().filter(|job| job.piece.is_none() && job.next > calls.told) else {
            return Ticks::NEVER;
        };
        let is_in_register = calls.completion == Completion::Register;
        let has_room = if is_in_register { self.unsent == 0 } else { self.unsent < spec.send_buffers };
        if !has_room || !self.open.is_empty() {
            return Ticks::NEVER;
        }
        let come = if job.transfer.verb == Verb::Load { self.open_at } else { Ticks::ZERO };
        let free = if is_in_register { self.left_at } else { self.occupied_until.max(self.room.0) };
        come.max(free).max(calls.held_until)
    }

    /// When it makes the next request for data.
    #[inline]
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
            // The first write of the next pair waits for the reads of those before.
            let begins = self.described.is_none_or(|(last, _)| last != number);
            return if begins && self.open.len() >= most as usize { Ticks::NEVER } else { free.max(self.open_at) };
        }
        let begins = self.open.back().is_none_or(|last| last.number != number);
        let most = transfer.outstanding.map_or(usize::MAX, |most| most as usize);
        match shared.tag_at {
            Some(tag_at) if !(begins && self.open.len() >= most) => {
                self.occupied_until.max(self.room.0).max(tag_at).max(self.open_at)
            }
            _ => Ticks::NEVER,
        }
    }

    /// Since when what the next write carries is in the queue before it.
    #[inline]
    fn fed_at(&self, piece: &Piece, shared: &Shared<'_>) -> Ticks {
        let (Some(queues), Some(job)) = (shared.queues, &self.job) else { return Ticks::ZERO };
        let begins = self.described.is_none_or(|(last, _)| last != piece.number);
        let bytes = if self.is_whole && begins { job.transfer.bytes } else { u64::from(piece.chunk.bytes) };
        queues.gives_at(Channel::feeder(job), bytes)
    }

    /// The queue that its writes come from.
    pub(crate) fn feeder(job: &Job) -> Queue {
        if job.transfer.partner == Partner::Host { Queue::Tx } else { Queue::EpTx }
    }

    /// Whether a piece is the first that a descriptor is about: pieces go up to boundaries of pages, so a descriptor's first one
    /// starts at it, or with its transfer.
    #[inline]
    pub(crate) fn begins_descriptor(&self, piece: &Piece, spec: &Spec) -> bool {
        let address = piece.chunk.address;
        self.described != Some((piece.number, piece.verb)) || address & (spec.descriptor_bytes - 1) == 0
    }

    /// What became ready last before a request at `now` for `piece`, whose descriptor was there at `held` and its page known at
    /// `answered`, and the time since the last request.
    #[inline]
    pub(crate) fn charge(
        &mut self,
        now: Ticks,
        piece: &Piece,
        [held, answered]: [Ticks; 2],
        shared: &Shared<'_>,
    ) -> (Cause, Ticks) {
        let mut last = (self.occupied_until, Cause::Engine);
        if held > last.0 {
            last = (held, Cause::Descriptor);
        }
        if self.room.0 > last.0 {
            last = (self.room.0, self.room.1.unwrap_or(Cause::LinkBusy));
        }
        if answered > last.0 {
            last = (answered, Cause::Translation);
        }
        let is_load = piece.verb == Verb::Load;
        let awaits_reads = is_load || self.job.as_ref().is_some_and(|job| job.read.is_some());
        let fed_at = if is_load { Ticks::ZERO } else { self.fed_at(piece, shared) };
        let tag_at = shared.tag_at.unwrap_or(Ticks::ZERO);
        for (at, cause, counts) in [
            (tag_at, shared.tag_because, is_load),
            (self.open_at, Cause::ReadRoundTrip, awaits_reads),
            (fed_at, Cause::Fifo, !is_load),
        ] {
            if counts && at > last.0 {
                last = (at, cause);
            }
        }
        let span = now.since(self.issued_at);
        self.issued_at = now;
        if let Some(calls) = self.calls.as_mut().filter(|_| last.1 == Cause::Descriptor) {
            calls.fetching += span;
        }
        (last.1, span)
    }

    /// Shows everything that changes in a channel of card `owner`; says how many transfers its job had begun, and has now.
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
            issued_at,
            unsent,
            room: (room_at, room_because),
            open,
            open_at,
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
        if let Some(Calls { mailbox: _, is_fetched: _, completion: _, told, held_until, fetching }) = calls {
            view.state(*told);
            view.time(held_until);
            view.counter(&mut fetching.0);
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
        // Subtracted by the next request, which changes it: one that does not change belongs to no request.
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
        view.time(open_at);
        view.counter(received_bytes);
        timer.visit(view);
        [begun, now_begun]
    }

    /// One of its requests left for the link, having waited for `because`; says whether that matters for when its next one
    /// is due.
    #[inline]
    pub(crate) fn left(&mut self, now: Ticks, because: Option<Cause>, spec: &Spec) -> bool {
        let was_full = self.unsent == spec.send_buffers;
        if was_full {
            self.room = (now, because);
        }
        self.unsent -= 1;
        self.left_at = now;
        was_full || self.calls.is_some()
    }
}
