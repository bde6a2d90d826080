//! Stores with any instruction, memory type and odd size stay below their limit, and all their bytes leave in their
//! iteration.

use lanemark_bench::{Axes, BenchError, Effort, ask, question};
use lanemark_machine::{Machine, MachineError};
use lanemark_platform::preset;
use lanemark_sim::SimulatedMachine;

/// Sizes that are no multiple of a line; non-temporal stores of 100 B to WT memory once exceeded the limit.
const SIZES: [u64; 5] = [1, 65, 96, 100, 130];

#[test]
fn stores_of_odd_sizes_stay_below_their_limit() {
    let question = question("mmio_write_bandwidth").unwrap();
    let mut asked = 0;
    for name in ["tacc-stratix4", "card-gen5-x16"] {
        let platform = preset(name).unwrap().unwrap();
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let facts = machine.facts().clone();
        let region = facts.storage().unwrap().name.clone();
        let axes = Axes { sizes: Some(SIZES.to_vec()), alignments: Some(vec![0, 16]), ..Axes::default() };
        for case in (question.cases)(&facts, &axes) {
            let answer = match ask(question, &mut machine, &case, &Effort::default()) {
                Ok(answer) => answer,
                Err(BenchError::Machine(MachineError::Unsupported(_))) => continue,
                Err(error) => panic!("{error}"),
            };
            let about = format!("{name}, {}, {} B", answer.method, case.size);
            let limit = lanemark_model::ceiling(&platform, &region, case.verb(), case.size).unwrap().rate.bytes_per_s();
            let rate = answer.delivered_rate_bytes_per_s.unwrap().median;
            assert!(rate <= limit * (1.0 + 1e-9), "{about}: {rate} of {limit}");
            let carried = answer.tlps.unwrap().payload_bytes;
            assert!(carried >= case.size * answer.passes, "{about}: {carried} of {} passes", answer.passes);
            asked += 1;
        }
    }
    assert!(asked > 200, "{asked}");
}
