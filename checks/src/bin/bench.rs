//! Performance of simulator, formulas, copies and program, each with a baseline in the same run.
//!
//! These machines are noisy: every figure is the median of several rounds, rounds of the compared things
//! alternate, and the ratio is taken round by round. The program never fails; `docs/performance.md`
//! has a table with date and machine.

#[path = "bench/board.rs"]
mod board;
#[path = "bench/cocotb.rs"]
mod cocotb;
#[path = "bench/compiled.rs"]
mod compiled;
#[path = "bench/copy_plan.rs"]
mod copy_plan;
#[path = "bench/decode.rs"]
mod decode;
#[path = "bench/drive.rs"]
mod drive;
#[path = "bench/fabric.rs"]
mod fabric;
#[path = "bench/false_alarms.rs"]
mod false_alarms;
#[path = "bench/host.rs"]
mod host;
#[path = "bench/instructions.rs"]
mod instructions;
#[path = "bench/iotlb.rs"]
mod iotlb;
#[path = "bench/kernels.rs"]
mod kernels;
#[path = "bench/map_unmap.rs"]
mod map_unmap;
#[path = "bench/page.rs"]
mod page;
#[path = "bench/path.rs"]
mod path;
#[path = "bench/rtl.rs"]
mod rtl;
#[path = "bench/runtime.rs"]
mod runtime;
#[path = "bench/steady.rs"]
mod steady;
#[path = "bench/sweeps.rs"]
mod sweeps;

use lanemark_advise::doctor::{DiagnosisRequest, diagnose};
use lanemark_checks::pci_dump;
use lanemark_inventory::Inventory;
use lanemark_machine::{Access, Machine, Plan, Samples, Span, Step, Stream, Verb, Width};
use lanemark_model::predict;
use lanemark_platform::{Platform, preset};
use lanemark_sim::SimulatedMachine;
use lanemark_units::{MemoryType, Ticks};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 5;
/// 4 MiB.
const PASS_BYTES: u64 = 4 << 20;
/// Iterations of 4 MiB for 1 GiB.
const PASSES: u64 = 256;

fn main() {
    // The processes whose instructions valgrind counts.
    let args: Vec<String> = std::env::args().collect();
    let counted = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, map_unmap::PAIRS, kind, count] => Some(map_unmap::pairs(kind, count.parse().unwrap_or(0))),
        [_, fabric::ONCE, traffic, count] => Some(fabric::once(traffic, count.parse().unwrap_or(0))),
        [_, drive::ONCE, by, count] => Some(drive::once(by, count.parse().unwrap_or(0))),
        [_, compiled::ONCE, count] => Some(compiled::once(count.parse().unwrap_or(0))),
        [_, path::ONCE, traffic, with, count] => Some(path::once(traffic, with, count.parse().unwrap_or(0))),
        _ => None,
    };
    match counted {
        Some(Ok(())) => return,
        Some(Err(error)) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
        None => {}
    }
    match args.get(1).map(String::as_str) {
        Some(runtime::WITHIN) => return runtime::within(),
        Some(runtime::NOTHING) => return runtime::nothing(),
        _ => {}
    }
    let Some(Ok(card)) = preset("card-gen5-x16") else {
        return eprintln!("the built-in card cannot be read");
    };
    println!("{:<66} {:>14} {:>10} {:>10}", "what (median of the rounds)", "figure", "min", "max");
    // Without an argument all benchmarks run; with a name, only that one.
    let only = std::env::args().nth(1);
    let is_asked = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let all: [(&str, &dyn Fn()); 23] = [
        // First, because it reports the peak memory of the process so far.
        ("steady", &steady::steady),
        ("simulator", &|| simulator(&card)),
        ("path", &|| path::path(&card)),
        ("fabric", &fabric::fabric),
        ("board", &|| board::board(&card)),
        ("cocotb", &|| cocotb::cocotb(&card)),
        ("rtl", &rtl::rtl),
        ("decode", &decode::decode),
        ("predictions", &|| predictions(&card)),
        ("compiled", &|| compiled::compiled(&card)),
        ("inventory", &inventory),
        ("doctor", &doctor),
        ("iotlb", &iotlb::iotlb),
        ("map", &map_unmap::map_unmap),
        ("kernels", &kernels::kernels),
        ("drive", &drive::drive),
        ("host", &host::host),
        ("copy_plan", &copy_plan::copy_plan),
        ("runtime", &runtime::runtime),
        ("sweeps", &sweeps::sweeps),
        ("page", &page::page),
        ("compare", &false_alarms::false_alarms),
        ("program", &program),
    ];
    all.iter().filter(|(name, _)| is_asked(name)).for_each(|(_, take)| take());
}

/// 1 GiB of 64 B write-combining stores through one link, compared with plain arithmetic for the same packets.
fn simulator(card: &Platform) {
    let Ok(mut machine) = SimulatedMachine::new(card) else { return };
    let Some(region) = machine.facts().storage().cloned() else { return };
    let span = Span { at: region.at, len: PASS_BYTES, memory_type: MemoryType::Wc };
    let stream = Stream::over(Verb::Store, Access::Plain(Width::B64), span);
    let writes =
        |passes| Plan { timeout: Ticks::whole_ns(100_000_000_000), ..Plan::new(Step::Stream(stream.clone()), passes) };
    let mut samples = Samples::wanted(1);
    let (mut hops, mut baseline, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        if machine.run(&writes(PASSES), &mut samples).is_err() {
            return eprintln!("the simulator did not run the plan");
        }
        let tlps = samples.traffic.map_or(0, |traffic| traffic.write_tlps) as f64;
        let simulated = tlps / start.elapsed().as_secs_f64();
        let start = Instant::now();
        black_box(busy_until(tlps as u64));
        let arithmetic = tlps / start.elapsed().as_secs_f64();
        // Each TLP crosses one link: one hop. The path from core to root complex is not counted.
        hops.push(simulated / 1e6);
        baseline.push(arithmetic / 1e6);
        ratios.push(arithmetic / simulated);
    }
    row("simulator: 1 GiB of 64 B WC writes, million TLP-hops per second", hops);
    row("  baseline: busy-until arithmetic with credits, no bytes, no causes", baseline);
    row("  baseline over simulator, times", ratios);
    match path::per_store() {
        Some(instructions) => row("  instructions per TLP-hop (target: 1800)", vec![instructions]),
        None => println!("  {}", instructions::NOT_COUNTED),
    }
}

/// The minimal work per packet: two servers and a credit loop.
fn busy_until(tlps: u64) -> u64 {
    let (mut link, mut device, mut returned) = (0_u64, 0_u64, [0_u64; 127]);
    for tlp in 0..tlps {
        let slot = (tlp % 127) as usize;
        link = link.max(returned[slot]) + black_box(5722);
        device = device.max(link + 491_520) + 8192;
        returned[slot] = device + 491_520;
    }
    device
}

/// Formulas per second, compared with only building the same plans.
fn predictions(card: &Platform) {
    const COUNT: u64 = 200_000;
    let Some(region) = card.region("memory") else { return };
    let at = lanemark_units::BarOffset { bar: region.bar.value as u8, offset: 0 };
    let plan = |size: u64| {
        let span = Span { at, len: 64 << (size % 16), memory_type: MemoryType::Wc };
        Plan::new(Step::Stream(Stream::over(Verb::Store, Access::Plain(Width::B64), span)), 16)
    };
    let (mut asked, mut built) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for size in 0..COUNT {
            black_box(predict(card, &black_box(plan(size))));
        }
        asked.push(COUNT as f64 / start.elapsed().as_secs_f64() / 1e6);
        let start = Instant::now();
        for size in 0..COUNT {
            black_box(plan(size));
        }
        built.push(COUNT as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    row("formulas: million predictions per second, plan included", asked);
    row("  baseline: million plans built per second", built);
}

/// Reading the output of `lspci -D -xxxx` of a machine with 500 functions, compared with reading each byte once.
fn inventory() {
    let text = pci_dump::text(&pci_dump::functions(500));
    let (mut read, mut looked_at) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        if black_box(Inventory::from_lspci(black_box(&text), Path::new("dump"))).is_err() {
            return eprintln!("the dump was not read");
        }
        read.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        black_box(black_box(&text).lines().count());
        looked_at.push(start.elapsed().as_secs_f64() * 1e3);
    }
    row("inventory: hex dump of 500 functions (6.8 MB) read, ms", read);
    row("  baseline: its lines counted, ms", looked_at);
}

/// Doctor on the same machine: reading, every check, and the text for a terminal.
fn doctor() {
    let text = pci_dump::text(&pci_dump::functions(500));
    let mut whole = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let Ok(inventory) = Inventory::from_lspci(black_box(&text), Path::new("dump")) else {
            return eprintln!("the dump was not read");
        };
        let diagnosis = diagnose(&inventory, &DiagnosisRequest::default());
        black_box(lanemark_report::diagnosis(&diagnosis, Some(120)));
        whole.push(start.elapsed().as_secs_f64() * 1e3);
    }
    row("doctor: hex dump of 500 functions, read, checked and printed, ms (target: 100)", whole);
}

/// Whole processes: `--help` and the default `bench`, compared with `true`.
fn program() {
    let Some(lanemark) = beside_this_program() else {
        return println!("lanemark is not built: cargo build --release");
    };
    let folder = std::env::temp_dir().join(format!("lanemark-bench-{}", std::process::id()));
    if std::fs::create_dir_all(&folder).is_err() {
        return eprintln!("cannot create {}", folder.display());
    }
    let run = |program: &PathBuf, args: &[&str]| {
        let start = Instant::now();
        let child =
            Command::new(program).args(args).current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null()).status();
        child.is_ok().then(|| start.elapsed().as_secs_f64() * 1e3)
    };
    let nothing = PathBuf::from("true");
    let of = |program: &PathBuf, args: &[&str], rounds| (0..rounds).filter_map(|_| run(program, args)).collect();
    row("lanemark --help, ms", of(&lanemark, &["--help"], 21));
    row("  baseline: true, ms", of(&nothing, &[], 21));
    row("lanemark bench, defaults, ms", of(&lanemark, &["bench"], 3));
    row("lanemark reproduce, ms", of(&lanemark, &["reproduce"], 3));
    if std::fs::remove_dir_all(&folder).is_err() {
        eprintln!("cannot remove {}", folder.display());
    }
}

fn beside_this_program() -> Option<PathBuf> {
    let lanemark = std::env::current_exe().ok()?.with_file_name("lanemark");
    lanemark.is_file().then_some(lanemark)
}

fn row(what: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    match (values.first(), values.last()) {
        (Some(least), Some(most)) => {
            println!("{what:<66} {:>14.2} {least:>10.2} {most:>10.2}", values[values.len() / 2]);
        }
        _ => println!("{what:<66} {:>14}", "none"),
    }
}
