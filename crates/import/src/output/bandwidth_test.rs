//! Output of `bandwidthTest` of the CUDA samples, as text or with `--csv`.
//!
//! Source: NVIDIA/cuda-samples, `bandwidthTest.cu` and its README: GB/s are 10^9 bytes per second; versions that print MB/s
//! counted 2^20 bytes.

use super::collector::{Collector, MIB, figure};
use crate::table::TableError;
use lanemark_record::{BytePath, Imported, ImportedFigure, Measured};

const LOOKED_FOR: &str = "tables 'Host to Device Bandwidth, 1 Device(s)' of bandwidthTest, or lines 'bandwidthTest-H2D-Pinned, Bandwidth = ...'";

/// The path that a title names; `None` for another line.
fn path(title: &str) -> Option<BytePath> {
    [
        ("Host to Device Bandwidth", BytePath::ToDevice),
        ("Device to Host Bandwidth", BytePath::FromDevice),
        ("Device to Device Bandwidth", BytePath::OtherLink),
    ]
    .into_iter()
    .find_map(|(start, path)| title.starts_with(start).then_some(path))
}

/// Bytes per second of a unit.
fn unit(text: &str) -> Option<f64> {
    match text {
        "GB/s" => Some(1e9),
        "MB/s" => Some(MIB),
        _ => None,
    }
}

/// Reads the output of bandwidthTest.
///
/// # Errors
/// [`TableError`] for an invalid figure, an unknown unit, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Imported, TableError> {
    let mut collector = Collector::new("bandwidthTest", file);
    let (mut now, mut memory, mut factor, mut device) = (None, String::new(), None, None);
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        let cells: Vec<&str> = text.split_whitespace().collect();
        if let Some(found) = path(text) {
            (now, factor) = (Some((found, text.split(',').next().unwrap_or(text).to_owned())), None);
            if !text.contains("1 Device(s)") {
                collector.leave_out(line, "the figures of several devices are added: run it with --device=0");
                now = None;
            }
        } else if text.starts_with("bandwidthTest-") {
            csv_line(&mut collector, line, text, device.as_ref())?;
        } else if let Some((_, header)) = text.split_once("Bandwidth(") {
            let name = header.trim_end_matches(')');
            let found = unit(name).ok_or_else(|| {
                collector.wrong(line, format!("the unit of the bandwidth is '{name}', not GB/s or MB/s"))
            })?;
            factor = Some(found);
            if found == MIB {
                collector.note("MB/s of bandwidthTest are read as 2^20 bytes per second, as its older versions count");
            }
        } else if let (Some((path, title)), Some(factor), [bytes, value]) = (&now, factor, cells.as_slice()) {
            let bytes = collector.bytes(line, bytes)?;
            let rate = collector.number(line, value, "bandwidth")? * factor;
            let label = format!("{title}{memory}");
            let found = figure(line, &label, *path, Measured::RateBytesPerS(rate));
            collector.add(ImportedFigure { size_bytes: Some(bytes), device: device.clone(), ..found })?;
        } else {
            if let Some((kind, _)) = text.split_once(" Memory Transfers") {
                memory = format!(", {}", kind.to_lowercase());
            } else if let Some((number, name)) = text.strip_prefix("Device ").and_then(|rest| rest.split_once(':')) {
                device = Some(format!("GPU {number} ({})", name.trim()));
            }
            collector.skip();
        }
    }
    collector.unknown("version, link of the GPU, MPS, processor and NUMA node");
    collector.finish(text, LOOKED_FOR)
}

/// Reads `bandwidthTest-H2D-Pinned, Bandwidth = 12.1 GB/s, Time = 0.00264 s, Size = 32000000 bytes, NumDevsUsed = 1`.
fn csv_line(collector: &mut Collector, line: usize, text: &str, device: Option<&String>) -> Result<(), TableError> {
    let mut parts = text.split(',').map(str::trim);
    let label = parts.next().unwrap_or_default();
    let path = match label.split('-').nth(1) {
        Some("H2D") => BytePath::ToDevice,
        Some("D2H") => BytePath::FromDevice,
        Some("D2D") => BytePath::OtherLink,
        _ => return Err(collector.wrong(line, format!("'{label}' names no direction: H2D, D2H or D2D"))),
    };
    let parts: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once(" = ")).collect();
    let value = |name: &str| parts.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let words: Vec<&str> = value("Bandwidth").unwrap_or_default().split_whitespace().collect();
    let [number, name] = words[..] else {
        return Err(collector.wrong(line, "there is no 'Bandwidth = NUMBER UNIT': is the file complete?"));
    };
    let factor = unit(name)
        .ok_or_else(|| collector.wrong(line, format!("the unit of the bandwidth is '{name}', not GB/s or MB/s")))?;
    if value("NumDevsUsed").is_some_and(|count| count != "1") {
        collector.leave_out(line, "the figures of several devices are added: run it with --device=0");
        return Ok(());
    }
    let rate = collector.number(line, number, "bandwidth")? * factor;
    let size_bytes = value("Size").and_then(|size| size.strip_suffix(" bytes")?.parse().ok());
    let found = figure(line, label, path, Measured::RateBytesPerS(rate));
    collector.add(ImportedFigure { size_bytes, device: device.cloned(), ..found })
}
