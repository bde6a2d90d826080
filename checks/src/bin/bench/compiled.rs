//! Predictions over arrays of numbers, compared with one prediction at a time, and with the same formula in
//! `numpy`.

use super::{instructions, row};
use lanemark_machine::{Access, Plan, Span, Step, Stream, Verb, Width};
use lanemark_model::{Compiled, Predictions, predict};
use lanemark_platform::{Platform, Region, preset};
use lanemark_units::{BarOffset, MemoryType, Ticks};
use lanemark_wire::{Generation, Lanes, tlp_ticks, tlp_wire_bytes};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::hint::black_box;
use std::process::Command;

/// The argument of a process that predicts some arrays, and ends.
pub const ONCE: &str = "--compiled-once";

/// Rounds of a tenth of a second.
const ROUNDS: usize = 11;
/// Rows of the arrays, which do not fit the first-level cache.
const ROWS: usize = 100_000;
/// Arrays of a round.
const ARRAYS: usize = 20;
/// One prediction at a time takes longer.
const ONE_BY_ONE: usize = 20_000;
const LINES: u64 = 64;
const PASSES: u64 = 16;

/// Numbers that vary.
const KEYS: [&str; 3] = ["core.wc_buffers", "link.latency_ns", "link.posted_header_credits"];

/// Their arrays; `checks/numpy/stores.py` has the same.
fn arrays() -> [Vec<f64>; 3] {
    let numbers = |of: fn(usize) -> f64| (0..ROWS).map(of).collect();
    [
        numbers(|row| 4.0 + (row % 32) as f64),
        numbers(|row| 50.0 + (row % 1000) as f64),
        numbers(|row| 8.0 + (row % 100) as f64),
    ]
}

/// Iterations of 64 B write-combining stores over whole lines of a region.
fn plan(region: &Region) -> Plan {
    let at = BarOffset { bar: region.bar.value as u8, offset: region.offset_bytes.value };
    let span = Span { at, len: 64 * LINES, memory_type: MemoryType::Wc };
    Plan::new(Step::Stream(Stream::over(Verb::Store, Access::Plain(Width::B64), span)), PASSES)
}

/// Processor time of this process, which other work on the machine does not add to.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Predictions per second of processor time, and instructions of each.
pub fn compiled(card: &Platform) {
    let Some(region) = card.region("memory") else { return };
    let plan = plan(region);
    let arrays = arrays();
    let [buffers, latency, headers] = &arrays;
    let compiled = match Compiled::of(card, &plan, &KEYS) {
        Ok(compiled) => compiled,
        Err(error) => return eprintln!("compiled: {error}"),
    };
    let (mut over_arrays, mut one_by_one, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut predictions = Predictions::default();
    for _ in 0..ROUNDS {
        let start = cpu_s();
        for _ in 0..ARRAYS {
            if let Err(error) = compiled.predict(black_box(&[buffers, latency, headers]), &mut predictions) {
                return eprintln!("compiled: {error}");
            }
        }
        let compiled_per_s = (ARRAYS * ROWS) as f64 / (cpu_s() - start);
        let mut varied = card.clone();
        let start = cpu_s();
        for row in 0..ONE_BY_ONE {
            varied.core.wc_buffers.value = buffers[row] as u32;
            varied.link.latency_ns.value = Ticks::whole_ns(latency[row] as u64);
            varied.link.posted_header_credits.value = headers[row] as u32;
            black_box(predict(black_box(&varied), &plan));
        }
        let loop_per_s = ONE_BY_ONE as f64 / (cpu_s() - start);
        over_arrays.push(compiled_per_s / 1e6);
        one_by_one.push(loop_per_s / 1e6);
        ratios.push(compiled_per_s / loop_per_s);
    }
    row("compiled: million predictions per second of processor time (target: 40)", over_arrays);
    match instructions::of(&[ONCE], 2) {
        Some(counted) => row("  instructions per prediction, with bound and lead", vec![counted / ROWS as f64]),
        None => println!("  {}", instructions::NOT_COUNTED),
    }
    row("  baseline: predict in a loop, million per second", one_by_one);
    row("  over the loop, times", ratios);
    match numpy(card, region) {
        Ok((rates, sum)) => {
            row("  baseline: NumPy, times only, million per second", rates);
            let ours: f64 = predictions.delivered_ns.iter().sum();
            if (ours / sum - 1.0).abs() > 1e-12 {
                println!("  NumPy computes something else: {sum} ns instead of {ours} ns in all");
            }
        }
        Err(because) => println!("  skipped: NumPy, {because}"),
    }
}

/// Predicts the arrays `count` times, in a process of its own.
///
/// # Errors
/// If the plan cannot be prepared.
pub fn once(count: u64) -> Result<(), Box<dyn Error>> {
    let card = preset("card-gen5-x16").ok_or("no such card")??;
    let plan = plan(card.region("memory").ok_or("no memory behind a BAR")?);
    let [buffers, latency, headers] = &arrays();
    let compiled = Compiled::of(&card, &plan, &KEYS)?;
    let mut predictions = Predictions::default();
    for _ in 0..count {
        compiled.predict(&[buffers, latency, headers], &mut predictions)?;
    }
    Ok(())
}

/// Million predictions per second in `numpy`, of each round, and the sum of all times.
fn numpy(card: &Platform, region: &Region) -> Result<(Vec<f64>, f64), String> {
    let link = &card.link;
    let generation = Generation::from_number(link.generation.value as u8).ok_or("because of its link")?;
    let lanes = Lanes::new(link.width_lanes.value as u8).ok_or("because of its link")?;
    let bar = card.bar(region.bar.value as u8).ok_or("because of its BAR")?;
    let header_dw = if bar.address_bytes.value + region.offset_bytes.value >= 1 << 32 { 4 } else { 3 };
    let bytes = tlp_wire_bytes(generation, header_dw, 64, false);
    let beats = 64_u64.div_ceil(u64::from(region.beat_bytes.value));
    let cycle = Ticks::from_ns(1.0 / card.core.clock_ghz.value).map_err(|error| error.to_string())?;
    let arguments = [
        ("rows", ROWS as f64),
        ("rounds", ROUNDS as f64),
        ("step", cycle.as_ns()),
        ("round_trip", card.root_complex.core_round_trip_ns.value.as_ns()),
        ("store_buffer", f64::from(card.core.store_buffer_entries.value)),
        ("serialise", tlp_ticks(generation, lanes, bytes).as_ns()),
        ("device", beats as f64 * region.beat_ns.value.as_ns()),
        ("ingress", card.endpoint.ingress_ns.value.as_ns()),
        ("dllp", tlp_ticks(generation, lanes, u32::from(generation.rate().dllp_bytes)).as_ns()),
        ("by_data", f64::from(link.posted_data_credits.value / 4)),
        ("lines", LINES as f64),
        ("passes", PASSES as f64),
    ];
    let run = concat!(env!("CARGO_MANIFEST_DIR"), "/numpy/run");
    let output = Command::new(run)
        .args(arguments.map(|(key, number)| format!("{key}={number:?}")))
        .output()
        .map_err(|error| format!("because {run} cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let after = |name: &str| -> Vec<f64> {
        text.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok()).collect()
    };
    if let Some(sum) = after("sum ").first().filter(|_| output.status.success()) {
        return Ok((after("per_s ").iter().map(|rate| rate / 1e6).collect(), *sum));
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("because {run} said: {}", error.lines().last().unwrap_or("nothing")))
}
