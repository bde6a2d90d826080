//! A record as one HTML page that works offline, loads nothing, and contains all figures.

use crate::advice::Topic;
use crate::answer_trace::{AnswerTrace, PanelWaterfall};
use crate::callers::Callers;
use crate::chart;
use crate::coherence::{BEYOND, beyond};
use crate::curve;
use crate::distribution::distributions;
use crate::error::ReportError;
use crate::fabric::{self, Fabric};
use crate::figures;
use crate::grid::{Column, Grid};
use crate::loaded::Curve;
use crate::matrix::Matrix;
use crate::panel::{self, Line, Panel, Point, words};
use crate::picture;
use crate::reproduction;
use crate::sensitivity::{WhatIf, what_ifs};
use crate::table::{bounced, fit_in_words, label, no_card, origins_in_words, reasons, twin};
use crate::timeline::WATERFALL_SCRIPT;
use crate::waits::{CausePart, WaitBar, cause_parts, causes, shares, wait_bars};
use crate::what_if_page::{self, WhatIfPage};
use askama::Template;
use lanemark_record::{CeilingKind, Picture, Record, Reproduction, Target, TargetKind, Verdict};

/// Largest number of bars that are shown without unfolding.
const BARS_AT_ONCE: usize = 12;
/// Largest number of methods of a panel whose links are drawn.
const DRAWINGS: usize = 6;
/// Renders `record`, and papers reproduced with it, as one HTML file that needs no network.
///
/// The page has plots, stall causes, advice, every figure in a table, skipped cases and the origins
/// of parameters. Samples are only in the record file.
///
/// # Errors
/// [`ReportError`] through a bug of this program; every record can be rendered.
pub fn html(record: &Record, reproductions: &[Reproduction]) -> Result<String, ReportError> {
    html_with_traces(record, reproductions, &[])
}

/// As [`html`], with the waterfalls of some answers: those of [`answers_to_trace`](crate::answers_to_trace).
///
/// # Errors
/// As [`html`].
pub fn html_with_traces(
    record: &Record,
    reproductions: &[Reproduction],
    traces: &[AnswerTrace],
) -> Result<String, ReportError> {
    let panels = Panel::of(record);
    let plots = chart::embeddable(&chart::charts(&panels)).map_err(|source| ReportError::Plots { source })?;
    let what_ifs: Vec<Option<WhatIfPage>> = (record.targets.iter().enumerate())
        .map(|(place, target)| WhatIfPage::of(record, place, target, &panels))
        .collect();
    let live = chart::embeddable(&what_if_page::data(&what_ifs)).map_err(|source| ReportError::Plots { source })?;
    let mut page = Page::of(record, reproductions, &panels, what_ifs, [plots, live], traces);
    let mut waterfalls = vec![serde_json::Value::Null; traces.len()];
    for panel in page.targets.iter_mut().flat_map(|part| &mut part.panels).chain(&mut page.strays) {
        if let Some(PanelWaterfall { place, waterfall }) = &mut panel.waterfall {
            waterfalls[*place] = waterfall.data.take();
        }
    }
    if waterfalls.iter().any(|waterfall| !waterfall.is_null()) {
        let data = chart::embeddable(&waterfalls.into()).map_err(|source| ReportError::Plots { source })?;
        page.waterfalls = Some((data, WATERFALL_SCRIPT));
    }
    page.render().map_err(|source| ReportError::Template { source })
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    record: &'a Record,
    command: String,
    written: Option<String>,
    host: Option<String>,
    glance: Vec<Glance>,
    targets: Vec<TargetPart<'a>>,
    strays: Vec<PanelPart>,
    topics: Vec<Topic<'a>>,
    skipped: Vec<(usize, String, String)>,
    reproductions: Vec<Reproduced<'a>>,
    plots: String,
    /// Data of the sliders; empty without any.
    live: String,
    live_module: &'static str,
    live_script: &'static str,
    /// Data of the waterfalls, and their script; `None` without any.
    waterfalls: Option<(String, &'static str)>,
    uplot_script: &'static str,
    uplot_style: &'static str,
    uplot_licence: &'static str,
    script: &'static str,
    style: &'static str,
}

/// One panel in one line: the best method and its share of the limit.
struct Glance {
    id: String,
    title: String,
    target: String,
    is_first_of_target: bool,
    method: String,
    figure: String,
    size: String,
    /// The share of the limit, 0 to 100, for a bar.
    share: Option<f64>,
    share_in_words: String,
    limit: String,
    wait: String,
}

struct TargetPart<'a> {
    target: &'a Target,
    kind: String,
    origins: Option<String>,
    /// Shares of given, assumed and fitted parameters, in percent.
    origin_shares: [f64; 3],
    platform: Vec<(String, String)>,
    what_if: Option<WhatIfPage>,
    panels: Vec<PanelPart>,
}

struct PanelPart {
    id: String,
    place: usize,
    title: String,
    question: String,
    target: String,
    quantity: &'static str,
    statistic: &'static str,
    unit: &'static str,
    is_plotted: bool,
    in_words: String,
    limits: Vec<String>,
    bars: Vec<Bar>,
    /// Position of the limit on the bars, in percent of their full length.
    limit_mark: Option<f64>,
    /// The figure of a bar of full length, in the unit of the panel.
    full: f64,
    waits: Vec<WaitBar>,
    causes: Vec<CausePart>,
    shares: Grid,
    what_ifs: Vec<WhatIf>,
    /// The samples: description and picture.
    distributions: Option<(String, String)>,
    fabrics: Vec<FabricDrawing>,
    /// Number of methods whose links are not drawn.
    fabrics_left_out: usize,
    fits: Vec<String>,
    matrices: Vec<MatrixPart>,
    /// Why the device is not a card, if it is not.
    no_card: Option<String>,
    /// Whether mappings for a device go through a bounce buffer.
    bounced: Option<String>,
    /// The twin from which bottlenecks and formulas are.
    twin: Option<String>,
    curves: Vec<CurveDrawing>,
    /// One answer TLP by TLP.
    waterfall: Option<PanelWaterfall>,
    numbers: Grid,
}

/// One method between all pairs of cores, as a matrix.
struct MatrixPart {
    name: String,
    cores: Vec<u32>,
    /// A row per core; each cell has a figure and a shade in percent.
    rows: Vec<(u32, Vec<MatrixCell>)>,
}

/// A figure and its shade in percent; `None` for an empty cell.
type MatrixCell = Option<(String, f64)>;

/// A curve and its description.
struct CurveDrawing {
    in_words: String,
    svg: String,
}

impl PanelPart {
    /// Explanation of the marks on the bars.
    fn marks_in_words(&self) -> Option<&'static str> {
        match (self.bars.iter().any(|bar| bar.formula_mark.is_some()), self.limit_mark.is_some()) {
            (true, true) => Some("dotted the formula, dashed the limit"),
            (true, false) => Some("dotted the formula"),
            (false, true) => Some("dashed the limit"),
            (false, false) => None,
        }
    }
}

/// One method with one size.
struct Bar {
    name: String,
    figure: String,
    /// Length and formula mark, in percent of the full length.
    length: Option<f64>,
    formula_mark: Option<f64>,
}

/// The links of a target with their traffic for one answer.
struct FabricDrawing {
    name: String,
    figure: String,
    in_words: String,
    waits: String,
    svg: String,
    not_drawn: String,
}

struct Reproduced<'a> {
    reproduction: &'a Reproduction,
    summary: String,
    columns: Vec<Column>,
    rows: Vec<(&'static str, Vec<String>)>,
    bounds: Vec<(bool, Vec<String>)>,
    notes: Vec<(&'a str, &'a str)>,
    pictures: Vec<Drawn<'a>>,
}

/// A picture of a reproduction.
struct Drawn<'a> {
    title: &'a str,
    note: &'a str,
    svg: String,
    key: Vec<(usize, &'a str)>,
    numbers: Grid,
}

impl<'a> Page<'a> {
    fn of(
        record: &'a Record,
        reproductions: &'a [Reproduction],
        panels: &[Panel<'a>],
        what_ifs: Vec<Option<WhatIfPage>>,
        [plots, live]: [String; 2],
        traces: &[AnswerTrace],
    ) -> Page<'a> {
        let causes = causes(record);
        let parts = |target: Option<&str>| {
            let wanted = |panel: &Panel| match target {
                Some(target) => panel.target == target,
                None => record.targets.iter().all(|target| target.name != panel.target),
            };
            let numbered = panels.iter().enumerate().filter(|(_, panel)| wanted(panel));
            let part = |(place, panel)| PanelPart {
                waterfall: PanelWaterfall::of(record, panel, traces),
                ..panel_part(record, place, panel, &causes)
            };
            numbered.map(part).collect::<Vec<_>>()
        };
        Page {
            record,
            command: record.command.join(" "),
            written: record.written_unix_s.map(figures::date),
            host: record.host.as_ref().map(lanemark_record::Host::in_words),
            glance: (0..panels.len()).map(|place| glance(place, panels)).collect(),
            targets: (record.targets.iter().zip(what_ifs))
                .map(|(target, what_if)| target_part(target, what_if, parts(Some(&target.name))))
                .collect(),
            strays: parts(None),
            topics: Topic::of(&record.advice),
            skipped: reasons(&record.skipped)
                .into_iter()
                .map(|reason| (reason.count, reason.because.to_owned(), reason.where_in_words()))
                .collect(),
            reproductions: reproductions.iter().map(reproduced).collect(),
            plots,
            live_module: if live == "[]" { "" } else { what_if_page::MODULE },
            live: if live == "[]" { String::new() } else { live },
            waterfalls: None,
            live_script: include_str!("../assets/live.js"),
            uplot_script: include_str!("../assets/uplot-1.6.32/uPlot.iife.min.js"),
            uplot_style: include_str!("../assets/uplot-1.6.32/uPlot.min.css"),
            uplot_licence: include_str!("../assets/uplot-1.6.32/LICENSE"),
            script: include_str!("../assets/report.js"),
            style: include_str!("../assets/report.css"),
        }
    }
}

/// The bars that are visible without unfolding.
fn first<T>(bars: &[T]) -> &[T] {
    &bars[..bars.len().min(BARS_AT_ONCE)]
}

/// The bars to unfold.
fn rest<T>(bars: &[T]) -> &[T] {
    &bars[bars.len().min(BARS_AT_ONCE)..]
}

fn id(place: usize) -> String {
    format!("panel-{place}")
}

fn glance(place: usize, panels: &[Panel]) -> Glance {
    let panel = &panels[place];
    let best = &panel.lines[0];
    let point = best.largest();
    let ceiling = &point.answer.ceiling;
    let kind = match ceiling.kind {
        CeilingKind::Computed => "computed",
        CeilingKind::Measured => "measured",
        CeilingKind::Unknown => "unknown",
    };
    let limit =
        ceiling.rate_bytes_per_s.map_or_else(|| kind.to_owned(), |rate| format!("{} ({kind})", figures::rate(rate)));
    Glance {
        id: id(place),
        title: panel.title(),
        target: panel.target.to_owned(),
        is_first_of_target: place == 0 || panels[place - 1].target != panel.target,
        method: best.name.clone(),
        figure: point.value.map_or_else(|| "no figure".to_owned(), |value| panel.unit.figure_with_symbol(value)),
        size: figures::size(point.answer.size_bytes),
        share: point.answer.share_of_ceiling_percent.filter(|_| panel.is_rate()).map(|share| share.clamp(0.0, 100.0)),
        share_in_words: point.answer.share_of_ceiling_percent.map(figures::percent).unwrap_or_default(),
        limit: if panel.is_rate() { limit } else { String::new() },
        wait: point.bound_in_words().unwrap_or_default(),
    }
}

fn target_part(target: &Target, what_if: Option<WhatIfPage>, panels: Vec<PanelPart>) -> TargetPart<'_> {
    let origin_shares = target.origins.map_or([0.0; 3], |origins| {
        let inherited = origins.inherited.unwrap_or_default();
        let counts = [
            f64::from(origins.given) + f64::from(inherited.given),
            f64::from(origins.assumed) + f64::from(inherited.assumed),
            f64::from(origins.fitted) + f64::from(inherited.fitted),
        ];
        let all: f64 = counts.iter().sum();
        counts.map(|count| if all > 0.0 { 100.0 * count / all } else { 0.0 })
    });
    let mut platform = Vec::new();
    let design = target.design.as_ref().and_then(|design| serde_json::to_value(design).ok());
    if let Some(value) = target.platform.as_ref().or(design.as_ref()) {
        flatten("", value, &mut platform);
    }
    TargetPart {
        target,
        kind: label(target),
        origins: target.origins.map(origins_in_words),
        origin_shares,
        platform,
        what_if,
        panels,
    }
}

/// Flattens `value` into lines of path and text: tables become dotted paths, and lists of plain
/// values stay together.
fn flatten(path: &str, value: &serde_json::Value, lines: &mut Vec<(String, String)>) {
    use serde_json::Value;
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, value, lines);
            }
        }
        Value::Array(list) if list.iter().any(|item| item.is_object() || item.is_array()) => {
            for (place, value) in list.iter().enumerate() {
                flatten(&format!("{path}[{place}]"), value, lines);
            }
        }
        Value::String(text) => lines.push((path.to_owned(), text.clone())),
        _ => lines.push((path.to_owned(), value.to_string())),
    }
}

fn panel_part(record: &Record, place: usize, panel: &Panel, causes: &[&str]) -> PanelPart {
    let is_plotted = !panel.has_one_size_per_method();
    let waits = wait_bars(panel, causes);
    let ceilings = panel.ceilings();
    let (fabrics, fabrics_left_out) = fabrics(record, place, panel);
    let matrices = Matrix::of(panel);
    // A matrix, or a picture by cores, replaces the bars.
    let callers = Callers::of(record, panel);
    let is_drawn = is_plotted || !matrices.is_empty() || !callers.is_empty();
    let (bars, limit_mark, full) = if is_drawn { (Vec::new(), None, 0.0) } else { bars(panel) };
    PanelPart {
        id: id(place),
        place,
        title: panel.title(),
        question: panel.question.to_owned(),
        target: panel.target.to_owned(),
        quantity: panel.quantity_in_words(),
        statistic: panel.statistic(),
        unit: panel.unit.symbol(),
        is_plotted,
        in_words: in_words(panel),
        limits: ceilings
            .iter()
            .filter(|_| panel.is_rate())
            .map(|(ceiling, _)| panel::ceiling_in_words(ceiling))
            .collect(),
        bars,
        limit_mark,
        full: full / panel.unit.in_base(),
        waits,
        causes: cause_parts(panel, causes),
        shares: shares(panel, causes),
        what_ifs: what_ifs(panel, &format!("tornado-{place}")),
        distributions: distributions(panel, &format!("samples-{place}")),
        fabrics,
        fabrics_left_out,
        fits: panel
            .lines
            .iter()
            .filter_map(|line| Some(format!("{}: {}", line.name, fit_in_words(line.largest().answer)?)))
            .collect(),
        matrices: matrices.iter().map(|matrix| matrix_part(matrix, panel)).collect(),
        no_card: no_card(record, panel),
        bounced: bounced(panel),
        twin: twin(panel),
        curves: loaded(place, panel)
            .into_iter()
            .chain(callers.iter().enumerate().map(|(number, callers)| CurveDrawing {
                in_words: callers.in_words(),
                svg: callers.drawing(&format!("callers-{place}-{number}")),
            }))
            .chain(panel.lines.iter().filter_map(|line| {
                let buffers = curve::buffers(line.largest().answer)?;
                let in_words = format!("{}: {}", line.name, curve::in_words(buffers));
                Some(CurveDrawing { in_words, svg: curve::drawing(buffers) })
            }))
            .collect(),
        waterfall: None,
        numbers: numbers(panel),
    }
}

/// Latency against load, one curve per size.
fn loaded(place: usize, panel: &Panel) -> Vec<CurveDrawing> {
    let curves = Curve::of(panel);
    let drawing = |(number, curve): (usize, &Curve)| CurveDrawing {
        in_words: curve.in_words(),
        svg: curve.drawing(&format!("loaded-{place}-{number}")),
    };
    curves.iter().enumerate().map(drawing).collect()
}

/// The links for the method that is shown first and for some others, and the number of methods left
/// out.
fn fabrics(record: &Record, place: usize, panel: &Panel) -> (Vec<FabricDrawing>, usize) {
    let first = fabric::shown_first(panel);
    let others = panel.lines.iter().map(|line| line.largest().answer).filter(|answer| !std::ptr::eq(*answer, first));
    let shown: Vec<_> =
        std::iter::once(first).chain(others).filter_map(|answer| Some((answer, Fabric::of(record, answer)?))).collect();
    let drawing = |(number, (answer, fabric)): (usize, &(&lanemark_record::Answer, Fabric))| {
        let line = panel.lines.iter().find(|line| std::ptr::eq(line.largest().answer, *answer));
        let waits: Vec<String> = (answer.waits.iter().take(3))
            .map(|wait| format!("{} {}", words(&wait.cause), figures::whole_percent(wait.share_percent)))
            .collect();
        FabricDrawing {
            name: format!("{}, {}", answer.method, figures::size(answer.size_bytes)),
            figure: line
                .and_then(|line| line.largest().value)
                .map_or_else(String::new, |value| panel.unit.figure_with_symbol(value)),
            in_words: fabric.in_words(),
            waits: waits.join(", "),
            svg: fabric.drawing(&format!("fabric-{place}-{number}"))
                + &fabric.narrow_drawing(&format!("fabric-{place}-{number}-narrow")),
            not_drawn: match fabric.not_drawn() {
                0 => String::new(),
                count => format!("not drawn, not connected to a root: {}", figures::counted(count, "link")),
            },
        }
    };
    let left_out = shown.len().saturating_sub(DRAWINGS);
    (shown.iter().take(DRAWINGS).enumerate().map(drawing).collect(), left_out)
}

fn matrix_part(matrix: &Matrix, panel: &Panel) -> MatrixPart {
    let cell = |value: &Option<f64>| value.map(|value| (panel.unit.figure(value), matrix.shade_percent(value)));
    let row = |(core, cells): (&u32, &Vec<Option<f64>>)| (*core, cells.iter().map(cell).collect());
    MatrixPart {
        name: matrix.name.clone(),
        cores: matrix.cores.clone(),
        rows: matrix.cores.iter().zip(&matrix.cells).map(row).collect(),
    }
}

/// Description of a plot for screen readers.
fn in_words(panel: &Panel) -> String {
    let best = &panel.lines[0];
    let point = best.largest();
    let size = figures::size(point.answer.size_bytes);
    let mut text = format!(
        "{} of {}: {} of {}",
        panel.title(),
        panel.target,
        panel.quantity_in_words(),
        figures::counted(panel.lines.len(), "method")
    );
    if let Some(value) = point.value {
        text += &format!("; best at {size} is {} with {}", best.name, panel.unit.figure_with_symbol(value));
    }
    if let Some(share) = point.answer.share_of_ceiling_percent {
        text += &format!(", {} of the limit", figures::percent(share));
    }
    text + "; the table below has all figures"
}

/// The bars, the position of the limit, and the figure of a bar of full length.
fn bars(panel: &Panel) -> (Vec<Bar>, Option<f64>, f64) {
    let points: Vec<(&Line, Point)> = panel.lines.iter().map(|line| (line, line.largest())).collect();
    let limit = match &*panel.ceilings() {
        [(ceiling, _)] if panel.is_rate() => ceiling.rate_bytes_per_s,
        _ => None,
    };
    let longest = points
        .iter()
        .flat_map(|(_, point)| [point.value, point.formula()])
        .chain([limit])
        .flatten()
        .fold(0.0, f64::max);
    let percent = |value: Option<f64>| value.filter(|_| longest > 0.0).map(|value| 100.0 * value / longest);
    let bars = points.into_iter().map(|(line, point)| Bar {
        name: format!("{}, {}", line.name, figures::size(point.answer.size_bytes)),
        figure: match (point.value, point.mad()) {
            (None, _) => "no figure".to_owned(),
            (Some(value), mad) => {
                let spread = point.ci95_in(panel.unit).map(|interval| format!(" (ci95 {interval})"));
                let mad = mad.filter(|_| !panel.is_rate()).map(|mad| format!(" (MAD {})", panel.unit.figure(mad)));
                panel.unit.figure_with_symbol(value) + &spread.or(mad).unwrap_or_default()
            }
        },
        length: percent(point.value),
        formula_mark: percent(point.formula().filter(|_| panel.kind != Some(TargetKind::Formula))),
    });
    (bars.collect(), percent(limit), longest)
}

/// All figures of a panel.
fn numbers(panel: &Panel) -> Grid {
    let symbol = panel.unit.symbol();
    let figure = |value: Option<f64>| value.map(|value| panel.unit.figure(value)).unwrap_or_default();
    let rate = |value: Option<f64>| value.map(figures::rate).unwrap_or_default();
    let mut columns = vec![Column::words("method")];
    columns.extend(
        [
            "size".to_owned(),
            format!("{}, {symbol}", panel.statistic()),
            "ci95".to_owned(),
            "MAD".to_owned(),
            "p1".to_owned(),
            "p99".to_owned(),
            "samples".to_owned(),
            "dropped".to_owned(),
            "issue rate, median".to_owned(),
            "limit".to_owned(),
            "of limit".to_owned(),
            format!("formula, {symbol}"),
            "formula differs".to_owned(),
            BEYOND.to_owned(),
        ]
        .map(Column::figures),
    );
    columns.push(Column::words("doubtful"));
    columns.push(Column::words("bound by"));
    columns.push(Column::words("formula holds for"));
    columns.extend(
        ["MWr", "MRd", "CplD", "payload bytes", "bytes confirmed", "of bytes claimed", "iterations", "timer cost"]
            .map(Column::figures),
    );
    let mut grid = Grid { columns, rows: Vec::new() };
    for (line, point) in panel.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point))) {
        let answer = point.answer;
        let summary = panel::summary(answer);
        let formula = answer.formula.as_ref();
        let count = |count: Option<u64>| count.map(|count| count.to_string()).unwrap_or_default();
        grid.rows.push(vec![
            line.name.clone(),
            figures::size(answer.size_bytes),
            figure(point.value),
            point.ci95_in(panel.unit).unwrap_or_default(),
            figure(summary.map(|summary| summary.mad)),
            figure(summary.map(|summary| summary.p1)),
            figure(summary.map(|summary| summary.p99)),
            count(summary.map(|summary| summary.count)),
            // Usually nothing is dropped, and a column of zeros is useless.
            count(answer.dropped.map(|dropped| dropped.count()).filter(|count| *count > 0)),
            rate(answer.issue_rate_bytes_per_s.map(|summary| summary.median)),
            rate(answer.ceiling.rate_bytes_per_s),
            point.share_in_words().unwrap_or_default(),
            figure(point.formula()),
            point.formula_difference_percent().map(figures::difference).unwrap_or_default(),
            beyond(panel, line, *point).unwrap_or_default(),
            answer.doubts.iter().map(|doubt| doubt.text.as_str()).collect::<Vec<_>>().join("; "),
            formula.and_then(|formula| formula.bound.clone()).unwrap_or_default(),
            formula.map(|formula| formula.holds_for.clone()).unwrap_or_default(),
            count(answer.tlps.map(|tlps| tlps.writes)),
            count(answer.tlps.map(|tlps| tlps.reads)),
            count(answer.tlps.map(|tlps| tlps.completions)),
            count(answer.tlps.map(|tlps| tlps.payload_bytes)),
            count(answer.bytes.map(|bytes| bytes.confirmed_bytes)),
            count(answer.bytes.map(|bytes| bytes.claimed_bytes)),
            answer.passes.to_string(),
            figures::time(answer.timer_cost_ns),
        ]);
    }
    grid.drop_empty_columns();
    grid
}

fn reproduced(reproduction: &Reproduction) -> Reproduced<'_> {
    let mut grid =
        Grid { columns: reproduction::columns(), rows: reproduction.rows.iter().map(reproduction::cells).collect() };
    grid.drop_empty_columns();
    let style = |verdict| match verdict {
        Verdict::Agrees => "agrees",
        Verdict::Disagrees => "disagrees",
        Verdict::KnownGap => "gap",
        Verdict::Listed | Verdict::Sic | Verdict::Later => "aside",
    };
    Reproduced {
        reproduction,
        summary: reproduction::summary(reproduction),
        columns: grid.columns,
        rows: reproduction.rows.iter().map(|row| style(row.verdict)).zip(grid.rows).collect(),
        bounds: reproduction.bounds.iter().map(|bound| (bound.met, reproduction::bound_cells(bound))).collect(),
        notes: reproduction.rows.iter().filter(|row| !row.note.is_empty()).map(|row| (&*row.id, &*row.note)).collect(),
        pictures: reproduction
            .pictures
            .iter()
            .enumerate()
            .map(|(place, picture)| drawn(&format!("{}-{place}", reproduction.paper), picture))
            .collect(),
    }
}

fn drawn<'a>(id: &str, picture: &'a Picture) -> Drawn<'a> {
    Drawn {
        title: &picture.title,
        note: &picture.note,
        svg: picture::drawing(picture, id),
        key: picture::key(picture),
        numbers: picture::grid(picture),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use lanemark_method::{ComputeWork, HostWait, Method};
    use lanemark_record::{ResourceUse, Sensitivity, Twin, WaitShare};

    /// The part of `page` between `before` and `after`.
    fn between<'a>(page: &'a str, before: &str, after: &str) -> &'a str {
        page.split_once(before).unwrap().1.split_once(after).unwrap().0
    }

    fn plots(page: &str) -> serde_json::Value {
        serde_json::from_str(between(page, "id=\"plots\">", "</script>")).unwrap()
    }

    #[test]
    fn every_answer_is_in_the_data_and_in_a_table() {
        let record = fixture::record();
        let page = html(&record, &[]).unwrap();
        let plots = plots(&page);
        let points: usize = plots
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|chart| chart["lines"].as_array().unwrap())
            .map(|line| line["tips"].as_array().unwrap().iter().filter(|tip| tip.is_array()).count())
            .sum();
        assert_eq!(points, record.answers.len());
        let rows = page.matches("<tr class=\"answer\">").count();
        assert_eq!(rows, record.answers.len());
    }

    #[test]
    fn strings_of_a_record_never_become_markup() {
        const ATTACK: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onload=\"x";
        let text = lanemark_record::file::to_json(&fixture::record());
        // Replaces every string value and every name of the record with the attack.
        let poisoned = |text: &str| -> Record {
            let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
            poison(&mut value, ATTACK);
            serde_json::from_value(value).unwrap()
        };
        let mut record = poisoned(&text);
        // These are the only names in a method that do not come from a closed list.
        for answer in &mut record.answers[..3] {
            let work = ComputeWork::Spmv { matrix: ATTACK.to_owned(), kernels: 1, ports_each: 1 };
            answer.method = Method::Compute { work, wait: HostWait::Finish };
        }
        let mut reproduction = fixture::reproduction();
        ATTACK.clone_into(&mut reproduction.title);
        ATTACK.clone_into(&mut reproduction.rows[3].note);
        ATTACK.clone_into(&mut reproduction.rows[3].what);
        let page = html(&record, &[reproduction]).unwrap();
        assert!(!page.contains("<script>alert"), "an opening tag was not escaped");
        assert!(!page.contains("<img"), "an image was not escaped");
        let (markup, data) = (page.replace(between(&page, "id=\"plots\">", "</script>"), ""), plots(&page).to_string());
        assert!(!markup.contains("\" onload="), "an attribute was not escaped");
        let clean = html(&fixture::record(), &[fixture::reproduction()]).unwrap();
        assert_eq!(page.matches("</script>").count(), clean.matches("</script>").count());
        assert!(data.contains("alert(1)"), "the name is still there as data");
        let drawn = html(&poisoned(&lanemark_record::file::to_json(&fixture::fabric(8))), &[]).unwrap();
        assert!(drawn.contains("<svg class=\"fabric\""));
        let drawn = drawn.replace(between(&drawn, "id=\"plots\">", "</script>"), "");
        assert!(!drawn.contains("<script>alert") && !drawn.contains("<img") && !drawn.contains("\" onload="));
    }

    fn poison(value: &mut serde_json::Value, with: &str) {
        use serde_json::Value;
        const CLOSED: [&str; 9] =
            ["kind", "quantity", "verdict", "class", "schema", "interrupted", "direction", "above", "method"];
        match value {
            Value::String(text) => with.clone_into(text),
            Value::Array(list) => list.iter_mut().for_each(|item| poison(item, with)),
            Value::Object(map) => {
                map.iter_mut().filter(|(key, _)| !CLOSED.contains(&&***key)).for_each(|(_, item)| poison(item, with));
            }
            _ => {}
        }
    }

    #[test]
    fn nothing_is_loaded_from_anywhere() {
        let page = html(&fixture::record(), &[fixture::reproduction()]).unwrap();
        assert!(page.contains("default-src 'none'"), "the content security policy blocks it too");
        for loader in ["src=", "@import", "url(", "<link", "fetch(", "XMLHttpRequest", "import("] {
            assert!(!page.contains(loader), "{loader}");
        }
        for target in page.split("href=").skip(1) {
            assert!(target.starts_with("\"#") || target.starts_with("\"data:,"), "{}", &target[..20]);
        }
    }

    #[test]
    fn an_empty_record_makes_a_page() {
        let page = html(&fixture::empty(), &[]).unwrap();
        assert!(page.contains("No answers"));
        assert!(page.trim_end().ends_with("</html>"));
    }

    #[test]
    fn answers_of_an_unlisted_target_are_shown() {
        let mut record = fixture::record();
        record.targets.clear();
        let page = html(&record, &[]).unwrap();
        assert_eq!(page.matches("<tr class=\"answer\">").count(), record.answers.len());
    }

    #[test]
    fn effects_of_parameters_and_the_use_of_resources_are_shown_with_the_twin_they_are_from() {
        let mut record = fixture::record();
        let before = html(&record, &[]).unwrap();
        assert!(!before.contains("What if: ") && !before.contains("the twin"));
        let answer = &mut record.answers[0];
        answer.sensitivities = vec![Sensitivity {
            key: "dma.tags".to_owned(),
            value: 8.0,
            changed_to: 16.0,
            change_percent: 99.8,
            formula_change_percent: None,
        }];
        let (place, cause) = ("DMA engine".to_owned(), "data_path".to_owned());
        answer.resources = vec![ResourceUse { place, cause, direction: None, share_percent: 37.0 }];
        let rate = answer.delivered_rate_bytes_per_s.map(|rate| 1.25 * rate.median);
        let platform = "my-card".to_owned();
        answer.twin = Some(Twin { platform, latency_ns: None, delivered_rate_bytes_per_s: rate });
        let page = html(&record, &[]).unwrap();
        let shown = between(&page, "What if: ", "</details>");
        for words in ["dma.tags", "8 to 16", "+99.8 %", "DMA engine", "data path", "37 %"] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(
            page.contains("those of the twin my-card; its figures are up to 25.0 % above the measured ones"),
            "{page}"
        );
    }

    #[test]
    fn sizes_are_plotted_and_single_sizes_are_bars() {
        let page = html(&fixture::record(), &[]).unwrap();
        let bandwidth = between(&page, "id=\"panel-0\"", "</section>");
        let latency = between(&page, "id=\"panel-1\"", "</section>");
        assert!(bandwidth.contains("class=\"plot\"") && !bandwidth.contains("class=\"bars\""));
        assert!(latency.contains("class=\"bars\"") && !latency.contains("class=\"plot\""));
        assert!(bandwidth.contains("role=\"img\"") && bandwidth.contains("94.4 % of the limit"));
    }

    #[test]
    fn links_are_drawn_with_a_title_a_description_and_stalls() {
        let mut record = fixture::fabric(8);
        record.answers[0].waits = vec![WaitShare {
            cause: "link_busy".to_owned(),
            place: "card up".to_owned(),
            is_latency: false,
            explanation: "why".to_owned(),
            share_percent: 82.4,
        }];
        let page = html(&record, &[]).unwrap();
        let panel = between(&page, "id=\"panel-0\"", "</section>");
        assert!(panel.contains("<svg class=\"fabric\"") && panel.contains("aria-labelledby=\"fabric-0-0-title"));
        assert!(panel.contains("<b>device-to-host by DMA, 1 MiB</b>") && panel.contains("stalls: link busy 82 %"));
        assert!(
            panel.contains("<b>What to do:</b> small payloads: raise MPS; otherwise a wider or faster link"),
            "{panel}"
        );
        assert!(panel.contains("<td class=\"num\">82.4 %</td>"));
    }

    #[test]
    fn latency_under_load_is_a_curve() {
        let page = html(&fixture::loaded(), &[]).unwrap();
        let panel = between(&page, "id=\"panel-0\"", "</section>");
        assert!(panel.contains("<svg class=\"loaded\"") && panel.contains("99.0 % of the limit"));
    }

    #[test]
    fn launches_are_drawn_by_core_with_a_note_on_devices_that_are_not_cards() {
        let page = html(&fixture::callers(), &[]).unwrap();
        let panel = between(&page, "id=\"panel-0\"", "</section>");
        assert_eq!(panel.matches("<svg class=\"callers\"").count(), 2);
        assert!(panel.contains("aria-labelledby=\"callers-0-1-title") && !panel.contains("class=\"bars\""));
        assert!(panel.contains("no card: the device is the processor itself"), "{panel}");
        assert!(page.contains("<span class=\"chip\">real, CPU device, no card</span>"));
        assert!(page.contains("governor unknown: no governors"));
    }

    #[test]
    fn core_pairs_are_a_matrix_with_shaded_cells() {
        let page = html(&fixture::pairs(), &[]).unwrap();
        let panel = between(&page, "id=\"panel-0\"", "</section>");
        assert_eq!(panel.matches("<table class=\"matrix\"").count(), 2);
        assert_eq!(panel.matches("--shade:100.0%").count(), 4, "the greatest of each, from both ends");
        assert!(!panel.contains("class=\"bars\""));
    }

    #[test]
    fn methods_with_the_same_stalls_share_a_bar() {
        let page = html(&fixture::record(), &[]).unwrap();
        let latency = between(&page, "id=\"panel-1\"", "</section>");
        assert_eq!(latency.matches("<span class=\"part cause-").count(), 1);
        assert!(latency.contains("title=\"UC 4, UC 8\""));
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let bar = WaitBar { names, in_words: String::new(), parts: vec![] };
        assert_eq!(bar.some_names(), "a, b and 3 more");
    }

    #[test]
    fn a_platform_is_listed_by_dotted_paths() {
        let mut lines = Vec::new();
        flatten("", &serde_json::json!({"a": {"b": [1, 2], "c": [{"d": "x"}]}, "e": null}), &mut lines);
        let expected = [("a.b", "[1,2]"), ("a.c[0].d", "x"), ("e", "null")];
        assert_eq!(lines, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    }

    #[test]
    fn pictures_of_a_reproduction_have_a_key_a_note_and_figures() {
        let mut reproduction = fixture::reproduction();
        reproduction.pictures = vec![fixture::picture(), fixture::picture()];
        let page = html(&fixture::empty(), &[reproduction]).unwrap();
        assert_eq!(page.matches("<svg class=\"picture\"").count(), 2);
        assert!(page.contains("id=\"someone2026-0-title\"") && page.contains("id=\"someone2026-1-title\""));
        assert!(page.contains("picture-key line-1\">&#60;theirs&#62;<"), "{page}");
        assert!(page.contains("<p>a note of a test</p>") && page.contains("<td class=\"num\">1.5</td>"));
    }

    #[test]
    fn a_reproduction_shows_its_rows_bounds_and_summary() {
        let page = html(&fixture::empty(), &[fixture::reproduction()]).unwrap();
        assert!(page.contains("T1.e") && page.contains("DISAGREES") && page.contains("all latencies"));
        assert!(page.contains("1 given, 1 fitted, 0 identities of fitted; 0 rules"));
    }

    #[test]
    fn the_vendored_script_cannot_end_its_element() {
        for text in [
            include_str!("../assets/uplot-1.6.32/uPlot.iife.min.js"),
            include_str!("../assets/report.js"),
            include_str!("../assets/live.js"),
        ] {
            assert!(!text.to_lowercase().contains("</script") && !text.contains("<!--"));
        }
    }
}
