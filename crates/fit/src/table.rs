//! Measurements of any tool, as a CSV table.

use lanemark_bench::{CATALOGUE, question};
use lanemark_record::Quantity;
use lanemark_units::parse_size;

/// Figures of a card's DMA by question and size, measured with any tool.
///
/// ```
/// use lanemark_fit::Table;
/// let table = Table::parse("card.csv", "question,size_bytes,figure\ndma_read_latency,64,812 ns\n")?;
/// assert_eq!(table.rows[0].figure, 812.0);
/// # Ok::<(), lanemark_fit::TableError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the file, for messages.
    pub file: String,
    /// Rows, in the order of the file.
    pub rows: Vec<Row>,
}

/// One row of a table: a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Line of the file, from 1.
    pub line: usize,
    /// Name of the question.
    pub question: &'static str,
    /// Size of one transfer, in bytes.
    pub size_bytes: u64,
    /// The figure, in nanoseconds, or in bytes per second for a bandwidth question.
    pub figure: f64,
}

/// An invalid line of a table, or a table that is too long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct TableError {
    /// Name of the file.
    pub file: String,
    /// Line of the file, from 1.
    pub line: usize,
    /// The problem and the correct form.
    pub message: String,
}

/// The first line of every table.
pub const HEADER: &str = "question,size_bytes,figure";

/// Most rows of a table: each is simulated some hundred times.
const MOST_ROWS: usize = 256;

/// Largest transfer size; larger ones add no information.
const LARGEST_BYTES: u64 = 16 << 20;

/// Units of times, with their value in nanoseconds.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6)];

/// Units of rates, with their value in bytes per second.
const RATES: [(&str, f64); 7] = [
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
];

impl Table {
    /// Reads a table: [`HEADER`], then one row per line, such as `dma_write_bandwidth,4KiB,11.2 GB/s`.
    ///
    /// Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`TableError`] for the first invalid line.
    pub fn parse(file: &str, text: &str) -> Result<Table, TableError> {
        let wrong = |line: usize, message: String| TableError { file: file.to_owned(), line, message };
        let mut rows = Vec::new();
        let mut has_header = false;
        for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let cells: Vec<&str> = text.split(',').map(str::trim).collect();
            if !has_header {
                if cells.join(",") != HEADER {
                    return Err(wrong(line, format!("the first line of a table must be '{HEADER}'")));
                }
                has_header = true;
                continue;
            }
            if rows.len() == MOST_ROWS {
                return Err(wrong(
                    line,
                    format!("a table has at most {MOST_ROWS} rows; about ten sizes per question are enough"),
                ));
            }
            rows.push(row(line, &cells).map_err(|message| wrong(line, message))?);
        }
        if rows.is_empty() {
            return Err(wrong(1, format!("the table has no rows: write '{HEADER}' and one row per figure")));
        }
        Ok(Table { file: file.to_owned(), rows })
    }
}

fn row(line: usize, cells: &[&str]) -> Result<Row, String> {
    let [name, size, figure] = cells else {
        return Err(format!("{} columns instead of 3: a row has the columns '{HEADER}'", cells.len()));
    };
    let question = question(name).filter(|question| question.name.starts_with("dma_")).ok_or_else(|| {
        let known: Vec<&str> = CATALOGUE.iter().map(|question| question.name).collect();
        let known: Vec<&str> = known.into_iter().filter(|name| name.starts_with("dma_")).collect();
        format!("'{name}' is not a DMA question: use {}", known.join(", "))
    })?;
    let size_bytes = parse_size(size).map_err(|error| error.to_string())?;
    if !(1..=LARGEST_BYTES).contains(&size_bytes) {
        return Err(format!("size_bytes is {size}, but must be from 1 to {LARGEST_BYTES}"));
    }
    let units: &[(&str, f64)] = if question.quantity == Quantity::Bandwidth { &RATES } else { &TIMES };
    let digits = figure.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(figure.len());
    let (number, unit) = figure.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| *factor);
    let value = number.parse().ok().zip(factor).map(|(number, factor): (f64, f64)| number * factor);
    let value = value.filter(|value| *value > 0.0 && value.is_finite()).ok_or_else(|| {
        let units: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        format!(
            "'{figure}' is not a valid figure of {name}: write a number above 0 and a unit, one of {}",
            units.join(", ")
        )
    })?;
    Ok(Row { line, question: question.name, size_bytes, figure: value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &str) -> Result<Vec<(u64, f64)>, TableError> {
        let table = Table::parse("t.csv", &format!("{HEADER}\n{lines}"))?;
        Ok(table.rows.iter().map(|row| (row.size_bytes, row.figure)).collect())
    }

    fn refused(lines: &str) -> String {
        rows(lines).unwrap_err().to_string()
    }

    #[test]
    fn figures_are_read_in_the_units_of_their_question() {
        assert_eq!(rows("dma_read_latency,64,0.8us\ndma_read_latency,64,800 ns").unwrap(), [(64, 800.0), (64, 800.0)]);
        let lines = "dma_write_bandwidth , 4KiB , 2 GiB/s\r\n# a comment\n\ndma_read_bandwidth,4096,3.5 GB/s\r\n";
        assert_eq!(rows(lines).unwrap(), [(4096, 2.0 * 1_073_741_824.0), (4096, 3.5e9)]);
    }

    #[test]
    fn errors_name_the_line_and_the_rule() {
        assert!(Table::parse("t.csv", "size,figure\n").unwrap_err().to_string().starts_with("t.csv:1: the first line"));
        assert!(Table::parse("t.csv", HEADER).unwrap_err().to_string().contains("the table has no rows"));
        assert!(refused("dma_read_latency,64").starts_with("t.csv:2: 2 columns instead of 3"));
        assert!(refused("dma_read_latency,64,1,5 us").contains("4 columns"));
        assert!(refused("mmio_read_latency,64,1 us").contains("question: use dma_"));
        assert!(refused("dma_read_latency,64,12 GB/s").contains("one of ns, us"));
        assert!(refused("dma_read_bandwidth,64,12 us").contains("one of B/s, kB/s"));
        for figure in ["0 ns", "-1 ns", "nan ns", "1e3 ns", "", "ns", "1.2.3 ns"] {
            assert!(refused(&format!("dma_read_latency,64,{figure}")).contains("is not a valid figure"), "{figure}");
        }
    }

    #[test]
    fn sizes_and_numbers_of_rows_are_limited() {
        assert!(refused("dma_read_latency,0,1 ns").contains("from 1 to 16777216"));
        assert!(refused("dma_read_latency,16777217,1 ns").contains("from 1 to 16777216"));
        assert!(rows("dma_read_latency,1,1 ns\ndma_read_latency,16MiB,1 ns").is_ok());
        assert!(rows(&"dma_read_latency,64,1 ns\n".repeat(256)).is_ok());
        assert!(
            refused(&"dma_read_latency,64,1 ns\n".repeat(257)).starts_with("t.csv:258: a table has at most 256 rows")
        );
    }
}
