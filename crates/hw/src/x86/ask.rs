//! Which plans these loops can run, and why not the others.

use super::cpu::Cpu;
use super::routine::Shape;
use lanemark_machine::{
    Access, DriverCall, Facts, Fence, MachineError, Op, Order, Plan, Span, Stream, Unsupported, Verb,
};

/// What a way in can be asked: what its machine says about itself, and how slow its slowest access is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ability<'a> {
    /// What the machine has.
    pub(crate) facts: &'a Facts,
    /// What the processor has.
    pub(crate) cpu: &'a Cpu,
    /// Why a span cannot be of another memory type than those in the facts.
    pub(crate) no_other_type: &'static str,
    /// Accesses, or what takes about as long, between two looks at the clock; a look takes 20 to 40 ns.
    pub(crate) weight_per_look: u64,
    /// The most in one pass, for a pass is not looked into.
    pub(crate) weight_per_pass: u64,
}

/// What entering the kernel weighs.
const WEIGHT_OF_A_CALL: u64 = 64;
/// What starting a copy weighs.
const WEIGHT_OF_A_COPY: u64 = 16;

/// A plan that can be run, in this machine's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ask {
    /// Which of the cores.
    pub(crate) core: usize,
    /// What is touched.
    pub(crate) span: Span,
    /// Where in the region the span starts.
    pub(crate) offset: usize,
    /// Bytes of the span.
    pub(crate) len: usize,
    /// What to do with it.
    pub(crate) work: Work,
    /// See [`Limits`](crate::x86::sample::Limits).
    pub(crate) passes_per_look: u64,
}

/// What one pass does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Loads or stores, `count` of full width and `rest` bytes after them.
    Stream { shape: Shape, count: usize, rest: usize },
    /// Calls into the kernel.
    Driver { verb: Verb, call_bytes: usize },
}

/// Why a plan is not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The machine has not got it.
    Unsupported {
        what: String,
        because: String,
    },
    OutOfRange(Span),
}

impl Refusal {
    pub(crate) fn new(what: impl Into<String>, because: impl Into<String>) -> Refusal {
        Refusal::Unsupported { what: what.into(), because: because.into() }
    }

    /// As [`supports`](lanemark_machine::Machine::supports) tells it.
    pub(crate) fn into_unsupported(self, facts: &Facts) -> Unsupported {
        let (what, because) = match self {
            Refusal::Unsupported { what, because } => (what, because),
            Refusal::OutOfRange(span) => {
                let what = format!("a span of {} B at {}", span.len, span.at);
                (what, format!("it lies outside every region; the regions are {}", regions(facts)))
            }
        };
        Unsupported { what, machine: facts.name.clone(), because }
    }

    /// As [`run`](lanemark_machine::Machine::run) tells it.
    pub(crate) fn into_error(self, facts: &Facts) -> MachineError {
        match self {
            Refusal::OutOfRange(Span { at, len, .. }) => {
                MachineError::OutOfRange { machine: facts.name.clone(), at, len, regions: regions(facts) }
            }
            Refusal::Unsupported { .. } => self.into_unsupported(facts).into(),
        }
    }
}

fn regions(facts: &Facts) -> String {
    facts.regions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Ask {
    /// What `plan` asks for, if it can be run.
    pub(crate) fn of(plan: &Plan, ability: &Ability<'_>) -> Result<Ask, Refusal> {
        let facts = ability.facts;
        let [lane] = plan.lanes.as_slice() else {
            let what = format!("a plan of {} lanes", plan.lanes.len());
            return Err(Refusal::new(what, "its loops run on one core at a time"));
        };
        if plan.passes == 0 {
            return Err(Refusal::new("a plan of 0 passes", "a sample with nothing in it measures the timer"));
        }
        if lane.core >= facts.cores {
            let because = format!("it has {} to use, counted from 0", facts.cores);
            return Err(Refusal::new(format!("core {}", lane.core), because));
        }
        let (span, work, weight) = match lane.body.as_slice() {
            [Op::Stream(stream)] => Self::stream(stream, None, ability)?,
            [Op::Stream(stream), Op::Fence(after)] => Self::stream(stream, Some(*after), ability)?,
            [Op::Driver(call)] => Self::driver(call, ability)?,
            body => {
                let names: Vec<&str> = body.iter().map(name).collect();
                let because = "its loops are written for one stream, one stream and a fence, or driver calls";
                return Err(Refusal::new(format!("a pass of [{}]", names.join(", ")), because));
            }
        };
        if weight > ability.weight_per_pass {
            let because = "one pass could not be ended when the time is over; make it shorter and take more passes";
            return Err(Refusal::new("a pass of that many accesses", because));
        }
        Ok(Ask {
            core: lane.core as usize,
            span,
            offset: span.at.offset as usize,
            len: span.len as usize,
            work,
            passes_per_look: (ability.weight_per_look / weight.max(1)).max(1),
        })
    }

    fn stream(stream: &Stream, after: Option<Fence>, ability: &Ability<'_>) -> Result<(Span, Work, u64), Refusal> {
        let &Stream { verb, access, span, order, fence_each } = stream;
        let what = || format!("{access} to {}", if verb == Verb::Load { "load" } else { "store" });
        if let Some(because) = ability.cpu.lacks(verb, access) {
            return Err(Refusal::new(what(), because));
        }
        if [fence_each, after].contains(&Some(Fence::Interrupt)) {
            return Err(Refusal::new("an interrupt as a fence", "a program cannot take one at a place of its choice"));
        }
        within(span, ability)?;
        let alignment = match access {
            Access::Movdir64b => 64,
            Access::NonTemporal(width) if width.is_vector() => width.bytes(),
            _ => 1,
        };
        if !span.at.offset.is_multiple_of(alignment) {
            let because = format!("the instruction wants addresses of whole {alignment} B");
            return Err(Refusal::new(format!("{} at {}", what(), span.at), because));
        }
        let (count, rest) = match (access.width().map(lanemark_machine::Width::bytes), order) {
            (Some(width), Order::Ascending) => (span.len / width, span.len % width),
            (Some(width), Order::SameAddress { times }) if span.len == width => (times, 0),
            (Some(width), Order::SameAddress { .. }) => {
                let because = format!("one access moves {width} B, and the span has {}", span.len);
                return Err(Refusal::new(format!("{} of a whole span", what()), because));
            }
            (None, Order::Ascending) => (1, 0),
            (None, Order::SameAddress { times }) => (times, 0),
        };
        let weight_each = if access.width().is_some() { 1 } else { WEIGHT_OF_A_COPY + span.len / 8 };
        let weight = count.saturating_mul(weight_each).saturating_add(rest);
        let shape = Shape { verb, access, order, each: fence_each, after };
        // A count that no usize holds weighs too much anyway; this machine's usize is 64 bit.
        Ok((span, Work::Stream { shape, count: count as usize, rest: rest as usize }, weight))
    }

    fn driver(call: &DriverCall, ability: &Ability<'_>) -> Result<(Span, Work, u64), Refusal> {
        let &DriverCall { verb, span, call_bytes, width } = call;
        if call_bytes == 0 {
            return Err(Refusal::new("a driver call of 0 B", "any number of them moves nothing"));
        }
        if ability.facts.driver_width.is_none() {
            return Err(Refusal::new("a driver call", "there is no driver to call"));
        }
        if ability.facts.driver_width != Some(width) {
            let because = "the kernel chooses how it copies; the width stands in the facts";
            return Err(Refusal::new(format!("a driver that copies {} B at a time", width.bytes()), because));
        }
        within(span, ability)?;
        let call_bytes = call_bytes.min(span.len.max(1));
        let weight = span.len.div_ceil(call_bytes) * WEIGHT_OF_A_CALL + span.len / 8;
        Ok((span, Work::Driver { verb, call_bytes: call_bytes as usize }, weight))
    }
}

/// Refuses a span outside the regions or of another memory type.
fn within(span: Span, ability: &Ability<'_>) -> Result<(), Refusal> {
    let facts = ability.facts;
    if !facts.memory_types.contains(&span.memory_type) {
        return Err(Refusal::new(format!("a span that is {}", span.memory_type), ability.no_other_type));
    }
    let fits = facts.regions.iter().any(|region| {
        let inside = span.at.offset.checked_sub(region.at.offset);
        region.at.bar == span.at.bar
            && inside.is_some_and(|start| start <= region.len && span.len <= region.len - start)
    });
    if fits { Ok(()) } else { Err(Refusal::OutOfRange(span)) }
}

fn name(op: &Op) -> &'static str {
    match op {
        Op::Stream(_) => "stream",
        Op::Fence(_) => "fence",
        Op::Driver(_) => "driver calls",
        Op::FlushLines(_) => "flush",
        Op::Map(_) => "mapping",
        Op::Pause(_) => "pause",
        _ => "something newer",
    }
}
