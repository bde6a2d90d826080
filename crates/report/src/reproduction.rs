//! Published figures of a paper compared with simulation and formula.

use crate::exact::exact;
use crate::figures;
use crate::grid::{Column, Grid, wrap};
use crate::picture;
use lanemark_record::{Class, Reproduction, Row, Verdict};

/// Smallest width of the column that describes a figure; below it, the description gets its own
/// line.
const NARROWEST_WHAT: usize = 16;

/// Renders `reproduction` for a terminal of `width` characters; without a width nothing is wrapped.
///
/// The rows, the bounds over sets of rows, the summary, and the notes on rows that do not simply
/// agree.
#[must_use]
pub fn reproduction_table(reproduction: &Reproduction, width: Option<u16>) -> String {
    let mut blocks =
        vec![wrap(&format!("{}: {} (on {})", reproduction.paper, reproduction.title, reproduction.platform), width, 2)];
    if !reproduction.rows.is_empty() {
        blocks.push(rows(reproduction, width));
    }
    if !reproduction.bounds.is_empty() {
        blocks.push(bounds(reproduction).lines(width).join("\n"));
    }
    blocks.push(wrap(&summary(reproduction), width, 2));
    let notes: Vec<String> =
        noted(reproduction).map(|row| wrap(&format!("{}: {}", row.id, row.note), width, 4)).collect();
    if !notes.is_empty() {
        blocks.push(notes.join("\n"));
    }
    blocks.extend(reproduction.pictures.iter().map(|picture| picture::in_words(picture, width)));
    if !reproduction.here.is_empty() {
        let head =
            "This machine, for comparison only: it is not the paper's, and its figures do not affect the summary";
        let lines = std::iter::once(wrap(head, width, 2)).chain(here(reproduction).lines(width));
        blocks.push(lines.collect::<Vec<_>>().join("\n"));
    }
    blocks.join("\n\n") + "\n"
}

/// The rows with notes.
fn noted(reproduction: &Reproduction) -> impl Iterator<Item = &Row> {
    reproduction.rows.iter().filter(|row| !row.note.is_empty())
}

/// The rows as a table; the description of each row gets its own line where it does not fit.
fn rows(reproduction: &Reproduction, width: Option<u16>) -> String {
    let mut grid = Grid { columns: columns(), rows: reproduction.rows.iter().map(cells).collect() };
    grid.drop_empty_columns();
    let longest = reproduction.rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
    let Some(limit) = width.map(usize::from).filter(|_| !grid.fits(width)) else {
        return grid.lines(width).join("\n");
    };
    if grid.natural_width() - longest + NARROWEST_WHAT <= limit {
        return grid.lines(width).join("\n");
    }
    let what: Vec<String> = reproduction.rows.iter().map(what_in_words).collect();
    for head in IN_WORDS {
        grid.drop_column(head);
    }
    if !grid.fits(width) {
        // No more columns can be moved, so the cells wrap.
        return grid.lines(width).join("\n");
    }
    let lines = grid.lines(None);
    let mut text = lines[..2].to_vec();
    for (line, what) in lines[2..].iter().zip(what) {
        text.push(line.clone());
        text.push(wrap(&format!("  {what}"), width, 4));
    }
    text.join("\n")
}

/// The columns that [`what_in_words`] replaces.
const IN_WORDS: [&str; 4] = ["figure", "unit", "class", "tolerance %"];

/// The description of a row, its unit, class and tolerance.
fn what_in_words(row: &Row) -> String {
    let mut text = row.what.clone();
    if !row.unit.is_empty() {
        text += &format!(", in {}", row.unit);
    }
    text += &format!("; {}", class_in_words(row));
    if let Some(tolerance) = row.tolerance_percent {
        text += &format!(", within {} %", exact(tolerance));
    }
    text
}

/// The columns of a reproduction.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::words("id"),
        Column::words("figure"),
        Column::figures("published"),
        Column::figures("corrected"),
        Column::figures("simulated"),
        Column::figures("formula"),
        Column::words("unit"),
        Column::words("class"),
        Column::figures("error %"),
        Column::figures("tolerance %"),
        Column::words("verdict"),
    ]
}

/// `row` as the cells of [`columns`].
pub(crate) fn cells(row: &Row) -> Vec<String> {
    let value = |value: Option<f64>| value.map(exact).unwrap_or_default();
    vec![
        row.id.clone(),
        row.what.clone(),
        value(row.published),
        value(row.corrected),
        value(row.simulated),
        value(row.formula),
        row.unit.clone(),
        class_in_words(row),
        row.error_percent.map(|error| figures::difference(error).trim_end_matches(" %").to_owned()).unwrap_or_default(),
        row.tolerance_percent.map(exact).unwrap_or_default(),
        verdict_in_words(row.verdict).to_owned(),
    ]
}

/// Figures of this machine beside the published figures.
fn here(reproduction: &Reproduction) -> Grid {
    let columns = vec![
        Column::words("id"),
        Column::words("measured here"),
        Column::figures("published"),
        Column::figures("here"),
        Column::figures("from"),
        Column::figures("to"),
        Column::words("unit"),
        Column::words("by"),
    ];
    let row = |here: &lanemark_record::Here| {
        let how = if here.because.is_empty() { here.method.clone() } else { format!("no answer: {}", here.because) };
        vec![
            here.id.clone(),
            here.what.clone(),
            here.published.map(exact).unwrap_or_default(),
            here.here.map(figures::significant).unwrap_or_default(),
            here.from.map(figures::significant).unwrap_or_default(),
            here.to.map(figures::significant).unwrap_or_default(),
            here.unit.clone(),
            format!("{}: {how}", here.asked),
        ]
    };
    Grid { columns, rows: reproduction.here.iter().map(row).collect() }
}

fn bounds(reproduction: &Reproduction) -> Grid {
    Grid {
        columns: vec![
            Column::words("over sets of rows"),
            Column::words("statistic of |error|"),
            Column::figures("rows"),
            Column::figures("found %"),
            Column::figures("wanted %"),
            Column::words("met"),
        ],
        rows: reproduction.bounds.iter().map(bound_cells).collect(),
    }
}

/// A bound as cells: name, statistic, rows, found, wanted, whether met.
pub(crate) fn bound_cells(bound: &lanemark_record::Bound) -> Vec<String> {
    vec![
        bound.name.clone(),
        bound.statistic.clone(),
        bound.rows.to_string(),
        exact(bound.found_percent),
        exact(bound.wanted_percent),
        if bound.met { "yes" } else { "NO" }.to_owned(),
    ]
}

/// The class of a row, with the first row that a predicted one repeats.
fn class_in_words(row: &Row) -> String {
    match (row.class, row.same_as.first()) {
        (Class::Predicted, Some(first)) => format!("{}, as {first}", row.class.name()),
        _ => row.class.name().to_owned(),
    }
}

/// A verdict in words; capitals mark verdicts that need attention.
fn verdict_in_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Agrees => "agrees",
        Verdict::Disagrees => "DISAGREES",
        Verdict::KnownGap => "known gap",
        Verdict::Listed => "listed",
        Verdict::Sic => "sic",
        Verdict::Later => "later",
    }
}

/// Number of rows by class and verdict.
///
/// Predicted rows that repeat each other count once, with the worst verdict among them.
pub(crate) fn summary(reproduction: &Reproduction) -> String {
    let rows = &reproduction.rows;
    let of = |class| rows.iter().filter(|row| row.class == class).count();
    let stand = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let both = |class, verdict| rows.iter().filter(|row| row.class == class && row.verdict == verdict).count();
    let plural = |count, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let is_compared = |row: &&Row| row.class == Class::Predicted && severity(row.verdict).is_some();
    let distinct = distinct(rows);
    let predicted = |verdict| distinct.iter().filter(|found| **found == verdict).count();
    let mut text = format!(
        "{} given, {} fitted, {} of fitted; {}: {}, {}, {}; {} predicted and compared, {} distinct: {}, {}, {}; {} listed, \
         {} sic, {} later",
        of(Class::Given),
        of(Class::Fitted),
        plural(of(Class::Identity), "identity", "identities"),
        plural(of(Class::Rule), "rule", "rules"),
        plural(both(Class::Rule, Verdict::Agrees), "holds", "hold"),
        plural(both(Class::Rule, Verdict::KnownGap), "known gap", "known gaps"),
        plural(both(Class::Rule, Verdict::Disagrees), "does not hold", "do not hold"),
        rows.iter().filter(is_compared).count(),
        distinct.len(),
        plural(predicted(Verdict::Agrees), "agrees", "agree"),
        plural(predicted(Verdict::KnownGap), "known gap", "known gaps"),
        plural(predicted(Verdict::Disagrees), "disagrees", "disagree"),
        stand(Verdict::Listed),
        stand(Verdict::Sic),
        stand(Verdict::Later),
    );
    // Given, fitted and identity rows that miss the published figure are counted apart from predictions.
    let missed = |verdict| stand(verdict) - both(Class::Predicted, verdict) - both(Class::Rule, verdict);
    let of_others: Vec<String> =
        [(missed(Verdict::KnownGap), "known gap", "known gaps"), (missed(Verdict::Disagrees), "disagrees", "disagree")]
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, many)| plural(count, one, many))
            .collect();
    if !of_others.is_empty() {
        text += &format!("; of the given, fitted and identities, {}", of_others.join(", "));
    }
    text
}

/// Verdicts of the distinct predicted rows that are compared with a published figure: of each, the worst of its own and
/// those of the rows that repeat it.
fn distinct(rows: &[Row]) -> Vec<Verdict> {
    let mut found: Vec<(&str, Verdict)> = Vec::new();
    for row in rows.iter().filter(|row| row.class == Class::Predicted && severity(row.verdict).is_some()) {
        let id = row.same_as.first().unwrap_or(&row.id).as_str();
        match found.iter_mut().find(|(other, _)| *other == id) {
            Some((_, worst)) if severity(*worst) < severity(row.verdict) => *worst = row.verdict,
            Some(_) => {}
            None => found.push((id, row.verdict)),
        }
    }
    found.into_iter().map(|(_, verdict)| verdict).collect()
}

/// Rank of a verdict that results from a comparison, the worst last; `None` for the others.
fn severity(verdict: Verdict) -> Option<u8> {
    match verdict {
        Verdict::Agrees => Some(0),
        Verdict::KnownGap => Some(1),
        Verdict::Disagrees => Some(2),
        Verdict::Listed | Verdict::Sic | Verdict::Later => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_reproduction_is_rendered_with_rows_bounds_and_notes() {
        let expected = "\
someone2026: How long does a read take (on card-gen5-x16)

id    figure                 published  simulated  formula  unit  class       error %  tolerance %  verdict
─────────────────────────────────────────────────────────────────────────────────────────────────────────────
T1.a  latency of a 4 B read        440        440      441  ns    given           0.0            5  listed
T1.b  latency of a 4 B read        440        441      441  ns    fitted         +0.2            5  agrees
T1.c  latency of a 4 B read        440        442      441  ns    predicted      +0.5            5  agrees
T1.d  latency of a 4 B read        440        500      441  ns    predicted     +13.6            5  known gap
T1.e  latency of a 4 B read        440        880      441  ns    predicted      +100            5  DISAGREES
T1.f  latency of a 4 B read        440                 441  ns    unanswered                     5  later

over sets of rows  statistic of |error|  rows  found %  wanted %  met
─────────────────────────────────────────────────────────────────────
all latencies      median                   5      0.5         2  yes

1 given, 1 fitted, 0 identities of fitted; 0 rules: 0 hold, 0 known gaps, 0 do not hold; 3 predicted and compared, 3
  distinct: 1 agrees, 1 known gap, 1 disagrees; 1 listed, 0 sic, 1 later

T1.c: a note of a test
T1.d: the paper's host has two sockets
T1.f: needs a switch
";
        assert_eq!(reproduction_table(&fixture::reproduction(), Some(120)), expected);
    }

    #[test]
    fn figures_of_this_machine_do_not_change_the_summary() {
        let mut reproduction = fixture::reproduction();
        let counted = summary(&reproduction);
        let here = |here, because: &str| lanemark_record::Here {
            id: "T8".to_owned(),
            what: "a time stamp".to_owned(),
            method: "timer_cost: rdtsc".to_owned(),
            asked: "host".to_owned(),
            published: Some(2.5),
            here,
            from: here.map(|here| here - 1.0),
            to: here.map(|here| here + 2.0),
            unit: "ns".to_owned(),
            because: because.to_owned(),
        };
        reproduction.here = vec![here(Some(13.1), ""), here(None, "there is none")];
        let text = reproduction_table(&reproduction, Some(120));
        assert!(text.contains("figures do not affect the summary"), "{text}");
        let expected = "\
T8  a time stamp         2.5  13.1  12.1  15.1  ns    host: timer_cost: rdtsc
T8  a time stamp         2.5                    ns    host: no answer: there is none
";
        assert!(text.ends_with(expected), "{text}");
        assert_eq!(summary(&reproduction), counted);
    }

    #[test]
    fn on_a_narrow_terminal_descriptions_get_their_own_line() {
        let text = reproduction_table(&fixture::reproduction(), Some(80));
        assert!(text.contains("\n  latency of a 4 B read, in ns; given, within 5 %\n"), "{text}");
    }

    #[test]
    fn a_fitted_row_that_disagrees_is_counted() {
        let mut reproduction = fixture::reproduction();
        reproduction.rows[1].verdict = Verdict::Disagrees;
        assert!(summary(&reproduction).ends_with("; of the given, fitted and identities, 1 disagrees"));
    }

    #[test]
    fn rows_that_repeat_each_other_count_once_with_the_worst_verdict() {
        let mut reproduction = fixture::reproduction();
        reproduction.rows[3].same_as = vec![reproduction.rows[2].id.clone()];
        let text = summary(&reproduction);
        assert!(text.contains("3 predicted and compared, 2 distinct: 0 agree, 1 known gap, 1 disagrees;"), "{text}");
        assert_eq!(cells(&reproduction.rows[3])[7], "predicted, as T1.c");
    }

    #[test]
    fn a_rule_is_counted_apart_from_predictions() {
        let mut reproduction = fixture::reproduction();
        for row in &mut reproduction.rows[2..5] {
            row.class = Class::Rule;
        }
        let text = summary(&reproduction);
        assert!(text.contains("; 3 rules: 1 holds, 1 known gap, 1 does not hold; 0 predicted"), "{text}");
    }

    #[test]
    fn a_reproduction_without_rows_has_a_title_and_a_summary() {
        let mut reproduction = fixture::reproduction();
        reproduction.rows.clear();
        reproduction.bounds.clear();
        let text = reproduction_table(&reproduction, Some(80));
        assert!(text.starts_with("someone2026: "), "{text}");
        assert!(text.contains("0 given, 0 fitted, 0 identities"), "{text}");
    }
}
