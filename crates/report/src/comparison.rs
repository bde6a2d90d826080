//! The comparison of records for a terminal: slower answers first.

use crate::figures;
use crate::grid::{Column, Grid, wrap};
use crate::panel::{cores_in_words, title};
use lanemark_record::{Alone, Change, Comparison, Criteria, Pair, Quantity, Side};

/// Largest number of answers without a counterpart that are listed.
const MOST_ALONE: usize = 10;

/// Renders `comparison` of the sides called `names` for a terminal of `width` characters.
///
/// One table per question and target has the answers that changed, the slowest first, each with the
/// ratio of times and its 95 % interval. Answers without a visible difference are counted. Answers
/// that cannot be judged have a list of their own, and answers without a counterpart follow.
#[must_use]
pub fn comparison_table(comparison: &Comparison, names: [&str; 2], width: Option<u16>) -> String {
    let mut blocks = vec![head(comparison, names, width)];
    for pairs in by_panel(&comparison.pairs) {
        blocks.extend(block(&pairs, width));
    }
    let counted = |change| comparison.pairs.iter().filter(|pair| pair.verdict == change).count();
    let verdicts = [Change::Slower, Change::Faster, Change::NoDifferenceSeen, Change::Undecided];
    let counts = verdicts.map(|change| format!("{} {}", counted(change), change.in_words())).join(", ");
    blocks.push(format!("{}: {counts}", figures::counted(comparison.pairs.len(), "pair")));
    blocks.extend(undecided(comparison, width));
    blocks.extend(without_partner(&comparison.alone, names, width));
    blocks.extend(comparison.warnings.iter().map(|warning| wrap(&format!("warning: {warning}"), width, 2)));
    blocks.join("\n\n") + "\n"
}

/// The sides, the columns, and the conditions of the verdicts.
fn head(comparison: &Comparison, names: [&str; 2], width: Option<u16>) -> String {
    let of = |name: &str, count: u64| {
        if count == 1 { name.to_owned() } else { format!("{name} ({})", figures::counted(count as usize, "record")) }
    };
    let [base, new] = [of(names[0], comparison.base_records), of(names[1], comparison.new_records)];
    let columns = "ratio of median times, above 1 is slower; ci95 is the 95 % interval of the ratio";
    let mut lines = vec![wrap(&format!("{base} to {new}: {columns}"), width, 2)];
    if comparison.judged > 0 {
        let criteria = &comparison.criteria;
        let answers = match comparison.judged {
            1 => "for 1 measured answer".to_owned(),
            count => format!("for all {count} measured answers together (Holm)"),
        };
        let uncertainty = comparison.typical_uncertainty_percent();
        let typical = uncertainty.map_or_else(String::new, |percent| format!("; a typical ci95 is +/-{percent:.1} %"));
        lines.push(wrap(
            &format!("verdicts: changes beyond {} %, at 5 % {answers}{typical}", criteria.min_effect_percent_of(false)),
            width,
            2,
        ));
    }
    if let Some(assumption) = assumption(comparison) {
        lines.push(wrap(&assumption, width, 2));
    }
    lines.join("\n")
}

/// The assumption about the variation between runs, if it was used.
fn assumption(comparison: &Comparison) -> Option<String> {
    let assumed: Vec<&Pair> = comparison.pairs.iter().filter(|pair| pair.is_variation_assumed).collect();
    let first = assumed.first()?;
    let percent = comparison.criteria.between_runs_percent;
    let enough = Criteria::ENOUGH_RECORDS;
    let known = if first.base_records == 1 && first.new_records == 1 {
        "one record a side does not show the variation between runs: it is assumed to be"
    } else {
        "few records show little of the variation between runs: it is assumed to be at least"
    };
    Some(format!(
        "{known} {percent} % (--between-runs); {enough} records a side show it: `lanemark bench --repeat {enough}`"
    ))
}

/// The answers that cannot be judged, with reasons.
fn undecided(comparison: &Comparison, width: Option<u16>) -> Option<String> {
    let all: Vec<&Pair> = comparison.undecided().collect();
    if all.is_empty() {
        return None;
    }
    let mut lines = vec!["Answers that cannot be judged".to_owned()];
    for pair in all.iter().take(MOST_ALONE) {
        let because = pair.undecided_because.as_deref().unwrap_or("unknown reason");
        let text = format!(
            "  - {} of {}, {}, {}: {because}",
            pair.question,
            targets(pair),
            method(&pair.method, pair.alignment_bytes) + &cores_in_words(&pair.cores),
            figures::size(pair.size_bytes)
        );
        lines.push(wrap(&text, width, 4));
    }
    if all.len() > MOST_ALONE {
        lines.push(format!("  and {} more; --json lists all", all.len() - MOST_ALONE));
    }
    Some(lines.join("\n"))
}

/// Question and targets, which pairs of one table share.
fn panel_of(pair: &Pair) -> [&str; 3] {
    [&pair.question, &pair.target, pair.target_after.as_deref().unwrap_or_default()]
}

/// Groups pairs by question and targets, in order of appearance.
fn by_panel(pairs: &[Pair]) -> Vec<Vec<&Pair>> {
    let mut panels: Vec<Vec<&Pair>> = Vec::new();
    for pair in pairs {
        match panels.iter_mut().find(|panel| panel_of(panel[0]) == panel_of(pair)) {
            Some(panel) => panel.push(pair),
            None => panels.push(vec![pair]),
        }
    }
    panels
}

/// The target; both names if the records differ.
fn targets(pair: &Pair) -> String {
    match &pair.target_after {
        Some(after) => format!("{} before and {after} after", pair.target),
        None => pair.target.clone(),
    }
}

/// The table of a question and target; `None` if no answer was judged.
fn block(pairs: &[&Pair], width: Option<u16>) -> Option<String> {
    let question = &pairs[0].question;
    let mut lines = vec![wrap(&format!("{} of {} ({question})", title(question), targets(pairs[0])), width, 2)];
    let is_changed = |pair: &&Pair| matches!(pair.verdict, Change::Slower | Change::Faster);
    let mut changed: Vec<&Pair> = pairs.iter().copied().filter(is_changed).collect();
    changed.sort_by(|a, b| b.ratio.unwrap_or(0.0).total_cmp(&a.ratio.unwrap_or(0.0)));
    if !changed.is_empty() {
        let mut grid = Grid { columns: columns(), rows: changed.iter().map(|pair| row(pair)).collect() };
        grid.drop_empty_columns();
        lines.extend(grid.lines(width));
    }
    let same = pairs.iter().filter(|pair| pair.verdict == Change::NoDifferenceSeen).count();
    if same > 0 {
        lines.push(format!("no difference seen in {}", figures::counted(same, "answer")));
    }
    (lines.len() > 1).then(|| lines.join("\n"))
}

fn columns() -> Vec<Column> {
    let mut columns = vec![Column::words("method")];
    columns.extend(["size", "before", "after", "ratio", "ci95", "between runs"].map(Column::figures));
    columns.extend(["verdict", "doubts"].map(Column::words));
    columns
}

fn row(pair: &Pair) -> Vec<String> {
    let figure = |ns: Option<f64>| match (ns, pair.quantity) {
        (None, _) => "none".to_owned(),
        (Some(ns), Quantity::Bandwidth) if ns > 0.0 => figures::rate(pair.size_bytes as f64 * 1e9 / ns),
        (Some(ns), _) => figures::time(ns),
    };
    vec![
        method(&pair.method, pair.alignment_bytes) + &cores_in_words(&pair.cores),
        figures::size(pair.size_bytes),
        figure(pair.before_ns),
        figure(pair.after_ns),
        pair.ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default(),
        pair.ratio_ci95.map(|interval| format!("{:.3} to {:.3}", interval.low, interval.high)).unwrap_or_default(),
        pair.between_runs_percent.map(|percent| format!("{percent:.1} %")).unwrap_or_default(),
        pair.verdict.in_words().to_owned(),
        if pair.doubts.is_empty() { String::new() } else { figures::counted(pair.doubts.len(), "doubt") },
    ]
}

fn method(method: &lanemark_record::Method, alignment_bytes: u64) -> String {
    if alignment_bytes == 0 { method.to_string() } else { format!("{method} at +{alignment_bytes} B") }
}

fn without_partner(alone: &[Alone], names: [&str; 2], width: Option<u16>) -> Option<String> {
    if alone.is_empty() {
        return None;
    }
    let mut lines = vec!["Answers of only one side".to_owned()];
    for one in alone.iter().take(MOST_ALONE) {
        let name = if one.side == Side::Base { names[0] } else { names[1] };
        let text = format!(
            "  - only in {name}: {} of {}, {}, {}",
            one.question,
            one.target,
            method(&one.method, one.alignment_bytes) + &cores_in_words(&one.cores),
            figures::size(one.size_bytes)
        );
        lines.push(wrap(&text, width, 4));
    }
    if alone.len() > MOST_ALONE {
        lines.push(format!("  and {} more; --json lists all", alone.len() - MOST_ALONE));
    }
    Some(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use lanemark_record::Interval;

    fn pair(access: &str, ratio: f64, verdict: Change) -> Pair {
        Pair {
            question: "mmio_write_bandwidth".to_owned(),
            target: "host".to_owned(),
            target_after: None,
            method: fixture::method("wb", access, None),
            cores: vec![],
            size_bytes: 4096,
            alignment_bytes: 0,
            quantity: Quantity::Bandwidth,
            base_records: 1,
            new_records: 1,
            before_ns: Some(1000.0),
            after_ns: Some(1000.0 * ratio),
            ratio: Some(ratio),
            ratio_ci95: Some(Interval { low: ratio - 0.01, high: ratio + 0.01 }),
            between_runs_percent: None,
            is_variation_assumed: false,
            p_corrected: None,
            verdict,
            undecided_because: None,
            exceeds_limit: false,
            doubts: vec![],
        }
    }

    fn comparison(pairs: Vec<Pair>) -> Comparison {
        let criteria = Criteria::default();
        let (base_records, new_records, judged) = (1, 1, 0);
        Comparison { base_records, new_records, criteria, judged, pairs, alone: vec![], warnings: vec![] }
    }

    #[test]
    fn slower_answers_come_first_and_unchanged_ones_are_counted() {
        let mut comparison = comparison(vec![
            pair("8", 0.9, Change::Faster),
            pair("4", 1.0, Change::NoDifferenceSeen),
            pair("16", 1.2, Change::Slower),
        ]);
        comparison.warnings = vec!["the second record was stopped early: answers may be missing".to_owned()];
        comparison.alone = (0..11)
            .map(|size_bytes| Alone {
                side: Side::New,
                question: "mmio_read_latency".to_owned(),
                target: "host".to_owned(),
                method: fixture::method("wb", "8", None),
                cores: vec![],
                size_bytes,
                alignment_bytes: 4,
            })
            .collect();
        comparison.pairs[2].doubts.push("base: two modes".to_owned());
        let text = comparison_table(&comparison, ["a.json", "b.json"], None);
        let expected = "\
a.json to b.json: ratio of median times, above 1 is slower; ci95 is the 95 % interval of the ratio

MMIO write bandwidth of host (mmio_write_bandwidth)
method   size     before      after  ratio            ci95  verdict  doubts
────────────────────────────────────────────────────────────────────────────
WB 16   4 KiB  4.10 GB/s  3.41 GB/s  1.200  1.190 to 1.210  slower   1 doubt
WB 8    4 KiB  4.10 GB/s  4.55 GB/s  0.900  0.890 to 0.910  faster
no difference seen in 1 answer

3 pairs: 1 slower, 1 faster, 1 no difference seen, 0 undecided

Answers of only one side
  - only in b.json: mmio_read_latency of host, WB 8 at +4 B, 0 B
";
        assert!(text.starts_with(expected), "{text}");
        let end =
            "  and 1 more; --json lists all\n\nwarning: the second record was stopped early: answers may be missing\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn a_table_names_both_targets_if_the_records_use_different_names() {
        let renamed = |target_after: &str| {
            let target_after = Some(target_after.to_owned());
            Pair { target_after, ..pair("8", 0.9, Change::Faster) }
        };
        let pairs = vec![renamed("card"), pair("4", 1.2, Change::Slower), renamed("card")];
        let text = comparison_table(&comparison(pairs), ["a.json", "b.json"], None);
        let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("MMIO")).collect();
        let both = "MMIO write bandwidth of host before and card after (mmio_write_bandwidth)";
        assert_eq!(heads, [both, "MMIO write bandwidth of host (mmio_write_bandwidth)"]);
    }

    #[test]
    fn several_records_a_side_show_the_conditions_of_the_verdicts() {
        let with_runs = |runs: u64, is_variation_assumed| {
            let of = |ratio, verdict| Pair {
                base_records: runs,
                new_records: runs,
                between_runs_percent: Some(1.25),
                is_variation_assumed,
                p_corrected: Some(0.001),
                ..pair("8", ratio, verdict)
            };
            let mut unjudged = of(1.0, Change::Undecided);
            unjudged.undecided_because = Some("times that are not positive".to_owned());
            let pairs = vec![of(1.2, Change::Slower), unjudged];
            let found = Comparison { base_records: runs, new_records: runs, judged: 1, ..comparison(pairs) };
            comparison_table(&found, ["before", "after"], None)
        };
        let expected = "\
before (5 records) to after (5 records): ratio of median times, above 1 is slower; ci95 is the 95 % interval of the ratio
verdicts: changes beyond 2 %, at 5 % for 1 measured answer; a typical ci95 is +/-0.9 %

MMIO write bandwidth of host (mmio_write_bandwidth)
method   size     before      after  ratio            ci95  between runs  verdict
─────────────────────────────────────────────────────────────────────────────────
WB 8    4 KiB  4.10 GB/s  3.41 GB/s  1.200  1.190 to 1.210         1.2 %  slower

2 pairs: 1 slower, 0 faster, 0 no difference seen, 1 undecided

Answers that cannot be judged
  - mmio_write_bandwidth of host, WB 8, 4 KiB: times that are not positive
";
        let text = with_runs(5, false);
        assert_eq!(text, expected, "{text}");
        assert!(
            with_runs(1, true)
                .contains("one record a side does not show the variation between runs: it is assumed to be 10 %")
        );
        assert!(with_runs(3, true).contains("it is assumed to be at least 10 % (--between-runs)"));
    }
}
