//! Does the partner find each bug, and nothing in a correct engine?

mod engines;

use engines::{Bug, Engine};
use lanemark_adversary::{RULES, Request, SITUATIONS, Summary, Target, campaign};
use lanemark_devices::DeviceFile;

const CARD: &str = include_str!("../../../rtl/card.toml");

fn target() -> Target {
    let device = DeviceFile::parse("rtl/card.toml", CARD).unwrap();
    Target::new(&device, 2048).unwrap()
}

fn seeds(bug: Bug, count: u64, is_illegal: bool) -> Summary {
    let request = Request { seeds: 0..count, is_illegal, threads: 2 };
    campaign(&request, &target(), |_| Ok(Engine::new(bug)), || false).unwrap()
}

fn text(summary: &Summary) -> Vec<String> {
    summary
        .failures
        .iter()
        .map(|failure| format!("seed {}: {}\n{:?}", failure.seed, failure.finding, failure.case))
        .collect()
}

#[test]
fn a_correct_engine_breaks_no_rule_with_a_legal_partner() {
    let summary = seeds(Bug::None, 60, false);
    assert!(summary.failures.is_empty(), "{}", text(&summary).join("\n"));
    for row in SITUATIONS.iter().filter(|row| row.is_legal) {
        assert!(summary.coverage.of(row.situation) > 0, "{} was never tried", row.name);
    }
}

#[test]
fn a_correct_engine_breaks_no_rule_with_an_illegal_partner() {
    let summary = seeds(Bug::None, 120, true);
    assert!(summary.failures.is_empty(), "{}", text(&summary).join("\n"));
    for row in SITUATIONS {
        assert!(summary.coverage.of(row.situation) > 0, "{} was never tried", row.name);
    }
}

/// Each bug, whether it needs an illegal partner, and the rules of which one is named.
const BUGS: &[(Bug, bool, &[&str])] = &[
    (Bug::Crosses4Kib, false, &["four_kib"]),
    (Bug::IgnoresMrrs, false, &["max_read_request"]),
    (Bug::IgnoresMps, false, &["max_payload"]),
    (Bug::WrongLastByteEnable, false, &["out_of_bounds"]),
    (Bug::TagFreedEarly, false, &["tag_in_use", "data_integrity"]),
    (Bug::IgnoresCredits, false, &["credits"]),
    (Bug::RcbIgnored, false, &["data_integrity", "failed_without_cause"]),
    (Bug::FourDwBelow4Gib, false, &["address_format"]),
    (Bug::InterruptFirst, false, &["interrupt_order"]),
    (Bug::NoInterrupt, false, &["interrupt_missing"]),
    (Bug::WrongCompletionCount, false, &["completion_fields"]),
    (Bug::OneTagTooMany, false, &["tag_range"]),
    (Bug::EnablesIgnored, false, &["completion_data"]),
    (Bug::PoisonAccepted, true, &["poison"]),
    (Bug::StatusIgnored, true, &["failed_status", "completion_mismatch"]),
    (Bug::RequesterIgnored, true, &["unexpected_completion"]),
    (Bug::ByteCountTrusted, true, &["completion_mismatch"]),
    (Bug::LengthIgnored, true, &["malformed"]),
    (Bug::NeverTimesOut, true, &["timeout"]),
    (Bug::StopsAfterBadCompletion, true, &["progress", "recovery"]),
    (Bug::ResetKeepsRunning, true, &["bus_master", "function_reset", "out_of_bounds"]),
    (Bug::LostWithinReset, true, &["length_field", "stable_beats", "header_fields"]),
];

#[test]
fn each_bug_is_found_with_its_rule() {
    let mut missed = Vec::new();
    for (bug, is_illegal, rules) in BUGS {
        assert!(rules.iter().all(|rule| RULES.iter().any(|row| row.name == *rule)), "{rules:?}");
        let summary = seeds(*bug, 60, *is_illegal);
        let found = summary.failures.iter().map(|failure| failure.finding.rule.row().name);
        if !found.clone().any(|name| rules.contains(&name)) {
            missed.push(format!("{bug:?}: {:?} instead of {rules:?}", found.collect::<Vec<_>>()));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
