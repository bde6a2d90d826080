//! The limit gate, which detects impossible figures.
//!
//! Checks every delivered rate against its ceiling, and every expected byte against the confirmed
//! ones. The gate reads records only, so it also judges records of other machines.

use crate::{Answer, CeilingKind, Quantity, Record, TargetKind};
use lanemark_method::{Access, Method, Width};
use lanemark_units::format_size;

/// A judgement of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The answer, the problem and its likely cause, without a full stop.
    pub text: String,
}

/// Verdict on an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Impossible: a rate above a computed ceiling, or bytes that did not arrive.
    Impossible,
    /// Possible but unexplained; usually a unit is wrong.
    FarBelow,
    /// Above a ceiling that is measured on a stand-in.
    AboveStandIn,
}

/// The judgements of a record as sentences, by weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Impossible answers.
    pub impossible: Vec<String>,
    /// Other remarkable answers.
    pub others: Vec<String>,
}

/// The [`judgements`] of a record, by weight.
#[must_use]
pub fn judge(record: &Record) -> Judged {
    let mut judged = Judged::default();
    for Judgement { verdict, text } in judgements(record) {
        match verdict {
            Verdict::Impossible => judged.impossible.push(text),
            Verdict::FarBelow | Verdict::AboveStandIn => judged.others.push(text),
        }
    }
    judged
}

/// Relative rounding error of two figures computed in floating point.
const ROUNDING: f64 = 1e-9;

/// Smallest factor between formula and rate that counts as far below. The simulation of the default
/// card, with several constraints at once, stays within a factor of 1.2. A factor of 8, from bits
/// instead of bytes, is too small to be detected here.
const FAR_BELOW_FORMULA: f64 = 30.0;

/// Longest plausible round trip: ten times that of a register behind several switches. A method
/// with one access per round trip is the slowest.
const SLOWEST_ROUND_TRIP_NS: f64 = 10_000.0;

/// Judges `record`, answer by answer; exceeded stand-ins give one judgement per question and
/// target.
///
/// Rates from an emulator, or from a device that is the processor itself, are not checked, because
/// they are not those of a link. Their bytes are checked.
#[must_use]
pub fn judgements(record: &Record) -> Vec<Judgement> {
    let mut found = Vec::new();
    let mut above: Vec<(&str, &str, u64, f64)> = Vec::new();
    for answer in &record.answers {
        let target = record.targets.iter().find(|target| target.name == answer.target);
        let is_no_card = target.and_then(|target| target.runtime.as_ref()?.no_card_because()).is_some();
        let is_held = !is_no_card && target.is_none_or(|target| target.kind != TargetKind::Emulated);
        if let Some(text) = lost_bytes(answer) {
            found.push(Judgement { verdict: Verdict::Impossible, text });
            continue;
        }
        let rate = answer.delivered_rate_bytes_per_s.map(|summary| summary.median);
        let Some(rate) = rate.filter(|_| is_held) else { continue };
        let ceiling = answer.ceiling.rate_bytes_per_s.filter(|ceiling| rate > ceiling * (1.0 + ROUNDING));
        match (ceiling, answer.ceiling.kind) {
            (Some(ceiling), CeilingKind::Computed) => {
                found.push(Judgement { verdict: Verdict::Impossible, text: above_ceiling(answer, rate, ceiling) });
            }
            (Some(ceiling), CeilingKind::Measured) => {
                let percent = 100.0 * (rate / ceiling - 1.0);
                match above.iter_mut().find(|(question, target, ..)| (*question, *target) == key(answer)) {
                    Some((.., count, most)) => (*count, *most) = (*count + 1, most.max(percent)),
                    None => above.push((&answer.question, &answer.target, 1, percent)),
                }
            }
            _ => {
                if let Some(text) = far_below(answer, rate) {
                    found.push(Judgement { verdict: Verdict::FarBelow, text });
                }
            }
        }
    }
    found.extend(above.into_iter().map(|(question, target, count, most)| {
        let answers = if count == 1 { "1 answer lies".to_owned() } else { format!("{count} answers lie") };
        let text = format!(
            "{question} on {target}: {answers} up to {} % above the ceiling; it is a measured stand-in, not a strict \
             limit",
            figure(most)
        );
        Judgement { verdict: Verdict::AboveStandIn, text }
    }));
    found
}

fn key(answer: &Answer) -> (&str, &str) {
    (&answer.question, &answer.target)
}

fn about(answer: &Answer) -> String {
    format!("{} on {}, {}, {}", answer.question, answer.target, answer.method, format_size(answer.size_bytes))
}

fn lost_bytes(answer: &Answer) -> Option<String> {
    let bytes = answer.bytes?;
    let (claimed, confirmed) = (bytes.claimed_bytes, bytes.confirmed_bytes);
    let is_dma = matches!(answer.method, Method::Dma { .. });
    let cause = match confirmed.checked_mul(2) {
        Some(twice) if twice == claimed && claimed > 0 => "; likely cause: half of the buffers were submitted",
        Some(0) if is_dma => "; likely cause: transfers that failed and count as if they were complete",
        Some(twice) if is_dma && twice < claimed => {
            "; likely cause: short transfers, which count as if they were complete"
        }
        _ => "",
    };
    (claimed != confirmed)
        .then(|| format!("{}: {confirmed} of {claimed} bytes arrived; the figure is invalid{cause}", about(answer)))
}

fn above_ceiling(answer: &Answer, rate: f64, ceiling: f64) -> String {
    let cause = cause(answer, rate, ceiling).map_or_else(
        || {
            "likely causes: wrong size, issue time used as delivery time, seconds lost by a timer, half of the \
             buffers submitted"
                .to_owned()
        },
        |cause| format!("likely cause: {cause}"),
    );
    let because = &answer.ceiling.because;
    let times = rate / ceiling;
    // A share close to 100 % needs more digits to differ from the limit.
    let share = if times < 1.01 { format!("{:.4} %", 100.0 * times) } else { format!("{} times", figure(times)) };
    format!(
        "{}: {} B/s, {share} of the limit of {} B/s ({because}); {cause}",
        about(answer),
        exact(rate),
        exact(ceiling)
    )
}

/// The likely cause, from the data of the answer.
fn cause(answer: &Answer, rate: f64, ceiling: f64) -> Option<String> {
    let bytes = (answer.size_bytes as f64) * answer.passes as f64;
    if let Some(payload) = answer.tlps.map(|tlps| tlps.payload_bytes as f64).filter(|payload| *payload > 0.0)
        && payload <= 0.75 * bytes
    {
        let half = if near(payload * 2.0, bytes, 0.01) { "half" } else { "a part" };
        return Some(format!(
            "{half} of the buffers were submitted: {payload:.0} of {bytes:.0} bytes crossed the link"
        ));
    }
    let pass_ns = median(&answer.samples_ns);
    if let Some(counted) =
        pass_ns.map(|ns| rate * ns / 1e9).filter(|counted| !near(*counted, answer.size_bytes as f64, 0.01))
    {
        let size = answer.size_bytes;
        return Some(format!("wrong size: rate and time give {counted:.0} B per iteration instead of {size} B"));
    }
    let (least_s, claimed_s) = (bytes / ceiling, bytes / rate);
    if least_s >= 1.0 && claimed_s < 1.0 {
        return Some(format!(
            "seconds lost by a timer: at the limit a sample takes {} s, and {} s were reported",
            figure(least_s),
            figure(claimed_s)
        ));
    }
    let is_load = answer.question.contains("read") || answer.question.contains("load");
    let issue = answer.issue_rate_bytes_per_s.map(|summary| summary.median).filter(|_| !is_load);
    if issue.is_some_and(|issue| near(issue, rate, 0.001)) {
        return Some("issue time used as delivery time: both rates are equal".to_owned());
    }
    let expected = answer.formula.as_ref().and_then(|formula| formula.delivered_rate_bytes_per_s).unwrap_or(ceiling);
    near(rate, 2.0 * expected, 0.1)
        .then(|| "half of the buffers submitted, or each byte counted twice: the rate is twice the limit".to_owned())
}

fn far_below(answer: &Answer, rate: f64) -> Option<String> {
    // The time of a runtime call does not depend on the bytes that it moves.
    if answer.quantity != Quantity::Bandwidth || matches!(answer.method, Method::RuntimeCopy { .. }) {
        return None;
    }
    let formula = answer.formula.as_ref().and_then(|formula| formula.delivered_rate_bytes_per_s);
    let (bound, what) = if let Some(formula) = formula {
        (formula / FAR_BELOW_FORMULA, format!("its formula gives {} B/s", exact(formula)))
    } else {
        let bytes = answer.method.access().and_then(Access::width).map_or(1, Width::bytes);
        let slowest = bytes as f64 * 1e9 / SLOWEST_ROUND_TRIP_NS;
        (slowest, format!("one access every 10 us would be {} B/s", exact(slowest)))
    };
    (rate < bound)
        .then(|| format!("{}: {} B/s is far below every bound, check units; {what}", about(answer), exact(rate)))
}

fn median(values: &[f64]) -> Option<f64> {
    crate::Summary::of(values).map(|summary| summary.median).filter(|median| *median > 0.0)
}

fn near(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() <= share * other.abs()
}

fn figure(value: f64) -> String {
    let decimals = (2.0 - value.abs().max(1e-3).log10().floor()).clamp(0.0, 5.0) as usize;
    format!("{value:.decimals$}")
}

/// Formats a rate with a resolution of one part in a million.
fn exact(rate: f64) -> String {
    format!("{rate:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{answer, record, target};
    use crate::{Bytes, Ceiling, Formula, Summary, Tlps};
    use crate::{DeviceKind, Runtime};
    use lanemark_method::{Allocation, CopyDirection, HostWait, Reach};

    fn held(rate: f64, ceiling: f64, kind: CeilingKind) -> Answer {
        let ceiling = Ceiling { kind, rate_bytes_per_s: Some(ceiling), because: "a test".to_owned() };
        Answer { ceiling, ..answer("8", 4096, Some(rate)) }
    }

    fn verdicts(answers: Vec<Answer>) -> Vec<Verdict> {
        judgements(&record(answers)).into_iter().map(|judgement| judgement.verdict).collect()
    }

    fn only_text(answer: Answer) -> String {
        let [judgement] = judgements(&record(vec![answer])).try_into().unwrap();
        judgement.text
    }

    #[test]
    fn a_rate_at_the_ceiling_is_accepted_and_one_above_it_is_impossible() {
        for ceiling in [1e8, 3.0e9, 15_753_846_153.846_153, 63e9 / 7.0] {
            assert_eq!(verdicts(vec![held(ceiling, ceiling, CeilingKind::Computed)]), []);
            // The same limit after some arithmetic.
            assert_eq!(verdicts(vec![held(ceiling / 3.0 * 3.0, ceiling, CeilingKind::Computed)]), []);
            let above = held(ceiling * (1.0 + 1e-6), ceiling, CeilingKind::Computed);
            assert_eq!(verdicts(vec![above]), [Verdict::Impossible]);
        }
    }

    #[test]
    fn an_exceeded_stand_in_is_reported_once_per_question_without_error() {
        let answers = vec![held(1.5e9, 1e9, CeilingKind::Measured), held(1.25e9, 1e9, CeilingKind::Measured)];
        let judged = judgements(&record(answers));
        assert_eq!(judged.len(), 1);
        assert_eq!(judged[0].verdict, Verdict::AboveStandIn);
        assert!(judged[0].text.contains("2 answers lie up to 50.0 % above the ceiling"), "{}", judged[0].text);
    }

    #[test]
    fn one_missing_byte_makes_an_answer_impossible() {
        let lost = |confirmed_bytes| Answer {
            bytes: Some(Bytes { claimed_bytes: 4096, confirmed_bytes }),
            ..held(1e9, 2e9, CeilingKind::Computed)
        };
        assert_eq!(verdicts(vec![lost(4096)]), []);
        assert_eq!(verdicts(vec![lost(4095)]), [Verdict::Impossible]);
        assert!(only_text(lost(2048)).contains("half of the buffers were submitted"));
        assert!(only_text(lost(0)).ends_with("0 of 4096 bytes arrived; the figure is invalid"));
    }

    #[test]
    fn dma_of_less_than_half_of_its_bytes_was_short_or_has_failed() {
        let of_dma = |confirmed_bytes| {
            let method = Method::Dma { flows: Vec::new(), outstanding: None, reach: Reach::default() };
            let bytes = Some(Bytes { claimed_bytes: 4096, confirmed_bytes });
            only_text(Answer { method, bytes, ..held(1e9, 2e9, CeilingKind::Computed) })
        };
        assert!(of_dma(0).ends_with("likely cause: transfers that failed and count as if they were complete"));
        assert!(of_dma(2047).ends_with("likely cause: short transfers, which count as if they were complete"));
        assert!(of_dma(2048).ends_with("half of the buffers were submitted"));
        assert!(of_dma(4095).ends_with("4095 of 4096 bytes arrived; the figure is invalid"));
    }

    #[test]
    fn more_than_thirty_times_below_the_formula_is_far_below() {
        let below = |times: f64| {
            let formula = Formula {
                latency_ns: None,
                delivered_rate_bytes_per_s: Some(3e9),
                bound: Some("link".to_owned()),
                cause: Some("link_busy".to_owned()),
                holds_for: "a test".to_owned(),
            };
            Answer { formula: Some(formula), ..held(3e9 / times, 4e9, CeilingKind::Computed) }
        };
        assert_eq!(verdicts(vec![below(30.0)]), []);
        assert_eq!(verdicts(vec![below(30.001)]), [Verdict::FarBelow]);
        assert!(only_text(below(278.0)).contains("far below every bound, check units"));
    }

    #[test]
    fn without_a_formula_the_threshold_is_one_access_per_ten_microseconds() {
        let slow = |access: &str, rate| verdicts(vec![answer(access, 64, Some(rate))]);
        assert_eq!(slow("8", 0.8e6), []);
        assert_eq!(slow("8", 0.799e6), [Verdict::FarBelow]);
        assert_eq!(slow("movdir64b", 6.4e6), []);
        assert_eq!(slow("memcpy", 0.1e6), []);
        assert_eq!(slow("memcpy", 0.099e6), [Verdict::FarBelow]);
        let mut copy = answer("memcpy", 1, Some(17_000.0));
        assert_eq!(verdicts(vec![copy.clone()]), [Verdict::FarBelow]);
        copy.method = Method::RuntimeCopy {
            direction: CopyDirection::ToDevice,
            wait: HostWait::Event,
            allocation: Allocation::Device,
        };
        assert_eq!(verdicts(vec![copy]), [], "a call into a runtime may take 60 us");
    }

    #[test]
    fn the_likely_cause_is_derived_from_the_answer() {
        let above = || Answer { samples_ns: vec![4096.0 / 4.0], ..held(4e9, 2e9, CeilingKind::Computed) };
        let text = |answer: Answer| only_text(answer).split_once("likely cause").unwrap().1.to_owned();
        let tlps = |payload_bytes| Some(Tlps { writes: 1, reads: 0, completions: 0, payload_bytes });
        assert!(
            text(Answer { tlps: tlps(2048), ..above() }).contains("half of the buffers were submitted: 2048 of 4096")
        );
        assert!(text(Answer { tlps: tlps(512), ..above() }).contains("a part of the buffers"));
        let counted = text(Answer { samples_ns: vec![4096.0], ..above() });
        assert!(
            counted.contains("wrong size: rate and time give 16384 B per iteration instead of 4096 B"),
            "{counted}"
        );
        let issued = Answer { issue_rate_bytes_per_s: Summary::of(&[4e9]), ..above() };
        assert!(text(issued).contains("issue time used as delivery time"));
        let long = Answer {
            passes: 1 << 20,
            size_bytes: 4096,
            samples_ns: vec![512.0],
            ..held(8e9, 2e9, CeilingKind::Computed)
        };
        assert!(text(long).contains("seconds lost by a timer: at the limit a sample takes 2.15 s, and 0.537 s"));
        assert!(text(above()).contains("twice the limit"));
        let five = Answer { samples_ns: vec![409.6], ..held(10e9, 2e9, CeilingKind::Computed) };
        assert!(text(five).starts_with("s: wrong size, issue time"));
    }

    #[test]
    fn emulated_answers_are_checked_for_their_bytes_only() {
        let lost = Some(Bytes { claimed_bytes: 2, confirmed_bytes: 1 });
        let fast = held(4e9, 2e9, CeilingKind::Computed);
        let mut record = record(vec![fast.clone(), Answer { bytes: lost, ..fast }]);
        record.targets.push(target(TargetKind::Emulated));
        assert_eq!(judgements(&record).len(), 1);
    }

    #[test]
    fn rates_of_a_processor_device_are_not_checked() {
        let mut record = record(vec![held(4e9, 2e9, CeilingKind::Computed)]);
        record.targets.push(target(TargetKind::Real));
        for (device_kind, impossible) in [(DeviceKind::Cpu, 0), (DeviceKind::Accelerator, 1)] {
            record.targets[0].runtime = Some(Runtime { device_kind, is_emulated: false, software: None });
            assert_eq!(judgements(&record).len(), impossible);
        }
    }
}
