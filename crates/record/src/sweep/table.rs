//! All rows of a log as columns, in an order that depends on their content only.

use crate::Quantity;
use crate::sweep::row::SweepRow;
use crate::table::{Cell, Column, Table, Values, Words};
use std::collections::{BTreeMap, HashSet};

/// The points of a sweep as a table: one row per point, one column per changed key, per option and per figure.
///
/// Rows are sorted by platform, changed keys, options, question, method and size, so that the table is independent of
/// the order in the log. Columns without any value are left out, except those of figures.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepTable {
    table: Table,
    /// Names of the columns of changed keys and of options.
    axes: Vec<String>,
}

/// Collects the rows of a table.
#[derive(Clone, Debug, Default)]
pub struct SweepTableBuilder {
    rows: usize,
    varied: BTreeMap<String, Words>,
    options: BTreeMap<String, Words>,
    texts: [Words; 10],
    wholes: [Vec<Option<i64>>; 2],
    numbers: [Vec<Option<f64>>; 7],
}

/// Names of the text columns before and after the figures.
const TEXTS: [&str; 10] = [
    "platform",
    "question",
    "by",
    "method",
    "quantity",
    "bound_by",
    "longest_wait_cause",
    "bound",
    "bound_cause",
    "because",
];
const BEFORE_FIGURES: usize = 5;
const WHOLES: [&str; 2] = ["size_bytes", "alignment_bytes"];
const NUMBERS: [&str; 7] = [
    "latency_ns",
    "delivered_rate_bytes_per_s",
    "ceiling_rate_bytes_per_s",
    "share_of_ceiling_percent",
    "formula_latency_ns",
    "formula_delivered_rate_bytes_per_s",
    "longest_wait_percent",
];

impl SweepTableBuilder {
    /// Adds a row. Its key must differ from those of all earlier rows; [`read_sweep_log`](crate::read_sweep_log) ensures this.
    pub fn push(&mut self, row: &SweepRow) {
        let at = self.rows;
        for (key, value) in &row.varied {
            self.varied.entry(key.clone()).or_default().set(at, value);
        }
        for (name, value) in &row.options {
            self.options.entry(name.clone()).or_default().set(at, value);
        }
        let texts = [
            Some(row.platform.as_str()),
            Some(row.question.as_str()),
            Some(row.by.name()),
            Some(row.method.as_str()),
            row.quantity.map(Quantity::name),
            row.bound_by.as_deref(),
            row.longest_wait_cause.as_deref(),
            row.bound.as_deref(),
            row.bound_cause.as_deref(),
            row.because.as_deref(),
        ];
        for (words, text) in self.texts.iter_mut().zip(texts) {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                words.set(at, text);
            }
        }
        let whole = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        for (cells, value) in self.wholes.iter_mut().zip([row.size_bytes, row.alignment_bytes]) {
            cells.push(value.map(whole));
        }
        let numbers = [
            row.latency_ns,
            row.delivered_rate_bytes_per_s,
            row.ceiling_rate_bytes_per_s,
            row.share_of_ceiling_percent,
            row.formula_latency_ns,
            row.formula_delivered_rate_bytes_per_s,
            row.longest_wait_percent,
        ];
        for (cells, value) in self.numbers.iter_mut().zip(numbers) {
            cells.push(value);
        }
        self.rows += 1;
    }

    /// The table, sorted.
    #[must_use]
    pub fn finish(self) -> SweepTable {
        let rows = self.rows;
        let mut texts = self.texts.into_iter().zip(TEXTS).map(|(words, name)| words.text(name.to_owned(), rows));
        let leading: Vec<Column> = texts.by_ref().take(BEFORE_FIGURES).collect();
        let trailing: Vec<Column> = texts.collect();
        let numeric = |(name, words): (String, Words)| words.numeric(name, rows);
        let axes: Vec<Column> = self.varied.into_iter().chain(self.options).map(numeric).collect();
        let wholes = self.wholes.into_iter().zip(WHOLES);
        let wholes = wholes.map(|(cells, name)| Column { name: name.to_owned(), values: Values::Whole(cells) });
        let numbers = self.numbers.into_iter().zip(NUMBERS);
        let numbers = numbers.map(|(cells, name)| Column { name: name.to_owned(), values: Values::Number(cells) });
        let axis_names = axes.iter().map(|axis| axis.name.clone()).collect();
        let mut leading = leading.into_iter();
        let mut columns: Vec<Column> = leading.by_ref().take(1).collect();
        columns.extend(axes);
        columns.extend(leading.by_ref().take(BEFORE_FIGURES - 2));
        columns.extend(wholes);
        let sorted_by = columns.len();
        columns.extend(leading);
        columns.extend(numbers);
        columns.extend(trailing);
        let order = order(&columns[..sorted_by], rows);
        // Each column is freed when it was sorted: a table of a million rows is large.
        let columns = columns.into_iter().map(|column| column.reordered(&order)).collect();
        SweepTable { table: Table { rows, columns }, axes: axis_names }
    }
}

/// Row numbers in the order of these columns.
fn order(columns: &[Column], rows: usize) -> Vec<u32> {
    let ranks: Vec<Vec<u64>> = columns.iter().filter(|column| !column.is_empty()).map(Column::ranks).collect();
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by(|one, other| {
        let of = |row: &u32| *row as usize;
        ranks
            .iter()
            .map(|rank| rank[of(one)].cmp(&rank[of(other)]))
            .find(|found| found.is_ne())
            .unwrap_or(one.cmp(other))
    });
    order
}

impl SweepTable {
    /// The table of these rows; a row with the key of an earlier one is ignored.
    #[must_use]
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a SweepRow>) -> SweepTable {
        let (mut table, mut seen) = (SweepTableBuilder::default(), HashSet::new());
        rows.into_iter().filter(|row| seen.insert(row.key.as_str())).for_each(|row| table.push(row));
        table.finish()
    }

    /// The rows and columns, and the names of the columns of changed keys and of options.
    #[must_use]
    pub fn into_parts(self) -> (Table, Vec<String>) {
        (self.table, self.axes)
    }

    /// The rows and columns, for files and other tools.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// Number of rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.table.rows
    }

    /// Names of the columns of changed keys and of options.
    #[must_use]
    pub fn axes(&self) -> &[String] {
        &self.axes
    }

    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.table.column(name)
    }

    /// A value; absent if there is no such column or row.
    #[must_use]
    pub fn cell(&self, column: &str, row: usize) -> Cell<'_> {
        self.table.cell(column, row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::row::SweptBy;

    fn row(key: u32, tags: &str, because: Option<&str>) -> SweepRow {
        let row = SweepRow::without_figure(
            key.to_string(),
            "card".to_owned(),
            "dma_read_bandwidth".to_owned(),
            SweptBy::Formulas,
        );
        let varied = BTreeMap::from([("dma.tags".to_owned(), tags.to_owned())]);
        SweepRow {
            varied,
            size_bytes: Some(64),
            delivered_rate_bytes_per_s: because.is_none().then_some(2.5),
            because: because.map(str::to_owned),
            ..row
        }
    }

    #[test]
    fn rows_are_sorted_by_number_whatever_their_order() {
        let rows = [row(1, "64", None), row(2, "8", None), row(3, "256", Some("too many"))];
        let table = SweepTable::of(&rows);
        let back = SweepTable::of(rows.iter().rev());
        let tags: Vec<Cell> = (0..3).map(|row| table.cell("dma.tags", row)).collect();
        assert_eq!(tags, [Cell::Whole(8), Cell::Whole(64), Cell::Whole(256)]);
        assert_eq!((0..3).map(|row| back.cell("dma.tags", row)).collect::<Vec<Cell>>(), tags);
        assert_eq!(table.cell("because", 2), Cell::Text("too many"));
        assert_eq!(table.cell("delivered_rate_bytes_per_s", 2), Cell::Absent);
        assert_eq!((table.axes(), table.rows()), (&["dma.tags".to_owned()][..], 3));
    }

    #[test]
    fn a_repeated_key_is_one_row_and_words_stay_words() {
        let table = SweepTable::of(&[row(1, "8", None), row(1, "8", None), row(2, "never", None)]);
        assert_eq!(table.rows(), 2);
        assert_eq!([table.cell("dma.tags", 0), table.cell("dma.tags", 1)], [Cell::Text("8"), Cell::Text("never")]);
        let table = SweepTable::of(&[row(1, "1.5", None), row(2, "-1", None)]);
        assert_eq!([table.cell("dma.tags", 0), table.cell("dma.tags", 1)], [Cell::Number(-1.0), Cell::Number(1.5)]);
        assert_eq!(SweepTable::of(&[]).rows(), 0);
    }

    #[test]
    fn csv_and_json_lines_have_a_column_per_changed_key() {
        let row = |key: &str, mps: &str, rate: Option<f64>, because: Option<&str>| SweepRow {
            varied: BTreeMap::from([("link.mps_bytes".to_owned(), mps.to_owned())]),
            delivered_rate_bytes_per_s: rate,
            because: because.map(str::to_owned),
            ..SweepRow::without_figure(key.to_owned(), "a, \"b\"".to_owned(), "q".to_owned(), SweptBy::Simulation)
        };
        let table = SweepTable::of(&[row("1", "256", Some(1e9), None), row("2", "128", None, Some("none"))]);
        let text = String::from_utf8(table.table().csv().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("platform,link.mps_bytes,question,by,method,size_bytes,"), "{text}");
        assert!(lines[1].starts_with("\"a, \"\"b\"\"\",128,q,simulation,") && lines[1].ends_with(",none"), "{text}");
        assert!(lines[2].contains(",1000000000,"), "{text}");
        let text = String::from_utf8(table.table().json_lines().unwrap()).unwrap();
        let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let first = serde_json::json!({"platform": "a, \"b\"", "link.mps_bytes": 128, "question": "q",
            "by": "simulation", "because": "none"});
        assert_eq!(rows[0], first);
        assert_eq!(rows[1]["delivered_rate_bytes_per_s"], 1e9);
    }
}
