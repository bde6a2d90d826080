//! Conformance of all machines to the `Machine` trait.
//!
//! The test bodies are in `checks/src/conformance`, so that the test guest can run them on a card. Here they run on
//! simulations, formulas and the memory of this machine, and on machines that break each promise.

mod broken;

use lanemark_checks::conformance::{Formulas, Host, Simulation, Subject, held_against};
use lanemark_checks::root;
use lanemark_platform::PRESETS;
use std::process::Command;

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

#[test]
fn a_device_that_a_file_names_is_tested_and_reported() {
    let promises = |file: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_promises"));
        let output = program.arg("dut").arg(root().join(file)).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (status, said, _) = promises("duts/host.toml");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.starts_with("memory of this machine (host), lanemark "), "{said}");
    assert!(said.contains("\nLinux ") && said.ends_with("10 passed, 0 failed\n"), "{said}");
    let (status, _, said) = promises("duts/absent.toml");
    assert!(status == Some(2) && said.contains("absent.toml"), "{said}");
    // No machine for tests has an XDMA core.
    let (status, _, said) = promises("duts/card-xdma.toml");
    assert!(status == Some(2) && said.contains("cannot be opened: /dev/xdma0"), "{said}");
}
