//! The task of a core as a sequence of instructions, produced one by one without allocation.

use crate::host::coherent_memory::Sharing;
use crate::host::driver::{self, Call};
use crate::host::handshake::{Phase, poll};
use crate::host::instruction::{Instruction, Manner, Touch};
use crate::host::pins::Pins;
use crate::host::runtime::{self, Asked, Command};
use lanemark_machine::{
    Access, DmaCall, DriverCall, Fence, Handshake, LineSource, Operation, Order, QueueRequest, Span, Step, Stream,
    Task, Verb, Width,
};
use lanemark_platform::memcpy::{Pieces, Variant};
use lanemark_platform::{Loads, Platform};
use lanemark_units::{MemoryType, Ticks};

/// Constants of the core that determine its instructions.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    cycle: Ticks,
    store_loop: Ticks,
    vector_bytes: u64,
    memcpy: Variant,
    streaming: bool,
    kernel: Ticks,
    map: Ticks,
    loads: Loads,
    /// Bus address of each BAR.
    bars: [u64; 6],
    /// The driver, if there is one.
    driver: Option<driver::Spec>,
    /// The runtime, if there is one.
    runtime: Option<runtime::Spec>,
}

impl Spec {
    /// Reads the constants of a platform.
    #[must_use]
    pub fn new(platform: &Platform) -> Spec {
        let core = &platform.core;
        let ns = |cycles: f64| Ticks::from_ns(cycles / core.clock_ghz.value).unwrap_or(Ticks(1));
        let mut bars = [0; 6];
        for bar in &platform.bars {
            bars[bar.index.value as usize] = bar.address_bytes.value;
        }
        Spec {
            cycle: ns(1.0),
            store_loop: ns(core.store_loop_cycles.value),
            vector_bytes: u64::from(core.vector_bytes.value),
            memcpy: core.memcpy.value,
            streaming: core.streaming_load_buffers.value > 0,
            kernel: platform.driver.as_ref().map_or(Ticks::ZERO, |driver| driver.call_ns.value),
            map: platform.driver.as_ref().map_or(Ticks::ZERO, |driver| driver.map_ns.value),
            loads: platform.loads(),
            bars,
            driver: driver::Spec::new(platform),
            runtime: runtime::Spec::new(platform),
        }
    }

    /// Returns the costs of the runtime, if there is one.
    #[must_use]
    pub const fn runtime(&self) -> Option<&runtime::Spec> {
        self.runtime.as_ref()
    }

    /// Returns the clock period of the core.
    #[must_use]
    pub const fn cycle(&self) -> Ticks {
        self.cycle
    }

    /// Returns the bus address of an offset in a BAR.
    #[must_use]
    pub fn bus(&self, at: lanemark_units::BarOffset) -> u64 {
        self.bars[usize::from(at.bar)] + at.offset
    }

    fn manner(&self, verb: Verb, access: Access, kind: MemoryType) -> Manner {
        match (verb, access, kind) {
            // Direct stores follow the WC protocol on every memory type, also UC and WP.
            // Source: Intel SDM volume 2, MOVDIRI and MOVDIR64B.
            (Verb::Store, Access::Movdiri(_) | Access::Movdir64b, _) => Manner::Direct,
            (Verb::Load, Access::NonTemporal(_), MemoryType::Wc) if self.streaming => Manner::Streaming,
            (_, _, MemoryType::Uc) => Manner::Uncached,
            // UC and WP override a non-temporal hint; WT does not. Source: Intel SDM volume 1, 10.4.6.2.
            (_, _, MemoryType::Wc) | (Verb::Store, Access::NonTemporal(_), MemoryType::Wt | MemoryType::Wb) => {
                Manner::Combining
            }
            (_, _, MemoryType::Wt | MemoryType::Wb) => Manner::Through,
            (_, _, MemoryType::Wp) => Manner::Protected,
        }
    }

    fn stores(&self, access: Access, kind: MemoryType, len: u64, misaligned: u64) -> Pieces {
        // Fast strings move whole vectors on WB and WC memory only; other memory types move single bytes.
        // Source: Intel SDM volume 1, "Fast-String Operation".
        let string = || match kind {
            MemoryType::Wc | MemoryType::Wb => Pieces::of(len, self.vector_bytes),
            _ => Pieces::of(len, 1),
        };
        match access {
            Access::Memcpy => self.memcpy.stores(len, misaligned).unwrap_or_else(string),
            // `supports` rejects plans with it: the simulated core has no such routine.
            Access::RepMovsb | Access::CopyToDevice => string(),
            Access::Movdir64b => Pieces::of(len, 64),
            Access::Plain(width) | Access::NonTemporal(width) | Access::Movdiri(width) => {
                Pieces::of(len, width.bytes())
            }
        }
    }

    /// Returns the issue interval: that of the compiled loop, or a cycle for hand-written copies.
    fn pace(&self, verb: Verb, access: Access) -> Ticks {
        match (verb, access) {
            (Verb::Store, Access::Plain(Width::B1 | Width::B2 | Width::B4 | Width::B8)) => self.store_loop,
            _ => self.cycle,
        }
    }
}

/// Position of the core in a stream.
#[derive(Clone, Debug)]
struct Walk {
    verb: Verb,
    manner: Manner,
    base: u64,
    pace: Ticks,
    stores: Pieces,
    all: Pieces,
    times_left: u64,
    fence_each: Option<Fence>,
    turn: u64,
    /// The rest of a piece that crosses a line.
    rest: Option<(u64, u64)>,
    /// Order of the pieces if they are not contiguous, and their width.
    order: Option<(Order, Width)>,
}

impl Walk {
    fn next(&mut self) -> Option<(u64, u64)> {
        let (address, len) = match self.rest.take() {
            Some(rest) => rest,
            None => loop {
                if let Some(piece) = self.stores.next() {
                    let offset = match self.order {
                        None => piece.offset,
                        Some((order, width)) => order.place(piece.offset / width.bytes(), width),
                    };
                    break (self.base + offset, piece.bytes);
                }
                self.times_left -= 1;
                if self.times_left == 0 {
                    return None;
                }
                self.turn += 1;
                self.stores = self.all.clone();
            },
        };
        let in_line = 64 - address % 64;
        if len > in_line {
            self.rest = Some((address + in_line, len - in_line));
            return Some((address, in_line));
        }
        Some((address, len))
    }
}

#[derive(Clone, Debug)]
enum Inside {
    Nothing,
    Stream(Walk),
    /// A driver call: bytes done, and its next step.
    Driver {
        call: DriverCall,
        done: u64,
        walk: Option<Walk>,
    },
    Flush {
        next: u64,
        end: u64,
    },
    Sharing(Sharing),
    /// A request to a device: its current stream, and what comes after it.
    Handshake {
        request: Handshake,
        walk: Option<Walk>,
        next: Phase,
    },
    /// A command to a runtime.
    Runtime(Command),
    /// Calls for transfers: the number started, and the current one.
    Dma {
        call: DmaCall,
        begun: u64,
        outstanding: Option<Call>,
    },
}

/// Message about an operation that the check of plans lets through by mistake.
const REFUSED: &str = "a plan with this operation is refused before it runs";

/// Work that a program repeats in each iteration.
#[derive(Clone, Debug)]
enum Body {
    Task(Task),
    Request(QueueRequest),
}

impl Body {
    /// Number of steps of an iteration.
    fn steps(&self) -> usize {
        match self {
            Body::Task(Task::Steps(steps)) => steps.len(),
            Body::Task(Task::Operation(_) | Task::DmaCall(_)) | Body::Request(_) => 1,
        }
    }
}

/// A task being executed.
#[derive(Clone, Debug)]
pub struct Program {
    spec: Spec,
    body: Body,
    /// Number of the current step.
    step: usize,
    passes_left: u64,
    pass: u64,
    inside: Inside,
    fence_next: Option<Fence>,
    /// Transfers that the lane's channel or kernels had completed at the start, and those requested since.
    done_before: u64,
    calls: u64,
    /// Number of times that a runtime reached the first doorbell of its command.
    laps: u64,
    /// Instructions after the last iteration.
    ending: Option<std::vec::IntoIter<Instruction>>,
    /// Pages that its calls pin, if a pin fails (injected fault).
    pins: Option<Pins>,
}

impl Program {
    /// Creates a program of `passes` iterations of a task; the data of stores depends on the iteration number, from
    /// `first_pass` on.
    #[must_use]
    pub fn new(spec: Spec, task: &Task, passes: u64, first_pass: u64) -> Program {
        Program::of(spec, Body::Task(task.clone()), passes, first_pass)
    }

    /// Creates a program that makes a request of the runtime in each of `passes` iterations.
    #[must_use]
    pub fn of_request(spec: Spec, request: &QueueRequest, passes: u64, first_pass: u64) -> Program {
        Program::of(spec, Body::Request(request.clone()), passes, first_pass)
    }

    fn of(spec: Spec, body: Body, passes: u64, first_pass: u64) -> Program {
        Program {
            spec,
            passes_left: if body.steps() == 0 { 0 } else { passes },
            body,
            step: 0,
            pass: first_pass,
            inside: Inside::Nothing,
            fence_next: None,
            done_before: 0,
            calls: 0,
            laps: 0,
            ending: None,
            pins: None,
        }
    }

    /// Sets the number of transfers that the channel has completed before.
    #[must_use]
    pub fn with_calls_from(self, done_before: u64) -> Program {
        Program { done_before, ..self }
    }

    /// Counts pinned pages until one fails: its call and the task end there. Buffers that a runtime keeps pinned are
    /// pinned first.
    #[must_use]
    pub fn with_pins(mut self, mut pins: Pins) -> Program {
        if let Some(Asked::Copy(_, parts)) = self.asked()
            && parts.kept_pages() > 0
            && pins.pin(parts.call.transfer.window.offset, parts.kept_pages()).is_some()
        {
            self.end();
        }
        Program { pins: Some(pins), ..self }
    }

    /// Ends the program.
    fn end(&mut self) {
        (self.passes_left, self.inside) = (0, Inside::Nothing);
        self.ending = Some(Vec::new().into_iter());
    }

    /// Returns the command to the runtime in each iteration, if there is one.
    fn asked(&self) -> Option<Asked> {
        match &self.body {
            Body::Request(QueueRequest::Launch(launch)) => Some(Asked::Launch(*launch)),
            Body::Request(QueueRequest::Copy(copy)) => {
                Some(Asked::Copy(*copy, self.spec.runtime.as_ref()?.parts(copy)))
            }
            Body::Request(QueueRequest::SmallCopies(copies)) => {
                Some(Asked::Group(self.spec.runtime.as_ref()?.group(copies)?))
            }
            Body::Request(QueueRequest::Compute(_)) | Body::Task(_) => None,
        }
    }

    /// Returns the bus address of an offset in a BAR.
    pub(crate) fn bus(&self, at: lanemark_units::BarOffset) -> u64 {
        self.spec.bus(at)
    }

    /// Returns how often a runtime has reached the first doorbell of its command.
    #[must_use]
    pub const fn laps(&self) -> u64 {
        self.laps
    }

    /// Returns the number of iterations left, with the current one.
    #[must_use]
    pub const fn passes_left(&self) -> u64 {
        self.passes_left
    }

    /// Skips `passes` iterations.
    pub fn leave_out(&mut self, passes: u64) {
        self.passes_left = self.passes_left.saturating_sub(passes);
        self.pass = self.pass.wrapping_add(passes);
    }

    /// Returns the next instruction after the last iteration.
    fn next_at_end(&mut self) -> Option<Instruction> {
        if self.ending.is_none() {
            let ending = self.asked().zip(self.spec.runtime.as_ref());
            let done = self.done_before + self.calls;
            let ending = ending.map(|(asked, spec)| Command::drain(&asked, spec, done)).unwrap_or_default();
            self.ending = Some(ending.into_iter());
        }
        self.ending.as_mut()?.next()
    }

    /// Returns the pages that its calls have pinned, if they are counted.
    #[must_use]
    pub const fn pins(&self) -> Option<Pins> {
        self.pins
    }

    /// Returns the next call for a transfer; `None` after the last one of this iteration.
    fn next_call(&mut self, call: &DmaCall, begun: u64) -> Option<Call> {
        if begun == call.transfer.count {
            return None;
        }
        self.calls += 1;
        let mut made = Call::new(self.spec.driver.as_ref()?, call, self.calls - 1, self.done_before + self.calls)?;
        if let Some(pins) = &mut self.pins {
            made.pin(pins);
        }
        Some(made)
    }

    fn walk(spec: &Spec, stream: &Stream, turn: u64) -> Walk {
        let base = spec.bus(stream.span.at);
        let stores = spec.stores(stream.access, stream.span.memory_type, stream.span.len, base % 64);
        let times = match stream.order {
            Order::Ascending | Order::Interleaved { .. } => 1,
            Order::SameAddress { times } => times,
        };
        let is_interleaved = matches!(stream.order, Order::Interleaved { .. });
        Walk {
            verb: stream.verb,
            manner: spec.manner(stream.verb, stream.access, stream.span.memory_type),
            base,
            pace: spec.pace(stream.verb, stream.access),
            all: stores.clone(),
            stores,
            times_left: times.max(1),
            fence_each: stream.fence_each,
            turn: turn.wrapping_mul(times.max(1)),
            rest: None,
            order: stream.access.width().filter(|_| is_interleaved).map(|width| (stream.order, width)),
        }
    }

    /// Begins the current step; a step of a single instruction ends with it.
    fn begin(&mut self) -> Option<Instruction> {
        let (instruction, inside) = match &self.body {
            Body::Task(Task::Steps(steps)) => self.begin_step(&steps[self.step]),
            Body::Task(Task::Operation(operation)) => self.begin_operation(operation),
            Body::Task(Task::DmaCall(call)) => (None, Inside::Dma { call: *call, begun: 0, outstanding: None }),
            Body::Request(_) => {
                let Some(asked) = self.asked() else {
                    // No command: the platform has no runtime, or the request is not the core's.
                    self.end();
                    return None;
                };
                let command = Command::new(asked, self.done_before + self.calls, self.calls == 0);
                self.calls += Command::ends(&asked);
                (None, Inside::Runtime(command))
            }
        };
        self.inside = inside;
        if instruction.is_some() {
            self.advance();
        }
        instruction
    }

    fn begin_step(&self, step: &Step) -> (Option<Instruction>, Inside) {
        match step {
            Step::Stream(stream) => (None, Inside::Stream(Program::walk(&self.spec, stream, self.pass))),
            Step::Driver(call) => (None, Inside::Driver { call: *call, done: 0, walk: None }),
            Step::FlushLines(span) => {
                let start = self.spec.bus(span.at);
                (None, Inside::Flush { next: start & !63, end: start + span.len })
            }
            Step::Fence(fence) => (Some(Instruction::Fence(*fence)), Inside::Nothing),
            Step::Map(_) => (Some(Instruction::Kernel(self.spec.map)), Inside::Nothing),
            Step::Pause(span) => (Some(Instruction::Pause(*span)), Inside::Nothing),
            Step::Copy(_) => unreachable!("{REFUSED}"),
        }
    }

    fn begin_operation(&self, operation: &Operation) -> (Option<Instruction>, Inside) {
        match operation {
            Operation::BufferHandoff(handoff) => (None, Inside::Sharing(Sharing::new(*handoff))),
            Operation::Handshake(request) => {
                let push = Stream::over(Verb::Store, request.access, request.data);
                let walk = Some(Program::walk(&self.spec, &push, self.pass));
                (None, Inside::Handshake { request: *request, walk, next: Phase::Fence })
            }
            Operation::LineLoad(holder) => {
                // Plans on a platform without this latency are refused before they run.
                let span = load_from(&self.spec.loads, *holder).unwrap_or(Ticks::ZERO);
                (Some(Instruction::LoadFrom(span)), Inside::Nothing)
            }
            Operation::Clock(_) | Operation::KernelCall(_) | Operation::MapUnmap(_) => unreachable!("{REFUSED}"),
        }
    }

    fn advance(&mut self) {
        self.step += 1;
        if self.step == self.body.steps() {
            self.step = 0;
            self.passes_left -= 1;
            self.pass += 1;
        }
    }
}

impl Iterator for Program {
    type Item = Instruction;

    /// Returns the next instruction; `None` at the end of the lane.
    fn next(&mut self) -> Option<Instruction> {
        if let Some(fence) = self.fence_next.take() {
            return Some(Instruction::Fence(fence));
        }
        loop {
            match &mut self.inside {
                Inside::Stream(walk) => {
                    if let Some(found) = step(walk, &mut self.fence_next) {
                        return Some(found);
                    }
                }
                Inside::Driver { call, done, walk: Some(walk) } => {
                    if let Some(found) = step(walk, &mut self.fence_next) {
                        return Some(found);
                    }
                    *done += call.call_bytes.min(call.span.len - *done);
                    let (call, done) = (*call, *done);
                    let kernel = self.spec.kernel - self.spec.kernel / 2;
                    if done < call.span.len {
                        self.inside = Inside::Driver { call, done, walk: None };
                    } else {
                        self.inside = Inside::Nothing;
                        self.advance();
                    }
                    return Some(Instruction::Kernel(kernel));
                }
                Inside::Driver { call, done, walk } => {
                    let len = call.call_bytes.min(call.span.len - *done);
                    let mut at = call.span.at;
                    at.offset += *done;
                    let span = Span { at, len, memory_type: call.span.memory_type };
                    let mut copy =
                        Program::walk(&self.spec, &Stream::over(call.verb, Access::Plain(call.width), span), self.pass);
                    // The copy loop of the kernel is compiled with optimisation.
                    copy.pace = self.spec.cycle;
                    *walk = Some(copy);
                    return Some(Instruction::Kernel(self.spec.kernel / 2));
                }
                Inside::Flush { next, end } if *next < *end => {
                    let line = *next;
                    *next += 64;
                    return Some(Instruction::FlushLine(line));
                }
                Inside::Nothing => {
                    if self.passes_left == 0 {
                        return self.next_at_end();
                    }
                    match self.begin() {
                        Some(instruction) => return Some(instruction),
                        None => continue,
                    }
                }
                Inside::Flush { .. } => {}
                Inside::Sharing(sharing) => {
                    if let Some(deed) = sharing.next() {
                        return Some(Instruction::Own(deed));
                    }
                }
                Inside::Handshake { request, walk, next } => {
                    if let Some(found) = walk.as_mut().and_then(|walk| step(walk, &mut self.fence_next)) {
                        return Some(found);
                    }
                    *walk = None;
                    match *next {
                        Phase::Fence => {
                            *next = Phase::Poll;
                            if request.data.memory_type == MemoryType::Wc {
                                return Some(Instruction::Fence(Fence::Sfence));
                            }
                            continue;
                        }
                        Phase::Poll => {
                            *next = Phase::Fetch;
                            self.calls += 1;
                            return Some(poll(self.spec.bus(request.status), self.calls, self.spec.cycle));
                        }
                        Phase::Fetch => {
                            *next = Phase::End;
                            let fetch = Stream::over(Verb::Load, request.access, request.data);
                            *walk = Some(Program::walk(&self.spec, &fetch, self.pass));
                            continue;
                        }
                        Phase::End => {}
                    }
                }
                Inside::Runtime(command) => {
                    let spec = self.spec.runtime.as_ref()?;
                    if let Some(pins) = &mut self.pins {
                        command.pin(spec, pins);
                    }
                    let is_at_bell = command.is_at_first_bell();
                    if let Some(instruction) = command.next(spec) {
                        self.laps += u64::from(is_at_bell);
                        return Some(instruction);
                    }
                    if self.pins.is_some_and(|pins| pins.refused().is_some()) {
                        self.end();
                        return None;
                    }
                }
                Inside::Dma { call, begun, outstanding } => {
                    let next = outstanding.as_mut().zip(self.spec.driver.as_ref());
                    if let Some(instruction) = next.and_then(|(outstanding, spec)| outstanding.next(spec)) {
                        return Some(instruction);
                    }
                    if self.pins.is_some_and(|pins| pins.refused().is_some()) {
                        self.passes_left = 0;
                        self.inside = Inside::Nothing;
                        return None;
                    }
                    let (call, begun) = (*call, *begun);
                    if let Some(outstanding) = self.next_call(&call, begun) {
                        self.inside = Inside::Dma { call, begun: begun + 1, outstanding: Some(outstanding) };
                        continue;
                    }
                }
            }
            self.inside = Inside::Nothing;
            self.advance();
        }
    }
}

/// Returns the latency of a load of a line from this source; `None` if the platform does not have it.
#[must_use]
pub fn load_from(loads: &Loads, holder: LineSource) -> Option<Ticks> {
    match holder {
        LineSource::Memory => loads.memory,
        LineSource::RemoteMemory => loads.remote_memory,
        LineSource::Core => loads.core,
        LineSource::RemoteCore => loads.remote_core,
    }
}

fn step(walk: &mut Walk, fence_next: &mut Option<Fence>) -> Option<Instruction> {
    let (address, len) = walk.next()?;
    if walk.rest.is_none() {
        *fence_next = walk.fence_each;
    }
    let Walk { verb, manner, turn, pace, .. } = *walk;
    Some(Instruction::Touch(Touch { verb, manner, address, len, turn, pace }))
}
