//! Comparison of formula and simulation for many small copies through a runtime, on random platforms with a random runtime.

mod random_platform;

use lanemark_machine::{CopyBy, Machine, Placement, Plan, QueueRequest, QueueWork, Samples, SmallCopies, Verb};
use lanemark_model::predict;
use lanemark_platform::{Origin, Platform, preset};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use random_platform::{Random, platform_with_driver, set};

/// Formula by simulation: no term has the effect of descriptor fetches and data on each other, so a formula may be too
/// low. It adds what further transfers of a stream take to the first, which may be a little too much.
const LEAST: f64 = 0.7;
const MOST: f64 = 1.03;
/// A formula that is as good as the simulation.
const CLOSE: f64 = 0.01;

fn platform(random: &mut Random) -> Platform {
    let mut platform = platform_with_driver(random);
    platform.msi_x = None;
    platform.runtime = preset("card-stratix10mx").unwrap().unwrap().runtime;
    platform.core.cores.value = random.pick(&[1, 2, 7, 64]);
    platform.core.sockets.value = random.pick(&[1, 2]).min(platform.core.cores.value);
    // One below the other: a core may be no less than a step farther than the next.
    set(&mut platform, "root_complex.core_step_ns", random.pick(&[0.0, 0.5, 20.0]));
    set(&mut platform, "root_complex.other_socket_ns", random.pick(&[0.0, 70.0]));
    for (key, least, most) in [
        ("submit_ns", 50.0, 10_000.0),
        ("return_ns", 50.0, 10_000.0),
        ("usm_copy_ns", 1.0, 20_000.0),
        ("copy_entry_ns", 1.0, 500.0),
        ("finish_ns", 1.0, 1000.0),
        ("copy_line_ns", 1.0, 50.0),
        ("kernel_start_ns", 10.0, 20_000.0),
        ("kernel_end_ns", 10.0, 2000.0),
        ("idle_entry_ns", 100.0, 20_000.0),
        ("idle_exit_ns", 1.0, 20_000.0),
    ] {
        let value = random.between(least, most);
        platform = platform.with(&format!("runtime.{key}"), value, Origin::Assumed("random".to_owned())).unwrap();
    }
    set(&mut platform, "runtime.clock_ghz", random.pick(&[0.0, 0.8, 2.0]));
    platform
}

fn asked(random: &mut Random) -> SmallCopies {
    let by = random.pick(&[CopyBy::Loop, CopyBy::Batch, CopyBy::Packed, CopyBy::InPlace]);
    let verb = random.pick(&[Verb::Store, Verb::Load]);
    let bytes = random.pick(&[1, 64, 100, 1000, 4096, 4100, 30_000]);
    SmallCopies { verb, bytes, count: random.pick(&[1, 2, 5, 16, 60]), by }
}

#[test]
fn all_pieces_arrive_and_the_formula_agrees_with_the_simulation() {
    let random = &mut Random(67);
    let mut ratios = Vec::new();
    for number in 0..400 {
        let platform = platform(random);
        let copies = asked(random);
        let core = random.below(u64::from(platform.core.cores.value)) as u32;
        let request = QueueRequest::SmallCopies(copies);
        let work = QueueWork { core, placement: Placement::Pinned, request };
        let timeout = Ticks::whole_ns(1_000_000_000_000);
        let plan = Plan { timeout, warmup_passes: 1, ..Plan::new(work, 1) };
        let said = predict(&platform, &plan).expect("every such request has a formula");
        let mut samples = Samples::wanted(1);
        SimulatedMachine::new(&platform).unwrap().run(&plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
        let confirmed = samples.confirmed.unwrap();
        assert_eq!(confirmed.confirmed_bytes, confirmed.claimed_bytes, "{number}: {copies:?}");
        let simulated = samples.taken[0].delivered.as_ns();
        ratios.push((said.delivered_ns / simulated, number, copies));
    }
    let wrong: Vec<_> = ratios.iter().filter(|(ratio, ..)| !(LEAST..=MOST).contains(ratio)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let exact = ratios.iter().filter(|(ratio, ..)| (ratio - 1.0).abs() < CLOSE).count();
    println!("{exact} of {} formulas within 1 % of the simulation", ratios.len());
    assert!(exact * 10 > ratios.len() * 9, "{exact} of {}", ratios.len());
}

#[test]
fn accesses_through_a_bar_are_refused_with_the_reason() {
    let machine = SimulatedMachine::new(&preset("card-stratix10mx").unwrap().unwrap()).unwrap();
    let copies = |by| SmallCopies { verb: Verb::Store, bytes: 64, count: 2, by };
    let refused = machine.supports(&Plan::new(copies(CopyBy::Stores), 1)).unwrap_err().to_string();
    assert!(refused.contains("use the questions about MMIO"), "{refused}");
    assert_eq!(machine.supports(&Plan::new(copies(CopyBy::Loop), 1)), Ok(()));
}
