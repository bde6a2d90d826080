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
//! of lines in rounds, and low percentiles are used. Each curve is examined alone; a blurred one is
//! measured again once, and both measurements are one curve. Curves are added until two agree and
//! few differ, or up to a limit. The number of buffers does not depend on the access, so the curves
//! of all accesses to one memory are pooled. A count needs two curves that agree, and a confidence
//! of two in three; otherwise the answer has the counts of the curves instead of one (`step.rs` has
//! the rule for one curve).
//!
//! Method: first applied by hand on a Xeon (16 buffers, 46 ns).

use crate::buffer_count::Curves;
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
/// Longest time of a measurement: six of them for three instructions stay below ten seconds.
const LOOK: Ticks = Ticks::whole_ns(500_000_000);
/// Largest number of curves, and of measurements for them, of one access.
const LOOKS: usize = 6;
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
    // The samples of the current curve, which a blurred measurement leaves for the next one.
    let mut current = times.clone();
    let mut is_second = false;
    let mut curves = Curves::default();
    for number in 1..=LOOKS {
        let look = measure_together(machine, asked.iter().map(|lines| wanted(lines, number)).collect(), &one_look)?;
        for ((measured, times), current) in look.iter().zip(&mut times).zip(&mut current) {
            let in_a_pass = (measured.plan.bytes_per_sample() / LINE / measured.passes()) as f64;
            let of_lines = measured.per_pass_delivered_ns().into_iter().map(|ns| ns / in_a_pass);
            current.extend(of_lines.clone());
            times.extend(of_lines);
        }
        looks.extend(look);
        let heights: Option<Vec<Height>> = current.iter().map(|times| Height::of(times)).collect();
        let found = heights.map_or(Err(NoStep::TooFew), |heights| steps(&heights));
        let may_clear_up = matches!(found, Err(NoStep::Blurred { .. } | NoStep::Several(_)));
        if may_clear_up && !is_simulated && !is_second && number < LOOKS {
            is_second = true;
            continue;
        }
        is_second = false;
        current.iter_mut().for_each(Vec::clear);
        curves.add(found.map(|place| asked[place]).map_err(|no_step| no_step.in_words(&|place| asked[place])));
        if is_simulated || curves.are_enough() {
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
    let buffers = Buffers {
        count: None,
        because: curves.because.unwrap_or_default(),
        curves: curves.count,
        agreeing_curves: 0,
        other_counts: curves.counts,
        confidence_percent: None,
        flushes_per_line: LINE / case.access().width().map_or(LINE, Width::bytes),
        flush_ns: None,
        flush_spread_percent: None,
        curve,
    };
    let measured = measured.beside(&looks).with_latencies(Vec::new());
    let mut answer = answer(question, case, machine.facts(), &measured, effort);
    answer.bytes = None;
    answer.tlps = None;
    answer.detail = Some(Detail::Buffers(buffers));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer_count::conclude;

    #[test]
    fn accesses_to_one_memory_share_their_curves() {
        let case = |memory_type| case(memory_type, Access::NonTemporal(Width::B8), BarOffset { bar: 0, offset: 0 });
        let facts = crate::runtime_fixture::facts(&[]);
        let one = |memory_type, counts: &[u64]| {
            let measured = Measured::of(String::new(), Plan::empty()).with_latencies(Vec::new());
            let mut answer = answer(&QUESTION, &case(memory_type), &facts, &measured, &Effort::default());
            let line_ns = |lines| if lines <= 12 { 20.0 } else { 200.0 };
            let point = |lines| CurvePoint { lines, line_ns_p5: line_ns(lines), line_ns_median: line_ns(lines) };
            answer.detail = Some(Detail::Buffers(Buffers {
                count: None,
                because: "there is no step".to_owned(),
                curves: 2,
                agreeing_curves: 0,
                other_counts: counts.to_vec(),
                confidence_percent: None,
                flushes_per_line: 8,
                flush_ns: None,
                flush_spread_percent: None,
                curve: (1..=MOST_LINES).map(point).collect(),
            }));
            Ok(answer)
        };
        let mut answers = [
            one(MemoryType::Wb, &[12, 12]),
            one(MemoryType::Wb, &[12]),
            one(MemoryType::Wb, &[]),
            one(MemoryType::Wc, &[]),
        ];
        conclude(&mut answers, TimeBase::Real, &Effort::default());
        let counts: Vec<(Option<u64>, u64)> = answers
            .iter()
            .flatten()
            .map(|answer| match &answer.detail {
                Some(Detail::Buffers(buffers)) => (buffers.count, buffers.curves),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(counts, [(Some(12), 4), (Some(12), 4), (Some(12), 4), (None, 2)]);
        let flush = |place: usize| answers[place].as_ref().unwrap().latency_ns.map(|summary| summary.median);
        assert_eq!((flush(0), flush(1), flush(2), flush(3)), (Some(25.0), Some(25.0), Some(25.0), None));
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
