//! Command line: every command, option and help text.

// Doc comments in this file are help texts; a backtick in them is printed.
#![allow(clippy::doc_markdown)]

use clap::{Args as Arguments, Parser, Subcommand, ValueEnum};
use lanemark_bench::Cores;
use lanemark_config_space::ConfigWrite;
use lanemark_fit::Tool;
use lanemark_hw::HostPageSize;
use lanemark_hw::linux_sysfs::{Address as FunctionAddress, Range};
use lanemark_hw::linux_vfio::{PeerRange, VfioInterface};
use lanemark_hw::linux_xdma::CardMemory;
use lanemark_hw::{CompletionBy, DataPlace, DataPointers, Destructive, QueuePlace};
use lanemark_import::ImportTool;
use lanemark_inventory::{Address, CpuSet};
use lanemark_machine::{Access, Fence, Flow};
use lanemark_platform::Fault;
use lanemark_record::recovery::StepKind;
use lanemark_record::{CacheState, Socket};
use lanemark_sweep::Settings;
use lanemark_units::{MemoryType, Rate, SizeRange, Ticks, parse_size};
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

/// Measures, models and simulates how a CPU talks to an accelerator over PCIe.
///
/// A question such as "what does a 512 B write to this BAR cost?" is answered by simulation, by measurement of this machine and by a
/// formula. Each answer shows the physical limit and the bottleneck. Start with `lanemark bench`.
#[derive(Debug, Parser)]
#[command(
    name = "lanemark",
    version = env!("LANEMARK_VERSION"),
    after_help = "Exit codes: 0 done, 1 a check failed, 2 usage or bad input, 77 skipped because something is absent, 130 interrupted."
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this machine, a card in it or simulated platforms
    Bench(BenchArgs),
    /// Answer the same questions by closed formulas only
    Predict(BenchArgs),
    /// Find the best methods for a workload, the effect of changes, and whether goals are met
    Advise(AdviseArgs),
    /// Measure many small copies by every method, and write the table from which 'advise copy' and programs choose
    Tune(TuneArgs),
    /// Run many points of platforms, changed keys and questions on all cores; continues after an interruption
    Sweep(SweepArgs),
    /// Reproduce published figures by simulation and formula, and compare
    Reproduce(ReproduceArgs),
    /// Fit parameters of a platform to a record, a table of measured figures or published figures
    Fit(FitArgs),
    /// Read the output of another tool into a record, and compare its figures with the limit of a link
    Import(ImportArgs),
    /// List the PCIe devices of this machine, their problems and the commands that fix them; read-only
    Doctor(DoctorArgs),
    /// Print the steps that recover a hung card without a reboot; runs them on simulated platforms only
    Recover(RecoverArgs),
    /// Bind a PCI function to another driver, such as vfio-pci, until 'lanemark unbind' restores the former one
    Bind(BindArgs),
    /// Restore the driver that a PCI function had before 'lanemark bind', or list the functions that were not restored
    Unbind(UnbindArgs),
    /// Show each TLP and each stall of one transfer on a simulated platform, or print a capture of TLPs
    Trace(TraceArgs),
    /// Test a DMA engine in SystemVerilog with a legal but demanding root complex, or with faults, and check every TLP and byte
    FuzzRtl(FuzzRtlArgs),
    /// Print the configuration space of a simulated platform in the format of lspci -xxxx
    Lspci(LspciArgs),
    /// Write a record, a comparison of several, or the map of a sweep as an HTML page
    Report(ReportArgs),
    /// Compare records: answers that became faster or slower, or the nearest machines of a corpus
    Compare(CompareArgs),
    /// Ask several machines the same questions, and find those that differ
    Fleet(FleetArgs),
    /// List the baselines that 'bench --save-baseline' saved
    Baselines(BaselinesArgs),
    /// List the built-in platforms, hosts and cards
    Platforms(ListArgs),
    /// Write a short platform file that inherits from another one
    New(NewArgs),
    /// Check a platform file, and list its values with their origins; or check records as those of the corpus
    Check(CheckArgs),
    /// List the questions
    Questions(ListArgs),
    /// Print the source of every device kernel in OpenCL C, for offline compilation (boards without a run-time compiler)
    Kernels,
    /// Print the JSON Schema of a file format
    Schema(SchemaArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print a manual page (roff), for `man -l`
    Man(ManArgs),
}

#[derive(Debug, Arguments)]
pub struct ListArgs {
    /// Print one JSON document instead of a list
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Arguments)]
pub struct FuzzRtlArgs {
    /// Design under test: a shared library with the functions of rtl/lanemark_dut.h, built by rtl/build; the command executes its code
    #[arg(value_name = "LIBRARY")]
    pub library: PathBuf,
    /// Device file with the registers that start a transfer and show its end, such as rtl/card.toml
    #[arg(long, value_name = "FILE")]
    pub device: String,
    /// Range of seeds, TO not included; each seed is one run with its own transfers and situations
    #[arg(long, value_name = "FROM..TO", default_value = "0..100", value_parser = seeds)]
    pub seeds: std::ops::Range<u64>,
    /// Also inject faults: completions that are wrong, malformed, poisoned, unexpected, duplicate, late or missing, error statuses,
    /// and function-level resets
    #[arg(long)]
    pub illegal: bool,
    /// Completion timeout of the design in clocks (its input timeout_clocks), 256 to 1048576
    #[arg(long, value_name = "CLOCKS", default_value_t = 2048)]
    pub timeout_clocks: u32,
    /// Watchdog: longest run time of one clock of the design, in seconds; a longer one is the finding 'hang' and ends the command
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    pub hang_after_s: std::num::NonZeroU16,
    /// Number of threads [default: one per core]
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<std::num::NonZeroU8>,
    /// Run one stored case instead of seeds: a .toml file that --output wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "illegal", "timeout_clocks", "threads"])]
    pub replay: Option<PathBuf>,
    /// Write the shortest run of each finding into this folder: seed-N-RULE.toml for --replay, and its TLPs, seed-N-RULE.pcapng
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Arguments)]
pub struct NewArgs {
    /// What the new file inherits from: a built-in platform, a built-in card, a host and a card (xeon-spr+gpu-h100), or a platform
    /// file; see 'lanemark platforms'
    #[arg(long, value_name = "CARD")]
    pub like: String,
    /// Host of a built-in card [default: xeon-spr]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// The file to write; - prints it
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Arguments)]
pub struct CheckArgs {
    /// The platform file, a built-in platform, or a host or a card alone; or a record (.json) or a folder of records
    #[arg(value_name = "PLATFORM")]
    pub platform: String,
    /// List also defaults and inherited values
    #[arg(long)]
    pub all: bool,
    /// Print one JSON document with every value, or with every rule that a record breaks
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Arguments)]
pub struct ManArgs {
    /// Command to describe, such as bench [default: lanemark itself]
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

#[derive(Debug, Arguments)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Arguments)]
#[allow(clippy::struct_excessive_bools)] // Each is an option of its own.
pub struct BenchArgs {
    /// Target: a built-in platform, a host and a card (xeon-spr+gpu-h100), a platform file, 'host' (memory of this machine), the PCI address of a card (0000:01:00.0), a device of a
    /// runtime (cuda:0, opencl:0, sycl:0), a namespace of an NVMe drive (nvme:/dev/ng0n1), a card with AMD's XDMA driver
    /// (xdma:/dev/xdma0), or a card compiled from its source by rtl/build (rtl:card.so); repeatable [default: host and card-gen5-x16]
    #[arg(long = "on", value_name = "TARGET")]
    pub on: Vec<String>,
    /// Question by name, see 'lanemark questions'; repeatable [default: all without the mark '(not by default)' there]
    #[arg(long = "question", value_name = "NAME", value_delimiter = ',')]
    pub questions: Vec<String>,
    #[command(flatten)]
    pub axes: AxisArgs,
    /// Override a key of the simulated platforms for this run: link.mps_bytes=256, bar.0.address_bytes=0x800000000; several values
    /// (dma.tags=32,64 or 8..256*2) give a target each, several keys every combination; repeatable
    #[arg(long, value_name = "KEY=VALUES", value_parser = key_values)]
    pub with: Vec<KeyValues>,
    /// Pair the values of all --with keys by position, instead of every combination; each key has as many values, or one
    #[arg(long)]
    pub zip: bool,
    /// Inject a fault into simulated targets: KIND@PORT, KIND@PORT:N (at the Nth TLP) or KIND@PORT:TIMEns; repeatable
    ///
    /// Kinds: unsupported_request, completer_abort, poisoned, ecrc, no_completion, credit_starvation, link_down (:TIMEns+TIMEns to
    /// come back up), surprise_removal, unpinnable; at root ports with an IOMMU also unmapped, read_only, stuck_invalidation.
    #[arg(long, value_name = "FAULT", value_delimiter = ',')]
    pub fault: Vec<Fault>,
    /// Write to a configuration register of a simulated port first: BDF+CAP_EXP+8.w=VALUE:MASK or BDF+ECAP_ACS+6.w=VALUE:MASK,
    /// hexadecimal; 'lanemark lspci' lists the ports; repeatable
    #[arg(long, value_name = "WRITE", value_delimiter = ',')]
    pub setpci: Vec<ConfigWrite>,
    /// Iterations per sample on simulated platforms; steady state is fast-forwarded, and the answer contains the number of skipped
    /// iterations [default: chosen by the question]
    #[arg(long, value_name = "COUNT", value_parser = count(1..=1_000_000_000_u64), allow_negative_numbers = true)]
    pub iterations: Option<u64>,
    /// Simulate every transfer; disable steady-state fast-forward (same results, slower)
    #[arg(long)]
    pub no_fast_forward: bool,
    /// Also change each parameter of a simulated platform to twice and half its value, and show the effect on each figure
    #[arg(long)]
    pub what_if: bool,
    /// Platform, or its file, that describes the real card or runtime device: each case is also simulated on it, to show
    /// bottleneck and formula. Required for rtl:card.so, which has the host and the link of this platform
    #[arg(long, value_name = "PLATFORM")]
    pub twin: Option<String>,
    /// Compiled device kernels for a board without a run-time compiler: the output of the vendor's compiler for 'lanemark kernels'
    #[arg(long, value_name = "FILE")]
    pub kernels: Option<PathBuf>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write the record (JSON) to this file
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Measure in this many independent runs, each in a process of its own with newly opened targets; --record then names a new
    /// folder, and the table shows the variation between the runs
    #[arg(long, value_name = "COUNT", value_parser = count(1..=1000_u32), allow_negative_numbers = true)]
    pub repeat: Option<u32>,
    /// Save the records as a baseline of this name, for 'lanemark compare --baseline NAME'; an older one of this name is replaced
    #[arg(long, value_name = "NAME")]
    pub save_baseline: Option<String>,
    #[command(flatten)]
    pub baselines: BaselineArgs,
    /// File for the record of one of several runs; used by --repeat
    #[arg(long, value_name = "FILE", hide = true)]
    pub run_of_repeat: Option<PathBuf>,
    /// Write the answers to this CSV file: one row per answer, one column per parameter and figure
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write an HTML report to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a plot of all bandwidths against size to this SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Measure every default question and print every table [default without --on and --question: a one-screen summary]
    #[arg(long)]
    pub full: bool,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub card: CardArgs,
}

/// Variants of a question.
#[derive(Debug, Arguments)]
pub struct AxisArgs {
    /// Bytes of one transfer: a list (64,4K), a range of powers of two (64..4M) or of another factor (64..4M*4); K is 1024
    #[arg(long, value_name = "SIZES", allow_negative_numbers = true)]
    pub sizes: Option<SizeRange>,
    /// Memory types of the mapping: uc, wc, wt, wp, wb
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub memory_type: Vec<MemoryType>,
    /// Instructions: access width in bytes (1 to 64), memcpy, rep_movsb, non-temporal (nt16), movdiri8, movdir64b
    #[arg(long, value_name = "ACCESSES", value_delimiter = ',')]
    pub access: Vec<Access>,
    /// Fences: none, sfence, lfence, mfence, locked, interrupt
    #[arg(long, value_name = "FENCES", value_delimiter = ',', value_parser = fence)]
    pub fence: Vec<MaybeFence>,
    /// Offsets of the first byte from a 64 B boundary; for DMA, from a page boundary
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = alignment, allow_negative_numbers = true)]
    pub align: Vec<u64>,
    /// Region of the card to access, by its name in the platform
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// DMA flows that run concurrently, from:to: 0:host (card 0 writes host memory), host:1 (card 1 reads it), 0:1 (card to card)
    #[arg(long, value_name = "FLOWS", value_delimiter = ',')]
    pub flows: Vec<Flow>,
    /// Working set of each DMA flow in bytes [default: 4M, or one transfer if that is larger]
    #[arg(long, value_name = "SIZE", value_parser = window, allow_negative_numbers = true)]
    pub window: Option<u64>,
    /// DMA transfers start at random offsets in the window (fixed seed) instead of back to back
    #[arg(long)]
    pub random: bool,
    /// Distance in bytes between the starts of successive DMA transfers [default: the size of one]; with --random the offsets are
    /// multiples of the size rounded up to this: 64 gives random cache lines
    #[arg(long, value_name = "SIZE", value_parser = stride, allow_negative_numbers = true)]
    pub stride: Option<u64>,
    /// Outstanding DMA transfers per channel, at most; a transfer may be several read requests; for a drive: commands [default: as many as tags or queues allow]
    #[arg(long, value_name = "COUNT", value_parser = count(1..=65536_u32), allow_negative_numbers = true)]
    pub outstanding: Option<u32>,
    /// Initial cache state of the host buffer: cold, host-warm (written by a core) or device-warm (written by DMA) [default: host-warm]
    #[arg(long, value_name = "STATE", value_parser = cache_state)]
    pub cache_state: Option<CacheState>,
    /// Socket of the host memory that DMA accesses: the card's own (local) or the other one (remote) [default: local]
    #[arg(long, value_name = "SOCKET", value_parser = socket)]
    pub socket: Option<Socket>,
    /// DMA channels per card; transfers are distributed round-robin, driver calls come from one thread per channel [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = count(1..=64_u32), allow_negative_numbers = true)]
    pub channels: Option<u32>,
    /// Sparse matrix for spmv: a Matrix Market file, or poisson:SIDE, random:ROWSxEACH, powerlaw:ROWSxEACH; repeatable
    /// [default: poisson:256]
    #[arg(long, value_name = "MATRIX", value_delimiter = ',')]
    pub matrix: Vec<String>,
    /// Cores from which kernels are launched, in turn: 0-3,8 or all [default: twelve, spread evenly]
    #[arg(long, value_name = "CORES", value_parser = cores)]
    pub cores: Option<Cores>,
}

#[derive(Debug, Arguments)]
pub struct TraceArgs {
    /// Target: a built-in platform or a platform file
    #[arg(long, value_name = "PLATFORM", required_unless_present = "read")]
    pub on: Option<String>,
    /// Question by name; its first supported case is traced
    #[arg(long, value_name = "NAME", required_unless_present = "read")]
    pub question: Option<String>,
    #[command(flatten)]
    pub axes: AxisArgs,
    /// Override a key of the platform for this run, such as link.mps_bytes=256 or bar.0.address_bytes=0x800000000; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, value_delimiter = ',')]
    pub with: Vec<(String, String)>,
    /// Inject a fault into simulated targets: KIND@PORT, KIND@PORT:N (at the Nth TLP) or KIND@PORT:TIMEns; repeatable
    ///
    /// Kinds: unsupported_request, completer_abort, poisoned, ecrc, no_completion, credit_starvation, link_down (:TIMEns+TIMEns to
    /// come back up), surprise_removal, unpinnable; at root ports with an IOMMU also unmapped, read_only, stuck_invalidation.
    #[arg(long, value_name = "FAULT", value_delimiter = ',')]
    pub fault: Vec<Fault>,
    /// Iterations; for DMA, transfers [default: as many as move 4K, at most 8]
    #[arg(long, value_name = "COUNT", value_parser = count(1..=1_000_000_u64), allow_negative_numbers = true)]
    pub iterations: Option<u64>,
    /// Link whose TLPs are shown, by the slot or switch below it [default: all; for .pcapng the link of the card]
    #[arg(long, value_name = "NAME")]
    pub link: Option<String>,
    /// Show DLLPs too (Ack, Nak, flow-control updates); not for .pcapng and .html
    #[arg(long)]
    pub dllps: bool,
    /// Write to this file: .pcapng (TLPs of one link), .html (a waterfall to zoom), .json (Perfetto, Chrome) or .txt
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print this capture (pcapng or classic pcap) and the latency of its requests instead of tracing
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["on", "question", "iterations", "link", "output", "sizes", "memory_type", "access", "fence", "align",
            "region", "flows", "window", "random", "stride", "outstanding", "cache_state", "socket", "channels", "with", "fault", "dllps"])]
    pub read: Option<PathBuf>,
}

/// Sampling options for real targets.
#[derive(Debug, Arguments)]
#[command(next_help_heading = "Samples of real targets")]
pub struct SamplingArgs {
    /// Time budget per question and target, in seconds; if too short, fewer default sizes are measured [default: 1, or up
    /// to 6 if all default sizes need it]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub budget: Option<Ticks>,
    /// Target width of the 95 % interval of a median, in percent of the median, above 0 [default: 2]
    #[arg(long, value_name = "PERCENT", value_parser = interval, allow_negative_numbers = true)]
    pub interval: Option<f64>,
    /// Run all copies of many_small_few_large (8 GB per run) instead of a hundredth of them
    #[arg(long)]
    pub all_copies: bool,
    /// Write every raw sample to a Parquet file
    #[arg(long, value_name = "FILE.parquet")]
    pub samples: Option<PathBuf>,
}

fn seeds(text: &str) -> Result<std::ops::Range<u64>, String> {
    let form = || format!("'{text}' is no range of seeds; write FROM..TO, such as 0..100");
    let (from, to) = text.split_once("..").ok_or_else(form)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| form());
    let (from, to) = (number(from)?, number(to)?);
    if from < to { Ok(from..to) } else { Err(format!("'{text}' has no seed: the second number must be larger")) }
}

fn seconds(text: &str) -> Result<Ticks, String> {
    let wrong = || "use a number of seconds from 0 to 86400 (a day)".to_owned();
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    Ticks::from_ns(seconds.ok_or_else(wrong)? * 1e9).map_err(|_| wrong())
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("use a percentage of at least 0, such as 5 or 2.5%".to_owned()),
    }
}

fn interval(text: &str) -> Result<f64, String> {
    let above_0 = || "use a percentage above 0, such as 2 or 2.5%".to_owned();
    match percent(text).map_err(|_| above_0())? {
        0.0 => Err("an interval of 0 % is never reached: use a width above 0, such as 2".to_owned()),
        percent => Ok(percent),
    }
}

/// Place of the baselines.
#[derive(Debug, Arguments)]
pub struct BaselineArgs {
    /// Folder of the baselines [default: .lanemark/baselines in the current folder]
    #[arg(long, value_name = "FOLDER")]
    pub baseline_folder: Option<PathBuf>,
}

#[derive(Debug, Arguments)]
pub struct BaselinesArgs {
    #[command(flatten)]
    pub baselines: BaselineArgs,
    /// Print one JSON document instead of a list
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Arguments)]
pub struct CompareArgs {
    /// Base record and new record, with --baseline only new ones; a folder stands for all records in it
    #[arg(value_name = "RECORD")]
    pub records: Vec<PathBuf>,
    /// Compare the new records with this baseline, saved by 'lanemark bench --save-baseline NAME'
    #[arg(long, value_name = "NAME", conflicts_with = "base")]
    pub baseline: Option<String>,
    #[command(flatten)]
    pub baselines: BaselineArgs,
    /// Base records: several runs show the variation between runs; folders stand for all records in them
    #[arg(long, value_name = "RECORD", num_args = 1.., requires = "new")]
    pub base: Vec<PathBuf>,
    /// New records
    #[arg(long, value_name = "RECORD", num_args = 1.., conflicts_with = "records")]
    pub new: Vec<PathBuf>,
    /// Find the machines of the corpus that are nearest to this one record, and what differs from the nearest
    #[arg(long, conflicts_with_all = ["baseline", "base", "new", "min_effect", "between_runs", "fail_above"])]
    pub to_corpus: bool,
    /// With --to-corpus: a folder of records instead of the built-in corpus
    #[arg(long, value_name = "FOLDER", requires = "to_corpus")]
    pub corpus: Option<PathBuf>,
    /// With --to-corpus: number of machines in the table [default: 5]
    #[arg(long, value_name = "COUNT", requires = "to_corpus", value_parser = count(1..=1000_u32), allow_negative_numbers = true)]
    pub nearest: Option<u32>,
    /// Smallest change of interest, in percent of the time: smaller ones are no difference [default: 2; simulations: 0]
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub min_effect: Option<f64>,
    /// Assumed standard deviation between runs of one machine, in percent, where a side has fewer than 5 records [default: 10]
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub between_runs: Option<f64>,
    /// Exit with 1 if any answer is slower by more than this increase in time, by the same test as the verdicts
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub fail_above: Option<f64>,
    /// With --fail-above: also exit with 1 if an answer cannot be judged or is missing from the new records
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
    /// Range of a BAR that may be accessed: BAR:FROM..TO, with :storage, :registers, :registers:write or :registers:write-only; with
    /// --on xdma:/dev/xdma0, a range of the user BAR; repeatable [default kind: storage in a prefetchable BAR, else read-only registers]
    #[arg(long = "bar", value_name = "RANGE")]
    pub bars: Vec<Range>,
    /// Range of AXI addresses on a card with AMD's XDMA driver that may be overwritten: FROM..TO, TO exclusive, FROM a multiple of
    /// 64 B; required for DMA by xdma:/dev/xdma0
    #[arg(long, value_name = "RANGE")]
    pub card_memory: Option<CardMemory>,
    /// Description of the card for its DMA engine: a built-in one (edu) or a device file; the card must be bound to vfio-pci,
    /// or be compiled (rtl:card.so)
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Range of a BAR of a second card bound to vfio-pci, for DMA by an NVMe drive or the engine of --device; the range is overwritten:
    /// FUNCTION:BAR:FROM..TO in whole pages, as 0000:04:00.0:2:0..64KiB; append :storage for a BAR that is not prefetchable
    #[arg(long, value_name = "MEMORY")]
    pub peer: Option<PeerRange>,
    /// Interface by which a card bound to vfio-pci is opened: container (groups), iommufd (Linux 6.6 or newer), or no-iommu for a card
    /// behind no IOMMU, whose DMA can then reach all memory of this machine [default: iommufd if the kernel has it for the card and
    /// there is no --peer, else container]
    #[arg(long, value_name = "INTERFACE")]
    pub vfio: Option<VfioInterface>,
    /// Pages of host memory for DMA by a card bound to vfio-pci: 4KiB, or reserved ones, 2MiB or 1GiB [default: 2MiB if
    /// reserved, else 4KiB; with no-iommu 2MiB]
    #[arg(long, value_name = "SIZE")]
    pub host_pages: Option<HostPageSize>,
    /// Place of the I/O submission queue of an NVMe drive bound to vfio-pci: host (host memory, from which the drive fetches
    /// commands) or cmb (its controller memory buffer: 4 KiB per queue are overwritten) [default: host]
    #[arg(long, value_name = "PLACE")]
    pub nvme_queues: Option<QueuePlace>,
    /// Description of the memory of commands to an NVMe drive bound to vfio-pci: prp (PRP entries), sgl (one SGL descriptor)
    /// or sgl-list (a list with one descriptor for each page, which the drive fetches) [default: prp]
    #[arg(long, value_name = "KIND")]
    pub nvme_data: Option<DataPointers>,
    /// Place of the data of commands to an NVMe drive bound to vfio-pci: host (host memory) or cmb (its controller memory buffer,
    /// which is overwritten: only commands and completions cross the link in samples) [default: host]
    #[arg(long, value_name = "PLACE")]
    pub nvme_data_place: Option<DataPlace>,
    /// Completion method of an NVMe drive bound to vfio-pci: polling or interrupt; questions that compare both measure both
    /// whatever it is [default: polling]
    #[arg(long, value_name = "METHOD")]
    pub nvme_completions: Option<CompletionBy>,
    /// Namespace of an NVMe drive bound to vfio-pci whose blocks are read: its NSID [default: the first active one]
    #[arg(long, value_name = "NSID", value_parser = clap::value_parser!(u32).range(1..i64::from(u32::MAX)))]
    pub namespace: Option<u32>,
    /// First 4 MiB of a namespace of an NVMe drive bound to vfio-pci that DMA reads may overwrite: its NSID (the first active
    /// one, or that of --namespace), and the number of bytes if more or fewer, as 1:64MiB [default: no Write command is sent]
    #[arg(long, value_name = "NAMESPACE")]
    pub destructive: Option<Destructive>,
    /// Bind the card to this driver for the run, and restore its former driver at the end: vfio-pci, or
    /// lanemark (our kernel module)
    #[arg(long, value_name = "DRIVER", conflicts_with_all = ["repeat", "save_baseline"])]
    pub bind: Option<String>,
    /// Print every range, mapping and access that would happen, without accessing the card
    #[arg(long, conflicts_with_all = ["json", "record", "html", "csv", "svg"])]
    pub dry_run: bool,
    /// Proceed although a driver is bound to the device
    #[arg(long)]
    pub i_own_this_device: bool,
    /// Enable memory decoding (Command register) if it is off; it stays on
    #[arg(long)]
    pub enable: bool,
    /// Mark the record as made on an emulated device (detected for common emulators)
    #[arg(long)]
    pub emulated: bool,
    /// Folder used as the root of the file system, for tests
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub system_root: Option<PathBuf>,
}

impl CardArgs {
    /// Whether no option for access to a card is given.
    pub fn is_usual(&self) -> bool {
        let CardArgs {
            bars,
            card_memory,
            device,
            peer,
            vfio,
            host_pages,
            nvme_queues,
            nvme_data,
            nvme_data_place,
            nvme_completions,
            namespace,
            destructive,
            bind,
            dry_run,
            i_own_this_device,
            enable,
            emulated,
            system_root,
        } = self;
        let names_nothing = bars.is_empty() && card_memory.is_none() && device.is_none() && peer.is_none();
        let names_nothing = names_nothing && nvme_queues.is_none() && nvme_data.is_none() && nvme_completions.is_none();
        let names_nothing = names_nothing
            && nvme_data_place.is_none()
            && namespace.is_none()
            && destructive.is_none()
            && bind.is_none()
            && vfio.is_none()
            && host_pages.is_none();
        names_nothing && !dry_run && !i_own_this_device && !enable && !emulated && system_root.is_none()
    }
}

/// A fence, or `none`.
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

/// Bytes of a page; DMA requests are split at page boundaries.
const PAGE: u64 = 4096;

/// Returns a parser of whole numbers in `range`.
fn count<T: FromStr + PartialOrd + fmt::Display + Clone + Send + Sync + 'static>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("use a whole number from {} to {}", range.start(), range.end()))
    }
}

fn window(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err("a window of 0 bytes is too small for a transfer: use at least the size of one".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

fn stride(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err("a stride of 0 bytes is not allowed: use at least 1".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

fn cache_state(text: &str) -> Result<CacheState, String> {
    let known = || format!("use one of {}", CacheState::ALL.map(CacheState::name).join(", "));
    CacheState::ALL.into_iter().find(|found| found.name() == text).ok_or_else(known)
}

/// A core list in the format of Linux, such as `0-3,8`, or `all`.
fn cores(text: &str) -> Result<Cores, String> {
    if text == "all" {
        return Ok(Cores::All);
    }
    let set: CpuSet = text.parse().map_err(|error| format!("{error}; or use all"))?;
    if set.is_empty() { Err("the core list is empty".to_owned()) } else { Ok(Cores::These(set.iter().collect())) }
}

fn socket(text: &str) -> Result<Socket, String> {
    let known = || format!("use one of {}", Socket::ALL.map(Socket::name).join(", "));
    Socket::ALL.into_iter().find(|socket| socket.name() == text).ok_or_else(known)
}

fn alignment(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(bytes) if bytes < PAGE => Ok(bytes),
        Ok(bytes) => Err(format!("{bytes} is too large: an offset from a page boundary is at most {}", PAGE - 1)),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Debug, Arguments)]
pub struct ReproduceArgs {
    /// Papers to reproduce, by folder name [default: all]
    #[arg(value_name = "PAPER")]
    pub papers: Vec<String>,
    /// Also measure this machine where the figures allow it; these measurements do not affect the verdict
    #[arg(long)]
    pub host: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
    /// Also write tables and plots to this HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Compute instead, for one paper, the effect of each platform value on each row and its class, as CSV; takes minutes
    #[arg(long, conflicts_with_all = ["host", "json", "html"])]
    pub dependencies: bool,
}

#[derive(Debug, Arguments)]
pub struct FitArgs {
    /// Data to fit to: a paper (by folder name), a record, a table of DMA figures (.csv), or with --from the output of a tool
    #[arg(value_name = "PAPER|RECORD|TABLE", required = true)]
    pub papers: Vec<String>,
    /// Tool that printed the file: nvbandwidth (text or -j), perftest (ib_write_bw, ib_read_bw), fio (--output-format=json),
    /// dd (with its command lines), xdma (dma_to_device, dma_from_device)
    #[arg(long, value_name = "TOOL", value_parser = tool, requires = "on", conflicts_with_all = ["parameters", "of"])]
    pub from: Option<Tool>,
    /// For records and tables: the platform whose parameters are fitted
    #[arg(long, value_name = "PLATFORM")]
    pub on: Option<String>,
    /// For records: a parameter to fit, such as root_complex.core_round_trip_ns; repeatable
    #[arg(long = "parameter", value_name = "KEY")]
    pub parameters: Vec<String>,
    /// For records of several targets: the target whose answers are fitted
    #[arg(long, value_name = "TARGET")]
    pub of: Option<String>,
    /// For a platform file with unknown numbers: a value to assume instead of fitting it; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = assumption, conflicts_with = "parameters")]
    pub assume: Vec<(String, f64)>,
    /// For a platform file with unknown numbers: assume usual values for those that the data cannot determine and that have
    /// no default
    #[arg(long, conflicts_with = "parameters")]
    pub assume_rest: bool,
    /// For a platform file with unknown numbers: fit numbers only, and keep every other mechanism as the file has it
    #[arg(long, conflicts_with = "parameters")]
    pub keep_structure: bool,
    /// For a platform file with unknown numbers: write the completed file here
    #[arg(long, value_name = "FILE", conflicts_with = "parameters")]
    pub write: Option<PathBuf>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Arguments)]
pub struct ImportArgs {
    /// The output of a tool, as it printed it, with its command line if possible; several files of one tool, such as one
    /// per node, are compared with each other
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Tool that printed it: nvbandwidth (text or -j), gdrcopy (copybw, copylat), bandwidthTest, osu, perftest, mlc,
    /// fio (--output-format=json), pcm-pcie (-B -csv), wc_perf [default: recognised from the output]
    #[arg(long, value_name = "TOOL", value_parser = import_tool)]
    pub from: Option<ImportTool>,
    /// Link that limits the rates: a platform, its file (.toml), or the output of lspci -vvv or -xxxx of the machine
    #[arg(long, value_name = "PLATFORM|LSPCI")]
    pub on: Option<String>,
    /// Write the record (JSON) to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the record as JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

fn import_tool(text: &str) -> Result<ImportTool, String> {
    let known = || format!("use one of {}", ImportTool::ALL.map(ImportTool::name).join(", "));
    ImportTool::ALL.into_iter().find(|tool| tool.name() == text).ok_or_else(known)
}

fn tool(text: &str) -> Result<Tool, String> {
    let known = || format!("use one of {}", Tool::ALL.map(Tool::name).join(", "));
    Tool::ALL.into_iter().find(|tool| tool.name() == text).ok_or_else(known)
}

/// Parses a changed key: `link.mps_bytes=256`, `memory.size_bytes=64MiB`, `link.skp=true`.
fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE with one value, such as link.mps_bytes=256")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Keys with one or more values each.
#[derive(Clone, Debug)]
pub struct KeyValues(pub Vec<(String, Vec<String>)>);

/// Parses changed keys with their values: `link.mps_bytes=128,256,dma.tags=8..64*2`.
fn key_values(text: &str) -> Result<KeyValues, String> {
    Settings::parse_keys(text).map(KeyValues)
}

/// Parses an assumed number: `region.sram.read_ns=200`.
fn assumption(text: &str) -> Result<(String, f64), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as link.latency_ns=150")?;
    let value = value.trim().parse().map_err(|_| format!("'{value}' is not a number"))?;
    Ok((key.trim().to_owned(), value))
}

#[derive(Debug, Arguments)]
pub struct FleetArgs {
    #[command(subcommand)]
    pub command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Run 'bench' and 'doctor' on every machine of a file, at the same time, and list the machines that differ
    Run(FleetRunArgs),
}

#[derive(Debug, Arguments)]
pub struct FleetRunArgs {
    /// The machines (TOML): how to reach each, and the options of bench
    #[arg(value_name = "HOSTS.toml")]
    pub hosts: PathBuf,
    /// Time that each command on a machine may take, in seconds [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub timeout: Option<Ticks>,
    /// Smallest difference from the median of the machines that counts, in percent of the time [default: 5]
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub min_effect: Option<f64>,
    /// Write the record of each machine to this new folder
    #[arg(long, value_name = "FOLDER")]
    pub records: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Arguments)]
pub struct DoctorArgs {
    /// Read a file or folder instead of this machine: output of lspci -xxxx or -vvv, or a tar or copy of /sys
    #[arg(long, value_name = "FILE|DIR")]
    pub from: Option<PathBuf>,
    /// Print one JSON document with every field of every capability instead of text
    #[arg(long)]
    pub json: bool,
    /// Print a platform file for the card at this address, or for the only card, with unknown numbers for a fit
    #[arg(long, value_name = "BDF", num_args = 0..=1,
        conflicts_with_all = ["json", "fail_on_finding", "round_trip", "cpus", "earlier"])]
    #[allow(clippy::option_option, reason = "an option with an optional value, as clap reads it")]
    pub as_platform: Option<Option<Address>>,
    /// Numbers of the platform file that are unknown: those that figures of this kind determine
    #[arg(long, value_enum, default_value_t = FitFigures::Dma, requires = "as_platform")]
    pub unknown: FitFigures,
    /// Write the platform file here instead of printing it
    #[arg(long, value_name = "FILE", requires = "as_platform")]
    pub output: Option<PathBuf>,
    /// Round trip of a DMA read of host memory in ns [default: 1000, assumed]
    #[arg(long, value_name = "NS", value_parser = round_trip, allow_negative_numbers = true)]
    pub round_trip: Option<f64>,
    /// Cores that will access the cards, such as 0-3,8; checks that the cards are on their socket
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuSet>,
    /// An earlier state of the same machine; error counters that grew since then are reported apart from old errors
    #[arg(long, value_name = "FILE|DIR")]
    pub earlier: Option<PathBuf>,
    /// Exit with 1 on a finding of this severity or worse [default if given: costly]
    #[arg(long, value_name = "SEVERITY", num_args = 0..=1, require_equals = true, default_missing_value = "costly")]
    pub fail_on_finding: Option<AtLeast>,
}

fn round_trip(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ns) if (1.0..=1e9).contains(&ns) => Ok(ns),
        _ => Err(format!("'{text}' is not valid: use nanoseconds from 1 to 1e9")),
    }
}

/// Figures of a fit.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FitFigures {
    /// Latencies and bandwidths of a DMA engine
    Dma,
    /// Loads and stores of a core
    Mmio,
}

/// Least severity of a finding that makes the command exit with 1.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum AtLeast {
    /// A device fails or data is lost
    Broken,
    /// Bandwidth or latency is lost
    Costly,
    /// May cost something under some loads
    Minor,
    /// Any finding
    Hint,
}

#[derive(Debug, Arguments)]
pub struct RecoverArgs {
    /// The card: PCI address of one of its functions, such as 0000:01:00.0; with --on also its name
    #[arg(value_name = "BDF")]
    pub card: String,
    /// Print the steps and their commands without running any
    #[arg(long)]
    pub dry_run: bool,
    /// Read a file or folder instead of this machine: output of lspci -xxxx or -vvv, or a tar or copy of /sys
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["on", "without", "with", "fault"])]
    pub from: Option<PathBuf>,
    /// Run the steps on a simulated card: a built-in platform or a platform file
    #[arg(long, value_name = "PLATFORM")]
    pub on: Option<String>,
    /// Command of the vendor's tool that programs the card; printed, never run
    #[arg(long, value_name = "COMMAND")]
    pub program: Option<String>,
    /// Number of times the card is programmed
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = count(1..=10_u32), allow_negative_numbers = true)]
    pub times: u32,
    /// Skip a step, to see its effect; repeatable
    #[arg(long, value_name = "STEP", value_delimiter = ',', requires = "on", conflicts_with = "dry_run")]
    pub without: Vec<LeftOut>,
    /// Override a key of the simulated platform, such as link.mps_bytes=256 or bar.0.address_bytes=0x800000000; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, value_delimiter = ',', requires = "on")]
    pub with: Vec<(String, String)>,
    /// Fault to inject into the simulated card, such as no_completion@card or surprise_removal@card; repeatable
    #[arg(long, value_name = "FAULT", value_delimiter = ',', requires = "on")]
    pub fault: Vec<Fault>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Arguments)]
pub struct BindArgs {
    /// The function, by its PCI address, such as 0000:01:00.0
    #[arg(value_name = "BDF")]
    pub function: FunctionAddress,
    /// The driver
    #[arg(long, value_name = "DRIVER", default_value = "vfio-pci")]
    pub to: String,
    /// Print the steps without carrying out any
    #[arg(long)]
    pub dry_run: bool,
    /// Take the function away from a network interface that is up, or from the console; never from a mounted file system
    #[arg(long)]
    pub i_own_this_device: bool,
    /// Root folder of a file system for tests, instead of /
    #[arg(long, value_name = "DIR", hide = true)]
    pub system_root: Option<PathBuf>,
}

#[derive(Debug, Arguments)]
pub struct UnbindArgs {
    /// The function, by its PCI address; without it, list the functions that were not restored
    #[arg(value_name = "BDF")]
    pub function: Option<FunctionAddress>,
    /// Print the steps without carrying out any
    #[arg(long, requires = "function")]
    pub dry_run: bool,
    /// Root folder of a file system for tests, instead of /
    #[arg(long, value_name = "DIR", hide = true)]
    pub system_root: Option<PathBuf>,
}

/// A step of the recovery that `--without` can skip.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LeftOut {
    /// Do not mask error reporting of the card and its ports
    Mask,
    /// Do not remove the card from the PCI tree of the system
    Remove,
    /// Do not program the card
    Program,
    /// Do not rescan the bus
    Rescan,
    /// Do not clear the error status registers
    Clear,
    /// Do not restore the error masks
    Restore,
}

impl LeftOut {
    /// The corresponding kind of step in records.
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
    /// Write to a register first: BDF+CAP_EXP+8.w=VALUE:MASK or BDF+ECAP_ACS+6.w=VALUE:MASK, hexadecimal; repeatable
    #[arg(long, value_name = "WRITE", value_delimiter = ',')]
    pub setpci: Vec<ConfigWrite>,
    /// Write to this file instead of standard output; 'lspci -F' and 'lanemark doctor --from' read it
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Advice on something other than the transfers of a workload.
#[derive(Debug, Subcommand)]
pub enum AdviceOn {
    /// Choose the method for many small copies from a table of 'lanemark tune'
    Copy(AdviseCopyArgs),
}

#[derive(Debug, Arguments)]
pub struct AdviseCopyArgs {
    /// Table that 'lanemark tune' has written
    #[arg(long, value_name = "FILE")]
    pub table: PathBuf,
    /// Size of each piece in bytes: a list (64,4K) or a range (64..4M*4); K is 1024
    #[arg(long, value_name = "SIZES", allow_negative_numbers = true)]
    pub sizes: SizeRange,
    /// Number of pieces to copy, or a list of them, such as 1,8,200; each is combined with each size
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', required = true, value_parser = count(1..=u32::MAX), allow_negative_numbers = true)]
    pub count: Vec<u32>,
    /// Direction of the copies [default: both]
    #[arg(long, value_name = "DIRECTION")]
    pub direction: Option<Toward>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Arguments)]
pub struct TuneArgs {
    /// Target with a runtime: cuda:0, a built-in platform, a host and a card (xeon-spr+gpu-h100), or a platform file
    #[arg(long, value_name = "TARGET")]
    pub on: String,
    /// Override a key of a simulated platform for this run, such as runtime.submit_ns=500; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, value_delimiter = ',')]
    pub with: Vec<(String, String)>,
    /// Time budget of a real target, in seconds; if too short, fewer sizes are in the table [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub budget: Option<Ticks>,
    /// JSON file for the table of times, which 'advise copy --table' and programs read; its format: 'lanemark schema copies'
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Arguments)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct AdviseArgs {
    /// Something other than the transfers of a workload
    #[command(subcommand)]
    pub topic: Option<AdviceOn>,
    /// Platform: a built-in one or a platform file
    #[arg(long, value_name = "PLATFORM", required = true)]
    pub on: Option<String>,
    /// Direction of the transfers [default: both]
    #[arg(long, value_name = "DIRECTION")]
    pub direction: Option<Toward>,
    /// Bytes of one transfer, at most 16M: a list (64,4K) or a range (64..4M*4); K is 1024 [default: 64,4K,1M]
    #[arg(long, value_name = "SIZES", allow_negative_numbers = true)]
    pub sizes: Option<SizeRange>,
    /// Goal: delivered rate of a stream of transfers, such as 12GB/s or 100Gbit/s; exit 1 if it is not met
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// Goal: the latency of one transfer is below this, such as 800ns or 2us; exit 1 if it is not met
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub latency_below: Option<Ticks>,
    /// Override a key of the platform for this run, such as link.mps_bytes=256; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, value_delimiter = ',')]
    pub with: Vec<(String, String)>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// Direction of transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Toward {
    /// From the host to the device
    ToDevice,
    /// From the device to the host
    FromDevice,
}

/// Parses a time above zero with its unit: `800ns`, `2us`, `1.5ms`, `1s`.
fn time(text: &str) -> Result<Ticks, String> {
    let wrong = || "use a time above 0 with its unit, such as 800ns, 2us, 1.5ms or 1s".to_owned();
    let text = text.trim();
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let found = units.iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)));
    let (number, ns) = found.ok_or_else(wrong)?;
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let ticks = Ticks::from_ns(number * ns).map_err(|_| wrong())?;
    if ticks > Ticks::ZERO { Ok(ticks) } else { Err(wrong()) }
}

#[derive(Debug, Arguments)]
pub struct SweepArgs {
    /// The space: a TOML file with platforms, keys and questions [default: none; with --log, only tables and pictures are written]
    #[arg(value_name = "SPACE.toml", required_unless_present = "log")]
    pub space: Option<PathBuf>,
    /// Log of the points, one JSON line each; points in it are not run again [default: the name of the space with .jsonl]
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Number of threads [default: one per core]
    #[arg(long, value_name = "COUNT", value_parser = count(1..=1024_u16), allow_negative_numbers = true)]
    pub threads: Option<u16>,
    /// Print the number of points and the first ones, without running any
    #[arg(long, requires = "space", conflicts_with_all = ["csv", "json_lines", "parquet", "lines", "heat_map", "pareto", "tornado"])]
    pub dry_run: bool,
    /// Write all points to this CSV file: one row per point, one column per key, option and figure
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write all points to this file of JSON lines, with the columns as keys
    #[arg(long, value_name = "FILE")]
    pub json_lines: Option<PathBuf>,
    /// Write all points to this Parquet file
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    #[command(flatten)]
    pub pictures: SweepPictureArgs,
}

/// Pictures of a sweep.
#[derive(Debug, Arguments)]
#[command(next_help_heading = "Pictures")]
pub struct SweepPictureArgs {
    /// Write an SVG file with a line per series: the figure against the column --x
    #[arg(long, value_name = "FILE")]
    pub lines: Option<PathBuf>,
    /// Write an SVG file with a heat map: the figure over the columns --x and --y
    #[arg(long, value_name = "FILE")]
    pub heat_map: Option<PathBuf>,
    /// Write an SVG file with the Pareto front of the columns --x and --y
    #[arg(long, value_name = "FILE")]
    pub pareto: Option<PathBuf>,
    /// Write an SVG file with the effect of each column on the figure, from the middle point, largest first
    #[arg(long, value_name = "FILE")]
    pub tornado: Option<PathBuf>,
    /// Column of the horizontal axis [default: the varied column with most values]
    #[arg(long, value_name = "COLUMN")]
    pub x: Option<String>,
    /// Column of the vertical axis of a heat map, or second figure of a Pareto front [default: another varied column, or the figure]
    #[arg(long, value_name = "COLUMN")]
    pub y: Option<String>,
    /// Column of the figure [default: the delivered rate or the latency]
    #[arg(long, value_name = "COLUMN")]
    pub figure: Option<String>,
    /// Show only points with this value of a column, such as dma.tags=64; repeatable
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = setting)]
    pub only: Vec<(String, String)>,
}

#[derive(Debug, Arguments)]
pub struct ReportArgs {
    /// The record; several, or folders of records, make a page that compares their machines; the log of a sweep, its map
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,
    /// Write the report to this file
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub html: PathBuf,
    /// Also write a plot of all bandwidths against size to this SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

#[derive(Debug, Arguments)]
pub struct SchemaArgs {
    /// The file format
    #[arg(value_name = "platform|device|record|doctor|fleet|guidance|space|sweep-log|copies")]
    pub format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    /// Platform files
    Platform,
    /// Device files
    Device,
    /// Records
    Record,
    /// Output of `doctor --json`
    Doctor,
    /// Output of `fleet run --json`
    Fleet,
    /// Output of `advise --json`
    Guidance,
    /// Spaces of `sweep`
    Space,
    /// Lines of the log of `sweep`
    SweepLog,
    /// Tables of `tune`
    Copies,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of the error of a command line.
    fn refused(arguments: &[&str]) -> String {
        Args::try_parse_from([&["lanemark"], arguments].concat()).unwrap_err().to_string()
    }

    #[test]
    fn errors_of_negative_numbers_name_the_allowed_values() {
        for (option, value, hint) in [
            ("--sizes", "-1", "'-1' is not a size"),
            ("--align", "-1", "'-1' is not a size"),
            ("--window", "-1", "'-1' is not a size"),
            ("--budget", "-1", "from 0 to 86400"),
            ("--interval", "-2", "a percentage above 0"),
            ("--outstanding", "-1", "-1"),
        ] {
            let text = refused(&["bench", option, value]);
            assert!(text.contains(hint) && !text.contains("unexpected argument"), "{option}: {text}");
        }
        let text = refused(&["compare", "a", "b", "--fail-above", "-5"]);
        assert!(text.contains("a percentage of at least 0"), "{text}");
    }

    #[test]
    fn a_stride_of_zero_is_refused_as_a_stride() {
        assert!(refused(&["bench", "--stride", "0"]).contains("a stride of 0 bytes"));
    }
}
