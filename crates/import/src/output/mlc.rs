//! Output of Intel's Memory Latency Checker: idle latencies, peak bandwidths, bandwidths between nodes, loaded latencies.
//!
//! Source: Intel, "Intel Memory Latency Checker", the page of the tool and its readme: a MB/sec is 10^6 bytes per second.

use super::collector::{Collector, figure};
use crate::table::TableError;
use lanemark_record::{BytePath, Imported, Measured};

const LOOKED_FOR: &str = "the sections 'Measuring idle latencies', 'Measuring Peak Injection Memory Bandwidths', 'Measuring Memory Bandwidths between nodes' or 'Measuring Loaded Latencies' of mlc";

/// Section of the output.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    Idle,
    Peak,
    Nodes,
    Loaded,
}

/// The section that a line opens.
fn section(text: &str) -> Option<Section> {
    let rest = text.strip_prefix("Measuring ")?;
    match () {
        () if rest.starts_with("idle latencies") => Some(Section::Idle),
        () if rest.starts_with("Peak Injection Memory Bandwidths") => Some(Section::Peak),
        () if rest.starts_with("Memory Bandwidths between nodes") => Some(Section::Nodes),
        () if rest.starts_with("Loaded Latencies") => Some(Section::Loaded),
        () => None,
    }
}

/// Reads the output of mlc.
///
/// # Errors
/// [`TableError`] for an invalid figure, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Imported, TableError> {
    let mut collector = Collector::new("mlc", file);
    let (mut now, mut nodes): (Option<Section>, Vec<String>) = (None, Vec::new());
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        let cells: Vec<&str> = text.split_whitespace().collect();
        if let Some((_, version)) = text.split_once("Memory Latency Checker - v") {
            collector.imported.version = Some(version.trim().to_owned());
        } else if text.starts_with("Measuring ") {
            (now, nodes) = (section(text), Vec::new());
            if now.is_none() {
                collector.leave_out(line, format!("'{text}' is a section that is not read"));
            }
        } else if let ["Numa", "node", numbers @ ..] = cells.as_slice() {
            nodes = numbers.iter().map(|number| (*number).to_owned()).collect();
        } else {
            let is_read = match now {
                Some(section @ (Section::Idle | Section::Nodes)) => {
                    between(&mut collector, line, &cells, &nodes, section)?
                }
                Some(Section::Peak) => peak(&mut collector, line, text)?,
                Some(Section::Loaded) => loaded(&mut collector, line, &cells)?,
                None => false,
            };
            if !is_read {
                collector.skip();
            }
        }
    }
    collector.note("figures of mlc are of host memory: no byte crosses PCIe");
    collector.unknown("working set, processor, memory");
    collector.finish(text, LOOKED_FOR)
}

/// Reads a row of a matrix of nodes.
fn between(
    collector: &mut Collector,
    line: usize,
    cells: &[&str],
    nodes: &[String],
    section: Section,
) -> Result<bool, TableError> {
    let [from, values @ ..] = cells else { return Ok(false) };
    if nodes.is_empty() || from.parse::<u32>().is_err() {
        return Ok(false);
    }
    if values.len() != nodes.len() {
        let (found, wanted) = (values.len(), nodes.len());
        return Err(collector.wrong(line, format!("{found} values instead of {wanted}: is the file complete?")));
    }
    for (to, value) in nodes.iter().zip(values) {
        // A node without memory.
        if *value == "-" {
            continue;
        }
        let number = collector.number(line, value, "figure")?;
        let (test, value) = match section {
            Section::Idle => ("idle latency", Measured::LatencyNs(number)),
            _ => ("bandwidth between nodes", Measured::RateBytesPerS(number * 1e6)),
        };
        let test = format!("{test}, node {from} to {to}");
        collector.add(figure(line, &test, BytePath::HostMemory, value))?;
    }
    Ok(true)
}

/// Reads `ALL Reads : 230418.7`.
fn peak(collector: &mut Collector, line: usize, text: &str) -> Result<bool, TableError> {
    let Some((name, value)) = text.rsplit_once(':') else { return Ok(false) };
    let value = value.trim();
    if value.is_empty() || !value.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(false);
    }
    let rate = collector.number(line, value, "rate in MB/sec")? * 1e6;
    let label = format!("peak bandwidth, {}", name.trim());
    collector.add(figure(line, &label, BytePath::HostMemory, Measured::RateBytesPerS(rate)))?;
    Ok(true)
}

/// Reads ` 00000 302.81 230210.3`: delay, latency, bandwidth.
fn loaded(collector: &mut Collector, line: usize, cells: &[&str]) -> Result<bool, TableError> {
    let [delay, latency, rate] = cells else { return Ok(false) };
    if !delay.chars().all(|c| c.is_ascii_digit()) {
        return Ok(false);
    }
    let ns = collector.number(line, latency, "latency in ns")?;
    let rate = collector.number(line, rate, "rate in MB/sec")? * 1e6;
    let test = format!("loaded latency, delay {}", delay.trim_start_matches('0').parse::<u32>().unwrap_or(0));
    collector.add(figure(line, &test, BytePath::HostMemory, Measured::LatencyNs(ns)))?;
    collector.add(figure(line, &test, BytePath::HostMemory, Measured::RateBytesPerS(rate)))?;
    Ok(true)
}
