//! A run with steady-state fast-forward equals one that simulates every transfer: times, waits, traffic, bytes and errors, on
//! random platforms; and so does the run after it.

mod random_platform;

use lanemark_machine::{
    EngineJob, Machine, Partner, Pattern, Plan, Samples, Steady, Transfer, Unsteady, Verb, Window, WriteRead,
};
use lanemark_platform::{OrderingChoice, PeerRoute, Platform};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use random_platform::{Random, by_the_root, pairs, platform, platform_with_ways, read_of_peer, set, transfer};

/// Approximate bytes of a plan: at least a thousand of the smallest transfers.
const BYTES: u64 = 1 << 20;
/// Most transfers of a plan.
const MOST: u64 = 4000;

/// A random platform, including features without formulas.
fn any_platform(random: &mut Random) -> Platform {
    // With or without engine chunks and the queues of cards.
    let mut platform = if random.below(2) == 0 { platform_with_ways(random) } else { platform(random) };
    platform.link.skp.value = random.below(12) == 0;
    platform.link.ordering.value =
        random.pick(&[OrderingChoice::Blocked, OrderingChoice::Blocked, OrderingChoice::Never]);
    for (key, values) in [
        ("link.replay_tlps", [0.0, 0.0, 4.0, 16.0]),
        ("memory.loaded_completion_bytes", [0.0, 0.0, 64.0, 256.0]),
        ("memory.full_completion_lines", [0.0, 0.0, 2.0, 4.0]),
        ("memory.full_completion_from_bytes", [0.0, 0.0, 200.0, 512.0]),
        ("root_complex.completion_alignment_bytes", [4.0, 4.0, 16.0, 64.0]),
        ("dma_write.segment_link_ns", [0.0, 0.0, 10.0, 100.0]),
        ("dma_read.push_bytes", [4096.0, 64.0, 64.0, 256.0]),
        ("dma_read.many_pushes_ns", [0.0, 0.0, 20.0, 200.0]),
        ("dma_read.store_ns", [0.0, 0.0, 30.0, 300.0]),
        ("dma_read.queue_ns", [0.0, 0.0, 100.0, 1000.0]),
        ("dma_read.signal_ns", [0.0, 0.0, 20.0, 500.0]),
        ("dma.full_duplex", [0.0, 0.0, 0.0, 1.0]),
        ("dma.relaxed_ordering", [0.0, 0.0, 0.0, 1.0]),
        ("dma.send_buffers", [1.0, 2.0, 2.0, 8.0]),
        ("link.posted_header_credits", [2.0, 8.0, 32.0, 64.0]),
    ] {
        set(&mut platform, key, random.pick(&values));
    }
    platform
}

/// A random platform with several cards; in some, peer traffic passes the root complex.
fn any_platform_with_peers(random: &mut Random) -> Platform {
    let platform = loop {
        let picked = any_platform(random);
        if picked.cards() > 1 {
            break picked;
        }
    };
    if random.below(2) == 0 { by_the_root(platform, random) } else { platform }
}

/// Enough transfers for a steady state, in a small window.
fn long(random: &mut Random, short: Transfer) -> Transfer {
    // Odd lengths have a long period relative to pages.
    let bytes = if random.below(4) == 0 { short.bytes } else { random.pick(&[16, 64, 128, 256, 512, 1024, 4096]) };
    let len = random.pick(&[bytes, 3 * bytes, 4096, 64 << 10, 1 << 20]).clamp(bytes, 1 << 20);
    let offset = if random.below(4) == 0 { short.window.offset } else { short.window.offset & !4095 };
    let outstanding = short.outstanding.map(|most| most + random.below(4) as u32);
    let count = (BYTES / bytes).clamp(200, MOST);
    Transfer { bytes, count, window: Window { len, offset, ..short.window }, outstanding, ..short }
}

/// A pattern of places, sequential in half of the cases.
fn pattern(random: &mut Random, bytes: u64) -> Pattern {
    let distance = random.pick(&[bytes + 4, 2 * bytes, 64, 4096]);
    match random.below(8) {
        0 | 1 => Pattern::Strided(distance),
        2 => Pattern::Random,
        3 => Pattern::RandomStrided(distance),
        _ => Pattern::Sequential,
    }
}

/// Jobs of concurrent cards.
fn jobs(random: &mut Random) -> (Platform, Vec<EngineJob>) {
    match random.below(8) {
        0 => {
            let platform = any_platform_with_peers(random);
            let read = read_of_peer(random, &platform);
            (platform, vec![EngineJob::Transfer(long(random, read))])
        }
        1 => {
            let platform = any_platform(random);
            let picked = pairs(random, platform.cards());
            let write = long(random, picked.write);
            let read = Window { offset: write.window.offset + (2 << 20), ..write.window };
            (platform, vec![EngineJob::WriteRead(WriteRead { write, read, is_mixed: random.below(2) == 0 })])
        }
        2 | 3 => several(random),
        _ => {
            let platform = any_platform(random);
            let (short, _) = transfer(random, platform.cards());
            let long = long(random, short);
            let window = Window { pattern: pattern(random, long.bytes), ..long.window };
            (platform, vec![EngineJob::Transfer(Transfer { window, ..long })])
        }
    }
}

/// Transfers of several cards, each with its own window.
fn several(random: &mut Random) -> (Platform, Vec<EngineJob>) {
    let platform = any_platform_with_peers(random);
    let flows = 2 + random.below(3) as u32;
    let bytes = random.pick(&[64, 128, 500, 512, 4096]);
    let all = (0..flows).map(|card| {
        let (short, _) = transfer(random, 1);
        let place = u64::from(card) * (2 << 20);
        let window = Window { offset: place, len: 1 << 20, pattern: Pattern::Sequential };
        let host = Transfer { card, window, ..short };
        let to_peer = Transfer {
            partner: Partner::Peer { card: (card + 1) % platform.cards(), bar: 0 },
            window: Window { offset: 8 << 20, ..window },
            verb: Verb::Store,
            outstanding: None,
            ..host
        };
        let one = if random.below(2) == 0 { host } else { to_peer };
        // Mostly the same transfer for all cards: otherwise there is no common period.
        let one = long(random, one);
        let is_another = random.below(6) == 0;
        EngineJob::Transfer(if is_another { one } else { Transfer { bytes, count: BYTES / bytes / 4, ..one } })
    });
    let all: Vec<EngineJob> = all.collect();
    (platform, all)
}

fn plan(all: &[EngineJob], passes: u64, timeout: Ticks) -> Plan {
    Plan { timeout, ..Plan::new(all.to_vec(), passes) }
}

/// The bytes of the window at both ends of a transfer.
fn bytes(machine: &mut SimulatedMachine, platform: &Platform, transfer: &Transfer) -> Vec<Vec<u8>> {
    let Transfer { window, .. } = transfer;
    let read = |memory: &mut lanemark_engine::Memory, offset: u64| {
        let mut all = vec![0; window.len.max(transfer.bytes) as usize + 64];
        memory.read(offset, &mut all);
        all
    };
    let board = machine.board_mut();
    let sink = read(&mut board.engine_mut(transfer.card.into()).unwrap().sink, window.offset);
    let far = match transfer.partner {
        Partner::Host => read(board.memory_mut(), window.offset),
        Partner::Peer { card, bar } => {
            let region = platform.region_at(bar, window.offset, transfer.bytes).unwrap();
            let within = window.offset - region.offset_bytes.value;
            read(&mut board.region_of_mut(card.into(), &region.name).unwrap().memory, within)
        }
    };
    vec![sink, far]
}

/// Complete result of a run and of the run after it.
#[derive(Debug, PartialEq)]
struct Left {
    result: Result<(), String>,
    samples: Samples,
    now: Ticks,
    traffic: String,
    bytes: Vec<Vec<u8>>,
    after: Samples,
}

fn run(machine: SimulatedMachine, platform: &Platform, all: &[EngineJob], plan: &Plan) -> (Left, Steady) {
    let (mut machine, mut samples) = (machine, Samples::wanted(2));
    let result = machine.run(plan, &mut samples).map_err(|error| error.to_string());
    let now = machine.board_mut().now();
    let board = machine.board_mut();
    let cards: Vec<_> = board.each_card().map(|card| board.crossed(card)).collect();
    let traffic = format!("{cards:?} {:?} {} {:?}", board.carried(), board.lost(), board.errors());
    // After a run that ended early, the bytes in a card's memory are undefined.
    let looked_at: Vec<Transfer> = all.iter().flat_map(EngineJob::directions).filter(|_| result.is_ok()).collect();
    let bytes = looked_at.iter().flat_map(|transfer| bytes(&mut machine, platform, transfer)).collect();
    let steady = samples.steady.take().unwrap_or_default();
    let mut after = Samples::wanted(1);
    let few = |one| EngineJob::Transfer(Transfer { count: 5, ..one });
    let few: Vec<EngineJob> = all.iter().flat_map(EngineJob::directions).take(1).map(few).collect();
    machine.run(&self::plan(&few, 1, Ticks::whole_ns(1 << 40)), &mut after).unwrap();
    after.steady = None;
    (Left { result, samples, now, traffic, bytes, after }, steady)
}

#[test]
fn fast_forward_is_bit_identical_to_full_simulation() {
    let mut random = Random(41);
    let (mut skipped, mut asked, mut split, mut late, mut reasons) = (0, 0, 0, 0, Vec::new());
    // Skipped runs on platforms with queues, with engine chunks, and through the root complex.
    let mut special = [0; 3];
    for case in 0..420 {
        let (platform, all) = jobs(&mut random);
        let passes = random.pick(&[1, 1, 2]);
        let most = Ticks::whole_ns(1 << 40);
        let what = || format!("case {case}: {all:?} x {passes} on {}", platform.name);
        let new = || SimulatedMachine::new(&platform).unwrap();
        let (mut detailed, none) = run(new().in_detail(), &platform, &all, &plan(&all, passes, most));
        assert_eq!((none.skipped, none.because), (0, Some(Unsteady::Unwanted)), "{}", what());
        let (mut quick, steady) = run(new(), &platform, &all, &plan(&all, passes, most));
        assert_same(&mut quick, &mut detailed, &what());
        asked += u32::from(!matches!(steady.because, Some(Unsteady::Few | Unsteady::SplitReads)));
        split += u32::from(steady.because == Some(Unsteady::SplitReads));
        let is_by_root = |transfer: &Transfer| match transfer.partner {
            Partner::Peer { card, .. } => {
                platform.peer_route(transfer.card as usize, card as usize) == Some(PeerRoute::ByRoot)
            }
            Partner::Host => false,
        };
        let by_root = all.iter().flat_map(EngineJob::directions).any(|transfer| is_by_root(&transfer));
        let marks = [platform.fifos.is_some(), platform.dma_read.is_some(), by_root];
        for (count, is_so) in special.iter_mut().zip(marks) {
            *count += u32::from(is_so && steady.skipped > 0);
        }
        skipped += u32::from(steady.skipped > 0);
        reasons.push(format!("{:?} {}", steady.because, u32::from(steady.skipped * 2 > steady.transfers)));
        // A timeout in the middle of the run occurs at the same time.
        if let (Ok(()), Some(sample), 0) = (&detailed.result, detailed.samples.taken.first(), case % 8) {
            let timeout = Ticks(sample.delivered.0 / 4 * (1 + random.below(3)) + random.below(1000));
            let early = plan(&all, passes, timeout);
            let (mut quick, _) = run(new(), &platform, &all, &early);
            let (mut detailed, _) = run(new().in_detail(), &platform, &all, &early);
            late += u32::from(detailed.result.is_err());
            assert_same(&mut quick, &mut detailed, &format!("{} with a timeout of {timeout:?}", what()));
        }
    }
    reasons.sort();
    let counts = reasons.chunk_by(|a, b| a == b).map(|same| format!("{} x {}", same[0], same.len()));
    let counts = counts.collect::<Vec<_>>().join(", ");
    assert!(
        special[0] > 50 && special[1] > 80 && special[2] > 5 && split > 5,
        "queues, chunks, through the root: {special:?}, {counts}"
    );
    // Full-duplex engines and reordered writes are often not periodic.
    assert!(skipped * 3 > asked * 2 && late > 20, "{skipped} of {asked} skipped, {late} with a timeout: {counts}");
}

/// Takes the critical paths and compares their totals. Where two constraints end at the same time, in turns, a path
/// may go by the one or the other.
fn assert_alike(quick: &mut Samples, detailed: &mut Samples, what: &str) {
    let time = |samples: &Samples| samples.taken.iter().map(|sample| sample.delivered).sum::<Ticks>();
    for samples in [quick, detailed] {
        let total: Ticks = std::mem::take(&mut samples.path).iter().map(|share| share.span).sum();
        assert_eq!(total, time(samples), "{what}");
    }
}

fn assert_same(quick: &mut Left, detailed: &mut Left, what: &str) {
    assert_alike(&mut quick.samples, &mut detailed.samples, what);
    assert_alike(&mut quick.after, &mut detailed.after, what);
    assert_eq!(quick.result, detailed.result, "{what}");
    assert_eq!(quick.samples, detailed.samples, "{what}");
    assert_eq!((quick.now, &quick.traffic), (detailed.now, &detailed.traffic), "{what}");
    for (place, (quick, detailed)) in quick.bytes.iter().zip(&detailed.bytes).enumerate() {
        let differs = quick.iter().zip(detailed).position(|(one, other)| one != other);
        assert_eq!(differs, None, "{what}: byte of memory {place}");
    }
    assert_eq!(quick.after, detailed.after, "{what}: the following run");
    assert!(*quick == *detailed, "{what}");
}
