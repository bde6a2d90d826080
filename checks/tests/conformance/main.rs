//! Conformance of all machines to the `Machine` trait.
//!
//! The test bodies are in `checks/src/conformance`, so that the test guest can run them on a card. Here they run on
//! simulations, formulas and the memory of this machine, and on machines that break each promise.

mod broken;

use lanemark_checks::conformance::{Formulas, Host, Simulation, Subject, held_against};
use lanemark_platform::PRESETS;

fn keeps_every_promise(subject: &dyn Subject) {
    let verdicts = held_against(subject);
    let broken: Vec<String> = verdicts
        .into_iter()
        .filter_map(|verdict| verdict.broken.map(|why| format!("{}: {why}", verdict.promise)))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_simulated_platform_keeps_every_promise() {
    for preset in PRESETS {
        keeps_every_promise(&Simulation(preset.name));
    }
}

#[test]
fn formulas_keep_every_promise_without_samples() {
    for preset in PRESETS {
        keeps_every_promise(&Formulas(preset.name));
    }
}

#[test]
fn the_memory_of_this_machine_keeps_every_promise() {
    keeps_every_promise(&Host);
}
