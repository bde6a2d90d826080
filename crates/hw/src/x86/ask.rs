//! Which plans these loops can run, and why not the others.

use super::cpu::Cpu;
use super::exchange::Post;
use super::loops::After;
use super::refusal::Refusal;
use super::routine::Shape;
use super::timer::Timer;
use crate::Destination;
use lanemark_machine::{
    Access, BlockCopy, BufferHandoff, Channel, Clock, DriverCall, Facts, Fence, KernelCall, Lane, MapUnmap, Op, Order,
    Placement, Plan, Span, Stream, Verb, Width,
};

/// What a way in can be asked: what its machine says about itself, and how slow its slowest access is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ability<'a> {
    /// What the machine has.
    pub(crate) facts: &'a Facts,
    /// What the processor has.
    pub(crate) cpu: &'a Cpu,
    /// Its time.
    pub(crate) timer: Timer,
    /// Why a span cannot be of another memory type than those in the facts.
    pub(crate) no_other_type: &'static str,
    /// Accesses, or what takes about as long, between two looks at the clock; a look takes 20 to 40 ns.
    pub(crate) weight_per_look: u64,
    /// The most in one pass, for a pass is not looked into.
    pub(crate) weight_per_pass: u64,
}

/// What entering the kernel weighs.
const WEIGHT_OF_A_CALL: u64 = 64;
/// What mapping and giving back weighs, and waking another thread.
const WEIGHT_OF_A_SWITCH: u64 = 4096;
/// What starting a copy weighs.
const WEIGHT_OF_A_COPY: u64 = 16;
/// What dropping a line weighs, or an exchange of two messages through one.
const WEIGHT_OF_A_LINE: u64 = 128;
/// What a page weighs that is lent: put into a table and taken out of it.
const WEIGHT_OF_A_LENT_PAGE: u64 = 32;
/// A page: what a mapping is made of.
const PAGE: u64 = 4096;
/// The longest pause: a pass is not looked into.
const LONGEST_PAUSE_NS: f64 = 1e6;

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
    /// What is flushed before each sample: where in the region it starts, and how long it is.
    pub(crate) flushed: Option<(usize, usize)>,
    /// See [`Limits`](crate::x86::sample::Limits).
    pub(crate) passes_per_look: u64,
}

/// What one pass does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Loads or stores, `count` of full width and `rest` bytes after them.
    Stream { shape: Shape, count: usize, rest: usize },
    /// Nothing but what else stands after a pass.
    Alone(After),
    /// A reading of a clock.
    Clock(Clock),
    /// A call into the kernel that does nothing.
    Kernel(KernelCall),
    /// Memory lent and taken back.
    MapUnmap(MapUnmap),
    /// A buffer shared with a device.
    BufferHandoff(BufferHandoff),
    /// Calls into the kernel that copy.
    Driver { verb: Verb, call_bytes: usize },
    /// A mapping made and given back.
    Map,
    /// Copies of a block to place after place.
    Copy { access: Access, block_bytes: usize },
    /// Messages there and back.
    Exchange { with_core: usize, through: Through },
}

/// What messages go through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Through {
    /// Lines, by where in the region they start.
    Lines {
        post: Post,
        there: usize,
        back: usize,
    },
    Events,
}

/// One pass: the span it touches, what it does, and what that weighs.
type Pass = (Span, Work, u64);

impl Ability<'_> {
    /// Refuses a span outside the regions or of another memory type.
    fn holds(&self, span: Span) -> Result<(), Refusal> {
        if !self.facts.memory_types.contains(&span.memory_type) {
            return Err(Refusal::new(format!("a span that is {}", span.memory_type), self.no_other_type));
        }
        let fits = self.facts.regions.iter().any(|region| {
            let inside = span.at.offset.checked_sub(region.at.offset);
            region.at.bar == span.at.bar
                && inside.is_some_and(|start| start <= region.len && span.len <= region.len - start)
        });
        if fits { Ok(()) } else { Err(Refusal::OutOfRange(span)) }
    }
}

impl Ask {
    /// Whether a table of copies is needed.
    pub(crate) fn chooses_copies(&self) -> bool {
        match self.work {
            Work::Stream { shape, .. } => shape.access == Access::CopyToDevice,
            Work::Copy { access, .. } => access == Access::CopyToDevice,
            _ => false,
        }
    }

    /// What a copy finds at its destination.
    pub(crate) fn destination(&self) -> Destination {
        if self.flushed.is_some() { Destination::Cold } else { Destination::Hot }
    }

    /// What `plan` asks for, if it can be run.
    pub(crate) fn of(plan: &Plan, ability: &Ability<'_>) -> Result<Ask, Refusal> {
        if plan.passes == 0 {
            return Err(Refusal::new("a plan of 0 passes", "a sample with nothing in it measures the timer"));
        }
        if plan.placement == Placement::Unpinned {
            return Err(Refusal::new("a thread that is not pinned", "its caches would be those of any core"));
        }
        let facts = ability.facts;
        for lane in &plan.lanes {
            if lane.core >= facts.cores {
                let because = format!("it has {} to use, counted from 0", facts.cores);
                return Err(Refusal::new(format!("core {}", lane.core), because));
            }
        }
        let (core, (span, work, weight)) = match plan.lanes.as_slice() {
            [lane] => (lane.core, pass(&lane.body, ability)?),
            [first, second] if first.core != second.core => (first.core, exchange([first, second], ability)?),
            lanes => {
                let what = format!("a plan of {} lanes", lanes.len());
                return Err(Refusal::new(what, "it runs one lane, or two that tell each other on two cores"));
            }
        };
        if weight > ability.weight_per_pass {
            let because = "one pass could not be ended when the time is over; make it shorter and take more passes";
            return Err(Refusal::new("a pass of that many accesses", because));
        }
        let flushed = match plan.before.as_slice() {
            [] if matches!(work, Work::BufferHandoff(shared) if shared.finds_written_lines()) => {
                if plan.passes + plan.warmup_passes != 1 {
                    let what = format!("{} passes over what a device has written", plan.passes + plan.warmup_passes);
                    let because = "it is taken out of caches before a sample, so one pass finds it so, without another to warm up";
                    return Err(Refusal::new(what, because));
                }
                Some((span.at.offset as usize, span.len as usize))
            }
            [] => None,
            [Op::FlushLines(span)] => {
                ability.holds(*span)?;
                Some((span.at.offset as usize, span.len as usize))
            }
            body => {
                let because = "before a sample it can flush the lines of one span";
                return Err(Refusal::new(format!("[{}] before a sample", names(body)), because));
            }
        };
        Ok(Ask {
            core: core as usize,
            span,
            offset: span.at.offset as usize,
            len: span.len as usize,
            work,
            flushed,
            passes_per_look: (ability.weight_per_look / weight.max(1)).max(1),
        })
    }
}

fn pass(body: &[Op], ability: &Ability<'_>) -> Result<Pass, Refusal> {
    match body {
        [Op::Stream(one)] => stream(one, (After::Nothing, 0), ability),
        [Op::Stream(one), after] if let Some(after) = after_of(after, Some(one.span), ability.timer)? => {
            stream(one, after, ability)
        }
        [Op::Driver(call)] => driver(call, ability),
        [Op::Map(span)] => map(*span, ability),
        [Op::Copy(copy)] => block_copy(copy, ability),
        [Op::Clock(clock)] => Ok((nowhere(ability)?, Work::Clock(*clock), 1)),
        [Op::Kernel(call)] => Ok((nowhere(ability)?, Work::Kernel(*call), WEIGHT_OF_A_CALL)),
        [Op::MapUnmap(lend)] => lent(lend, ability),
        [Op::BufferHandoff(handover)] => shared(handover, ability),
        [one] if let Some((after, weight)) = after_of(one, None, ability.timer)? => {
            let span = if let Op::FlushLines(span) = one { *span } else { nowhere(ability)? };
            ability.holds(span)?;
            Ok((span, Work::Alone(after), weight))
        }
        body => {
            let because = "its loops are written for one stream, with a fence, a flush of its span or a pause after \
                           it, for one of those alone, a copy, a driver call, a call of the kernel, a clock, or memory \
                           that is lent or shared with a device";
            Err(Refusal::new(format!("a pass of [{}]", names(body)), because))
        }
    }
}

/// A span of nothing, for what touches nothing.
fn nowhere(ability: &Ability<'_>) -> Result<Span, Refusal> {
    let (region, memory_type) = (ability.facts.regions.first(), ability.facts.memory_types.first());
    let (Some(region), Some(memory_type)) = (region, memory_type) else {
        return Err(Refusal::new("anything", "it has no memory"));
    };
    Ok(Span { at: region.at, len: 0, memory_type: *memory_type })
}

/// What `op` is after a pass over `span` and what it weighs; `None` if it cannot stand there.
fn after_of(op: &Op, span: Option<Span>, timer: Timer) -> Result<Option<(After, u64)>, Refusal> {
    Ok(Some(match op {
        Op::Fence(Fence::Interrupt) => {
            let because = "a program cannot take one at a place of its choice";
            return Err(Refusal::new("an interrupt as a fence", because));
        }
        Op::Fence(fence) => (After::Fence(*fence), 1),
        Op::FlushLines(flushed) if span.is_none_or(|span| span == *flushed) => {
            (After::Flush, (flushed.len / 64 + 2).saturating_mul(WEIGHT_OF_A_LINE))
        }
        Op::Pause(pause) if pause.as_ns() > LONGEST_PAUSE_NS => {
            return Err(Refusal::new("a pause of more than 1 ms", "a pass that long could not be ended in time"));
        }
        Op::Pause(pause) => (After::Pause(timer.cycles(*pause)), pause.as_ns() as u64),
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
        return Err(Refusal::new("an interrupt as a fence", "a program cannot take one at a place of its choice"));
    }
    ability.holds(span)?;
    aligned(&what(), access, span)?;
    let is_interleaved = matches!(order, Order::Interleaved { .. });
    if is_interleaved && (verb == Verb::Load || fence_each.is_some()) {
        let because = "its loops for interleaved lines are stores without fences between them";
        return Err(Refusal::new(format!("{} in interleaved lines", what()), because));
    }
    if let Some(because) = order.nonsense(access, &span) {
        return Err(Refusal::new(format!("{} in interleaved lines", what()), because));
    }
    let (count, rest) = match (access.width().map(Width::bytes), order) {
        (Some(width), Order::Ascending | Order::Interleaved { .. }) => (span.len / width, span.len % width),
        (Some(width), Order::SameAddress { times }) if span.len == width => (times, 0),
        (Some(width), Order::SameAddress { .. }) => {
            let because = format!("one access moves {width} B, and the span has {}", span.len);
            return Err(Refusal::new(format!("{} of a whole span", what()), because));
        }
        (None, Order::SameAddress { times }) => (times, 0),
        (None, _) => (1, 0),
    };
    let (after, weight_after) = after;
    let weight_each = if access.width().is_some() { 1 } else { WEIGHT_OF_A_COPY + span.len / 8 };
    let weight = count.saturating_mul(weight_each).saturating_add(rest).saturating_add(weight_after);
    let shape = Shape { verb, access, order, each: fence_each, after };
    // A count that no usize holds weighs too much anyway; this machine's usize is 64 bit.
    Ok((span, Work::Stream { shape, count: count as usize, rest: rest as usize }, weight))
}

/// Refuses a span that starts where the instruction cannot.
fn aligned(what: &str, access: Access, span: Span) -> Result<(), Refusal> {
    let alignment = match access {
        Access::Movdir64b => 64,
        Access::NonTemporal(width) if width.is_vector() => width.bytes(),
        _ => 1,
    };
    if span.at.offset.is_multiple_of(alignment) {
        return Ok(());
    }
    let because = format!("the instruction wants addresses of whole {alignment} B");
    Err(Refusal::new(format!("{what} at {}", span.at), because))
}

fn driver(call: &DriverCall, ability: &Ability<'_>) -> Result<Pass, Refusal> {
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
    ability.holds(span)?;
    let call_bytes = call_bytes.min(span.len.max(1));
    let weight = span.len.div_ceil(call_bytes) * WEIGHT_OF_A_CALL + span.len / 8;
    Ok((span, Work::Driver { verb, call_bytes: call_bytes as usize }, weight))
}

fn map(span: Span, ability: &Ability<'_>) -> Result<Pass, Refusal> {
    ability.holds(span)?;
    if span.len == 0 || !span.at.offset.is_multiple_of(PAGE) {
        let what = format!("a mapping of {} B at {}", span.len, span.at);
        return Err(Refusal::new(what, "a mapping starts with a page and is not empty"));
    }
    Ok((span, Work::Map, WEIGHT_OF_A_SWITCH + span.len / PAGE))
}

fn lent(lend: &MapUnmap, ability: &Ability<'_>) -> Result<Pass, Refusal> {
    if let Some(because) = lend.nonsense() {
        return Err(Refusal::new(format!("lending {} B by {}", lend.bytes, lend.means), because));
    }
    let weight = lend.pairs.saturating_mul(WEIGHT_OF_A_CALL + lend.bytes / PAGE * WEIGHT_OF_A_LENT_PAGE);
    Ok((nowhere(ability)?, Work::MapUnmap(*lend), weight))
}

fn shared(handover: &BufferHandoff, ability: &Ability<'_>) -> Result<Pass, Refusal> {
    let what = || format!("sharing {} B with a device, {}", handover.bytes, handover.discipline);
    if ability.facts.disciplines.is_empty() {
        return Err(Refusal::new(what(), "its memory is a card's, and this is about that of the machine"));
    }
    if let Some(because) = handover.nonsense() {
        return Err(Refusal::new(what(), because));
    }
    if !ability.facts.disciplines.contains(&handover.discipline) {
        let because =
            "ordinary memory is WB, a program cannot change that, and lines are flushed by what this processor has";
        return Err(Refusal::new(what(), because));
    }
    let span = Span { len: handover.bytes, ..nowhere(ability)? };
    ability.holds(span)?;
    Ok((span, Work::BufferHandoff(*handover), (handover.lines() + 1).saturating_mul(2 * WEIGHT_OF_A_LINE)))
}

fn block_copy(copy: &BlockCopy, ability: &Ability<'_>) -> Result<Pass, Refusal> {
    let &BlockCopy { access, zone, block_bytes } = copy;
    let what = format!("copies of {block_bytes} B by {access}");
    if crate::x86::copy::routine(access).is_none() && access != Access::CopyToDevice {
        return Err(Refusal::new(what, "there is no copy of memory by that instruction"));
    }
    if let Some(because) = ability.cpu.lacks(Verb::Store, access) {
        return Err(Refusal::new(what, because));
    }
    ability.holds(zone)?;
    if block_bytes == 0 || zone.len == 0 || !zone.len.is_multiple_of(block_bytes) {
        return Err(Refusal::new(format!("{what} to {} B", zone.len), "the zone must be whole blocks, at least one"));
    }
    let weight = (zone.len / block_bytes) * WEIGHT_OF_A_COPY + zone.len / 8;
    Ok((zone, Work::Copy { access, block_bytes: block_bytes as usize }, weight))
}

/// Two lanes that send each other one message a pass.
fn exchange(lanes: [&Lane; 2], ability: &Ability<'_>) -> Result<Pass, Refusal> {
    let [first, second] = lanes.map(|lane| lane.body.as_slice());
    let ([Op::Send(there), Op::Receive(back)], [Op::Receive(heard), Op::Send(said)]) = (first, second) else {
        let because = "two lanes must be [send, receive] and [receive, send]";
        return Err(Refusal::new(format!("two lanes of [{}] and [{}]", names(first), names(second)), because));
    };
    if (there, back) != (heard, said) {
        return Err(Refusal::new("two lanes with different channels", "what one sends the other must receive"));
    }
    let (span, weight, through) = match (there, back) {
        (Channel::Event { number: there }, Channel::Event { number: back }) if there != back => {
            (nowhere(ability)?, WEIGHT_OF_A_SWITCH, Through::Events)
        }
        (Channel::Line { access, span: there }, Channel::Line { access: other, span: back }) if access == other => {
            let Some(post) = Post::by(*access) else {
                let because = "a message is stored by 8, nt8 or movdir64b";
                return Err(Refusal::new(format!("a message by {access}"), because));
            };
            if let Some(because) = ability.cpu.lacks(Verb::Store, *access) {
                return Err(Refusal::new(format!("a message by {access}"), because));
            }
            for span in [there, back] {
                ability.holds(*span)?;
                if span.len != 64 || !span.at.offset.is_multiple_of(64) {
                    let what = format!("a message in {} B at {}", span.len, span.at);
                    return Err(Refusal::new(what, "a line is 64 B at a boundary of 64 B"));
                }
            }
            let (to, from) = (there.at.offset as usize, back.at.offset as usize);
            (*there, WEIGHT_OF_A_LINE, Through::Lines { post, there: to, back: from })
        }
        _ => {
            let because = "both ways must be lines stored by one instruction, or two events";
            return Err(Refusal::new("two such channels", because));
        }
    };
    Ok((span, Work::Exchange { with_core: lanes[1].core as usize, through }, weight))
}

fn names(body: &[Op]) -> String {
    body.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn name(op: &Op) -> &'static str {
    match op {
        Op::Stream(_) => "stream",
        Op::Fence(_) => "fence",
        Op::Driver(_) => "driver calls",
        Op::FlushLines(_) => "flush",
        Op::Map(_) => "mapping",
        Op::Pause(_) => "pause",
        Op::Copy(_) => "copy",
        Op::Clock(_) => "clock",
        Op::Kernel(_) => "kernel call",
        Op::Launch(_) => "launches",
        Op::MovedByRuntime(_) => "copies by a runtime",
        Op::Compute(_) => "kernels that compute",
        Op::MapUnmap(_) => "memory that is lent",
        Op::BufferHandoff(_) => "memory that is shared with a device",
        Op::LoadFrom(_) => "a load of a line that somebody is said to have",
        Op::Send(_) => "send",
        Op::Receive(_) => "receive",
        Op::Transfer(_) => "transfer by a card",
        Op::WriteRead(_) => "writes and reads by a card",
        Op::OnChannels(_) => "transfers on several channels of a card",
        Op::Relay(_) => "a relay by cards",
        Op::Dma(_) => "driver call for a transfer by a card",
        _ => "something newer",
    }
}
