//! The map of a sweep as a page: a figure over two columns that the reader chooses, as coloured cells.
//!
//! The page has cells only, never points: a cell is the median of all points with its two values, and counts them. Neighbouring
//! values of a column with many of them share a cell. So the size of the page has a limit, whatever the size of the sweep. For
//! single values of a third column, there are cells of three columns, as long as they fit.

use super::selection::{figure, is_more_better, text};
use crate::chart;
use crate::error::ReportError;
use crate::page_parts::PageParts;
use askama::Template;
use lanemark_record::{Cell, SweepTable};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of cells of a page.
const CELLS: usize = 24_000;
/// Largest number of cells of a page for single values of a third column.
const CELLS_OF_THIRDS: usize = 24_000;
/// Largest numbers of cells in a row that are tried, until all maps fit.
const BINS: [usize; 6] = [40, 28, 20, 14, 10, 6];
/// Columns that describe a point beside changed keys and options.
const DESCRIBING: [&str; 4] = ["platform", "method", "size_bytes", "alignment_bytes"];

/// Renders the points of a sweep as one HTML page with a map, and needs no network.
///
/// # Errors
/// [`ReportError`] through a bug of this program; every table can be rendered.
pub fn map_html(table: &SweepTable, name: &str) -> Result<String, ReportError> {
    let map = Map::of(table);
    let page = Page {
        name: name.to_owned(),
        points: table.rows(),
        without: (0..table.rows()).filter(|row| figure_of(table, *row).is_none()).count(),
        views: map.views.iter().map(|view| view.title.clone()).collect(),
        left_out: map.left_out,
        has_maps: !map.views.is_empty(),
        data: chart::embeddable(&map.data()).map_err(|source| ReportError::Plots { source })?,
        map_script: include_str!("../../assets/map.js"),
        parts: PageParts::new(),
    };
    page.render().map_err(|source| ReportError::Template { source })
}

#[derive(Template)]
#[template(path = "map.html")]
struct Page {
    name: String,
    points: usize,
    without: usize,
    views: Vec<String>,
    /// Number of methods whose maps do not fit.
    left_out: usize,
    has_maps: bool,
    data: String,
    map_script: &'static str,
    parts: PageParts,
}

/// All maps of a page.
struct Map {
    axes: Vec<Axis>,
    /// Bottlenecks and reasons, to which cells refer.
    words: Vec<String>,
    views: Vec<View>,
    left_out: usize,
}

/// A column with several values.
struct Axis {
    name: String,
    /// Number of distinct values.
    count: usize,
    labels: Vec<String>,
    /// Place of the label of each row; `None` without a value.
    of_row: Vec<Option<usize>>,
}

/// A question with its points.
struct View {
    title: String,
    /// Column of the figures.
    figure: &'static str,
    rows: Vec<usize>,
    /// Places of the columns that vary, most values first.
    axes: Vec<usize>,
    maps: Vec<(usize, usize, Vec<Value>)>,
    /// Cells of three columns each: any two are axes, and the third one has a single value.
    cubes: Vec<([usize; 3], Vec<Value>)>,
}

/// The figure of a row and its column.
fn figure_of(table: &SweepTable, row: usize) -> Option<(&'static str, f64)> {
    ["delivered_rate_bytes_per_s", "latency_ns"]
        .into_iter()
        .find_map(|column| Some((column, table.cell(column, row).number()?)))
}

impl Map {
    fn of(table: &SweepTable) -> Map {
        let mut map = Map { axes: Vec::new(), words: Vec::new(), views: Vec::new(), left_out: 0 };
        let mut views = views(table);
        let names: Vec<&str> = table.axes().iter().map(String::as_str).chain(DESCRIBING).collect();
        for bins in BINS {
            map.axes = names.iter().filter_map(|name| Axis::of(table, name, bins)).collect();
            for view in &mut views {
                view.choose(&map.axes);
            }
            let cells: usize = views.iter().map(|view| view.cells(&map.axes)).sum();
            if cells <= CELLS {
                break;
            }
        }
        let (mut left, mut left_of_thirds) = (CELLS, CELLS_OF_THIRDS);
        for mut view in views {
            let cells = view.cells(&map.axes);
            if cells > left {
                map.left_out += 1;
                continue;
            }
            left -= cells;
            view.fill(table, &map.axes, &mut map.words, &mut left_of_thirds);
            if !view.maps.is_empty() {
                map.views.push(view);
            }
        }
        map
    }

    fn data(&self) -> Value {
        json!({
            "axes": self.axes.iter().map(|axis| json!({"name": axis.name, "labels": axis.labels})).collect::<Vec<_>>(),
            "words": self.words,
            "views": self.views.iter().map(|view| json!({
                "title": view.title, "figure": view.figure, "is_more_better": is_more_better(view.figure),
                "axes": view.axes,
                "maps": view.maps.iter().map(|(x, y, cells)| json!({"x": x, "y": y, "cells": cells})).collect::<Vec<_>>(),
                "cubes": view.cubes.iter().map(|(axes, cells)| json!({"axes": axes, "cells": cells})).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })
    }
}

impl Axis {
    /// The column with at most `bins` labels; `None` if it has fewer than two values.
    fn of(table: &SweepTable, name: &str, bins: usize) -> Option<Axis> {
        table.column(name)?;
        let mut values: BTreeMap<String, (Cell<'_>, usize)> = BTreeMap::new();
        for row in 0..table.rows() {
            match table.cell(name, row) {
                Cell::Absent => {}
                cell => drop(values.entry(text(cell)).or_insert((cell, 0))),
            }
        }
        let count = values.len();
        if count < 2 {
            return None;
        }
        let mut sorted: Vec<(String, Cell<'_>)> = values.iter().map(|(key, (cell, _))| (key.clone(), *cell)).collect();
        sorted.sort_by(|(_, one), (_, other)| match (one.number(), other.number()) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            (one, other) => one.is_some().cmp(&other.is_some()),
        });
        let shown = bins.min(count);
        let bin = |place: usize| place * shown / count;
        let label = |cell: &Cell<'_>| match cell {
            Cell::Whole(whole) if !name.ends_with("_bytes") => whole.to_string(),
            _ => cell.number().map_or_else(|| text(*cell), |value| figure(name, value)),
        };
        let labels = (0..shown).map(|wanted| {
            let mut inside =
                sorted.iter().enumerate().filter(|(place, _)| bin(*place) == wanted).map(|(_, (_, cell))| cell);
            match (inside.next(), inside.next_back()) {
                (Some(first), Some(last)) => format!("{} to {}", label(first), label(last)),
                (first, _) => first.map(label).unwrap_or_default(),
            }
        });
        let labels = labels.collect();
        let places: BTreeMap<String, usize> =
            sorted.into_iter().enumerate().map(|(at, (key, _))| (key, bin(at))).collect();
        let of_row = (0..table.rows()).map(|row| places.get(&text(table.cell(name, row))).copied()).collect();
        Some(Axis { name: name.to_owned(), count, labels, of_row })
    }
}

/// Each question with each of its methods, and with all of them if there are several.
fn views(table: &SweepTable) -> Vec<View> {
    let mut rows: BTreeMap<(String, String), BTreeMap<String, Vec<usize>>> = BTreeMap::new();
    for row in 0..table.rows() {
        let [question, by, method] = ["question", "by", "method"].map(|name| text(table.cell(name, row)));
        rows.entry((question, by)).or_default().entry(method).or_default().push(row);
    }
    let mut views = Vec::new();
    for ((question, by), mut methods) in rows {
        // A point without any case has no method: it belongs to the question.
        let all: Vec<usize> = methods.values().flatten().copied().collect();
        let has_nameless = methods.remove("").is_some();
        let count = methods.len();
        for (method, rows) in methods {
            views.push(View::new(table, format!("{question}, {method} ({by})"), rows));
        }
        if count != 1 || has_nameless {
            views.push(View::new(table, format!("{question}, all methods ({by})"), all));
        }
    }
    views
}

impl View {
    fn new(table: &SweepTable, title: String, rows: Vec<usize>) -> View {
        let figure = rows.iter().find_map(|row| figure_of(table, *row)).map_or("latency_ns", |(column, _)| column);
        View { title, figure, rows, axes: Vec::new(), maps: Vec::new(), cubes: Vec::new() }
    }

    /// Chooses the columns that vary among its points, most values first.
    fn choose(&mut self, axes: &[Axis]) {
        let varies = |axis: &Axis| {
            let first = self.rows.first().map(|row| axis.of_row[*row]);
            self.rows.iter().any(|row| Some(axis.of_row[*row]) != first)
        };
        let mut chosen: Vec<usize> = (0..axes.len()).filter(|place| varies(&axes[*place])).collect();
        chosen.sort_by_key(|place| std::cmp::Reverse(axes[*place].count));
        self.axes = chosen;
    }

    /// Pairs of columns; one column alone is a map of one row.
    fn pairs(&self) -> Vec<(usize, usize)> {
        if let [only] = *self.axes {
            return vec![(only, only)];
        }
        let pairs = self.axes.iter().enumerate().flat_map(|(at, x)| self.axes[at + 1..].iter().map(|y| (*x, *y)));
        pairs.collect()
    }

    /// Largest number of cells.
    fn cells(&self, axes: &[Axis]) -> usize {
        let of = |(x, y): (usize, usize)| if x == y { 1 } else { axes[y].labels.len() } * axes[x].labels.len();
        self.pairs().into_iter().map(of).sum()
    }

    /// Triples of columns.
    fn triples(&self) -> Vec<[usize; 3]> {
        let rest = |at: usize| self.axes.get(at + 1..).unwrap_or_default().iter().enumerate();
        let of = |(at, x): (usize, &usize)| {
            let x = *x;
            rest(at)
                .flat_map(move |(beyond, y)| rest(at + 1 + beyond).map(move |(_, z)| [x, *y, *z]))
                .collect::<Vec<_>>()
        };
        self.axes.iter().enumerate().flat_map(of).collect()
    }

    /// Fills the maps, and as many cubes as `left` cells allow.
    fn fill(&mut self, table: &SweepTable, axes: &[Axis], words: &mut Vec<String>, left: &mut usize) {
        let mut word = |text: String| {
            words.iter().position(|one| *one == text).unwrap_or_else(|| {
                words.push(text);
                words.len() - 1
            })
        };
        for (x, y) in self.pairs() {
            let mut cells: BTreeMap<(usize, usize), MapCell> = BTreeMap::new();
            for row in &self.rows {
                let (Some(column), Some(line)) = (axes[x].of_row[*row], axes[y].of_row[*row]) else { continue };
                let at = (column, if x == y { 0 } else { line });
                cells.entry(at).or_default().add(table, self.figure, *row);
            }
            let cells = cells.into_iter().map(|((x, y), cell)| cell.data(&[x, y], self.figure, &mut word)).collect();
            self.maps.push((x, y, cells));
        }
        for triple in self.triples() {
            let most = triple.iter().map(|place| axes[*place].labels.len()).product::<usize>();
            if most > *left {
                continue;
            }
            let mut cells: BTreeMap<[usize; 3], MapCell> = BTreeMap::new();
            for row in &self.rows {
                let [Some(x), Some(y), Some(z)] = triple.map(|place| axes[place].of_row[*row]) else { continue };
                cells.entry([x, y, z]).or_default().add(table, self.figure, *row);
            }
            *left -= cells.len();
            let cells = cells.into_iter().map(|(at, cell)| cell.data(&at, self.figure, &mut word)).collect();
            self.cubes.push((triple, cells));
        }
    }
}

/// The points of a cell.
#[derive(Default)]
struct MapCell {
    figures: Vec<f64>,
    bounds: BTreeMap<String, usize>,
    without: usize,
    reasons: BTreeSet<String>,
}

impl MapCell {
    fn add(&mut self, table: &SweepTable, column: &str, row: usize) {
        if let Some(value) = table.cell(column, row).number() {
            self.figures.push(value);
            let bound = text(table.cell("bound_by", row));
            if !bound.is_empty() {
                *self.bounds.entry(bound_alone(&bound)).or_default() += 1;
            }
            return;
        }
        self.without += 1;
        // The first in alphabetical order is shown.
        if self.reasons.len() < 2 {
            self.reasons.insert(text(table.cell("because", row)));
        }
    }

    /// Its places, points, median, its text, least and largest as text, bottleneck, points without a figure, reason.
    fn data(mut self, places: &[usize], column: &str, word: &mut impl FnMut(String) -> usize) -> Value {
        self.figures.sort_by(f64::total_cmp);
        let median = median(&self.figures);
        let bound = self.bounds.iter().max_by_key(|(_, count)| **count).map(|(bound, _)| word(bound.clone()));
        let range = match self.figures.as_slice() {
            [least, .., most] if least < most => format!("{} to {}", figure(column, *least), figure(column, *most)),
            _ => String::new(),
        };
        let reason = self.reasons.into_iter().next().map(word);
        let facts = json!([
            self.figures.len(),
            median,
            median.map(|value| figure(column, value)),
            range,
            bound,
            self.without,
            reason
        ]);
        let facts = facts.as_array().cloned().unwrap_or_default();
        places.iter().map(|place| json!(place)).chain(facts).collect()
    }
}

/// A bottleneck without the share of the time, which differs from point to point: `link busy 99 % (card down)`.
fn bound_alone(bound: &str) -> String {
    let words: Vec<&str> = bound.split(' ').collect();
    match words.iter().position(|word| *word == "%") {
        Some(at) if at > 0 && words[at - 1].parse::<f64>().is_ok() => {
            [&words[..at - 1], &words[at + 1..]].concat().join(" ")
        }
        _ => bound.to_owned(),
    }
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests;
