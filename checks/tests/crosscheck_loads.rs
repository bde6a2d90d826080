//! Comparison of formulas and simulation for loads of lines in memory or in another core's cache; both refuse the same cases.

mod random_platform;

use lanemark_machine::{Cause, LineSource, Machine, Operation, Plan, Samples};
use lanemark_model::predict;
use lanemark_platform::{Platform, preset};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use random_platform::set;

const KEYS: [(LineSource, &str); 4] = [
    (LineSource::Memory, "core.memory_load_ns"),
    (LineSource::RemoteMemory, "core.remote_memory_load_ns"),
    (LineSource::Core, "core.cache_to_cache_ns"),
    (LineSource::RemoteCore, "core.remote_core_load_ns"),
];
/// Smallest value above 0.
const TICK_NS: f64 = 1.0 / 4096.0;

fn card() -> Platform {
    preset("card-gen5-x16").unwrap().unwrap()
}

fn plan(holder: LineSource, passes: u64) -> Plan {
    Plan::new(Operation::LineLoad(holder), passes)
}

/// Time of `passes` loads, which simulation and formula must agree on.
fn takes(platform: &Platform, holder: LineSource, passes: u64) -> Ticks {
    let (plan, mut samples) = (plan(holder, passes), Samples::wanted(1));
    SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap();
    let sample = &samples.taken[0];
    let formula = Ticks::from_ns(predict(platform, &plan).unwrap().delivered_ns).unwrap();
    assert_eq!((sample.issue, sample.delivered), (formula, formula), "{holder}");
    let waited: Vec<(Cause, Ticks)> = samples.waits.iter().map(|wait| (wait.cause, wait.span)).collect();
    assert_eq!(waited, [(Cause::ReadRoundTrip, formula)], "{holder}");
    formula
}

#[test]
fn a_load_takes_the_time_of_the_key_for_its_source_only() {
    let mut platform = card();
    for ((_, key), ns) in KEYS.iter().zip([80.25, 140.5, 45.75, 120.0]) {
        set(&mut platform, key, ns);
    }
    for ((holder, _), ns) in KEYS.iter().zip([80.25, 140.5, 45.75, 120.0]) {
        for passes in [1, 3, 8] {
            assert_eq!(takes(&platform, *holder, passes), Ticks::from_ns(ns * passes as f64).unwrap(), "{holder}");
        }
    }
}

#[test]
fn unknown_latencies_are_refused_by_machine_and_formula_with_the_key() {
    for (holder, key) in KEYS {
        let mut platform = card();
        let machine = SimulatedMachine::new(&platform).unwrap();
        let refused = machine.supports(&plan(holder, 1)).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("a load from {holder}")) && refused.contains(&format!("{key} is 0")),
            "{refused}"
        );
        assert!(machine.facts().line_sources.is_empty() && predict(&platform, &plan(holder, 1)).is_none());
        set(&mut platform, key, TICK_NS);
        assert_eq!(SimulatedMachine::new(&platform).unwrap().facts().line_sources, [holder]);
        assert_eq!(takes(&platform, holder, 1), Ticks(1));
    }
}

#[test]
fn memory_latency_of_the_coherence_section_is_the_fallback() {
    let mut soc = preset("soc-noncoherent").unwrap().unwrap();
    assert_eq!(takes(&soc, LineSource::Memory, 1), Ticks::whole_ns(130));
    set(&mut soc, "coherence.read_ns", 99.0);
    assert_eq!(takes(&soc, LineSource::Memory, 1), Ticks::whole_ns(99));
    set(&mut soc, "core.memory_load_ns", 77.0);
    assert_eq!(takes(&soc, LineSource::Memory, 1), Ticks::whole_ns(77));
}
