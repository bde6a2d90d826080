//! Measurements of this machine: copies, core-to-core latency, and the overhead of loops compared with C.

use crate::row;
use lanemark_bench::{Axes, Case, Effort, ask, question};
use lanemark_hw::HostMemory;
use lanemark_machine::{Access, Machine, Plan, Samples, Width};
use lanemark_method::AccessPath;
use lanemark_record::Summary;
use lanemark_units::{Ticks, format_size};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rounds of the copies, which are short and differ little.
const ROUNDS: usize = 21;
/// Fewest bytes of a hot sample.
const HOT_BYTES: u64 = 256 << 10;

/// Prints all rows about the host.
pub fn host() {
    let mut machine = match HostMemory::open() {
        Ok(machine) => machine,
        Err(error) => return println!("the host is not measured: {error}"),
    };
    copies(&mut machine);
    other_core(&mut machine);
    instructions();
}

/// `copy_to_device` compared with the best single routine of each size, hot and cold.
fn copies(machine: &mut HostMemory) {
    let Some(copies) = question("copy_routines") else { return };
    let axes = Axes { sizes: Some((6..=22).map(|bits| 1 << bits).collect()), ..Axes::default() };
    let cases = (copies.cases)(machine.facts(), &axes);
    let mut worst: Option<(f64, String)> = None;
    for is_cold in [false, true] {
        for size in axes.sizes.iter().flatten() {
            let path = if is_cold { AccessPath::ColdCopy } else { AccessPath::HotCopy };
            let of_size = |case: &&Case| case.size == *size && case.path() == Some(path);
            let plans: Vec<(Access, Plan)> = cases
                .iter()
                .filter(of_size)
                .map(|case| {
                    let passes = if is_cold { 1 } else { (HOT_BYTES / size).max(1) };
                    (case.access(), (copies.plan)(case, passes))
                })
                .collect();
            let Some((ratios, best)) = copy_ratios(machine, &plans) else {
                return println!("copy_to_device was not measured");
            };
            let what = format!("{} {}", format_size(*size), if is_cold { "cold" } else { "hot" });
            let median = Summary::of(&ratios).map_or(f64::NAN, |summary| summary.median);
            if worst.as_ref().is_none_or(|worst| median < worst.0) {
                worst = Some((median, what.clone()));
            }
            row(&format!("copy_to_device, relative to the best routine, {what} ({best})"), ratios);
        }
    }
    if let Some((median, what)) = worst {
        row(&format!("  smallest of these medians, at {what}"), vec![median]);
    }
}

/// Our rate relative to the routine with the smallest median time, per round, and the name of that routine.
///
/// The routine is selected in one half of the rounds and compared in the other, which avoids a selection bias.
fn copy_ratios(machine: &mut HostMemory, plans: &[(Access, Plan)]) -> Option<(Vec<f64>, Access)> {
    let mut choosing: Vec<Vec<f64>> = vec![Vec::new(); plans.len()];
    let mut comparing = choosing.clone();
    for round in 0..2 * ROUNDS {
        let times = if round % 2 == 0 { &mut choosing } else { &mut comparing };
        for ((_, plan), times) in plans.iter().zip(times) {
            let mut samples = Samples::wanted(5);
            machine.run(plan, &mut samples).ok()?;
            let delivered: Vec<f64> = samples.taken.iter().map(|sample| sample.delivered.as_ns()).collect();
            times.push(Summary::of(&delivered)?.median);
        }
    }
    let median = |times: &[f64]| Summary::of(times).map_or(f64::INFINITY, |summary| summary.median);
    let ours = plans.iter().position(|plan| plan.0 == Access::CopyToDevice)?;
    let singles = (0..plans.len()).filter(|place| *place != ours);
    let best = singles.min_by(|a, b| median(&choosing[*a]).total_cmp(&median(&choosing[*b])))?;
    let ratios = comparing[best].iter().zip(&comparing[ours]).map(|(single, ours)| single / ours).collect();
    Some((ratios, plans[best].0))
}

/// Core-to-core latency on the idle machine, and with a spinning thread for every core.
fn other_core(machine: &mut HostMemory) {
    let Some(core_to_core) = question("core_to_core") else { return };
    let axes = Axes { accesses: Some(vec![Access::Plain(Width::B8)]), ..Axes::default() };
    let Some(case) = (core_to_core.cases)(machine.facts(), &axes).into_iter().next() else {
        return println!("core_to_core: not measured, the machine has one core");
    };
    let mut rounds = || -> (Vec<f64>, usize) {
        let effort = Effort { budget: Ticks::whole_ns(200_000_000), ..Effort::default() };
        let asked: Vec<_> = (0..ROUNDS).filter_map(|_| ask(core_to_core, machine, &case, &effort).ok()).collect();
        let warned = asked.iter().filter(|answer| !answer.doubts.is_empty()).count();
        (asked.iter().filter_map(|answer| Some(answer.latency_ns?.median)).collect(), warned)
    };
    let (quiet, _) = rounds();
    let is_over = Arc::new(AtomicBool::new(false));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let hogs: Vec<_> = (0..cores)
        .map(|_| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || while !is_over.load(Ordering::Relaxed) {})
        })
        .collect();
    let (hogged, warned) = rounds();
    is_over.store(true, Ordering::Relaxed);
    let ended = hogs.into_iter().flat_map(std::thread::JoinHandle::join).count();
    let ratios = quiet.iter().zip(&hogged).map(|(quiet, hogged)| hogged / quiet).collect();
    row("core_to_core, one line, one-way, ns", quiet);
    row(&format!("  with {ended} threads that load the cores, ns"), hogged);
    row("  loaded relative to idle, times (more than 1.25 needs a warning)", ratios);
    println!("  {warned} of {ROUNDS} answers under load carry a warning");
}

/// Instructions per access of our loops and of the same loops in C, counted in the disassembly.
fn instructions() {
    for (bits, c_type, load) in
        [(32, "uint32_t", false), (64, "uint64_t", false), (32, "uint32_t", true), (64, "uint64_t", true)]
    {
        let what = format!("{} of {} B", if load { "loads" } else { "stores" }, bits / 8);
        let (ours, theirs) = (our_loop(bits / 8, load), c_loop(c_type, load));
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => {
                row(&format!("instructions per access, {what}, counted in the disassembly"), vec![ours]);
                row("  a volatile pointer in C, cc -O2", vec![theirs]);
                row("  extra instructions per access", vec![(ours - theirs).max(0.0)]);
            }
            (None, _) => {
                println!("instructions, {what}: our loop was not found in the disassembly (objdump is needed)");
            }
            (_, None) => {
                println!("instructions, {what}: the loop in C was not compiled or found (cc and objdump are needed)");
            }
        }
    }
}

/// Our loops: the only ones of eight equal back-to-back accesses without other memory accesses.
fn our_loop(bytes: u64, load: bool) -> Option<f64> {
    let this = std::env::current_exe().ok()?;
    let wanted: Vec<u64> = (0..8).map(|nth| nth * bytes).collect();
    let found = loops(&disassembled(&this)?, bytes, load).into_iter().find(|found| found.offsets == wanted)?;
    Some(found.instructions as f64 / 8.0)
}

fn c_loop(c_type: &str, load: bool) -> Option<f64> {
    let folder = std::env::temp_dir().join(format!("lanemark-bench-c-{}", std::process::id()));
    std::fs::create_dir_all(&folder).ok()?;
    let (source, object) = (folder.join("loop.c"), folder.join("loop.o"));
    let body = if load { "(void)at[i];" } else { "at[i] = value;" };
    let text = format!(
        "#include <stddef.h>\n#include <stdint.h>\nvoid walk(volatile {c_type} *at, size_t count, {c_type} value) {{\n\
         (void)value;\nfor (size_t i = 0; i < count; i++) {body}\n}}\n"
    );
    let compiled = std::fs::write(&source, text).is_ok()
        && Command::new("cc").args(["-O2", "-c", "-o"]).arg(&object).arg(&source).status().is_ok_and(|s| s.success());
    let bytes = if c_type == "uint32_t" { 4 } else { 8 };
    let found = compiled.then(|| loops(&disassembled(&object)?, bytes, load).into_iter().next()).flatten();
    if std::fs::remove_dir_all(&folder).is_err() {
        eprintln!("cannot remove {}", folder.display());
    }
    let found = found?;
    Some(found.instructions as f64 / found.offsets.len() as f64)
}

fn disassembled(program: &Path) -> Option<String> {
    let mut command = Command::new("objdump");
    command.args(["-d", "-M", "intel", "--no-show-raw-insn"]).arg(program).stderr(Stdio::null());
    let out = command.output().ok().filter(|out| out.status.success())?;
    String::from_utf8(out.stdout).ok()
}

/// A loop with memory accesses of one kind only.
struct Loop {
    instructions: usize,
    /// Offsets of the accesses from their base register.
    offsets: Vec<u64>,
}

/// All innermost loops of `listing` with accesses of `bytes` in one direction and no others.
fn loops(listing: &str, bytes: u64, load: bool) -> Vec<Loop> {
    let lines: Vec<(u64, &str)> = listing
        .lines()
        .filter_map(|line| {
            let (address, text) = line.trim().split_once(':')?;
            Some((u64::from_str_radix(address, 16).ok()?, text.trim()))
        })
        .collect();
    let mut found = Vec::new();
    for (end, (address, text)) in lines.iter().enumerate() {
        let mut words = text.split_whitespace();
        let is_jump = words.next().is_some_and(|word| word.starts_with('j') && word != "jmp");
        let target = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        let Some(target) = target.filter(|target| is_jump && target < address && address - target < 512) else {
            continue;
        };
        let Some(start) = lines[..end].iter().rposition(|line| line.0 == target) else { continue };
        let body = &lines[start..=end];
        if body[..body.len() - 1].iter().any(|line| line.1.starts_with('j') || line.1.starts_with("call")) {
            continue;
        }
        let touching: Vec<&str> = body
            .iter()
            .map(|line| line.1)
            .filter(|text| text.contains('[') && !text.starts_with("nop") && !text.starts_with("lea"))
            .collect();
        let offsets: Option<Vec<u64>> = touching.iter().map(|text| offset(text, bytes, load)).collect();
        if let Some(offsets) = offsets.filter(|offsets| !offsets.is_empty()) {
            found.push(Loop { instructions: body.len(), offsets });
        }
    }
    found
}

/// Offset from the base register of a `mov` of this width and direction; `None` for other instructions.
fn offset(text: &str, bytes: u64, load: bool) -> Option<u64> {
    let rest = text.strip_prefix("mov ")?.trim();
    let (to, from) = rest.split_once(',')?;
    let memory = if load { from } else { to };
    let size = if bytes == 4 { "DWORD PTR" } else { "QWORD PTR" };
    let inside = memory.trim().strip_prefix(size)?.trim().strip_prefix('[')?.strip_suffix(']')?;
    match inside.split_once("+0x") {
        Some((_, offset)) => u64::from_str_radix(offset, 16).ok(),
        None => Some(0),
    }
}
