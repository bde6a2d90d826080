//! Output of the OSU micro-benchmarks between two processes: latency, bandwidth and both directions.
//!
//! Source: mvapich.cse.ohio-state.edu/benchmarks, README: MB/s are 10^6 bytes per second, latencies one way.

use super::collector::{Collector, figure};
use crate::table::TableError;
use lanemark_record::{BytePath, Imported, ImportedFigure, Measured};

const LOOKED_FOR: &str = "a title such as '# OSU MPI-CUDA Bandwidth Test v7.3' and lines 'SIZE FIGURE'";

/// Reads the output of the OSU micro-benchmarks.
///
/// # Errors
/// [`TableError`] for an invalid figure, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Imported, TableError> {
    let mut collector = Collector::new("osu", file);
    let mut now: Option<(String, BytePath)> = None;
    // Whether the column of figures is a time; none before its heading.
    let mut is_time = None;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        let cells: Vec<&str> = text.split_whitespace().collect();
        if let Some(title) = text.strip_prefix("# OSU MPI") {
            let title = title.trim_start_matches(|c: char| !c.is_whitespace()).trim();
            let (label, version) = title.rsplit_once(" v").unwrap_or((title, ""));
            if version.starts_with(|c: char| c.is_ascii_digit()) {
                collector.imported.version = Some(version.to_owned());
            }
            is_time = None;
            now = match label {
                "Latency Test" | "Bandwidth Test" => Some((label.to_owned(), BytePath::Network)),
                "Bi-Directional Bandwidth Test" => Some((label.to_owned(), BytePath::NetworkBoth)),
                _ => {
                    collector.leave_out(line, format!("{label}: only latency and bandwidth of two processes are read"));
                    None
                }
            };
        } else if let Some(heading) = text.strip_prefix("# Size") {
            is_time = match heading.trim() {
                heading if heading.starts_with("Bandwidth (MB/s)") => Some(false),
                heading if heading.starts_with("Latency (us)") || heading.starts_with("Avg Latency(us)") => Some(true),
                heading => {
                    return Err(
                        collector.wrong(line, format!("'{heading}' is neither Bandwidth (MB/s) nor Latency (us)"))
                    );
                }
            };
        } else if let (Some((label, path)), Some(is_time), [bytes, value, ..]) = (&now, is_time, cells.as_slice())
            && !text.starts_with('#')
        {
            let bytes = collector.bytes(line, bytes)?;
            let number = collector.number(line, value, "figure")?;
            let value = if is_time { Measured::LatencyNs(number * 1e3) } else { Measured::RateBytesPerS(number * 1e6) };
            let found = figure(line, label, *path, value);
            collector.add(ImportedFigure { size_bytes: Some(bytes), ..found })?;
        } else {
            collector.skip();
        }
    }
    collector.note("a figure of OSU contains the network, both hosts and MPI");
    collector.unknown("devices, their links, and the direction at each of them");
    collector.finish(text, LOOKED_FOR)
}
