//! A run that skips steady states gives what one gives that simulates every transfer: the same times, waits, traffic, bytes and
//! errors, on random platforms; and what comes after it is the same too.

mod drawn;

use drawn::{Random, by_the_root, pairs, platform, platform_with_ways, read_of_peer, set, transfer};
use lanemark_machine::{
    Lane, Machine, Op, Partner, Pattern, Plan, Samples, Steady, Transfer, Unsteady, Verb, Window, WriteRead,
};
use lanemark_platform::{OrderingChoice, PeerWay, Platform};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;

/// Bytes of a plan, roughly: a thousand of the smallest transfers and more.
const BYTES: u64 = 1 << 20;
/// Transfers of it at the most.
const MOST: u64 = 4000;

/// A random platform, with what the formulas do not know too.
fn any_platform(random: &mut Random) -> Platform {
    // With what an engine does within a direction and the queues of cards that have some, or without.
    let mut platform = if random.below(2) == 0 { platform_with_ways(random) } else { platform(random) };
    platform.link.skp.value = random.below(12) == 0;
    platform.link.ordering.value =
        random.pick(&[OrderingChoice::Blocked, OrderingChoice::Blocked, OrderingChoice::Never]);
    for (key, values) in [
        ("link.replay_tlps", [0.0, 0.0, 4.0, 16.0]),
        ("memory.loaded_completion_bytes", [0.0, 0.0, 64.0, 256.0]),
        ("dma.relaxed_ordering", [0.0, 0.0, 0.0, 1.0]),
        ("dma.send_buffers", [1.0, 2.0, 2.0, 8.0]),
        ("link.posted_header_credits", [2.0, 8.0, 32.0, 64.0]),
    ] {
        set(&mut platform, key, random.pick(&values));
    }
    platform
}

/// One with several cards; of some, what these send each other comes to the root complex.
fn any_platform_with_peers(random: &mut Random) -> Platform {
    let platform = loop {
        let drawn = any_platform(random);
        if drawn.cards() > 1 {
            break drawn;
        }
    };
    if random.below(2) == 0 { by_the_root(platform, random) } else { platform }
}

/// So many that a steady state is worth looking for, in a window of some places.
fn long(random: &mut Random, short: Transfer) -> Transfer {
    // Odd lengths lie in every way across pages before they come again.
    let bytes = if random.below(4) == 0 { short.bytes } else { random.pick(&[16, 64, 128, 256, 512, 1024, 4096]) };
    let len = random.pick(&[bytes, 3 * bytes, 4096, 64 << 10, 1 << 20]).clamp(bytes, 1 << 20);
    let offset = if random.below(4) == 0 { short.window.offset } else { short.window.offset & !4095 };
    let outstanding = short.outstanding.map(|most| most + random.below(4) as u32);
    let count = (BYTES / bytes).clamp(200, MOST);
    Transfer { bytes, count, window: Window { len, offset, ..short.window }, outstanding, ..short }
}

/// Operations of lanes that go at once.
fn operations(random: &mut Random) -> (Platform, Vec<Op>) {
    match random.below(8) {
        0 => {
            let platform = any_platform_with_peers(random);
            let read = read_of_peer(random, &platform);
            (platform, vec![Op::Transfer(long(random, read))])
        }
        1 => {
            let platform = any_platform(random);
            let drawn = pairs(random, platform.cards());
            let write = long(random, drawn.write);
            let read = Window { offset: write.window.offset + (2 << 20), ..write.window };
            (platform, vec![Op::WriteRead(WriteRead { write, read, is_mixed: random.below(2) == 0 })])
        }
        2 | 3 => several(random),
        _ => {
            let platform = any_platform(random);
            let (short, _) = transfer(random, platform.cards());
            let all = vec![Op::Transfer(long(random, short))];
            (platform, all)
        }
    }
}

/// Transfers of several cards, each with a window of its own.
fn several(random: &mut Random) -> (Platform, Vec<Op>) {
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
        // The same of all, most often: otherwise nobody keeps step with another.
        let one = long(random, one);
        let is_another = random.below(6) == 0;
        Op::Transfer(if is_another { one } else { Transfer { bytes, count: BYTES / bytes / 4, ..one } })
    });
    let all: Vec<Op> = all.collect();
    (platform, all)
}

fn plan(all: &[Op], passes: u64, timeout: Ticks) -> Plan {
    let lanes = (0..).zip(all).map(|(core, op)| Lane { core, body: vec![op.clone()] });
    Plan { lanes: lanes.collect(), timeout, ..Plan::on_one_core(Vec::new(), passes) }
}

/// The transfers of an operation.
fn transfers(op: &Op) -> Vec<Transfer> {
    match op {
        Op::Transfer(transfer) => vec![*transfer],
        Op::WriteRead(pairs) => vec![pairs.write, pairs.read()],
        _ => Vec::new(),
    }
}

/// The bytes at both ends of a transfer, as far as its window goes.
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

/// Everything that a run leaves behind, and the one after it.
#[derive(Debug, PartialEq)]
struct Left {
    result: Result<(), String>,
    samples: Samples,
    now: Ticks,
    traffic: String,
    bytes: Vec<Vec<u8>>,
    after: Samples,
}

fn run(machine: SimulatedMachine, platform: &Platform, all: &[Op], plan: &Plan) -> (Left, Steady) {
    let (mut machine, mut samples) = (machine, Samples::wanted(2));
    let result = machine.run(plan, &mut samples).map_err(|error| error.to_string());
    let now = machine.board_mut().now();
    let board = machine.board_mut();
    let cards: Vec<_> = board.each_card().map(|card| board.crossed(card)).collect();
    let traffic = format!("{cards:?} {:?} {} {:?}", board.carried(), board.lost, board.errors);
    // What came to a card of a run that ended too early is nobody's.
    let looked_at: Vec<Transfer> = all.iter().flat_map(transfers).filter(|_| result.is_ok()).collect();
    let bytes = looked_at.iter().flat_map(|transfer| bytes(&mut machine, platform, transfer)).collect();
    let steady = samples.steady.take().unwrap_or_default();
    let mut after = Samples::wanted(1);
    let few: Vec<Op> =
        all.iter().flat_map(transfers).take(1).map(|one| Op::Transfer(Transfer { count: 5, ..one })).collect();
    machine.run(&self::plan(&few, 1, Ticks::whole_ns(1 << 40)), &mut after).unwrap();
    after.steady = None;
    (Left { result, samples, now, traffic, bytes, after }, steady)
}

#[test]
fn a_run_that_skips_is_the_same_to_the_bit_as_one_that_does_not() {
    let mut random = Random(41);
    let (mut skipped, mut asked, mut split, mut late, mut reasons) = (0, 0, 0, 0, Vec::new());
    // Of those skipped, how many on platforms with queues, with ways of their own, and by the root.
    let mut special = [0; 3];
    for case in 0..300 {
        let (platform, all) = operations(&mut random);
        let passes = random.pick(&[1, 1, 2]);
        let most = Ticks::whole_ns(1 << 40);
        let what = || format!("case {case}: {all:?} x {passes} on {}", platform.name);
        let new = || SimulatedMachine::new(&platform).unwrap();
        let (detailed, none) = run(new().in_detail(), &platform, &all, &plan(&all, passes, most));
        assert_eq!((none.skipped, none.because), (0, Some(Unsteady::Unwanted)), "{}", what());
        let (quick, steady) = run(new(), &platform, &all, &plan(&all, passes, most));
        assert_same(&quick, &detailed, &what());
        asked += u32::from(!matches!(steady.because, Some(Unsteady::Few | Unsteady::SplitReads)));
        split += u32::from(steady.because == Some(Unsteady::SplitReads));
        let is_by_root = |transfer: &Transfer| match transfer.partner {
            Partner::Peer { card, .. } => {
                platform.peer_way(transfer.card as usize, card as usize) == Some(PeerWay::ByRoot)
            }
            Partner::Host => false,
        };
        let by_root = all.iter().flat_map(transfers).any(|transfer| is_by_root(&transfer));
        let marks = [platform.fifos.is_some(), platform.dma_read.is_some(), by_root];
        for (count, is_so) in special.iter_mut().zip(marks) {
            *count += u32::from(is_so && steady.skipped > 0);
        }
        skipped += u32::from(steady.skipped > 0);
        reasons.push(format!("{:?} {}", steady.because, u32::from(steady.skipped * 2 > steady.transfers)));
        // A timeout in the midst of it is one at the same time.
        if let (Ok(()), Some(sample), 0) = (&detailed.result, detailed.samples.taken.first(), case % 8) {
            let timeout = Ticks(sample.delivered.0 / 4 * (1 + random.below(3)) + random.below(1000));
            let early = plan(&all, passes, timeout);
            let (quick, _) = run(new(), &platform, &all, &early);
            let (detailed, _) = run(new().in_detail(), &platform, &all, &early);
            late += u32::from(detailed.result.is_err());
            assert_same(&quick, &detailed, &format!("{} with a timeout of {timeout:?}", what()));
        }
    }
    reasons.sort();
    let counts = reasons.chunk_by(|a, b| a == b).map(|same| format!("{} x {}", same[0], same.len()));
    let counts = counts.collect::<Vec<_>>().join(", ");
    assert!(
        special[0] > 50 && special[1] > 80 && special[2] > 5 && split > 5,
        "queues, ways, by the root: {special:?}, {counts}"
    );
    assert!(skipped * 4 > asked * 3 && late > 20, "{skipped} of {asked} skipped, {late} came to a timeout: {counts}");
}

fn assert_same(quick: &Left, detailed: &Left, what: &str) {
    assert_eq!(quick.result, detailed.result, "{what}");
    assert_eq!(quick.samples, detailed.samples, "{what}");
    assert_eq!((quick.now, &quick.traffic), (detailed.now, &detailed.traffic), "{what}");
    for (place, (quick, detailed)) in quick.bytes.iter().zip(&detailed.bytes).enumerate() {
        let differs = quick.iter().zip(detailed).position(|(one, other)| one != other);
        assert_eq!(differs, None, "{what}: byte of memory {place}");
    }
    assert_eq!(quick.after, detailed.after, "{what}: what came next");
    assert!(quick == detailed, "{what}");
}
