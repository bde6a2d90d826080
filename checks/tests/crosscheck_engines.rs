//! Comparison of formulas and simulation for concurrent writes and reads of one card (one channel, two channels and
//! full-duplex engines), for merged and aligned completions, for pauses of the link, and for the data of reads in the
//! device, on random platforms. The criteria are those of `crosscheck_transfers.rs`.
//!
//! Each test prints its largest gap of a leading bound, beyond the latency of one request: 0.51 % for completions, 0.00 %
//! for pauses of the link and for concurrent directions. These have few leading bounds; of all their cases, the formula is
//! within 2 % of the simulation in 73 % (full duplex), 69 % (two channels) and 28 % (one channel).

mod random_platform;

use lanemark_machine::{
    EngineJob, Machine, OnChannels, Partner, Plan, Samples, Transfer, Verb, Window, Work, WriteRead,
};
use lanemark_model::{Prediction, predict, shared_ceiling, transfer_ceiling};
use lanemark_platform::{Origin, Platform};
use lanemark_sim::SimulatedMachine;
use lanemark_units::{Rate, Ticks};
use random_platform::{Random, platform, relay, set, transfer};

/// As in `crosscheck_transfers.rs`.
const ROUNDING: f64 = 0.001;
const CLEAR: f64 = 1.25;
const AGREE: f64 = 0.02;

fn plan(jobs: impl Into<Work>) -> Plan {
    Plan { timeout: Ticks::whole_ns(1_000_000_000_000), ..Plan::new(jobs, 1) }
}

/// The simulated time, whose critical path covers it to the tick, and the formula.
fn ask(platform: &Platform, plan: &Plan) -> (f64, Option<Prediction>) {
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    assert!(samples.confirmed.is_none_or(|bytes| bytes.claimed_bytes == bytes.confirmed_bytes), "{plan:?}");
    let on_path: Ticks = samples.path.iter().map(|share| share.span).sum();
    assert_eq!(on_path, samples.taken[0].delivered, "{plan:?}: {:?}", samples.path);
    (samples.taken[0].delivered.as_ns(), predict(platform, plan))
}

/// A random platform without FLITs, whose places no formula predicts.
fn without_flits(random: &mut Random) -> Platform {
    let mut platform = platform(random);
    platform.link.generation.value = platform.link.generation.value.min(5);
    platform
}

/// Gaps of the formula, with the largest of a leading bound.
#[derive(Default)]
struct Gaps {
    cases: u32,
    led: u32,
    worst_led: f64,
    within: [u32; 3],
    failures: Vec<String>,
}

impl Gaps {
    /// Compares a case: no simulation is faster than its formula, and a leading bound is met but for `latency_ns`.
    fn add(&mut self, simulated: f64, said: &Prediction, latency_ns: f64, what: &str) {
        let gap = simulated / said.delivered_ns - 1.0;
        self.cases += 1;
        for (limit, within) in [0.02, 0.05, 0.10].iter().zip(&mut self.within) {
            *within += u32::from(gap.abs() <= *limit);
        }
        let behind = (simulated - latency_ns) / said.delivered_ns - 1.0;
        let leads = said.lead >= CLEAR;
        if leads {
            self.led += 1;
            self.worst_led = self.worst_led.max(behind);
        }
        if gap < -ROUNDING || leads && behind > AGREE {
            self.failures.push(format!("{what}: {:.2} %, {simulated} and {said:?}", 100.0 * gap));
        }
    }

    fn finish(self, name: &str) -> (u32, u32) {
        let (cases, led, _, failures) = self.print(name);
        assert!(failures.is_empty(), "{failures}");
        (cases, led)
    }

    /// Prints the gaps; returns the number of cases, of leading bounds, the percentage within 2 %, and the failures.
    fn print(self, name: &str) -> (u32, u32, f64, String) {
        let shares = self.within.map(|count| 100.0 * f64::from(count) / f64::from(self.cases.max(1)));
        println!(
            "{name}: {} cases, {} led, largest gap of these {:.2} %, within 2, 5, 10 %: {shares:.1?} %",
            self.cases,
            self.led,
            100.0 * self.worst_led
        );
        let shown = self.failures.iter().take(8).cloned().collect::<Vec<_>>().join("\n");
        let count = self.failures.len();
        let failures = if count > 0 { format!("{name}: {count} failures:\n{shown}\n") } else { String::new() };
        (self.cases, self.led, shares[0], failures)
    }
}

/// Concurrent writes and reads of a card with host memory, as one job or as two.
fn both_ways(random: &mut Random, platform: &Platform) -> [Transfer; 2] {
    let (picked, _) = transfer(random, platform.cards());
    let window = Window { offset: random.pick(&[0, 4, 64, 4000]), ..picked.window };
    let count = random.pick(&[1, 7, 60]);
    let write = Transfer { verb: Verb::Store, partner: Partner::Host, outstanding: None, window, count, ..picked };
    let read = Window { offset: window.offset + (4 << 20), ..window };
    [write, Transfer { verb: Verb::Load, window: read, ..write }]
}

#[test]
fn concurrent_directions_are_never_faster_than_the_formula_and_meet_a_leading_bound() {
    let mut random = Random(71);
    let mut gaps = [Gaps::default(), Gaps::default(), Gaps::default()];
    let names = ["one channel", "two channels", "full duplex"];
    for number in 0..4500 {
        let mut platform = without_flits(&mut random);
        let kind = number % 3;
        set(&mut platform, "dma.channels", if kind == 1 { 2.0 } else { 1.0 });
        if let Some(dma) = &mut platform.dma {
            dma.full_duplex.value = kind == 2;
        }
        if kind == 2 && random.below(2) == 0 {
            set(&mut platform, "dma.shared_request_ns", random.between(0.5, 100.0));
        }
        if random.below(3) == 0 {
            set(&mut platform, "memory.loaded_completion_bytes", random.pick(&[64.0, 128.0, 256.0]));
        }
        if random.below(4) == 0 {
            set_text(&mut platform, "dma_write.segment_bytes", random.pick(&["64", "256", "4096"]));
            let pause = format!("{:.2}", random.between(1.0, 300.0));
            set_text(&mut platform, "dma_write.segment_link_ns", &pause);
        }
        let [write, read] = both_ways(&mut random, &platform);
        let one = |transfer| EngineJob::OnChannels(OnChannels { transfer, channels: 1 });
        let jobs = match kind {
            1 => vec![one(write), one(read)],
            _ => vec![EngineJob::WriteRead(WriteRead { write, read: read.window, is_mixed: true })],
        };
        let (simulated, said) = ask(&platform, &plan(jobs));
        let Some(said) = said else { continue };
        let alone = |transfer: Transfer| {
            let first = Transfer { bytes: transfer.bytes.min(4096), count: 1, ..transfer };
            predict(&platform, &plan(vec![EngineJob::Transfer(first)])).map_or(0.0, |said| said.delivered_ns)
        };
        let latency_ns = alone(write).max(alone(read));
        let what = format!("case {number}, {}: {} B x {} on {}", names[kind], write.bytes, write.count, platform.name);
        gaps[kind].add(simulated, &said, latency_ns, &what);
    }
    let met = gaps.into_iter().zip(names).map(|(gaps, name)| gaps.print(name)).collect::<Vec<_>>();
    let failures: String = met.iter().map(|(.., failures)| failures.as_str()).collect();
    assert!(failures.is_empty(), "{failures}");
    let led = met.iter().map(|(_, led, ..)| *led).collect::<Vec<_>>();
    // What holds today, so that a formula that becomes worse is noticed.
    for ((.., within_percent, _), least) in met.iter().zip([28.0, 69.0, 72.0]) {
        assert!(*within_percent >= least, "{within_percent} % within 2 %");
    }
    // One channel has no leading bound.
    assert!(met.iter().all(|(cases, ..)| *cases > 1000) && led[0] == 0 && led[1] > 5 && led[2] > 5, "{led:?}");
}

/// Platforms whose root port merges completions by rules and aligns them, and whose link pauses at segments.
fn with_rules(random: &mut Random) -> Platform {
    let mut platform = without_flits(random);
    if random.below(2) == 0 {
        set(&mut platform, "memory.full_completion_lines", random.pick(&[1.0, 2.0, 4.0, 8.0]));
    }
    if random.below(2) == 0 {
        set(&mut platform, "memory.full_completion_from_bytes", random.pick(&[65.0, 128.0, 500.0, 4096.0]));
    }
    if random.below(2) == 0 {
        set(&mut platform, "root_complex.completion_alignment_bytes", random.pick(&[8.0, 16.0, 32.0, 64.0]));
    }
    set_text(&mut platform, "dma_write.segment_bytes", random.pick(&["64", "100", "256", "4096"]));
    if random.below(2) == 0 {
        let pause = format!("{:.2}", random.between(1.0, 300.0));
        set_text(&mut platform, "dma_write.segment_link_ns", &pause);
    }
    platform
}

fn set_text(platform: &mut Platform, key: &str, text: &str) {
    *platform = platform.with_text(key, text, Origin::Assumed("random".to_owned())).unwrap();
}

fn with_host(random: &mut Random, platform: &Platform, verb: Verb) -> Transfer {
    let (picked, _) = transfer(random, platform.cards());
    Transfer { verb, partner: Partner::Host, ..picked }
}

#[test]
fn a_single_request_under_rules_of_completions_and_pauses_matches_the_formula() {
    let mut random = Random(73);
    let mut asked = 0;
    for number in 0..400 {
        let platform = with_rules(&mut random);
        let verb = if number % 2 == 0 { Verb::Load } else { Verb::Store };
        let picked = with_host(&mut random, &platform, verb);
        let window = Window { offset: picked.window.offset % 4096 / 64 * 64, ..picked.window };
        let most = platform.dma.as_ref().unwrap().write_bytes.value.min(platform.link.mps_bytes.value);
        let bytes = if verb == Verb::Load { 1 + random.below(16) } else { 1 + random.below(most.min(64).into()) };
        let alone = Transfer { bytes, count: 1, outstanding: None, window, ..picked };
        let (simulated, Some(said)) = ask(&platform, &plan(vec![EngineJob::Transfer(alone)])) else { continue };
        let few_ticks = 12.0 / Ticks::PER_NS as f64;
        let apart = (simulated - said.delivered_ns).abs();
        assert!(apart <= few_ticks, "{alone:?} on {}: {simulated} and {said:?}", platform.name);
        asked += 1;
    }
    assert!(asked > 300, "{asked}");
}

#[test]
fn rules_of_completions_and_pauses_of_the_link_are_in_the_formula() {
    for (verb, name) in [(Verb::Load, "completions"), (Verb::Store, "pauses of the link")] {
        let mut random = Random(79);
        let mut gaps = Gaps::default();
        for number in 0..700 {
            let platform = with_rules(&mut random);
            let picked = with_host(&mut random, &platform, verb);
            let picked = Transfer { outstanding: picked.outstanding.filter(|_| verb == Verb::Load), ..picked };
            let (simulated, Some(said)) = ask(&platform, &plan(vec![EngineJob::Transfer(picked)])) else { continue };
            let first = Transfer { bytes: picked.bytes.min(4096), count: 1, ..picked };
            let first = predict(&platform, &plan(vec![EngineJob::Transfer(first)]));
            let what = format!("case {number}: {picked:?} on {}", platform.name);
            let rate = Rate::over(picked.bytes * picked.count, Ticks::from_ns(simulated).unwrap()).unwrap();
            let most = transfer_ceiling(&platform, &picked).unwrap();
            assert!(rate.bytes_per_s() <= most.rate.bytes_per_s() * (1.0 + ROUNDING), "{what}: {rate} of {most:?}");
            gaps.add(simulated, &said, first.map_or(0.0, |said| said.delivered_ns), &what);
        }
        let (cases, led) = gaps.finish(name);
        assert!(cases > 500 && led > 100, "{cases} {led}");
    }
}

/// Platforms whose devices need time for the data of reads besides their beats.
fn with_read_data(random: &mut Random) -> Platform {
    let mut platform = without_flits(random);
    let choices: [(&str, &[f64]); 2] =
        [("dma_read.push_bytes", &[64.0, 256.0, 4096.0]), ("dma_read.store_bytes", &[8.0, 64.0, 512.0, 4096.0])];
    for (key, from) in choices {
        set(&mut platform, key, random.pick(from));
    }
    for (key, most) in [
        ("dma_read.many_pushes_ns", 1000.0),
        ("dma_read.store_ns", 1000.0),
        ("dma_read.queue_ns", 3000.0),
        ("dma_read.signal_ns", 3000.0),
    ] {
        if random.below(2) == 0 {
            set(&mut platform, key, random.between(1.0, most));
        }
    }
    platform
}

#[test]
fn a_single_read_with_costs_of_its_data_matches_the_formula() {
    let mut random = Random(89);
    let mut asked = 0;
    for number in 0..400 {
        let platform = with_read_data(&mut random);
        let picked = with_host(&mut random, &platform, Verb::Load);
        let window = Window { offset: picked.window.offset % 4096 / 64 * 64, ..picked.window };
        // One completion; long reads may wait for it in turns.
        let bytes = 1 + random.below(64);
        let alone = Transfer { bytes, count: 1, window, outstanding: random.pick(&[None, Some(1)]), ..picked };
        let (simulated, Some(said)) = ask(&platform, &plan(vec![EngineJob::Transfer(alone)])) else { continue };
        let few_ticks = 12.0 / Ticks::PER_NS as f64;
        let apart = (simulated - said.delivered_ns).abs();
        assert!(apart <= few_ticks, "case {number}: {alone:?} on {}: {simulated} and {said:?}", platform.name);
        asked += 1;
    }
    assert!(asked > 300, "{asked}");
}

#[test]
fn costs_of_the_data_of_reads_are_in_the_formula() {
    let mut random = Random(97);
    let mut gaps = Gaps::default();
    for number in 0..1500 {
        let platform = with_read_data(&mut random);
        let picked = with_host(&mut random, &platform, Verb::Load);
        let picked = Transfer { outstanding: random.pick(&[None, None, Some(1), Some(2), Some(9)]), ..picked };
        let (simulated, Some(said)) = ask(&platform, &plan(vec![EngineJob::Transfer(picked)])) else { continue };
        let first = Transfer { bytes: picked.bytes.min(4096), count: 1, ..picked };
        let first = predict(&platform, &plan(vec![EngineJob::Transfer(first)]));
        let what = format!("case {number}: {picked:?} on {}", platform.name);
        gaps.add(simulated, &said, first.map_or(0.0, |said| said.delivered_ns), &what);
    }
    let (cases, led) = gaps.finish("data of reads");
    assert!(cases > 1000 && led > 200, "{cases} {led}");
}

#[test]
fn a_relay_starts_after_the_queue_of_its_first_reads() {
    let mut random = Random(101);
    let mut asked = 0;
    for number in 0..60 {
        let (platform, relay) = relay(&mut random);
        if platform.dma_read.is_none() {
            continue;
        }
        let mut queued = platform.clone();
        let queue_ns = 700.0;
        set(&mut queued, "dma_read.queue_ns", queue_ns);
        let work = plan(relay.clone());
        let [(early, Some(said)), (late, Some(said_late))] = [&platform, &queued].map(|on| ask(on, &work)) else {
            continue;
        };
        let few_ticks = 12.0 / Ticks::PER_NS as f64;
        let what = format!("case {number}: {relay:?} on {}: {early} to {late} for {queue_ns} ns", platform.name);
        // In one case of these the end moves by 4 ns more than the start, of 1.5 ms: not everything begins with the job.
        assert!((late - early - queue_ns).abs() <= 8.0, "{what}");
        assert!((said_late.delivered_ns - said.delivered_ns - queue_ns).abs() <= few_ticks, "{what}, {said:?}");
        asked += 1;
    }
    assert!(asked > 30, "{asked}");
}

/// Writes that make completions longer or shorter do not lift reads above their ceiling.
#[test]
fn no_concurrent_directions_exceed_their_ceiling() {
    let mut random = Random(83);
    for number in 0..300 {
        let mut platform = with_rules(&mut random);
        if let Some(dma) = &mut platform.dma {
            dma.full_duplex.value = true;
        }
        set(&mut platform, "memory.loaded_completion_bytes", random.pick(&[0.0, 64.0, 256.0, 4096.0]));
        let [write, read] = both_ways(&mut random, &platform);
        let pairs = WriteRead { write, read: read.window, is_mixed: true };
        let (simulated, _) = ask(&platform, &plan(vec![EngineJob::WriteRead(pairs)]));
        let bytes = (write.bytes_per_pass() + read.bytes_per_pass()) as f64;
        let most = shared_ceiling(&platform, &[write, read]).unwrap();
        let rate = bytes * 1e9 / simulated;
        assert!(rate <= most.rate.bytes_per_s() * (1.0 + ROUNDING), "case {number}: {rate} of {most:?}");
        assert!(most.because.contains("MWr") && most.because.contains("CplD"), "{}", most.because);
    }
}
