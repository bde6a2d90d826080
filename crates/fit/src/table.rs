//! Measurements of any tool, as a table.

use lanemark_bench::{CATALOGUE, question};
use lanemark_record::Quantity;
use lanemark_units::parse_size;

/// What was measured of a card, by whatever tool: figures of questions about its own transfers, by size.
///
/// ```
/// use lanemark_fit::Table;
/// let table = Table::parse("card.csv", "question,size_bytes,figure\ndma_read_latency,64,812 ns\n")?;
/// assert_eq!(table.rows[0].figure, 812.0);
/// # Ok::<(), lanemark_fit::TableError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its file, for messages.
    pub file: String,
    /// Its rows, in the order of the file.
    pub rows: Vec<Row>,
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The line it stands in, from 1.
    pub line: usize,
    /// The question it answers.
    pub question: &'static str,
    /// Bytes of one transfer.
    pub size_bytes: u64,
    /// Nanoseconds, or bytes per second where the question is about a bandwidth.
    pub figure: f64,
}

/// A line of a table that is none, or a table that is too long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct TableError {
    /// Which file.
    pub file: String,
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong, and what to write instead.
    pub message: String,
}

/// The first line of every table.
pub const HEADER: &str = "question,size_bytes,figure";

/// Rows at the most: each is simulated some hundred times.
const MOST_ROWS: usize = 256;

/// The largest transfer: what a larger one shows, this one shows too.
const LARGEST_BYTES: u64 = 16 << 20;

/// What a figure may be written in: as nanoseconds.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6)];

/// What a figure may be written in: as bytes per second.
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
    /// Reads a table: [`HEADER`], then a row a line, such as `dma_write_bandwidth,4KiB,11.2 GB/s`. Empty lines and
    /// those that begin with `#` say nothing.
    ///
    /// # Errors
    /// [`TableError`] for the first line that is wrong.
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
                    format!("a table has {MOST_ROWS} rows at the most: about ten sizes a question do"),
                ));
            }
            rows.push(row(line, &cells).map_err(|message| wrong(line, message))?);
        }
        if rows.is_empty() {
            return Err(wrong(1, format!("no figure is in it: write '{HEADER}' and a row for each")));
        }
        Ok(Table { file: file.to_owned(), rows })
    }
}

fn row(line: usize, cells: &[&str]) -> Result<Row, String> {
    let [name, size, figure] = cells else {
        return Err(format!("{} columns instead of 3: write '{HEADER}'", cells.len()));
    };
    let question = question(name).filter(|question| question.name.starts_with("dma_")).ok_or_else(|| {
        let known: Vec<&str> = CATALOGUE.iter().map(|question| question.name).collect();
        let known: Vec<&str> = known.into_iter().filter(|name| name.starts_with("dma_")).collect();
        format!("'{name}' is no question about a card's own transfers: use {}", known.join(", "))
    })?;
    let size_bytes = parse_size(size).map_err(|error| error.to_string())?;
    if !(1..=LARGEST_BYTES).contains(&size_bytes) {
        return Err(format!("size_bytes is {size}; it must be from 1 to {LARGEST_BYTES}"));
    }
    let units: &[(&str, f64)] = if question.quantity == Quantity::Bandwidth { &RATES } else { &TIMES };
    let digits = figure.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(figure.len());
    let (number, unit) = figure.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| *factor);
    let value = number.parse().ok().zip(factor).map(|(number, factor): (f64, f64)| number * factor);
    let value = value.filter(|value| *value > 0.0 && value.is_finite()).ok_or_else(|| {
        let units: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        format!("'{figure}' is no figure of {name}: write a number above 0 and one of {}", units.join(", "))
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
        let lines = "dma_write_bandwidth , 4KiB , 2 GiB/s\r\n# said twice\n\ndma_read_bandwidth,4096,3.5 GB/s\r\n";
        assert_eq!(rows(lines).unwrap(), [(4096, 2.0 * 1_073_741_824.0), (4096, 3.5e9)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        assert!(Table::parse("t.csv", "size,figure\n").unwrap_err().to_string().starts_with("t.csv:1: the first line"));
        assert!(Table::parse("t.csv", HEADER).unwrap_err().to_string().contains("no figure is in it"));
        assert!(refused("dma_read_latency,64").starts_with("t.csv:2: 2 columns instead of 3"));
        assert!(refused("dma_read_latency,64,1,5 us").contains("4 columns"));
        assert!(refused("mmio_read_latency,64,1 us").contains("transfers: use dma_"));
        assert!(refused("dma_read_latency,64,12 GB/s").contains("one of ns, us"));
        assert!(refused("dma_read_bandwidth,64,12 us").contains("one of B/s, kB/s"));
        for figure in ["0 ns", "-1 ns", "nan ns", "1e3 ns", "", "ns", "1.2.3 ns"] {
            assert!(refused(&format!("dma_read_latency,64,{figure}")).contains("is no figure"), "{figure}");
        }
    }

    #[test]
    fn sizes_and_rows_have_an_end() {
        assert!(refused("dma_read_latency,0,1 ns").contains("from 1 to 16777216"));
        assert!(refused("dma_read_latency,16777217,1 ns").contains("from 1 to 16777216"));
        assert!(rows("dma_read_latency,1,1 ns\ndma_read_latency,16MiB,1 ns").is_ok());
        assert!(rows(&"dma_read_latency,64,1 ns\n".repeat(256)).is_ok());
        assert!(refused(&"dma_read_latency,64,1 ns\n".repeat(257)).starts_with("t.csv:258: a table has 256 rows"));
    }
}
