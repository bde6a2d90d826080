//! What a record means: which way to use, and why.
//!
//! Reads answers only; it measures nothing and knows no machine.

#![forbid(unsafe_code)]

use lanemark_record::{Advice, Answer, Quantity, Record};

/// The best way per target, bandwidth question and size, where there is more than one to choose from.
///
/// Best is the highest median of the delivered rate; among equals the one asked first.
#[must_use]
pub fn best_ways(record: &Record) -> Vec<Advice> {
    let mut groups: Vec<(&str, &str, u64)> = Vec::new();
    for answer in record.answers.iter().filter(|answer| answer.quantity == Quantity::Bandwidth) {
        let key = (answer.target.as_str(), answer.question.as_str(), answer.size_bytes);
        if !groups.contains(&key) {
            groups.push(key);
        }
    }
    groups
        .into_iter()
        .filter_map(|(target, question, size)| {
            let of_group = |answer: &&Answer| {
                answer.target == target && answer.question == question && answer.size_bytes == size
            };
            best(record.answers.iter().filter(of_group))
        })
        .collect()
}

fn best<'a>(answers: impl Iterator<Item = &'a Answer>) -> Option<Advice> {
    let mut rated: Vec<(&Answer, f64)> = answers.filter_map(|answer| Some((answer, rate(answer)?))).collect();
    rated.sort_by(|a, b| b.1.total_cmp(&a.1));
    let ((first, fastest), (last, slowest)) = (*rated.first()?, *rated.last()?);
    if rated.len() < 2 {
        return None;
    }
    Some(Advice {
        question: first.question.clone(),
        target: first.target.clone(),
        size_bytes: first.size_bytes,
        way: first.way.clone(),
        delivered_rate_bytes_per_s_median: fastest,
        times_the_slowest: fastest / slowest,
        reason: reason(first, last),
    })
}

fn rate(answer: &Answer) -> Option<f64> {
    let measured = answer.delivered_rate_bytes_per_s.map(|summary| summary.median);
    let said = answer.formula.as_ref().and_then(|formula| formula.delivered_rate_bytes_per_s);
    measured.or(said).filter(|rate| *rate > 0.0)
}

/// What holds the fastest back, and what the slowest pays for.
fn reason(fastest: &Answer, slowest: &Answer) -> String {
    let tlps = |answer: &Answer| {
        let tlps = answer.tlps?;
        Some((tlps.writes + tlps.reads) as f64 / answer.passes.max(1) as f64)
    };
    let mut parts = Vec::new();
    if let (Some(few), Some(many)) = (tlps(fastest), tlps(slowest))
        && few < many
    {
        parts.push(format!("it takes {few:.0} request TLPs where {} takes {many:.0}", slowest.way));
    }
    if let Some(wait) = slowest.waits.first().filter(|wait| wait.cause != "issue") {
        parts.push(format!("with {} {} ({:.0} % of the time)", slowest.way, wait.explanation, wait.share_percent));
    }
    match fastest.waits.first() {
        Some(wait) if wait.share_percent >= 1.0 => parts.push(format!("what is left: {}", wait.explanation)),
        _ => {}
    }
    if parts.is_empty() { format!("measured fastest; {} is slowest", slowest.way) } else { parts.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_record::{Ceiling, CeilingKind, SCHEMA, Summary, Tool, Way};

    fn answer(access: &str, size_bytes: u64, rate: Option<f64>) -> Answer {
        Answer {
            question: "mmio_write_bandwidth".to_owned(),
            target: "card".to_owned(),
            way: Way {
                memory_type: "wc".to_owned(),
                access: access.to_owned(),
                fence: None,
                through: "user".to_owned(),
            },
            size_bytes,
            alignment_bytes: 0,
            quantity: Quantity::Bandwidth,
            latency_ns: None,
            issue_rate_bytes_per_s: None,
            delivered_rate_bytes_per_s: rate.and_then(|rate| Summary::of(&[rate])),
            ceiling: Ceiling { kind: CeilingKind::Unknown, rate_bytes_per_s: None, because: "a test".to_owned() },
            share_of_ceiling_percent: None,
            waits: vec![],
            formula: None,
            tlps: None,
            bytes: None,
            timer_cost_ns: 0.0,
            passes: 1,
            samples_ns: vec![],
            fit: None,
        }
    }

    fn record(answers: Vec<Answer>) -> Record {
        Record {
            schema: SCHEMA,
            tool: Tool { name: "lanemark".to_owned(), version: "0".to_owned() },
            command: vec![],
            written_unix_s: None,
            targets: vec![],
            answers,
            skipped: vec![],
            warnings: vec![],
            advice: vec![],
            interrupted: false,
        }
    }

    #[test]
    fn the_fastest_way_of_each_size_is_advised_with_its_margin() {
        let advice = best_ways(&record(vec![
            answer("4", 64, Some(1e9)),
            answer("memcpy", 64, Some(4e9)),
            answer("4", 128, Some(3e9)),
            answer("memcpy", 128, Some(2e9)),
        ]));
        let found: Vec<(u64, &str, f64)> =
            advice.iter().map(|advice| (advice.size_bytes, advice.way.access.as_str(), advice.times_the_slowest)).collect();
        assert_eq!(found, [(64, "memcpy", 4.0), (128, "4", 1.5)]);
    }

    #[test]
    fn among_equals_the_first_asked_is_advised() {
        let advice = best_ways(&record(vec![answer("8", 64, Some(1e9)), answer("4", 64, Some(1e9))]));
        assert_eq!(advice[0].way.access, "8");
    }

    #[test]
    fn nothing_is_advised_where_there_is_no_choice_or_no_rate() {
        assert_eq!(best_ways(&record(vec![answer("4", 64, Some(1e9))])), []);
        assert_eq!(best_ways(&record(vec![answer("4", 64, None), answer("8", 64, Some(1e9))])), []);
    }
}
