//! Output of `dd` on a device of the XDMA driver, with the command line above each result.
//!
//! Source: GNU coreutils, dd.c and the manual of `dd`; names of devices: `Xilinx/dma_ip_drivers`, XDMA.

use super::command::words;
use super::reader::{Reader, agree, positive};
use super::rows::{Table, TableError};

const LOOKED_FOR: &str = "a command such as 'dd if=/dev/xdma0_c2h_0 of=/dev/null bs=1M count=1024' and its line '... bytes ... copied, 0.5 s, 2.1 GB/s'";

/// Note for transfers to the card.
const SOURCE: &str = "the time of dd contains reading its input: dma_to_device measures the transfer alone";

/// Bytes of a block without `bs`.
const USUAL_BYTES: u64 = 512;

/// Largest difference between the printed rate, which has two digits, and bytes over seconds.
const SAME: f64 = 0.06;

/// A `dd` command.
struct Command {
    line: usize,
    question: Result<&'static str, String>,
    bytes: u64,
    /// Whether all blocks were complete.
    is_whole: bool,
}

/// Reads the output of `dd`.
///
/// # Errors
/// [`TableError`] for a result without a command, an invalid command or result, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Table, TableError> {
    let mut reader = Reader::new(file);
    let mut command: Option<Command> = None;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        let given = words(text, "dd").filter(|words| words.iter().any(|word| word.contains('=')));
        if let Some(words) = given {
            command = Some(parsed(line, &words).map_err(|message| reader.wrong(line, message))?);
        } else if text.contains(" copied, ") {
            let Some(command) = command.take() else {
                let message = "no dd command above this result: its size and direction are unknown; write the command above it, or run with 'set -x'";
                return Err(reader.wrong(line, message));
            };
            let rate = rate(text).map_err(|message| reader.wrong(line, message))?;
            add(&mut reader, line, command, rate);
        } else {
            if let (Some(command), Some((blocks, _))) = (&mut command, text.split_once(" records ")) {
                command.is_whole &= blocks.ends_with("+0");
            }
            reader.skip();
        }
    }
    if let Some(command) = command {
        reader.refuse(command.line, "the command has no result '... copied, ...' below it");
    }
    reader.finish(LOOKED_FOR)
}

fn add(reader: &mut Reader, line: usize, command: Command, rate: f64) {
    let question = match command.question {
        Ok(_) if !command.is_whole => Err("some records are partial: transfers were shorter than bs".to_owned()),
        question => question,
    };
    match question {
        Err(because) => reader.refuse(line, because),
        Ok(question) => {
            let is_read = question == "dma_read_bandwidth";
            reader.waited(line, question, command.bytes, rate);
            if is_read {
                reader.note(SOURCE);
            }
        }
    }
}

/// The command with these operands.
fn parsed(line: usize, words: &[&str]) -> Result<Command, String> {
    let operand = |name: &str| words.iter().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let (from, to) = (operand("if").unwrap_or_default(), operand("of").unwrap_or_default());
    let question = match (from.contains("_c2h_"), to.contains("_h2c_")) {
        (true, true) => Err("both ends are cards: its time is that of two transfers".to_owned()),
        (true, false) if to == "/dev/null" => Ok("dma_write_bandwidth"),
        (true, false) => Err("of is not /dev/null: the time contains writing the output".to_owned()),
        (false, true) => Ok("dma_read_bandwidth"),
        (false, false) => {
            Err("neither if is a device _c2h_ nor of a device _h2c_ of XDMA: use fio for drives".to_owned())
        }
    };
    let bytes = match (operand("bs"), operand("ibs"), operand("obs")) {
        (Some(text), _, _) => size(text)?,
        (None, None, None) => USUAL_BYTES,
        _ => return Err("ibs and obs are two sizes: use bs".to_owned()),
    };
    Ok(Command { line, question, bytes, is_whole: true })
}

/// A size as `dd` reads it: `64`, `4k`, `1M` (2^20), `1MB` (10^6), `2b` (512 B each).
fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" | "c" | "B" => Some(1),
        "w" => Some(2),
        "b" => Some(512),
        "kB" | "KB" => Some(1000),
        "k" | "K" | "KiB" => Some(1 << 10),
        "MB" => Some(1_000_000),
        "M" | "MiB" => Some(1 << 20),
        "GB" => Some(1_000_000_000),
        "G" | "GiB" => Some(1 << 30),
        _ => None,
    };
    let bytes = number.parse().ok().zip(factor).and_then(|(number, factor): (u64, u64)| number.checked_mul(factor));
    bytes.ok_or_else(|| format!("bs is '{text}': write a number with nothing, k, M, G, kB, MB or GB"))
}

/// Bytes per second of a result: `1073741824 bytes (1.1 GB, 1.0 GiB) copied, 0.5 s, 2.1 GB/s`.
fn rate(text: &str) -> Result<f64, String> {
    let wrong = || {
        format!(
            "'{text}' is not a result of dd in the C locale: '1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.001 s, 1.0 GB/s' (LC_ALL=C)"
        )
    };
    let (bytes, rest) = text.split_once(" bytes").ok_or_else(wrong)?;
    let (_, rest) = rest.split_once(" copied, ").ok_or_else(wrong)?;
    let (seconds, printed) = rest.split_once(" s, ").ok_or_else(wrong)?;
    let (bytes, seconds) = positive(bytes).zip(positive(seconds)).ok_or_else(wrong)?;
    let (number, unit) = printed.split_once(' ').ok_or_else(wrong)?;
    let factor = match unit {
        "bytes/s" | "B/s" => 1.0,
        "kB/s" => 1e3,
        "MB/s" => 1e6,
        "GB/s" => 1e9,
        _ => return Err(wrong()),
    };
    let (rate, printed) = (bytes / seconds, positive(number).ok_or_else(wrong)? * factor);
    if !agree(rate, printed, SAME) {
        return Err(format!("'{text}': bytes over seconds are {:.1} MB/s: is the line unchanged?", rate / 1e6));
    }
    Ok(rate)
}
