//! Output of perftest: `ib_write_bw` and `ib_read_bw`.
//!
//! Source: linux-rdma/perftest, `README`, `src/perftest_parameters.c` and `src/perftest_parameters.h`: a MB is 2^20 bytes, a
//! Gb 10^9 bits, Mpps are 10^6 messages per second.

use super::reader::{Reader, agree, positive};
use super::rows::{Table, TableError};

const LOOKED_FOR: &str =
    "a title such as 'RDMA_Write BW Test' and the table '#bytes #iterations BW peak BW average MsgRate' of perftest";

/// Notes for all figures of perftest.
const NETWORK: &str = "a figure of perftest is at most the rate of the network and of the other host: leave out sizes at which one of these is the limit";

/// Largest difference between bandwidth and message rate of a line.
const SAME: f64 = 0.01;

/// Test of perftest that the title of a table names.
#[derive(Clone, Copy)]
struct Test {
    question: Result<&'static str, &'static str>,
    /// Whether the local card reads the data from host memory.
    reads: bool,
}

/// The test that a title names; `None` for another line.
fn test(title: &str) -> Option<Test> {
    let words: Vec<&str> = title.split_whitespace().collect();
    let (first, rest) = match words.as_slice() {
        [first, rest @ .., "Test"] => (*first, rest),
        _ => return None,
    };
    let (is_bandwidth, is_both) = (rest.contains(&"BW"), rest.contains(&"Bidirectional"));
    let question = match first {
        "RDMA_Write" | "RDMA_Read" | "Send" | "Atomic" | "RawEth" if rest.contains(&"Latency") => {
            Err("a latency of perftest contains the network, both hosts and their programs; no DMA question has it")
        }
        _ if !is_bandwidth => return None,
        "RDMA_Write" | "RDMA_Read" if is_both => Ok("dma_read_write_mix"),
        "RDMA_Write" => Ok("dma_read_bandwidth"),
        "RDMA_Read" => Ok("dma_write_bandwidth"),
        "Send" | "Atomic" | "RawEth" => {
            Err("sends, atomics and raw Ethernet name no direction here: use ib_write_bw and ib_read_bw")
        }
        _ => return None,
    };
    Some(Test { question, reads: first == "RDMA_Write" })
}

/// Value of a setting, such as `TX depth : 128`; `None` if the line does not have it.
fn setting(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.split_once(name)?;
    let value = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    value[..end].parse().ok()
}

/// Bytes per second of one unit of the column of averages.
fn unit(header: &str) -> Option<f64> {
    let (_, rest) = header.split_once("BW average[")?;
    let (unit, _) = rest.split_once(']')?;
    match unit {
        "MB/sec" | "MiB/sec" => Some(1_048_576.0),
        "Gb/sec" => Some(1e9 / 8.0),
        _ => None,
    }
}

/// Settings of a test that decide which figures can be used.
struct Settings {
    depth: Option<u64>,
    pairs: Option<u64>,
    inline_bytes: u64,
}

/// Reads the output of perftest.
///
/// # Errors
/// [`TableError`] for an invalid line of a table, an unknown unit, a table without a title, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Table, TableError> {
    let mut reader = Reader::new(file);
    let none = || Settings { depth: None, pairs: None, inline_bytes: 0 };
    let (mut now, mut settings) = (None, none());
    // Bytes per second of one unit, inside a table.
    let mut table: Option<f64> = None;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.starts_with("---") {
            table = None;
            reader.skip();
        } else if let Some(found) = test(text) {
            (now, settings, table) = (Some(found), none(), None);
        } else if text.starts_with("#bytes") {
            let Some(measured) = now else {
                return Err(reader.wrong(
                    line,
                    "the table has no title such as 'RDMA_Write BW Test' above it: keep the whole output",
                ));
            };
            if let Err(because) = measured.question {
                reader.refuse(line, because);
                table = None;
            } else if (settings.depth, settings.pairs.unwrap_or(1)) == (Some(1), 1) {
                reader.refuse(line, "TX depth is 1: each message waits for the network; use the default depth");
                table = None;
            } else {
                let wrong = "the unit of 'BW average' is not MB/sec, MiB/sec or Gb/sec (--report_gbits)";
                table = Some(unit(text).ok_or_else(|| reader.wrong(line, wrong))?);
            }
        } else if let (Some(unit), Some(measured), true) = (table, now, text.starts_with(|c: char| c.is_ascii_digit()))
        {
            row(&mut reader, line, text, unit, measured, &settings)?;
        } else {
            settings.depth = setting(text, "TX depth").or(settings.depth);
            settings.pairs = setting(text, "Number of qps").or(settings.pairs);
            settings.inline_bytes = setting(text, "Max inline data").unwrap_or(settings.inline_bytes);
            reader.skip();
        }
    }
    reader.finish(LOOKED_FOR)
}

fn row(
    reader: &mut Reader,
    line: usize,
    text: &str,
    unit: f64,
    of: Test,
    settings: &Settings,
) -> Result<(), TableError> {
    let cells: Vec<&str> = text.split_whitespace().collect();
    let [bytes, _, _, average, rate, ..] = cells[..] else {
        let message = format!("{} columns instead of 5: is the file complete?", cells.len());
        return Err(reader.wrong(line, message));
    };
    let bytes: u64 = bytes.parse().map_err(|_| reader.wrong(line, format!("'{bytes}' is not a number of bytes")))?;
    let number = |text: &str, name: &str| {
        positive(text).ok_or_else(|| reader.wrong(line, format!("'{text}' is not a {name} above 0")))
    };
    let (average, rate) = (number(average, "BW average")? * unit, number(rate, "MsgRate")?);
    // The message rate is printed with six digits behind the point.
    let by_rate = rate * 1e6 * bytes as f64;
    let is_rounded = (average - by_rate).abs() <= bytes as f64;
    if !agree(average, by_rate, SAME) && !is_rounded {
        let message = format!(
            "BW average is {:.4} GB/s, but MsgRate and size are {:.4} GB/s: is the line unchanged?",
            average / 1e9,
            by_rate / 1e9
        );
        return Err(reader.wrong(line, message));
    }
    if of.reads && bytes <= settings.inline_bytes {
        reader.refuse(line, format!("{bytes} B are inline: the core writes the data, and the card reads none"));
        return Ok(());
    }
    reader.note(NETWORK);
    match of.question {
        Ok(question) => reader.rate(line, question, bytes, average, None),
        Err(_) => Ok(()),
    }
}
