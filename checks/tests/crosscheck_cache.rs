//! Comparison of formulas and simulation for the last-level cache, partial-line writes and the remote socket, on random
//! platforms. The criteria are those of `crosscheck_transfers.rs`.

mod random_platform;

use lanemark_machine::{
    EngineJob, EngineWork, HostMemory, Machine, Partner, Pattern, Plan, Samples, Socket, Transfer, Verb, Window,
    WriteRead, Writer,
};
use lanemark_model::{Bound, Prediction, predict};
use lanemark_platform::{Memory, Platform};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use random_platform::{Random, set};

/// As in `crosscheck_transfers.rs`.
const ROUNDING: f64 = 0.001;
const CLEAR: f64 = 1.25;
const AGREE: f64 = 0.02;

/// A random platform with random host memory; without FLITs, so that formulas of single requests are exact.
fn platform(random: &mut Random) -> Platform {
    let mut platform = random_platform::platform(random);
    platform.link.generation.value = platform.link.generation.value.min(5);
    let read_ns = platform.memory.as_ref().unwrap().read_ns.value.as_ns();
    let quarters = |ns: f64| (ns * 4.0).round() / 4.0;
    if random.below(4) > 0 {
        set(&mut platform, "memory.cache_bytes", random.pick(&[1024.0, 2048.0, 8192.0, 65536.0]));
        set(&mut platform, "memory.cached_read_ns", quarters(random.between(50.0, read_ns.max(50.5))).min(read_ns));
        set(&mut platform, "memory.ddio_ways", random.pick(&[1.0, 2.0, 3.0, 8.0, 16.0]));
    }
    if random.below(4) > 0 {
        set(&mut platform, "memory.partial_line_ns", quarters(random.between(10.0, 2000.0)));
    }
    if random.below(2) == 0 {
        set(&mut platform, "memory.remote_ns", quarters(random.between(5.0, 200.0)));
    }
    platform
}

fn memory(platform: &Platform) -> &Memory {
    platform.memory.as_ref().unwrap()
}

/// The times of the simulation and of the formula.
fn ask(platform: &Platform, job: EngineJob, found: HostMemory) -> Option<(f64, Prediction)> {
    let timeout = Ticks::whole_ns(1_000_000_000_000);
    let plan = Plan { timeout, ..Plan::new(EngineWork { jobs: vec![job], memory: found }, 1) };
    let said = predict(platform, &plan)?;
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    assert!(samples.confirmed.is_none_or(|bytes| bytes.claimed_bytes == bytes.confirmed_bytes), "{plan:?}");
    Some((samples.taken[0].delivered.as_ns(), said))
}

/// A window of about the size of the cache, or of a device's share of it.
fn window(random: &mut Random, platform: &Platform, bytes: u64) -> Window {
    let memory = memory(platform);
    let room = random.pick(&[memory.cached_lines(), memory.device_lines(), 64]).max(1) * Memory::LINE_BYTES;
    let around = [room, room, room + 64, room.saturating_sub(64), 2 * room, room / 2, 3 * room + 4096];
    let offset = random.pick(&[0, 0, 64, 32, 4, 4032]);
    let len = random.pick(&around).max(bytes);
    let pattern = match random.below(5) {
        0 => Pattern::Random,
        1 => Pattern::Strided(random.pick(&[64, 128, 192, 200])),
        _ => Pattern::Sequential,
    };
    Window { offset, len, pattern }
}

fn found(random: &mut Random, platform: &Platform) -> HostMemory {
    let written_by = random.pick(&[Writer::Nobody, Writer::Core, Writer::Device]);
    let is_near = memory(platform).remote_ns.value == Ticks::ZERO || random.below(2) == 0;
    HostMemory { written_by, socket: if is_near { Socket::Local } else { Socket::Remote } }
}

fn transfer(random: &mut Random, platform: &Platform, verb: Verb) -> Transfer {
    let bytes = match random.below(3) {
        0 => random.pick(&[64, 256, 512, 4096]),
        1 => 1 + random.below(300),
        _ => random.pick(&[1, 8, 16, 32, 48, 63, 64, 65, 96, 128]),
    };
    let window = window(random, platform, bytes);
    let count = 1 + random.below((2 * window.places(bytes)).min(400));
    let card = random.below(platform.cards().into()) as u32;
    Transfer { card, verb, partner: Partner::Host, bytes, count, window, outstanding: None }
}

#[test]
fn single_reads_of_random_lines_match_the_formula() {
    let mut random = Random(72);
    let (mut asked, mut rounded) = (0, 0);
    for number in 0..300 {
        let platform = platform(&mut random);
        let picked = transfer(&mut random, &platform, Verb::Load);
        let (stride, len) = (random.pick(&[64, 128, 4096]), random.pick(&[16384, 65536, 70_000]));
        let window = Window { offset: 64 * random.below(3), len, pattern: Pattern::RandomStrided(stride) };
        let read = Transfer {
            bytes: picked.bytes.min(64),
            count: 1 + random.below(100),
            outstanding: Some(1),
            window,
            ..picked
        };
        let found = HostMemory { written_by: Writer::Nobody, ..found(&mut random, &platform) };
        let Some((simulated, said)) = ask(&platform, EngineJob::Transfer(read), found) else { continue };
        let few_ticks = 24.0 / Ticks::PER_NS as f64 * read.count as f64;
        let later = simulated - said.delivered_ns;
        // An acknowledgment of a completion may delay the next request, on each link.
        let is_behind_a_dllp = later > few_ticks && later <= 0.01 * said.delivered_ns;
        assert!(
            later.abs() <= few_ticks || is_behind_a_dllp,
            "case {number}: {simulated} and {said:?}: {read:?}, {found:?} on {}",
            platform.name
        );
        asked += 1;
        rounded += u32::from(read.bytes < stride);
    }
    assert!(asked > 200 && rounded > 100, "{asked} cases, {rounded} of them with gaps");
}

#[test]
fn many_reads_at_random_places_in_a_cache_and_beside_it_match_the_formula() {
    let mut random = Random(73);
    let (mut asked, mut clear, mut apart) = (0, 0, 0);
    for number in 0..60 {
        let mut platform = platform(&mut random);
        let read_ns = memory(&platform).read_ns.value.as_ns();
        set(&mut platform, "memory.cache_bytes", 65536.0);
        set(&mut platform, "memory.cached_read_ns", (read_ns / 2.0).ceil());
        let len = random.pick(&[96 << 10, 128 << 10, 512 << 10]);
        let window = Window { offset: 0, len, pattern: Pattern::Random };
        let read = Transfer {
            bytes: 64,
            count: 16_385 + random.below(30_000),
            outstanding: random.pick(&[None, Some(8)]),
            window,
            ..transfer(&mut random, &platform, Verb::Load)
        };
        let found = HostMemory { written_by: Writer::Core, socket: Socket::Local };
        let Some((simulated, said)) = ask(&platform, EngineJob::Transfer(read), found) else { continue };
        let below = simulated / said.delivered_ns - 1.0;
        assert!(below >= -ROUNDING, "case {number}: {simulated} and {said:?}: {read:?} on {}", platform.name);
        asked += 1;
        clear += u32::from(said.lead >= CLEAR);
        apart += u32::from(said.lead >= CLEAR && below > AGREE);
    }
    assert!(
        asked > 50 && clear > 15 && apart <= 2,
        "{asked} cases, {clear} clear, {apart} of these more than 2 % below"
    );
}

#[test]
fn single_reads_match_the_formula_for_every_cache_state_and_socket() {
    let mut random = Random(71);
    let (mut asked, mut split, mut far, mut behind) = (0, 0, 0, 0);
    for number in 0..800 {
        let platform = platform(&mut random);
        let picked = transfer(&mut random, &platform, Verb::Load);
        // One request per transfer.
        let read = Transfer { bytes: picked.bytes.min(16), outstanding: Some(1), ..picked };
        let found = found(&mut random, &platform);
        let Some((simulated, said)) = ask(&platform, EngineJob::Transfer(read), found) else { continue };
        let few_ticks = 24.0 / Ticks::PER_NS as f64 * read.count as f64;
        let later = simulated - said.delivered_ns;
        // An acknowledgment of a completion may delay the next request, on each link.
        let is_behind_a_dllp = later > few_ticks && later <= 0.01 * said.delivered_ns;
        behind += u32::from(is_behind_a_dllp);
        assert!(
            later.abs() <= few_ticks || is_behind_a_dllp,
            "case {number}: {simulated} and {said:?}: {read:?}, {found:?} on {}, {:?}",
            platform.name,
            platform.memory
        );
        asked += 1;
        far += u32::from(found.socket == Socket::Remote);
        let lines = memory(&platform).cached_lines() * Memory::LINE_BYTES;
        split += u32::from(found.written_by == Writer::Device && lines > 0 && read.window.len > lines / 2);
    }
    assert!(asked > 600 && split > 50 && far > 100, "{asked} cases, {split} of them around the share, {far} remote");
    assert!(20 * behind < asked, "{behind} of {asked} were delayed by an acknowledgment");
}

#[test]
fn a_write_followed_by_a_read_matches_the_formula() {
    let mut random = Random(73);
    let (mut asked, mut held) = (0, 0);
    for number in 0..900 {
        let platform = platform(&mut random);
        let picked = transfer(&mut random, &platform, Verb::Store);
        let write = Transfer { bytes: picked.bytes.min(16), count: 1, outstanding: Some(1), ..picked };
        let found = found(&mut random, &platform);
        let pairs = WriteRead { write, read: write.window, is_mixed: false };
        let Some((simulated, said)) = ask(&platform, EngineJob::WriteRead(pairs), found) else { continue };
        let later = simulated - said.delivered_ns;
        let few_ticks = 48.0 / Ticks::PER_NS as f64;
        // If the cached lines are not known, the formula is only a bound.
        let is_known = said.lead > 1.0;
        assert!(
            later.abs() <= few_ticks || !is_known && later > 0.0,
            "case {number}: {simulated} and {said:?}: {pairs:?}, {found:?} on {}, {:?}",
            platform.name,
            platform.memory
        );
        asked += u32::from(is_known);
        held += u32::from(is_known && memory(&platform).partial_line_ns.value > Ticks::ZERO);
    }
    assert!(asked > 150 && held > 100, "{asked} cases, {held} of them with partial lines");
}

#[test]
fn the_simulation_is_never_faster_than_a_bound_and_meets_a_leading_one() {
    let mut random = Random(79);
    let (mut clear, mut held, mut failures) = (0, 0, Vec::new());
    for number in 0..4000 {
        let platform = platform(&mut random);
        let verb = random.pick(&[Verb::Load, Verb::Store, Verb::Store]);
        let transfer = transfer(&mut random, &platform, verb);
        let found = found(&mut random, &platform);
        let Some((simulated, said)) = ask(&platform, EngineJob::Transfer(transfer), found) else { continue };
        let first = Transfer { bytes: transfer.bytes.min(4096), count: 1, ..transfer };
        let latency = ask(&platform, EngineJob::Transfer(first), found).map_or(0.0, |(_, said)| said.delivered_ns);
        let later = simulated - said.delivered_ns;
        let leads = said.lead >= CLEAR;
        clear += u32::from(leads);
        let holds = memory(&platform).partial_line_ns.value > Ticks::ZERO;
        held += u32::from(leads && holds && verb == Verb::Store && said.bound == Bound::Memory);
        if later < -ROUNDING * said.delivered_ns || leads && later > AGREE * said.delivered_ns + latency {
            failures.push(format!(
                "case {number}: {simulated} and {said:?}, one {latency}: {transfer:?}, {found:?} on {}, {:?}",
                platform.name, platform.memory
            ));
        }
    }
    assert!(failures.is_empty(), "{} of them:\n{}", failures.len(), failures[..failures.len().min(3)].join("\n"));
    assert!(clear > 800 && held > 100, "{clear} with a leading bound, {held} of them partial lines");
}
