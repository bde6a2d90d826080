//! The points of a sweep that a picture shows.

use lanemark_record::{Cell, SweepTable};

/// The points and columns of a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Column of the horizontal axis; chosen if `None`.
    pub x: Option<String>,
    /// Column of the vertical axis of a heat map, or the second figure of a Pareto front; chosen if `None`.
    pub y: Option<String>,
    /// Column of the figure; the delivered rate or the latency if `None`.
    pub figure: Option<String>,
    /// Columns with the value that shown points have, as text.
    pub only: Vec<(String, String)>,
}

/// A picture that cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SweepPictureError {
    /// A column that the table does not have.
    #[error("there is no column {name}; columns: {known}")]
    NoColumn {
        /// The name given.
        name: String,
        /// All columns.
        known: String,
    },
    /// No selected point has the figure.
    #[error("no selected point has a figure in the column {column}")]
    NoPoint {
        /// The column.
        column: String,
    },
    /// No column is suitable for an axis.
    #[error("there is no column with several {what} among the selected points: {columns} vary; name one with {option}")]
    NoAxis {
        /// The kind of values.
        what: &'static str,
        /// Columns that vary.
        columns: String,
        /// The option.
        option: &'static str,
    },
    /// Columns that vary and are not part of the picture.
    #[error(
        "a {picture} shows one value of each other column, and these vary: {columns}; select one value, such as --only {example}"
    )]
    NotFixed {
        /// The picture.
        picture: &'static str,
        /// The columns.
        columns: String,
        /// An example of a selection.
        example: String,
    },
    /// More lines than colours.
    #[error("{count} lines are too many, at most {most} can be distinguished: select some, such as --only {example}")]
    TooManyLines {
        /// Number of lines.
        count: usize,
        /// Largest number.
        most: usize,
        /// An example of a selection.
        example: String,
    },
}

/// Columns that describe a point, beside those of changed keys and options.
const DESCRIBING: [&str; 6] = ["platform", "question", "by", "method", "size_bytes", "alignment_bytes"];

/// The selected points of a table.
pub(super) struct Selected<'a> {
    pub(super) table: &'a SweepTable,
    /// Rows that are selected and have the figure.
    pub(super) rows: Vec<usize>,
    /// Column of the figure.
    pub(super) figure: String,
}

impl<'a> Selected<'a> {
    pub(super) fn of(table: &'a SweepTable, selection: &Selection) -> Result<Selected<'a>, SweepPictureError> {
        let named = selection.only.iter().map(|(name, _)| name);
        let named = named.chain(&selection.x).chain(&selection.y).chain(&selection.figure);
        if let Some(name) = named.into_iter().find(|name| table.column(name).is_none()) {
            let known: Vec<&str> = table.table().columns().iter().map(|column| column.name.as_str()).collect();
            return Err(SweepPictureError::NoColumn { name: name.clone(), known: known.join(", ") });
        }
        let is_selected = |row: &usize| selection.only.iter().all(|(name, text)| has(table.cell(name, *row), text));
        let rows: Vec<usize> = (0..table.rows()).filter(is_selected).collect();
        let count = |name: &str| rows.iter().filter(|row| table.cell(name, **row).number().is_some()).count();
        let figure = selection.figure.clone().unwrap_or_else(|| {
            let is_rate = count("delivered_rate_bytes_per_s") >= count("latency_ns");
            if is_rate { "delivered_rate_bytes_per_s" } else { "latency_ns" }.to_owned()
        });
        let rows: Vec<usize> = rows.into_iter().filter(|row| table.cell(&figure, *row).number().is_some()).collect();
        if rows.is_empty() {
            return Err(SweepPictureError::NoPoint { column: figure });
        }
        Ok(Selected { table, rows, figure })
    }

    /// Columns that have several values among the selected points.
    pub(super) fn varying(&self) -> Vec<&'a str> {
        let table = self.table;
        let names = table.axes().iter().map(String::as_str).chain(DESCRIBING);
        let varies = |name: &&str| {
            let first = self.rows.first().map(|row| table.cell(name, *row));
            self.rows.iter().any(|row| Some(table.cell(name, *row)) != first)
        };
        names.filter(varies).collect()
    }

    /// The distinct values of a column, in order.
    pub(super) fn values(&self, column: &str) -> Vec<Cell<'a>> {
        let mut cells: Vec<Cell<'a>> = Vec::new();
        for row in &self.rows {
            let cell = self.table.cell(column, *row);
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        cells.sort_by(|one, other| match (one.number(), other.number()) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            (one, other) => one.is_some().cmp(&other.is_some()),
        });
        cells
    }

    /// The column of an axis: the named one, or the varying one with the most values that are not in `without`;
    /// numbers, if `numeric`.
    pub(super) fn axis(
        &self,
        named: Option<&'a String>,
        without: &[&str],
        numeric: bool,
        option: &'static str,
    ) -> Result<&'a str, SweepPictureError> {
        if let Some(named) = named {
            return Ok(named);
        }
        let varying = self.varying();
        let is_numeric = |name: &&str| self.rows.iter().all(|row| self.table.cell(name, *row).number().is_some());
        let mut best: Option<(usize, &str)> = None;
        for name in varying.iter().filter(|name| !without.contains(name) && (!numeric || is_numeric(name))) {
            let count = self.values(name).len();
            if best.is_none_or(|(most, _)| count > most) {
                best = Some((count, name));
            }
        }
        let what = if numeric { "numbers" } else { "values" };
        let columns = if varying.is_empty() { "none".to_owned() } else { varying.join(", ") };
        best.map(|(_, name)| name).ok_or(SweepPictureError::NoAxis { what, columns, option })
    }

    /// Refuses columns that vary and are not in `shown`.
    pub(super) fn check_fixed(&self, picture: &'static str, shown: &[&str]) -> Result<(), SweepPictureError> {
        let others: Vec<&str> = self.varying().into_iter().filter(|name| !shown.contains(name)).collect();
        match others.first() {
            None => Ok(()),
            Some(first) => {
                let example = self.example(first);
                Err(SweepPictureError::NotFixed { picture, columns: others.join(", "), example })
            }
        }
    }

    /// A selection of one value of a column.
    pub(super) fn example(&self, column: &str) -> String {
        let value = self.values(column).first().map(|cell| text(*cell)).unwrap_or_default();
        if value.contains(' ') { format!("'{column}={value}'") } else { format!("{column}={value}") }
    }

    /// The figure of a row.
    pub(super) fn figure_of(&self, row: usize) -> f64 {
        self.table.cell(&self.figure, row).number().unwrap_or_default()
    }

    /// The common values of all points, for a title.
    pub(super) fn title(&self) -> String {
        let varying = self.varying();
        let fixed = |name: &&str| !varying.contains(name) && !matches!(*name, "by" | "alignment_bytes");
        let names = DESCRIBING.into_iter().filter(fixed);
        let row = self.rows.first().copied().unwrap_or_default();
        let words = names.map(|name| match (name, self.table.cell(name, row)) {
            ("size_bytes", Cell::Whole(bytes)) => crate::figures::size(bytes as u64),
            (_, cell) => text(cell),
        });
        let keys = self.table.axes().iter().filter(|axis| !varying.contains(&axis.as_str()));
        let keys = keys.filter_map(|axis| match self.table.cell(axis, row) {
            Cell::Absent => None,
            cell => Some(format!("{axis} {}", text(cell))),
        });
        let words: Vec<String> = words.filter(|word| !word.is_empty()).chain(keys).collect();
        words.join(", ")
    }
}

/// Whether a cell has this value; numbers and sizes are compared as numbers.
fn has(cell: Cell<'_>, wanted: &str) -> bool {
    match cell.number() {
        Some(number) => {
            let size = || lanemark_units::parse_size(wanted).ok().map(|bytes| bytes as f64);
            wanted.parse().ok().or_else(size) == Some(number)
        }
        None => text(cell) == wanted,
    }
}

/// A cell as text.
pub(super) fn text(cell: Cell<'_>) -> String {
    match cell {
        Cell::Absent => String::new(),
        Cell::Text(text) => text.to_owned(),
        Cell::Whole(whole) => whole.to_string(),
        Cell::Number(number) => number.to_string(),
    }
}

/// A figure with its unit, from the name of its column.
pub(super) fn figure(column: &str, value: f64) -> String {
    if column.ends_with("bytes_per_s") {
        crate::figures::rate(value)
    } else if column.ends_with("_ns") {
        crate::figures::time(value)
    } else if column.ends_with("_percent") {
        crate::figures::percent(value)
    } else if column.ends_with("_bytes") && value >= 0.0 && value.fract() == 0.0 {
        crate::figures::size(value as u64)
    } else {
        crate::figures::significant(value)
    }
}

/// Whether larger values of a figure are better.
pub(super) fn is_more_better(column: &str) -> bool {
    column.ends_with("bytes_per_s") || column == "share_of_ceiling_percent"
}
