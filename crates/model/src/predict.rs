//! What a plan will give, from closed forms.

use crate::costs::Costs;
use lanemark_machine::{Access, DriverCall, Fence, Op, Order, Plan, Stream, Verb, Width};
use lanemark_platform::Platform;
use lanemark_platform::memcpy::Stores;
use lanemark_units::MemoryType;

/// Which term of a formula is the largest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Bound {
    /// The core issues no faster.
    Issue,
    /// Each access waits for the acknowledgment of the one before.
    StrongOrder,
    /// A line is stored to again before its last copy was acknowledged.
    SameLine,
    /// Buffers in flight over their round trip.
    Buffers,
    /// Bytes on the link.
    Link,
    /// Flow-control credits over their round trip.
    Credits,
    /// The region's data path.
    Device,
    /// A read's way there and back.
    ReadRoundTrip,
    /// Every pass ends with a fence.
    Fence,
    /// The kernel.
    Driver,
}

impl Bound {
    /// In a few words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Issue => "instruction issue",
            Bound::StrongOrder => "one access per core round trip",
            Bound::SameLine => "one flush per line and core round trip",
            Bound::Buffers => "write-combining or fill buffers over their round trip",
            Bound::Link => "bytes on the link",
            Bound::Credits => "flow-control credits over their round trip",
            Bound::Device => "the device's data path",
            Bound::ReadRoundTrip => "one read round trip after the other",
            Bound::Fence => "the drain at every fence",
            Bound::Driver => "the driver call",
        }
    }
}

/// What a formula says of one sample of a plan.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prediction {
    /// From the first timestamp to the last instruction issued.
    pub issue_ns: f64,
    /// From the first timestamp to the last byte accepted (stores) or arrived (loads).
    pub delivered_ns: f64,
    /// Which term is the largest.
    pub bound: Bound,
    /// Where the formula holds.
    pub holds_for: &'static str,
}

/// The formula's answer to `plan`, or `None` where there is no closed form for it: several lanes, several
/// streams, other instructions between them, or a region that is not there.
///
/// Writes take the largest of: instructions x pace, buffers over their round trip, link, credits, device;
/// see the source for each. One region, one core, aligned ranges; the first pass is not treated apart.
///
/// ```
/// use lanemark_machine::{Access, Op, Plan, Span, Stream, Verb, Width};
/// use lanemark_units::{BarOffset, MemoryType};
/// let card = lanemark_platform::preset("aws-f1").unwrap().unwrap();
/// let span = Span { at: BarOffset { bar: 4, offset: 0 }, len: 4096, memory_type: MemoryType::Uc };
/// let stream = Stream::over(Verb::Store, Access::Plain(Width::B4), span);
/// let said = lanemark_model::predict(&card, &Plan::on_one_core(vec![Op::Stream(stream)], 100)).unwrap();
/// assert_eq!(said.bound.name(), "one access per core round trip");
/// ```
#[must_use]
pub fn predict(platform: &Platform, plan: &Plan) -> Option<Prediction> {
    let [lane] = plan.lanes.as_slice() else { return None };
    let passes = plan.passes as f64;
    match lane.body.as_slice() {
        [Op::Stream(stream)] => predict_stream(platform, stream, None, passes),
        [Op::Stream(stream), Op::Fence(fence)] => predict_stream(platform, stream, Some(*fence), passes),
        [Op::Stream(stream), Op::FlushLines(_)] if stream.verb == Verb::Load => {
            predict_stream(platform, stream, None, passes)
        }
        [Op::Driver(call)] => predict_driver(platform, call, passes),
        _ => None,
    }
}

fn costs<'a>(platform: &'a Platform, span: &lanemark_machine::Span) -> Option<Costs<'a>> {
    Costs::new(platform, platform.region_at(span.at.bar, span.at.offset, span.len)?)
}

fn predict_stream(platform: &Platform, stream: &Stream, fence: Option<Fence>, passes: f64) -> Option<Prediction> {
    if stream.order != Order::Ascending {
        return None;
    }
    let costs = costs(platform, &stream.span)?;
    match stream.verb {
        Verb::Store if stream.fence_each.is_none() => store(&costs, stream, fence, passes),
        Verb::Load if fence.is_none() => load(&costs, stream, passes),
        _ => None,
    }
}

/// The largest of several terms.
fn largest<const N: usize>(terms: [(Bound, f64); N]) -> (Bound, f64) {
    terms.into_iter().fold((Bound::Issue, 0.0), |most, term| if term.1 > most.1 { term } else { most })
}

/// How the instructions of a pass look to the device.
struct Shape {
    instructions: f64,
    /// Bytes of the widest one.
    width: u64,
}

fn shape(costs: &Costs<'_>, access: Access, kind: MemoryType, len: u64) -> Shape {
    let core = &costs.platform.core;
    let string_width = match kind {
        MemoryType::Wc | MemoryType::Wb => u64::from(core.vector_bytes.value),
        _ => 1,
    };
    let uniform = |width: u64| Shape { instructions: Stores::of(len, width).left() as f64, width: width.min(len.max(1)) };
    match access {
        Access::Plain(width) | Access::NonTemporal(width) | Access::Movdiri(width) => uniform(width.bytes()),
        Access::Movdir64b => uniform(64),
        Access::RepMovsb => uniform(string_width),
        Access::Memcpy => match core.memcpy.value.stores(len, 0) {
            Some(stores) => Shape { instructions: stores.left() as f64, width: 32.min(len.max(1)) },
            None => uniform(string_width),
        },
    }
}

fn store(costs: &Costs<'_>, stream: &Stream, fence: Option<Fence>, passes: f64) -> Option<Prediction> {
    let (kind, len) = (stream.span.memory_type, stream.span.len);
    let shape = shape(costs, stream.access, kind, len);
    let core = &costs.platform.core;
    let pace = match stream.access {
        Access::Plain(Width::B1 | Width::B2 | Width::B4 | Width::B8) => core.store_loop_cycles.value * costs.cycle,
        _ => costs.cycle,
    };
    let direct = matches!(stream.access, Access::Movdiri(_) | Access::Movdir64b);
    let gathered = kind == MemoryType::Wc
        || direct
        || (kind == MemoryType::Wt && matches!(stream.access, Access::NonTemporal(_)));
    if !gathered {
        return Some(store_in_order(costs, &shape, kind, fence, passes));
    }
    // Direct stores are never gathered: each is a TLP, and several to a line wait for each other.
    let (tlps, payload) = if direct {
        (shape.instructions, shape.width)
    } else {
        (len.div_ceil(64) as f64, 64.min(len.next_multiple_of(4)))
    };
    // How often one pass flushes the same line: the small glibc copies write theirs twice.
    let rewrites = match stream.access {
        Access::Memcpy if matches!(len, 64 | 128) => shape.instructions * 16.0 / len as f64,
        Access::Movdiri(width) => 64.0_f64.min(len as f64) / width.bytes() as f64,
        _ => 1.0,
    };
    let turns = if passes * rewrites > 1.0 { rewrites } else { 0.0 };
    let device = costs.beats(payload);
    let per_line = [
        (Bound::Link, costs.serialise(Verb::Store, payload)),
        (Bound::Credits, costs.credit_interval(payload)),
        (Bound::Device, device),
    ];
    let same_line = if direct && rewrites > 1.0 {
        shape.instructions * costs.round_trip
    } else {
        turns * costs.round_trip
    };
    let near = largest([
        (Bound::Issue, shape.instructions * pace),
        (Bound::Buffers, tlps * costs.round_trip / f64::from(core.wc_buffers.value)),
        (Bound::SameLine, same_line),
    ]);
    let far = largest(per_line);
    let far = (far.0, far.1 * tlps);
    let first = costs.write_one_way(payload) + pace;
    if let Some(fence) = fence.filter(|fence| fence.drains_stores()) {
        let fence_ns = match fence {
            Fence::Sfence => core.sfence_ns.value,
            Fence::Interrupt => core.interrupt_ns.value,
            _ => core.mfence_ns.value,
        };
        // What one pass stores is buffered, then the last line goes to the root complex and back.
        let queued = (tlps - costs.writes_absorbed(payload)).max(0.0) * far.1 / tlps.max(1.0);
        let stores = near.1.max(queued);
        let pass = stores + costs.round_trip + fence_ns.as_ns();
        let bound = if costs.round_trip > stores { Bound::Fence } else if queued > near.1 { far.0 } else { near.0 };
        let issue_ns = passes * pass;
        let holds_for = "one core, aligned ranges, a fence after each pass";
        return Some(Prediction { issue_ns, delivered_ns: issue_ns - costs.round_trip + first, bound, holds_for });
    }
    let absorbed = costs.writes_absorbed(payload) + f64::from(core.wc_buffers.value);
    let (bound, issue_ns) = {
        let near_total = near.1 * passes;
        let far_total = far.1 * passes - absorbed.min(tlps * passes) * far.1 / tlps.max(1.0);
        if far_total > near_total { (far.0, far_total) } else { (near.0, near_total) }
    };
    let delivered_ns = (near.1.max(far.1) * passes).max(issue_ns) + first;
    let bound = if far.1 > near.1 { far.0 } else { bound };
    let holds_for = "one core, aligned ranges of whole lines; issue is short of delivery by what the way absorbs";
    Some(Prediction { issue_ns, delivered_ns, bound, holds_for })
}

/// UC, WT and WP: one store at a time.
fn store_in_order(costs: &Costs<'_>, shape: &Shape, kind: MemoryType, fence: Option<Fence>, passes: f64) -> Prediction {
    let stores = shape.instructions * passes;
    let (bound, interval) = largest([
        (Bound::StrongOrder, costs.round_trip),
        (Bound::Link, costs.serialise(Verb::Store, shape.width)),
        (Bound::Device, costs.beats(shape.width)),
    ]);
    let fences = fence.map_or(0.0, |fence| {
        let core = &costs.platform.core;
        match fence {
            Fence::Lfence => core.lfence_ns.value.as_ns(),
            Fence::Sfence => core.sfence_ns.value.as_ns(),
            Fence::Interrupt => core.interrupt_ns.value.as_ns(),
            Fence::Mfence | Fence::Locked => core.mfence_ns.value.as_ns(),
        }
    });
    // A UC store holds the core until it is acknowledged; a WT or WP store holds the store buffer.
    let held = match kind {
        MemoryType::Uc => stores,
        _ if fence.is_some_and(Fence::drains_stores) => stores,
        _ => (stores - f64::from(costs.platform.core.store_buffer_entries.value)).max(0.0),
    };
    Prediction {
        issue_ns: held * interval + passes * fences,
        delivered_ns: (stores - 1.0) * interval + (passes - 1.0) * fences + costs.write_one_way(shape.width),
        bound,
        holds_for: "one core, aligned stores",
    }
}

fn load(costs: &Costs<'_>, stream: &Stream, passes: f64) -> Option<Prediction> {
    let (kind, len) = (stream.span.memory_type, stream.span.len);
    let shape = shape(costs, stream.access, kind, len);
    let core = &costs.platform.core;
    let fences = match stream.fence_each {
        Some(Fence::Lfence) => core.lfence_ns.value.as_ns(),
        Some(Fence::Mfence | Fence::Locked) => core.mfence_ns.value.as_ns(),
        Some(_) => return None,
        None => 0.0,
    };
    let fenced = stream.fence_each.is_some();
    let streaming = kind == MemoryType::Wc
        && matches!(stream.access, Access::NonTemporal(_))
        && core.streaming_load_buffers.value > 0;
    let cached = kind.caches_loads();
    if (streaming || cached) && fenced && shape.instructions > 1.0 {
        return None;
    }
    if streaming || cached {
        let buffers = if streaming { core.streaming_load_buffers.value } else { core.fill_buffers.value };
        let lines = len.div_ceil(64) as f64;
        let round_trip = costs.read_round_trip(64);
        let (bound, interval) = largest([
            (Bound::ReadRoundTrip, round_trip / f64::from(buffers)),
            (Bound::Link, costs.serialise(Verb::Load, 64)),
            (Bound::Device, costs.beats(64)),
            (Bound::Issue, shape.instructions * costs.cycle / lines),
        ]);
        // The lines that fit into the buffers overlap; after them one more line an interval.
        let rest = (lines - f64::from(buffers)).max(0.0);
        let within = (lines.min(f64::from(buffers)) - 1.0) * largest([
            (Bound::Link, costs.serialise(Verb::Load, 64)),
            (Bound::Device, costs.beats(64)),
        ]).1;
        let bound = if rest > 0.0 { bound } else { Bound::ReadRoundTrip };
        let pass = round_trip + within.max(0.0) + rest * interval + fences;
        let time = if streaming && !fenced { round_trip + within.max(0.0) + (lines * passes - f64::from(buffers).min(lines * passes)) * interval } else { pass * passes };
        let holds_for = "one core, aligned ranges, lines not in the cache before";
        return Some(Prediction { issue_ns: time, delivered_ns: time, bound, holds_for });
    }
    let overlap = if kind == MemoryType::Wc && !fenced { f64::from(core.wc_loads_in_flight.value) } else { 1.0 };
    let loads = shape.instructions * passes;
    let one = costs.read_round_trip(shape.width);
    let time = if overlap > 1.0 { one * (loads / overlap).max(1.0) } else { (one + fences) * loads };
    let holds_for = if overlap > 1.0 {
        "one core, aligned loads, overlapping as far as speculation is sure to go"
    } else {
        "one core, aligned loads, one at a time"
    };
    Some(Prediction { issue_ns: time, delivered_ns: time, bound: Bound::ReadRoundTrip, holds_for })
}

fn predict_driver(platform: &Platform, call: &DriverCall, passes: f64) -> Option<Prediction> {
    let costs = costs(platform, &call.span)?;
    let kernel = platform.driver.as_ref()?.call_ns.value.as_ns();
    let calls = call.span.len.div_ceil(call.call_bytes.max(1)) as f64 * passes;
    let span = lanemark_machine::Span { len: call.call_bytes.min(call.span.len), ..call.span };
    let stream = Stream::over(call.verb, Access::Plain(call.width), span);
    // The kernel orders what it copied before it returns: a fence after each call, its cost in the call's.
    let copy = match call.verb {
        Verb::Load => load(&costs, &stream, 1.0)?.issue_ns,
        Verb::Store => {
            let core = &platform.core;
            let fenced = store(&costs, &stream, Some(Fence::Sfence), 1.0)?;
            let lines = span.len.div_ceil(64) as f64;
            let far = costs.serialise(Verb::Store, 64).max(costs.beats(64));
            (fenced.issue_ns - core.sfence_ns.value.as_ns()).max((lines - costs.writes_absorbed(64)).max(0.0) * far)
        }
    };
    let issue_ns = calls * (kernel + copy);
    let bound = if kernel > copy { Bound::Driver } else { Bound::ReadRoundTrip };
    let bound = if call.verb == Verb::Store && kernel <= copy { Bound::Link } else { bound };
    Some(Prediction { issue_ns, delivered_ns: issue_ns, bound, holds_for: "one core, aligned calls of equal size" })
}
