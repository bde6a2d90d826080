//! A core: an in-order interpreter of instructions with the buffers between it and the root complex.
//!
//! ```text
//!  program --> issue --> store buffer --> write-combining buffers --+
//!                |                    \-> UC, WT, WP, direct -------+--> requests
//!                +--> loads: uncached, streaming buffers, cache ----+
//!                         acknowledgments, completions <----------------
//! ```
//!
//! Two clocks run: `issued`, when the front end was done with the last instruction, and `drained`, when
//! the last store left the store buffer. A store issues as soon as the store buffer has room; a load and
//! a fence wait until the stores before them have left it, which is stricter than a real core for loads
//! from combining and cached memory.
//!
//! Waits recorded: `StrongOrder`, `SameLine`, `Buffers`, `ReadRoundTrip`, `Fence`, `Driver`; where the
//! root complex says that it was kept waiting itself, its cause is taken instead.

use crate::engine::{Slab, Slot};
use crate::part::cache::{self, Cache};
use crate::part::program::{Instruction, Manner, Program, stored_bytes};
use crate::part::root_complex::Ack;
use crate::part::streaming_buffer::{self, StreamingBuffers};
use crate::part::wc_buffer::{Stored, WcBuffers};
use crate::tlp::{Tlp, TlpKind, span};
use lanemark_machine::{Cause, Fence, Verb};
use lanemark_platform::Platform;
use lanemark_units::Ticks;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Which core.
    pub number: u16,
    cycle: Ticks,
    cached_load: Ticks,
    sfence: Ticks,
    lfence: Ticks,
    mfence: Ticks,
    interrupt: Ticks,
    loads_in_flight: u32,
    store_buffer: usize,
}

impl Spec {
    /// From a platform.
    #[must_use]
    pub fn new(platform: &Platform, number: u16) -> Spec {
        let core = &platform.core;
        Spec {
            number,
            cycle: Ticks::from_ns(1.0 / core.clock_ghz.value).unwrap_or(Ticks(1)),
            cached_load: core.cached_load_ns.value,
            sfence: core.sfence_ns.value,
            lfence: core.lfence_ns.value,
            mfence: core.mfence_ns.value,
            interrupt: core.interrupt_ns.value,
            loads_in_flight: core.wc_loads_in_flight.value,
            store_buffer: core.store_buffer_entries.value as usize,
        }
    }
}

/// Bytes a load brought into a register, kept when somebody observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Bus address.
    pub address: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// When they were there.
    pub at: Ticks,
}

/// Why a read was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// One load of its own.
    Load { address: u64, len: u64 },
    /// A line for a streaming buffer.
    Streaming { place: usize },
    /// A line for the cache.
    Fill { place: usize },
}

/// What the interpreter is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It executes its current instruction at this time.
    Ready(Ticks),
    /// It waits for an acknowledgment or a completion, since, for this reason unless told better.
    Waiting { since: Ticks, reason: Cause },
    /// The program has ended.
    Done,
}

/// What the handler of one instruction says.
enum Outcome {
    /// Done; the front end was done with it at `issued`, and the next may start at `next`.
    Done { issued: Ticks, next: Ticks },
    /// Not possible now.
    Blocked(Cause),
}

/// Tags below are write-combining buffers; these are the others.
const TAG_STORE: u16 = 0x4000;
const TAG_READ: u16 = 0x8000;

/// Everything that does change.
#[derive(Debug)]
pub struct Core {
    spec: Spec,
    program: Option<Program>,
    current: Option<Instruction>,
    state: State,
    issued: Ticks,
    drained: Ticks,
    /// When each of the last stores left the store buffer, as a ring.
    left_at: Vec<Ticks>,
    left_next: usize,
    wc: WcBuffers,
    streaming: StreamingBuffers,
    cache: Cache,
    reads: Vec<Option<Purpose>>,
    reads_out: u32,
    single_loads_out: u32,
    /// A UC, WT or WP store is on its way.
    store_out: bool,
    /// The current instruction has sent its request.
    sent: bool,
    /// Loads that wait for a line: which, address, length.
    attached: Vec<(Purpose, u64, u64)>,
    /// What it waited for, by [`Cause::index`].
    pub waits: [Ticks; Cause::ALL.len()],
    /// Loads and what they saw, while somebody observes.
    pub seen: Option<Vec<Seen>>,
    /// Lines this core's stores take out of other cores' caches, until the board did it.
    pub invalidate: Vec<u64>,
}

impl Core {
    /// An idle core.
    #[must_use]
    pub fn new(platform: &Platform, number: u16) -> Core {
        let spec = Spec::new(platform, number);
        let core = &platform.core;
        Core {
            left_at: vec![Ticks::ZERO; spec.store_buffer],
            left_next: 0,
            wc: WcBuffers::new(core.wc_buffers.value as usize, core.wc_partial_flush.value),
            streaming: StreamingBuffers::new(core.streaming_load_buffers.value as usize),
            cache: Cache::new(core.cached_lines.value as usize, core.fill_buffers.value as usize),
            spec,
            program: None,
            current: None,
            state: State::Done,
            issued: Ticks::ZERO,
            drained: Ticks::ZERO,
            reads: Vec::with_capacity(64),
            reads_out: 0,
            single_loads_out: 0,
            store_out: false,
            sent: false,
            attached: Vec::new(),
            waits: [Ticks::ZERO; Cause::ALL.len()],
            seen: None,
            invalidate: Vec::new(),
        }
    }

    /// Starts `program` at `now`; buffers keep what they hold.
    pub fn start(&mut self, now: Ticks, mut program: Program) {
        self.current = program.next();
        self.program = Some(program);
        self.issued = now;
        self.drained = now;
        self.left_at.fill(now);
        self.state = if self.current.is_some() { State::Ready(now) } else { State::Done };
        self.waits = [Ticks::ZERO; Cause::ALL.len()];
    }

    /// When it executes next.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        if let State::Ready(at) = self.state { at } else { Ticks::NEVER }
    }

    /// Whether its program has ended and its loads have come.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether nothing of it is under way or buffered.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_done() && self.wc.leaving() == 0 && self.wc.open() == 0 && !self.store_out && self.reads_out == 0
    }

    /// When the front end was done with the last instruction.
    #[must_use]
    pub fn issued_at(&self) -> Ticks {
        self.issued
    }

    /// What it waits for, for messages.
    #[must_use]
    pub fn waiting_for(&self) -> Option<Cause> {
        if let State::Waiting { reason, .. } = self.state { Some(reason) } else { None }
    }

    /// Executes the current instruction, or finds that it must wait.
    #[inline]
    pub fn execute(&mut self, now: Ticks, slab: &mut Slab, mut send: impl FnMut(Tlp)) {
        let Some(instruction) = self.current else {
            self.finish(now);
            return;
        };
        match self.try_execute(instruction, now, slab, &mut send) {
            Outcome::Done { issued, next } => {
                self.sent = false;
                self.issued = issued;
                self.current = self.program.as_mut().and_then(Program::next);
                self.state = State::Ready(next);
                if self.current.is_none() && self.reads_out == 0 {
                    // The closing timestamp waits for loads, not for stores.
                    self.state = State::Done;
                }
            }
            Outcome::Blocked(reason) => self.state = State::Waiting { since: now, reason },
        }
    }

    /// The program is over; loads may still be under way.
    fn finish(&mut self, now: Ticks) {
        if self.reads_out > 0 {
            self.state = State::Waiting { since: now, reason: Cause::ReadRoundTrip };
        } else {
            self.issued = self.issued.max(now);
            self.state = State::Done;
        }
    }

    fn try_execute(
        &mut self,
        instruction: Instruction,
        now: Ticks,
        slab: &mut Slab,
        send: &mut impl FnMut(Tlp),
    ) -> Outcome {
        match instruction {
            Instruction::Access { verb: Verb::Store, manner, address, len, turn, pace } => match manner {
                Manner::Combining => self.combine(now, address, len, turn, pace, slab, send),
                Manner::Uncached => self.store_uncached(now, address, len, turn, slab, send),
                Manner::Direct => self.store_direct(now, address, len, turn, pace, slab, send),
                Manner::Through | Manner::Protected | Manner::Streaming => {
                    self.store_through(now, manner, address, len, turn, pace, slab, send)
                }
            },
            Instruction::Access { verb: Verb::Load, manner, address, len, .. } => match manner {
                Manner::Uncached | Manner::Direct => self.load_uncached(now, address, len, slab, send),
                Manner::Combining => self.load_combining(now, address, len, slab, send),
                Manner::Streaming => self.load_streaming(now, address, len, slab, send),
                Manner::Through | Manner::Protected => self.load_cached(now, address, len, slab, send),
            },
            Instruction::Fence(fence) => self.fence(fence, now, slab, send),
            Instruction::Kernel(span) => match self.drain(slab, send) {
                Some(blocked) => blocked,
                None => {
                    self.waits[Cause::Driver.index()] += span;
                    self.after(now, span)
                }
            },
            Instruction::Pause(span) => self.after(now, span),
            Instruction::FlushLine(line) => {
                self.cache.drop_line(line);
                self.after(now, self.spec.cycle)
            }
        }
    }

    /// Done at `now` + `span`, and nothing overlaps it.
    fn after(&mut self, now: Ticks, span: Ticks) -> Outcome {
        self.drained = now + span;
        Outcome::Done { issued: now + span, next: now + span }
    }

    /// A store left the store buffer at `now`: when did it issue, and when may the next leave?
    #[inline]
    fn stored(&mut self, now: Ticks, pace: Ticks) -> Outcome {
        let room = self.left_at[self.left_next];
        self.left_at[self.left_next] = now;
        self.left_next = if self.left_next + 1 == self.left_at.len() { 0 } else { self.left_next + 1 };
        let issued = (self.issued + pace).max(room);
        self.drained = now;
        Outcome::Done { issued, next: issued.max(now + self.spec.cycle) }
    }

    fn write(&self, address: u64, len: u64, tag: u16, payload: Slot) -> Tlp {
        let (address, length_dw, first_be, last_be) = span(address, len);
        Tlp { kind: TlpKind::MWr, address, length_dw, first_be, last_be, requester: self.spec.number, tag, payload }
    }

    fn payload(address: u64, len: u64, turn: u64, slab: &mut Slab) -> Slot {
        let slot = slab.take();
        let skip = (address % 4) as usize;
        let mut bytes = [0; 64];
        stored_bytes(address, turn, &mut bytes[..len as usize]);
        let len = (len as usize).min(64 - skip);
        slab.bytes_mut(slot)[skip..skip + len].copy_from_slice(&bytes[..len]);
        slot
    }

    /// Lets write-combining buffer `place` leave.
    #[inline]
    fn evict(&mut self, place: usize, slab: &mut Slab, send: &mut impl FnMut(Tlp)) {
        let requester = self.spec.number;
        self.wc.evict(place, slab, |piece, payload| {
            send(Tlp {
                kind: TlpKind::MWr,
                address: piece.address,
                length_dw: piece.length_dw,
                first_be: piece.first_be,
                last_be: piece.last_be,
                requester,
                tag: place as u16,
                payload,
            });
        });
    }

    /// Lets everything leave; `Some` while it is on its way.
    fn drain(&mut self, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Option<Outcome> {
        while let Some(place) = if self.wc.open() > 0 { self.wc.oldest_open() } else { None } {
            self.evict(place, slab, send);
        }
        (self.wc.leaving() > 0 || self.store_out || self.reads_out > 0).then_some(Outcome::Blocked(Cause::Fence))
    }

    #[allow(clippy::too_many_arguments)]
    #[inline]
    fn combine(
        &mut self,
        now: Ticks,
        address: u64,
        len: u64,
        turn: u64,
        pace: Ticks,
        slab: &mut Slab,
        send: &mut impl FnMut(Tlp),
    ) -> Outcome {
        let mut bytes = [0; 64];
        let bytes = &mut bytes[..len as usize];
        stored_bytes(address, turn, bytes);
        match self.wc.store(address, bytes, slab) {
            Stored::Gathered => self.stored(now, pace),
            Stored::Full(place) => {
                self.evict(place, slab, send);
                self.stored(now, pace)
            }
            Stored::SameLine => Outcome::Blocked(Cause::SameLine),
            Stored::NoBuffer(oldest) => {
                if let Some(place) = oldest {
                    self.evict(place, slab, send);
                }
                Outcome::Blocked(Cause::Buffers)
            }
        }
    }

    fn store_uncached(
        &mut self,
        now: Ticks,
        address: u64,
        len: u64,
        turn: u64,
        slab: &mut Slab,
        send: &mut impl FnMut(Tlp),
    ) -> Outcome {
        if self.sent {
            if self.store_out {
                return Outcome::Blocked(Cause::StrongOrder);
            }
            return self.after(now, Ticks::ZERO);
        }
        if let Some(blocked) = self.drain(slab, send) {
            return blocked;
        }
        let payload = Core::payload(address, len, turn, slab);
        send(self.write(address, len, TAG_STORE, payload));
        self.sent = true;
        self.store_out = true;
        Outcome::Blocked(Cause::StrongOrder)
    }

    #[allow(clippy::too_many_arguments)]
    fn store_through(
        &mut self,
        now: Ticks,
        manner: Manner,
        address: u64,
        len: u64,
        turn: u64,
        pace: Ticks,
        slab: &mut Slab,
        send: &mut impl FnMut(Tlp),
    ) -> Outcome {
        if self.store_out {
            return Outcome::Blocked(Cause::StrongOrder);
        }
        let mut bytes = [0; 64];
        let bytes = &mut bytes[..len as usize];
        stored_bytes(address, turn, bytes);
        if manner == Manner::Through {
            self.cache.update(address, bytes);
        } else {
            self.cache.drop_line(address & !63);
        }
        self.invalidate.push(address & !63);
        let payload = Core::payload(address, len, turn, slab);
        send(self.write(address, len, TAG_STORE, payload));
        self.store_out = true;
        self.stored(now, pace)
    }

    #[allow(clippy::too_many_arguments)]
    fn store_direct(
        &mut self,
        now: Ticks,
        address: u64,
        len: u64,
        turn: u64,
        pace: Ticks,
        slab: &mut Slab,
        send: &mut impl FnMut(Tlp),
    ) -> Outcome {
        if let Some(place) = self.wc.open_at(address) {
            self.evict(place, slab, send);
        }
        match self.wc.reserve(address & !63) {
            Stored::Full(place) => {
                let payload = Core::payload(address, len, turn, slab);
                send(self.write(address, len, place as u16, payload));
                self.stored(now, pace)
            }
            Stored::NoBuffer(oldest) => {
                if let Some(place) = oldest {
                    self.evict(place, slab, send);
                }
                Outcome::Blocked(Cause::Buffers)
            }
            Stored::SameLine | Stored::Gathered => Outcome::Blocked(Cause::SameLine),
        }
    }

    fn read(&mut self, address: u64, len: u64, purpose: Purpose, send: &mut impl FnMut(Tlp)) {
        let place = self.reads.iter().position(Option::is_none).unwrap_or_else(|| {
            self.reads.push(None);
            self.reads.len() - 1
        });
        self.reads[place] = Some(purpose);
        self.reads_out += 1;
        let (address, length_dw, first_be, last_be) = span(address, len);
        send(Tlp {
            kind: TlpKind::MRd,
            address,
            length_dw,
            first_be,
            last_be,
            requester: self.spec.number,
            tag: TAG_READ | place as u16,
            payload: Slot::NONE,
        });
    }

    fn load_uncached(
        &mut self,
        now: Ticks,
        address: u64,
        len: u64,
        slab: &mut Slab,
        send: &mut impl FnMut(Tlp),
    ) -> Outcome {
        if self.sent {
            if self.reads_out > 0 {
                return Outcome::Blocked(Cause::ReadRoundTrip);
            }
            return self.after(now, Ticks::ZERO);
        }
        if let Some(blocked) = self.drain(slab, send) {
            return blocked;
        }
        self.read(address, len, Purpose::Load { address, len }, send);
        self.sent = true;
        Outcome::Blocked(Cause::ReadRoundTrip)
    }

    fn load_combining(
        &mut self,
        now: Ticks,
        address: u64,
        len: u64,
        slab: &mut Slab,
        send: &mut impl FnMut(Tlp),
    ) -> Outcome {
        // The core sees its own stores: what is gathered for this line goes first, and reads do not pass it.
        if let Some(place) = self.wc.open_at(address) {
            self.evict(place, slab, send);
        }
        if self.single_loads_out >= self.spec.loads_in_flight {
            return Outcome::Blocked(Cause::ReadRoundTrip);
        }
        self.single_loads_out += 1;
        self.read(address, len, Purpose::Load { address, len }, send);
        let issued = now + self.spec.cycle;
        Outcome::Done { issued, next: issued }
    }

    fn load_streaming(
        &mut self,
        now: Ticks,
        address: u64,
        len: u64,
        slab: &mut Slab,
        send: &mut impl FnMut(Tlp),
    ) -> Outcome {
        if let Some(place) = self.wc.open_at(address) {
            self.evict(place, slab, send);
        }
        let line = address & !63;
        let mask = if len == 64 { u64::MAX } else { ((1 << len) - 1) << (address % 64) };
        let place = match self.streaming.find(line, mask) {
            streaming_buffer::Found::Buffered(place) => place,
            streaming_buffer::Found::Fetch(place) => {
                self.streaming.fetch(place, line);
                self.read(line, 64, Purpose::Streaming { place }, send);
                place
            }
            streaming_buffer::Found::Wait => return Outcome::Blocked(Cause::ReadRoundTrip),
        };
        match self.streaming.give(place, mask) {
            Some(data) => self.see(address, &data[(address % 64) as usize..][..len as usize], now),
            None => self.attach(Purpose::Streaming { place }, address, len),
        }
        let issued = now + self.spec.cycle;
        Outcome::Done { issued, next: issued }
    }

    fn load_cached(
        &mut self,
        now: Ticks,
        address: u64,
        len: u64,
        slab: &mut Slab,
        send: &mut impl FnMut(Tlp),
    ) -> Outcome {
        if let Some(place) = self.wc.open_at(address) {
            self.evict(place, slab, send);
        }
        let line = address & !63;
        match self.cache.find(line) {
            cache::Found::Hit => {
                if let Some(data) = self.cache.line(line).copied() {
                    self.see(address, &data[(address % 64) as usize..][..len as usize], now + self.spec.cached_load);
                }
            }
            cache::Found::Coming => {
                let coming = self.reads.iter().flatten().find_map(|purpose| match purpose {
                    Purpose::Fill { place } if self.cache.is_filling(*place, line) => Some(*purpose),
                    _ => None,
                });
                if let Some(purpose) = coming {
                    self.attach(purpose, address, len);
                }
            }
            cache::Found::Fetch(place) => {
                self.cache.fetch(place, line);
                self.read(line, 64, Purpose::Fill { place }, send);
                self.attach(Purpose::Fill { place }, address, len);
            }
            cache::Found::Wait => return Outcome::Blocked(Cause::ReadRoundTrip),
        }
        let issued = now + self.spec.cycle;
        Outcome::Done { issued, next: issued }
    }

    fn fence(&mut self, fence: Fence, now: Ticks, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Outcome {
        if fence == Fence::Sfence {
            while let Some(place) = if self.wc.open() > 0 { self.wc.oldest_open() } else { None } {
                self.evict(place, slab, send);
            }
            if self.wc.leaving() > 0 || self.store_out {
                return Outcome::Blocked(Cause::Fence);
            }
            return self.after(now, self.spec.sfence);
        }
        if fence == Fence::Lfence {
            if self.reads_out > 0 {
                return Outcome::Blocked(Cause::ReadRoundTrip);
            }
            let issued = now.max(self.issued) + self.spec.lfence;
            return Outcome::Done { issued, next: issued };
        }
        if let Some(blocked) = self.drain(slab, send) {
            return blocked;
        }
        self.streaming.empty();
        self.after(now, if fence == Fence::Interrupt { self.spec.interrupt } else { self.spec.mfence })
    }

    fn see(&mut self, address: u64, bytes: &[u8], at: Ticks) {
        if let Some(seen) = &mut self.seen {
            seen.push(Seen { address, bytes: bytes.to_vec(), at });
        }
    }

    fn attach(&mut self, purpose: Purpose, address: u64, len: u64) {
        if self.seen.is_some() {
            self.attached.push((purpose, address, len));
        }
    }

    fn see_attached(&mut self, purpose: Purpose, data: &[u8; 64], at: Ticks) {
        let attached = std::mem::take(&mut self.attached);
        for (waits_for, address, len) in attached {
            if waits_for == purpose {
                self.see(address, &data[(address % 64) as usize..][..len as usize], at);
            } else {
                self.attached.push((waits_for, address, len));
            }
        }
    }

    /// A posted write of this core was acknowledged.
    #[inline]
    pub fn acknowledge(&mut self, now: Ticks, ack: &Ack) {
        if ack.tag == TAG_STORE {
            self.store_out = false;
        } else {
            self.wc.acknowledge(usize::from(ack.tag));
        }
        self.wake(now, ack.because);
    }

    /// A read of this core was completed.
    pub fn complete(&mut self, now: Ticks, tlp: &Tlp, slab: &mut Slab) {
        let place = usize::from(tlp.tag & !TAG_READ);
        let Some(purpose) = self.reads.get_mut(place).and_then(Option::take) else { return };
        self.reads_out -= 1;
        // A completion without data reads as all ones, as on a real machine.
        let data = if tlp.kind == TlpKind::CplD { *slab.bytes(tlp.payload) } else { [0xFF; 64] };
        slab.give_back(tlp.payload);
        match purpose {
            Purpose::Load { address, len } => {
                self.single_loads_out = self.single_loads_out.saturating_sub(1);
                let skip = (address % 4) as usize;
                self.see(address, &data[skip..skip + len as usize], now);
            }
            Purpose::Streaming { place } => {
                self.streaming.fill(place, &data);
                self.see_attached(purpose, &data, now);
            }
            Purpose::Fill { place } => {
                self.cache.fill(place, &data);
                self.see_attached(purpose, &data, now);
            }
        }
        self.wake(now, None);
    }

    /// Something arrived: if the interpreter waits, it tries again, and the wait so far is charged.
    #[inline]
    fn wake(&mut self, now: Ticks, because: Option<Cause>) {
        if let State::Waiting { since, reason } = self.state {
            self.waits[because.unwrap_or(reason).index()] += now - since;
            self.state = State::Ready(now);
        }
    }

    /// Another core stored to this line.
    pub fn invalidate_line(&mut self, line: u64) {
        self.cache.drop_line(line);
    }

    /// Lets every gathered line leave, as when the operating system takes the core away.
    pub fn flush(&mut self, slab: &mut Slab, mut send: impl FnMut(Tlp)) {
        let _ = self.drain(slab, &mut send);
    }
}
