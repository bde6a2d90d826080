//! JSON output of fio (`--output-format=json`), for a drive on PCIe.
//!
//! Source: axboe/fio, HOWTO.rst and stat.c.

use super::reader::{Reader, json, lines_of_key};
use super::rows::{Table, TableError};
use lanemark_units::parse_size;
use serde_json::Value;

const LOOKED_FOR: &str = "a JSON document of fio (--output-format=json) with jobs of rw=read or rw=write";

/// Note for all figures of fio.
const MEDIA: &str = "a figure of fio is at most the rate of the drive's media: leave out sizes at which more depth brings more, or nothing brings more";

/// Engines that wait for each request.
const WAITING: [&str; 5] = ["psync", "sync", "pvsync", "pvsync2", "vsync"];

/// Engines that keep `iodepth` requests outstanding.
const QUEUEING: [&str; 4] = ["libaio", "io_uring", "io_uring_cmd", "posixaio"];

/// Bytes of a request without `bs`.
const USUAL_BYTES: u64 = 4096;

/// Reads the output of fio.
///
/// # Errors
/// [`TableError`] for invalid JSON, an invalid figure, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Table, TableError> {
    let mut reader = Reader::new(file);
    let Some((before, document)) = json(text) else {
        return reader.finish(LOOKED_FOR);
    };
    for _ in 0..before {
        reader.skip();
    }
    let document = document.map_err(|(line, message)| reader.wrong(line, message))?;
    let lines = lines_of_key(text, "jobname");
    let jobs = document.get("jobs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (place, job) in jobs.iter().enumerate() {
        let line = lines.get(place).copied().unwrap_or(1);
        let group = job.get("groupid");
        let is_concurrent = jobs
            .iter()
            .enumerate()
            .any(|(other, job)| other != place && group.is_some() && job.get("groupid") == group);
        let job = Job { job, shared: document.get("global options") };
        if is_concurrent {
            reader.refuse(line, "several jobs of this group run at once: use stonewall, or group_reporting");
            continue;
        }
        match job.figure() {
            Ok(Some(Figure { question, bytes, rate, outstanding })) => {
                if outstanding == Some(1) {
                    reader.waited(line, question, bytes, rate);
                } else {
                    reader.rate(line, question, bytes, rate, outstanding)?;
                }
                reader.note(MEDIA);
            }
            Ok(None) => {
                return Err(
                    reader.wrong(line, "the job has no bw_bytes above 0 for its direction: is the file complete?")
                );
            }
            Err(because) => reader.refuse(line, because),
        }
    }
    reader.finish(LOOKED_FOR)
}

struct Figure {
    question: &'static str,
    bytes: u64,
    rate: f64,
    outstanding: Option<u32>,
}

struct Job<'a> {
    job: &'a Value,
    shared: Option<&'a Value>,
}

impl Job<'_> {
    /// An option of the job, or of all jobs.
    fn option(&self, name: &str) -> Option<&str> {
        let own = self.job.get("job options").and_then(|options| options.get(name));
        own.or_else(|| self.shared?.get(name)).and_then(Value::as_str)
    }

    fn count(&self, name: &str) -> Result<u32, String> {
        let text = self.option(name).unwrap_or("1");
        text.parse().ok().filter(|count| *count > 0).ok_or_else(|| format!("{name} is '{text}', not a count"))
    }

    /// The figure; `None` if it is missing or 0; an error if no question has it.
    fn figure(&self) -> Result<Option<Figure>, String> {
        let order = self.option("rw").or_else(|| self.option("readwrite")).unwrap_or("read");
        let direction = match order {
            "read" | "randread" => "read",
            "write" | "randwrite" => "write",
            _ => return Err(format!("rw is {order}: only reads alone or writes alone are one question")),
        };
        let engine = self.option("ioengine").unwrap_or("psync");
        if self.option("direct") != Some("1") && engine != "io_uring_cmd" {
            return Err("direct=1 is missing: the page cache decides which transfers the drive makes".to_owned());
        }
        let depth = match engine {
            engine if WAITING.contains(&engine) => 1,
            engine if QUEUEING.contains(&engine) => self.count("iodepth")?,
            _ => {
                return Err(format!("ioengine {engine} is not one of {}, {}", WAITING.join(", "), QUEUEING.join(", ")));
            }
        };
        let outstanding = depth.saturating_mul(self.count("numjobs")?);
        let size = self.option("bs").or_else(|| self.option("blocksize"));
        let bytes = size.map_or(Ok(USUAL_BYTES), parse_size).map_err(|error| format!("bs: {error}"))?;
        let figures = self.job.get(direction);
        let number = |name: &str| figures.and_then(|figures| figures.get(name)).and_then(Value::as_f64);
        // A job that ended early, or with several sizes, has another mean size.
        if let (Some(total), Some(requests)) = (number("io_bytes"), number("total_ios"))
            && (total - requests * bytes as f64).abs() > 0.001 * total
        {
            return Err(format!("bs is {bytes} B, but io_bytes over total_ios is another size: is bs one value?"));
        }
        let Some(rate) = number("bw_bytes").filter(|rate| *rate > 0.0) else { return Ok(None) };
        if direction == "read" {
            if outstanding == 1 {
                return Err("one read at a time: its time is that of the media, and no question has a write by the card that is waited for".to_owned());
            }
            return Ok(Some(Figure { question: "dma_write_bandwidth", bytes, rate, outstanding: None }));
        }
        Ok(Some(Figure { question: "dma_read_bandwidth", bytes, rate, outstanding: Some(outstanding) }))
    }
}
