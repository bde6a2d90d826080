//! The command line, as others script it.

// Doc comments here are help texts, and those are printed with every backtick.
#![allow(clippy::doc_markdown)]

use clap::{Args as Arguments, Parser, Subcommand, ValueEnum};
use lanemark_bench::Cores;
use lanemark_hw::linux_sysfs::Range;
use lanemark_inventory::{Address, CpuSet};
use lanemark_machine::{Access, Fence, Flow};
use lanemark_platform::Fault;
use lanemark_record::recovery::StepKind;
use lanemark_record::{CacheState, Socket};
use lanemark_sim::ConfigWrite;
use lanemark_units::{MemoryType, SizeRange, Ticks, parse_size};
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
    /// Fit parameters of a platform to published figures, a record or a table of figures
    Fit(FitArgs),
    /// What is plugged in, what is wrong with it, and what would mend it; changes nothing
    Doctor(DoctorArgs),
    /// How to bring back a card that no longer works while the machine runs; carries it out on simulated platforms only
    Recover(RecoverArgs),
    /// Show each TLP and each wait of one case on a simulated platform, or read a capture of TLPs
    Trace(TraceArgs),
    /// The configuration space of a simulated platform, as lspci -xxxx prints that of a machine
    Lspci(LspciArgs),
    /// Render a record
    Report(ReportArgs),
    /// Say what became faster or slower from one record to another
    Compare(CompareArgs),
    /// List the built-in platforms
    Platforms,
    /// List the questions
    Questions,
    /// Print the kernels that devices behind runtimes are given to launch, in OpenCL C, for boards that have no compiler
    Kernels,
    /// Print the JSON Schema of a file format
    Schema(SchemaArgs),
}

#[derive(Debug, Arguments)]
pub struct BenchArgs {
    /// Whom to ask: a built-in platform, a platform file, 'host', the address of a card, such as 0000:01:00.0, or a device behind a runtime,
    /// such as opencl:0 or sycl:0 [default: card-gen5-x16 and host]
    #[arg(long = "on", value_name = "TARGET")]
    pub on: Vec<String>,
    /// What to ask; may be given several times [default: what 'lanemark questions' does not mark]
    #[arg(long = "question", value_name = "NAME", value_delimiter = ',')]
    pub questions: Vec<String>,
    #[command(flatten)]
    pub axes: AxisArgs,
    /// Change a key of the simulated platforms for this run, such as link.mps_bytes=256 or link.skp=true; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, value_delimiter = ',')]
    pub with: Vec<(String, String)>,
    /// Let something go wrong on the simulated platforms: KIND@PORT, KIND@PORT:N (at the Nth TLP), KIND@PORT:TIMEns; kinds are
    /// unsupported_request, completer_abort, poisoned, ecrc, no_completion, credit_starvation, link_down (:TIMEns+TIMEns comes back), surprise_removal, unpinnable, and at ports of the root,
    /// behind which an IOMMU is, unmapped, read_only and stuck_invalidation; may be given several times
    #[arg(long, value_name = "FAULT", value_delimiter = ',')]
    pub fault: Vec<Fault>,
    /// Write to a register of a simulated port first: BDF+CAP_EXP+8.w=VALUE:MASK or BDF+ECAP_ACS+6.w=VALUE:MASK, hexadecimal;
    /// 'lanemark lspci' lists the
    /// ports; may be given several times
    #[arg(long, value_name = "WRITE", value_delimiter = ',')]
    pub setpci: Vec<ConfigWrite>,
    /// Passes of a sample of a simulated platform [default: the question's own]; the answer says what of it was skipped as a
    /// steady state
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub iterations: Option<u64>,
    /// Simulate every transfer, and skip no steady state: the same answers, later
    #[arg(long)]
    pub no_fast_forward: bool,
    /// Kernels for devices behind runtimes whose boards have no compiler: what their vendor's compiler made of what 'lanemark kernels' prints
    #[arg(long, value_name = "FILE")]
    pub kernels: Option<PathBuf>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write the record to a file
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Write the answers to a CSV file: a row an answer, every parameter and figure a column
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the report to this file [default: report.html, unless --json is given]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub card: CardArgs,
}

/// Which cases of a question.
#[derive(Debug, Arguments)]
pub struct AxisArgs {
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
    /// Distances of the first byte from a 64 B boundary; for what devices move, from a page
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = alignment)]
    pub align: Vec<u64>,
    /// The region to touch, by its name in the platform
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Who moves bytes where, all at once: 0:host,host:1,0:1 (card 0 to card 1), ...
    #[arg(long, value_name = "FLOWS", value_delimiter = ',')]
    pub flows: Vec<Flow>,
    /// Bytes at the other end that each flow of devices goes over [default: 4MiB, or one transfer if that is more]
    #[arg(long, value_name = "SIZE", value_parser = window)]
    pub window: Option<u64>,
    /// Transfers of devices begin anywhere in the window, the same places in every run, and not one behind the other
    #[arg(long, conflicts_with = "stride")]
    pub random: bool,
    /// Transfers of devices begin so far apart in the window, if they are shorter, and not at the end of the one before
    #[arg(long, value_name = "SIZE", value_parser = window)]
    pub stride: Option<u64>,
    /// Transfers of a device under way at once, at the most, on each of its channels; one may be several reads [default: as many as
    /// its tags allow]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub outstanding: Option<u32>,
    /// Who wrote the host memory last that transfers of devices find: nobody since it left all caches (cold), a core (host-warm) or a
    /// device (device-warm) [default: a core]
    #[arg(long, value_name = "STATE", value_parser = cache_state)]
    pub cache_state: Option<CacheState>,
    /// Which socket's memory transfers of devices are about: their own (local), or the other one (remote) [default: local]
    #[arg(long, value_name = "SOCKET", value_parser = socket)]
    pub socket: Option<Socket>,
    /// Channels of each card that its transfers are dealt to, one after the other, or that as many threads call its driver on [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub channels: Option<u32>,
    /// The sparse matrix that kernels multiply: a file in Matrix Market format, or poisson:SIDE, random:ROWSxEACH or powerlaw:ROWSxEACH;
    /// may be given several times [default: poisson:256]
    #[arg(long, value_name = "MATRIX", value_delimiter = ',')]
    pub matrix: Vec<String>,
    /// Cores from which kernels are launched, one after the other: 0-3,8 or all [default: twelve, spread evenly]
    #[arg(long, value_name = "CORES", value_parser = cores)]
    pub cores: Option<Cores>,
}

#[derive(Debug, Arguments)]
pub struct TraceArgs {
    /// Whom to trace: a built-in platform or a platform file
    #[arg(long, value_name = "PLATFORM", required_unless_present = "read")]
    pub on: Option<String>,
    /// What to ask; of several cases the first is traced
    #[arg(long, value_name = "NAME", required_unless_present = "read")]
    pub question: Option<String>,
    #[command(flatten)]
    pub axes: AxisArgs,
    /// Change a key of the platform for this run, such as link.mps_bytes=256 or link.skp=true; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, value_delimiter = ',')]
    pub with: Vec<(String, String)>,
    /// Let something go wrong on the simulated platforms: KIND@PORT, KIND@PORT:N (at the Nth TLP), KIND@PORT:TIMEns; kinds are
    /// unsupported_request, completer_abort, poisoned, ecrc, no_completion, credit_starvation, link_down (:TIMEns+TIMEns comes back), surprise_removal, unpinnable, and at ports of the root,
    /// behind which an IOMMU is, unmapped, read_only and stuck_invalidation; may be given several times
    #[arg(long, value_name = "FAULT", value_delimiter = ',')]
    pub fault: Vec<Fault>,
    /// Passes of the case; of devices' transfers, how many transfers [default: as many as move 4KiB, 8 at most]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub iterations: Option<u64>,
    /// The link whose TLPs to show, by the slot or switch below it [default: all; for .pcapng that of the card asked]
    #[arg(long, value_name = "NAME")]
    pub link: Option<String>,
    /// Show DLLPs too: acknowledgments and credits, when each goes; not for .pcapng
    #[arg(long)]
    pub dllps: bool,
    /// Write to this file: .pcapng (TLPs of one link), .json (for Perfetto and Chrome), .txt
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print this capture, and how long its requests took, and trace nothing
    #[arg(long, value_name = "FILE.pcapng",
        conflicts_with_all = ["on", "question", "iterations", "link", "output", "sizes", "memory_type", "access", "fence", "align",
            "region", "flows", "window", "random", "stride", "outstanding", "cache_state", "socket", "channels", "with", "fault", "dllps"])]
    pub read: Option<PathBuf>,
}

/// How real targets are sampled.
#[derive(Debug, Arguments)]
#[command(next_help_heading = "Samples of real targets")]
pub struct SamplingArgs {
    /// The longest that one question should take of one target; every variant gets one round at the least [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub budget: Option<Ticks>,
    /// How wide the 95 % interval of a median should be at most, in percent of the median [default: 2]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub interval: Option<f64>,
    /// Ask `many_small_few_large` for all of its copies, 8 GB a run, instead of a hundredth of them
    #[arg(long)]
    pub full: bool,
    /// Write every raw sample to a Parquet file
    #[arg(long, value_name = "FILE.parquet")]
    pub samples: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Ticks, String> {
    let wrong = || "a number of seconds from 0 to 86400, a day, is needed".to_owned();
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    Ticks::from_ns(seconds.ok_or_else(wrong)? * 1e9).map_err(|_| wrong())
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("a percentage is needed, such as 5 or 2.5%".to_owned()),
    }
}

#[derive(Debug, Arguments)]
pub struct CompareArgs {
    /// The record from before
    #[arg(value_name = "RECORD")]
    pub first: PathBuf,
    /// The record from after
    #[arg(value_name = "RECORD")]
    pub second: PathBuf,
    /// Exit with 1 if the 95 % interval of any answer lies above this increase in time, or if an answer is missing
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_above: Option<f64>,
    /// With --fail-above: exit with 1 too where an answer cannot be judged (too few samples, times that are not positive)
    #[arg(long, requires = "fail_above")]
    pub strict: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Arguments)]
#[command(next_help_heading = "Options for a card")]
#[allow(clippy::struct_excessive_bools)] // Each is an option of its own.
pub struct CardArgs {
    /// What may be touched: BAR:FROM..TO, or with :storage, :registers, :registers:write, :registers:write-only; may be
    /// given several times [default kind: storage in a prefetchable BAR, else registers, which are loaded only]
    #[arg(long = "bar", value_name = "RANGE")]
    pub bars: Vec<Range>,
    /// Print every range, mapping and access that would happen, and touch nothing
    #[arg(long, conflicts_with_all = ["json", "record", "html"])]
    pub dry_run: bool,
    /// Go on although a driver is bound to the device
    #[arg(long)]
    pub i_own_this_device: bool,
    /// Turn memory decoding on where it is off; it stays on
    #[arg(long)]
    pub enable: bool,
    /// Mark the record as made in an emulator, which is also found out
    #[arg(long)]
    pub emulated: bool,
    /// A folder that stands for the root of the file system, for tests
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub system_root: Option<PathBuf>,
}

impl CardArgs {
    /// An option that was given and is about a card, if there is one.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (!self.bars.is_empty(), "--bar"),
            (self.dry_run, "--dry-run"),
            (self.i_own_this_device, "--i-own-this-device"),
            (self.enable, "--enable"),
            (self.emulated, "--emulated"),
            (self.system_root.is_some(), "--system-root"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }
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

/// Bytes of a page, as devices' requests are cut at.
const PAGE: u64 = 4096;

fn window(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err("a window of 0 bytes has no place for a transfer".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

fn cache_state(text: &str) -> Result<CacheState, String> {
    let known = || format!("it is one of {}", CacheState::ALL.map(CacheState::name).join(", "));
    CacheState::ALL.into_iter().find(|found| found.name() == text).ok_or_else(known)
}

/// Cores as the system writes them, or all.
fn cores(text: &str) -> Result<Cores, String> {
    if text == "all" {
        return Ok(Cores::All);
    }
    let set: CpuSet = text.parse().map_err(|error| format!("{error}; or say all"))?;
    if set.is_empty() { Err("no core is named".to_owned()) } else { Ok(Cores::These(set.iter().collect())) }
}

fn socket(text: &str) -> Result<Socket, String> {
    let known = || format!("it is one of {}", Socket::ALL.map(Socket::name).join(", "));
    Socket::ALL.into_iter().find(|socket| socket.name() == text).ok_or_else(known)
}

fn alignment(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(bytes) if bytes < PAGE => Ok(bytes),
        Ok(bytes) => {
            Err(format!("{bytes} is not below {PAGE}: it is the distance from a boundary, of a page at the most"))
        }
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
    /// Write tables and pictures to this file too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Debug, Arguments)]
pub struct FitArgs {
    /// Papers whose parameters to fit again, or records, or tables (.csv) of DMA figures, to fit a platform's parameters to
    #[arg(value_name = "PAPER|RECORD|TABLE", required = true)]
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
    /// For unknown numbers of a platform file: take this value and do not fit it; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = assumption, conflicts_with = "parameters")]
    pub assume: Vec<(String, f64)>,
    /// For unknown numbers: assume as many of those that the record leaves open as it takes to fit the others
    #[arg(long, conflicts_with = "parameters")]
    pub assume_rest: bool,
    /// For unknown numbers: write the platform file, filled in
    #[arg(long, value_name = "FILE", conflicts_with = "parameters")]
    pub write: Option<PathBuf>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
}

/// `link.mps_bytes=256`, `memory.size_bytes=64MiB`, `link.skp=true`
fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as link.mps_bytes=256")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// `region.sram.read_ns=200`
fn assumption(text: &str) -> Result<(String, f64), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as link.latency_ns=150")?;
    let value = value.trim().parse().map_err(|_| format!("'{value}' is no number"))?;
    Ok((key.trim().to_owned(), value))
}

#[derive(Debug, Arguments)]
pub struct DoctorArgs {
    /// Look at a file or folder instead of this machine: lspci -xxxx or -vvv, a tar or copy of /sys
    #[arg(long, value_name = "FILE|DIR")]
    pub from: Option<PathBuf>,
    /// Print one JSON document with every field of every capability
    #[arg(long)]
    pub json: bool,
    /// Print a platform file for the card at this address, its latencies unknown
    #[arg(long, value_name = "BDF",
        conflicts_with_all = ["json", "fail_on_finding", "round_trip", "cpus", "earlier"])]
    pub as_platform: Option<Address>,
    /// Write the platform file here instead of printing it
    #[arg(long, value_name = "FILE", requires = "as_platform")]
    pub output: Option<PathBuf>,
    /// How long a device's read of host memory takes [default: 1000, assumed]
    #[arg(long, value_name = "NS", value_parser = round_trip)]
    pub round_trip: Option<f64>,
    /// The processors that will talk to cards, such as 0-3,8: are the cards on their socket?
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuSet>,
    /// The same machine some time before: errors that have grown since are told from old ones
    #[arg(long, value_name = "FILE|DIR")]
    pub earlier: Option<PathBuf>,
    /// Exit with 1 if there is a finding of this severity or worse [default if given: costly]
    #[arg(long, value_name = "SEVERITY", num_args = 0..=1, require_equals = true, default_missing_value = "costly")]
    pub fail_on_finding: Option<AtLeast>,
}

fn round_trip(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ns) if (1.0..=1e9).contains(&ns) => Ok(ns),
        _ => Err(format!("'{text}' is no number of nanoseconds from 1 to 1e9")),
    }
}

/// How bad a finding must be to count.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum AtLeast {
    /// Something fails or is lost
    Broken,
    /// Bandwidth or latency is lost
    Costly,
    /// It may cost something under some loads
    Minor,
    /// Anything
    Hint,
}

#[derive(Debug, Arguments)]
pub struct RecoverArgs {
    /// The card, by the address of one of its functions, such as 0000:01:00.0; with --on also by its name
    #[arg(value_name = "BDF")]
    pub card: String,
    /// Print the steps and their commands, and run none
    #[arg(long)]
    pub dry_run: bool,
    /// Look at a file or folder instead of this machine: lspci -xxxx or -vvv, a tar or copy of /sys
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["on", "without", "with", "fault"])]
    pub from: Option<PathBuf>,
    /// Carry the steps out on a simulated card: a built-in platform or a platform file
    #[arg(long, value_name = "PLATFORM")]
    pub on: Option<String>,
    /// The command of the vendor's tool that programs the card; Lanemark does not run it
    #[arg(long, value_name = "COMMAND")]
    pub program: Option<String>,
    /// How often the card is programmed
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub times: u32,
    /// Leave a step out, to see what it is for; may be given several times
    #[arg(long, value_name = "STEP", value_delimiter = ',', requires = "on", conflicts_with = "dry_run")]
    pub without: Vec<LeftOut>,
    /// Change a key of the simulated platform, such as link.mps_bytes=256; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, value_delimiter = ',', requires = "on")]
    pub with: Vec<(String, String)>,
    /// What is wrong with the simulated card, such as no_completion@card or surprise_removal@card; may be given several times
    #[arg(long, value_name = "FAULT", value_delimiter = ',', requires = "on")]
    pub fault: Vec<Fault>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// A step of a recovery that may be left out.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LeftOut {
    /// Card and ports report errors as ever
    Mask,
    /// The system does not forget the card
    Remove,
    /// The card is not programmed
    Program,
    /// The system does not look for the card
    Rescan,
    /// What was set in status registers stays
    Clear,
    /// Masks stay
    Restore,
}

impl LeftOut {
    /// Which it is.
    pub const fn kind(self) -> StepKind {
        match self {
            LeftOut::Mask => StepKind::Mask,
            LeftOut::Remove => StepKind::Remove,
            LeftOut::Program => StepKind::Program,
            LeftOut::Rescan => StepKind::Rescan,
            LeftOut::Clear => StepKind::Clear,
            LeftOut::Restore => StepKind::Restore,
        }
    }
}

#[derive(Debug, Arguments)]
pub struct LspciArgs {
    /// A built-in platform or a platform file
    #[arg(long = "on", value_name = "PLATFORM", default_value = "card-gen5-x16")]
    pub on: String,
    /// Write to a register first: BDF+CAP_EXP+8.w=VALUE:MASK or BDF+ECAP_ACS+6.w=VALUE:MASK, hexadecimal; may be given several times
    #[arg(long, value_name = "WRITE", value_delimiter = ',')]
    pub setpci: Vec<ConfigWrite>,
    /// Write it to this file instead of printing it; 'lspci -F' and 'lanemark doctor --from' read such files
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
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
    #[arg(value_name = "platform|record|doctor")]
    pub format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    /// Platform files
    Platform,
    /// Records
    Record,
    /// What `doctor --json` prints
    Doctor,
}
