//! The number of buffers, decided from several curves.
//!
//! A count needs two curves that agree, and a confidence of two in three: the probability that a
//! further curve shows the same count, by Laplace's rule of succession. A curve without a count
//! differs too, unless no curve of its access has one.

use crate::effort::Effort;
use crate::error::BenchError;
use lanemark_machine::TimeBase;
use lanemark_record::{Answer, Buffers, CurvePoint, Detail, Summary, doubts};

/// Smallest number of curves that show a count.
const AGREEING: u64 = 2;
/// Smallest confidence of a count, in percent.
const CONFIDENT_PERCENT: f64 = 200.0 / 3.0;
/// Curves of one access.
#[derive(Default)]
pub(crate) struct Curves {
    pub(crate) count: u64,
    /// The counts that they show.
    pub(crate) counts: Vec<u64>,
    /// Reason of the last curve without a count.
    pub(crate) because: Option<String>,
}

impl Curves {
    pub(crate) fn add(&mut self, found: Result<u64, String>) {
        self.count += 1;
        match found {
            Ok(count) => self.counts.push(count),
            Err(because) => self.because = Some(because),
        }
    }

    /// Whether two curves agree, on a count or on none, and few differ.
    pub(crate) fn are_enough(&self) -> bool {
        let without = self.count - self.counts.len() as u64;
        let agreeing = most_frequent(&self.counts).map_or(0, |(_, times)| times).max(without);
        agreeing >= AGREEING && confidence_percent(agreeing, self.count) >= CONFIDENT_PERCENT
    }
}

/// The count that is found most often, and how often; the smaller one of two.
fn most_frequent(counts: &[u64]) -> Option<(u64, u64)> {
    let times = |count: u64| counts.iter().filter(|other| **other == count).count() as u64;
    counts.iter().map(|count| (*count, times(*count))).max_by_key(|(count, times)| (*times, u64::MAX - count))
}

/// Probability that a further curve agrees, by Laplace's rule of succession.
fn confidence_percent(agreeing: u64, curves: u64) -> f64 {
    100.0 * (agreeing + 1) as f64 / (curves + 2) as f64
}

/// Decides the number of buffers from the curves of all accesses to one memory, in answers of one
/// target; other answers are unchanged. Adds the cost of a flush, which differs by access.
pub(crate) fn conclude(answers: &mut [Result<Answer, BenchError>], time_base: TimeBase, effort: &Effort) {
    let found = |answer: &Result<Answer, BenchError>| match answer {
        Ok(Answer { detail: Some(Detail::Buffers(buffers)), method, .. }) => {
            Some((method.memory_type(), buffers.curves, buffers.other_counts.clone()))
        }
        _ => None,
    };
    let all: Vec<_> = answers.iter().filter_map(found).collect();
    for answer in answers.iter_mut().flatten() {
        let memory_type = answer.method.memory_type();
        let Some(Detail::Buffers(buffers)) = &mut answer.detail else { continue };
        // An access whose curves all lack a step does not show the buffers, so it has no say. Its partial
        // writes may be too few for a step.
        let of_memory = || all.iter().filter(|(other, ..)| *other == memory_type);
        let has_step = of_memory().any(|(_, _, counts)| !counts.is_empty());
        let here = || of_memory().filter(|(_, _, counts)| !has_step || !counts.is_empty());
        let counts: Vec<u64> = here().flat_map(|(_, _, counts)| counts.iter().copied()).collect();
        decide(buffers, here().map(|(_, curves, _)| curves).sum(), counts, time_base);
        let flushes: Vec<f64> = buffers.count.into_iter().flat_map(|count| beyond(buffers, count)).collect();
        answer.latency_ns = Summary::of(&flushes);
        answer.samples_ns = flushes;
        if time_base != TimeBase::Simulated {
            let dropped = answer.dropped.unwrap_or_default();
            // Without a count there is no figure, for the reason in the details.
            answer.doubts = match answer.latency_ns {
                Some(_) => doubts(&answer.samples_ns, dropped, effort.interval_percent),
                None => Vec::new(),
            };
        }
    }
}

/// Sets the count, or the reason why there is none, and the cost of a flush.
fn decide(buffers: &mut Buffers, curves: u64, mut counts: Vec<u64>, time_base: TimeBase) {
    counts.sort_unstable();
    buffers.curves = curves;
    let Some((count, agreeing)) = most_frequent(&counts) else {
        // Every curve has a reason, and the last one of this access is there already.
        (buffers.agreeing_curves, buffers.other_counts) = (0, counts);
        return;
    };
    let in_all = |words: &str| match curves {
        1 => String::new(),
        _ if agreeing == curves => format!("{words}, in all {curves} curves"),
        _ => {
            let without = curves - counts.len() as u64;
            let others: Vec<String> = counts.iter().filter(|other| **other != count).map(u64::to_string).collect();
            let others = [
                (!others.is_empty()).then(|| format!("others show {}", others.join(", "))),
                (without > 0).then(|| format!("{without} show none")),
            ];
            let others: Vec<String> = others.into_iter().flatten().collect();
            format!("{words}, in {agreeing} of {curves} curves; {}", others.join(" and "))
        }
    };
    buffers.agreeing_curves = agreeing;
    let is_simulated = time_base == TimeBase::Simulated;
    let confidence = confidence_percent(agreeing, curves);
    if !is_simulated && (agreeing < AGREEING || confidence < CONFIDENT_PERCENT) {
        let most = format!("the curves do not agree: most show {count} lines");
        buffers.because = if curves == 1 { "there is only one curve".to_owned() } else { in_all(&most) };
        buffers.other_counts = counts;
        return;
    }
    buffers.count = Some(count);
    buffers.confidence_percent = (!is_simulated).then_some(confidence);
    buffers.because = match steps_at(&buffers.curve, count) {
        Some((at, next)) => {
            let step = format!(
                "a line takes {:.1} ns with {count} open lines and {:.1} ns with {}",
                at.line_ns_p5, next.line_ns_p5, next.lines
            );
            step.clone() + &in_all("")
        }
        None => in_all("the step of other accesses"),
    };
    buffers.other_counts = counts.into_iter().filter(|other| *other != count).collect();
    let flushes: Vec<f64> = beyond(buffers, count).collect();
    let flush = Summary::of(&flushes);
    buffers.flush_ns = flush.map(|flush| flush.median);
    buffers.flush_spread_percent =
        flush.map(|flush| 100.0 * (flush.max - flush.median).max(flush.median - flush.min) / flush.median);
}

/// The points of a curve before and after a count.
fn steps_at(curve: &[CurvePoint], count: u64) -> Option<(CurvePoint, CurvePoint)> {
    let place = curve.iter().position(|point| point.lines == count)?;
    Some((curve[place], *curve.get(place + 1)?))
}

/// Time of a flush for each number of lines beyond `count`.
fn beyond(buffers: &Buffers, count: u64) -> impl Iterator<Item = f64> {
    let flushes = buffers.flushes_per_line as f64;
    buffers.curve.iter().filter(move |point| point.lines > count).map(move |point| point.line_ns_median / flushes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(line_ns: impl Fn(u64) -> f64) -> Vec<CurvePoint> {
        let point = |lines| CurvePoint { lines, line_ns_p5: line_ns(lines), line_ns_median: line_ns(lines) };
        (1..=40).map(point).collect()
    }

    /// The decision from curves with these counts; 0 for a curve without one.
    fn decided(curve: Vec<CurvePoint>, counts: &[u64], time_base: TimeBase) -> Buffers {
        let mut buffers = Buffers {
            count: None,
            because: "there is no step".to_owned(),
            curves: 0,
            agreeing_curves: 0,
            other_counts: vec![],
            confidence_percent: None,
            flushes_per_line: 8,
            flush_ns: None,
            flush_spread_percent: None,
            curve,
        };
        let shown = counts.iter().copied().filter(|count| *count > 0).collect();
        decide(&mut buffers, counts.len() as u64, shown, time_base);
        buffers
    }

    fn real(counts: &[u64]) -> Buffers {
        decided(curve(|lines| if lines <= 16 { 21.0 } else { 368.0 + (lines % 3) as f64 }), counts, TimeBase::Real)
    }

    #[test]
    fn curves_that_agree_give_the_count_the_confidence_and_the_cost_of_a_flush() {
        let found = real(&[16, 16]);
        assert_eq!((found.count, found.curves, found.agreeing_curves), (Some(16), 2, 2));
        assert_eq!(found.confidence_percent, Some(75.0));
        assert!((found.flush_ns.unwrap() - 46.125).abs() < 1e-9 && found.flush_spread_percent.unwrap() < 1.0);
        assert_eq!(found.because, "a line takes 21.0 ns with 16 open lines and 370.0 ns with 17, in all 2 curves");
    }

    #[test]
    fn one_curve_is_not_enough_on_a_real_machine_and_is_in_a_simulation() {
        let found = real(&[16]);
        assert_eq!((found.count, found.flush_ns), (None, None));
        assert_eq!((found.because.as_str(), found.other_counts), ("there is only one curve", vec![16]));
        let simulated = decided(curve(|lines| if lines <= 16 { 21.0 } else { 368.0 }), &[16], TimeBase::Simulated);
        assert_eq!((simulated.count, simulated.confidence_percent), (Some(16), None));
        assert_eq!(simulated.because, "a line takes 21.0 ns with 16 open lines and 368.0 ns with 17");
    }

    #[test]
    fn a_curve_that_differs_is_named_and_too_many_of_them_give_no_count() {
        let found = real(&[16, 14, 16, 16, 0, 16, 16]);
        assert_eq!((found.count, found.other_counts.as_slice()), (Some(16), &[14][..]));
        assert!(found.because.ends_with("in 5 of 7 curves; others show 14 and 1 show none"), "{}", found.because);
        let refused = real(&[16, 14, 16]);
        assert_eq!((refused.count, refused.confidence_percent, refused.flush_ns), (None, None, None));
        assert_eq!(refused.because, "the curves do not agree: most show 16 lines, in 2 of 3 curves; others show 14");
        // Tight: three of four are two in three.
        assert_eq!((real(&[16, 14, 16, 16]).count, real(&[16, 0, 0, 16, 16]).count), (Some(16), None));
    }

    #[test]
    fn curves_without_a_step_keep_their_reason() {
        let found = real(&[0, 0]);
        assert_eq!((found.count, found.because.as_str()), (None, "there is no step"));
    }

    #[test]
    fn curves_are_added_until_two_agree_and_few_differ() {
        let enough = |counts: &[u64]| {
            let mut curves = Curves::default();
            for count in counts {
                curves.add(if *count > 0 { Ok(*count) } else { Err("no step".to_owned()) });
            }
            curves.are_enough()
        };
        assert!(enough(&[16, 16]) && enough(&[0, 0]) && enough(&[16, 14, 16, 16]));
        assert!(!enough(&[16]) && !enough(&[16, 14]) && !enough(&[16, 14, 16]) && !enough(&[16, 0]));
    }
}
