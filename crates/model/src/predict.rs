//! Predictions of plans by closed formulas.

use crate::bound::Bound;
use crate::costs::{Costs, fence_alone};
use crate::prediction::Prediction;
use crate::store::End;
use crate::{buffer_handoff, dma_call, handshake, kernel, load, relay, runtime, small_copies, store, transfer};
use lanemark_machine::{
    Access, CoreWork, DmaCall, DriverCall, EngineJob, EngineWork, Fence, Lane, LineSource, Operation, Order, Plan,
    QueueRequest, Socket, Span, Step, Stream, Task, Verb, Width, Work,
};
use lanemark_platform::{Iommu, Platform};
use lanemark_units::Ticks;

/// Predicts `plan`, or returns `None` without a closed formula. There is none for several lanes (except threads that
/// call the driver of one card on separate channels), several streams, other instructions between them, a missing
/// region, or reads of peers whose completions the root complex collects.
///
/// A prediction is the largest of several lower bounds, so that a machine is never faster. One exception are DMA requests
/// that miss in an IOTLB: which ones miss follows from lower bounds of their times, so a machine may be up to 1 % faster.
/// Slow reads of a region (`slow_read_every`) are in no bound. See `store.rs` and
/// `load.rs` and `handshake.rs` for cores, `transfer.rs` for DMA, `buffer_handoff.rs` for shared buffers, `relay.rs` for relays, and
/// `dma_call.rs` for driver calls. All assume one region, one core, aligned ranges, and an empty cache and empty
/// buffers at the start.
///
/// ```
/// use lanemark_machine::{Access, Plan, Span, Step, Stream, Verb, Width};
/// use lanemark_units::{BarOffset, MemoryType};
/// let card = lanemark_platform::preset("aws-f1").unwrap().unwrap();
/// let span = Span { at: BarOffset { bar: 4, offset: 0 }, len: 4096, memory_type: MemoryType::Uc };
/// let stream = Stream::over(Verb::Store, Access::Plain(Width::B4), span);
/// let said = lanemark_model::predict(&card, &Plan::new(Step::Stream(stream), 100)).unwrap();
/// assert_eq!(said.bound.name(), "one access per core round trip");
/// ```
#[must_use]
pub fn predict(platform: &Platform, plan: &Plan) -> Option<Prediction> {
    let said = match plan.work.memory().socket {
        Socket::Local => predict_from_core(platform, plan)?,
        Socket::Remote => predict_from_core(&with_memory_farther_away(platform)?, plan)?,
    };
    // Formulas of driver calls model no page walks. Without a warm-up, first misses may be part of the time.
    let calls = match &plan.work {
        Work::Cores(_) => plan.work.dma_calls().next().is_some(),
        Work::Relay(_) => true,
        Work::Queue(queue) => match queue.request {
            QueueRequest::Copy(_) | QueueRequest::SmallCopies(_) => true,
            QueueRequest::Launch(_) | QueueRequest::Compute(_) => false,
        },
        Work::Engines(_) | Work::Exchange(_) => false,
    };
    let is_cold = is_cold(platform, plan) || calls && platform.iommu.as_ref().is_some_and(Iommu::translates);
    // Formulas of driver calls do not model partial-line writes.
    let holds = platform.memory.as_ref().is_some_and(|memory| memory.partial_line_ns.value > Ticks::ZERO);
    Some(if is_cold || holds && calls { Prediction { lead: 1.0, ..said } } else { said })
}

/// Whether a first miss in the IOTLB may be part of the time.
pub(crate) fn is_cold(platform: &Platform, plan: &Plan) -> bool {
    platform.iommu.as_ref().is_some_and(Iommu::translates) && plan.warmup_passes == 0
}

/// The platform with host memory at the other socket; `None` if it has one socket.
fn with_memory_farther_away(platform: &Platform) -> Option<Platform> {
    let mut platform = platform.clone();
    let memory = platform.memory.as_mut().filter(|memory| memory.remote_ns.value > Ticks::ZERO)?;
    let each_way = memory.remote_ns.value;
    // Without a latency of its own there is no cache.
    if memory.cached_read_ns.value > Ticks::ZERO {
        memory.cached_read_ns.value += each_way * 2;
    }
    memory.read_ns.value += each_way * 2;
    memory.write_ns.value += each_way;
    Some(platform)
}

/// The platform as seen from the core of the plan, at its distance from the card.
fn predict_from_core(platform: &Platform, plan: &Plan) -> Option<Prediction> {
    let cores = plan.work.cores();
    let farthest =
        cores.iter().map(|core| platform.core_distance(*core)).max().filter(|farthest| *farthest > Ticks::ZERO);
    let Some(distance) = farthest else { return predict_warm(platform, plan) };
    // Formulas of several cores assume one distance.
    if cores.len() > 1 {
        return None;
    }
    let mut platform = platform.clone();
    platform.root_complex.core_round_trip_ns.value =
        (platform.root_complex.core_round_trip_ns.value / 2 + distance) * 2;
    // A message reaches the core after earlier writes are visible to it.
    let seen = platform.memory.as_ref().map_or(Ticks::ZERO, |memory| memory.write_ns.value);
    if let Some(driver) = &mut platform.driver {
        driver.interrupt_ns.value = driver.interrupt_ns.value.max(seen) + distance;
    }
    predict_warm(&platform, plan)
}

/// The prediction once all translations that stay cached are cached.
fn predict_warm(platform: &Platform, plan: &Plan) -> Option<Prediction> {
    let Plan { work, passes, warmup_passes, .. } = plan;
    plan.check().ok()?;
    match work {
        Work::Cores(CoreWork { before, .. }) if !before.is_empty() => None,
        Work::Cores(CoreWork { lanes, .. }) => match lanes.as_slice() {
            [Lane { task, .. }] => predict_task(platform, task, *passes, *warmup_passes),
            lanes => {
                let calls: Vec<DmaCall> = work.dma_calls().copied().collect();
                if calls.len() < lanes.len() { None } else { dma_call::threads(platform, &calls, *passes) }
            }
        },
        // No formula models two cores.
        Work::Exchange(_) => None,
        Work::Engines(EngineWork { jobs, memory }) => match jobs.as_slice() {
            [EngineJob::Transfer(transfer)] => transfer::predict(platform, transfer, 1, plan, memory.written_by),
            [EngineJob::OnChannels(dealt)] => {
                transfer::predict(platform, &dealt.transfer, dealt.channels, plan, memory.written_by)
            }
            [EngineJob::WriteRead(pairs)] if pairs.is_mixed => {
                let engine = transfer::Engine::of(platform, true)?;
                transfer::both_ways(platform, [&pairs.write, &pairs.read()], engine, plan, memory.written_by)
            }
            [EngineJob::WriteRead(pairs)] => transfer::write_read(platform, pairs, *passes, memory.written_by),
            [EngineJob::OnChannels(one), EngineJob::OnChannels(other)]
                if one.transfer.card == other.transfer.card && (one.channels, other.channels) == (1, 1) =>
            {
                let engine = transfer::Engine::of(platform, false)?;
                transfer::both_ways(platform, [&one.transfer, &other.transfer], engine, plan, memory.written_by)
            }
            // No formula models cards that share a link.
            _ => None,
        },
        Work::Relay(relay) => relay::predict(platform, relay, *passes),
        Work::Queue(queue) => match &queue.request {
            QueueRequest::Launch(launch) => runtime::launches(platform, launch, *passes),
            QueueRequest::Copy(copy) => runtime::copies(platform, copy, *passes),
            QueueRequest::SmallCopies(copies) => small_copies::predict(platform, copies, *passes),
            QueueRequest::Compute(compute) => kernel::predict(platform, &compute.work, *passes),
        },
    }
}

/// The prediction for one core.
fn predict_task(platform: &Platform, task: &Task, passes: u64, warmup_passes: u64) -> Option<Prediction> {
    match task {
        Task::Steps(steps) => predict_steps(platform, steps, passes),
        Task::Operation(Operation::LineLoad(holder)) => {
            let issue_ns = load_from(platform, *holder)?.as_ns() * passes as f64;
            let (bound, holds_for) = (Bound::ReadRoundTrip, "a core that waits for each line");
            Some(Prediction { issue_ns, delivered_ns: issue_ns, bound, lead: f64::INFINITY, holds_for })
        }
        Task::Operation(Operation::BufferHandoff(shared)) => {
            buffer_handoff::predict(platform, shared, passes, warmup_passes)
        }
        Task::Operation(Operation::Handshake(request)) => handshake::predict(platform, request, passes),
        // These measure software, which a platform does not describe.
        Task::Operation(Operation::Clock(_) | Operation::KernelCall(_) | Operation::MapUnmap(_)) => None,
        Task::DmaCall(call) => dma_call::predict(platform, call, passes),
    }
}

/// Accesses of one core, with what follows each iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreStream<'p> {
    pub(crate) stream: &'p Stream,
    /// A fence at the end of each iteration of stores.
    pub(crate) fence: Option<Fence>,
    /// Cache lines that are flushed after each iteration of loads.
    pub(crate) flushed: u64,
}

impl<'p> CoreStream<'p> {
    /// The accesses of these steps, if they are nothing else.
    fn of(steps: &'p [Step]) -> Option<CoreStream<'p>> {
        let alone = |stream| CoreStream { stream, fence: None, flushed: 0 };
        match steps {
            [Step::Stream(stream)] => Some(alone(stream)),
            [Step::Stream(stream), Step::Fence(fence)] if stream.verb == Verb::Store => {
                Some(CoreStream { fence: Some(*fence), ..alone(stream) })
            }
            [Step::Stream(stream), Step::FlushLines(span)]
                if stream.verb == Verb::Load && span.at == stream.span.at =>
            {
                Some(CoreStream { flushed: span.len.div_ceil(64), ..alone(stream) })
            }
            _ => None,
        }
    }

    /// The accesses of a plan, if it is nothing else and the core has no distance from the card.
    pub(crate) fn of_plan(platform: &Platform, plan: &'p Plan) -> Option<CoreStream<'p>> {
        let Work::Cores(CoreWork { before, lanes, .. }) = &plan.work else { return None };
        let [Lane { task: Task::Steps(steps), .. }] = lanes.as_slice() else { return None };
        let is_near = plan.work.cores().iter().all(|core| platform.core_distance(*core) == Ticks::ZERO);
        let is_alone = before.is_empty() && is_near && plan.work.memory().socket == Socket::Local;
        if is_alone { CoreStream::of(steps) } else { None }
    }

    /// Costs of the accesses; `None` if no formula holds for them.
    pub(crate) fn costs<'a>(&self, platform: &'a Platform) -> Option<Costs<'a>> {
        let stream = self.stream;
        let is_ascending = stream.order == Order::Ascending && stream.access != Access::CopyToDevice;
        if !is_ascending || stream.span.len == 0 || !is_aligned(stream) {
            return None;
        }
        let is_fenced_store = stream.verb == Verb::Store && stream.fence_each.is_some();
        costs(platform, &stream.span).filter(|_| !is_fenced_store)
    }
}

/// The prediction for the steps of one core.
fn predict_steps(platform: &Platform, steps: &[Step], passes: u64) -> Option<Prediction> {
    if let Some(traffic) = CoreStream::of(steps) {
        return predict_stream(platform, &traffic, passes);
    }
    match steps {
        [Step::Fence(fence)] => {
            let issue_ns = fence_alone(platform, *fence) * passes as f64;
            let holds_for = "a fence without earlier accesses";
            Some(Prediction { issue_ns, delivered_ns: issue_ns, bound: Bound::Fence, lead: f64::INFINITY, holds_for })
        }
        [Step::Map(_)] => {
            let issue_ns = platform.driver.as_ref()?.map_ns.value.as_ns() * passes as f64;
            let holds_for = "a range that is mapped and unmapped";
            Some(Prediction { issue_ns, delivered_ns: issue_ns, bound: Bound::Driver, lead: f64::INFINITY, holds_for })
        }
        [Step::Driver(call)] => predict_driver(platform, call, passes),
        _ => None,
    }
}

/// Latency of a load of a line held elsewhere; `None` if unknown.
fn load_from(platform: &Platform, holder: LineSource) -> Option<Ticks> {
    let loads = platform.loads();
    match holder {
        LineSource::Memory => loads.memory,
        LineSource::RemoteMemory => loads.remote_memory,
        LineSource::Core => loads.core,
        LineSource::RemoteCore => loads.remote_core,
    }
}

fn costs<'a>(platform: &'a Platform, span: &Span) -> Option<Costs<'a>> {
    Costs::new(platform, platform.region_at(span.at.bar, span.at.offset, span.len)?)
}

fn predict_stream(platform: &Platform, traffic: &CoreStream<'_>, passes: u64) -> Option<Prediction> {
    if passes == 0 {
        return None;
    }
    let (costs, stream) = (traffic.costs(platform)?, traffic.stream);
    match stream.verb {
        Verb::Store => {
            let end = traffic.fence.map(|fence| End::fence(&costs, fence));
            Some(store::predict(&costs, stream, costs.pace(stream.access), end, passes))
        }
        Verb::Load => load::predict(&costs, stream, traffic.flushed, passes),
    }
}

/// Whether no access crosses a boundary of its own width, and no copy starts inside a line.
fn is_aligned(stream: &Stream) -> bool {
    let width = stream.access.width().map_or(64, Width::bytes);
    stream.span.at.offset.is_multiple_of(width)
}

/// Driver calls of equal size, and one for the remainder: each takes the time of the kernel and of the copy.
fn predict_driver(platform: &Platform, call: &DriverCall, passes: u64) -> Option<Prediction> {
    if call.span.len == 0 || call.call_bytes == 0 || passes == 0 {
        return None;
    }
    let (whole, rest) = (call.span.len / call.call_bytes, call.span.len % call.call_bytes);
    let calls = (whole > 0).then(|| predict_calls(platform, call, call.call_bytes, whole * passes));
    let last = (rest > 0).then(|| predict_calls(platform, call, rest, passes));
    match (calls, last) {
        (Some(calls), None) => calls,
        (None, last) => last?,
        (Some(calls), Some(last)) => {
            let (calls, last) = (calls?, last?);
            let issue_ns = calls.issue_ns + last.issue_ns;
            Some(Prediction { issue_ns, delivered_ns: calls.issue_ns + last.delivered_ns, ..calls })
        }
    }
}

fn predict_calls(platform: &Platform, call: &DriverCall, bytes: u64, calls: u64) -> Option<Prediction> {
    let costs = costs(platform, &call.span)?;
    let kernel = platform.driver.as_ref()?.call_ns.value.as_ns();
    let stream = Stream::over(call.verb, Access::Plain(call.width), Span { len: bytes, ..call.span });
    let holds_for = "one core, aligned calls";
    match call.verb {
        // A call hits lines that the previous one fetched.
        Verb::Load if call.span.memory_type.caches_loads() => None,
        Verb::Load => {
            let copy = load::predict(&costs, &stream, 0, 1)?;
            let issue_ns = calls as f64 * (kernel + copy.issue_ns);
            let bound = if kernel > copy.issue_ns { Bound::Driver } else { copy.bound };
            Some(Prediction { issue_ns, delivered_ns: issue_ns, bound, holds_for, ..copy })
        }
        Verb::Store => {
            // The kernel orders the copy before it returns.
            let end = End { ns: kernel, ahead_ns: kernel / 2.0, drains: true, bound: Bound::Driver };
            let said = store::predict(&costs, &stream, costs.numbers.cycle, Some(end), calls);
            Some(Prediction { holds_for, ..said })
        }
    }
}
