//! Comparison of formula and simulation for driver calls where the root complex, memory, credits or a replay buffer are still
//! busy with the previous request or call. The criteria are those of `crosscheck_transfers.rs`; the platforms have as few
//! of these resources as possible.

mod random_platform;

use lanemark_machine::{
    Access, Completion, Descriptors, DmaCall, Lane, Machine, Partner, Plan, Samples, Share, Span, Step, Stream,
    Transfer, Verb, Width, Window, Work,
};
use lanemark_model::{Bound, Prediction, predict};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;
use lanemark_units::{BarOffset, MemoryType, Ticks};
use random_platform::{Random, platform_with_root_complex, set, transfer, with_few_credits};

/// As in `crosscheck_transfers.rs`.
const ROUNDING: f64 = 0.001;
const CLEAR: f64 = 1.25;
const AGREE: f64 = 0.02;

/// A random platform without FLITs; shared resources are slow, scarce or neither.
fn platform(random: &mut Random) -> Platform {
    let mut platform = platform_with_root_complex(random);
    platform.link.generation.value = platform.link.generation.value.min(5);
    if random.below(2) == 0 {
        set(&mut platform, "root_complex.request_ns", random.between(0.5, 100_000.0));
    }
    if random.below(4) == 0 {
        let key = random.pick(&["memory.write_tlp_ns", "memory.read_request_ns"]);
        set(&mut platform, key, random.between(0.5, 100_000.0));
    }
    if random.below(2) == 0 { with_few_credits(platform, random) } else { platform }
}

fn call(random: &mut Random, cards: u32) -> DmaCall {
    let (picked, _) = transfer(random, cards);
    let verb = random.pick(&[Verb::Store, Verb::Load]);
    let window = Window { offset: random.pick(&[0, 0, 4, 64, 4000]), ..picked.window };
    let count = random.pick(&[1, 2, 4, 20]);
    let transfer = Transfer { verb, partner: Partner::Host, outstanding: None, window, count, ..picked };
    let share = random.pick(&[Share::Call, Share::List, Share::Doorbell]);
    let uc = Descriptors::Written(MemoryType::Uc);
    let descriptors = random.pick(&[uc, Descriptors::Written(MemoryType::Wc), Descriptors::Fetched]);
    let completion = random.pick(&Completion::ALL);
    DmaCall { transfer, channel: 0, share, descriptors, completion }
}

fn plan(work: impl Into<Work>) -> Plan {
    Plan { timeout: Ticks::whole_ns(1_000_000_000_000), ..Plan::new(work, 1) }
}

fn said(platform: &Platform, call: DmaCall) -> Prediction {
    predict(platform, &plan(call)).expect("every call has a formula")
}

fn simulated_ns(platform: &Platform, plan: &Plan) -> f64 {
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    samples.taken[0].delivered.as_ns()
}

/// Round trip of a load of the status register, in ns.
fn status_load_ns(platform: &Platform) -> f64 {
    let registers = platform.region("registers").unwrap();
    let at = BarOffset { bar: registers.bar.value as u8, offset: registers.offset_bytes.value };
    let load = Stream::over(Verb::Load, Access::Plain(Width::B8), Span { at, len: 8, memory_type: MemoryType::Uc });
    predict(platform, &plan(Step::Stream(load))).unwrap().delivered_ns
}

fn scarce(platform: &Platform) -> String {
    let (root, memory) = (&platform.root_complex, platform.memory.as_ref().unwrap());
    format!(
        "root {} ns, {} and {} credits; memory {} and {} ns; replay {}; card {} ",
        root.request_ns.value.as_ns(),
        root.posted_header_credits.value,
        root.nonposted_header_credits.value,
        memory.write_tlp_ns.value.as_ns(),
        memory.read_request_ns.value.as_ns(),
        platform.link.replay_tlps.value,
        platform.link.posted_header_credits.value,
    )
}

#[test]
fn calls_are_never_faster_than_the_formula_and_meet_a_leading_bound() {
    let mut random = Random(53);
    let (mut led, mut by_root, mut failures) = (0, 0, Vec::new());
    for number in 0..8000 {
        let platform = platform(&mut random);
        let picked = call(&mut random, platform.cards());
        let (simulated, said) = (simulated_ns(&platform, &plan(picked)), said(&platform, picked));
        let what = format!(
            "case {number}: {picked:?} on {}: {}: {simulated} and {said:?}, {:.1} %",
            platform.name,
            scarce(&platform),
            100.0 * (simulated / said.delivered_ns - 1.0),
        );
        // A load of the status register may see the end one load earlier or later than by the formula.
        let is_polled = picked.completion == Completion::Register;
        let loads = if is_polled { picked.transfer.count as f64 * status_load_ns(&platform) } else { 0.0 };
        let later = simulated - said.delivered_ns;
        if later < -ROUNDING * said.delivered_ns - loads {
            failures.push(format!("the simulation is faster than the formula: {what}"));
        }
        let is_clear = said.lead >= CLEAR;
        led += u32::from(is_clear);
        by_root += u32::from(is_clear && said.bound == Bound::RootComplex);
        let first = Transfer { bytes: picked.transfer.bytes.min(4096), count: 1, ..picked.transfer };
        let latency = predict(&platform, &plan(first)).map_or(0.0, |said| said.delivered_ns);
        // Single requests have no uncertainty; lists from write-combining buffers have no exact formula.
        let is_exact = matches!(said.bound, Bound::RootComplex | Bound::Memory)
            && picked.descriptors != Descriptors::Written(MemoryType::Wc);
        let latency = if is_exact { 0.0 } else { latency * picked.transfer.count as f64 };
        if is_clear && later > AGREE * said.delivered_ns + latency + loads {
            failures.push(format!("the simulation takes longer: {what}"));
        }
    }
    let shown = failures.iter().take(15).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} failures:\n{shown}", failures.len());
    assert!(led > 900 && by_root > 400, "{led} with a leading bound, {by_root} of them the root complex");
}

#[test]
fn threads_on_scarce_resources_are_never_faster_than_the_bound_and_approach_it_when_the_root_complex_leads() {
    let mut random = Random(59);
    let (mut asked, mut near, mut failures) = (0, 0, Vec::new());
    for number in 0..2000 {
        let mut platform = platform(&mut random);
        set(&mut platform, "core.cores", 4.0);
        set(&mut platform, "dma.channels", 4.0);
        let picked = call(&mut random, platform.cards());
        let completion = random.pick(&[Completion::Flag, Completion::Interrupt]);
        let part = 1 << 20;
        let of = |channel: u32| {
            let window = Window { offset: u64::from(channel) * part, len: part, ..picked.transfer.window };
            DmaCall { transfer: Transfer { window, ..picked.transfer }, channel, completion, ..picked }
        };
        let lanes = (0..2 + random.below(3) as u32).map(|core| Lane { core, task: of(core).into() });
        let plan = plan(lanes.collect::<Vec<Lane>>());
        let Some(said) = predict(&platform, &plan) else { continue };
        asked += 1;
        let simulated = simulated_ns(&platform, &plan);
        let threads = plan.work.lanes().len();
        let what = format!(
            "case {number}: {threads} threads, {:?} on {}: {}: {simulated} and {said:?}",
            of(0),
            platform.name,
            scarce(&platform)
        );
        if simulated < said.delivered_ns * (1.0 - ROUNDING) {
            failures.push(format!("the simulation is faster than the formula: {what}"));
        }
        let one = self::said(&platform, of(0));
        if said.bound == Bound::RootComplex && said.delivered_ns > 2.0 * one.delivered_ns {
            near += u32::from(simulated < said.delivered_ns * (1.0 + 5.0 * AGREE));
        }
        if said.lead >= CLEAR && simulated > said.delivered_ns * (1.0 + AGREE) + one.delivered_ns {
            failures.push(format!("the simulation takes longer: {what}"));
        }
    }
    let shown = failures.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} failures:\n{shown}", failures.len());
    assert!(asked > 1900 && near > 100, "{asked} cases, {near} near the bound");
}
