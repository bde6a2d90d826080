//! Comparison of formulas and simulation for the root complex: request rate, reads from the last-level cache, and interrupts
//! by MSI-X, on random platforms. The criteria are those of `crosscheck_transfers.rs`.

mod random_platform;

use lanemark_machine::{
    Completion, Descriptors, DmaCall, EngineJob, Machine, Partner, Pattern, Plan, Samples, Share, Transfer, Verb,
    Window, Work, WriteRead,
};
use lanemark_model::{Bound, Prediction, predict};
use lanemark_platform::{Memory, Platform};
use lanemark_sim::SimulatedMachine;
use lanemark_units::{MemoryType, Ticks};
use random_platform::{Random, by_the_root, dllp_ns, pairs, platform_with_root_complex, set, transfer};

/// As in `crosscheck_transfers.rs`.
const ROUNDING: f64 = 0.001;
const CLEAR: f64 = 1.25;
const AGREE: f64 = 0.02;

fn ask(platform: &Platform, work: impl Into<Work>) -> Option<(f64, Prediction)> {
    let plan = Plan { timeout: Ticks::whole_ns(1_000_000_000_000), ..Plan::new(work, 1) };
    let said = predict(platform, &plan)?;
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    assert!(samples.confirmed.is_none_or(|bytes| bytes.claimed_bytes == bytes.confirmed_bytes), "{plan:?}");
    Some((samples.taken[0].delivered.as_ns(), said))
}

/// A random platform without FLITs, so that formulas of single requests are exact.
fn platform(random: &mut Random) -> Platform {
    let mut platform = platform_with_root_complex(random);
    platform.link.generation.value = platform.link.generation.value.min(5);
    platform
}

/// A random transfer in a window of random size, some with random offsets.
fn in_a_window(random: &mut Random, cards: u32) -> Transfer {
    let (mut picked, _) = transfer(random, cards);
    picked.window.len = random.pick(&[4096, 16384, 65536, 70_000, 1 << 20]).max(picked.bytes);
    if random.below(4) == 0 {
        picked.window.pattern = Pattern::Random;
    }
    picked
}

fn call(random: &mut Random, transfer: Transfer) -> DmaCall {
    let share = random.pick(&[Share::Call, Share::List, Share::Doorbell]);
    let descriptors = random.pick(&[Descriptors::Written(MemoryType::Uc), Descriptors::Fetched]);
    let completion = random.pick(&[Completion::Flag, Completion::Interrupt]);
    let count = transfer.count.min(3);
    let transfer = Transfer { partner: Partner::Host, outstanding: None, count, ..transfer };
    DmaCall { transfer, channel: 0, share, descriptors, completion }
}

/// A transfer, a driver call, or a write and a read.
fn work(random: &mut Random, platform: &Platform, transfer: Transfer) -> Work {
    match random.below(4) {
        0 => {
            let window = Window { offset: transfer.window.offset % 4096, ..transfer.window };
            call(random, Transfer { window, ..transfer }).into()
        }
        1 => {
            let picked = pairs(random, platform.cards());
            WriteRead {
                write: Transfer { bytes: transfer.bytes, count: transfer.count.min(7), ..picked.write },
                ..picked
            }
            .into()
        }
        _ => transfer.into(),
    }
}

#[test]
fn a_single_request_matches_the_formula() {
    let mut random = Random(43);
    let (mut asked, mut cached) = (0, 0);
    for number in 0..800 {
        let platform = platform(&mut random);
        let picked = in_a_window(&mut random, platform.cards());
        let alone = Transfer { bytes: 1 + random.below(16), count: 1, ..picked };
        let work = work(&mut random, &platform, alone);
        let Some((simulated, said)) = ask(&platform, work.clone()) else { continue };
        let few_ticks = 24.0 / Ticks::PER_NS as f64;
        let later = simulated - said.delivered_ns;
        // An acknowledgment of a completion may delay the next upstream request.
        let is_behind_a_dllp = work.dma_calls().next().is_some() && (0.0..=dllp_ns(&platform)).contains(&later);
        assert!(
            later.abs() <= few_ticks || is_behind_a_dllp,
            "case {number}: {work:?} on {}: {simulated} and {said:?}, {:?}, {:?}",
            platform.name,
            platform.memory,
            platform.root_complex.request_ns
        );
        asked += 1;
        cached += u32::from(platform.memory.as_ref().map_or(0, Memory::cached_lines) > 0);
    }
    assert!(asked > 600 && cached > 100, "{asked} cases, {cached} of them with a cache");
}

#[test]
fn the_simulation_is_never_faster_than_a_bound_and_meets_a_leading_one() {
    let mut random = Random(47);
    let (mut clear, mut led, mut partly, mut failures) = (0, 0, 0, Vec::new());
    for number in 0..4000 {
        let mut platform = platform(&mut random);
        if platform.cards() > 1 && random.below(4) == 0 {
            platform = by_the_root(platform, &mut random);
        }
        if random.below(2) == 0 {
            set(&mut platform, "root_complex.request_ns", random.between(20.0, 500.0));
        }
        let picked = in_a_window(&mut random, platform.cards());
        let work = work(&mut random, &platform, picked);
        let Some((simulated, said)) = ask(&platform, work.clone()) else { continue };
        let memory = platform.memory.as_ref().unwrap();
        let what = format!(
            "case {number}: {work:?} on {}, a request each {} ns, {} lines, {} or {} ns: {simulated} and {said:?}",
            platform.name,
            platform.root_complex.request_ns.value.as_ns(),
            memory.cached_lines(),
            memory.cached_read_ns.value.as_ns(),
            memory.read_ns.value.as_ns(),
        );
        let called = work.dma_calls().next().map(|call| call.transfer);
        let latency = if let [EngineJob::Transfer(transfer)] = work.jobs() {
            let first = Transfer { bytes: transfer.bytes.min(4096), count: 1, ..*transfer };
            ask(&platform, first).map_or(0.0, |(_, said)| said.delivered_ns)
        } else if let Some(transfer) = called.or(work.jobs().first().map(|job| *job.transfer())) {
            let first = Transfer { bytes: transfer.bytes.min(4096), count: 1, outstanding: None, ..transfer };
            let one = ask(&platform, first).map_or(0.0, |(_, said)| said.delivered_ns);
            one * transfer.count as f64
        } else {
            0.0
        };
        let later = simulated - said.delivered_ns;
        let leads = said.lead >= CLEAR;
        clear += u32::from(leads);
        led += u32::from(leads && said.bound == Bound::RootComplex);
        let is_read =
            matches!(work.jobs(), [EngineJob::Transfer(Transfer { verb: Verb::Load, partner: Partner::Host, .. })]);
        partly += u32::from(leads && is_read && (1..16384).contains(&memory.cached_lines()));
        if later < -ROUNDING * said.delivered_ns || leads && later > AGREE * said.delivered_ns + latency {
            failures.push(what);
        }
    }
    let shown = failures.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} failures:\n{shown}", failures.len());
    // Reads that are followed one by one have no lead.
    assert!(
        clear > 500 && led >= 200 && partly > 20,
        "{clear} with a leading bound, {led} of them the root complex, {partly} partly cached"
    );
}

/// The default card with spread latencies of reads, and these tags and requests.
fn spread_card(spread_ns: f64, tags: f64, read_bytes: f64) -> Platform {
    let origin = || lanemark_platform::Origin::Assumed("a test".to_owned());
    let numbers = [("memory.read_spread_ns", spread_ns), ("dma.tags", tags), ("dma.read_bytes", read_bytes)];
    let preset = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    numbers.into_iter().fold(preset, |card, (key, value)| card.with(key, value, origin()).unwrap())
}

fn reads(bytes: u64, count: u64, outstanding: Option<u32>) -> Transfer {
    let window = Window { offset: 0, len: 1 << 24, pattern: Pattern::Sequential };
    Transfer { card: 0, verb: Verb::Load, partner: Partner::Host, bytes, count, window, outstanding }
}

/// Error of the formula, relative to the simulation.
fn error(platform: &Platform, transfer: Transfer) -> f64 {
    let (simulated, said) = ask(platform, transfer).unwrap();
    said.delivered_ns / simulated - 1.0
}

#[test]
fn formulas_follow_the_simulation_where_latencies_of_reads_are_spread() {
    for spread_ns in [20.0, 60.0, 150.0] {
        for (tags, read_bytes) in [(32.0, 128.0), (32.0, 512.0), (256.0, 128.0), (256.0, 512.0)] {
            let card = spread_card(spread_ns, tags, read_bytes);
            // One transfer at a time: its last data wait for the slowest line. More requests than tags have no clear
            // formula.
            for bytes in [64, 128, 512, 1 << 10, 1 << 12, 1 << 14] {
                if bytes as f64 <= tags * read_bytes {
                    let off = error(&card, reads(bytes, 16, Some(1)));
                    assert!(off.abs() < 0.065, "spread of {spread_ns} ns, {tags} tags, {bytes} B: {off:.3}");
                }
            }
            // A stream that the tags limit: each is held for the mean latency.
            if tags < 100.0 {
                for bytes in [64, 512, 1 << 12, 1 << 16] {
                    let off = error(&card, reads(bytes, (1 << 20) / bytes, None));
                    assert!(
                        off.abs() < 0.025,
                        "spread of {spread_ns} ns, {read_bytes} B, stream of {bytes} B: {off:.3}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_spread_makes_longer_reads_later_as_the_slowest_of_their_lines() {
    let (without, with) = (spread_card(0.0, 256.0, 512.0), spread_card(60.0, 256.0, 512.0));
    for (bytes, harmonic) in [(64, 1.0), (128, 1.5), (256, 25.0 / 12.0), (512, 761.0 / 280.0)] {
        // The times of lines repeat after 1024 of them.
        let time = |card: &Platform| ask(card, reads(bytes, 1024, Some(1))).unwrap().0 / 1024.0;
        let later = time(&with) - time(&without);
        assert!((later / (60.0 * harmonic) - 1.0).abs() < 0.01, "{bytes} B: {later} ns later");
    }
}
