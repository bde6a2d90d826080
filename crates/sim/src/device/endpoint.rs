//! An endpoint: receives TLPs in order, passes them to regions, returns credits and completions.
//!
//! ```text
//!  link --> receive buffer --ingress--> region beats --> bytes, FIFO entries, counters
//!                                          |
//!  link <------------- egress <------------+ completions
//! ```
//!
//! Some [registers](crate::device::registers) may be timers; if the platform declares registers, others than timers
//! and user registers ignore writes.
//!
//! A write leaves the receive buffer when its last beat is accepted, which returns its credits. Completions of its
//! own reads go to its DMA engine and do not wait for regions. Writes of other cards go to a queue of that engine, if
//! it has queues, and stay in the receive buffer while the queue is full.

use crate::busy::Busy;
use crate::critical_path::{CriticalPath, Milestone, Place};
use crate::device::dma_engine::{DmaEngine, Made};
use crate::device::interconnect::Queue;
use crate::device::kernels::Kernels;
use crate::device::msi_x::MsiX;
use crate::device::region::{Answer, Kind, Region, RegionSpec};
use crate::device::registers::{self, Registers};
use crate::device::responder::{self, Responder};
use crate::requester::{FIRST_CARD, OUTSIDE};
use crate::tlp::{Cut, Flaw, Tlp, TlpKind, completions};
use lanemark_engine::{Queue as Fifo, Slab, Slot};
use lanemark_machine::{Cause, DmaCall};
use lanemark_units::Ticks;
use lanemark_wire::Rcb;
use lanemark_wire::ats::AddressRange;

mod steady;
mod timers;

/// Constants of the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its place on critical paths.
    pub(crate) place: Place,
    /// From a checked TLP to the request at its region.
    pub ingress: Ticks,
    /// From a region's data to the completion at the link.
    pub egress: Ticks,
    /// Largest payload of a completion: `Max_Payload_Size`.
    pub completion_bytes: u32,
    /// The region through which other cards write to the queue `EP_RX`, if there is one.
    pub queued: Option<usize>,
    /// Layout of its registers, if it is declared.
    pub registers: Option<registers::Spec>,
}

/// A TLP in the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Received {
    /// Time at which its last beat, or its read request, is accepted.
    done: Ticks,
    /// Time at which it was checked.
    at: Ticks,
    tlp: Tlp,
    /// Its region, or [`NOWHERE`].
    place: usize,
    beats: u64,
    /// Whether it waits for the TLPs before it.
    waits: bool,
    /// Whether it goes to the queue for writes of other cards.
    is_queued: bool,
    /// Time for which it occupies its region.
    span: Ticks,
}

/// A TLP that left the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The TLP; its payload has been freed.
    pub tlp: Tlp,
    /// Time at which it was checked.
    pub at: Ticks,
    /// The first eight bytes of its payload.
    pub head: [u8; 8],
    /// Why its credits were not returned earlier.
    pub because: Cause,
    /// Whether it was an Unsupported Request.
    pub is_refused: bool,
    /// Whether the engine must be rescheduled: a store to a doorbell or one that unmasks a vector, or an Invalidate
    /// Request.
    pub rings: bool,
}

impl Accepted {
    /// An empty slot.
    pub const INVALID: Accepted = {
        let tlp = Tlp::of(TlpKind::MWr);
        let (at, head, because) = (Ticks::ZERO, [0; 8], Cause::Credit);
        Accepted { tlp, at, head, because, is_refused: false, rings: false }
    };
}

/// State of the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    spec: Spec,
    /// Its regions, in platform order.
    pub regions: Vec<Region>,
    /// Timers that its registers show.
    registers: Option<Registers>,
    /// The receive buffer, up to the last beat of each TLP.
    accepting: Fifo<Received>,
    free_at: Ticks,
    /// When the region was free last.
    free: Milestone,
    /// Time at which the last TLP left the receive buffer.
    left_at: Ticks,
    /// The DMA engine.
    pub dma: Option<DmaEngine>,
    /// The kernels that a runtime launches.
    pub kernels: Option<Kernels>,
    /// The function that a core calls by stores.
    responder: Option<Responder>,
    /// Time of the last accepted write, and the milestone.
    pub last_accepted: Ticks,
    pub(crate) last_milestone: Milestone,
    /// Enabled bytes of accepted writes.
    pub accepted_bytes: u64,
    /// Writes of other cards: requester ID, bytes, and time and milestone of the last one.
    accepted_from: Vec<(u16, u64, Ticks, Milestone)>,
    /// Requests that hit no region (Unsupported Request).
    pub unsupported: u64,
    /// Use of its data path by received requests.
    pub(crate) busy: Busy,
}

/// No region: an Unsupported Request.
const NOWHERE: usize = usize::MAX;

impl Endpoint {
    /// Creates an endpoint with its regions as at power-on.
    #[must_use]
    pub fn new(spec: Spec, regions: Vec<RegionSpec>, dma: Option<DmaEngine>, kernels: Option<Kernels>) -> Endpoint {
        let mut regions: Vec<Region> = regions.into_iter().map(Region::new).collect();
        let registers = spec.registers.clone().map(Registers::new);
        if let Some(registers) = &registers
            && let Some(region) = regions.get_mut(registers.place())
        {
            region.kept = registers.kept().into();
            if let Some(table) = dma.as_ref().and_then(DmaEngine::vectors_at) {
                let offset = |address: u64| address.saturating_sub(region.spec.address);
                region.kept.push(offset(table.start)..offset(table.end));
            }
        }
        let mut endpoint = Endpoint {
            spec,
            regions,
            registers,
            accepting: Fifo::default(),
            free_at: Ticks::ZERO,
            free: Milestone::NONE,
            left_at: Ticks::ZERO,
            dma,
            kernels,
            responder: None,
            last_accepted: Ticks::ZERO,
            last_milestone: Milestone::NONE,
            accepted_bytes: 0,
            accepted_from: Vec::new(),
            unsupported: 0,
            busy: Busy::default(),
        };
        endpoint.with_vectors(|msi_x, region| {
            msi_x.write_to(&mut region.memory, msi_x.table_at() - region.spec.address);
        });
        endpoint
    }

    /// Calls `look` with the MSI-X vectors and the region of their table, if there are any.
    fn with_vectors(&mut self, look: impl FnOnce(&mut MsiX, &mut Region)) {
        let Some(msi_x) = self.dma.as_mut().and_then(|engine| engine.msi_x.as_mut()) else { return };
        let holds = |region: &&mut Region| msi_x.table_at().wrapping_sub(region.spec.address) < region.spec.len;
        if let Some(region) = self.regions.iter_mut().find(holds) {
            look(msi_x, region);
        }
    }

    /// Empties the endpoint: what is behind its hard block is [compiled](crate::device::compiled_card), and
    /// `own` of the latency for TLPs to it is in there.
    pub(crate) fn empty(&mut self, own: Ticks) {
        self.spec.ingress = self.spec.ingress.since(own);
        self.regions.clear();
        (self.dma, self.kernels, self.registers) = (None, None, None);
    }

    /// Removes the next TLP from the receive buffer of an empty endpoint, if it has been checked.
    pub(crate) fn hand_over(&mut self, now: Ticks) -> Option<Tlp> {
        if self.accept_due() > now {
            return None;
        }
        let tlp = self.accepting.first()?.tlp;
        self.accepting.drop_first();
        Some(tlp)
    }

    /// Counts a write that what is behind the endpoint has accepted at `at`.
    pub(crate) fn count_write(&mut self, at: Ticks, tlp: &Tlp, milestone: Milestone) {
        self.accepted_bytes += u64::from(tlp.enabled_bytes());
        (self.last_accepted, self.last_milestone) = (at, milestone);
    }

    /// Returns the latency of the hard block for a TLP of the card.
    pub(crate) const fn egress(&self) -> Ticks {
        self.spec.egress
    }

    /// Takes over the region contents (bytes, entries and registers) and the received bytes of another endpoint of
    /// the same kind.
    pub(crate) fn keep_bytes_of(&mut self, used: &mut Endpoint) {
        std::mem::swap(&mut self.regions, &mut used.regions);
        std::mem::swap(&mut self.registers, &mut used.registers);
        self.regions.iter_mut().for_each(|region| region.answers.clear());
        if let (Some(fresh), Some(used)) = (&mut self.dma, &mut used.dma) {
            std::mem::swap(&mut fresh.sink, &mut used.sink);
        }
        self.with_vectors(|msi_x, region| {
            msi_x.read_from(&mut region.memory, msi_x.table_at() - region.spec.address);
        });
    }

    /// Returns the region of this name.
    pub fn region_mut(&mut self, name: &str) -> Option<&mut Region> {
        self.regions.iter_mut().find(|region| region.spec.name == name)
    }

    /// Returns the bytes written by another card, and when the last of them was accepted.
    #[must_use]
    pub fn accepted_from(&self, requester: u16) -> (u64, Ticks) {
        let from = self.accepted_from.iter().find(|(other, ..)| *other == requester);
        from.map_or((0, Ticks::ZERO), |(_, bytes, at, _)| (*bytes, *at))
    }

    /// Returns when the last write of another card was accepted, and the milestone; zero if there is none.
    pub(crate) fn last_from(&self, requester: u16) -> (Ticks, Milestone) {
        let from = self.accepted_from.iter().find(|(other, ..)| *other == requester);
        from.map_or((Ticks::ZERO, Milestone::NONE), |(.., at, milestone)| (*at, *milestone))
    }

    #[inline]
    fn accept_from_card(&mut self, now: Ticks, requester: u16, bytes: u64, milestone: Milestone) {
        match self.accepted_from.iter_mut().find(|(other, ..)| *other == requester) {
            Some((_, sum, at, last)) => (*sum, *at, *last) = (*sum + bytes, now, milestone),
            None => self.accepted_from.push((requester, bytes, now, milestone)),
        }
    }

    #[inline]
    fn region_of(&self, tlp: &Tlp) -> usize {
        let end = tlp.address + u64::from(tlp.length_dw) * 4;
        self.regions
            .iter()
            .position(|region| {
                tlp.address >= region.spec.address && end <= (region.spec.address + region.spec.len).next_multiple_of(4)
            })
            .unwrap_or(NOWHERE)
    }

    /// Receives a TLP that is checked at `at`. The call may precede that time: TLPs arrive in order, so the time of
    /// acceptance is known when it is sent. Returns whether it is the first one in the receive buffer.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    pub fn receive(&mut self, at: Ticks, mut tlp: Tlp, path: &mut CriticalPath) -> bool {
        let is_for_region = tlp.flaw == Flaw::None && tlp.kind != TlpKind::MsgD;
        let place = if is_for_region { self.region_of(&tlp) } else { NOWHERE };
        let at_region = at + self.spec.ingress;
        let start = at_region.max(self.free_at);
        let (beats, span) = match self.regions.get(place) {
            Some(region) => {
                let beats = region.beats_of(&tlp);
                (beats, region.spec.beat * beats)
            }
            None => (0, Ticks::ZERO),
        };
        // A read occupies the port for its request only; its data follow after the region's latency.
        let span = if tlp.kind == TlpKind::MRd { Ticks::ZERO } else { span };
        let done = start + span;
        if path.is_on() {
            tlp.milestone = if start > at_region {
                self.free
            } else {
                path.add(tlp.milestone, start, self.spec.place, Cause::Transit)
            };
            tlp.milestone = path.add(tlp.milestone, done, self.spec.place, Cause::Device);
            self.free = tlp.milestone;
        }
        self.free_at = done;
        self.busy.occupy(span, done);
        let (waits, is_queued) = (start > at_region, self.is_queued(place, &tlp));
        self.accepting.push(Received { done, at, tlp, place, beats, waits, is_queued, span });
        self.accepting.len() == 1
    }

    /// Returns when the next TLP leaves the receive buffer.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    #[must_use]
    pub fn accept_due(&self) -> Ticks {
        let Some(first) = self.accepting.first() else { return Ticks::NEVER };
        if self.spec.queued.is_none() {
            return first.done;
        }
        // A delayed TLP delays those behind it.
        let due = first.done.max(self.left_at + first.span);
        let engine = self.dma.as_ref().filter(|_| first.is_queued);
        let queues = engine.and_then(|engine| engine.queues.as_ref());
        queues.map_or(due, |queues| due.max(queues.takes_at(Queue::EpRx, u64::from(first.tlp.enabled_bytes()))))
    }

    /// Returns whether a TLP goes to the queue for writes of other cards.
    #[inline]
    fn is_queued(&self, place: usize, tlp: &Tlp) -> bool {
        Some(place) == self.spec.queued
            && tlp.kind == TlpKind::MWr
            && tlp.requester >= FIRST_CARD
            && tlp.requester != OUTSIDE
    }

    /// Stores a write of another card in the queue.
    #[inline(never)]
    fn queue(&mut self, now: Ticks, tlp: &Tlp, slab: &Slab) {
        if let Some(queues) = self.dma.as_mut().and_then(|engine| engine.queues.as_mut()) {
            let skip = tlp.first_be.trailing_zeros() as usize;
            queues.take(now, Queue::EpRx, &slab.bytes(tlp.payload)[skip..skip + tlp.enabled_bytes() as usize]);
            queues.set_filled(Queue::EpRx, tlp.milestone);
        }
    }

    /// Removes the next TLP from the receive buffer into `accepted`; returns whether there was one.
    #[inline]
    pub fn accept(&mut self, now: Ticks, slab: &mut Slab, path: &mut CriticalPath, accepted: &mut Accepted) -> bool {
        if self.accept_due() > now {
            return false;
        }
        let Some(first) = self.accepting.first() else { return false };
        let Received { place, beats, done, is_queued, .. } = *first;
        accepted.because = if first.waits || now > first.done { Cause::Device } else { Cause::Credit };
        (accepted.at, accepted.tlp) = (first.at, first.tlp);
        self.accepting.drop_first();
        if now > done {
            // A queue behind the region had no space.
            let queue = self.dma.as_ref().and_then(|engine| engine.queues.as_ref());
            let before = queue.map_or(accepted.tlp.milestone, |queues| queues.drained(Queue::EpRx));
            accepted.tlp.milestone = path.add_after(Cause::Fifo, before, now, self.spec.place, Cause::Fifo);
        }
        let tlp = &accepted.tlp;
        self.left_at = now;
        if is_queued {
            self.queue(now, tlp, slab);
        }
        accepted.head = [0; 8];
        let (mut rings, mut is_refused) = (false, false);
        if tlp.payload != Slot::NONE {
            accepted.head.copy_from_slice(&slab.line(tlp.payload)[..8]);
        }
        let timers = if tlp.kind == TlpKind::MWr { self.timers_in(place, tlp) } else { 0..0 };
        self.show_timers(now, timers.clone());
        match (tlp.kind, self.regions.get_mut(place)) {
            (TlpKind::MWr, Some(region)) => {
                region.write(tlp, slab, beats);
                let changes = |engine: &mut DmaEngine| engine.vectors_change(now, tlp, region);
                rings = self.dma.as_mut().is_some_and(changes);
                self.set_timers(now, timers);
                slab.give_back(tlp.payload);
                let bytes = u64::from(tlp.enabled_bytes());
                self.accepted_bytes += bytes;
                (self.last_accepted, self.last_milestone) = (now, tlp.milestone);
                let milestone = tlp.milestone;
                let rung = |engine: &mut DmaEngine| engine.store_arrives(now, tlp.address, milestone);
                rings |= self.dma.as_mut().is_some_and(rung);
                let launched = |kernels: &mut Kernels| kernels.store_arrives(now, tlp.address, milestone);
                rings |= self.kernels.as_mut().is_some_and(launched);
                if let Some(responder) = &mut self.responder {
                    responder.store_arrives(now, tlp);
                }
                if tlp.requester >= FIRST_CARD && tlp.requester != OUTSIDE {
                    self.accept_from_card(now, tlp.requester, bytes, milestone);
                }
            }
            (TlpKind::MWr, None) => {
                slab.give_back(tlp.payload);
                self.unsupported += 1;
                is_refused = true;
                (self.last_accepted, self.last_milestone) = (now, tlp.milestone);
            }
            (TlpKind::MRd, Some(region)) => {
                region.begin_read(now, tlp, beats, path, self.spec.place);
            }
            (TlpKind::MRd, None) => {
                self.unsupported += 1;
                is_refused = true;
            }
            (TlpKind::MsgD, _) => {
                if let Some(engine) = &mut self.dma {
                    engine.invalidate_translations(AddressRange::from_bytes(accepted.head), tlp.tag);
                    rings = true;
                }
                slab.give_back(tlp.payload);
            }
            (TlpKind::CplD | TlpKind::Cpl | TlpKind::Msg, _) => slab.give_back(tlp.payload),
        }
        (accepted.is_refused, accepted.rings) = (is_refused, rings);
        true
    }

    /// Returns the UR completion of a read accepted now, and when it reaches the link.
    #[must_use]
    pub fn refusal(&self, now: Ticks, read: &Tlp) -> (Ticks, Tlp) {
        (now + self.spec.egress, Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, ..*read })
    }

    /// Issues the next request of the DMA engine, as [`DmaEngine::issue`], and updates its status register.
    #[inline]
    pub fn issue(&mut self, now: Ticks, slab: &mut Slab, path: &mut CriticalPath, made: &mut Made) -> bool {
        let Some(engine) = &mut self.dma else { return false };
        let is_made = engine.issue(now, slab, path, made);
        if let Some((address, done)) = engine.take_status() {
            self.show_status(address, done);
        }
        is_made
    }

    /// Starts calls on the DMA engine, as [`DmaEngine::arm`], and sets its status register to the earlier count.
    pub fn arm(&mut self, now: Ticks, call: &DmaCall, base: u64, passes: u64, first_pass: u64) -> Option<u64> {
        let engine = self.dma.as_mut()?;
        let done = engine.arm(now, call, base, passes, first_pass)?;
        let status = engine.status_at(call.channel as usize)?;
        self.show_status(status, done);
        Some(done)
    }

    /// Makes the card respond to requests of a core, and sets the status register to 0.
    pub fn respond(&mut self, function: responder::Spec) {
        self.show_status(function.status, 0);
        self.responder = Some(Responder::new(function));
    }

    fn show_status(&mut self, address: u64, done: u64) {
        let holds = |region: &&mut Region| address.wrapping_sub(region.spec.address) < region.spec.len;
        if let Some(region) = self.regions.iter_mut().find(holds) {
            region.memory.write(address - region.spec.address, &done.to_le_bytes());
        }
    }

    /// Returns when region `place` completes its next read.
    #[inline]
    #[must_use]
    pub fn answer_due(&self, place: usize) -> Ticks {
        self.regions[place].answers.front().map_or(Ticks::NEVER, |first| first.due)
    }

    /// Completes a read of region `place`: passes each completion and its time at the link to `send`.
    #[inline]
    pub fn answer(
        &mut self,
        now: Ticks,
        place: usize,
        slab: &mut Slab,
        path: &mut CriticalPath,
        mut send: impl FnMut(Ticks, Tlp),
    ) {
        let Some(Answer { mut tlp, .. }) = self.regions[place].answers.pop_front() else { return };
        self.show_timers(now, self.timers_in(place, &tlp));
        if let Some((status, done)) = self.responder.as_ref().and_then(|function| function.shown(now, &tlp)) {
            self.show_status(status, done);
        }
        let region = &mut self.regions[place];
        if region.spec.kind == Kind::CountedStorage {
            region.beats.read += region.beats_of(&tlp);
        }
        let at_link = now + self.spec.egress;
        tlp.milestone = path.add(tlp.milestone, at_link, self.spec.place, Cause::Transit);
        let cut = Cut { rcb: Rcb::B128, most: self.spec.completion_bytes, odd_end_apart: false };
        for completion in completions(&tlp, cut) {
            let payload = slab.take();
            region.read(&completion, slab.bytes_mut(payload));
            send(at_link, Tlp { payload, ..completion });
        }
    }

    /// Returns whether the receive buffer is empty.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.accepting.is_empty()
            && self.dma.as_ref().is_none_or(DmaEngine::is_done)
            && self.regions.iter().all(|region| region.answers.is_empty())
    }
}
