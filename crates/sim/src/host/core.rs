//! A core: an in-order interpreter of instructions, with the buffers between it and the root complex.
//!
//! ```text
//!  program --> issue --> store buffer --> write-combining buffers --+
//!                |                    \-> UC, WT, WP, direct -------+--> requests
//!                +--> loads: uncached, streaming buffers, cache ----+
//!                         acknowledgments, completions <----------------
//! ```
//!
//! There are two clocks: `issued`, when the front end finished the last instruction, and the simulation time, at
//! which a store leaves the store buffer. A store issues when the store buffer has space, and leaves it after all
//! older loads. Loads and fences wait until older stores have left it, which is stricter than a real core for loads
//! from WC and cached memory.
//!
//! Recorded stall causes: `StrongOrdering`, `SameLine`, `WcBuffers`, `ReadRoundTrip`, `Fence`, `Driver`, and `Transfer`
//! and `Interrupt` for [notifications](Core::hear) of a card. If an acknowledgment of the root complex carries a
//! stall cause, that cause is recorded instead.

use crate::busy::Busy;
use crate::critical_path::{CriticalPath, Milestone, Place};
use crate::host::cache::{self, Cache};
use crate::host::coherent_memory::{self, BufferOp, CoherentMemory};
use crate::host::core_requests::Ack;
use crate::host::instruction::{Instruction, Manner, Touch};
use crate::host::pins::Pins;
use crate::host::program::Program;
use crate::host::root_port::Notice;
use crate::host::runtime::Copied;
use crate::host::stored_data::stored_bytes;
use crate::host::streaming_buffer::{self, StreamingBuffers};
use crate::host::wc_buffer::{Stored, WcBuffers};
use crate::tlp::{Tlp, TlpKind, span};
use lanemark_engine::{Slab, Wire};
use lanemark_machine::{Cause, Fence, Verb};
use lanemark_platform::Platform;
use lanemark_units::Ticks;

mod notification;

/// Constants of a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Number of the core.
    pub number: u16,
    cycle: Ticks,
    cached_load: Ticks,
    sfence: Ticks,
    lfence: Ticks,
    mfence: Ticks,
    interrupt: Ticks,
    /// Extra latency of a notification, compared with the nearest core.
    distance: Ticks,
    loads_in_flight: u32,
    store_buffer: usize,
}

impl Spec {
    /// Reads the constants of a platform.
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
            distance: platform.core_distance(number.into()),
            loads_in_flight: core.wc_loads_in_flight.value,
            store_buffer: core.store_buffer_entries.value as usize,
        }
    }
}

/// The data of a load, recorded for an observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Bus address.
    pub address: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Time at which the load completed.
    pub at: Ticks,
}

/// The purpose of a read request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A single load.
    Load { address: u64, len: u64 },
    /// A load of a polled register.
    Poll,
    /// A line for a streaming buffer.
    Streaming { place: usize },
    /// A line for the cache.
    Fill { place: usize },
}

/// State of the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The current instruction is executed at this time.
    Ready(Ticks),
    /// Stalled for an acknowledgment or a completion, since this time; `reason` is the default stall cause.
    Waiting { since: Ticks, reason: Cause },
    /// The program has ended.
    Done,
}

/// The result of executing an instruction.
enum Outcome {
    /// Executed; the front end finished it at `issued`, and the next one may start at `next`.
    Done { issued: Ticks, next: Ticks },
    /// Stalled for this cause.
    Blocked(Cause),
}

/// Tags below these are numbers of write-combining buffers.
const TAG_STORE: u16 = 0x4000;
const TAG_READ: u16 = 0x8000;

/// State of a core.
#[derive(Debug)]
pub struct Core {
    spec: Spec,
    program: Option<Program>,
    current: Option<Instruction>,
    state: State,
    /// What its current instruction waited for last, and the limit that this was.
    milestone: Milestone,
    limit: Cause,
    /// Time in which its current instruction left an idle state, and what it waited for in coherent memory.
    slept: Ticks,
    spent_for: Option<(Cause, Ticks)>,
    /// Time in which it issued instructions.
    pub(crate) busy: Busy,
    issued: Ticks,
    /// Times at which the last stores left the store buffer, as a ring.
    left_at: Vec<Ticks>,
    left_next: usize,
    wc: WcBuffers,
    streaming: StreamingBuffers,
    cache: Cache,
    /// Coherent memory; `None` without a `[coherence]` section.
    own: Option<CoherentMemory>,
    reads: Vec<Option<Purpose>>,
    /// Issue time of each read.
    asked: Vec<Ticks>,
    /// Bytes of completed loads.
    pub loaded_bytes: u64,
    reads_out: u32,
    single_loads_out: u32,
    /// Whether a UC, WT or WP store is outstanding.
    store_out: bool,
    /// Acknowledgments in flight to the core; processed when it executes.
    pub acks: Wire<Ack>,
    /// Notifications of cards in flight, each with the number of completed transfers; processed like acknowledgments.
    notifications: Wire<(Notice, u64)>,
    /// Highest number of a notification, and the last value of a polled register.
    completions_seen: u64,
    polled: u64,
    /// Time since which it sleeps for a notification.
    asleep_since: Option<Ticks>,
    /// Timestamp taken by its program.
    stamped: Option<Ticks>,
    /// Whether the current instruction has issued its request.
    sent: bool,
    /// Time at which the last cache hit has its data.
    hit_until: Ticks,
    /// Loads that wait for a line, recorded for an observer.
    attached: Vec<(Purpose, Touch)>,
    /// Stall times, by [`Cause::index`].
    pub waits: [Ticks; Cause::ALL.len()],
    /// Loads and their data, recorded for an observer.
    pub seen: Option<Vec<Seen>>,
    /// Lines to be invalidated in other cores, until the board has done so.
    pub invalidate: Vec<u64>,
    /// Copies of host memory, until the board has done them.
    pub copies: Vec<Copied>,
}

impl Core {
    /// Creates an idle core.
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
            own: coherent_memory::Spec::new(platform).map(CoherentMemory::new),
            spec,
            program: None,
            current: None,
            state: State::Done,
            milestone: Milestone::NONE,
            limit: Cause::Transit,
            slept: Ticks::ZERO,
            spent_for: None,
            busy: Busy::default(),
            issued: Ticks::ZERO,
            reads: Vec::with_capacity(64),
            asked: Vec::with_capacity(64),
            loaded_bytes: 0,
            reads_out: 0,
            single_loads_out: 0,
            store_out: false,
            acks: Wire::default(),
            notifications: Wire::default(),
            completions_seen: 0,
            polled: 0,
            asleep_since: None,
            stamped: None,
            sent: false,
            hit_until: Ticks::ZERO,
            attached: Vec::new(),
            waits: [Ticks::ZERO; Cause::ALL.len()],
            seen: None,
            invalidate: Vec::new(),
            copies: Vec::new(),
        }
    }

    /// Starts `program` at `now`; buffers keep their contents.
    pub fn start(&mut self, now: Ticks, mut program: Program) {
        self.current = program.next();
        self.program = Some(program);
        self.issued = now;
        (self.milestone, self.limit) = (Milestone::NONE, Cause::Transit);
        self.sent = false;
        self.left_at.fill(now);
        (self.completions_seen, self.polled) = (0, 0);
        (self.asleep_since, self.stamped) = (None, None);
        self.state = if self.current.is_some() { State::Ready(now) } else { State::Done };
        self.waits = [Ticks::ZERO; Cause::ALL.len()];
    }

    /// Ends its program and drops its cached lines; issued requests complete.
    pub fn stop(&mut self) {
        self.cache.drop_all();
        // Later notifications are ignored.
        self.notifications = Wire::default();
        self.program = None;
        self.current = None;
        self.state = State::Done;
    }

    /// Returns the time of the next instruction or, during a stall, of the next acknowledgment. After the program,
    /// returns the time of the last acknowledgment.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        match self.state {
            State::Ready(at) => at,
            State::Waiting { .. } => self.acks.due().min(self.notifications.due()),
            State::Done if self.acks.is_empty() => Ticks::NEVER,
            State::Done => self.acks.last_due(),
        }
    }

    /// Returns whether its program has ended and its loads have completed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Returns whether no access is outstanding and all buffers are empty.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_done() && self.wc.leaving() == 0 && self.wc.open() == 0 && !self.store_out && self.reads_out == 0
    }

    /// Returns the number of open write-combining buffers.
    #[must_use]
    pub fn lines_open(&self) -> u32 {
        self.wc.open()
    }

    /// Returns when the front end finished the last instruction.
    #[must_use]
    pub fn issued_at(&self) -> Ticks {
        self.issued
    }

    /// Returns the end time of its program: its timestamp, or the time when the front end finished.
    #[must_use]
    pub fn stamped_at(&self) -> Ticks {
        self.stamped.unwrap_or(self.issued)
    }

    /// Returns its program.
    #[must_use]
    pub const fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }

    /// Skips `passes` iterations of its program.
    pub fn leave_out(&mut self, passes: u64) {
        if let Some(program) = &mut self.program {
            program.leave_out(passes);
        }
    }

    /// Returns the pages that its program has pinned, if they are counted.
    #[must_use]
    pub fn pins(&self) -> Option<Pins> {
        self.program.as_ref()?.pins()
    }

    /// Executes the current instruction, or stalls.
    #[inline]
    pub fn execute(
        &mut self,
        now: Ticks,
        slab: &mut Slab,
        path: &mut CriticalPath,
        mut send: impl FnMut(Tlp, &mut CriticalPath),
    ) {
        self.acknowledge(now, path);
        if !matches!(self.state, State::Ready(_)) {
            return;
        }
        let Some(instruction) = self.current else {
            self.finish(now);
            return;
        };
        let (limit, before, place) = (self.limit, self.milestone, self.place());
        let mut send_after = |tlp: Tlp| {
            let milestone = path.add_after(limit, before, now, place, Cause::Issue);
            send(Tlp { milestone, ..tlp }, path);
        };
        match self.try_execute(instruction, now, slab, &mut send_after) {
            Outcome::Done { issued, next } => {
                let (idle, own) = (std::mem::take(&mut self.slept), self.spent_for.take());
                // After its wait, an operation on coherent memory is issued like any other.
                let (cause, until) =
                    own.map_or((instruction.cause(), next), |(cause, span)| (cause, (now + span).min(next)));
                let issues_from = if cause == Cause::Issue { now } else { until };
                self.busy.occupy(next.since(issues_from), next);
                if cause != Cause::Issue && path.is_on() {
                    self.advance(now, Cause::Issue, path);
                    self.advance(now + idle, Cause::Idle, path);
                    self.advance(until, cause, path);
                }
                self.sent = false;
                self.issued = issued;
                self.current = self.program.as_mut().and_then(Program::next);
                self.state = State::Ready(next);
                if self.current.is_none() && self.reads_out == 0 {
                    // The closing timestamp waits for loads, not for stores.
                    self.issued = self.issued.max(self.hit_until);
                    self.state = State::Done;
                }
            }
            Outcome::Blocked(reason) => self.state = State::Waiting { since: now, reason },
        }
    }

    /// Adds a milestone: since the last one, it has executed for `cause`.
    #[inline]
    fn advance(&mut self, at: Ticks, cause: Cause, path: &mut CriticalPath) {
        self.milestone = path.add_after(self.limit, self.milestone, at, self.place(), cause);
        self.limit = Cause::Transit;
    }

    /// Returns its place on critical paths.
    #[inline]
    fn place(&self) -> Place {
        Place::core(usize::from(self.spec.number))
    }

    /// Returns what its current instruction waited for last.
    pub(crate) fn milestone(&self) -> Milestone {
        self.milestone
    }

    /// Returns the milestone of the end of its program at `at`.
    pub(crate) fn ended(&mut self, at: Ticks, path: &mut CriticalPath) -> Milestone {
        path.add_after(self.limit, self.milestone, at, self.place(), Cause::Issue)
    }

    /// Ends the program; loads may be outstanding.
    fn finish(&mut self, now: Ticks) {
        if self.reads_out > 0 {
            self.state = State::Waiting { since: now, reason: Cause::ReadRoundTrip };
        } else {
            self.issued = self.issued.max(now).max(self.hit_until);
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
            Instruction::Touch(touch) => match (touch.verb, touch.manner) {
                (Verb::Store, Manner::Combining) => self.combine(now, &touch, slab, send),
                (Verb::Store, Manner::Uncached) => self.store_uncached(now, &touch, slab, send),
                (Verb::Store, Manner::Direct) => self.store_direct(now, &touch, slab, send),
                (Verb::Store, Manner::Through | Manner::Protected | Manner::Streaming) => {
                    self.store_through(now, &touch, slab, send)
                }
                (Verb::Load, Manner::Uncached | Manner::Direct) => self.load_uncached(now, &touch, slab, send),
                (Verb::Load, Manner::Combining) => self.load_combining(now, &touch, slab, send),
                (Verb::Load, Manner::Streaming) => self.load_streaming(now, &touch, slab, send),
                (Verb::Load, Manner::Through | Manner::Protected) => self.load_cached(now, &touch, slab, send),
            },
            Instruction::Fence(fence) => self.fence(fence, now, slab, send),
            Instruction::Kernel(span) => {
                if let Some(blocked) = self.drain(Cause::Fence, slab, send) {
                    return blocked;
                }
                self.waits[Cause::Driver.index()] += span;
                Core::after(now, span)
            }
            Instruction::Pause(span) => Core::after(now, span),
            Instruction::LoadFrom(span) => {
                self.waits[Cause::ReadRoundTrip.index()] += span;
                Core::after(now, span)
            }
            Instruction::Work(span) => {
                self.waits[Cause::Driver.index()] += span;
                Core::after(now, span)
            }
            Instruction::Library(span) => {
                self.waits[Cause::Runtime.index()] += span;
                Core::after(now, span)
            }
            Instruction::Copy { from, to, bytes, span } => {
                self.copies.push(Copied { from, to, bytes });
                self.waits[Cause::Runtime.index()] += span;
                Core::after(now, span)
            }
            Instruction::Stamp => {
                self.stamped = Some(now);
                Core::after(now, Ticks::ZERO)
            }
            Instruction::Sleep { until, wake, reason } => self.sleep(now, until, wake, reason),
            Instruction::Own(deed) => self.share(now, deed),
            Instruction::Await { until } if self.completions_seen < until => Outcome::Blocked(Cause::Transfer),
            Instruction::Await { .. } => Core::after(now, Ticks::ZERO),
            Instruction::Poll { touch, until } => self.poll(now, &touch, until, slab, send),
            // CLFLUSH is ordered behind earlier loads. Source: Intel SDM volume 2, CLFLUSH.
            Instruction::FlushLine(_) if self.reads_out > 0 => Outcome::Blocked(Cause::ReadRoundTrip),
            Instruction::FlushLine(line) => {
                self.cache.drop_line(line);
                Core::after(now, self.spec.cycle)
            }
        }
    }

    /// Executes an operation on coherent memory.
    fn share(&mut self, now: Ticks, deed: BufferOp) -> Outcome {
        // Plans on a platform without the section are refused before they run.
        let Some(own) = &mut self.own else { return Core::after(now, Ticks::ZERO) };
        let coherent_memory::Done { next, waited: (cause, span) } = own.execute(deed, now, self.spec.mfence);
        self.waits[cause.index()] += span;
        self.spent_for = Some((cause, span));
        Outcome::Done { issued: next, next }
    }

    /// Resets its coherent memory: every line is cached, and no access is outstanding.
    pub fn invalidate_shared(&mut self) {
        self.own.iter_mut().for_each(CoherentMemory::invalidate);
    }

    /// Returns an outcome at `now` + `span` that overlaps nothing.
    fn after(now: Ticks, span: Ticks) -> Outcome {
        Outcome::Done { issued: now + span, next: now + span }
    }

    /// Returns the outcome of a store that left the store buffer at `now`: its issue time, and when the next one may
    /// leave.
    #[inline]
    fn stored(&mut self, now: Ticks, pace: Ticks) -> Outcome {
        let room = self.left_at[self.left_next];
        self.left_at[self.left_next] = now;
        self.left_next = if self.left_next + 1 == self.left_at.len() { 0 } else { self.left_next + 1 };
        let issued = (self.issued + pace).max(room);
        Outcome::Done { issued, next: issued.max(now + self.spec.cycle) }
    }

    /// Builds the write TLP of a single store.
    fn write(&self, touch: &Touch, tag: u16, slab: &mut Slab) -> Tlp {
        let (address, length_dw, first_be, last_be) = span(touch.address, touch.len);
        let payload = slab.take();
        let skip = (touch.address - address) as usize;
        stored_bytes(touch.address, touch.turn, &mut slab.line_mut(payload)[skip..skip + touch.len as usize]);
        let requester = self.spec.number;
        Tlp { address, length_dw, first_be, last_be, requester, tag, payload, ..Tlp::of(TlpKind::MWr) }
    }

    /// Evicts write-combining buffer `place`.
    #[inline]
    fn evict(&mut self, place: usize, slab: &mut Slab, send: &mut impl FnMut(Tlp)) {
        let requester = self.spec.number;
        self.invalidate.push(self.wc.line(place));
        self.wc.evict(place, slab, |piece, payload| {
            send(Tlp { requester, tag: place as u16, payload, ..piece.write() });
        });
    }

    /// Evicts every open buffer; returns `Some` with the stall cause while any is leaving.
    fn drain(&mut self, reason: Cause, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Option<Outcome> {
        while let Some(place) = if self.wc.open() > 0 { self.wc.oldest_open() } else { None } {
            self.evict(place, slab, send);
        }
        if self.wc.leaving() > 0 || self.store_out {
            return Some(Outcome::Blocked(reason));
        }
        (self.reads_out > 0).then_some(Outcome::Blocked(Cause::ReadRoundTrip))
    }

    /// Stalls a store until older loads have completed: it leaves the store buffer after it has retired. Then drops
    /// the cached and buffered copies of its line.
    ///
    /// Source: Intel SDM volume 3, "Memory Ordering": writes are not reordered with older reads.
    #[inline]
    fn behind_loads(&mut self, touch: &Touch) -> Option<Outcome> {
        if self.reads_out > 0 {
            return Some(Outcome::Blocked(Cause::ReadRoundTrip));
        }
        self.streaming.drop_line(touch.line());
        if touch.manner != Manner::Through {
            self.cache.drop_line(touch.line());
        }
        None
    }

    #[inline]
    fn combine(&mut self, now: Ticks, touch: &Touch, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Outcome {
        if let Some(blocked) = self.behind_loads(touch) {
            return blocked;
        }
        let fill = |bytes: &mut [u8]| stored_bytes(touch.address, touch.turn, bytes);
        match self.wc.store(touch.address, touch.len, slab, fill) {
            Stored::Gathered => self.stored(now, touch.pace),
            Stored::Full(place) => {
                self.evict(place, slab, send);
                self.stored(now, touch.pace)
            }
            Stored::SameLine => Outcome::Blocked(Cause::SameLine),
            Stored::NoBuffer(oldest) => {
                if let Some(place) = oldest {
                    self.evict(place, slab, send);
                }
                Outcome::Blocked(Cause::WcBuffers)
            }
        }
    }

    fn store_uncached(&mut self, now: Ticks, touch: &Touch, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Outcome {
        if self.sent {
            if self.store_out {
                return Outcome::Blocked(Cause::StrongOrdering);
            }
            return Core::after(now, Ticks::ZERO);
        }
        if let Some(blocked) = self.drain(Cause::StrongOrdering, slab, send) {
            return blocked;
        }
        self.streaming.drop_line(touch.line());
        send(self.write(touch, TAG_STORE, slab));
        self.sent = true;
        self.store_out = true;
        Outcome::Blocked(Cause::StrongOrdering)
    }

    fn store_through(&mut self, now: Ticks, touch: &Touch, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Outcome {
        if let Some(blocked) = self.behind_loads(touch) {
            return blocked;
        }
        if self.store_out {
            return Outcome::Blocked(Cause::StrongOrdering);
        }
        // Earlier non-temporal stores to the same line are sent first.
        if let Some(place) = self.wc.open_at(touch.address) {
            self.evict(place, slab, send);
        }
        if touch.manner == Manner::Through {
            let mut bytes = [0; 64];
            let bytes = &mut bytes[..touch.len as usize];
            stored_bytes(touch.address, touch.turn, bytes);
            self.cache.update(touch.address, bytes);
        }
        self.invalidate.push(touch.line());
        send(self.write(touch, TAG_STORE, slab));
        self.store_out = true;
        self.stored(now, touch.pace)
    }

    fn store_direct(&mut self, now: Ticks, touch: &Touch, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Outcome {
        if let Some(blocked) = self.behind_loads(touch) {
            return blocked;
        }
        if let Some(place) = self.wc.open_at(touch.address) {
            self.evict(place, slab, send);
        }
        match self.wc.reserve(touch.line()) {
            Stored::Full(place) => {
                self.invalidate.push(touch.line());
                send(self.write(touch, place as u16, slab));
                self.stored(now, touch.pace)
            }
            Stored::NoBuffer(oldest) => {
                if let Some(place) = oldest {
                    self.evict(place, slab, send);
                }
                Outcome::Blocked(Cause::WcBuffers)
            }
            Stored::SameLine | Stored::Gathered => Outcome::Blocked(Cause::SameLine),
        }
    }

    fn read(&mut self, now: Ticks, address: u64, len: u64, purpose: Purpose, send: &mut impl FnMut(Tlp)) {
        let place = self.reads.iter().position(Option::is_none).unwrap_or_else(|| {
            self.reads.push(None);
            self.asked.push(now);
            self.reads.len() - 1
        });
        (self.reads[place], self.asked[place]) = (Some(purpose), now);
        self.reads_out += 1;
        let (address, length_dw, first_be, last_be) = span(address, len);
        let (requester, tag) = (self.spec.number, TAG_READ | place as u16);
        send(Tlp { address, length_dw, first_be, last_be, requester, tag, ..Tlp::of(TlpKind::MRd) });
    }

    /// Returns the outcome of a load that was sent or served; the next instruction follows a cycle later.
    fn loaded(&self, now: Ticks) -> Outcome {
        let issued = now + self.spec.cycle;
        Outcome::Done { issued, next: issued }
    }

    fn load_uncached(&mut self, now: Ticks, touch: &Touch, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Outcome {
        if self.sent {
            if self.reads_out > 0 {
                return Outcome::Blocked(Cause::ReadRoundTrip);
            }
            return Core::after(now, Ticks::ZERO);
        }
        if let Some(blocked) = self.drain(Cause::StrongOrdering, slab, send) {
            return blocked;
        }
        self.read(now, touch.address, touch.len, Purpose::Load { address: touch.address, len: touch.len }, send);
        self.sent = true;
        Outcome::Blocked(Cause::ReadRoundTrip)
    }

    /// Polls a register.
    fn poll(&mut self, now: Ticks, touch: &Touch, until: u64, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Outcome {
        if self.sent && self.reads_out == 0 && self.polled >= until {
            return Core::after(now, Ticks::ZERO);
        }
        if self.reads_out == 0 {
            if let Some(blocked) = self.drain(Cause::StrongOrdering, slab, send) {
                return blocked;
            }
            self.read(now, touch.address, touch.len, Purpose::Poll, send);
            self.sent = true;
        }
        Outcome::Blocked(Cause::ReadRoundTrip)
    }

    fn load_combining(&mut self, now: Ticks, touch: &Touch, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Outcome {
        // Stores gathered for this line are sent first, and reads do not pass them.
        if let Some(place) = self.wc.open_at(touch.address) {
            self.evict(place, slab, send);
        }
        if self.single_loads_out >= self.spec.loads_in_flight {
            return Outcome::Blocked(Cause::ReadRoundTrip);
        }
        self.single_loads_out += 1;
        self.read(now, touch.address, touch.len, Purpose::Load { address: touch.address, len: touch.len }, send);
        self.loaded(now)
    }

    fn load_streaming(&mut self, now: Ticks, touch: &Touch, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Outcome {
        if let Some(place) = self.wc.open_at(touch.address) {
            self.evict(place, slab, send);
        }
        let place = match self.streaming.find(touch.line(), touch.mask()) {
            streaming_buffer::Lookup::Buffered(place) => place,
            streaming_buffer::Lookup::Fetch(place) => {
                self.streaming.fetch(place, touch.line());
                self.read(now, touch.line(), 64, Purpose::Streaming { place }, send);
                place
            }
            streaming_buffer::Lookup::Wait => return Outcome::Blocked(Cause::ReadRoundTrip),
        };
        match self.streaming.give(place, touch.mask()) {
            Some(data) => self.see(touch.address, touch.of(&data), now),
            None => self.attach(Purpose::Streaming { place }, touch),
        }
        self.loaded(now)
    }

    fn load_cached(&mut self, now: Ticks, touch: &Touch, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Outcome {
        if let Some(place) = self.wc.open_at(touch.address) {
            self.evict(place, slab, send);
        }
        let line = touch.line();
        match self.cache.find(line) {
            cache::Lookup::Hit => {
                if let Some(data) = self.cache.line(line).copied() {
                    self.hit_until = now + self.spec.cached_load;
                    self.see(touch.address, touch.of(&data), self.hit_until);
                }
            }
            cache::Lookup::Coming(place) => self.attach(Purpose::Fill { place }, touch),
            cache::Lookup::Fetch(place) => {
                self.cache.fetch(place, line);
                self.read(now, line, 64, Purpose::Fill { place }, send);
                self.attach(Purpose::Fill { place }, touch);
            }
            cache::Lookup::Wait => return Outcome::Blocked(Cause::ReadRoundTrip),
        }
        self.loaded(now)
    }

    fn fence(&mut self, fence: Fence, now: Ticks, slab: &mut Slab, send: &mut impl FnMut(Tlp)) -> Outcome {
        if fence == Fence::Sfence {
            while let Some(place) = if self.wc.open() > 0 { self.wc.oldest_open() } else { None } {
                self.evict(place, slab, send);
            }
            if self.wc.leaving() > 0 || self.store_out {
                return Outcome::Blocked(Cause::Fence);
            }
            return Core::after(now, self.spec.sfence);
        }
        if fence == Fence::Lfence {
            if self.reads_out > 0 {
                return Outcome::Blocked(Cause::ReadRoundTrip);
            }
            let issued = now.max(self.issued).max(self.hit_until) + self.spec.lfence;
            return Outcome::Done { issued, next: issued };
        }
        if let Some(blocked) = self.drain(Cause::Fence, slab, send) {
            return blocked;
        }
        self.streaming.empty();
        Core::after(
            now.max(self.hit_until),
            if fence == Fence::Interrupt { self.spec.interrupt } else { self.spec.mfence },
        )
    }

    fn see(&mut self, address: u64, bytes: &[u8], at: Ticks) {
        if let Some(seen) = &mut self.seen {
            seen.push(Seen { address, bytes: bytes.to_vec(), at });
        }
    }

    fn attach(&mut self, purpose: Purpose, touch: &Touch) {
        if self.seen.is_some() {
            self.attached.push((purpose, *touch));
        }
    }

    fn see_attached(&mut self, purpose: Purpose, data: &[u8; 64], at: Ticks) {
        let attached = std::mem::take(&mut self.attached);
        for (waits_for, touch) in attached {
            if waits_for == purpose {
                self.see(touch.address, touch.of(data), at);
            } else {
                self.attached.push((waits_for, touch));
            }
        }
    }

    /// Processes the acknowledgments of posted writes that have arrived.
    #[inline]
    fn acknowledge(&mut self, now: Ticks, path: &mut CriticalPath) {
        if self.notifications.due() <= now {
            self.process_notifications(now, path);
        }
        while let Some(ack) = self.acks.take(now) {
            if ack.tag == TAG_STORE {
                self.store_out = false;
            } else {
                self.wc.acknowledge(usize::from(ack.tag));
            }
            self.wake(now, ack.because, ack.milestone);
        }
    }

    /// Returns the issue time of the outstanding read with this tag.
    #[must_use]
    pub fn asked_at(&self, tag: u16) -> Option<Ticks> {
        let place = usize::from(tag & !TAG_READ);
        self.reads.get(place)?.as_ref().and_then(|_| self.asked.get(place).copied())
    }

    /// Completes a read of this core.
    pub fn complete(&mut self, now: Ticks, tlp: &Tlp, slab: &mut Slab) {
        let place = usize::from(tlp.tag & !TAG_READ);
        let Some(purpose) = self.reads.get_mut(place).and_then(Option::take) else { return };
        self.reads_out -= 1;
        // A completion without data returns all ones, as on a real machine.
        let data = if tlp.kind == TlpKind::CplD {
            self.loaded_bytes += u64::from(tlp.enabled_bytes());
            *slab.line(tlp.payload)
        } else {
            [0xFF; 64]
        };
        slab.give_back(tlp.payload);
        match purpose {
            Purpose::Load { address, len } => {
                self.single_loads_out = self.single_loads_out.saturating_sub(1);
                let skip = (address % 4) as usize;
                self.see(address, &data[skip..skip + len as usize], now);
            }
            Purpose::Poll => {
                let (low, high) = data.split_at(4);
                let word = |bytes: &[u8]| bytes[..4].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
                self.polled = word(low) | word(high) << 32;
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
        self.wake(now, None, tlp.milestone);
    }

    /// Retries the current instruction after an arrival, and charges the stall so far.
    #[inline]
    fn wake(&mut self, now: Ticks, because: Option<Cause>, milestone: Milestone) {
        if let State::Waiting { since, reason } = self.state {
            (self.milestone, self.limit) = (milestone, reason);
            self.waits[because.unwrap_or(reason).index()] += now - since;
            self.state = State::Ready(now);
        }
    }

    /// Invalidates a line after a store of another core.
    #[inline]
    pub fn invalidate_line(&mut self, line: u64) {
        self.cache.drop_line(line);
    }

    /// Evicts every open write-combining buffer, as a context switch does.
    pub fn flush(&mut self, slab: &mut Slab, mut send: impl FnMut(Tlp)) {
        let milestone = self.milestone;
        let _ = self.drain(Cause::Fence, slab, &mut |tlp| send(Tlp { milestone, ..tlp }));
    }
}
