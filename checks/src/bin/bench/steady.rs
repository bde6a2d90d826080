//! Time and memory of long runs with steady-state fast-forward.

use super::{ROUNDS, row};
use lanemark_machine::{Machine, Partner, Pattern, Plan, Samples, Steady, Transfer, Verb, Window};
use lanemark_platform::{Platform, preset};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use std::time::Instant;

/// Transfers of 128 B in 1 TiB.
const TRANSFERS: u64 = 1 << 33;
/// Transfers that are simulated one by one for comparison.
const DETAILED: u64 = 1 << 20;

/// 1 TiB of writes of 128 B through the Virtex-7 tree, compared with an extrapolated full simulation.
pub fn steady() {
    let Some(Ok(rosta)) = preset("rosta-virtex7") else { return eprintln!("the preset rosta-virtex7 is invalid") };
    for (what, card) in [("by a switch", 1), ("by three switches and two clocks of SKP", 4)] {
        let (mut seconds, mut detailed, mut skipped) = (Vec::new(), Vec::new(), None);
        for _ in 0..ROUNDS {
            let Some((taken, steady)) = run(&rosta, card, TRANSFERS, true) else { return };
            seconds.push(taken);
            skipped = steady;
            let Some((taken, _)) = run(&rosta, card, DETAILED, false) else { return };
            detailed.push(taken * (TRANSFERS / DETAILED) as f64 / 3600.0);
        }
        row(&format!("steady: 1 TiB of 128 B writes to a peer, {what}, s"), seconds);
        row("  baseline: simulated one by one, hours (from 1/8192 of it)", detailed);
        if let Some(Steady { transfers, skipped, period, .. }) = skipped {
            println!(
                "  simulated one by one: {} of {transfers} transfers; the period is {period}",
                transfers - skipped
            );
        }
        if let Some(mebibytes) = most_memory() {
            row("  most memory of this program so far, MiB (target: 200)", vec![mebibytes]);
        }
    }
}

/// Elapsed seconds, and the skipped transfers.
fn run(platform: &Platform, to: u32, count: u64, skips: bool) -> Option<(f64, Option<Steady>)> {
    let window = Window { offset: 8 << 20, len: 4 << 20, pattern: Pattern::Sequential };
    let partner = Partner::Peer { card: to, bar: 0 };
    let transfer = Transfer { card: 0, verb: Verb::Store, partner, bytes: 128, count, window, outstanding: None };
    let plan = Plan { timeout: Ticks::whole_ns(1 << 45), ..Plan::new(transfer, 1) };
    let start = Instant::now();
    let machine = SimulatedMachine::new(platform).ok()?;
    let mut machine = if skips { machine } else { machine.in_detail() };
    let mut samples = Samples::wanted(1);
    if let Err(error) = machine.run(&plan, &mut samples) {
        eprintln!("{error}");
        return None;
    }
    Some((start.elapsed().as_secs_f64(), samples.steady))
}

/// Peak memory of this process in MiB; `None` if the kernel does not report it.
fn most_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
}
