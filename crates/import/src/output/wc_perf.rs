//! Output of `wc_perf` of the AWS FPGA application notes, and the table of its page.
//!
//! Source: awslabs/aws-fpga-app-notes, Using-PCIe-Write-Combining/README.md: it *reports the bandwidth in GB/s* of stores to
//! BAR4, of `-i` integers of 4 B (default 16), with `-w` to a write-combining region, and with `-c` by a loop of its own. The
//! page does not show the line that it prints: a line with one number before GB/s is read.

use super::collector::{Collector, figure};
use crate::table::TableError;
use crate::table::command::{option, words};
use crate::table::reader::positive;
use lanemark_record::{BytePath, Imported, ImportedFigure, Measured};

const LOOKED_FOR: &str = "a command line 'wc_perf -i 1024 -w' and its line with '... GB/s', or the table '| size (bytes) | burst | burst-wc | ...'";

/// Integers without the option `-i`.
const USUAL_INTEGERS: u64 = 16;

/// Reads the output of `wc_perf`.
///
/// # Errors
/// [`TableError`] for a figure without a command line, an invalid figure, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Imported, TableError> {
    let mut collector = Collector::new("wc_perf", file);
    let (mut command, mut columns): (Option<(String, u64)>, Vec<String>) = (None, Vec::new());
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        let cells: Vec<&str> = text.trim_matches('|').split('|').map(str::trim).collect();
        if let Some(words) = words(text, "wc_perf") {
            let integers = option(&words, "-i", "--integers").map_or(Some(USUAL_INTEGERS), |count| count.parse().ok());
            let bytes = integers.filter(|count| *count > 0).and_then(|count| count.checked_mul(4));
            let bytes = bytes.ok_or_else(|| collector.wrong(line, "-i is not a number of integers above 0"))?;
            let label = match (words.contains(&"-c"), words.contains(&"-w")) {
                (false, false) => "burst",
                (false, true) => "burst-wc",
                (true, false) => "custom",
                (true, true) => "custom-wc",
            };
            command = Some((label.to_owned(), bytes));
        } else if cells[0].starts_with("size (bytes)") {
            columns = cells[1..].iter().map(|name| name.trim_end_matches("(GB/s)").trim().to_owned()).collect();
            if !text.contains("(GB/s)") {
                return Err(collector.wrong(line, "the table does not name GB/s"));
            }
        } else if let (Ok(bytes), false) = (cells[0].parse::<u64>(), columns.is_empty()) {
            if cells.len() != columns.len() + 1 {
                let message = format!("{} cells instead of {}: is the file complete?", cells.len(), columns.len() + 1);
                return Err(collector.wrong(line, message));
            }
            for (name, value) in columns.iter().zip(&cells[1..]) {
                let rate = collector.number(line, value, "rate in GB/s")? * 1e9;
                let found = figure(line, name, BytePath::CoreStores, Measured::RateBytesPerS(rate));
                collector.add(ImportedFigure { size_bytes: Some(bytes), ..found })?;
            }
        } else if let Some((before, _)) = text.split_once("GB/s") {
            let number = before.split_whitespace().next_back().and_then(positive);
            let number = number.ok_or_else(|| collector.wrong(line, "there is no number above 0 before GB/s"))?;
            let Some((label, bytes)) = &command else {
                return Err(collector.wrong(line, "there is no command line of wc_perf above: its size is unknown"));
            };
            let found = figure(line, label, BytePath::CoreStores, Measured::RateBytesPerS(number * 1e9));
            collector.add(ImportedFigure { size_bytes: Some(*bytes), ..found })?;
        } else {
            collector.skip();
        }
    }
    collector.unknown("version, link of the card, MPS, processor");
    collector.finish(text, LOOKED_FOR)
}
