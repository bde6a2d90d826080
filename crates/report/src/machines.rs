//! The page of several records: each question once, with a curve and a row per machine.
//!
//! A *machine* is one target of one record. Its curve is its best method at each size; the tables name the method, and the
//! last table of a question has the same method and size of all machines in one row.

use crate::chart;
use crate::error::ReportError;
use crate::figures::{self, Unit};
use crate::grid::{Column, Grid};
use crate::page_parts::{PageParts, unique_names};
use crate::panel::{Panel, Point};
use crate::table::label;
use askama::Template;
use lanemark_record::corpus::{MachineFacts, Neighbourhood};
use lanemark_record::{Quantity, Record, Target, TargetKind};
use serde_json::{Value, json};
use std::path::Path;

/// A record of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct ComparedRecord<'a> {
    /// Its file.
    pub file: &'a Path,
    /// Its content.
    pub record: &'a Record,
    /// The distances of its targets from those of the other records; `None` if they cannot be computed.
    pub neighbours: Option<&'a Neighbourhood>,
}

/// Renders records as one HTML page that compares their machines, and needs no network.
///
/// Each question has a plot, a table of medians with their spread and their share of the limit, and a table of all figures.
///
/// # Errors
/// [`ReportError`] through a bug of this program; all records can be rendered.
pub fn machines_html(records: &[ComparedRecord<'_>]) -> Result<String, ReportError> {
    let machines = machines(records);
    let panels: Vec<Vec<Panel>> = records.iter().map(|compared| Panel::of(compared.record)).collect();
    let questions = Question::of(&machines, &panels);
    let plots: Value = questions.iter().map(|question| question.plot(&machines)).collect();
    let page = Page {
        heads: machines.iter().map(|machine| machine.head(records, &machines)).collect(),
        facts: facts(records, &machines),
        glance: glance(&questions, &machines),
        questions: questions.iter().enumerate().map(|(place, question)| question.part(place, &machines)).collect(),
        plots: chart::embeddable(&plots).map_err(|source| ReportError::Plots { source })?,
        parts: PageParts::new(),
    };
    page.render().map_err(|source| ReportError::Template { source })
}

#[derive(Template)]
#[template(path = "machines.html")]
struct Page {
    heads: Vec<Head>,
    facts: Grid,
    glance: Grid,
    questions: Vec<Part>,
    plots: String,
    parts: PageParts,
}

/// A machine at the head of the page.
struct Head {
    name: String,
    kind: String,
    summary: String,
    command: String,
    written: Option<String>,
    /// The nearest other machine, with its distance.
    nearest: Option<String>,
    warnings: usize,
}

/// One question of the page.
struct Part {
    id: String,
    place: usize,
    title: String,
    question: &'static str,
    name: String,
    unit: &'static str,
    is_plotted: bool,
    in_words: String,
    /// Bars if there is no plot: name, figure, length in percent.
    bars: Vec<(String, String, f64)>,
    note: String,
    medians: Grid,
    all: Grid,
}

/// A target of a record.
struct Machine<'a> {
    /// Place of its record.
    record: usize,
    name: String,
    target: &'a Target,
}

fn machines<'a>(records: &[ComparedRecord<'a>]) -> Vec<Machine<'a>> {
    let files = unique_names(&records.iter().map(|compared| compared.file).collect::<Vec<_>>());
    let mut machines = Vec::new();
    for (place, (compared, file)) in records.iter().zip(&files).enumerate() {
        let answered = |target: &&Target| compared.record.answers.iter().any(|answer| answer.target == target.name);
        let targets: Vec<&Target> = compared.record.targets.iter().filter(answered).collect();
        for target in &targets {
            let name = if targets.len() == 1 { file.clone() } else { format!("{file}: {}", target.name) };
            machines.push(Machine { record: place, name, target });
        }
    }
    machines
}

impl Machine<'_> {
    /// Whether its times are compared with others: those of an emulator have no meaning.
    fn is_ranked(&self) -> bool {
        self.target.kind != TargetKind::Emulated
    }

    fn head(&self, records: &[ComparedRecord<'_>], machines: &[Machine<'_>]) -> Head {
        let compared = &records[self.record];
        let of_target = compared.neighbours.and_then(|all| {
            let target = all.targets.iter().find(|target| target.target == self.target.name)?;
            target.neighbours.iter().min_by(|one, other| one.distance.total_cmp(&other.distance))
        });
        Head {
            name: self.name.clone(),
            kind: label(self.target),
            summary: self.target.summary.clone(),
            command: compared.record.command.join(" "),
            written: compared.record.written_unix_s.map(figures::date),
            nearest: of_target.map(|near| {
                let is_it = |machine: &&Machine| {
                    machine.target.name == near.target
                        && records[machine.record].file.display().to_string() == near.file
                };
                let name = machines.iter().find(is_it).map_or(&near.file, |machine| &machine.name);
                format!("{name}: times differ by a factor of {:.2}", near.distance)
            }),
            warnings: compared.record.warnings.len(),
        }
    }
}

/// Facts of the machines that differ; the number of equal ones is not shown.
fn facts(records: &[ComparedRecord<'_>], machines: &[Machine<'_>]) -> Grid {
    let mut columns = vec![Column::words("fact")];
    columns.extend(machines.iter().map(|machine| Column::words(&machine.name)));
    let of = |machine: &Machine| {
        let facts = MachineFacts::of(records[machine.record].record, machine.target);
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        let size = |value: Option<u32>| value.map(|value| figures::size(u64::from(value)));
        let program = &records[machine.record].record.tool;
        [
            Some(label(machine.target)),
            number(facts.generation),
            number(facts.width_lanes),
            size(facts.mps_bytes),
            size(facts.mrrs_bytes),
            facts.host,
            facts.card,
            Some(machine.target.memcpy.clone()).filter(|memcpy| !memcpy.is_empty()),
            Some(format!("{} {}", program.name, program.version)),
        ]
    };
    let names = [
        "figures",
        "PCIe generation",
        "lanes",
        "MPS",
        "MRRS",
        "processor",
        "card",
        "implementation of memcpy",
        "program",
    ];
    let all: Vec<[Option<String>; 9]> = machines.iter().map(of).collect();
    let mut rows = Vec::new();
    for (place, name) in names.into_iter().enumerate() {
        let values: Vec<Option<&String>> = all.iter().map(|facts| facts[place].as_ref()).collect();
        if values.windows(2).any(|pair| pair[0] != pair[1]) {
            let mut row = vec![name.to_owned()];
            row.extend(values.iter().map(|value| value.map_or_else(|| "unknown".to_owned(), |text| (*text).clone())));
            rows.push(row);
        }
    }
    Grid { columns, rows }
}

/// A question that at least one machine answers.
struct Question<'a> {
    name: &'a str,
    title: String,
    quantity: Quantity,
    quantity_in_words: &'static str,
    unit: Unit,
    /// The panel of each machine, if it has one.
    panels: Vec<Option<&'a Panel<'a>>>,
    sizes: Vec<u64>,
}

impl<'a> Question<'a> {
    fn of(machines: &[Machine<'a>], panels: &'a [Vec<Panel<'a>>]) -> Vec<Question<'a>> {
        let mut questions: Vec<Question<'a>> = Vec::new();
        for (place, machine) in machines.iter().enumerate() {
            for panel in panels[machine.record].iter().filter(|panel| panel.target == machine.target.name) {
                let key = (panel.question, panel.quantity, panel.title());
                let found = questions.iter().position(|one| (one.name, one.quantity, one.title.clone()) == key);
                let number = found.unwrap_or_else(|| {
                    questions.push(Question {
                        name: panel.question,
                        title: panel.title(),
                        quantity: panel.quantity,
                        quantity_in_words: panel.quantity_in_words(),
                        unit: panel.unit,
                        panels: vec![None; machines.len()],
                        sizes: Vec::new(),
                    });
                    questions.len() - 1
                });
                questions[number].panels[place] = Some(panel);
            }
        }
        for question in &mut questions {
            question.arrange();
        }
        // Questions with several machines come first; the others compare nothing.
        questions.sort_by_key(|question| question.panels.iter().flatten().count() < 2);
        questions
    }

    fn arrange(&mut self) {
        let panels = || self.panels.iter().flatten();
        let values = panels().flat_map(|panel| &panel.lines).flat_map(|line| &line.points).filter_map(|p| p.value);
        self.unit = match self.quantity {
            Quantity::Bandwidth => Unit::for_rates(values.fold(0.0, f64::max)),
            _ => Unit::for_times(values.fold(f64::INFINITY, f64::min)),
        };
        let mut sizes: Vec<u64> = panels().flat_map(|panel| panel.sizes()).collect();
        sizes.sort_unstable();
        sizes.dedup();
        self.sizes = sizes;
    }

    fn is_rate(&self) -> bool {
        self.quantity == Quantity::Bandwidth
    }

    /// The best method of a machine at a size.
    fn best(&self, machine: usize, size: u64) -> Option<(&'a str, Point<'a>)> {
        let panel = self.panels[machine]?;
        let points = panel.lines.iter().filter_map(|line| Some((line.name.as_str(), line.at(size)?)));
        let valued = points.filter_map(|(name, point)| Some((name, point, point.value?)));
        let is_better = |one: f64, other: f64| if self.is_rate() { one > other } else { one < other };
        let best = valued.reduce(|one, other| if is_better(other.2, one.2) { other } else { one });
        best.map(|(name, point, _)| (name, point))
    }

    /// The size of the table: the largest at which most machines have a figure.
    fn common_size(&self) -> Option<u64> {
        let count = |size: u64| (0..self.panels.len()).filter(|machine| self.best(*machine, size).is_some()).count();
        self.sizes.iter().copied().max_by_key(|size| (count(*size), *size))
    }

    fn plot(&self, machines: &[Machine<'_>]) -> Value {
        let scaled = |value: Option<f64>| value.map(|value| value / self.unit.in_base());
        let lines: Vec<Value> = (machines.iter().enumerate())
            .filter(|(place, _)| self.panels[*place].is_some())
            .map(|(place, machine)| {
                let points: Vec<Option<(&str, Point)>> =
                    self.sizes.iter().map(|size| self.best(place, *size)).collect();
                let largest = points.iter().rev().flatten().next().and_then(|(_, point)| point.value);
                json!({
                    "name": machine.name,
                    "mark": place,
                    "largest": largest.map(|value| self.unit.figure(value)),
                    "values": points.iter().map(|p| scaled(p.and_then(|(_, p)| p.value))).collect::<Vec<_>>(),
                    "formulas": vec![Value::Null; points.len()],
                    "tips": points.iter().map(|p| p.map(|p| self.tip(machine, p))).collect::<Vec<_>>(),
                })
            })
            .collect();
        json!({
            "unit": self.unit.symbol(),
            "quantity": self.quantity_in_words,
            "more_is_better": self.is_rate(),
            "only_formulas": true,
            "sizes": self.sizes,
            "size_names": self.sizes.iter().map(|size| figures::size(*size)).collect::<Vec<_>>(),
            "limits": vec![Value::Null; self.sizes.len()],
            "limit_name": Value::Null,
            "lines": lines,
        })
    }

    fn tip(&self, machine: &Machine<'_>, (method, point): (&str, Point)) -> Vec<String> {
        let figure = point.value.map(|value| self.unit.figure_with_symbol(value)).unwrap_or_default();
        let spread = point.mad().map(|mad| format!(" (median, MAD {})", self.unit.figure(mad))).unwrap_or_default();
        let mut lines = vec![figure + &spread, method.to_owned(), label(machine.target)];
        lines.extend(point.share_in_words().filter(|_| self.is_rate()).map(|share| format!("of its limit: {share}")));
        lines.extend(point.bound_in_words().map(|bound| format!("bound by: {bound}")));
        lines
    }

    fn part(&self, place: usize, machines: &[Machine<'_>]) -> Part {
        let size = self.common_size();
        let is_plotted = self.sizes.len() > 1;
        let count = self.panels.iter().flatten().count();
        Part {
            id: format!("question-{place}"),
            place,
            title: self.title.clone(),
            question: if count > 1 { "" } else { "answered by one machine" },
            name: self.name.to_owned(),
            unit: self.unit.symbol(),
            is_plotted,
            in_words: format!(
                "{}: {} of {} by size; the table below has the figures",
                self.title,
                self.quantity_in_words,
                figures::counted(count, "machine")
            ),
            bars: if is_plotted { Vec::new() } else { self.bars(machines) },
            note: size.map_or_else(String::new, |size| {
                format!("Best method of each machine at {}, the largest size that most have", figures::size(size))
            }),
            medians: self.medians(machines, size),
            all: self.all(machines),
        }
    }

    fn bars(&self, machines: &[Machine<'_>]) -> Vec<(String, String, f64)> {
        let best =
            |place| self.sizes.first().and_then(|size| self.best(place, *size)).and_then(|(_, point)| point.value);
        let full = (0..machines.len()).filter_map(best).fold(0.0, f64::max);
        let bar = |(place, machine): (usize, &Machine)| {
            let value = best(place)?;
            let length = if full > 0.0 { 100.0 * value / full } else { 0.0 };
            Some((machine.name.clone(), self.unit.figure_with_symbol(value), length))
        };
        machines.iter().enumerate().filter_map(bar).collect()
    }

    /// The best method of each machine at one size, the best machine first.
    fn medians(&self, machines: &[Machine<'_>], size: Option<u64>) -> Grid {
        let symbol = self.unit.symbol();
        let mut columns = ["machine", "figures", "method"].map(Column::words).to_vec();
        columns.push(Column::figures("size"));
        columns.extend([format!("median, {symbol}"), format!("±MAD, {symbol}")].map(Column::figures));
        columns.extend(["ci95", "of its limit", "of the fastest"].map(Column::figures));
        columns.extend(["bound by", "rank"].map(Column::words));
        let mut found: Vec<(usize, u64, &str, Point, f64)> = Vec::new();
        for place in 0..machines.len() {
            let own = self.sizes.iter().rev().copied();
            let at = size.into_iter().chain(own).find_map(|size| Some((size, self.best(place, size)?)));
            if let Some((at, (method, point))) = at
                && let Some(value) = point.value
            {
                found.push((place, at, method, point, value));
            }
        }
        let sign = if self.is_rate() { -1.0 } else { 1.0 };
        found.sort_by(|one, other| (sign * one.4).total_cmp(&(sign * other.4)));
        let is_comparable = |at: u64, place: usize| Some(at) == size && machines[place].is_ranked();
        let ranked: Vec<(usize, f64)> =
            found.iter().filter(|row| is_comparable(row.1, row.0)).map(|row| (row.0, row.4)).collect();
        let fastest = ranked.first().copied().filter(|_| ranked.len() > 1);
        let row = |(place, at, method, point, value): &(usize, u64, &str, Point, f64)| {
            let speed = fastest
                .filter(|_| is_comparable(*at, *place))
                .map(|(_, best)| if self.is_rate() { 100.0 * value / best } else { 100.0 * best / value });
            let rank = match fastest {
                _ if !machines[*place].is_ranked() => "not ranked: emulated",
                _ if Some(*at) != size => "not ranked: another size",
                Some((_, best)) if value.total_cmp(&best).is_eq() => "fastest",
                Some(_) if ranked.get(1).is_some_and(|second| second.0 == *place) => "nearest to it",
                _ => "",
            };
            vec![
                machines[*place].name.clone(),
                label(machines[*place].target),
                (*method).to_owned(),
                figures::size(*at),
                self.unit.figure(*value),
                point.mad().map(|mad| self.unit.figure(mad)).unwrap_or_default(),
                point.ci95_in(self.unit).unwrap_or_default(),
                point.share_in_words().filter(|_| self.is_rate()).unwrap_or_default(),
                speed.filter(|speed| speed.is_finite()).map(figures::percent).unwrap_or_default(),
                point.bound_in_words().unwrap_or_default(),
                rank.to_owned(),
            ]
        };
        let mut grid = Grid { columns, rows: found.iter().map(row).collect() };
        grid.drop_empty_columns();
        grid
    }

    /// Every method and size, with a column per machine.
    fn all(&self, machines: &[Machine<'_>]) -> Grid {
        let mut columns = vec![Column::words("method"), Column::figures("size")];
        let present: Vec<usize> = (0..machines.len()).filter(|place| self.panels[*place].is_some()).collect();
        columns.extend(
            present.iter().map(|place| Column::figures(format!("{}, {}", machines[*place].name, self.unit.symbol()))),
        );
        let mut methods: Vec<&str> = Vec::new();
        for line in self.panels.iter().flatten().flat_map(|panel| &panel.lines) {
            if !methods.contains(&line.name.as_str()) {
                methods.push(&line.name);
            }
        }
        let point = |place: usize, method: &str, size: u64| {
            self.panels[place]?.lines.iter().find(|line| line.name == method)?.at(size)?.value
        };
        let mut rows = Vec::new();
        for method in methods {
            for size in &self.sizes {
                let values: Vec<Option<f64>> = present.iter().map(|place| point(*place, method, *size)).collect();
                if values.iter().any(Option::is_some) {
                    let mut row = vec![method.to_owned(), figures::size(*size)];
                    row.extend(values.iter().map(|v| v.map(|v| self.unit.figure(v)).unwrap_or_default()));
                    rows.push(row);
                }
            }
        }
        Grid { columns, rows }
    }
}

/// The fastest machine of each question that several answer.
fn glance(questions: &[Question<'_>], machines: &[Machine<'_>]) -> Grid {
    let mut columns = vec![Column::words("question"), Column::figures("size"), Column::words("fastest")];
    columns.extend(["figure", "of its limit", "the slowest takes"].map(Column::figures));
    columns.push(Column::words("slowest"));
    let row = |question: &Question| {
        let size = question.common_size()?;
        let ranked = (0..machines.len()).filter(|place| machines[*place].is_ranked());
        let mut found: Vec<(usize, Point, f64)> = ranked
            .filter_map(|place| question.best(place, size).and_then(|(_, point)| Some((place, point, point.value?))))
            .collect();
        let sign = if question.is_rate() { -1.0 } else { 1.0 };
        found.sort_by(|one, other| (sign * one.2).total_cmp(&(sign * other.2)));
        let ((first, point, best), (last, _, worst)) = (found.first()?, found.last()?);
        if found.len() < 2 {
            return None;
        }
        let times = if question.is_rate() { best / worst } else { worst / best };
        Some(vec![
            question.title.clone(),
            figures::size(size),
            machines[*first].name.clone(),
            question.unit.figure_with_symbol(*best),
            point.share_in_words().filter(|_| question.is_rate()).unwrap_or_default(),
            format!("{times:.2} times"),
            machines[*last].name.clone(),
        ])
    };
    Grid { columns, rows: questions.iter().filter_map(row).collect() }
}

#[cfg(test)]
mod tests;
