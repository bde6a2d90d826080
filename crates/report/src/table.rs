//! A record as terminal tables: the best methods first, with their limits.

use crate::advice::Topic;
use crate::callers::Callers;
use crate::coherence::{BEYOND, beyond};
use crate::curve;
use crate::fabric::{self, Fabric};
use crate::figures;
use crate::grid::{Column, Grid, wrap};
use crate::loaded::Curve;
use crate::matrix::Matrix;
use crate::panel::{Line, Panel, Point, words};
use crate::sensitivity;
use lanemark_method::Method;
use lanemark_record::{
    Answer, BounceBuffer, Detail, DoubtKind, Finding, Quantity, Record, Skipped, Target, TargetKind,
};

/// Largest number of methods that are all shown.
const ALL_UP_TO: usize = 12;
/// Number of the best methods shown where there are more.
const BEST: usize = 8;
/// Number of the worst methods shown where there are more.
const WORST: usize = 2;
/// Columns about the largest size of a method.
const AT_LARGEST: [&str; 7] = ["ci95", REUSABLE, "of limit", BEYOND, "bound by", "formula", "formula's bound"];
/// Heading of the rate until the source buffer of a runtime's copy may be reused.
const REUSABLE: &str = "reusable";
/// Smallest spread that gets a note, in percent of the median.
const WIDE_SPREAD_PERCENT: f64 = 5.0;

/// Renders `record` for a terminal of `width` characters; without a width nothing is wrapped or
/// dropped.
///
/// One table per target and question: methods as rows, best first, and sizes as columns. Then the
/// advice, findings, skipped cases and warnings. A long table shows the best and the worst methods
/// and a selection of sizes, and a note says so; costs are never shortened. A record file and the
/// page have everything.
#[must_use]
pub fn tables(record: &Record, width: Option<u16>) -> String {
    let panels = Panel::of(record);
    let mut blocks = vec![head(record, width), wrap(&key(&panels), width, 2)];
    blocks.extend(panels.iter().map(|panel| block(record, panel, width)));
    blocks.push(advice(record, width));
    let findings: Vec<String> = record.findings.iter().map(finding_in_words).collect();
    blocks.push(list("Findings", &findings, width));
    blocks.push(skipped(&record.skipped, width));
    blocks.push(list("Warnings", &record.warnings, width));
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n\n") + "\n"
}

fn head(record: &Record, width: Option<u16>) -> String {
    let mut lines = Vec::new();
    if record.interrupted {
        lines.push("INTERRUPTED: the run was stopped early; only the results obtained until then follow".to_owned());
    }
    let disturbance = record.host.as_ref().and_then(lanemark_record::Host::disturbance);
    lines.extend(disturbance.map(|text| wrap(&format!("WARNING: {text}"), width, 4)));
    for target in &record.targets {
        let kind = label(target);
        let origins = target.origins.map_or_else(String::new, |origins| format!("; {}", origins_in_words(origins)));
        lines.push(wrap(&format!("{} ({kind}): {}{origins}", target.name, target.summary), width, 4));
    }
    lines.extend(record.host.as_ref().map(|host| wrap(&format!("this machine: {}", host.in_words()), width, 4)));
    if record.answers.is_empty() {
        lines.push("no answers".to_owned());
    }
    lines.join("\n")
}

/// The kind of a target, with the kind of its runtime's device where it has one.
pub(crate) fn label(target: &Target) -> String {
    let kind = kind_in_words(target.kind);
    target.runtime.as_ref().map_or_else(|| kind.to_owned(), |runtime| format!("{kind}, {}", runtime.label()))
}

/// A [`TargetKind`] for readers.
pub(crate) fn kind_in_words(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Simulated => "simulated",
        TargetKind::Real => "real",
        TargetKind::Emulated => "emulated: timings are not meaningful",
        TargetKind::Formula => "formulas only",
        TargetKind::Imported => "imported",
    }
}

/// The origins of a platform's parameters, counted.
pub(crate) fn origins_in_words(origins: lanemark_record::Origins) -> String {
    format!("parameters: {}", counts_in_words(origins))
}

/// The numbers of [`Origins`](lanemark_record::Origins): `6 given, 124 assumed, 0 fitted`, and what is inherited.
#[must_use]
pub fn counts_in_words(origins: lanemark_record::Origins) -> String {
    let mut text = format!("{} given, {} assumed, {} fitted", origins.given, origins.assumed, origins.fitted);
    if origins.unknown > 0 {
        text = format!("{text}, {} unknown", origins.unknown);
    }
    if let Some(inherited) = origins.inherited {
        let lanemark_record::Inherited { given, assumed, fitted } = inherited;
        let all = u64::from(given) + u64::from(assumed) + u64::from(fitted);
        text = format!("{text}, {all} inherited ({given} given, {assumed} assumed, {fitted} fitted)");
    }
    text
}

fn block(record: &Record, panel: &Panel, width: Option<u16>) -> String {
    let mut lines = vec![wrap(&format!("{} of {} ({})", panel.title(), panel.target, panel.question), width, 2)];
    let matrices = Matrix::of(panel);
    if !matrices.is_empty() {
        let (quantity, symbol) = (panel.quantity_in_words(), panel.unit.symbol());
        lines.push(wrap(&format!("{quantity} in {symbol}, {}, from core to core", panel.statistic()), width, 2));
        lines.extend(matrices.iter().flat_map(|matrix| matrix_lines(matrix, panel, width)));
        lines.extend(spread(panel).map(|note| wrap(&note, width, 2)));
        return lines.join("\n");
    }
    let callers = Callers::of(record, panel);
    let (grid, notes) = fitting(panel, width);
    if !callers.is_empty() {
        lines.push(wrap(&legend(panel, &grid), width, 2));
        for callers in &callers {
            lines.push(wrap(&callers.in_words(), width, 2));
            lines.extend(callers.grid(panel.unit).lines(width));
        }
        lines.extend(notes.into_iter().chain(no_card(record, panel)).map(|note| wrap(&note, width, 2)));
        lines.extend(sensitivity::lines(panel, width));
        return lines.join("\n");
    }
    lines.push(wrap(&legend(panel, &grid), width, 2));
    lines.extend(grid.lines(width));
    lines.extend(notes.into_iter().chain(no_card(record, panel)).map(|note| wrap(&note, width, 2)));

    if panel.is_rate() {
        lines.push(wrap(&panel.ceiling_in_words(), width, 2));
    }
    if let Some(fabric) = Fabric::of(record, fabric::shown_first(panel)) {
        lines.extend(fabric.lines(width));
    }
    lines.extend(sensitivity::lines(panel, width));
    lines.join("\n")
}

/// A note that the device of the target is not a card, with the reason.
pub(crate) fn no_card(record: &Record, panel: &Panel) -> Option<String> {
    let target = record.targets.iter().find(|target| target.name == panel.target)?;
    Some(format!("no card: {}", target.runtime.as_ref()?.no_card_because()?))
}

/// One method between all pairs of cores: a line with its name and range, and the matrix.
fn matrix_lines(matrix: &Matrix, panel: &Panel, width: Option<u16>) -> Vec<String> {
    let range = match matrix.range() {
        Some((least, most)) if most > least => {
            format!(": {} to {}", panel.unit.figure(least), panel.unit.figure_with_symbol(most))
        }
        _ => String::new(),
    };
    let head = wrap(&format!("{}{range}", matrix.name), width, 2);
    std::iter::once(head).chain(matrix.grid(|value| panel.unit.figure(value)).lines(width)).collect()
}

/// The detail that a table has room for.
#[derive(Clone, Copy)]
struct Shape {
    /// Largest number of sizes.
    sizes: usize,
    /// Content of the formula's column, and whether its bound has one.
    formula: FormulaColumn,
    has_bound: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FormulaColumn {
    ValueAndDifference,
    Difference,
    Absent,
}

impl Shape {
    const fn new(sizes: usize, formula: FormulaColumn) -> Shape {
        Shape { sizes, formula, has_bound: false }
    }

    const fn with_bound(sizes: usize) -> Shape {
        Shape { sizes, formula: FormulaColumn::ValueAndDifference, has_bound: true }
    }

    /// Shapes from the fullest to the barest.
    const ALL: [Shape; 11] = [
        Shape::with_bound(5),
        Shape::with_bound(4),
        Shape::with_bound(3),
        Shape::new(5, FormulaColumn::ValueAndDifference),
        Shape::new(4, FormulaColumn::ValueAndDifference),
        Shape::new(3, FormulaColumn::ValueAndDifference),
        Shape::new(4, FormulaColumn::Difference),
        Shape::new(3, FormulaColumn::Difference),
        Shape::new(2, FormulaColumn::Difference),
        Shape::new(2, FormulaColumn::Absent),
        Shape::BAREST,
    ];
    const BAREST: Shape = Shape::new(1, FormulaColumn::Absent);
}

/// The fullest table that fits into `width`, or the barest, and the notes below it.
fn fitting(panel: &Panel, width: Option<u16>) -> (Grid, Vec<String>) {
    let of = |shape| (shape, grid(panel, shape));
    let fits = |(_, grid): &(Shape, Grid)| grid.fits(width);
    let (shape, grid) = Shape::ALL.into_iter().map(of).find(fits).unwrap_or_else(|| of(Shape::BAREST));
    let mut notes = Vec::new();
    let sizes = panel.sizes().len();
    if !has_all(panel) {
        let left_out = panel.lines.len() - BEST - WORST;
        notes.push(format!("{left_out} of {} methods are not shown; --json and --html list all", panel.lines.len()));
    }
    if !panel.has_one_size_per_method() && sizes > shape.sizes {
        notes.push(format!("{} of {sizes} sizes shown", shape.sizes));
    }
    notes.extend(spread(panel));
    notes.extend(doubts(panel));
    notes.extend(panel.lines.iter().filter_map(fit));
    notes.extend(steady(panel));
    notes.extend(corrected(panel));
    notes.extend(twin(panel));
    notes.extend(bounced(panel));
    notes.extend(Curve::of(panel).iter().map(Curve::in_words));
    notes.extend(panel.lines.iter().filter_map(|line| {
        Some(format!("{}: {}", line.name, curve::in_words(curve::buffers(line.largest().answer)?)))
    }));
    (grid, notes)
}

/// A note on the twin from which bottlenecks and formulas are, and its largest difference from the figures.
pub(crate) fn twin(panel: &Panel) -> Option<String> {
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let name = points().find_map(|point| Some(point.answer.twin.as_ref()?.platform.clone()))?;
    let differences = points().filter_map(Point::twin_difference_percent);
    let worst = differences.max_by(|one, other| one.abs().total_cmp(&other.abs()))?;
    let (percent, side) = (figures::percent(worst.abs()), if worst < 0.0 { "below" } else { "above" });
    Some(format!(
        "bottlenecks and formulas are those of the twin {name}; its figures are up to {percent} {side} the measured ones"
    ))
}

/// A note on the bounce buffer of mappings for a device, if the answers say whether they use one.
pub(crate) fn bounced(panel: &Panel) -> Option<String> {
    let points = panel.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point.answer)));
    let known = points.filter_map(|(line, answer)| match answer.detail {
        Some(Detail::BounceBuffer(found)) => Some((line, answer, found)),
        _ => None,
    });
    let known: Vec<_> = known.collect();
    let mut bounced = known.iter().filter(|(.., found)| found.bounced_pages > 0);
    let Some((line, answer, BounceBuffer { mapped_pages, bounced_pages })) = bounced.next() else {
        return (!known.is_empty()).then(|| "bounced: no, the device accesses the mapped pages themselves".to_owned());
    };
    Some(format!(
        "bounced: yes, {} of {} answers map pages through a bounce buffer (swiotlb), such as {} at {}: {bounced_pages} of {mapped_pages} pages",
        1 + bounced.count(),
        known.len(),
        line.name,
        figures::size(answer.size_bytes),
    ))
}

/// Whether the table shows all methods: if there are few, or if they are costs of different
/// operations, which do not compete.
fn has_all(panel: &Panel) -> bool {
    panel.lines.len() <= ALL_UP_TO || panel.quantity == Quantity::Cost
}

fn grid(panel: &Panel, shape: Shape) -> Grid {
    let one_size = panel.has_one_size_per_method();
    let sizes = if one_size { Vec::new() } else { representative(&panel.sizes(), shape.sizes) };
    let mut columns = vec![Column::words("method")];
    if one_size {
        columns.push(Column::figures("size"));
        columns.push(Column::figures(panel.unit.symbol()));
    }
    columns.extend(sizes.iter().map(|size| Column::figures(figures::size(*size))));
    let [ci95, reusable_says, of_limit, beyond_coherent, bound_by, formula_says, its_bound] = AT_LARGEST;
    columns.extend([ci95, reusable_says, of_limit, beyond_coherent].map(Column::figures));
    columns.extend([Column::words(bound_by), Column::figures(formula_says)]);
    // A real machine shows the bound of the formula in the column before.
    let has_bound = shape.has_bound && panel.lines.iter().any(|line| !line.largest().answer.waits.is_empty());
    if has_bound {
        columns.push(Column::words(its_bound));
    }
    let row = |line: &Line| {
        let largest = line.largest();
        let mut row = vec![line.name.clone()];
        if one_size {
            row.push(figures::size(largest.answer.size_bytes));
            row.push(cell(panel, Some(largest)));
        }
        row.extend(sizes.iter().map(|size| cell(panel, line.at(*size))));
        row.push(largest.ci95_in(panel.unit).unwrap_or_default());
        row.push(reusable(panel, largest).unwrap_or_default());
        row.push(largest.share_in_words().unwrap_or_default());
        row.push(beyond(panel, line, largest).unwrap_or_default());
        row.push(largest.bound_in_words().unwrap_or_default());
        row.push(formula(panel, line, shape.formula));
        if has_bound {
            row.push(largest.answer.formula.as_ref().and_then(|formula| formula.bound.clone()).unwrap_or_default());
        }
        row
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (place, line) in panel.lines.iter().enumerate() {
        if has_all(panel) || place < BEST || place >= panel.lines.len() - WORST {
            rows.push(row(line));
        } else if place == BEST {
            let mut dots = vec![String::new(); columns.len()];
            "...".clone_into(&mut dots[0]);
            rows.push(dots);
        }
    }
    let mut grid = Grid { columns, rows };
    grid.drop_empty_columns();
    grid
}

fn legend(panel: &Panel, grid: &Grid) -> String {
    let (quantity, symbol) = (panel.quantity_in_words(), panel.unit.symbol());
    let statistic = panel.statistic();
    let spread = if panel.is_rate() || statistic != "median" { "" } else { " ±MAD" };
    let is_at_largest = |column: &Column| AT_LARGEST.contains(&&*column.head);
    if !panel.has_one_size_per_method() && grid.columns.iter().any(is_at_largest) {
        format!("{quantity} in {symbol}, {statistic}{spread}; the columns on the right are for a method's largest size")
    } else {
        format!("{quantity} in {symbol}, {statistic}{spread}")
    }
}

/// Explanations of the terms that appear in `panels`.
fn key(panels: &[Panel]) -> String {
    let mut parts = Vec::new();
    if panels.iter().any(Panel::is_rate) {
        parts.push("a delivered rate counts the time until the last byte is accepted");
    }
    let mut points = panels.iter().flat_map(|panel| panel.lines.iter().map(move |line| (panel, line.largest())));
    if points.any(|(panel, point)| reusable(panel, point).is_some()) {
        parts.push("reusable is the rate until the source buffer may be overwritten");
    }
    if panels.iter().any(|panel| !panel.is_rate() && panel.statistic() == "median") {
        parts.push("MAD is the median absolute deviation");
    }
    let mut points = panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
    if points.clone().any(|point| point.ci95().is_some()) {
        parts.push("ci95 is the 95 % interval of the median");
    }
    if points.any(|point| point.formula().is_some() && point.mad().is_some()) {
        parts.push("formula +1 % means 1 % above the figure");
    }
    if parts.is_empty() { String::new() } else { format!("How to read: {}", parts.join("; ")) }
}

fn cell(panel: &Panel, point: Option<Point>) -> String {
    let Some((point, value)) = point.and_then(|point| Some((point, point.value?))) else { return "-".to_owned() };
    let figure = panel.unit.figure(value);
    match point.mad() {
        Some(mad) if !panel.is_rate() => format!("{figure} ±{}", panel.unit.figure(mad)),
        _ => figure,
    }
}

/// The rate until a runtime releases the source buffer, if that is before the copy completes.
fn reusable(panel: &Panel, point: Point) -> Option<String> {
    let Answer { method, issue_rate_bytes_per_s: issue, delivered_rate_bytes_per_s: delivered, .. } = point.answer;
    let (issue, delivered) = (issue.as_ref()?.median, delivered.as_ref()?.median);
    let is_earlier = matches!(method, Method::RuntimeCopy { .. }) && issue > delivered;
    is_earlier.then(|| panel.unit.figure(issue))
}

/// The formula's figure at the largest size, and its largest difference over all sizes.
fn formula(panel: &Panel, line: &Line, column: FormulaColumn) -> String {
    if panel.kind == Some(TargetKind::Formula) {
        return String::new();
    }
    let largest = line.largest();
    let differences =
        line.points.iter().filter_map(|point| Some((point.answer.size_bytes, point.formula_difference_percent()?)));
    let worst = differences.max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()));
    let difference = worst.map(|(size, percent)| {
        let text = figures::difference(percent);
        let same = largest.formula_difference_percent().map(figures::difference);
        if same.is_some_and(|same| same == text) { text } else { format!("{text} at {}", figures::size(size)) }
    });
    match (largest.formula(), difference, column) {
        (_, _, FormulaColumn::Absent) | (None, _, _) => String::new(),
        (Some(_), Some(difference), FormulaColumn::Difference) => difference,
        (Some(formula), Some(difference), _) => format!("{} ({difference})", panel.unit.figure(formula)),
        (Some(formula), None, _) => panel.unit.figure(formula),
    }
}

/// Selects `count` of `sizes`, evenly spread, with the first and the last.
fn representative(sizes: &[u64], count: usize) -> Vec<u64> {
    match (sizes, count) {
        (_, _) if sizes.len() <= count => sizes.to_vec(),
        ([.., last], 1) => vec![*last],
        _ => (0..count).map(|place| sizes[(place * (sizes.len() - 1) + (count - 1) / 2) / (count - 1)]).collect(),
    }
}

/// A note on the answer with the widest spread, if any is wide.
fn spread(panel: &Panel) -> Option<String> {
    let points = panel.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point)));
    let (line, point, percent) = points
        .filter_map(|(line, point)| Some((line, point, 100.0 * point.mad()? / point.value?)))
        .filter(|(_, _, percent)| percent.is_finite() && *percent >= WIDE_SPREAD_PERCENT)
        .max_by(|a, b| a.2.total_cmp(&b.2))?;
    let size = figures::size(point.answer.size_bytes);
    Some(format!("widest spread: {} at {size}, MAD {} of the median", line.name, figures::percent(percent)))
}

/// Notes on doubtful answers, one for each kind of doubt: the number of answers, and the first of
/// them.
fn doubts(panel: &Panel) -> Vec<String> {
    let points = panel.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point.answer)));
    let mut found: Vec<(DoubtKind, usize, String)> = Vec::new();
    for (line, answer) in points {
        // A busy machine is stated in the first line of the output, for all answers.
        for doubt in answer.doubts.iter().filter(|doubt| doubt.kind != DoubtKind::BusyMachine) {
            if let Some((_, count, _)) = found.iter_mut().find(|(kind, ..)| *kind == doubt.kind) {
                *count += 1;
            } else {
                let first = format!("{} at {}: {}", line.name, figures::size(answer.size_bytes), doubt.text);
                found.push((doubt.kind, 1, first));
            }
        }
    }
    found.sort_by_key(|(kind, ..)| *kind);
    let in_words = |(kind, count, first): (DoubtKind, usize, String)| match count {
        1 => format!("doubtful, {}: {first}", kind.in_words()),
        _ => format!("doubtful, {}: {count} answers, such as {first}", kind.in_words()),
    };
    found.into_iter().map(in_words).collect()
}

/// Notes on answers with fast-forwarded steady state.
fn steady(panel: &Panel) -> Vec<String> {
    let points = panel.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point.answer)));
    let notes = points.filter_map(|(line, answer)| {
        let steady = answer.steady.as_ref()?;
        Some(format!("{} at {}: {}", line.name, figures::size(answer.size_bytes), steady.in_words()))
    });
    notes.collect()
}

/// Notes on errors that links corrected.
fn corrected(panel: &Panel) -> Vec<String> {
    let points = panel.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point.answer)));
    let notes = points.filter(|(_, answer)| !answer.corrected.is_empty()).map(|(line, answer)| {
        let all: Vec<String> = answer.corrected.iter().map(ToString::to_string).collect();
        format!("{} at {}: links corrected {}", line.name, figures::size(answer.size_bytes), all.join(", "))
    });
    notes.collect()
}

fn fit(line: &Line) -> Option<String> {
    Some(format!("{}: {}", line.name, fit_in_words(line.largest().answer)?))
}

/// The straight line of an answer over the number of calls or arguments, in words; `None` without a
/// line.
pub(crate) fn fit_in_words(answer: &Answer) -> Option<String> {
    let fit = answer.fit?;
    let one = if matches!(answer.method, Method::Argument { .. }) { "argument" } else { "call" };
    Some(format!(
        "{} per {one} plus {} fixed (straight line over {one} counts, R² {:.4})",
        figures::time(fit.per_call_ns),
        figures::time(fit.fixed_ns),
        fit.r_squared
    ))
}

fn advice(record: &Record, width: Option<u16>) -> String {
    let topics = Topic::of(&record.advice);
    if topics.is_empty() {
        return String::new();
    }
    let mut lines = vec!["Which method to use".to_owned()];
    for topic in topics {
        lines.push(wrap(&format!("{} of {}", crate::panel::title(topic.question), topic.target), width, 2));
        let mut known: Vec<&str> = Vec::new();
        for stretch in topic.stretches {
            let text = format!(
                "  {}: {}, {}, {} the slowest: {}",
                stretch.sizes_in_words(),
                stretch.method,
                stretch.rates_in_words(),
                stretch.times_in_words(),
                stretch.reason
            );
            lines.push(wrap(&text, width, 6));
            for rule in stretch.rules.iter().filter(|rule| !known.contains(&rule.as_str())) {
                lines.push(wrap(&format!("      ! {rule}"), width, 8));
            }
            known.extend(stretch.rules.iter().map(String::as_str));
        }
    }
    lines.join("\n")
}

/// A finding as one line.
pub(crate) fn finding_in_words(finding: &Finding) -> String {
    format!("{} of {}: {}", crate::panel::title(&finding.question), finding.target, finding.text)
}

/// Skipped cases with a common reason.
pub(crate) struct Reason<'a> {
    /// The reason.
    pub because: &'a str,
    /// Number of skipped cases.
    pub count: usize,
    /// Each question and target once, in order of appearance.
    pub places: Vec<(&'a str, &'a str)>,
    /// Each set of variants once.
    pub what: Vec<&'a str>,
}

/// Groups `skipped` by reason.
pub(crate) fn reasons(skipped: &[Skipped]) -> Vec<Reason<'_>> {
    let mut reasons: Vec<Reason> = Vec::new();
    for one in skipped {
        let place = reasons.iter().position(|reason| reason.because == one.because).unwrap_or_else(|| {
            reasons.push(Reason { because: &one.because, count: 0, places: vec![], what: vec![] });
            reasons.len() - 1
        });
        let reason = &mut reasons[place];
        reason.count += 1;
        if !reason.places.contains(&(&*one.question, &*one.target)) {
            reason.places.push((&one.question, &one.target));
        }
        if !reason.what.contains(&&*one.what) {
            reason.what.push(&one.what);
        }
    }
    reasons
}

impl Reason<'_> {
    /// Questions, targets and variants in words; long lists are replaced by their length.
    pub fn where_in_words(&self) -> String {
        let distinct = |of: fn(&(&str, &str)) -> String| {
            let mut names: Vec<String> = self.places.iter().map(of).collect();
            names.sort();
            names.dedup();
            names
        };
        let some = |names: &[String], noun: &str| match names {
            [] => String::new(),
            names if names.len() <= 3 => names.join(", "),
            names => figures::counted(names.len(), noun),
        };
        let what: Vec<String> = self.what.iter().map(|what| (*what).to_owned()).collect();
        let questions = some(&distinct(|place| words(place.0)), "question");
        format!("{questions} of {}: {}", some(&distinct(|place| place.1.to_owned()), "target"), some(&what, "variant"))
    }
}

fn skipped(skipped: &[Skipped], width: Option<u16>) -> String {
    let lines: Vec<String> = reasons(skipped)
        .iter()
        .map(|reason| {
            let times = if reason.count == 1 { String::new() } else { format!("{} times: ", reason.count) };
            format!("{times}{} ({})", reason.because, reason.where_in_words())
        })
        .collect();
    list("Skipped", &lines, width)
}

fn list(title: &str, lines: &[String], width: Option<u16>) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut text = title.to_owned();
    for line in lines {
        text += "\n";
        text += &wrap(&format!("  - {line}"), width, 6);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use lanemark_method::{ComputeWork, CopyDirection, Discipline, HostWait, Means, Table};

    #[test]
    fn core_pairs_are_shown_as_one_matrix_per_method() {
        let text = tables(&fixture::pairs(), None);
        let expected = "\
one-way latency in ns, median, from core to core
WB 8, one line: 60.0 to 90.0 ns
core     0     1     3
──────────────────────
0        -  60.0  90.0
1     60.0     -     -
3     90.0     -     -
WB 8, two lines";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_record_is_rendered_with_tables_advice_and_warnings() {
        let expected = "\
card-gen5-x16 (simulated): A card on Gen5 x16; parameters: 5 given, 3 assumed, 1 fitted
host (real): This machine's memory

How to read: a delivered rate counts the time until the last byte is accepted; MAD is the median absolute deviation;
  formula +1 % means 1 % above the figure

MMIO write bandwidth of card-gen5-x16 (mmio_write_bandwidth)
delivered rate in GB/s, median; the columns on the right are for a method's largest size
method            64 B   4 KiB   4 MiB  of limit  bound by                          formula  formula's bound
────────────────────────────────────────────────────────────────────────────────────────────────────────────
WC movdir64b      8.00    30.0    51.0    94.4 %  link busy 90 % (card up)    51.5 (+1.0 %)  link
WC nt32+sfence    2.00    20.0    50.0    92.6 %  link busy 90 % (card up)    50.5 (+1.0 %)  link
UC 4            0.0400  0.0400  0.0400  0.0741 %  strong ordering 90 %      0.0404 (+1.0 %)  link
limit: 54.0 GB/s, computed: Gen5 x16 in 256 B packets

MMIO read latency of card-gen5-x16 (mmio_read_latency)
round-trip latency in ns, median ±MAD
method  size      ns  bound by                  formula  formula's bound
────────────────────────────────────────────────────────────────────────
UC 4     4 B  441 ±0  read round trip 99 %  441 (0.0 %)  round trip
UC 8     8 B  442 ±0  read round trip 99 %  442 (0.0 %)  round trip

Store bandwidth to WB memory of host (mmio_write_bandwidth)
delivered rate in GB/s, median
method      size  GB/s  of limit
────────────────────────────────
WB memcpy  4 KiB  12.0   unknown
limit: unknown: no stand-in was measured

Which method to use
MMIO write bandwidth of card-gen5-x16
  64 B to 4 KiB: WC movdir64b, 8.00 GB/s to 30.0 GB/s, 200x to 750x the slowest: whole lines leave as one packet
      ! execute SFENCE before a doorbell
  4 MiB: WC nt32+sfence, 50.0 GB/s, 1250x the slowest: whole lines leave as one packet

Skipped
  - 2 times: this CPU has no AVX-512 (mmio write bandwidth of host: uc 64, wc 64)

Warnings
  - the clock frequency changed
";
        assert_eq!(tables(&fixture::record(), Some(120)), expected);
    }

    #[test]
    fn an_empty_record_is_reported_as_empty() {
        assert_eq!(tables(&fixture::empty(), Some(80)), "no answers\n");
        let mut record = fixture::empty();
        record.interrupted = true;
        assert!(tables(&record, None).starts_with("INTERRUPTED"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let record = fixture::record();
        for width in [60, 80, 120, 200] {
            for line in tables(&record, Some(width)).lines() {
                assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
            }
        }
    }

    #[test]
    fn a_narrow_terminal_drops_sizes_but_no_methods() {
        let text = tables(&fixture::record(), Some(60));
        assert!(text.contains("1 of 3 sizes shown"), "{text}");
        for method in ["UC 4 ", "WC nt32+sfence", "WC movdir64b"] {
            assert!(text.contains(method), "{text}");
        }
    }

    fn spmv(matrix: &str) -> Method {
        let work = ComputeWork::Spmv { matrix: matrix.to_owned(), kernels: 1, ports_each: 1 };
        Method::Compute { work, wait: HostWait::Finish }
    }

    #[test]
    fn a_long_table_shows_the_best_and_worst_methods_and_counts_the_rest() {
        let mut record = fixture::empty();
        for place in 1..=20_u32 {
            let method = spmv(&format!("w{place}"));
            record.answers.push(fixture::bandwidth("card", method, 64, f64::from(place) * 1e9));
        }
        let text = tables(&record, None);
        let shown: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("spmv ")?.split(' ').next()).collect();
        assert_eq!(shown, ["w20", "w19", "w18", "w17", "w16", "w15", "w14", "w13", "w2", "w1"]);
        assert!(text.contains("10 of 20 methods are not shown; --json and --html list all"), "{text}");
    }

    #[test]
    fn costs_are_never_shortened_and_show_the_spread_of_each_size() {
        let mut record = fixture::empty();
        for (place, means) in (1..=13_u32).zip(Means::with(&[Table::Nothing, Table::InMemory])) {
            for size_bytes in [4096, 2 << 20] {
                let method = Method::MapUnmap { means };
                record.answers.push(Answer {
                    quantity: Quantity::Cost,
                    latency_ns: lanemark_record::Summary::of(&[f64::from(place), f64::from(place) + 0.5]),
                    delivered_rate_bytes_per_s: None,
                    ..fixture::bandwidth("host", method, size_bytes, 0.0)
                });
            }
        }
        let text = tables(&record, None);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(" ±0.250")).collect();
        assert_eq!(lines.len(), 13, "{text}");
        assert!(!text.contains("not shown"), "{text}");
        assert_eq!(lines[12].split("  ").next(), Some("baseline free list, strict"));
        assert_eq!(lines[12].matches("13.2 ±0.250").count(), 2, "{text}");
    }

    #[test]
    fn the_cost_beyond_coherence_is_shown_per_direction_and_per_line() {
        let mut record = fixture::empty();
        let mut add = |direction, discipline, size_bytes: u64, ns: f64| {
            let method = Method::SharedBuffer { direction, discipline };
            record.answers.push(Answer {
                quantity: Quantity::Cost,
                latency_ns: lanemark_record::Summary::of(&[ns]),
                delivered_rate_bytes_per_s: None,
                ..fixture::bandwidth("host", method, size_bytes, 0.0)
            });
        };
        for (size, factor) in [(64, 1.0), (4096, 64.0)] {
            add(CopyDirection::ToDevice, Discipline::Coherent, size, 10.0 * factor);
            add(CopyDirection::ToDevice, Discipline::Bounced, size, 30.0 * factor);
            add(CopyDirection::FromDevice, Discipline::Coherent, size, 40.0 * factor);
            add(CopyDirection::FromDevice, Discipline::Bounced, size, 35.0 * factor);
        }
        // The coherent method of this size has no answer.
        add(CopyDirection::ToDevice, Discipline::Uncached, 128, 500.0);
        let text = tables(&record, None);
        let of = |method: &str| {
            text.lines().find(|line| line.starts_with(method)).unwrap_or_else(|| panic!("{method}: {text}"))
        };
        assert!(text.contains("beyond coherent"), "{text}");
        assert!(of("to device, bounced").contains("+1280 (+20.0 a line)"), "{text}");
        assert!(of("from device, bounced").contains("-320 (-5.00 a line)"), "{text}");
        for alone in ["to device, coherent", "from device, coherent", "to device, uncached"] {
            assert!(!of(alone).contains("a line"), "{text}");
        }
    }

    #[test]
    fn figures_of_formulas_are_not_called_medians() {
        let mut record = fixture::record();
        record.targets[0].kind = TargetKind::Formula;
        record.answers.truncate(11);
        for answer in &mut record.answers {
            (answer.delivered_rate_bytes_per_s, answer.latency_ns) = (None, None);
        }
        let text = tables(&record, None);
        assert!(text.contains("delivered rate in GB/s, by formula;") && !text.contains("MAD"), "{text}");
    }

    #[test]
    fn representative_sizes_keep_both_ends() {
        let nine: Vec<u64> = (0..9).map(|step| 64 << (2 * step)).collect();
        assert_eq!(representative(&nine, 5), [64, 1 << 10, 16 << 10, 256 << 10, 4 << 20]);
        assert_eq!(representative(&nine, 2), [64, 4 << 20]);
        assert_eq!(representative(&nine, 1), [4 << 20]);
        assert_eq!(representative(&[64], 5), [64]);
        assert!(representative(&[], 1).is_empty());
    }

    #[test]
    fn a_wide_spread_gets_a_note() {
        let mut record = fixture::record();
        record.answers[0].delivered_rate_bytes_per_s = lanemark_record::Summary::of(&[1e9, 2e9, 3e9]);
        let text = tables(&record, None);
        assert!(text.contains("widest spread: UC 4 at 64 B, MAD 50.0 % of the median"), "{text}");
    }

    #[test]
    fn a_note_names_the_first_answer_with_bounced_pages() {
        let mut record = fixture::record();
        record.answers.truncate(3);
        assert!(!tables(&record, None).contains("bounced"));
        let mut detail = |nth: usize, bounced_pages| {
            record.answers[nth].detail = Some(Detail::BounceBuffer(BounceBuffer { mapped_pages: 16, bounced_pages }));
            tables(&record, None)
        };
        assert!(detail(0, 0).contains("bounced: no, "));
        let (second, third) = (detail(1, 16), detail(2, 3));
        assert!(second.contains("bounced: yes, 1 of 2 answers ") && second.contains(": 16 of 16 pages"), "{second}");
        assert!(third.contains("bounced: yes, 2 of 3 answers "), "{third}");
    }

    #[test]
    fn intervals_and_doubts_are_shown() {
        let mut record = fixture::record();
        record.answers.truncate(3);
        let samples: Vec<f64> = (0..15).map(|n| 50e9 + 0.1e9 * f64::from(n)).collect();
        record.answers[2].delivered_rate_bytes_per_s = lanemark_record::Summary::of(&samples);
        let doubt = |kind, text: &str| lanemark_record::Doubt { kind, text: text.to_owned() };
        record.answers[1].doubts =
            vec![doubt(DoubtKind::WideInterval, "so wide"), doubt(DoubtKind::Drift, "it drifts")];
        record.answers[2].doubts = vec![doubt(DoubtKind::WideInterval, "wider")];
        let text = tables(&record, None);
        assert!(text.contains("ci95 is the 95 % interval of the median"), "{text}");
        assert!(text.contains(" 50.3 to 51.1 "), "{text}");
        let drift = text.find("doubtful, drift: UC 4 at 4 KiB: it drifts").unwrap();
        let wide = text.find("doubtful, wide interval: 2 answers, such as UC 4 at 4 KiB: so wide").unwrap();
        assert!(drift < wide, "the worst kind comes first");
    }

    #[test]
    fn a_fitted_line_is_shown_below_its_table() {
        let mut record = fixture::record();
        record.answers[0].fit =
            Some(lanemark_record::LineFit { per_call_ns: 1210.0, fixed_ns: 300.0, r_squared: 0.999_8 });
        record.answers.truncate(1);
        let text = tables(&record, None);
        assert!(text.contains("UC 4: 1.21 us per call plus 300 ns fixed"), "{text}");
    }

    #[test]
    fn skipped_cases_with_the_same_reason_share_a_line() {
        let text = tables(&fixture::record(), None);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("AVX-512")).collect();
        assert_eq!(lines, ["  - 2 times: this CPU has no AVX-512 (mmio write bandwidth of host: uc 64, wc 64)"]);
    }
}
