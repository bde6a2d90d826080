//! Output of perftest: bandwidths as in tables of DMA figures, and latencies.
//!
//! Source: linux-rdma/perftest, `README`, `src/perftest_parameters.h`.

use super::collector::{Collector, figure};
use crate::table::{TableError, Tool};
use lanemark_record::{BytePath, Imported, ImportedFigure, Measured};

const LOOKED_FOR: &str =
    "a title such as 'RDMA_Write BW Test' or 'RDMA_Read Latency Test' and its table '#bytes #iterations ...'";

/// Reads the output of perftest.
///
/// # Errors
/// [`TableError`] for an invalid line of a table, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Imported, TableError> {
    let mut collector = Collector::new("perftest", file);
    let lines: Vec<&str> = text.lines().collect();
    let has_rates = lines.iter().any(|line| line.trim().ends_with("BW Test"));
    // The title above a line.
    let title = |line: usize| {
        let above = lines.iter().take(line).rev().map(|text| text.trim());
        above.into_iter().find(|text| text.ends_with(" Test")).unwrap_or("perftest").to_owned()
    };
    let has_times = lines.iter().any(|line| line.trim().ends_with("Latency Test"));
    if has_rates || !has_times {
        match Tool::Perftest.read(file, text) {
            Ok(table) => collector.add_table(&table, title)?,
            // Latencies remain, if the titles of both are there.
            Err(error) if !has_times || !error.message.starts_with("none of the") => return Err(error),
            Err(error) => collector.leave_out(error.line, error.message),
        }
    }
    let mut is_time = false;
    for (number, text) in (1..).zip(&lines) {
        let text = text.trim();
        let cells: Vec<&str> = text.split_whitespace().collect();
        if text.starts_with("#bytes") {
            is_time = text.contains("t_typical[usec]");
            if is_time {
                collector.note("a latency of perftest contains the network and both hosts");
            }
        } else if text.starts_with("---") {
            is_time = false;
        } else if let (true, [bytes, _, _, _, typical, ..]) = (is_time, cells.as_slice()) {
            let bytes = collector.bytes(number, bytes)?;
            let ns = collector.number(number, typical, "typical time in us")? * 1e3;
            let found = figure(number, &title(number), BytePath::Network, Measured::LatencyNs(ns));
            collector.add(ImportedFigure { size_bytes: Some(bytes), ..found })?;
        }
    }
    collector.imported.figures.sort_by_key(|figure| figure.line);
    collector.imported.left_out.retain(|left| !left.because.contains("a latency of perftest"));
    collector.unknown("version, links of both cards, processors");
    collector.finish(text, LOOKED_FOR)
}
