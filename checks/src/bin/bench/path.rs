//! The cost of the critical path: the same plans with and without it, in turns, and their instructions.

use super::{ROUNDS, instructions, row};
use lanemark_machine::{Access, Width};
use lanemark_machine::{Machine, Partner, Pattern, Plan, Samples, Span, Step, Stream, Transfer, Verb, Window};
use lanemark_platform::{Platform, preset};
use lanemark_sim::SimulatedMachine;
use lanemark_units::{MemoryType, Ticks};
use std::error::Error;
use std::time::Instant;

/// First argument of the process whose instructions are counted; traffic, `with` or `without`, and a number of
/// iterations follow.
pub const ONCE: &str = "path-once";

/// Bytes of an iteration.
const BYTES: u64 = 1 << 20;
/// Iterations of a plan in time, and of the shorter one under valgrind.
const PASSES: u64 = 200;
const FEW: u64 = 2;

const TRAFFIC: [&str; 3] = ["card reads", "card writes", "WC stores"];

/// Times and instructions, with the path over without it.
pub fn path(card: &Platform) {
    for traffic in TRAFFIC {
        let seconds = |is_left_out: bool| -> Option<f64> {
            let start = Instant::now();
            run(card, traffic, is_left_out, PASSES).ok()?;
            Some(start.elapsed().as_secs_f64())
        };
        let rounds: Option<Vec<f64>> = (0..ROUNDS).map(|_| Some(seconds(false)? / seconds(true)?)).collect();
        match rounds {
            Some(ratios) => row(&format!("critical path: {traffic}, time with it over time without"), ratios),
            None => eprintln!("critical path: {traffic}: the simulator did not run the plan"),
        }
        let counted = |with: &str| instructions::of(&[ONCE, traffic, with], FEW);
        match counted("with").zip(counted("without")) {
            Some((with, without)) => {
                row("  instructions with it over those without (target: 1.15)", vec![with / without]);
            }
            None => println!("  {}", instructions::NOT_COUNTED),
        }
    }
}

/// Instructions per 64 B store of a core's WC stores, each one TLP on one link, with the critical path.
pub fn per_store() -> Option<f64> {
    Some(instructions::of(&[ONCE, "WC stores", "with"], FEW)? / (BYTES / 64) as f64)
}

/// Runs `passes` iterations of one kind of traffic, in a separate process.
///
/// # Errors
/// If the traffic is unknown or cannot be simulated.
pub fn once(traffic: &str, with: &str, passes: u64) -> Result<(), Box<dyn Error>> {
    let card = preset("card-gen5-x16").ok_or("no such card")??;
    run(&card, traffic, with == "without", passes)
}

/// Simulates each transfer, with the critical path or without it.
fn run(card: &Platform, traffic: &str, is_left_out: bool, passes: u64) -> Result<(), Box<dyn Error>> {
    let machine = SimulatedMachine::new(card)?.in_detail();
    let mut machine = if is_left_out { machine.without_path() } else { machine };
    let region = machine.facts().storage().cloned().ok_or("no memory behind a BAR")?;
    let dma = |verb| {
        let window = Window { offset: 0, len: BYTES, pattern: Pattern::Sequential };
        let partner = Partner::Host;
        Plan::new(Transfer { card: 0, verb, partner, bytes: BYTES, count: 1, window, outstanding: None }, passes)
    };
    let plan = match traffic {
        "card reads" => dma(Verb::Load),
        "card writes" => dma(Verb::Store),
        "WC stores" => {
            let span = Span { at: region.at, len: BYTES.min(region.len), memory_type: MemoryType::Wc };
            Plan::new(Step::Stream(Stream::over(Verb::Store, Access::Plain(Width::B64), span)), passes)
        }
        other => return Err(format!("unknown traffic: {other}").into()),
    };
    machine.run(&Plan { timeout: Ticks::whole_ns(100_000_000_000), ..plan }, &mut Samples::wanted(1))?;
    Ok(())
}
