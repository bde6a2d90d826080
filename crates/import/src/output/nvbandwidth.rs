//! Output of NVIDIA's nvbandwidth: text, or JSON (`-j`), with a column per GPU.
//!
//! Source: NVIDIA/nvbandwidth, `README.md`, `output.cpp` and `json_output.cpp`.

use super::collector::{Collector, figure};
use crate::table::TableError;
use crate::table::command::{option, words};
use crate::table::reader::{json, lines_of_key, positive};
use lanemark_record::{BytePath, Imported, ImportedFigure, Measured};
use serde_json::Value;

const LOOKED_FOR: &str = "matrices of nvbandwidth, as text or as JSON (-j)";

/// Bytes of a copy without the option `-b`.
const USUAL_BYTES: u64 = 512 << 20;

/// Test of nvbandwidth.
#[derive(Clone, Copy)]
struct Test {
    path: BytePath,
    is_concurrent: bool,
}

/// The test with this name, or the reason why it is left out.
fn test(name: &str) -> Result<Test, &'static str> {
    let is_concurrent = name.starts_with("host_to_all") || name.starts_with("all_to_host");
    let is_both = name.contains("bidirectional");
    let path = if name.starts_with("host_to_device") || name.starts_with("host_to_all") {
        if is_both { BytePath::ToDeviceOfBoth } else { BytePath::ToDevice }
    } else if name.starts_with("device_to_host") || name.starts_with("all_to_host") {
        if is_both { BytePath::FromDeviceOfBoth } else { BytePath::FromDevice }
    } else if name == "host_device_latency_sm" {
        BytePath::ToDevice
    } else if name.starts_with("device_") || name.starts_with("all_to_one") || name.starts_with("one_to_all") {
        BytePath::OtherLink
    } else {
        return Err("its name is none of those that are known");
    };
    Ok(Test { path, is_concurrent })
}

/// Reads the output of nvbandwidth.
///
/// # Errors
/// [`TableError`] for an invalid figure, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Imported, TableError> {
    let mut reader = Reader { collector: Collector::new("nvbandwidth", file), devices: Vec::new(), bytes: None };
    match json(text) {
        Some((before, document)) => {
            for (line, text) in (1..).zip(text.lines().take(before)) {
                if !reader.size(line, text)? {
                    reader.collector.skip();
                }
            }
            let document = document.map_err(|(line, message)| reader.collector.wrong(line, message))?;
            reader.documented(text, &document)?;
        }
        None => reader.printed(text)?,
    }
    if reader.bytes.is_none() {
        reader.collector.unknown("buffer size: keep the command line in the file");
    }
    reader.collector.unknown("MPS, link state, processor and NUMA node");
    reader.collector.finish(text, LOOKED_FOR)
}

struct Reader {
    collector: Collector,
    /// The GPUs with their PCI addresses, by number.
    devices: Vec<(String, String)>,
    bytes: Option<u64>,
}

impl Reader {
    /// Reads a command line of nvbandwidth; false for another line.
    fn size(&mut self, line: usize, text: &str) -> Result<bool, TableError> {
        let Some(words) = words(text, "nvbandwidth") else { return Ok(false) };
        // `nvbandwidth Version: v0.8` is no command line.
        if words.first() == Some(&"Version:") {
            return Ok(false);
        }
        let bytes = match option(&words, "-b", "--bufferSize") {
            None => Some(USUAL_BYTES),
            Some(text) => {
                text.parse().ok().filter(|count| *count > 0).and_then(|count: u64| count.checked_mul(1 << 20))
            }
        };
        self.bytes = Some(bytes.ok_or_else(|| self.collector.wrong(line, "-b is not a whole number of MiB above 0"))?);
        Ok(true)
    }

    /// Reads `Device 0: NVIDIA H100 PCIe (00000000:41:00)`; false for another line.
    fn device(&mut self, text: &str) -> bool {
        let Some((number, rest)) = text.split_once(": ") else { return false };
        if number.is_empty() || !number.chars().all(|c| c.is_ascii_digit()) {
            return false;
        }
        let address = rest.rsplit_once('(').map(|(_, address)| address.trim_end_matches(')'));
        self.devices.push((number.to_owned(), address.unwrap_or_default().to_owned()));
        true
    }

    fn name(&self, number: &str) -> String {
        match self.devices.iter().find(|(known, address)| known == number && !address.is_empty()) {
            Some((_, address)) => format!("GPU {number} ({address})"),
            None => format!("GPU {number}"),
        }
    }

    fn add(
        &mut self,
        line: usize,
        name: &str,
        test: Test,
        place: (&str, &str),
        value: &str,
        is_time: bool,
    ) -> Result<(), TableError> {
        if value == "N/A" {
            return Ok(());
        }
        let unit = if is_time { "ns" } else { "GB/s" };
        let number = positive(value)
            .ok_or_else(|| self.collector.wrong(line, format!("'{value}' is not a figure in {unit}")))?;
        let value = if is_time { Measured::LatencyNs(number) } else { Measured::RateBytesPerS(number * 1e9) };
        let (row, column) = place;
        let device = match test.path {
            BytePath::OtherLink if name.starts_with("device_to_device") => format!("GPU {row} and GPU {column}"),
            _ => self.name(column),
        };
        let found = ImportedFigure {
            device: Some(device),
            size_bytes: self.bytes.filter(|_| !is_time),
            is_concurrent: test.is_concurrent,
            ..figure(line, name, test.path, value)
        };
        self.collector.add(found)
    }

    fn printed(&mut self, text: &str) -> Result<(), TableError> {
        let mut now: Option<(String, Test)> = None;
        let mut is_time = None;
        let mut columns: Vec<String> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            let cells: Vec<&str> = text.split_whitespace().collect();
            if let Some(name) = text.strip_prefix("Running ").and_then(|rest| rest.strip_suffix('.')) {
                (now, is_time, columns) = (None, None, Vec::new());
                match test(name) {
                    Ok(kind) => now = Some((name.to_owned(), kind)),
                    Err(because) => self.collector.leave_out(line, format!("{name}: {because}")),
                }
                continue;
            }
            if self.size(line, text)? || text.strip_prefix("Device ").is_some_and(|rest| self.device(rest)) {
                continue;
            }
            if let Some(version) = text.strip_prefix("nvbandwidth Version: ") {
                self.collector.imported.version = Some(version.to_owned());
                continue;
            }
            let Some((name, kind)) = now.clone() else {
                self.collector.skip();
                continue;
            };
            match (is_time, cells.as_slice()) {
                (None, _) if text.ends_with("(GB/s)") => is_time = Some(false),
                (None, _) if text.ends_with("(ns)") => is_time = Some(true),
                (None, [first, ..]) if first.starts_with("Waived") || first.starts_with("ERROR") => {
                    self.collector.leave_out(line, format!("{name}: the test did not run: {text}"));
                    now = None;
                }
                (Some(_), [] | ["SUM", ..]) if !columns.is_empty() => now = None,
                (None, _) | (Some(_), []) => self.collector.skip(),
                (Some(_), numbers) if columns.is_empty() => {
                    if !numbers.iter().all(|number| number.parse::<u32>().is_ok()) {
                        let message = format!("'{text}' is not the line with the numbers of the GPUs");
                        return Err(self.collector.wrong(line, message));
                    }
                    columns = numbers.iter().map(|number| (*number).to_owned()).collect();
                }
                (Some(is_time), [row, values @ ..]) => {
                    if values.len() != columns.len() {
                        let (found, wanted) = (values.len(), columns.len());
                        let message = format!("{found} values instead of {wanted}: is the file complete?");
                        return Err(self.collector.wrong(line, message));
                    }
                    for (column, value) in columns.iter().zip(values) {
                        self.add(line, &name, kind, (row, column), value, is_time)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn documented(&mut self, text: &str, document: &Value) -> Result<(), TableError> {
        let whole = document.get("nvbandwidth").unwrap_or(&Value::Null);
        let version = whole.get("git_version").or_else(|| whole.get("version")).and_then(Value::as_str);
        self.collector.imported.version = version.map(str::to_owned);
        for device in whole.get("GPU Device list").and_then(Value::as_array).into_iter().flatten() {
            device.as_str().map(|text| self.device(text));
        }
        let lines = lines_of_key(text, "name");
        let cases = whole.get("testcases").and_then(Value::as_array);
        for (place, case) in cases.into_iter().flatten().enumerate() {
            let line = lines.get(place).copied().unwrap_or(1);
            let text_of = |key: &str| case.get(key).and_then(Value::as_str).unwrap_or_default();
            let name = text_of("name");
            let kind = match test(name) {
                Ok(kind) => kind,
                Err(because) => {
                    self.collector.leave_out(line, format!("{name}: {because}"));
                    continue;
                }
            };
            if text_of("status") != "Passed" {
                self.collector.leave_out(line, format!("{name}: its status is '{}'", text_of("status")));
                continue;
            }
            let is_time = match text_of("bandwidth_description") {
                description if description.ends_with("(GB/s)") => false,
                description if description.ends_with("(ns)") => true,
                _ => {
                    let message = format!("{name}: the unit of bandwidth_description is neither (GB/s) nor (ns)");
                    return Err(self.collector.wrong(line, message));
                }
            };
            let rows = case.get("bandwidth_matrix").and_then(Value::as_array).into_iter().flatten();
            for (row, cells) in rows.enumerate() {
                for (column, cell) in cells.as_array().into_iter().flatten().enumerate() {
                    let value = cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
                    let (row, column) = (row.to_string(), column.to_string());
                    self.add(line, name, kind, (&row, &column), &value, is_time)?;
                }
            }
        }
        Ok(())
    }
}
