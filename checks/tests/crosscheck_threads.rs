//! Comparison of bound and simulation for several threads that call the driver of one card, each on its own channel. The
//! simulation is never faster than the bound, and close to it where a shared resource clearly leads.

mod random_platform;

use lanemark_machine::{
    Completion, Descriptors, DmaCall, Lane, Machine, Partner, Plan, Samples, Share, Transfer, Verb, Window,
};
use lanemark_model::{Bound, Prediction, predict};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;
use lanemark_units::MemoryType;
use random_platform::{Random, platform_with_driver, set, transfer};

/// Relative rounding error of the simulation.
const ROUNDING: f64 = 0.001;
/// Ratio of the shared bound to the time of a single thread from which it clearly leads.
const CLEAR: f64 = 1.25;
/// With a leading bound, the largest relative gap, plus the time of one small call.
const AGREE: f64 = 0.02;

/// A random card with four channels, and four cores.
fn card(random: &mut Random) -> Platform {
    let mut platform = platform_with_driver(random);
    platform.link.generation.value = platform.link.generation.value.min(5);
    set(&mut platform, "core.cores", 4.0);
    set(&mut platform, "dma.channels", 4.0);
    // With partial lines few bounds lead; `crosscheck_transfers` compares them.
    set(&mut platform, "memory.partial_line_ns", 0.0);
    platform
}

/// The same call on each channel, each with its own part of the mapped memory.
fn calls(random: &mut Random, cards: u32) -> Vec<DmaCall> {
    let (picked, _) = transfer(random, cards);
    let verb = random.pick(&[Verb::Store, Verb::Load]);
    let share = random.pick(&[Share::Call, Share::List, Share::Doorbell]);
    let uc = Descriptors::Written(MemoryType::Uc);
    let descriptors = random.pick(&[uc, Descriptors::Written(MemoryType::Wc), Descriptors::Fetched]);
    let completion = random.pick(&[Completion::Flag, Completion::Interrupt]);
    let (threads, count) = (2 + random.below(3) as u32, random.pick(&[1, 1, 3]));
    let part = 1 << 20;
    let of = |channel: u32| {
        let window = Window { offset: u64::from(channel) * part, len: part, ..picked.window };
        let transfer = Transfer { verb, partner: Partner::Host, outstanding: None, window, count, ..picked };
        DmaCall { transfer, channel, share, descriptors, completion }
    };
    (0..threads).map(of).collect()
}

fn plan(calls: &[DmaCall]) -> Plan {
    let lanes = calls.iter().zip(0..).map(|(call, core)| Lane { core, task: (*call).into() });
    Plan::new(lanes.collect::<Vec<Lane>>(), 1)
}

fn ask(platform: &Platform, calls: &[DmaCall]) -> (f64, Option<Prediction>) {
    let (plan, mut samples) = (plan(calls), Samples::wanted(1));
    SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    (samples.taken[0].delivered.as_ns(), predict(platform, &plan))
}

#[test]
fn threads_are_never_faster_than_the_bound_and_close_to_it_under_contention() {
    let mut random = Random(41);
    let (mut asked, mut clear, mut failures) = (0, 0, Vec::new());
    for number in 0..1500 {
        let platform = card(&mut random);
        let calls = calls(&mut random, platform.cards());
        let (simulated, said) = ask(&platform, &calls);
        let Some(said) = said else { continue };
        asked += 1;
        let what = format!("case {number}: {} threads, {:?} on {}", calls.len(), calls[0], platform.name);
        if simulated < said.delivered_ns * (1.0 - ROUNDING) {
            failures.push(format!("{what}: {simulated} is faster than {said:?}"));
        }
        if said.lead < CLEAR {
            continue;
        }
        assert!(matches!(said.bound, Bound::Link | Bound::Engine | Bound::Memory), "{said:?}");
        clear += 1;
        let small = Transfer { bytes: 8, count: 1, ..calls[0].transfer };
        let latency = predict(&platform, &plan(&[DmaCall { transfer: small, ..calls[0] }])).unwrap().delivered_ns;
        if simulated > said.delivered_ns * (1.0 + AGREE) + latency * calls[0].transfer.count as f64 {
            failures.push(format!("{what}: {simulated} is more than {said:?} and {latency}"));
        }
    }
    let shown = failures[..failures.len().min(12)].join("\n");
    assert!(failures.is_empty(), "{} of {asked}, {clear} of them clear:\n{shown}", failures.len());
    // Leading cases are single writes per thread, bound neither by credits nor by one thread.
    assert!(asked > 1400 && clear > 40, "{asked}, {clear} clear");
}

#[test]
fn one_thread_equals_a_call_and_threads_of_two_cards_have_no_formula() {
    let mut random = Random(43);
    let tree = loop {
        let platform = card(&mut random);
        if platform.cards() > 1 {
            break platform;
        }
    };
    let picked = calls(&mut random, 1);
    let one = predict(&tree, &plan(&picked[..1])).unwrap();
    let two = predict(&tree, &plan(&picked[..2])).unwrap();
    assert!(two.delivered_ns >= one.delivered_ns && two.holds_for.contains("threads"));
    let other = DmaCall { transfer: Transfer { card: 1, ..picked[1].transfer }, ..picked[1] };
    assert_eq!(predict(&tree, &plan(&[picked[0], other])), None);
}
