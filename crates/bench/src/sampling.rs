//! Sampling: from plans to answers.

use crate::buffer_count;
use crate::case::Case;
use crate::delivery;
use crate::effort::Effort;
use crate::error::BenchError;
use crate::measured::{Measured, PathDifference};
use crate::question::{Question, Watch};
use crate::rounds::{Wanted, in_rounds};
use crate::series::Series;
use lanemark_machine::{Cause, Facts, Machine, MachineError, PathShare, Plan, Samples, TimeBase};
use lanemark_method::Method;
use lanemark_record::{
    Answer, BounceBuffer, Bytes, Ceiling, CeilingKind, CorrectedErrors, Detail, Direction, Dropped, LEAST_SAMPLES,
    LinkUse, PathPart, Quantity, ResourceUse, Steady, Summary, Tlps, WaitShare, doubts,
};
use lanemark_units::Ticks;
use std::collections::BTreeMap;

/// The plan of the samples that [`ask`] takes of a case on a machine with this time base. Simulated DMA behind an IOMMU
/// has a warm-up before it.
#[must_use]
pub fn plan_for(question: &Question, case: &Case, time_base: TimeBase, effort: &Effort) -> Plan {
    let passes = match time_base {
        TimeBase::Simulated => effort.simulated_passes.unwrap_or_else(|| (question.simulated_passes)(case)),
        TimeBase::Real | TimeBase::Emulated => 1,
    };
    let plan = (question.plan)(case, passes);
    // Each iteration gets the usual timeout; the limit keeps times far from overflow.
    let timeout = Ticks(plan.timeout.0.saturating_mul(effort.simulated_passes.unwrap_or(1).max(1)).min(1 << 61));
    Plan { timeout, ..plan }
}

/// Measures one case on one machine. The ceiling of the answer is unknown until the caller sets it.
///
/// # Errors
/// [`BenchError::Machine`] with the error of the machine.
pub fn ask(question: &Question, machine: &mut dyn Machine, case: &Case, effort: &Effort) -> Result<Answer, BenchError> {
    let mut answers = measure_all(question, machine, std::slice::from_ref(case), effort, &mut |_| true);
    answers.pop().unwrap_or_else(|| Err(interrupted(machine).into()))
}

/// Measures several cases of one question on one machine. In real time, rounds visit each case. A
/// question that needs several plans per case visits these in rounds, case after case. If some
/// sizes may be left out ([`Effort::has_default_sizes`]), cases for which the budget does not
/// suffice after the first round end with [`BenchError::LeftOut`].
///
/// `watch` is called before every visit with the number of completed cases. If it returns `false`,
/// or the machine is interrupted, cases with samples are answered, and the others end with
/// [`MachineError::Interrupted`]. If the machine fails permanently, the remaining cases end with
/// [`BenchError::NotAsked`]. Results correspond to `cases` in number and order.
pub fn measure_all(
    question: &Question,
    machine: &mut dyn Machine,
    cases: &[Case],
    effort: &Effort,
    watch: Watch<'_>,
) -> Vec<Result<Answer, BenchError>> {
    let is_real = machine.facts().time_base != TimeBase::Simulated;
    if is_real && question.needs_interval() && !effort.needs_interval {
        let effort = Effort { needs_interval: true, ..*effort };
        let answers = measure_all(question, machine, cases, &effort, watch);
        return answers.into_iter().map(|answer| with_interval(answer?)).collect();
    }
    if let Some(ask) = question.ask {
        let (effort, mut has_failed) = (effort.share(cases.len()), false);
        let each = cases.iter().enumerate().map(|(place, case)| {
            if has_failed {
                return Err(BenchError::NotAsked);
            }
            let mut watch_one = |share: f64| watch(place as f64 + share);
            let answer = if watch_one(0.0) {
                ask(question, machine, case, &effort, &mut watch_one)
            } else {
                Err(interrupted(machine).into())
            };
            has_failed = answer.as_ref().is_err_and(BenchError::is_for_good);
            answer
        });
        let mut answers: Vec<_> = each.collect();
        buffer_count::conclude(&mut answers, machine.facts().time_base, &effort);
        return answers;
    }
    let time_base = machine.facts().time_base;
    let wanted = |case: &Case| Wanted {
        name: String::new(),
        plan: plan_for(question, case, time_base, effort),
        most_passes: (question.most_passes)(case),
    };
    let mut go_on = |done: usize| watch(done as f64);
    let series = effort.has_default_sizes.then(|| Series::of(cases));
    let measured = in_rounds(machine, cases.iter().map(wanted).collect(), series.as_ref(), effort, &mut go_on);
    let answers = measured.into_iter().zip(cases);
    answers.map(|(measured, case)| Ok(answer(question, case, machine.facts(), &measured?, effort))).collect()
}

/// Refuses an answer without an interval.
fn with_interval(answer: Answer) -> Result<Answer, BenchError> {
    let samples = answer.samples_ns.len();
    if samples < LEAST_SAMPLES { Err(BenchError::TooFewSamples { samples }) } else { Ok(answer) }
}

/// The error of a measurement that the caller ended.
pub(crate) fn interrupted(machine: &dyn Machine) -> MachineError {
    MachineError::Interrupted { machine: machine.facts().name.clone() }
}

/// Samples one plan; in real time, with enough iterations for a sample of the target length.
pub(crate) fn measure(
    machine: &mut dyn Machine,
    plan: &Plan,
    most_passes: u64,
    effort: &Effort,
) -> Result<Measured, BenchError> {
    let wanted = Wanted { name: String::new(), plan: plan.clone(), most_passes };
    let mut measured = measure_together(machine, vec![wanted], effort)?;
    measured.pop().ok_or_else(|| interrupted(machine).into())
}

/// Samples several plans of one answer in rounds; results correspond to the plans.
pub(crate) fn measure_together(
    machine: &mut dyn Machine,
    wanted: Vec<Wanted>,
    effort: &Effort,
) -> Result<Vec<Measured>, BenchError> {
    in_rounds(machine, wanted, None, effort, &mut |_| true).into_iter().collect()
}

/// Builds the answer from the samples.
pub(crate) fn answer(question: &Question, case: &Case, facts: &Facts, measured: &Measured, effort: &Effort) -> Answer {
    let (samples, passes) = (&measured.samples, measured.passes());
    let per_pass = (question.accesses_per_pass)(case);
    let bytes = (case.size * per_pass * passes) as f64;
    let spans = |of: fn(&lanemark_machine::Sample) -> Ticks| -> Vec<f64> {
        samples.taken.iter().map(|sample| of(sample).as_ns()).collect()
    };
    let (issue, delivered) = (spans(|sample| sample.issue), spans(|sample| sample.delivered));
    let rates = |spans: &[f64]| {
        let rates: Vec<f64> = spans.iter().filter(|ns| **ns > 0.0).map(|ns| bytes * 1e9 / ns).collect();
        Summary::of(&rates)
    };
    let per_access = (passes * per_pass) as f64;
    let latencies = measured
        .latencies_ns
        .clone()
        .unwrap_or_else(|| delivered.iter().map(|ns| ns / per_access).collect::<Vec<f64>>());
    let quantity = case.quantity().unwrap_or(question.quantity);
    let is_bandwidth = quantity == Quantity::Bandwidth;
    let samples_ns = if is_bandwidth { delivered.iter().map(|ns| ns / per_access).collect() } else { latencies };
    let dropped =
        Dropped { context_switches: samples.dropped.context_switches, clock_steps: samples.dropped.clock_steps };
    let is_real = facts.time_base != TimeBase::Simulated;
    // The path of one run is meaningless for an overhead or cost that is the difference of two runs.
    let path = match (quantity, measured.difference()) {
        (_, Some(difference)) => path_of_difference(difference),
        (Quantity::Overhead | Quantity::Cost, None)
            if measured.latencies_ns.is_some() && !matches!(case.method, Method::SharedBuffer { .. }) =>
        {
            Vec::new()
        }
        _ => critical_path(samples),
    };
    let mut answer = Answer {
        question: question.name.to_owned(),
        target: facts.name.clone(),
        method: case.method.clone(),
        varied: BTreeMap::new(),
        size_bytes: case.size,
        alignment_bytes: case.alignment,
        quantity,
        latency_ns: if is_bandwidth { None } else { Summary::of(&samples_ns) },
        issue_rate_bytes_per_s: if is_bandwidth { rates(&issue) } else { None },
        delivered_rate_bytes_per_s: if is_bandwidth { rates(&delivered) } else { None },
        ceiling: Ceiling {
            kind: CeilingKind::Unknown,
            rate_bytes_per_s: None,
            because: if is_bandwidth { "not computed" } else { "latencies have no ceiling" }.to_owned(),
        },
        share_of_ceiling_percent: None,
        waits: wait_shares(&path),
        critical_path: path,
        sensitivities: Vec::new(),
        formula: None,
        tlps: samples.traffic.map(|traffic| Tlps {
            writes: traffic.write_tlps,
            reads: traffic.read_tlps,
            completions: traffic.completion_tlps,
            payload_bytes: traffic.payload_bytes,
        }),
        links: samples.links.iter().map(link_use).collect(),
        resources: resources(&samples.resources),
        twin: None,
        corrected: samples.corrected.iter().map(corrected).collect(),
        bytes: samples.confirmed.map(|confirmed| Bytes {
            claimed_bytes: confirmed.claimed_bytes,
            confirmed_bytes: confirmed.confirmed_bytes,
        }),
        timer_cost_ns: samples.timer_cost.as_ns(),
        passes,
        // Virtual time has no spread.
        doubts: if is_real { doubts(&samples_ns, dropped, effort.interval_percent) } else { Vec::new() },
        samples_ns,
        raw: measured.raw(),
        dropped: Some(dropped),
        steady: effort.simulated_passes.and(samples.steady).map(steady),
        delivery: None,
        fit: None,
        detail: None
            .or_else(|| case.caller.pair().map(Detail::Pair))
            .or_else(|| case.caller.cores(measured).map(Detail::Caller))
            .or_else(|| samples.bounce_buffer.map(bounce_buffer)),
    };
    delivery::tell(&mut answer, samples.delivery);
    answer
}

fn bounce_buffer(found: lanemark_machine::BounceBuffer) -> Detail {
    let lanemark_machine::BounceBuffer { mapped_pages, bounced_pages } = found;
    Detail::BounceBuffer(BounceBuffer { mapped_pages, bounced_pages })
}

fn steady(found: lanemark_machine::Steady) -> Steady {
    let because = found.because.filter(|_| found.skipped == 0);
    Steady {
        transfers: found.transfers,
        skipped_transfers: found.skipped,
        period_transfers: found.period,
        because: because.map(|because| because.explanation().to_owned()),
    }
}

fn corrected(found: &lanemark_machine::Corrected) -> CorrectedErrors {
    CorrectedErrors { port: found.port.clone(), error: found.error.row().name.to_owned(), count: found.count }
}

fn link_use(used: &lanemark_machine::LinkUse) -> LinkUse {
    LinkUse {
        link: used.link.clone(),
        direction: direction(used.direction),
        tlp_share_percent: 100.0 * used.tlp_share(),
        dllp_share_percent: 100.0 * used.dllp_share(),
        payload_rate_bytes_per_s: used.payload_rate_bytes_per_s(),
    }
}

fn direction(direction: lanemark_machine::Direction) -> Direction {
    match direction {
        lanemark_machine::Direction::Downstream => Direction::Down,
        lanemark_machine::Direction::Upstream => Direction::Up,
    }
}

/// Use of resources, the busiest first.
fn resources(used: &[lanemark_machine::ResourceUse]) -> Vec<ResourceUse> {
    let one = |used: &lanemark_machine::ResourceUse| ResourceUse {
        place: used.place.clone(),
        cause: used.cause.name().to_owned(),
        direction: used.direction.map(direction),
        share_percent: 100.0 * used.share(),
    };
    let mut all: Vec<ResourceUse> = used.iter().map(one).collect();
    all.sort_by(|one, other| other.share_percent.total_cmp(&one.share_percent));
    all
}

/// Parts of the critical path with their share of the samples' time, largest first.
fn critical_path(samples: &Samples) -> Vec<PathPart> {
    let total = samples.path.iter().map(|share| share.span).sum::<Ticks>().as_ns();
    let part = |share: &PathShare| PathPart {
        place: share.place.clone(),
        cause: share.cause.name().to_owned(),
        is_latency: share.is_latency,
        share_percent: 100.0 * share.span.as_ns() / total,
    };
    if total > 0.0 { samples.path.iter().map(part).collect() } else { Vec::new() }
}

/// Parts of the critical path of a difference with their share of it, largest first.
fn path_of_difference(difference: &[PathDifference]) -> Vec<PathPart> {
    let total: f64 = difference.iter().map(|part| part.ns).sum();
    let part = |part: &PathDifference| PathPart {
        place: part.place.clone(),
        cause: part.cause.name().to_owned(),
        is_latency: part.is_latency,
        share_percent: 100.0 * part.ns / total,
    };
    if total > 0.0 { difference.iter().map(part).collect() } else { Vec::new() }
}

/// The causes of the critical path with their share of the time, largest first.
///
/// Work of different places is separate, and so is latency that no limit of concurrency explains. The latencies that
/// one limit explains are one share, whose place is the one with the largest part.
fn wait_shares(path: &[PathPart]) -> Vec<WaitShare> {
    let mut shares: Vec<WaitShare> = Vec::new();
    let by_limit = |part: &PathPart| part.is_latency && part.cause != Cause::Transit.name();
    for part in path {
        let same = |share: &&mut WaitShare| {
            share.cause == part.cause
                && share.is_latency == part.is_latency
                && (by_limit(part) || share.place == part.place)
        };
        match shares.iter_mut().find(same) {
            Some(share) => share.share_percent += part.share_percent,
            None => shares.push(WaitShare {
                cause: part.cause.clone(),
                place: part.place.clone(),
                is_latency: part.is_latency,
                explanation: Cause::named(&part.cause).map_or("", Cause::explanation).to_owned(),
                share_percent: part.share_percent,
            }),
        }
    }
    shares.retain(|share| share.share_percent > 0.05);
    shares.sort_by(|a, b| b.share_percent.total_cmp(&a.share_percent));
    shares
}
