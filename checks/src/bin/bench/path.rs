//! The cost of the critical path: the same plans with and without it, in turns.

use super::{ROUNDS, row};
use lanemark_machine::{Access, Width};
use lanemark_machine::{Machine, Partner, Pattern, Plan, Samples, Span, Step, Stream, Transfer, Verb, Window};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;
use lanemark_units::{MemoryType, Ticks};
use std::time::Instant;

/// Bytes of an iteration.
const BYTES: u64 = 1 << 20;
/// Iterations of a DMA plan, and of stores by a core.
const PASSES: u64 = 200;

/// Card reads and writes, and write-combining stores, each transfer simulated.
pub fn path(card: &Platform) {
    let Ok(machine) = SimulatedMachine::new(card) else { return };
    let Some(region) = machine.facts().storage().cloned() else { return };
    let dma = |verb| {
        let window = Window { offset: 0, len: BYTES, pattern: Pattern::Sequential };
        Plan::new(
            Transfer { card: 0, verb, partner: Partner::Host, bytes: BYTES, count: 1, window, outstanding: None },
            PASSES,
        )
    };
    let span = Span { at: region.at, len: BYTES.min(region.len), memory_type: MemoryType::Wc };
    let stores = Plan::new(Step::Stream(Stream::over(Verb::Store, Access::Plain(Width::B64), span)), PASSES);
    for (what, plan) in [
        ("critical path: card reads, time with it over time without", dma(Verb::Load)),
        ("critical path: card writes, time with it over time without", dma(Verb::Store)),
        ("critical path: WC stores, time with it over time without", stores),
    ] {
        let plan = Plan { timeout: Ticks::whole_ns(100_000_000_000), ..plan };
        let seconds = |is_left_out: bool| -> Option<f64> {
            let machine = SimulatedMachine::new(card).ok()?.in_detail();
            let mut machine = if is_left_out { machine.without_path() } else { machine };
            let start = Instant::now();
            machine.run(&plan, &mut Samples::wanted(1)).ok()?;
            Some(start.elapsed().as_secs_f64())
        };
        let rounds: Option<Vec<f64>> = (0..ROUNDS).map(|_| Some(seconds(false)? / seconds(true)?)).collect();
        match rounds {
            Some(ratios) => row(what, ratios),
            None => eprintln!("{what}: the simulator did not run the plan"),
        }
    }
}
