//! Check of plans: the request for the measurement loops, or the reason for a refusal.

use super::cpu::Cpu;
use super::exchange::Post;
use super::loops::After;
use super::refusal::Refusal;
use super::routine::Shape;
use super::timer::Timer;
use crate::destination::Destination;
use lanemark_machine::{
    Access, BlockCopy, BufferHandoff, Clock, CoreWork, DriverCall, Exchange, Facts, Fence, KernelCall, MapUnmap, Means,
    Medium, Operation, Order, Plan, Span, Step, Stream, Table, Task, Verb, Width, Work,
};

/// Properties of a backend that decide which plans it can run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ability<'a> {
    /// Facts of the machine.
    pub(crate) facts: &'a Facts,
    /// Instructions of the processor.
    pub(crate) cpu: &'a Cpu,
    /// Time-stamp counter.
    pub(crate) timer: Timer,
    /// Reason why a span cannot have a memory type that is not in the facts.
    pub(crate) no_other_type: &'static str,
    /// Accesses, or equivalent work, between two checks of the clock; a check takes 20 to 40 ns.
    pub(crate) weight_per_check: u64,
    /// Maximum weight of one iteration, which is never interrupted.
    pub(crate) weight_per_pass: u64,
}

/// Weight of a system call.
const WEIGHT_OF_A_CALL: u64 = 64;
/// Weight of an `mmap` and `munmap`, or of waking a thread.
const WEIGHT_OF_A_SWITCH: u64 = 4096;
/// Weight of starting a copy.
const WEIGHT_OF_A_COPY: u64 = 16;
/// Weight of flushing a line, or of exchanging two messages through one.
const WEIGHT_OF_A_LINE: u64 = 128;
/// Weight of a page that is mapped for DMA and unmapped: writing and clearing a table entry.
const WEIGHT_OF_A_MAPPED_PAGE: u64 = 32;
/// Page size in bytes.
const PAGE: u64 = 4096;
/// Longest pause: an iteration is never interrupted.
const LONGEST_PAUSE_NS: f64 = 1e6;

/// Request of a plan that can be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// Index of the core.
    pub(crate) core: usize,
    /// Accessed span.
    pub(crate) span: Span,
    /// Offset of the span in the region.
    pub(crate) offset: usize,
    /// Length of the span in bytes.
    pub(crate) len: usize,
    /// Work of one iteration.
    pub(crate) work: Timed,
    /// Offset and length of the span that is flushed before each sample.
    pub(crate) flushed: Option<(usize, usize)>,
    /// See [`Limits`](crate::x86::sample::Limits).
    pub(crate) passes_per_check: u64,
}

/// Work of one iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timed {
    /// Loads or stores: `count` of full width, then `rest` bytes.
    Stream { shape: Shape, count: usize, rest: usize },
    /// Only the operation that otherwise follows a stream.
    Alone(After),
    /// Clock read.
    Clock(Clock),
    /// System call that does no work.
    KernelCall(KernelCall),
    /// Memory mapped for DMA and unmapped.
    MapUnmap(MapUnmap),
    /// Buffer shared with a device.
    BufferHandoff(BufferHandoff),
    /// System calls that copy.
    Driver { verb: Verb, call_bytes: usize },
    /// `mmap` and `munmap`.
    Map,
    /// Copies of one block to consecutive places.
    Copy { access: Access, block_bytes: usize },
    /// Message to another core and its answer.
    Exchange { with_core: usize, through: Through },
}

/// Medium of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Through {
    /// Cache lines, by their offsets in the region.
    Lines {
        post: Post,
        there: usize,
        back: usize,
    },
    Events,
}

/// One iteration: its span, its work, and its weight.
type Pass = (Span, Timed, u64);

impl Ability<'_> {
    /// Rejects a span outside the regions or of another memory type.
    fn holds(&self, span: Span) -> Result<(), Refusal> {
        if !self.facts.memory_types.contains(&span.memory_type) {
            return Err(Refusal::new(format!("a span of type {}", span.memory_type), self.no_other_type));
        }
        let fits = self.facts.regions.iter().any(|region| {
            let inside = span.at.offset.checked_sub(region.at.offset);
            region.at.bar == span.at.bar
                && inside.is_some_and(|start| start <= region.len && span.len <= region.len - start)
        });
        if fits { Ok(()) } else { Err(Refusal::OutOfRange(span)) }
    }
}

impl Request {
    /// Whether the request needs a copy table.
    pub(crate) fn chooses_copies(&self) -> bool {
        match self.work {
            Timed::Stream { shape, .. } => shape.access == Access::CopyToDevice,
            Timed::Copy { access, .. } => access == Access::CopyToDevice,
            Timed::Alone(_)
            | Timed::Clock(_)
            | Timed::KernelCall(_)
            | Timed::MapUnmap(_)
            | Timed::BufferHandoff(_)
            | Timed::Driver { .. }
            | Timed::Map
            | Timed::Exchange { .. } => false,
        }
    }

    /// Cache state of a copy's destination.
    pub(crate) fn destination(&self) -> Destination {
        if self.flushed.is_some() { Destination::Cold } else { Destination::Hot }
    }

    /// Returns the request of `plan`, or the reason for its refusal.
    pub(crate) fn of(plan: &Plan, ability: &Ability<'_>) -> Result<Request, Refusal> {
        plan.check().map_err(|impossible| Refusal::new(impossible.what, impossible.because))?;
        let facts = ability.facts;
        plan.work.check_cores(facts.cores).map_err(|impossible| Refusal::new(impossible.what, impossible.because))?;
        let other = |what: &str, because: &str| Err(Refusal::new(what, because));
        let (core, before, (span, work, weight)) = match &plan.work {
            Work::Cores(CoreWork { lanes, before }) => match lanes.as_slice() {
                [lane] => (lane.core, before.as_slice(), pass(&lane.task, ability)?),
                lanes => {
                    let because = "it runs one lane, or two cores that exchange messages";
                    return other(&format!("a plan of {} lanes", lanes.len()), because);
                }
            },
            Work::Exchange(exchange) => (exchange.cores[0], [].as_slice(), self::exchange(exchange, ability)?),
            Work::Engines(_) => return other("DMA by a device", "no device with a DMA engine is open"),
            Work::Relay(_) => return other("a relay by cards", "no cards with DMA engines are open"),
            Work::Queue(_) => return other("a request to a runtime", "no runtime is open; use opencl:N or sycl:N"),
        };
        if weight > ability.weight_per_pass {
            let because = "one iteration cannot be interrupted at its timeout; use shorter iterations and more of them";
            return Err(Refusal::new("an iteration of that many accesses", because));
        }
        let flushed = match before {
            [] if matches!(work, Timed::BufferHandoff(shared) if shared.finds_written_lines()) => {
                if plan.passes.saturating_add(plan.warmup_passes) != 1 {
                    let what = format!(
                        "{} iterations over device-written lines",
                        plan.passes.saturating_add(plan.warmup_passes)
                    );
                    let because =
                        "lines are flushed only before a sample, so a sample has one iteration and no warm-up";
                    return Err(Refusal::new(what, because));
                }
                Some((span.at.offset as usize, span.len as usize))
            }
            [] => None,
            [Step::FlushLines(span)] => {
                ability.holds(*span)?;
                Some((span.at.offset as usize, span.len as usize))
            }
            body => {
                let because = "before a sample it can only flush the lines of one span";
                return Err(Refusal::new(format!("[{}] before a sample", names(body)), because));
            }
        };
        Ok(Request {
            core: core as usize,
            span,
            offset: span.at.offset as usize,
            len: span.len as usize,
            work,
            flushed,
            passes_per_check: (ability.weight_per_check / weight.max(1)).max(1),
        })
    }
}

fn pass(task: &Task, ability: &Ability<'_>) -> Result<Pass, Refusal> {
    match task {
        Task::Steps(steps) => pass_of_steps(steps, ability),
        Task::Operation(Operation::Clock(clock)) => Ok((nowhere(ability)?, Timed::Clock(*clock), 1)),
        Task::Operation(Operation::KernelCall(call)) => {
            Ok((nowhere(ability)?, Timed::KernelCall(*call), WEIGHT_OF_A_CALL))
        }
        Task::Operation(Operation::MapUnmap(request)) => map_unmap(request, ability),
        Task::Operation(Operation::BufferHandoff(handoff)) => shared(handoff, ability),
        Task::Operation(Operation::LineLoad(source)) => {
            let because = "no line can be brought into that state from here; core_to_core measures it with two cores";
            Err(Refusal::new(format!("a load from {source}"), because))
        }
        Task::Operation(Operation::Handshake(_)) => {
            let because = "no device is known here that shows the end of a request in a status register";
            Err(Refusal::new("a request to a device", because))
        }
        Task::DmaCall(_) => Err(Refusal::new("a driver call that starts DMA", "no device with a DMA engine is open")),
    }
}

fn pass_of_steps(steps: &[Step], ability: &Ability<'_>) -> Result<Pass, Refusal> {
    match steps {
        [Step::Stream(one)] => stream(one, (After::Nothing, 0), ability),
        [Step::Stream(one), after] if let Some(after) = after_of(after, Some(one.span), ability.timer)? => {
            stream(one, after, ability)
        }
        [Step::Driver(call)] => driver(call, ability),
        [Step::Map(span)] => map(*span, ability),
        [Step::Copy(copy)] => block_copy(copy, ability),
        [one] if let Some((after, weight)) = after_of(one, None, ability.timer)? => {
            let span = if let Step::FlushLines(span) = one { *span } else { nowhere(ability)? };
            ability.holds(span)?;
            Ok((span, Timed::Alone(after), weight))
        }
        steps => {
            let because = "it runs one stream, optionally followed by a fence, a flush of its span or a pause; one of \
                           these alone; a copy, driver calls, or an mmap";
            Err(Refusal::new(format!("an iteration of [{}]", names(steps)), because))
        }
    }
}

/// Empty span, for work that accesses no memory.
fn nowhere(ability: &Ability<'_>) -> Result<Span, Refusal> {
    let (region, memory_type) = (ability.facts.regions.first(), ability.facts.memory_types.first());
    let (Some(region), Some(memory_type)) = (region, memory_type) else {
        return Err(Refusal::new("any plan", "the machine has no memory"));
    };
    Ok(Span { at: region.at, len: 0, memory_type: *memory_type })
}

/// Converts `step` after a stream over `span`, with its weight; `None` if it cannot follow a stream.
fn after_of(step: &Step, span: Option<Span>, timer: Timer) -> Result<Option<(After, u64)>, Refusal> {
    Ok(Some(match step {
        Step::Fence(Fence::Interrupt) => {
            let because = "a user program cannot trigger an interrupt at a given instruction";
            return Err(Refusal::new("an interrupt as a fence", because));
        }
        Step::Fence(fence) => (After::Fence(*fence), 1),
        Step::FlushLines(flushed) if span.is_none_or(|span| span == *flushed) => {
            (After::Flush, (flushed.len / 64 + 2).saturating_mul(WEIGHT_OF_A_LINE))
        }
        Step::Pause(pause) if pause.as_ns() > LONGEST_PAUSE_NS => {
            return Err(Refusal::new(
                "a pause of more than 1 ms",
                "a longer iteration could not be interrupted in time",
            ));
        }
        Step::Pause(pause) => (After::Pause(timer.cycles(*pause)), pause.as_ns() as u64),
        _ => return Ok(None),
    }))
}

fn stream(stream: &Stream, after: (After, u64), ability: &Ability<'_>) -> Result<Pass, Refusal> {
    let &Stream { verb, access, span, order, fence_each } = stream;
    let what = || format!("{access} to {}", if verb == Verb::Load { "load" } else { "store" });
    if let Some(because) = ability.cpu.lacks(verb, access) {
        return Err(Refusal::new(what(), because));
    }
    if fence_each == Some(Fence::Interrupt) {
        return Err(Refusal::new(
            "an interrupt as a fence",
            "a user program cannot trigger an interrupt at a given instruction",
        ));
    }
    ability.holds(span)?;
    aligned(&what(), access, span)?;
    let is_interleaved = matches!(order, Order::Interleaved { .. });
    if is_interleaved && (verb == Verb::Load || fence_each.is_some()) {
        let because = "interleaved lines can only be stored, without fences in between";
        return Err(Refusal::new(format!("{} in interleaved lines", what()), because));
    }
    let (count, rest) = match (access.width().map(Width::bytes), order) {
        (Some(width), Order::Ascending | Order::Interleaved { .. }) => (span.len / width, span.len % width),
        (_, Order::SameAddress { times }) => (times, 0),
        (None, _) => (1, 0),
    };
    let (after, weight_after) = after;
    let weight_each = if access.width().is_some() { 1 } else { WEIGHT_OF_A_COPY + span.len / 8 };
    let weight = count.saturating_mul(weight_each).saturating_add(rest).saturating_add(weight_after);
    let shape = Shape { verb, access, order, each: fence_each, after };
    // A count that exceeds `usize` (64 bits here) is rejected by its weight.
    Ok((span, Timed::Stream { shape, count: count as usize, rest: rest as usize }, weight))
}

/// Rejects a span whose start is not aligned as the instruction requires.
fn aligned(what: &str, access: Access, span: Span) -> Result<(), Refusal> {
    let alignment = match access {
        Access::Movdir64b => 64,
        Access::NonTemporal(width) if width.is_vector() => width.bytes(),
        _ => 1,
    };
    if span.at.offset.is_multiple_of(alignment) {
        return Ok(());
    }
    let because = format!("the instruction requires an alignment of {alignment} B");
    Err(Refusal::new(format!("{what} at {}", span.at), because))
}

fn driver(call: &DriverCall, ability: &Ability<'_>) -> Result<Pass, Refusal> {
    let &DriverCall { verb, span, call_bytes, width } = call;
    if ability.facts.driver_width.is_none() {
        return Err(Refusal::new("a driver call", "the machine has no driver"));
    }
    if ability.facts.driver_width != Some(width) {
        let because = "the kernel chooses its copy width, which the facts report";
        return Err(Refusal::new(format!("a driver that copies {} B at a time", width.bytes()), because));
    }
    ability.holds(span)?;
    let call_bytes = call_bytes.min(span.len.max(1));
    let weight = span.len.div_ceil(call_bytes) * WEIGHT_OF_A_CALL + span.len / 8;
    Ok((span, Timed::Driver { verb, call_bytes: call_bytes as usize }, weight))
}

fn map(span: Span, ability: &Ability<'_>) -> Result<Pass, Refusal> {
    ability.holds(span)?;
    if span.len == 0 || !span.at.offset.is_multiple_of(PAGE) {
        let what = format!("an mmap of {} B at {}", span.len, span.at);
        return Err(Refusal::new(what, "it must be page-aligned and not empty"));
    }
    Ok((span, Timed::Map, WEIGHT_OF_A_SWITCH + span.len / PAGE))
}

fn map_unmap(request: &MapUnmap, ability: &Ability<'_>) -> Result<Pass, Refusal> {
    let tables = &ability.facts.tables;
    let missing = match request.means {
        Means::Map { table, .. } => (!tables.contains(&table)).then_some(table),
        Means::Pool => tables.iter().all(|table| *table == Table::Kernel).then_some(Table::Nothing),
        Means::Kernel { .. } => (!tables.contains(&Table::Kernel)).then_some(Table::Kernel),
    };
    if let Some(table) = missing {
        let because = "host has the tables 'nothing' and 'in_memory', a card that is bound to vfio-pci has 'iommu', and one \
                       that is bound to the module lanemark has 'kernel'";
        return Err(Refusal::new(format!("a mapping in the table '{}'", table.name()), because));
    }
    let weight = request.pairs.saturating_mul(WEIGHT_OF_A_CALL + request.bytes / PAGE * WEIGHT_OF_A_MAPPED_PAGE);
    Ok((nowhere(ability)?, Timed::MapUnmap(*request), weight))
}

fn shared(handoff: &BufferHandoff, ability: &Ability<'_>) -> Result<Pass, Refusal> {
    let what = || format!("sharing {} B with a device, {}", handoff.bytes, handoff.discipline);
    if ability.facts.disciplines.is_empty() {
        return Err(Refusal::new(what(), "its memory is that of a card, and shared buffers are in host memory"));
    }
    if !ability.facts.disciplines.contains(&handoff.discipline) {
        let because =
            "ordinary memory is always WB for a user program, and this processor lacks other flush instructions";
        return Err(Refusal::new(what(), because));
    }
    let span = Span { len: handoff.bytes, ..nowhere(ability)? };
    ability.holds(span)?;
    Ok((span, Timed::BufferHandoff(*handoff), (handoff.lines() + 1).saturating_mul(2 * WEIGHT_OF_A_LINE)))
}

fn block_copy(copy: &BlockCopy, ability: &Ability<'_>) -> Result<Pass, Refusal> {
    let &BlockCopy { access, zone, block_bytes } = copy;
    let what = format!("copies of {block_bytes} B by {access}");
    if crate::x86::copy::routine(access).is_none() && access != Access::CopyToDevice {
        return Err(Refusal::new(what, "there is no copy routine with that instruction"));
    }
    if let Some(because) = ability.cpu.lacks(Verb::Store, access) {
        return Err(Refusal::new(what, because));
    }
    ability.holds(zone)?;
    let weight = (zone.len / block_bytes) * WEIGHT_OF_A_COPY + zone.len / 8;
    Ok((zone, Timed::Copy { access, block_bytes: block_bytes as usize }, weight))
}

/// Two cores that exchange one message each way per iteration.
fn exchange(exchange: &Exchange, ability: &Ability<'_>) -> Result<Pass, Refusal> {
    let Exchange { cores: [_, with_core], medium } = exchange;
    let (span, weight, through) = match medium {
        Medium::Lines { access, message, answer } => {
            let Some(post) = Post::by(*access) else {
                let because = "a message can be stored by 8, nt8 or movdir64b only";
                return Err(Refusal::new(format!("a message by {access}"), because));
            };
            if let Some(because) = ability.cpu.lacks(Verb::Store, *access) {
                return Err(Refusal::new(format!("a message by {access}"), because));
            }
            ability.holds(*message)?;
            ability.holds(*answer)?;
            let (there, back) = (message.at.offset as usize, answer.at.offset as usize);
            (*message, WEIGHT_OF_A_LINE, Through::Lines { post, there, back })
        }
        Medium::Events => (nowhere(ability)?, WEIGHT_OF_A_SWITCH, Through::Events),
    };
    Ok((span, Timed::Exchange { with_core: *with_core as usize, through }, weight))
}

fn names(steps: &[Step]) -> String {
    steps.iter().map(name).collect::<Vec<_>>().join(", ")
}

const fn name(step: &Step) -> &'static str {
    match step {
        Step::Stream(_) => "stream",
        Step::Fence(_) => "fence",
        Step::Driver(_) => "driver calls",
        Step::FlushLines(_) => "flush",
        Step::Map(_) => "mapping",
        Step::Pause(_) => "pause",
        Step::Copy(_) => "copy",
    }
}
