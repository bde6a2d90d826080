//! Rows of a table: figures, and how each was measured.

use lanemark_bench::{CATALOGUE, Question, question};
use lanemark_method::Reach;
use lanemark_record::Quantity;
use lanemark_units::format_size;

/// Figures of a card's DMA by question, size and options, measured with any tool.
///
/// ```
/// use lanemark_import::Table;
/// let table = Table::parse("card.csv", "question,size_bytes,figure\ndma_read_latency,64,812 ns\n")?;
/// assert_eq!(table.rows[0].figure, 812.0);
/// # Ok::<(), lanemark_import::TableError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the file, for messages.
    pub file: String,
    /// Rows, in the order of the file.
    pub rows: Vec<Row>,
    /// Lines that were left out; none of a CSV table.
    pub reading: Reading,
}

/// Lines of a tool's output that are no row of a table, and notes about the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Number of lines of other kinds.
    pub skipped_lines: usize,
    /// Figures that no question has: line, from 1, and reason.
    pub refused: Vec<(usize, String)>,
    /// Properties of all figures of this tool.
    pub notes: Vec<&'static str>,
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
    /// Offset of the first byte from a page boundary, in bytes.
    pub alignment_bytes: u64,
    /// Window, order, stride, outstanding transfers and channels, as the options of `lanemark bench`.
    pub reach: Reach,
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

/// Most rows of a table: each is simulated some hundred times.
pub(super) const MOST_ROWS: usize = 256;

/// Largest transfer size; larger ones add no information.
pub(super) const LARGEST_BYTES: u64 = 16 << 20;

/// Largest offset from a page boundary, in bytes.
const MOST_ALIGNMENT: u64 = 4095;

/// The question of a table with this name.
///
/// # Errors
/// The names of all questions of tables.
pub(super) fn dma_question(name: &str) -> Result<&'static Question, String> {
    question(name).filter(|question| question.name.starts_with("dma_")).ok_or_else(|| {
        let known: Vec<&str> = CATALOGUE.iter().map(|question| question.name).collect();
        let known: Vec<&str> = known.into_iter().filter(|name| name.starts_with("dma_")).collect();
        format!("'{name}' is not a DMA question: use {}", known.join(", "))
    })
}

impl Row {
    /// A row with default options.
    pub(super) fn new(line: usize, question: &'static str, size_bytes: u64, figure: f64) -> Row {
        Row { line, question, size_bytes, figure, alignment_bytes: 0, reach: Reach::default() }
    }

    /// Checks that the options apply to the question and to the size, and removes those that request the default.
    ///
    /// # Errors
    /// The option, named as its column, and a value that is possible.
    pub(super) fn checked(mut self, question: &Question) -> Result<Row, String> {
        let Row { size_bytes: size, alignment_bytes: offset, .. } = self;
        let name = self.question;
        if !(1..=LARGEST_BYTES).contains(&size) {
            return Err(format!("size_bytes is {size}, but must be from 1 to {LARGEST_BYTES}"));
        }
        if offset > MOST_ALIGNMENT {
            return Err(format!("align is {offset}, but an offset from a page boundary is from 0 to {MOST_ALIGNMENT}"));
        }
        let is_too_short = |stride: &u64| *stride < size && !self.reach.is_random;
        if let Some(stride) = self.reach.stride_bytes.filter(is_too_short) {
            let (stride, size) = (format_size(stride), format_size(size));
            return Err(format!("stride is {stride}, but transfers of {size} overlap there: write {size} or more"));
        }
        if let Some(window) = self.reach.window_bytes.filter(|window| *window < size.saturating_add(offset)) {
            let (window, least) = (format_size(window), format_size(size.saturating_add(offset)));
            return Err(format!("window is {window}, but one transfer needs {least}: write {least} or more"));
        }
        let is_latency = question.quantity != Quantity::Bandwidth;
        if is_latency && self.reach.outstanding == Some(1) {
            self.reach.outstanding = None;
        }
        if let Some(outstanding) = self.reach.outstanding {
            if is_latency {
                return Err(format!(
                    "outstanding is {outstanding}, but {name} is of one transfer at a time: leave the cell empty"
                ));
            }
            if name == "dma_write_bandwidth" {
                return Err(format!(
                    "outstanding is {outstanding}, but a posted write is complete when it is sent: leave the cell empty"
                ));
            }
        }
        if let Some(channels) = self.reach.channels {
            if is_latency {
                return Err(format!("channels is {channels}, but {name} uses one channel: leave the cell empty"));
            }
            if name == "dma_read_write_mix" && channels != 2 {
                return Err(format!(
                    "channels is {channels}, but reads and writes at once use one channel together (empty cell) or one each (2)"
                ));
            }
        }
        if self.reach.stride_bytes == Some(size) && !self.reach.is_random {
            self.reach.stride_bytes = None;
        }
        Ok(self)
    }
}
