//! Figures that a reader collects from the output of a tool.

use crate::table::reader::{in_one_line, positive};
use crate::table::{Table, TableError};
use lanemark_record::{BytePath, Imported, ImportedFigure, LeftOut, Measured};

/// Most figures of a file.
const MOST_FIGURES: usize = 4096;

/// Largest rate in bytes per second, and largest time in nanoseconds: far above any link and any transfer.
const LARGEST: f64 = 1e14;

/// 2^20 bytes.
pub(super) const MIB: f64 = 1_048_576.0;

/// The figures that were read so far, and what was left out.
pub(super) struct Collector {
    pub(super) imported: Imported,
}

/// A figure without a device, a size and outstanding transfers.
pub(super) fn figure(line: usize, test: &str, path: BytePath, value: Measured) -> ImportedFigure {
    ImportedFigure {
        line: line as u64,
        test: in_one_line(test.to_owned()),
        path,
        device: None,
        size_bytes: None,
        outstanding: None,
        is_concurrent: false,
        value,
        limit_bytes_per_s: None,
    }
}

impl Collector {
    pub(super) fn new(tool: &str, file: &str) -> Collector {
        let imported = Imported {
            tool: tool.to_owned(),
            version: None,
            file: file.to_owned(),
            figures: Vec::new(),
            unknown: Vec::new(),
            notes: Vec::new(),
            left_out: Vec::new(),
            skipped_lines: 0,
            findings: Vec::new(),
        };
        Collector { imported }
    }

    /// An error at a line of the file.
    pub(super) fn wrong(&self, line: usize, message: impl Into<String>) -> TableError {
        TableError { file: self.imported.file.clone(), line, message: in_one_line(message.into()) }
    }

    /// Adds a figure.
    pub(super) fn add(&mut self, figure: ImportedFigure) -> Result<(), TableError> {
        let (Measured::RateBytesPerS(value) | Measured::LatencyNs(value)) = figure.value;
        let line = figure.line as usize;
        if !(value.is_finite() && value > 0.0 && value <= LARGEST) {
            return Err(self.wrong(line, format!("the figure {value} is out of range: above 0 and at most {LARGEST}")));
        }
        if self.imported.figures.len() == MOST_FIGURES {
            return Err(self.wrong(line, format!("a file has at most {MOST_FIGURES} figures: split it")));
        }
        self.imported.figures.push(figure);
        Ok(())
    }

    /// The number in a cell, above 0.
    pub(super) fn number(&self, line: usize, text: &str, what: &str) -> Result<f64, TableError> {
        positive(text).ok_or_else(|| self.wrong(line, format!("'{text}' is not a {what} above 0")))
    }

    /// The bytes in a cell.
    pub(super) fn bytes(&self, line: usize, text: &str) -> Result<u64, TableError> {
        text.parse().map_err(|_| self.wrong(line, format!("'{text}' is not a number of bytes")))
    }

    /// Counts a line of another kind.
    pub(super) fn skip(&mut self) {
        self.imported.skipped_lines += 1;
    }

    /// Leaves out a figure.
    pub(super) fn leave_out(&mut self, line: usize, because: impl Into<String>) {
        self.imported.left_out.push(LeftOut { line: line as u64, because: in_one_line(because.into()) });
    }

    /// Adds a note about all figures, once.
    pub(super) fn note(&mut self, note: &str) {
        if !self.imported.notes.iter().any(|known| known == note) {
            self.imported.notes.push(note.to_owned());
        }
    }

    /// Adds a fact that the tool does not say, once.
    pub(super) fn unknown(&mut self, fact: &str) {
        if !self.imported.unknown.iter().any(|known| known == fact) {
            self.imported.unknown.push(fact.to_owned());
        }
    }

    /// Adds the rows of a table of DMA figures.
    pub(super) fn add_table(&mut self, table: &Table, test: impl Fn(usize) -> String) -> Result<(), TableError> {
        for row in &table.rows {
            let path = match row.question {
                "dma_read_bandwidth" => BytePath::ToDevice,
                "dma_write_bandwidth" => BytePath::FromDevice,
                _ => BytePath::Both,
            };
            let value = Measured::RateBytesPerS(row.figure);
            self.add(ImportedFigure {
                size_bytes: Some(row.size_bytes),
                outstanding: row.reach.outstanding,
                ..figure(row.line, &test(row.line), path, value)
            })?;
        }
        for (line, because) in &table.reading.refused {
            self.leave_out(*line, because.clone());
        }
        table.reading.notes.iter().for_each(|note| self.note(note));
        self.imported.skipped_lines += table.reading.skipped_lines as u64;
        Ok(())
    }

    /// The figures.
    ///
    /// # Errors
    /// [`TableError`] if there is none, with `looked_for` and the reason of the first figure that was left out; and for a
    /// figure in a last line without an end.
    pub(super) fn finish(self, text: &str, looked_for: &str) -> Result<Imported, TableError> {
        let last = text.lines().count();
        if !text.ends_with('\n') && self.imported.figures.iter().any(|figure| figure.line == last as u64) {
            let message = "the last line has no end: is the file complete? If so, add an end of line";
            return Err(self.wrong(last, message));
        }
        if !self.imported.figures.is_empty() {
            return Ok(self.imported);
        }
        match self.imported.left_out.first() {
            Some(LeftOut { line, because }) => {
                let count = self.imported.left_out.len();
                Err(self.wrong(*line as usize, format!("none of the {count} figures found can be used: {because}")))
            }
            None => Err(self.wrong(1, format!("no figure found: looked for {looked_for}"))),
        }
    }
}
