//! Comparison of formulas and simulation for buffers shared by a core and a device, on platforms with random `[coherence]`
//! numbers. Every discipline agrees to the tick; none has only a bound.

mod random_platform;

use lanemark_machine::{BufferHandoff, Discipline, Machine, Plan, Samples, Verb};
use lanemark_model::{Bound, predict};
use lanemark_platform::{Coherence, PRESETS, Platform};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use random_platform::{Random, set};

fn platform(random: &mut Random) -> Platform {
    let preset = PRESETS.iter().find(|preset| preset.name == "soc-noncoherent").unwrap();
    let flush = random.pick(&["clflush", "clflushopt", "clwb"]);
    let own = format!("[coherence]\nflush = {{ value = \"{flush}\", assumed = \"random\" }}\n");
    let text = preset.text.replacen("[coherence]\n", &own, 1);
    let mut platform = Platform::parse(preset.name, &text).unwrap_or_else(|error| panic!("{error}"));
    for key in ["read_ns", "write_ns", "flush_line_ns", "purge_line_ns"] {
        // Some platforms have memory that takes no time, or less than a store.
        let most = random.pick(&[0.0, 0.5, 5.0, 50.0, 500.0]);
        set(&mut platform, &format!("coherence.{key}"), (random.between(0.0, most) * 8.0).round() / 8.0);
    }
    let numbers: [(&str, &[f64]); 8] = [
        ("coherence.flushes_in_flight", &[1.0, 2.0, 5.0, 32.0]),
        ("core.fill_buffers", &[1.0, 2.0, 6.0, 16.0]),
        ("core.wc_buffers", &[1.0, 2.0, 6.0, 16.0]),
        ("core.wc_loads_in_flight", &[1.0, 2.0, 7.0]),
        ("core.clock_ghz", &[0.7, 1.5, 3.3]),
        ("core.store_loop_cycles", &[0.5, 1.0, 3.0]),
        ("core.cached_load_ns", &[0.0, 1.7, 9.0]),
        ("core.mfence_ns", &[0.0, 12.0, 300.0]),
    ];
    for (key, values) in numbers {
        set(&mut platform, key, random.pick(values));
    }
    platform
}

/// The random numbers of the section, for messages.
fn numbers(platform: &Platform) -> String {
    let keys = Coherence::KEYS.iter().map(|key| {
        let number = platform.number(&format!("coherence.{}", key.name));
        format!("{} {}", key.name, number.map_or(f64::NAN, |number| number.0))
    });
    keys.collect::<Vec<_>>().join(", ")
}

fn plan(shared: BufferHandoff, passes: u64) -> Plan {
    Plan { warmup_passes: 1, ..Plan::new(shared, passes) }
}

#[test]
fn every_discipline_matches_its_formula_to_the_tick() {
    let mut random = Random(71);
    let (mut asked, mut bounds) = (0, Vec::new());
    for number in 0..400 {
        let platform = platform(&mut random);
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        // All on one machine: a run must not depend on the one before.
        for discipline in machine.facts().disciplines.clone() {
            for verb in [Verb::Store, Verb::Load] {
                let bytes = 64 * random.pick(&[1, 2, 3, 7, 64, 65, 200]);
                let shared = BufferHandoff { verb, discipline, bytes };
                if shared.check().is_err() {
                    continue;
                }
                let plan = plan(shared, 1 + random.below(3));
                let said = predict(&platform, &plan).unwrap();
                let mut samples = Samples::wanted(2);
                machine.run(&plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
                for sample in &samples.taken {
                    let ticks = Ticks::from_ns(said.delivered_ns).unwrap();
                    assert_eq!(
                        (sample.issue, sample.delivered),
                        (ticks, ticks),
                        "case {number}: {said:?}: {shared:?}, {} passes, {}",
                        plan.passes,
                        numbers(&platform)
                    );
                }
                asked += 1;
                if !bounds.contains(&said.bound) {
                    bounds.push(said.bound);
                }
            }
        }
    }
    assert!(asked > 400 * 12, "{asked}");
    let all = [Bound::Issue, Bound::Buffers, Bound::Flush, Bound::StrongOrdering, Bound::ReadRoundTrip, Bound::Fence];
    assert!(all.iter().all(|bound| bounds.contains(bound)), "{bounds:?}");
}

#[test]
fn the_formula_needs_a_warmup_iteration_to_know_the_cache_state() {
    let platform = platform(&mut Random(73));
    for verb in [Verb::Store, Verb::Load] {
        let shared = BufferHandoff { verb, discipline: Discipline::Coherent, bytes: 4096 };
        let cold = Plan { warmup_passes: 0, ..plan(shared, 1) };
        assert_eq!(predict(&platform, &cold).is_some(), shared.finds_written_lines(), "{verb:?}");
    }
}

#[test]
fn unsupported_disciplines_are_refused_by_machine_and_formula() {
    let mut random = Random(79);
    let picked = platform(&mut random);
    let said = |platform: &Platform, shared: BufferHandoff| {
        let machine = SimulatedMachine::new(platform).unwrap();
        let refused = machine.supports(&plan(shared, 1)).err().map(|error| error.to_string());
        assert_eq!(refused.is_none(), predict(platform, &plan(shared, 1)).is_some(), "{shared:?}");
        refused.unwrap_or_default()
    };
    for discipline in Discipline::ALL {
        let line = BufferHandoff { verb: Verb::Store, discipline, bytes: 64 };
        said(&picked, line);
        assert!(said(&picked, BufferHandoff { bytes: 63, ..line }).contains("whole lines"));
        let unknown = Platform { coherence: None, ..picked.clone() };
        assert!(said(&unknown, line).contains("no section [coherence]"));
    }
}
