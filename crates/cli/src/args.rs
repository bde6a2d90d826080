//! The command line, as others script it.

// Doc comments here are help texts, and those are printed with every backtick.
#![allow(clippy::doc_markdown)]

use clap::{Args as Arguments, Parser, Subcommand, ValueEnum};
use lanemark_machine::{Access, Fence};
use lanemark_units::{MemoryType, SizeRange, parse_size};
use std::path::PathBuf;

/// How fast does a CPU talk to this card, how far is that from the limit, what did it wait for?
#[derive(Debug, Parser)]
#[command(
    name = "lanemark",
    version,
    after_help = "Exit codes: 0 done, 1 a check failed, 2 usage or bad input, 77 skipped because something is absent, 130 interrupted."
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Ask questions of simulated platforms and of this machine
    Bench(BenchArgs),
    /// Ask the same questions of the formulas only
    Predict(BenchArgs),
    /// Ask published results again and compare
    Reproduce(ReproduceArgs),
    /// Fit parameters of a platform to published figures or to a record
    Fit(FitArgs),
    /// Render a record
    Report(ReportArgs),
    /// List the built-in platforms
    Platforms,
    /// List the questions
    Questions,
    /// Print the JSON Schema of a file format
    Schema(SchemaArgs),
}

#[derive(Debug, Arguments)]
pub struct BenchArgs {
    /// Whom to ask: a built-in platform, a platform file, or 'host' [default: card-gen5-x16 and host]
    #[arg(long = "on", value_name = "TARGET")]
    pub on: Vec<String>,
    /// What to ask; may be given several times [default: what 'lanemark questions' does not mark]
    #[arg(long = "question", value_name = "NAME", value_delimiter = ',')]
    pub questions: Vec<String>,
    /// Sizes of one transfer: 64..4MiB (doubling), 64..4MiB*4, or 64,4KiB
    #[arg(long, value_name = "SIZES")]
    pub sizes: Option<SizeRange>,
    /// Memory types: uc,wc,wt,wp,wb
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub memory_type: Vec<MemoryType>,
    /// Instructions: 4, 64, memcpy, rep_movsb, nt16, movdiri8, movdir64b, ...
    #[arg(long, value_name = "ACCESSES", value_delimiter = ',')]
    pub access: Vec<Access>,
    /// Fences: none,sfence,lfence,mfence,locked,interrupt
    #[arg(long, value_name = "FENCES", value_delimiter = ',', value_parser = fence)]
    pub fence: Vec<MaybeFence>,
    /// Distances of the first byte from a 64 B boundary
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = alignment)]
    pub align: Vec<u64>,
    /// The region to touch, by its name in the platform
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write the record to a file
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Write the report to this file [default: report.html, unless --json is given]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// `none` or a fence.
#[derive(Clone, Copy, Debug)]
pub struct MaybeFence(pub Option<Fence>);

fn fence(text: &str) -> Result<MaybeFence, String> {
    if text == "none" {
        return Ok(MaybeFence(None));
    }
    text.parse()
        .map(|fence| MaybeFence(Some(fence)))
        .map_err(|error: lanemark_machine::UnknownName| format!("{error}, or none"))
}

fn alignment(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(bytes) if bytes < 64 => Ok(bytes),
        Ok(bytes) => Err(format!("{bytes} is not below 64: it is the distance from a 64 B boundary")),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Debug, Arguments)]
pub struct ReproduceArgs {
    /// Which papers [default: all]
    #[arg(value_name = "PAPER")]
    pub papers: Vec<String>,
    /// Ask this machine too, where it can say something to a figure; that counts as no agreement
    #[arg(long)]
    pub host: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Arguments)]
pub struct FitArgs {
    /// Papers whose parameters to fit again, or records to fit a platform's parameters to
    #[arg(value_name = "PAPER|RECORD", required = true)]
    pub papers: Vec<String>,
    /// For records: the platform whose parameters to fit
    #[arg(long, value_name = "PLATFORM")]
    pub on: Option<String>,
    /// For records: a number of the platform, such as root_complex.core_round_trip_ns; may be given several times
    #[arg(long = "parameter", value_name = "KEY")]
    pub parameters: Vec<String>,
    /// For records of several targets: whose answers to fit to
    #[arg(long, value_name = "TARGET")]
    pub of: Option<String>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Arguments)]
pub struct ReportArgs {
    /// The record
    #[arg(value_name = "RECORD")]
    pub record: PathBuf,
    /// Write the report to this file
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub html: PathBuf,
}

#[derive(Debug, Arguments)]
pub struct SchemaArgs {
    /// Which format
    #[arg(value_name = "platform|record")]
    pub format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    /// Platform files
    Platform,
    /// Records
    Record,
}
