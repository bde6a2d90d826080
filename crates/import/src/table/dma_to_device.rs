//! Output of `dma_to_device` and `dma_from_device`, the tools of the XDMA driver.
//!
//! Source: `Xilinx/dma_ip_drivers`, `XDMA/linux-kernel/tools/dma_to_device.c` and `dma_from_device.c`. They print the bytes of
//! one transfer and their rate: 1000 times bytes over nanoseconds, which is in MB/s, without the unit. The rate counts the bytes that
//! were asked for, also if the driver moved fewer.

use super::command::{option, words};
use super::reader::{Reader, agree, positive};
use super::rows::{Table, TableError};

const LOOKED_FOR: &str =
    "lines such as '/dev/xdma0_h2c_0 ** Average BW = 1048576, 3021.500000' of dma_to_device and dma_from_device";

/// Largest difference between a printed rate and bytes over the printed time.
const SAME: f64 = 0.01;

/// Reads the output of the tools.
///
/// # Errors
/// [`TableError`] for a line without a device, an invalid figure, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Table, TableError> {
    let mut reader = Reader::new(file);
    // The device of the last command line.
    let mut device: Option<String> = None;
    // Bytes, and bytes per second by the time that is printed with -v, of the last such line.
    let mut timed: Option<(u64, f64)> = None;
    // The line of a transfer that was short or has failed, since the last command line or rate.
    let mut incomplete: Option<usize> = None;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        let command = words(text, "dma_to_device").or_else(|| words(text, "dma_from_device"));
        if let Some(words) = command {
            device = option(&words, "-d", "--device").map(str::to_owned);
            (timed, incomplete) = (None, None);
        } else if is_incomplete(text) {
            incomplete = incomplete.or(Some(line));
            reader.skip();
        } else if let Some((_, rest)) = text.split_once("** Avg time device ") {
            let found = by_time(rest);
            let wrong =
                "an invalid line: '** Avg time device DEVICE, total time N nsec, avg_time = N, size = N, BW = N'";
            timed = Some(found.ok_or_else(|| reader.wrong(line, wrong))?);
        } else if let Some((before, rest)) = text.split_once("** Average BW = ") {
            let before = before.trim();
            let device = if before.is_empty() { device.as_deref() } else { Some(before) };
            let question = match device {
                Some(device) if device.contains("_h2c_") => "dma_read_bandwidth",
                Some(device) if device.contains("_c2h_") => "dma_write_bandwidth",
                Some(device) => {
                    reader.refuse(line, format!("{device} is not a device _h2c_ or _c2h_: its direction is unknown"));
                    continue;
                }
                None => {
                    let message = "neither this line nor a command above it names the device: write the command, such as 'dma_to_device -d /dev/xdma0_h2c_0', above it";
                    return Err(reader.wrong(line, message));
                }
            };
            let figure = rest
                .split_once(',')
                .and_then(|(bytes, rate)| Some((bytes.trim().parse::<u64>().ok()?, positive(rate.trim())? * 1e6)));
            let Some((bytes, rate)) = figure else {
                return Err(reader.wrong(line, format!("'{rest}' is not a size in bytes and a rate above 0 in MB/s")));
            };
            if let Some((of, by_time)) = timed.take()
                && (of != bytes || !agree(rate, by_time, SAME))
            {
                let (rate, by_time) = (rate / 1e6, by_time / 1e6);
                let message = format!(
                    "the rate is {rate:.1} MB/s of {bytes} B, but the time above is {by_time:.1} MB/s of {of} B: the tool prints a wrong rate"
                );
                return Err(reader.wrong(line, message));
            }
            if let Some(of) = incomplete.take() {
                reader.refuse(
                    line,
                    format!(
                        "line {of} reports a short or failed transfer, and the rate counts all {bytes} B of each one: see dmesg, and \
                         measure again"
                    ),
                );
                continue;
            }
            reader.waited(line, question, bytes, rate);
        } else {
            reader.skip();
        }
    }
    reader.finish(LOOKED_FOR)
}

/// Whether a line reports a transfer of which the driver moved fewer bytes than it was asked to, or none: `#3: underflow
/// 1000/4096.`, `/dev/xdma0_h2c_0, write underflow 0x3e8/0x1000 @ 0x0.` or `/dev/xdma0_c2h_0, read 0x1000 @ 0x0 failed -1.`
fn is_incomplete(text: &str) -> bool {
    let is_call = ["write 0x", "read 0x"].iter().any(|call| text.contains(call));
    text.contains(" underflow ") || is_call && text.contains(" failed ")
}

/// Bytes, and bytes over the mean time in bytes per second, of a line of `-v`.
fn by_time(text: &str) -> Option<(u64, f64)> {
    let value = |name: &str| {
        let (_, rest) = text.split_once(name)?;
        rest.split(',').next().map(str::trim)
    };
    let (bytes, nanoseconds) = (value("size = ")?.parse().ok()?, positive(value("avg_time = ")?)?);
    Some((bytes, bytes as f64 * 1e9 / nanoseconds))
}
