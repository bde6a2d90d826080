//! Sparse matrix-vector products on simulated kernels, compared with a plain loop.

use super::{ROUNDS, row};
use lanemark_compute::{Generated, Spmv, Workload};
use lanemark_machine::{Compute, HostWait, Machine, Plan, Samples};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const CARD: &str = include_str!("../../../../platforms/card-gen5-x16.toml");
/// A section for 32 ports and kernels with plausible numbers.
const KERNELS: &str = r#"
[device_memory]
ports = { value = 32, assumed = "two stacks of memory" }
port_bytes = { value = 32, assumed = "256 bits" }
word_ns = { value = 2.5, assumed = "400 MHz" }
read_ns = { value = 300, assumed = "the order of such memories" }
[kernel]
clock_ghz = { value = 0.3, assumed = "the order of such kernels" }
"#;

/// One kernel with one and with four ports, and eight kernels, on matrices with local and with random columns.
pub fn kernels() {
    let Ok(card) = Platform::parse("kernels.toml", &format!("{CARD}{KERNELS}")) else { return };
    for made in [Generated::Poisson(512), Generated::Random { rows: 100_000, each: 25 }] {
        let matrix = Arc::new(made.matrix());
        let entries = f64::from(matrix.entries());
        let x = vec![1.5; matrix.columns() as usize];
        for (kernels, ports_each) in [(1, 1), (1, 4), (8, 4)] {
            let Ok(mut machine) = SimulatedMachine::new(&card) else { return };
            let Ok(without_path) = SimulatedMachine::new(&card) else { return };
            let mut without_path = without_path.without_path();
            let work = Workload::Spmv(Spmv { matrix: Arc::clone(&matrix), kernels, ports_each });
            let plan = Plan::new(Compute { work, wait: HostWait::Finish }, 1);
            let (mut simulated, mut path_costs, mut by_loop) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let (Some(with), Some(without)) = (seconds(&mut machine, &plan), seconds(&mut without_path, &plan))
                else {
                    return;
                };
                simulated.push(entries / without / 1e6);
                path_costs.push(with / without);
                let start = Instant::now();
                black_box(matrix.times(black_box(&x)));
                by_loop.push(entries / start.elapsed().as_secs_f64() / 1e6);
            }
            row(&format!("kernels: {made}, {kernels} of {ports_each} ports, M non-zeros/s (target: 100)"), simulated);
            row("  critical path: time with it over time without", path_costs);
            row("  baseline: a plain loop over the same matrix", by_loop);
        }
    }
}

/// Time of one run, in seconds; `None` after a message if it fails.
fn seconds(machine: &mut SimulatedMachine, plan: &Plan) -> Option<f64> {
    let start = Instant::now();
    let mut samples = Samples::wanted(1);
    if let Err(error) = machine.run(plan, &mut samples) {
        eprintln!("{error}");
        return None;
    }
    Some(start.elapsed().as_secs_f64())
}
