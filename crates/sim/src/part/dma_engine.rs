//! A DMA engine: makes a device's own requests, and takes what comes back.
//!
//! ```text
//!  command --start--> requests, one after the other --egress--> link
//!                        ^ tags, room before the link
//!  sink <--beats--- data path <--ingress-- completions
//! ```
//!
//! Ports: [`DmaEngine::start`] takes a job; [`DmaEngine::issue`] makes its next request when that is
//! [due](DmaEngine::due); [`DmaEngine::left`] hears that a request has left for the link; [`DmaEngine::arrive`] takes
//! completions from the link, and [`DmaEngine::take_data`] puts them away.
//!
//! A request occupies the engine for its beats, header and payload, and what a request costs besides; so does a
//! completion the way of data in. A job may have a read behind each of its writes. What a write carries says where it goes and in which pass, as a core's stores do.
//!
//! A job may come with a driver ([`DmaEngine::arm`]): each of its transfers then begins when the
//! [doorbell](DmaEngine::store_arrives) is rung, may have to wait for a descriptor that is
//! [fetched](crate::part::descriptor_fetcher), and is told of when it is over: by a word in host memory or a message behind its
//! last write, or in a register when its last write has left and its last read has come.
//!
//! Waits recorded: `Engine` while it is occupied, `Tag` when as many reads as there are tags were under way,
//! `ReadRoundTrip` when as many transfers as the job allows were, `Descriptor` when none had come, and what the link waited
//! for when there was no room before it.

use crate::engine::{Slab, Slot, Wire};
use crate::part::descriptor_fetcher::{self, DescriptorFetcher};
use crate::part::driver::blocks;
use crate::part::memory::Memory;
use crate::part::program::stored_bytes;
use crate::tlp::{Tlp, TlpKind, span};
use lanemark_machine::{Cause, Completion, Descriptors, DmaCall, Partner, Samples, Transfer, Verb, Window, WriteRead};
use lanemark_platform::Mailbox;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;
use lanemark_wire::split::{Chunks, requests};
use std::collections::VecDeque;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its number as a requester.
    pub requester: u16,
    /// Reads that may be under way.
    pub tags: u16,
    /// Most bytes of a read.
    pub read_bytes: u32,
    /// Most bytes of a write.
    pub write_bytes: u32,
    /// Bytes of its data path.
    pub beat_bytes: u32,
    /// Time between two beats.
    pub beat: Ticks,
    /// What a read takes besides its beats.
    pub read_request: Ticks,
    /// What a write takes besides its beats.
    pub write_request: Ticks,
    /// Bytes of host memory of one descriptor.
    pub descriptor_bytes: u64,
    /// What a descriptor takes before its first request.
    pub descriptor: Ticks,
    /// From the command to the first request.
    pub start: Ticks,
    /// Requests that may wait for the link.
    pub send_buffers: usize,
    /// Whether its requests for data have relaxed ordering, and ID-based ordering; its notices never do.
    pub relaxed: bool,
    /// See `relaxed`.
    pub id_based: bool,
    /// From the engine to the link.
    pub egress: Ticks,
    /// From the link to the engine.
    pub ingress: Ticks,
    /// Where it meets its driver, if it has one.
    pub mailbox: Option<Mailbox>,
    /// Bytes of a descriptor that it fetches.
    pub descriptor_entry_bytes: u64,
    /// Descriptors fetched ahead.
    pub prefetch_descriptors: u16,
}

/// How a driver and the engine tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Calls {
    mailbox: Mailbox,
    is_fetched: bool,
    completion: Completion,
    /// Transfers that somebody was told of.
    told: u64,
}

/// Bytes of the word or message that tells of an end.
const NOTICE_BYTES: u64 = 4;

/// What a sink holds before anything arrived: nothing that memory holds at the same place.
const EMPTY: u8 = 0x5A;

/// A job: a transfer of a plan, so many times.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Job {
    transfer: Transfer,
    /// Bus address of where offset 0 of the window lies.
    base: u64,
    /// Number of the first pass.
    first_pass: u64,
    /// Transfers in all, and those that may begin.
    transfers: u64,
    released: u64,
    /// The next transfer to begin.
    next: u64,
    /// What is left of the one begun last.
    pieces: Chunks,
    /// Where is read behind each of its writes, and what is left of that.
    read: Option<Window>,
    read_pieces: Chunks,
    /// Whether both take turns, and how many bytes more were written than read in this one.
    is_mixed: bool,
    ahead: i64,
    /// The request to be made next.
    piece: Option<Piece>,
}

/// What the next request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// The number of its transfer.
    number: u64,
    chunk: Chunk,
    verb: Verb,
}

impl Job {
    /// Makes sure that there is a next request, if there is to be one.
    fn advance(&mut self) {
        self.piece = loop {
            if self.is_mixed
                && self.ahead > 0
                && let Some(chunk) = self.read_pieces.next()
            {
                self.ahead -= i64::from(chunk.bytes);
                break Some(Piece { number: self.next - 1, chunk, verb: Verb::Load });
            }
            if let Some(chunk) = self.pieces.next() {
                self.ahead += i64::from(chunk.bytes);
                break Some(Piece { number: self.next - 1, chunk, verb: self.transfer.verb });
            }
            if let Some(chunk) = self.read_pieces.next() {
                break Some(Piece { number: self.next - 1, chunk, verb: Verb::Load });
            }
            if self.next == self.released {
                break None;
            }
            let bytes = self.transfer.bytes;
            self.pieces.begin(self.base + self.transfer.window.place(self.next, bytes), bytes);
            self.ahead = 0;
            if let Some(read) = &self.read {
                self.read_pieces.begin(self.base + read.place(self.next, bytes), bytes);
            }
            self.next += 1;
        };
    }
}

/// A read under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Read {
    /// Bytes that have not come.
    left: u32,
    /// The number of its transfer.
    transfer: u64,
}

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmaEngine {
    spec: Spec,
    job: Option<Job>,
    /// Who is told, if the job came with a driver.
    calls: Option<Calls>,
    fetcher: Option<DescriptorFetcher>,
    /// Transfers that a driver was told of, ever.
    done: u64,
    /// That number is not in the status register yet.
    is_status_due: bool,
    /// When the last request left for the link.
    left_at: Ticks,
    /// The transfer that the last request belonged to, and which way it went.
    described: Option<(u64, Verb)>,
    /// Until when it is occupied by its last request, or its command.
    occupied_until: Ticks,
    /// When it made its last request, or was told to begin.
    issued_at: Ticks,
    /// Requests that have not left for the link.
    unsent: usize,
    /// When the last one left, and what it had waited for.
    room: (Ticks, Option<Cause>),
    reads: Vec<Read>,
    free_tags: Vec<u16>,
    /// When a tag became free while there was none.
    tag_at: Ticks,
    /// Transfers under way: the number of each, its bytes that have not come, and when it was begun.
    open: VecDeque<(u64, u64, Ticks)>,
    /// When one of them ended while there might be no more.
    open_at: Ticks,
    /// Completions on their way in, by the time their last beat is taken.
    arriving: Wire<Tlp>,
    data_until: Ticks,
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
    /// What it waited for since it was told to begin, by [`Cause::index`].
    pub waits: [Ticks; Cause::ALL.len()],
}

impl DmaEngine {
    /// With nothing to do.
    #[must_use]
    pub fn new(spec: Spec) -> DmaEngine {
        let fetcher = spec.mailbox.map(|mailbox| {
            DescriptorFetcher::new(descriptor_fetcher::Spec {
                requester: spec.requester,
                first_tag: spec.tags,
                depth: spec.prefetch_descriptors,
                entry_bytes: spec.descriptor_entry_bytes,
                ring: mailbox.ring,
                ring_bytes: mailbox.ring_bytes,
            })
        });
        DmaEngine {
            job: None,
            calls: None,
            fetcher,
            done: 0,
            is_status_due: false,
            left_at: Ticks::ZERO,
            described: None,
            occupied_until: Ticks::ZERO,
            issued_at: Ticks::ZERO,
            unsent: 0,
            room: (Ticks::ZERO, None),
            reads: vec![Read::default(); usize::from(spec.tags)],
            free_tags: (0..spec.tags).rev().collect(),
            tag_at: Ticks::ZERO,
            open: VecDeque::new(),
            open_at: Ticks::ZERO,
            arriving: Wire::default(),
            data_until: Ticks::ZERO,
            sink: Memory::holding(EMPTY),
            received_at: Ticks::ZERO,
            received_bytes: 0,
            latencies: Vec::new(),
            refused: None,
            waits: [Ticks::ZERO; Cause::ALL.len()],
            spec,
        }
    }

    /// Tells it to make `transfer`, `passes` times, with a read for each if there are pairs; `base` is the bus address of the
    /// windows' offset 0.
    pub fn start(
        &mut self,
        now: Ticks,
        transfer: &Transfer,
        pairs: Option<&WriteRead>,
        base: u64,
        passes: u64,
        first_pass: u64,
    ) {
        let mut job = self.job_of(transfer, base, passes, first_pass);
        job.released = job.transfers;
        if let Some(pairs) = pairs {
            (job.read, job.is_mixed) = (Some(pairs.read), pairs.is_mixed);
        }
        job.advance();
        self.begin(now, job);
        self.calls = None;
        self.occupied_until = now + self.spec.start;
    }

    /// Tells it to make the transfer of `call`, `passes` times, each when its bell is rung; says how many it has told of
    /// before. `None` if it meets no driver.
    pub fn arm(&mut self, now: Ticks, call: &DmaCall, base: u64, passes: u64, first_pass: u64) -> Option<u64> {
        let mailbox = self.spec.mailbox?;
        let job = self.job_of(&call.transfer, base, passes, first_pass);
        self.begin(now, job);
        let is_fetched = call.descriptors == Descriptors::Fetched;
        self.calls = Some(Calls { mailbox, is_fetched, completion: call.completion, told: 0 });
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.stop();
        }
        Some(self.done)
    }

    /// A job of which nothing may begin.
    fn job_of(&self, transfer: &Transfer, base: u64, passes: u64, first_pass: u64) -> Job {
        let most = if transfer.verb == Verb::Store { self.spec.write_bytes } else { self.spec.read_bytes };
        Job {
            transfer: *transfer,
            base,
            first_pass,
            transfers: transfer.count.saturating_mul(passes),
            released: 0,
            next: 0,
            pieces: requests(0, 0, most),
            read: None,
            read_pieces: requests(0, 0, self.spec.read_bytes),
            is_mixed: false,
            ahead: 0,
            piece: None,
        }
    }

    fn begin(&mut self, now: Ticks, job: Job) {
        self.latencies.clear();
        if job.transfer.under_way.is_some() {
            self.latencies.reserve(job.transfers.min(Samples::MOST_LATENCIES as u64) as usize);
        }
        self.job = Some(job);
        self.described = None;
        // What a job that was stopped had begun and not asked for will never come.
        self.open.clear();
        self.issued_at = now;
        (self.refused, self.waits) = (None, [Ticks::ZERO; Cause::ALL.len()]);
    }

    /// A store to the card was accepted: if it is to the doorbell, the next transfer may begin. Says whether it was.
    #[inline]
    pub fn store_arrives(&mut self, now: Ticks, address: u64) -> bool {
        let is_rung = self.calls.as_ref().is_some_and(|calls| calls.mailbox.doorbell == address);
        if is_rung {
            self.ring(now);
        }
        is_rung
    }

    fn ring(&mut self, now: Ticks) {
        let (Some(job), Some(calls)) = (&mut self.job, &self.calls) else { return };
        if job.released == job.transfers {
            return;
        }
        let start = job.base + job.transfer.window.place(job.released, job.transfer.bytes);
        job.released += 1;
        if job.piece.is_none() {
            job.advance();
        }
        self.occupied_until = self.occupied_until.max(now + self.spec.start);
        self.issued_at = now;
        if let Some(fetcher) = self.fetcher.as_mut().filter(|_| calls.is_fetched) {
            fetcher.want(now, blocks(start, job.transfer.bytes, self.spec.descriptor_bytes));
        }
    }

    /// Makes no more requests; what is under way arrives.
    pub fn stop(&mut self) {
        (self.job, self.calls) = (None, None);
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.stop();
        }
    }

    /// Whether everything was asked for and every read has come.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let is_told = |calls: &Calls| self.job.as_ref().is_none_or(|job| calls.told == job.transfers);
        self.job.as_ref().is_none_or(|job| job.piece.is_none())
            && self.unsent == 0
            && self.open.is_empty()
            && self.calls.as_ref().is_none_or(is_told)
    }

    /// How many transfers it has told a driver of, if the register that says so does not know yet.
    pub fn take_status(&mut self) -> Option<(u64, u64)> {
        let calls = self.calls.as_ref().filter(|_| self.is_status_due)?;
        self.is_status_due = false;
        Some((calls.mailbox.status, self.done))
    }

    /// Bus address of the register that says so.
    #[must_use]
    pub fn status_at(&self) -> Option<u64> {
        self.spec.mailbox.map(|mailbox| mailbox.status)
    }

    /// How many transfers it has told a driver of.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done
    }

    /// When it made its last request.
    #[must_use]
    pub fn issued_at(&self) -> Ticks {
        self.issued_at
    }

    /// What it waits for, if there is something to be asked for or to come.
    #[must_use]
    pub fn waiting_for(&self) -> Option<Cause> {
        if self.unsent >= self.spec.send_buffers {
            return Some(Cause::Credit);
        }
        if self.free_tags.is_empty() {
            return Some(Cause::Tag);
        }
        (!self.open.is_empty()).then_some(Cause::ReadRoundTrip)
    }

    /// When the next request is made, as far as is known now.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        match &self.calls {
            None => self.data_request_due(),
            Some(calls) => self.fetch_due(calls).min(self.described_due(calls)).min(self.notice_due(calls)),
        }
    }

    /// When it asks for the next descriptor.
    fn fetch_due(&self, calls: &Calls) -> Ticks {
        let due = self.fetcher.as_ref().filter(|_| calls.is_fetched).map_or(Ticks::NEVER, DescriptorFetcher::due);
        if self.unsent >= self.spec.send_buffers { Ticks::NEVER } else { due.max(self.occupied_until).max(self.room.0) }
    }

    /// When it makes the next request for data, if that may need a descriptor first.
    fn described_due(&self, calls: &Calls) -> Ticks {
        let Some(Job { piece: Some(piece), .. }) = &self.job else { return Ticks::NEVER };
        let needs_one = calls.is_fetched && self.begins_descriptor(piece);
        let held = self.fetcher.as_ref().filter(|_| needs_one).map_or(Ticks::ZERO, DescriptorFetcher::held_since);
        self.data_request_due().max(held)
    }

    /// When it tells of the end of the transfer begun last.
    fn notice_due(&self, calls: &Calls) -> Ticks {
        let Some(job) = self.job.as_ref().filter(|job| job.piece.is_none() && job.next > calls.told) else {
            return Ticks::NEVER;
        };
        let is_in_register = calls.completion == Completion::Register;
        let has_room = if is_in_register { self.unsent == 0 } else { self.unsent < self.spec.send_buffers };
        if !has_room || !self.open.is_empty() {
            return Ticks::NEVER;
        }
        let come = if job.transfer.verb == Verb::Load { self.open_at } else { Ticks::ZERO };
        let free = if is_in_register { self.left_at } else { self.occupied_until.max(self.room.0) };
        come.max(free)
    }

    /// When it makes the next request for data.
    #[inline]
    fn data_request_due(&self) -> Ticks {
        let Some(Job { piece: Some(Piece { number, verb, .. }), transfer, read, .. }) = &self.job else {
            return Ticks::NEVER;
        };
        if self.unsent >= self.spec.send_buffers {
            return Ticks::NEVER;
        }
        if *verb == Verb::Store {
            let free = self.occupied_until.max(self.room.0);
            let Some(most) = transfer.under_way.filter(|_| read.is_some()) else { return free };
            // The first write of the next pair waits for the reads of those before.
            let begins = self.described.is_none_or(|(last, _)| last != *number);
            return if begins && self.open.len() >= most as usize { Ticks::NEVER } else { free.max(self.open_at) };
        }
        let begins = self.open.back().is_none_or(|(last, ..)| last != number);
        let most = transfer.under_way.map_or(usize::MAX, |most| most as usize);
        if self.free_tags.is_empty() || begins && self.open.len() >= most {
            return Ticks::NEVER;
        }
        self.occupied_until.max(self.room.0).max(self.tag_at).max(self.open_at)
    }

    /// Makes the next request; with it comes when it is at the link.
    #[inline]
    pub fn issue(&mut self, now: Ticks, slab: &mut Slab) -> Option<(Ticks, Tlp)> {
        if self.due() > now {
            return None;
        }
        if let Some(calls) = self.calls {
            if self.fetch_due(&calls) <= now {
                let tlp = self.fetcher.as_mut()?.ask(now)?;
                return Some(self.send(now, tlp, Ticks::ZERO));
            }
            if self.notice_due(&calls) <= now {
                return self.tell(now, slab);
            }
        }
        let piece = self.job.as_ref()?.piece?;
        let Piece { number, chunk, verb } = piece;
        // Pieces go up to boundaries of pages, so a descriptor's first one starts at it, or with its transfer.
        let is_first = self.begins_descriptor(&piece);
        let job = self.job.as_mut()?;
        let (address, length_dw, first_be, last_be) = span(chunk.address, u64::from(chunk.bytes));
        let Spec { requester, relaxed, id_based, .. } = self.spec;
        let mut tlp =
            Tlp { address, length_dw, first_be, last_be, requester, relaxed, id_based, ..Tlp::of(TlpKind::MWr) };
        if verb == Verb::Store {
            tlp.payload = slab.take();
            let skip = (chunk.address - address) as usize;
            let turn = job.first_pass + number / job.transfer.count;
            stored_bytes(chunk.address, turn, &mut slab.bytes_mut(tlp.payload)[skip..skip + chunk.bytes as usize]);
        } else {
            tlp.kind = TlpKind::MRd;
            tlp.tag = self.free_tags.pop()?;
            self.reads[usize::from(tlp.tag)] = Read { left: chunk.bytes, transfer: number };
            if self.open.back().is_none_or(|(last, ..)| *last != number) {
                self.open.push_back((number, job.transfer.bytes, now));
            }
        }
        self.described = Some((number, verb));
        let is_described = is_first && job.transfer.partner == Partner::Host;
        job.advance();
        let fetched = self.fetcher.as_mut().filter(|_| is_first && self.calls.is_some_and(|calls| calls.is_fetched));
        let held = fetched.map_or(Ticks::ZERO, |fetcher| {
            let held = fetcher.held_since();
            fetcher.begin(now);
            held
        });
        self.charge(now, verb, held);
        let descriptor = if is_described { self.spec.descriptor } else { Ticks::ZERO };
        Some(self.send(now, tlp, descriptor))
    }

    /// Whether a piece is the first that a descriptor is about.
    #[inline]
    fn begins_descriptor(&self, piece: &Piece) -> bool {
        let address = piece.chunk.address;
        self.described != Some((piece.number, piece.verb)) || address.is_multiple_of(self.spec.descriptor_bytes)
    }

    /// A TLP occupies the engine and is on its way; with it comes when it is at the link.
    #[inline]
    fn send(&mut self, now: Ticks, tlp: Tlp, before: Ticks) -> (Ticks, Tlp) {
        let header_and_payload = u32::from(tlp.header_dw()) * 4 + tlp.payload_bytes();
        let besides = if tlp.kind == TlpKind::MWr { self.spec.write_request } else { self.spec.read_request };
        self.occupied_until = now + before + self.beats(header_and_payload) + besides;
        self.unsent += 1;
        (self.occupied_until + self.spec.egress, tlp)
    }

    /// Tells the driver that one more transfer is over.
    fn tell(&mut self, now: Ticks, slab: &mut Slab) -> Option<(Ticks, Tlp)> {
        let calls = self.calls.as_mut()?;
        calls.told += 1;
        self.done += 1;
        let place = match calls.completion {
            Completion::Register => {
                self.is_status_due = true;
                return None;
            }
            Completion::Flag => calls.mailbox.flag,
            Completion::Interrupt => calls.mailbox.message,
        };
        let (address, length_dw, first_be, last_be) = span(place, NOTICE_BYTES);
        let payload = slab.take();
        slab.bytes_mut(payload)[..NOTICE_BYTES as usize].copy_from_slice(&(self.done as u32).to_le_bytes());
        let requester = self.spec.requester;
        let tlp = Tlp { address, length_dw, first_be, last_be, requester, payload, ..Tlp::of(TlpKind::MWr) };
        Some(self.send(now, tlp, Ticks::ZERO))
    }

    /// Charges the time since the last request to what became ready last; its descriptor was there at `held`.
    fn charge(&mut self, now: Ticks, verb: Verb, held: Ticks) {
        let mut last = (self.occupied_until, Cause::Engine);
        if held > last.0 {
            last = (held, Cause::Descriptor);
        }
        if self.room.0 > last.0 {
            last = (self.room.0, self.room.1.unwrap_or(Cause::LinkBusy));
        }
        let awaits_reads = verb == Verb::Load || self.job.as_ref().is_some_and(|job| job.read.is_some());
        for (at, cause, counts) in
            [(self.tag_at, Cause::Tag, verb == Verb::Load), (self.open_at, Cause::ReadRoundTrip, awaits_reads)]
        {
            if counts && at > last.0 {
                last = (at, cause);
            }
        }
        self.waits[last.1.index()] += now.since(self.issued_at);
        self.issued_at = now;
    }

    #[inline]
    fn beats(&self, bytes: u32) -> Ticks {
        self.spec.beat * u64::from(bytes.div_ceil(self.spec.beat_bytes))
    }

    /// One of its requests left for the link, having waited for `because`.
    #[inline]
    pub fn left(&mut self, now: Ticks, because: Option<Cause>) {
        if self.unsent == self.spec.send_buffers {
            self.room = (now, because);
        }
        self.unsent -= 1;
        self.left_at = now;
    }

    /// A completion is checked at `at`. It may be told so before that time: completions come in order.
    #[inline]
    pub fn arrive(&mut self, at: Ticks, tlp: Tlp) {
        let header_and_payload = u32::from(tlp.header_dw()) * 4 + tlp.payload_bytes();
        self.data_until = self.data_until.max(at + self.spec.ingress) + self.beats(header_and_payload);
        self.arriving.send(self.data_until, tlp);
    }

    /// When the next completion has come in.
    #[inline]
    #[must_use]
    pub fn data_due(&self) -> Ticks {
        self.arriving.due()
    }

    /// Puts the next completion away; with it come the TLP and whether the engine knew of the read.
    #[inline]
    pub fn take_data(&mut self, now: Ticks, slab: &mut Slab) -> Option<Tlp> {
        let tlp = self.arriving.take(now)?;
        if let Some(fetcher) = self.fetcher.as_mut().filter(|fetcher| fetcher.knows(tlp.tag)) {
            fetcher.arrive(now);
            if tlp.kind != TlpKind::CplD {
                self.refused.get_or_insert(tlp.address);
            }
            slab.give_back(tlp.payload);
            return Some(tlp);
        }
        let bytes = tlp.enabled_bytes();
        let read = self.reads.get_mut(usize::from(tlp.tag))?;
        let number = read.transfer;
        let came = if tlp.kind == TlpKind::CplD { bytes.min(read.left) } else { read.left };
        read.left -= came;
        let is_last = read.left == 0;
        if tlp.kind == TlpKind::CplD {
            if let Some(job) = &self.job {
                let skip = tlp.first_be.trailing_zeros() as usize;
                let data = &slab.bytes(tlp.payload)[skip..skip + bytes as usize];
                self.sink.write(tlp.address + skip as u64 - job.base, data);
            }
            self.received_bytes += u64::from(bytes);
            self.received_at = now;
        } else {
            self.refused.get_or_insert(tlp.address);
        }
        if tlp.payload != Slot::NONE {
            slab.give_back(tlp.payload);
        }
        if let Some(place) = self.open.iter().position(|(other, ..)| *other == number) {
            self.open[place].1 -= u64::from(came).min(self.open[place].1);
            if self.open[place].1 == 0 {
                let begun = self.open.remove(place).map_or(now, |(_, _, begun)| begun);
                self.open_at = now;
                let is_timed = self.job.as_ref().is_some_and(|job| job.transfer.under_way.is_some());
                if is_timed && self.latencies.len() < Samples::MOST_LATENCIES {
                    self.latencies.push(now.since(begun));
                }
            }
        }
        if is_last {
            if self.free_tags.is_empty() {
                self.tag_at = now;
            }
            self.free_tags.push(tlp.tag);
        }
        Some(tlp)
    }
}
