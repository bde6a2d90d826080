//! Output of `gdrcopy_copybw` and `gdrcopy_copylat`.
//!
//! Source: NVIDIA/gdrcopy, `README.md`, `tests/copybw.cpp` and `tests/copylat.cpp`: a MB/s is 2^20 bytes per second.

use super::collector::{Collector, MIB, figure};
use crate::table::TableError;
use lanemark_record::{BytePath, Imported, ImportedFigure, Measured};

const LOOKED_FOR: &str =
    "lines 'write BW: ...MB/s' of gdrcopy_copybw, or 'gdr_copy_to_mapping SIZE TIME' of gdrcopy_copylat";

/// Reads the output of gdrcopy's tests.
///
/// # Errors
/// [`TableError`] for an invalid figure, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Imported, TableError> {
    let mut collector = Collector::new("gdrcopy", file);
    let (mut size, mut device) = (None, None);
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        let rate = [("write BW: ", BytePath::CoreStores), ("read BW: ", BytePath::CoreLoads)]
            .into_iter()
            .find_map(|(start, path)| Some((text.strip_prefix(start)?, start.trim_end_matches(": "), path)));
        let cells: Vec<&str> = text.split_whitespace().collect();
        if let Some((value, test, path)) = rate {
            let Some(number) = value.trim().strip_suffix("MB/s") else {
                return Err(collector.wrong(line, format!("the unit of '{text}' is not MB/s")));
            };
            let rate = collector.number(line, number.trim(), "rate in MB/s")? * MIB;
            let found = figure(line, test, path, Measured::RateBytesPerS(rate));
            collector.add(ImportedFigure { size_bytes: size, device: device.clone(), ..found })?;
        } else if let [test @ ("gdr_copy_to_mapping" | "gdr_copy_from_mapping"), bytes, time] = cells[..] {
            let bytes = collector.bytes(line, bytes)?;
            let ns = collector.number(line, time, "time in us")? * 1e3;
            let path = if test == "gdr_copy_to_mapping" { BytePath::CoreStores } else { BytePath::CoreLoads };
            let found = figure(line, test, path, Measured::LatencyNs(ns));
            collector.add(ImportedFigure { size_bytes: Some(bytes), device: device.clone(), ..found })?;
            collector.note("a time of copylat is that of the call: stores may still be on their way");
        } else if let Some(number) = text.strip_prefix("selecting device ") {
            device = Some(format!("GPU {}", number.trim()));
            collector.skip();
        } else {
            let named = text.split_once("size=").or_else(|| text.split_once("testing size: "));
            let digits = named.map(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
            size = digits.and_then(|digits| digits.parse().ok()).or(size);
            collector.skip();
        }
    }
    collector.unknown("version, link of the GPU, processor and NUMA node");
    collector.finish(text, LOOKED_FOR)
}
