//! The comparison of two records for a terminal: slower answers first.

use crate::figures;
use crate::grid::{Column, Grid, wrap};
use crate::panel::{cores_in_words, title};
use lanemark_record::{Alone, Change, Comparison, Pair, Quantity};

/// Largest number of answers without a counterpart that are listed.
const MOST_ALONE: usize = 10;

/// Renders `comparison` of the records called `names` for a terminal of `width` characters.
///
/// One table per question and target has the answers that changed, the slowest first, each with the
/// ratio of times and its 95 % interval. Answers without a visible difference are counted. Answers
/// without a counterpart follow.
#[must_use]
pub fn comparison_table(comparison: &Comparison, names: [&str; 2], width: Option<u16>) -> String {
    let mut blocks = vec![wrap(
        &format!(
            "{} to {}: ratio of median times, above 1 is slower; ci95 is the 95 % interval of the ratio",
            names[0], names[1]
        ),
        width,
        2,
    )];
    for pairs in by_panel(&comparison.pairs) {
        blocks.push(block(&pairs, width));
    }
    let counted = |change| comparison.pairs.iter().filter(|pair| pair.verdict == change).count();
    let verdicts = [Change::Slower, Change::Faster, Change::NoDifferenceSeen, Change::Undecided];
    let counts = verdicts.map(|change| format!("{} {}", counted(change), change.in_words())).join(", ");
    blocks.push(format!("{}: {counts}", figures::counted(comparison.pairs.len(), "pair")));
    blocks.extend(without_partner(&comparison.alone, names, width));
    blocks.extend(comparison.warnings.iter().map(|warning| wrap(&format!("warning: {warning}"), width, 2)));
    blocks.join("\n\n") + "\n"
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

fn block(pairs: &[&Pair], width: Option<u16>) -> String {
    let question = &pairs[0].question;
    let mut lines = vec![wrap(&format!("{} of {} ({question})", title(question), targets(pairs[0])), width, 2)];
    let mut changed: Vec<&Pair> =
        pairs.iter().copied().filter(|pair| pair.verdict != Change::NoDifferenceSeen).collect();
    changed.sort_by(|a, b| b.ratio.unwrap_or(0.0).total_cmp(&a.ratio.unwrap_or(0.0)));
    if !changed.is_empty() {
        let mut grid = Grid { columns: columns(), rows: changed.iter().map(|pair| row(pair)).collect() };
        grid.drop_empty_columns();
        lines.extend(grid.lines(width));
    }
    let same = pairs.len() - changed.len();
    if same > 0 {
        lines.push(format!("no difference seen in {}", figures::counted(same, "answer")));
    }
    lines.join("\n")
}

fn columns() -> Vec<Column> {
    let mut columns = vec![Column::words("method")];
    columns.extend(["size", "before", "after", "ratio", "ci95"].map(Column::figures));
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
    let mut lines = vec!["Answers in only one record".to_owned()];
    for one in alone.iter().take(MOST_ALONE) {
        let name = if one.record == "first" { names[0] } else { names[1] };
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
            before_ns: Some(1000.0),
            after_ns: Some(1000.0 * ratio),
            ratio: Some(ratio),
            ratio_ci95: Some(Interval { low: ratio - 0.01, high: ratio + 0.01 }),
            verdict,
            doubts: vec![],
        }
    }

    #[test]
    fn slower_answers_come_first_and_unchanged_ones_are_counted() {
        let mut comparison = Comparison {
            pairs: vec![
                pair("8", 0.9, Change::Faster),
                pair("4", 1.0, Change::NoDifferenceSeen),
                pair("16", 1.2, Change::Slower),
            ],
            alone: vec![],
            warnings: vec!["the second record was stopped early: answers may be missing".to_owned()],
        };
        comparison.alone = (0..11)
            .map(|size_bytes| Alone {
                record: "second".to_owned(),
                question: "mmio_read_latency".to_owned(),
                target: "host".to_owned(),
                method: fixture::method("wb", "8", None),
                cores: vec![],
                size_bytes,
                alignment_bytes: 4,
            })
            .collect();
        comparison.pairs[2].doubts.push("first: two modes".to_owned());
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

Answers in only one record
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
        let text = comparison_table(&Comparison { pairs, alone: vec![], warnings: vec![] }, ["a.json", "b.json"], None);
        let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("MMIO")).collect();
        let both = "MMIO write bandwidth of host before and card after (mmio_write_bandwidth)";
        assert_eq!(heads, [both, "MMIO write bandwidth of host (mmio_write_bandwidth)"]);
    }
}
