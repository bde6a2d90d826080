//! Output of NVIDIA's nvbandwidth: text, or JSON (`-j`).
//!
//! Source: NVIDIA/nvbandwidth, `README.md`, `output.cpp` and `json_output.cpp`.

use super::command::{option, words};
use super::reader::{Reader, json, lines_of_key, positive};
use super::rows::{Table, TableError};
use serde_json::Value;

/// Bytes of a copy without the option `-b`.
const USUAL_BYTES: u64 = 512 << 20;

const LOOKED_FOR: &str =
    "the tests host_to_device_memcpy_ce and device_to_host_memcpy_ce of nvbandwidth, as text or as JSON (-j)";

/// Reads the output of nvbandwidth.
///
/// # Errors
/// [`TableError`] for an invalid figure, several GPUs, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Table, TableError> {
    let mut reader = Reader::new(file);
    match json(text) {
        Some((before, document)) => {
            let document = document.map_err(|(line, message)| reader.wrong(line, message))?;
            let mut bytes = USUAL_BYTES;
            for (line, text) in (1..).zip(text.lines().take(before)) {
                match size(text).map_err(|message| reader.wrong(line, message))? {
                    Some(found) => bytes = found,
                    None => reader.skip(),
                }
            }
            documented(&mut reader, text, &document, bytes)?;
        }
        None => printed(&mut reader, text)?,
    }
    reader.finish(LOOKED_FOR)
}

/// The buffer size that a command line of nvbandwidth names; `None` for another line.
fn size(text: &str) -> Result<Option<u64>, String> {
    let Some(words) = words(text, "nvbandwidth") else { return Ok(None) };
    let Some(mebibytes) = option(&words, "-b", "--bufferSize") else { return Ok(Some(USUAL_BYTES)) };
    let bytes = mebibytes.parse().ok().filter(|count| *count > 0).and_then(|count: u64| count.checked_mul(1 << 20));
    bytes.map(Some).ok_or_else(|| format!("'{mebibytes}' is not a buffer size: -b has a whole number of MiB"))
}

/// The question of a test, or the reason why there is none.
fn asked(test: &str) -> Result<&'static str, &'static str> {
    match test {
        "host_to_device_memcpy_ce" => Ok("dma_read_bandwidth"),
        "device_to_host_memcpy_ce" => Ok("dma_write_bandwidth"),
        "host_to_device_bidirectional_memcpy_ce" | "device_to_host_bidirectional_memcpy_ce" => {
            Err("its figure is one of two directions that run at once, and both is the rate of two")
        }
        test if test.contains("latency") || test.ends_with("_sm") => {
            Err("kernels of the GPU load and store, and not its DMA engine")
        }
        _ => Err("it is not a copy between one GPU and its host"),
    }
}

/// One value of a matrix; `None` for a pair that was not measured.
fn value(text: &str) -> Result<Option<f64>, String> {
    match text {
        "N/A" => Ok(None),
        _ => positive(text).map(Some).ok_or_else(|| format!("'{text}' is not a bandwidth in GB/s")),
    }
}

/// Adds the figure of a test from all values of its matrix.
fn add(reader: &mut Reader, line: usize, question: &str, values: &[f64], bytes: u64) -> Result<(), TableError> {
    match values {
        [] => Ok(()),
        [only] => reader.stream(line, question, bytes, only * 1e9),
        several => {
            let message = format!(
                "{} GPUs, but a platform describes one: run with CUDA_VISIBLE_DEVICES=0 (or another number)",
                several.len()
            );
            Err(reader.wrong(line, message))
        }
    }
}

/// A test whose matrix is being read.
struct Test {
    question: &'static str,
    /// Line of the description with the unit.
    described: Option<usize>,
    values: Vec<f64>,
    columns: usize,
}

fn printed(reader: &mut Reader, text: &str) -> Result<(), TableError> {
    let mut bytes = USUAL_BYTES;
    let mut open: Option<Test> = None;
    let mut last = 1;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        last = line;
        if let Some(name) = text.strip_prefix("Running ").and_then(|rest| rest.strip_suffix('.')) {
            unfinished(reader, line, open.as_ref())?;
            open = None;
            match asked(name) {
                Ok(question) => open = Some(Test { question, described: None, values: Vec::new(), columns: 0 }),
                Err(because) => reader.refuse(line, format!("{name}: {because}")),
            }
            continue;
        }
        if let Some(found) = size(text).map_err(|message| reader.wrong(line, message))? {
            bytes = found;
            continue;
        }
        let Some(now) = &mut open else {
            reader.skip();
            continue;
        };
        let cells: Vec<&str> = text.split_whitespace().collect();
        match (now.described, cells.as_slice()) {
            (None, _) if text.contains("bandwidth") => {
                if !text.contains("(GB/s)") {
                    return Err(reader.wrong(line, format!("the unit of '{text}' is not (GB/s)")));
                }
                now.described = Some(line);
            }
            (None, [first, ..]) if first.starts_with("Waived") || first.starts_with("ERROR") => {
                reader.refuse(line, format!("the test did not run: {text}"));
                open = None;
            }
            (None, _) => reader.skip(),
            (Some(_), []) if now.values.is_empty() => reader.skip(),
            (Some(described), [] | ["SUM", ..]) => {
                let Test { question, values, .. } = &*now;
                add(reader, described, question, values, bytes)?;
                open = None;
            }
            (Some(_), numbers) if now.columns == 0 => {
                if !numbers.iter().all(|number| number.parse::<u32>().is_ok()) {
                    return Err(reader.wrong(line, format!("'{text}' is not the line with the numbers of the GPUs")));
                }
                now.columns = numbers.len();
            }
            (Some(_), [_, values @ ..]) => {
                if values.len() != now.columns {
                    let message = format!("{} values instead of {}: is the file complete?", values.len(), now.columns);
                    return Err(reader.wrong(line, message));
                }
                for text in values {
                    let value = value(text).map_err(|message| reader.wrong(line, message))?;
                    now.values.extend(value);
                }
            }
        }
    }
    unfinished(reader, last, open.as_ref())
}

/// An error if the matrix of a test has no end.
fn unfinished(reader: &Reader, line: usize, test: Option<&Test>) -> Result<(), TableError> {
    match test {
        Some(_) => {
            Err(reader.wrong(line, "the matrix before this line has no end, an empty line: is the file complete?"))
        }
        None => Ok(()),
    }
}

fn documented(reader: &mut Reader, text: &str, document: &Value, bytes: u64) -> Result<(), TableError> {
    let lines = lines_of_key(text, "name");
    let tests = document.pointer("/nvbandwidth/testcases").and_then(Value::as_array);
    for (place, case) in tests.into_iter().flatten().enumerate() {
        let line = lines.get(place).copied().unwrap_or(1);
        let text_of = |key: &str| case.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = text_of("name");
        let question = match asked(name) {
            Ok(question) => question,
            Err(because) => {
                reader.refuse(line, format!("{name}: {because}"));
                continue;
            }
        };
        if text_of("status") != "Passed" {
            reader.refuse(line, format!("{name}: its status is '{}', not 'Passed'", text_of("status")));
            continue;
        }
        if !text_of("bandwidth_description").contains("(GB/s)") {
            let message = format!("{name}: the unit of bandwidth_description is not (GB/s)");
            return Err(reader.wrong(line, message));
        }
        let rows = case.get("bandwidth_matrix").and_then(Value::as_array).into_iter().flatten();
        let cells: Vec<&Value> = rows.filter_map(Value::as_array).flatten().collect();
        if cells.is_empty() {
            return Err(reader.wrong(line, format!("{name} has no bandwidth_matrix: is the file complete?")));
        }
        let mut values = Vec::new();
        for cell in cells {
            let text = cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
            values.extend(value(&text).map_err(|message| reader.wrong(line, format!("{name}: {message}")))?);
        }
        add(reader, line, question, &values, bytes)?;
    }
    Ok(())
}
