//! The gate of reference records: what a record must fulfil before others compare their machine with it.
//!
//! A reader of `records/` cannot ask the machine again, so that everything that can be checked in the
//! file alone is checked here. The limit gate ([`crate::gate`]) is one of the rules.

use crate::gate::{self, Verdict};
use crate::impossible::impossible;
use crate::{Answer, Design, Detail, Quantity, Record, Summary, TargetKind};
use lanemark_units::format_size;
use std::fmt;

/// A rule that a record breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The answer, as question, target, method and size; `None` for the record as a whole.
    pub answer: Option<String>,
    /// The rule.
    pub rule: Rule,
    /// The problem and what to try, without a full stop.
    pub text: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = self.answer.as_deref().unwrap_or("the record");
        write!(out, "{answer}: {} (rule '{}')", self.text, self.rule.name())
    }
}

/// A rule of reference records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Program, command, targets, and the machine of a measurement are named.
    Provenance,
    /// Every answer has the figure of its quantity, in its unit and of a plausible size.
    Units,
    /// Every summary is that of the samples.
    Samples,
    /// No rate exceeds its ceiling, and every byte arrived.
    Ceiling,
    /// No text contains a path of somebody's machine.
    Paths,
    /// The run was complete, and on real or simulated hardware.
    Complete,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 6] =
        [Rule::Provenance, Rule::Complete, Rule::Units, Rule::Samples, Rule::Ceiling, Rule::Paths];

    /// Name of the rule in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Provenance => "provenance",
            Rule::Units => "units",
            Rule::Samples => "samples",
            Rule::Ceiling => "ceiling",
            Rule::Paths => "paths",
            Rule::Complete => "complete",
        }
    }
}

/// Relative rounding error of a figure that is computed twice.
const ROUNDING: f64 = 1e-9;

/// Folders that are the same on every machine, so that a path below them tells nothing about its owner.
const SYSTEM_FOLDERS: [&str; 7] = ["/sys/", "/dev/", "/proc/", "/usr/", "/lib/", "/lib64/", "/etc/"];

/// The rules that `record` breaks, in the order of the record; empty for a reference record.
#[must_use]
pub fn breaches(record: &Record) -> Vec<Breach> {
    let mut found = Vec::new();
    let whole = |rule, text: &str| Breach { answer: None, rule, text: text.to_owned() };
    found.extend(provenance(record).into_iter().map(|text| whole(Rule::Provenance, &text)));
    found.extend(incomplete(record).into_iter().map(|text| whole(Rule::Complete, &text)));
    for answer in &record.answers {
        let of = |rule, text| Breach { answer: Some(about(answer)), rule, text };
        if !record.targets.iter().any(|target| target.name == answer.target) {
            found.push(of(Rule::Provenance, format!("the record does not list its target '{}'", answer.target)));
        }
        found.extend(wrong_unit(answer).map(|text| of(Rule::Units, text)));
        found.extend(other_samples(answer).map(|text| of(Rule::Samples, text)));
    }
    for judgement in gate::judgements(record) {
        // The text of the limit gate names the answer.
        let rule = match judgement.verdict {
            Verdict::Impossible => Rule::Ceiling,
            Verdict::FarBelow => Rule::Units,
            Verdict::AboveStandIn => continue,
        };
        found.push(whole(rule, &judgement.text));
    }
    found.extend(paths(record).into_iter().map(|text| whole(Rule::Paths, &text)));
    found
}

fn about(answer: &Answer) -> String {
    format!("{} on {}, {}, {}", answer.question, answer.target, answer.method, format_size(answer.size_bytes))
}

/// Whether the library and the host of a design are known.
fn is_whole(design: &Design) -> bool {
    design.library_bytes > 0 && !design.library_xxh3.is_empty() && design.platform.is_object()
}

fn provenance(record: &Record) -> Vec<String> {
    let mut missing = Vec::new();
    if record.tool.name.is_empty() || record.tool.version.is_empty() {
        missing.push("'tool' has no name or no version: use the file that the program wrote".to_owned());
    }
    if record.command.is_empty() {
        missing.push("'command' is empty: write the record with `lanemark bench --record FILE`".to_owned());
    }
    for target in &record.targets {
        match target.kind {
            TargetKind::Simulated
                if !target.design.as_ref().is_some_and(is_whole)
                    && (target.platform.is_none() || target.origins.is_none()) =>
            {
                missing.push(format!(
                    "target '{}' is simulated and has neither a platform with the origins of its numbers nor a design",
                    target.name
                ));
            }
            TargetKind::Real if record.written_unix_s.is_none() => {
                missing.push(format!("target '{}' is real and 'written_unix_s' is absent: no date", target.name));
            }
            TargetKind::Real if record.host.is_none() => {
                missing.push(format!("target '{}' is real and 'host' is absent: no processor", target.name));
            }
            _ => {}
        }
        if target.summary.is_empty() {
            missing.push(format!("target '{}' has no summary", target.name));
        }
    }
    missing
}

fn incomplete(record: &Record) -> Vec<String> {
    let mut problems = Vec::new();
    if record.interrupted {
        problems.push("the run was stopped early: measure again".to_owned());
    }
    if record.answers.is_empty() {
        problems.push("there are no answers".to_owned());
    }
    for target in &record.targets {
        let because = match target.kind {
            TargetKind::Emulated => Some("timings in an emulator are not meaningful"),
            TargetKind::Formula => Some("it has formulas only: simulate it with `lanemark bench`"),
            TargetKind::Imported => Some("a figure of another tool has no samples: measure with `lanemark bench`"),
            TargetKind::Simulated | TargetKind::Real => {
                target.runtime.as_ref().and_then(crate::Runtime::no_card_because)
            }
        };
        problems.extend(because.map(|because| format!("target '{}': {because}", target.name)));
    }
    problems
}

/// The figure of the answer's quantity, or that there is none; and figures that no summary has.
fn wrong_unit(answer: &Answer) -> Option<String> {
    let is_rate = answer.quantity == Quantity::Bandwidth;
    let (name, figure) = if is_rate {
        ("delivered_rate_bytes_per_s", answer.delivered_rate_bytes_per_s)
    } else {
        ("latency_ns", answer.latency_ns)
    };
    let quantity = answer.quantity.name();
    let Some(figure) = figure else {
        return Some(format!("its quantity is {quantity} and '{name}' is absent"));
    };
    let is_ordered = figure.min <= figure.p1
        && figure.p1 <= figure.median
        && figure.median <= figure.p99
        && figure.p99 <= figure.max;
    if !is_ordered || ![figure.min, figure.max, figure.mad].iter().all(|value| value.is_finite()) {
        return Some(format!("'{name}' is no summary: min, p1, median, p99 and max are not in ascending order"));
    }
    // The difference of two plans may be negative by chance; a time or a rate may not.
    (figure.min <= 0.0 && !answer.is_difference() && (is_rate || figure.median <= 0.0))
        .then(|| format!("'{name}' has {} where only figures above 0 are possible", figure.min))
        .or_else(|| impossible(answer))
}

/// A summary that is not that of the samples.
fn other_samples(answer: &Answer) -> Option<String> {
    if answer.samples_ns.is_empty() {
        return Some("'samples_ns' is empty: a record with a summary alone cannot be checked".to_owned());
    }
    let checked = |name: &str, written: Option<Summary>, samples: &[f64]| {
        let written = written?;
        let Some(own) = Summary::of(samples) else {
            return Some(format!("'{name}' is given, and 'samples_ns' has no sample that it could be of"));
        };
        if written.count != own.count {
            return Some(format!("'{name}' counts {} samples of {}", written.count, own.count));
        }
        let fields = [
            ("min", written.min, own.min),
            ("p1", written.p1, own.p1),
            ("median", written.median, own.median),
            ("p99", written.p99, own.p99),
            ("max", written.max, own.max),
            ("mad", written.mad, own.mad),
        ];
        // A difference that is not a number is no agreement.
        let is_same = |written: f64, own: f64| (written - own).abs() <= ROUNDING * own.abs().max(1e-3);
        let other = fields.iter().find(|(_, written, own)| !is_same(*written, *own));
        other
            .map(|(field, written, own)| format!("{field} of '{name}' is {written}, and that of 'samples_ns' is {own}"))
    };
    // A sample without any time has no rate, and counts in none.
    let timed = answer.samples_ns.iter().filter(|ns| **ns > 0.0);
    let rates: Vec<f64> = timed.map(|ns| answer.size_bytes as f64 * 1e9 / ns).collect();
    // A latency under load also has the rate of all loads, and concurrent flows the sum of theirs: neither is that of one
    // iteration.
    let is_of_samples = answer.quantity == Quantity::Bandwidth && !matches!(answer.detail, Some(Detail::Flows(_)));
    let delivered = answer.delivered_rate_bytes_per_s.filter(|_| is_of_samples);
    let uneven = || {
        let is_even = |raw: &crate::RawSamples| {
            [raw.issue_ns.len(), raw.delivered_ns.len()].iter().all(|len| *len == raw.round.len() || *len == 0)
        };
        let raw = answer.raw.iter().find(|raw| !is_even(raw))?;
        Some(format!("the lists of plan '{}' in 'raw' have different lengths", raw.plan))
    };
    checked("latency_ns", answer.latency_ns, &answer.samples_ns)
        .or_else(|| checked("delivered_rate_bytes_per_s", delivered, &rates))
        .or_else(uneven)
}

/// Paths of somebody's machine in any text of the record.
fn paths(record: &Record) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(value) = serde_json::to_value(record) else { return found };
    let mut open = vec![(String::new(), value)];
    while let Some((place, value)) = open.pop() {
        match value {
            serde_json::Value::String(text) => {
                if let Some(path) = path_in(&text) {
                    found.push(format!("'{place}' has the path {path}: replace it by the name of the file alone"));
                }
            }
            serde_json::Value::Array(values) => {
                open.extend(values.into_iter().enumerate().map(|(at, value)| (format!("{place}[{at}]"), value)));
            }
            serde_json::Value::Object(members) => open.extend(members.into_iter().map(|(key, value)| {
                let place = if place.is_empty() { key } else { format!("{place}.{key}") };
                (place, value)
            })),
            _ => {}
        }
    }
    found.sort();
    found
}

/// The first absolute path in a text that is not below a folder that every machine has.
fn path_in(text: &str) -> Option<&str> {
    let words = text.split(|c: char| c.is_whitespace() || "'\"`=,;()[]{}<>|".contains(c));
    let words = words.map(|word| word.rsplit_once("://").map_or(word, |(_, path)| path));
    words.into_iter().find(|word| {
        let is_unix = word.strip_prefix('/').is_some_and(|rest| rest.starts_with(char::is_alphanumeric))
            && word[1..].contains('/')
            && !SYSTEM_FOLDERS.iter().any(|folder| word.starts_with(folder));
        let bytes = word.as_bytes();
        let is_windows = bytes.len() > 3 && bytes[0].is_ascii_alphabetic() && matches!(&bytes[1..3], b":\\" | b":/");
        is_unix || is_windows || word.starts_with("~/")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{answer, target};
    use crate::{Bytes, Ceiling, CeilingKind, DeviceKind, Runtime};

    fn good_answer() -> Answer {
        let samples_ns = vec![1000.0, 1024.0, 1100.0];
        let rates: Vec<f64> = samples_ns.iter().map(|ns| 4096.0 * 1e9 / ns).collect();
        Answer { samples_ns, delivered_rate_bytes_per_s: Summary::of(&rates), ..answer("8", 4096, None) }
    }

    fn good() -> Record {
        let mut card = target(TargetKind::Simulated);
        card.summary = "a card".to_owned();
        card.platform = Some(serde_json::json!({"name": "card"}));
        card.origins = Some(crate::Origins::default());
        let mut record = Record::new(vec!["lanemark".to_owned(), "bench".to_owned()]);
        record.targets.push(card);
        record.answers.push(Answer { target: record.targets[0].name.clone(), ..good_answer() });
        record
    }

    fn broken(change: impl FnOnce(&mut Record)) -> Vec<(Rule, String)> {
        let mut record = good();
        change(&mut record);
        breaches(&record).into_iter().map(|breach| (breach.rule, breach.to_string())).collect()
    }

    #[track_caller]
    fn only(change: impl FnOnce(&mut Record), rule: Rule, words: &str) {
        let found = broken(change);
        let [(broken, text)] = found.as_slice() else { panic!("{found:?}") };
        assert!(*broken == rule && text.contains(words), "{found:?}");
        assert!(text.ends_with(&format!("(rule '{}')", rule.name())), "{text}");
    }

    #[test]
    fn a_record_that_keeps_every_rule_has_no_breach() {
        assert_eq!(broken(|_| {}), []);
    }

    #[test]
    fn a_record_without_provenance_is_refused() {
        only(|record| record.tool.version.clear(), Rule::Provenance, "no version");
        only(|record| record.command.clear(), Rule::Provenance, "'command' is empty");
        only(|record| record.targets[0].platform = None, Rule::Provenance, "neither a platform");
        let design = |library_xxh3: &str| Design {
            library: "card.so".to_owned(),
            library_bytes: 1,
            library_xxh3: library_xxh3.to_owned(),
            beat_bytes: 4,
            clock_ns: 16.0,
            platform: serde_json::json!({}),
        };
        let compiled = |digest: &'static str| {
            move |record: &mut Record| {
                (record.targets[0].platform, record.targets[0].design) = (None, Some(design(digest)));
            }
        };
        assert_eq!(broken(compiled("0123")), []);
        only(compiled(""), Rule::Provenance, "neither a platform");
        only(|record| record.answers[0].target = "other".to_owned(), Rule::Provenance, "its target 'other'");
        only(|record| record.targets[0].summary.clear(), Rule::Provenance, "no summary");
        let real = |record: &mut Record| record.targets[0].kind = TargetKind::Real;
        only(real, Rule::Provenance, "no date");
        only(
            |record| {
                real(record);
                record.written_unix_s = Some(1);
            },
            Rule::Provenance,
            "no processor",
        );
    }

    #[test]
    fn incomplete_emulated_and_processor_records_are_refused() {
        only(|record| record.interrupted = true, Rule::Complete, "stopped early");
        only(|record| record.answers.clear(), Rule::Complete, "no answers");
        only(|record| record.targets[0].kind = TargetKind::Emulated, Rule::Complete, "emulator");
        only(|record| record.targets[0].kind = TargetKind::Formula, Rule::Complete, "formulas only");
        let runtime = |device_kind, is_emulated| {
            move |record: &mut Record| {
                record.targets[0].runtime = Some(Runtime { device_kind, is_emulated, software: None });
            }
        };
        only(runtime(DeviceKind::Cpu, false), Rule::Complete, "the processor itself");
        only(runtime(DeviceKind::Gpu, true), Rule::Complete, "emulated");
        assert_eq!(broken(runtime(DeviceKind::Gpu, false)), []);
    }

    #[test]
    fn a_figure_in_another_unit_is_refused() {
        only(|record| record.answers[0].quantity = Quantity::Cost, Rule::Units, "'latency_ns' is absent");
        let found = broken(|record| {
            let summary = record.answers[0].delivered_rate_bytes_per_s.as_mut().unwrap();
            (summary.min, summary.max) = (summary.max, summary.min);
        });
        assert!(found.iter().any(|(rule, text)| *rule == Rule::Units && text.contains("ascending")), "{found:?}");
        only(|record| record.answers[0].issue_rate_bytes_per_s = Summary::of(&[-1.0]), Rule::Units, "is -1.0, below 0");
        // Megabytes per second: the samples say otherwise, too.
        let found = broken(|record| {
            record.answers[0].delivered_rate_bytes_per_s = Summary::of(&[4000.0, 4000.0, 4000.0]);
        });
        assert!(found.iter().any(|(rule, _)| *rule == Rule::Units), "{found:?}");
        assert!(found.iter().any(|(rule, _)| *rule == Rule::Samples), "{found:?}");
    }

    #[test]
    fn a_summary_of_other_samples_is_refused() {
        only(|record| record.answers[0].samples_ns[1] = 1024.001, Rule::Samples, "and that of 'samples_ns' is");
        only(|record| record.answers[0].samples_ns.push(1024.0), Rule::Samples, "counts 3 samples of 4");
        only(|record| record.answers[0].samples_ns.clear(), Rule::Samples, "is empty");
        assert_eq!(broken(|record| record.answers[0].samples_ns[1] = 1024.0 + 1e-8), [], "rounding");
        // A sample of zero has no rate: those of the others are checked, and their number.
        let zero = |change: fn(&mut Answer)| {
            move |record: &mut Record| {
                record.answers[0].samples_ns.push(0.0);
                change(&mut record.answers[0]);
            }
        };
        assert_eq!(broken(zero(|_| {})), []);
        let forged = |answer: &mut Answer| {
            let rates = answer.delivered_rate_bytes_per_s.as_mut().unwrap();
            (rates.median, rates.p99, rates.max) = (5e9, 5e9, 5e9);
        };
        only(zero(forged), Rule::Samples, "and that of 'samples_ns' is");
        only(zero(|answer| answer.samples_ns = vec![0.0; 3]), Rule::Samples, "no sample that it could be of");
        let raw = |issue_ns: Vec<f64>| crate::RawSamples { round: vec![0], issue_ns, ..crate::RawSamples::default() };
        only(|record| record.answers[0].raw = vec![raw(vec![1.0, 2.0])], Rule::Samples, "different lengths");
        assert_eq!(broken(|record| record.answers[0].raw = vec![raw(vec![1.0])]), []);
    }

    #[test]
    fn a_rate_above_its_ceiling_and_missing_bytes_are_refused() {
        let ceiling = |rate| {
            move |record: &mut Record| {
                let kind = CeilingKind::Computed;
                record.answers[0].ceiling = Ceiling { kind, rate_bytes_per_s: Some(rate), because: "x".to_owned() };
            }
        };
        assert_eq!(broken(ceiling(4e9)), [], "a rate at its ceiling");
        only(ceiling(3.99e9), Rule::Ceiling, "of the limit");
        let bytes = Some(Bytes { claimed_bytes: 2, confirmed_bytes: 1 });
        only(|record| record.answers[0].bytes = bytes, Rule::Ceiling, "1 of 2 bytes arrived");
    }

    #[test]
    fn a_path_of_somebodys_machine_is_refused_and_one_of_every_machine_is_not() {
        let with = |text: &str| {
            let text = text.to_owned();
            move |record: &mut Record| record.command.push(text)
        };
        for path in ["/tmp/x/card.toml", concat!("--twin=/", "home/me/card.toml"), "C:\\Users\\me", "~/x.json"] {
            only(with(path), Rule::Paths, "'command[2]' has the path");
        }
        for text in ["/sys/bus/pci", "/usr/lib/libOpenCL.so.1", "4 GB/s", "records/x.json", "n/a", "1/2", "/proc/x"] {
            assert_eq!(broken(with(text)), [], "{text}");
        }
    }
}
