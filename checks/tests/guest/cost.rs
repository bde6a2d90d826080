//! Costs of our own code in instructions: the clock of this guest counts them, and times mean nothing here.

use crate::dma;
use crate::guest::Guest;
use crate::sharing::{Guests, Lent};
use lanemark_checks::root;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// ns of the guest's clock for each instruction: `-icount shift=6` of [`dma`]'s guest.
const INSTRUCTION_NS: f64 = 64.0;

/// The storage card of that guest.
const STORAGE: &str = "0000:02:00.0";

/// A guest for these tests, with the instructions of usual processors and kernels.
fn shared() -> Lent {
    static GUESTS: Guests =
        Guests::new(|| dma::boot_on(&["-cpu max,+invtsc,x-force-features=on"], "mitigations=auto", &[bare()]));
    GUESTS.lend()
}

/// The C program that makes the same accesses without Lanemark.
fn bare() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare");
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O2"]).arg(root().join("checks/guest/bare.c"));
        let done = cc.arg("-o").arg(&program).output().expect("cc");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        program
    })
}

/// Prints a figure, if this run is for figures: then it has the optimised program.
fn row(what: &str, value: f64) {
    if std::env::var_os("LANEMARK_PROGRAM").is_some() {
        println!("{what:<96} {value:>10.3}");
    }
}

/// Instructions of the bare program for each access.
fn by_bare(guest: &mut Guest, arguments: &str) -> f64 {
    let said = guest.expect(&format!("bare {arguments}"));
    said.trim().parse::<f64>().unwrap_or_else(|error| panic!("{said}: {error}")) / INSTRUCTION_NS
}

/// Instructions of the median sample of each answer, by method.
fn instructions(guest: &mut Guest, arguments: &str) -> Vec<(String, f64)> {
    guest.expect(&format!("lanemark bench {arguments} --record it.json"));
    let record: Value = serde_json::from_str(&guest.expect("cat it.json")).unwrap();
    let answers = record["answers"].as_array().unwrap();
    assert!(!answers.is_empty(), "{}", record["skipped"]);
    let of = |answer: &Value| {
        let mut samples: Vec<f64> =
            answer["samples_ns"].as_array().unwrap().iter().map(|sample| sample.as_f64().unwrap()).collect();
        samples.sort_by(f64::total_cmp);
        let method = format!("{} {}", answer["question"].as_str().unwrap(), answer["method"]);
        (method, samples[samples.len() / 2] / INSTRUCTION_NS)
    };
    answers.iter().map(of).collect()
}

pub fn the_ranges_strategy_adds_few_instructions_to_the_two_system_calls_of_a_mapping() {
    let mut guest = shared();
    let asked = format!("--on {STORAGE} --bind vfio-pci --question dma_map_cost --sizes 4KiB");
    let all = instructions(&mut guest, &asked);
    guest.expect(&format!("echo 1 >/sys/bus/pci/devices/{STORAGE}/enable"));
    let of = |strategy: &str| {
        let found = all.iter().find(|(method, _)| method.contains(&format!("\"{strategy}\"")));
        found.unwrap_or_else(|| panic!("{strategy}: {all:?}")).1
    };
    let calls = of("fixed_address");
    row("map + unmap of a page over VFIO, two system calls, instructions with those of the kernel", calls);
    for strategy in ["ranges", "magazine", "sequential", "baseline_free_list"] {
        row(&format!("  by {strategy}, over the calls alone (target: 1.02)"), of(strategy) / calls);
    }
    let added = of("ranges") - calls;
    assert!(added > 0.0 && added < 500.0, "the strategy ranges adds {added} instructions to {calls}");
}

pub fn loops_of_loads_and_stores_have_the_same_instructions_behind_every_driver() {
    let mut guest = shared();
    let asked =
        "--bar 2:0..4KiB --question mmio_read_bandwidth,mmio_write_bandwidth --access 8 --memory-type uc --sizes 4KiB";
    let device = format!("/sys/bus/pci/devices/{STORAGE}");
    let each = |(method, instructions): (String, f64)| {
        // A timestamp and the load that proves delivery are in each sample.
        (method, (instructions / 512.0 * 10.0).round() / 10.0)
    };
    let mut by_driver = Vec::new();
    for driver in ["", "--bind vfio-pci", "--bind lanemark"] {
        guest.expect(&format!("echo 1 >{device}/enable"));
        let found = instructions(&mut guest, &format!("--on {STORAGE} {driver} {asked}"));
        assert_eq!(found.len(), 2, "{found:?}");
        by_driver.push(found.into_iter().map(each).collect::<Vec<_>>());
    }
    guest.expect(&format!("echo 1 >{device}/enable"));
    let [load, store] = ["load", "store"].map(|way| by_bare(&mut guest, &format!("{way} {device}/resource2")));
    let [(_, loads), (_, stores)] = &by_driver[0][..] else { panic!("{by_driver:?}") };
    row("a load of 8 B from a BAR, sysfs, VFIO or our module, instructions", *loads);
    row("  baseline: the same loop in C, with the page mapped from sysfs", load);
    row("a store of 8 B to a BAR, sysfs, VFIO or our module, instructions", *stores);
    row("  baseline: the same loop in C", store);
    assert!(by_driver.iter().all(|found| *found == by_driver[0]), "{by_driver:?}");
    assert!(*loads <= load && *stores <= store, "C has {load} and {store}: {by_driver:?}");
}
