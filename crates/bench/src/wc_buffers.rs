//! How many write-combining buffers does a core have, and how much does a partial flush cost?
//!
//! Traffic: stores to `lines` open lines, the first 8 B of each, then the second 8 B of each, and
//! so on, for 1 to 40 lines. As long as each line has a buffer, it is sent once, when it is full.
//! With one line more, a line is evicted before its next store, and every store becomes a separate
//! write.
//!
//! On a card's memory (WC) plain stores combine; on ordinary memory (WB) non-temporal stores do.
//!
//! Unit: nanoseconds per partial flush, the headline; the answer has the count, and the time per
//! line for each number of lines.
//!
//! Spoiled by: other threads on the core, including its hardware sibling, which shares the buffers
//! and makes lines leave early. Therefore many short samples are taken, cycling through all numbers
//! of lines in rounds, and low percentiles are used. Rounds are added, up to four times as many,
//! while the curve is blurred. If it then has no step, or several, the answer has a reason instead
//! of a count (`step.rs` has the rule).
//!
//! Method: first applied by hand on a Xeon (16 buffers, 46 ns).

use crate::case::{Axes, Case};
use crate::effort::Effort;
use crate::error::BenchError;
use crate::measured::Measured;
use crate::question::{Question, Watch};
use crate::rounds::Wanted;
use crate::sampling::{answer, measure_together};
use crate::step::{Height, NoStep, steps};
use lanemark_machine::{Access, Facts, Machine, Order, Plan, Span, Step, Stream, TimeBase, Verb, Width};
use lanemark_method::{AccessPath, CoreAccess};
use lanemark_record::{Answer, Buffers, CurvePoint, Detail, Quantity, Summary};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "wc_buffers",
    summary: "number of write-combining buffers of a core, and cost of a partial flush",
    quantity: Quantity::Cost,
    cases,
    plan: |case, passes| plan(case, 1, passes),
    simulated_passes: |_| 1,
    most_passes: |_| 1,
    accesses_per_pass: |_| 1,
    ask: Some(ask),
    is_usual: false,
    left_out: |_| None,
};

const LINE: u64 = 64;
/// Largest number of open lines: more buffers than any known processor has.
const MOST_LINES: u64 = 40;
/// Smallest number of lines per iteration.
const PASS_LINES: u64 = 256;
/// Rounds in real time before the curve is examined.
const ROUNDS: usize = 8;
/// Longest time between examinations: four of them for three instructions stay below ten seconds.
const LOOK: Ticks = Ticks::whole_ns(800_000_000);
/// Largest number of examinations of a blurred curve.
const LOOKS: usize = 4;
/// Samples per visit, of one iteration each.
const SAMPLES: usize = 21;

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(region) = axes.region(facts, facts.storage()).filter(|region| region.len >= 2 * LINE) else {
        return Vec::new();
    };
    let combines = |kind: &MemoryType| matches!(kind, MemoryType::Wc | MemoryType::Wb);
    let memory_types =
        axes.memory_types.clone().unwrap_or_else(|| facts.memory_types.iter().copied().filter(combines).collect());
    let mut cases = Vec::new();
    for memory_type in memory_types {
        let usual: &[Access] = match memory_type {
            MemoryType::Wb => {
                &[Access::NonTemporal(Width::B8), Access::NonTemporal(Width::B16), Access::NonTemporal(Width::B32)]
            }
            _ => &[Access::Plain(Width::B8)],
        };
        let here = || usual.iter().copied().filter(|access| facts.stores.contains(access)).collect();
        for access in axes.accesses.clone().unwrap_or_else(here) {
            cases.push(case(memory_type, access, region.at));
        }
    }
    cases
}

fn case(memory_type: MemoryType, access: Access, region: BarOffset) -> Case {
    let core = CoreAccess { path: AccessPath::Pointer, verb: Verb::Store, memory_type, access, fence: None };
    Case::of_core(core, region, LINE)
}

/// A plan whose stores cycle through `lines` lines.
fn plan(case: &Case, lines: u64, passes: u64) -> Plan {
    let span = Span { len: lines * LINE * PASS_LINES.div_ceil(lines), ..case.span() };
    let order = Order::Interleaved { lines };
    let stores = Stream { order, ..Stream::over(case.verb(), case.access(), span) };
    Plan::new(Step::Stream(stores), passes)
}

fn ask(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    effort: &Effort,
    _: Watch<'_>,
) -> Result<Answer, BenchError> {
    let room = machine.facts().regions.iter().find(|region| region.at == case.region).map_or(0, |region| region.len);
    let fits = |lines: &u64| plan(case, *lines, 1).bytes_per_sample() <= room;
    let asked: Vec<u64> = (1..=MOST_LINES).filter(fits).collect();
    let is_simulated = machine.facts().time_base == TimeBase::Simulated;
    let one_look = Effort {
        sample_length: Ticks::ZERO,
        visit_samples: SAMPLES,
        most_samples: ROUNDS * SAMPLES,
        // The curve decides whether there are enough samples.
        interval_percent: 0.0,
        budget: LOOK.min(effort.budget),
        ..*effort
    };
    let wanted = |lines: &u64, look: usize| Wanted {
        name: if look == 1 { format!("{lines} lines") } else { format!("{lines} lines, look {look}") },
        plan: plan(case, *lines, 1),
        most_passes: (question.most_passes)(case),
    };
    let mut looks: Vec<Measured> = Vec::new();
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); asked.len()];
    let mut found = Err(NoStep::TooFew);
    for number in 1..=LOOKS {
        let look = measure_together(machine, asked.iter().map(|lines| wanted(lines, number)).collect(), &one_look)?;
        for (measured, times) in look.iter().zip(&mut times) {
            let in_a_pass = (measured.plan.bytes_per_sample() / LINE / measured.passes()) as f64;
            times.extend(measured.per_pass_delivered_ns().iter().map(|ns| ns / in_a_pass));
        }
        looks.extend(look);
        let heights: Option<Vec<Height>> = times.iter().map(|times| Height::of(times)).collect();
        found = heights.map_or(Err(NoStep::TooFew), |heights| steps(&heights));
        let may_clear_up = matches!(found, Err(NoStep::Blurred { .. } | NoStep::Several(_)));
        if is_simulated || !may_clear_up {
            break;
        }
    }
    let Some(measured) = looks.pop() else { return Err(BenchError::TooFewPoints { question: question.name }) };
    let curve: Vec<CurvePoint> = asked
        .iter()
        .zip(&times)
        .filter_map(|(lines, times)| {
            let (height, summary) = (Height::of(times)?, Summary::of(times)?);
            Some(CurvePoint { lines: *lines, line_ns_p5: height.low, line_ns_median: summary.median })
        })
        .collect();
    let buffers = buffers(curve, LINE / case.access().width().map_or(LINE, Width::bytes), found);
    let flushes = match buffers.count {
        Some(count) => beyond(&buffers, count).collect(),
        None => Vec::new(),
    };
    let measured = measured.beside(&looks).with_latencies(flushes);
    let mut answer = answer(question, case, machine.facts(), &measured, effort);
    answer.bytes = None;
    answer.tlps = None;
    answer.detail = Some(Detail::Buffers(buffers));
    Ok(answer)
}

/// Time of a flush for each number of lines beyond `count`.
fn beyond(buffers: &Buffers, count: u64) -> impl Iterator<Item = f64> {
    let flushes = buffers.flushes_per_line as f64;
    buffers.curve.iter().filter(move |point| point.lines > count).map(move |point| point.line_ns_median / flushes)
}

/// The result of the curve, with its step in `found`.
fn buffers(curve: Vec<CurvePoint>, flushes_per_line: u64, found: Result<usize, NoStep>) -> Buffers {
    let mut buffers = Buffers {
        count: None,
        because: String::new(),
        flushes_per_line,
        flush_ns: None,
        flush_spread_percent: None,
        curve,
    };
    match found {
        Ok(place) => {
            let (at, next) = (buffers.curve[place], buffers.curve[place + 1]);
            let count = at.lines;
            let flushes: Vec<f64> = beyond(&buffers, count).collect();
            let flush = Summary::of(&flushes);
            buffers.count = Some(count);
            buffers.because = format!(
                "a line takes {:.1} ns with {count} open lines and {:.1} ns with {}",
                at.line_ns_p5, next.line_ns_p5, next.lines
            );
            buffers.flush_ns = flush.map(|flush| flush.median);
            buffers.flush_spread_percent =
                flush.map(|flush| 100.0 * (flush.max - flush.median).max(flush.median - flush.min) / flush.median);
        }
        Err(no_step) => {
            let lines = |place: usize| buffers.curve[place].lines;
            buffers.because = no_step.in_words(&lines);
        }
    }
    buffers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line_ns: impl Fn(u64) -> f64) -> Buffers {
        let point = |lines| CurvePoint { lines, line_ns_p5: line_ns(lines), line_ns_median: line_ns(lines) };
        let curve: Vec<CurvePoint> = (1..=MOST_LINES).map(point).collect();
        let heights: Vec<Height> = curve.iter().map(|point| Height { low: point.line_ns_p5, spread: 0.5 }).collect();
        buffers(curve, 8, steps(&heights))
    }

    #[test]
    fn a_clear_step_gives_the_count_and_the_cost_of_a_flush() {
        let found = of(|lines| if lines <= 16 { 21.0 } else { 368.0 + (lines % 3) as f64 });
        assert_eq!((found.count, found.curve.len()), (Some(16), 40));
        assert!((found.flush_ns.unwrap() - 46.125).abs() < 1e-9 && found.flush_spread_percent.unwrap() < 1.0);
        assert_eq!(found.because, "a line takes 21.0 ns with 16 open lines and 370.0 ns with 17");
    }

    #[test]
    fn a_curve_without_a_step_gives_a_reason_instead_of_a_count() {
        let found = of(|lines| 20.0 + lines as f64 / 4.0);
        assert_eq!((found.count, found.flush_ns, found.flush_spread_percent), (None, None, None));
        assert!(found.because.contains("no step"), "{}", found.because);
    }

    #[test]
    fn several_steps_are_listed_and_none_is_chosen() {
        let found = of(|lines| match lines {
            ..=10 => 20.0,
            11..=16 => 90.0,
            _ => 360.0,
        });
        assert_eq!(found.count, None);
        assert!(found.because.contains("10") && found.because.contains("16"), "{}", found.because);
    }

    #[test]
    fn an_iteration_has_whole_blocks_and_enough_lines() {
        for access in [Access::Plain(Width::B8), Access::NonTemporal(Width::B32)] {
            for lines in 1..=MOST_LINES {
                let at = lanemark_units::BarOffset { bar: 0, offset: 0 };
                let case = case(MemoryType::Wc, access, at);
                let plan = plan(&case, lines, 1);
                let [Step::Stream(stream)] = plan.work.lanes()[0].task.steps() else { panic!("{plan:?}") };
                assert_eq!(stream.order.check(access, &stream.span), Ok(()));
                assert!(stream.span.len >= PASS_LINES * LINE);
            }
        }
    }
}
