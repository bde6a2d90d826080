//! How much does each kernel argument add to a launch?
//!
//! Traffic: only what the runtime sends to its device; the kernel does not use its arguments.
//!
//! Unit: nanoseconds. For a launch with a number of arguments: one launch and a wait for its event.
//! For one more argument: the slope of a straight line through these launches.
//!
//! Methods: buffers, which the runtime tracks (where their contents are, and who uses them), and
//! addresses, which it does not (unified shared memory). Arguments are set before each launch
//! within the timed interval, as in a program that creates an accessor per launch.
//!
//! Spoiled by: everything that spoils [`launch_latency`](crate::launch_latency); occasional
//! launches that take longer than all arguments together.

use crate::case::{Axes, Case};
use crate::effort::Effort;
use crate::error::BenchError;
use crate::line_fit::line_of_plans;
use crate::measured::Measured;
use crate::needs;
use crate::question::{Question, Watch};
use crate::rounds::Wanted;
use crate::sampling::{answer, measure, measure_together, plan_for};
use lanemark_machine::{Allocation, Arguments, Facts, HostWait, Launch, LaunchBy, Machine, Plan};
use lanemark_method::Method;
use lanemark_record::{Answer, LEAST_SAMPLES, Quantity};
use lanemark_units::Ticks;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "accessor_overhead",
    summary: "added launch time per kernel argument, for buffers and USM",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 1,
    most_passes: |_| 64,
    accesses_per_pass: |_| 1,
    ask: Some(ask),
    is_usual: false,
    left_out: needs::kernel_runtime,
};

/// Numbers of arguments.
const COUNTS: [u32; 5] = [1, 2, 4, 8, Arguments::MOST];
/// Kinds of memory.
const ALLOCATIONS: [Allocation; 2] = [Allocation::Buffer, Allocation::Device];
const TOLD: HostWait = HostWait::Event;
/// A line needs six plans, and one launch is a plan. Launches take half of a case's share of time,
/// and lines three times as much, which together stays within all shares.
const LAUNCH_OF: u64 = 2;
const LINE_TIMES: u64 = 3;

fn cases(facts: &Facts, _: &Axes) -> Vec<Case> {
    let Some(runtime) = facts.runtime.as_ref().filter(|_| needs::has_queue(facts)) else { return Vec::new() };
    let mut cases = vec![launch(Arguments::NONE)];
    for allocation in ALLOCATIONS.into_iter().filter(|one| runtime.allocations.contains(one)) {
        cases.extend(COUNTS.map(|count| launch(Arguments { count, allocation })));
        cases.push(Case::of_runtime(0, Method::Argument { wait: TOLD, allocation }));
    }
    cases
}

fn launch(arguments: Arguments) -> Case {
    let arguments = Some(arguments).filter(|arguments| *arguments != Arguments::NONE);
    Case::of_runtime(0, Method::Launch { kernels: 1, by: LaunchBy::Calls, wait: TOLD, arguments, pinned: true })
}

/// The plan of one more argument is the launch without arguments, which is the reference of the
/// others.
fn plan(case: &Case, passes: u64) -> Plan {
    let arguments = if let Method::Launch { arguments, .. } = case.method { arguments } else { None };
    let launch =
        Launch { kernels: 1, by: LaunchBy::Calls, wait: TOLD, arguments: arguments.unwrap_or(Arguments::NONE) };
    // The first launches of a kernel compile it.
    Plan { warmup_passes: 1, ..Plan::new(launch, passes) }
}

fn ask(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    effort: &Effort,
    _: Watch<'_>,
) -> Result<Answer, BenchError> {
    let time_base = machine.facts().time_base;
    if let Method::Argument { allocation, .. } = case.method {
        return by_line(question, machine, case, allocation, effort);
    }
    let plan = plan_for(question, case, time_base, effort);
    let effort = &Effort { budget: Ticks(effort.budget.0 / LAUNCH_OF), ..*effort };
    let measured = measure(machine, &plan, (question.most_passes)(case), effort)?;
    Ok(answer(question, case, machine.facts(), &measured, effort))
}

/// The slope of time over the number of arguments.
fn by_line(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    allocation: Allocation,
    effort: &Effort,
) -> Result<Answer, BenchError> {
    let time_base = machine.facts().time_base;
    let counts: Vec<u32> = std::iter::once(0).chain(COUNTS).collect();
    let wanted = |count: &u32| {
        let arguments = if *count == 0 { Arguments::NONE } else { Arguments { count: *count, allocation } };
        let case = launch(arguments);
        Wanted {
            name: format!("{count} arguments"),
            plan: plan_for(question, &case, time_base, effort),
            most_passes: (question.most_passes)(&case),
        }
    };
    // Each round gives a slope, so many rounds of few samples are better than few rounds of many.
    let rounds = Effort {
        least_rounds: effort.least_rounds.max(LEAST_SAMPLES as u64),
        budget: Ticks(effort.budget.0.saturating_mul(LINE_TIMES)),
        ..*effort
    };
    let mut measured = measure_together(machine, counts.iter().map(wanted).collect(), &rounds)?;
    let points: Vec<(f64, &Measured)> = counts.iter().map(|count| f64::from(*count)).zip(&measured).collect();
    let Some((fit, slopes)) = line_of_plans(&points) else {
        return Err(BenchError::TooFewPoints { question: question.name });
    };
    let Some(most) = measured.pop() else {
        return Err(BenchError::TooFewPoints { question: question.name });
    };
    let most = most.beside(&measured).with_latencies(slopes);
    let mut answer = answer(question, case, machine.facts(), &most, effort);
    answer.fit = Some(fit);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_fixture::{Runtime, facts};

    fn ways(allocations: &[Allocation]) -> Vec<String> {
        cases(&facts(allocations), &Axes::default()).iter().map(|case| case.method.to_string()).collect()
    }

    #[test]
    fn cases_cover_the_supported_kinds_of_memory() {
        let buffers = ["launch", "launch with 1 buffer", "launch with 2 buffer", "launch with 4 buffer"]
            .map(|launch| format!("{launch}, wait by event"));
        let all = ways(&[Allocation::Buffer, Allocation::Mapped]);
        assert_eq!((all.len(), &all[..4]), (7, &buffers[..]));
        let all = ways(&Allocation::ALL);
        assert_eq!(
            (all.len(), &*all[6], &*all[12]),
            (13, "one more buffer argument, wait by event", "one more usm argument, wait by event")
        );
    }

    #[test]
    fn one_more_argument_costs_the_slope_for_any_base_time() {
        let mut runtime = Runtime::new(&Allocation::ALL);
        let mut answered = |allocation| {
            let case = Case::of_runtime(0, Method::Argument { wait: TOLD, allocation });
            let answer = ask(&QUESTION, &mut runtime, &case, &Effort::default(), &mut |_| true).unwrap();
            (answer.fit.unwrap(), answer.latency_ns.unwrap().median, answer.raw.len())
        };
        let (fit, slope, plans) = answered(Allocation::Buffer);
        assert!((fit.per_call_ns - 300.0).abs() < 1e-6 && (fit.fixed_ns - 5000.0).abs() < 1e-6, "{fit:?}");
        assert!((slope - 300.0).abs() < 1e-6 && plans == 6);
        let (fit, slope, _) = answered(Allocation::Device);
        assert!(fit.per_call_ns.abs() < 1e-6 && slope.abs() < 1e-6, "{fit:?}");
    }
}
