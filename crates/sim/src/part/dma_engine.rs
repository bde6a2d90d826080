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
//! completion the way of data in. What a write carries says where it goes and in which pass, as a core's stores do.
//!
//! Waits recorded: `Engine` while it is occupied, `Tag` when as many reads as there are tags were under way,
//! `ReadRoundTrip` when as many transfers as the job allows were, and what the link waited for when there was no room
//! before it.

use crate::engine::{Slab, Slot, Wire};
use crate::part::memory::Memory;
use crate::part::program::stored_bytes;
use crate::tlp::{Tlp, TlpKind, span};
use lanemark_machine::{Cause, Partner, Transfer, Verb};
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
    /// From the engine to the link.
    pub egress: Ticks,
    /// From the link to the engine.
    pub ingress: Ticks,
}

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
    /// Transfers in all.
    transfers: u64,
    /// The next transfer to begin.
    next: u64,
    /// What is left of the one begun last.
    pieces: Chunks,
    /// The request to be made next, and the number of its transfer.
    piece: Option<(u64, Chunk)>,
}

impl Job {
    /// Makes sure that there is a next request, if there is to be one.
    fn advance(&mut self) {
        self.piece = loop {
            if let Some(chunk) = self.pieces.next() {
                break Some((self.next - 1, chunk));
            }
            if self.next == self.transfers {
                break None;
            }
            let bytes = self.transfer.bytes;
            self.pieces.begin(self.base + self.transfer.window.place(self.next, bytes), bytes);
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
    /// The transfer that the last request belonged to.
    described: Option<u64>,
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
    /// Transfers under way, and the bytes of each that have not come.
    open: VecDeque<(u64, u64)>,
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
    /// The first address of a read that was refused.
    pub refused: Option<u64>,
    /// What it waited for since it was told to begin, by [`Cause::index`].
    pub waits: [Ticks; Cause::ALL.len()],
}

impl DmaEngine {
    /// With nothing to do.
    #[must_use]
    pub fn new(spec: Spec) -> DmaEngine {
        DmaEngine {
            job: None,
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
            refused: None,
            waits: [Ticks::ZERO; Cause::ALL.len()],
            spec,
        }
    }

    /// Tells it to make `transfer`, `passes` times; `base` is the bus address of the window's offset 0.
    pub fn start(&mut self, now: Ticks, transfer: &Transfer, base: u64, passes: u64, first_pass: u64) {
        let most = if transfer.verb == Verb::Store { self.spec.write_bytes } else { self.spec.read_bytes };
        let mut job = Job {
            transfer: *transfer,
            base,
            first_pass,
            transfers: transfer.count.saturating_mul(passes),
            next: 0,
            pieces: requests(0, 0, most),
            piece: None,
        };
        job.advance();
        self.job = Some(job);
        self.described = None;
        // What a job that was stopped had begun and not asked for will never come.
        self.open.clear();
        self.occupied_until = now + self.spec.start;
        self.issued_at = now;
        (self.refused, self.waits) = (None, [Ticks::ZERO; Cause::ALL.len()]);
    }

    /// Makes no more requests; what is under way arrives.
    pub fn stop(&mut self) {
        self.job = None;
    }

    /// Whether everything was asked for and every read has come.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.job.as_ref().is_none_or(|job| job.piece.is_none()) && self.unsent == 0 && self.open.is_empty()
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
        let Some(Job { piece: Some((number, _)), transfer, .. }) = &self.job else { return Ticks::NEVER };
        if self.unsent >= self.spec.send_buffers {
            return Ticks::NEVER;
        }
        if transfer.verb == Verb::Store {
            return self.occupied_until.max(self.room.0);
        }
        let begins = self.open.back().is_none_or(|(last, _)| last != number);
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
        let job = self.job.as_mut()?;
        let (number, chunk) = job.piece?;
        let (address, length_dw, first_be, last_be) = span(chunk.address, u64::from(chunk.bytes));
        let mut tlp =
            Tlp { address, length_dw, first_be, last_be, requester: self.spec.requester, ..Tlp::of(TlpKind::MWr) };
        let verb = job.transfer.verb;
        if verb == Verb::Store {
            tlp.payload = slab.take();
            let skip = (chunk.address - address) as usize;
            let turn = job.first_pass + number / job.transfer.count;
            stored_bytes(chunk.address, turn, &mut slab.bytes_mut(tlp.payload)[skip..skip + chunk.bytes as usize]);
        } else {
            tlp.kind = TlpKind::MRd;
            tlp.tag = self.free_tags.pop()?;
            self.reads[usize::from(tlp.tag)] = Read { left: chunk.bytes, transfer: number };
            if self.open.back().is_none_or(|(last, _)| *last != number) {
                self.open.push_back((number, job.transfer.bytes));
            }
        }
        // Pieces go up to boundaries of pages, so a descriptor's first one starts at it, or with its transfer.
        let is_first = self.described != Some(number) || chunk.address.is_multiple_of(self.spec.descriptor_bytes);
        self.described = Some(number);
        let is_described = is_first && job.transfer.partner == Partner::Host;
        job.advance();
        self.charge(now, verb);
        let header_and_payload = u32::from(tlp.header_dw()) * 4 + tlp.payload_bytes();
        let besides = if verb == Verb::Store { self.spec.write_request } else { self.spec.read_request };
        let descriptor = if is_described { self.spec.descriptor } else { Ticks::ZERO };
        self.occupied_until = now + descriptor + self.beats(header_and_payload) + besides;
        self.unsent += 1;
        Some((self.occupied_until + self.spec.egress, tlp))
    }

    /// Charges the time since the last request to what became ready last.
    fn charge(&mut self, now: Ticks, verb: Verb) {
        let mut last = (self.occupied_until, Cause::Engine);
        if self.room.0 > last.0 {
            last = (self.room.0, self.room.1.unwrap_or(Cause::LinkBusy));
        }
        if verb == Verb::Load {
            for ready in [(self.tag_at, Cause::Tag), (self.open_at, Cause::ReadRoundTrip)] {
                if ready.0 > last.0 {
                    last = ready;
                }
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
        if let Some(place) = self.open.iter().position(|(other, _)| *other == number) {
            self.open[place].1 -= u64::from(came).min(self.open[place].1);
            if self.open[place].1 == 0 {
                self.open.remove(place);
                self.open_at = now;
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
