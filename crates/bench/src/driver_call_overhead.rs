//! How much does a driver call cost in addition to the bytes that it moves?
//!
//! Traffic: that of the copy itself; the question is about the kernel around it.
//!
//! Unit: nanoseconds per call.
//!
//! Four estimates, as in TACC TR-14-10:
//! - `write` with size 1 MiB: the slope of time over the number of calls if 1 MiB is written in
//!   smaller and smaller calls, down to 64 B (least squares; the record has the line and its r
//!   squared);
//! - `read` of 8 B and of 64 B: through the driver minus through a pointer;
//! - `poll`: reading a flag that is set, and then a value, per call, minus the same through a
//!   pointer.
//!
//! Also measured: `mmap`, mapping a page of the BAR and unmapping it, the price of a pointer.
//!
//! Spoiled by: a driver that copies asynchronously; a first call after idling. On ordinary memory,
//! `pread` and `pwrite` on a memory file stand in for a driver.

use crate::case::{Axes, Case};
use crate::effort::Effort;
use crate::error::BenchError;
use crate::line_fit::line_of_plans;
use crate::measured::Measured;
use crate::needs;
use crate::question::{Question, Watch};
use crate::rounds::Wanted;
use crate::sampling::{answer, measure, measure_together};
use lanemark_machine::{Access, DriverCall, Facts, Machine, Plan, Step, Stream, Verb, Width};
use lanemark_method::{AccessPath, CoreAccess};
use lanemark_record::{Answer, LEAST_SAMPLES, Quantity};
use lanemark_units::MemoryType;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "driver_call_overhead",
    summary: "added time of a driver call over plain accesses, for reads and writes",
    quantity: Quantity::Overhead,
    cases,
    plan,
    simulated_passes: |_| 8,
    most_passes: |_| 4096,
    accesses_per_pass: |_| 1,
    ask: Some(ask),
    is_usual: true,
    left_out: needs::copy_driver,
};

/// Total bytes written by the line-fit estimate.
const WRITTEN: u64 = 1 << 20;
/// Bytes of a flag and a value.
const FLAG_AND_VALUE: u64 = 16;
/// A page, the smallest mapping.
const PAGE: u64 = 4096;
/// Bytes of the smallest call of the line-fit estimate: a cache line.
const LEAST_CALL: u64 = 64;

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let (Some(region), Some(width)) = (axes.region(facts, facts.storage()), facts.driver_width) else {
        return Vec::new();
    };
    let memory_types: Vec<MemoryType> = axes.memory_types.clone().unwrap_or_else(|| {
        let copied = |kind: &MemoryType| matches!(kind, MemoryType::Wc | MemoryType::Wb);
        let usual: Vec<MemoryType> = facts.memory_types.iter().copied().filter(copied).collect();
        // The driver of VFIO maps a BAR as UC only.
        if usual.is_empty() { facts.memory_types.clone() } else { usual }
    });
    let mut cases = Vec::new();
    for memory_type in memory_types {
        let case = |path, verb, size| {
            let core = CoreAccess { path, verb, memory_type, access: Access::Plain(width), fence: None };
            Case::of_core(core, region.at, size)
        };
        if let Some(sizes) = &axes.sizes {
            cases.extend(sizes.iter().map(|size| case(AccessPath::Driver, Verb::Load, *size)));
            continue;
        }
        let usual = [
            case(AccessPath::Driver, Verb::Load, 8),
            case(AccessPath::Driver, Verb::Load, 64),
            case(AccessPath::DriverPoll, Verb::Load, FLAG_AND_VALUE),
            case(AccessPath::Mmap, Verb::Load, PAGE),
            case(AccessPath::Driver, Verb::Store, WRITTEN),
        ];
        cases.extend(usual.into_iter().filter(|case| case.size <= region.len));
    }
    cases
}

/// A plan with the calls of the case: one for a read, two for a flag and a value.
fn plan(case: &Case, passes: u64) -> Plan {
    Plan::new(Step::Driver(call(case, case.size / calls(case))), passes)
}

fn calls(case: &Case) -> u64 {
    if case.path() == Some(AccessPath::DriverPoll) { 2 } else { 1 }
}

fn call(case: &Case, call_bytes: u64) -> DriverCall {
    let width = case.access().width().unwrap_or(Width::B8);
    DriverCall { verb: case.verb(), span: case.span(), call_bytes, width }
}

fn ask(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    effort: &Effort,
    _: Watch<'_>,
) -> Result<Answer, BenchError> {
    match case.verb() {
        _ if case.path() == Some(AccessPath::Mmap) => by_itself(question, machine, case, effort),
        Verb::Store => by_line(question, machine, case, effort),
        Verb::Load => by_difference(question, machine, case, effort),
    }
}

/// The time of mapping a page, which moves no bytes.
fn by_itself(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    effort: &Effort,
) -> Result<Answer, BenchError> {
    let plan = Plan::new(Step::Map(case.span()), 8);
    let measured = measure(machine, &plan, (question.most_passes)(case), effort)?;
    let latencies = measured.per_pass_issue_ns();
    Ok(answer(question, case, machine.facts(), &measured.with_latencies(latencies), effort))
}

/// The slope of time over calls: of the medians of all samples, and of those of each round for the
/// spread.
fn by_line(question: &Question, machine: &mut dyn Machine, case: &Case, effort: &Effort) -> Result<Answer, BenchError> {
    let halved = |bytes: &u64| Some(bytes / 2).filter(|half| *half >= LEAST_CALL);
    let calls: Vec<u64> = std::iter::successors(Some(case.size), halved).collect();
    let wanted = |call_bytes: &u64| Wanted {
        name: format!("calls of {call_bytes} B"),
        plan: Plan::new(Step::Driver(call(case, *call_bytes)), 1),
        most_passes: 1,
    };
    // Each round gives a slope, so many rounds of few samples are better than few rounds of many.
    let rounds = Effort { visit_samples: 2, least_rounds: effort.least_rounds.max(LEAST_SAMPLES as u64), ..*effort };
    let mut measured = measure_together(machine, calls.iter().map(wanted).collect(), &rounds)?;
    let numbers = calls.iter().map(|call_bytes| case.size.div_ceil(*call_bytes) as f64);
    let points: Vec<(f64, &Measured)> = numbers.zip(&measured).collect();
    let Some((fit, slopes)) = line_of_plans(&points) else {
        return Err(BenchError::TooFewPoints { question: question.name });
    };
    let Some(smallest) = measured.pop() else {
        return Err(BenchError::TooFewPoints { question: question.name });
    };
    let smallest = smallest.beside(&measured).with_latencies(slopes);
    let mut answer = answer(question, case, machine.facts(), &smallest, effort);
    answer.fit = Some(fit);
    Ok(answer)
}

/// Time through the driver minus time through a pointer, by pairs of samples of the same round.
fn by_difference(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    effort: &Effort,
) -> Result<Answer, BenchError> {
    // The driver does not fence its loads one by one either; the closing time stamp waits for all
    // of them.
    let stream = Stream::over(case.verb(), case.access(), case.span());
    let pointer_plan = Plan::new(Step::Stream(stream), 8);
    let wanted = [("driver", plan(case, 8)), ("pointer", pointer_plan)].map(|(name, plan)| Wanted {
        name: name.to_owned(),
        plan,
        most_passes: (question.most_passes)(case),
    });
    let mut measured = measure_together(machine, wanted.into(), effort)?;
    let (Some(pointer), Some(driver)) = (measured.pop(), measured.pop()) else {
        return Err(BenchError::TooFewPoints { question: question.name });
    };
    let driver = driver.minus(Some(&pointer), |sample| sample.issue, calls(case) as f64);
    Ok(answer(question, case, machine.facts(), &driver, effort))
}
