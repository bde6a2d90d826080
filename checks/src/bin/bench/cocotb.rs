//! Writes over one link, compared with cocotbext-pcie, which simulates TLPs, credits and DLLPs in Python.

use super::{ROUNDS, row};
use lanemark_platform::{Origin, Platform};
use lanemark_sim::{Board, CardIndex};
use lanemark_units::Ticks;
use std::process::Command;
use std::time::Instant;

/// Our number of writes; `checks/cocotb/writes.py` sets that of cocotbext-pcie.
const WRITES: u64 = 1_000_000;
/// Writes outstanding at the root.
const TOGETHER: u64 = 1000;
const BYTES: usize = 64;

/// 64 B writes from the root to a card on Gen3 x8, in alternating rounds as far as a single process permits.
pub fn cocotb(card: &Platform) {
    let with = |platform: Platform, key, value| platform.with(key, value, Origin::Assumed("bench".to_owned()));
    let platform = with(card.clone(), "link.generation", 3.0).and_then(|card| with(card, "link.width_lanes", 8.0));
    let platform = match platform {
        Ok(platform) => platform,
        Err(error) => return eprintln!("cocotb: {error}"),
    };
    let ours: Option<Vec<f64>> = (0..ROUNDS).map(|_| writes_per_s(&platform)).collect();
    let Some(ours) = ours else { return eprintln!("cocotb: the simulated card did not receive every write") };
    let median = |mut rates: Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    };
    row("cocotb: 64 B writes over one Gen3 x8 link, thousand per second", ours.iter().map(|rate| rate / 1e3).collect());
    let theirs = match theirs() {
        Ok(theirs) => theirs,
        Err(because) => return println!("  skipped: cocotbext-pcie, {because}"),
    };
    row("  baseline: cocotbext-pcie 0.2.16", theirs.iter().map(|rate| rate / 1e3).collect());
    if let (Some(ours), Some(theirs)) = (median(ours), median(theirs)) {
        row("  over the baseline, times, of the medians (target: 1000)", vec![ours / theirs]);
    }
}

/// 64 B writes per second of elapsed time, simulated on this platform; `None` if not all arrived.
pub fn writes_per_s(platform: &Platform) -> Option<f64> {
    let region = platform.region("memory")?;
    let address = platform.bar(u8::try_from(region.bar.value).ok()?)?.address_bytes.value + region.offset_bytes.value;
    let mut board = Board::new(platform).ok()?;
    let data = [0xA5; BYTES];
    let start = Instant::now();
    for number in 0..WRITES {
        board.inject_write(Ticks::ZERO, address + number * BYTES as u64 % (1 << 20), &data);
        if number % TOGETHER == TOGETHER - 1 {
            while board.step() {}
        }
    }
    let rate = WRITES as f64 / start.elapsed().as_secs_f64();
    (board.crossed(CardIndex(0)).0.writes == WRITES && board.lost() == 0).then_some(rate)
}

/// Writes per second, of each round.
fn theirs() -> Result<Vec<f64>, String> {
    let run = concat!(env!("CARGO_MANIFEST_DIR"), "/cocotb/run");
    let output = Command::new(run).output().map_err(|error| format!("because {run} cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rates: Vec<f64> =
        text.lines().filter_map(|line| line.strip_prefix("writes_per_s ")?.trim().parse().ok()).collect();
    if !output.status.success() || rates.is_empty() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("because {run} said: {}", error.lines().last().unwrap_or("nothing")));
    }
    Ok(rates)
}
