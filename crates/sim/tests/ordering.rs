//! Litmus tests of ordering over whole boards: *No* is never observed, *Yes* is observed where blocking would
//! deadlock, *Y/N* is observed both ways. Those of one transmitter are in `fabric/link/litmus.rs`.

mod random;
mod stage;

use lanemark_machine::{EngineJob, Machine, Partner, Pattern, Plan, Samples, Transfer, Verb, Window};
use lanemark_platform::OrderingChoice;
use lanemark_sim::SimulatedMachine;
use lanemark_sim::{Board, CardIndex, Tlp, TlpKind};
use random::Random;
use stage::{BAR, ns, offset_of, tree_platform};

/// Writes data and then a flag, 64 B each, to the same card over two switches; returns what the card accepted, in
/// order.
fn producer(passing: OrderingChoice, relaxed_flag: bool, seed: u64) -> Vec<u64> {
    let mut platform = tree_platform(&[("switch.lower.posted_data_credits", 16.0)]);
    platform.link.ordering.value = passing;
    // Credits for one payload and a flag.
    platform.link.posted_data_credits.value = 12;
    let mut board = Board::new(&platform).unwrap();
    board.record_crossings();
    let mut random = Random::new(seed);
    // Cards a and b write to card c, so that its link is saturated.
    let window = BAR + (2 << 20) + offset_of("ddr");
    let write = |board: &mut Board, card: usize, at: u64, place: u64, relaxed: bool| {
        let payload = board.payload(&[card as u8; 128]);
        let length_dw = if place == 63 { 1 } else { 32 };
        let tlp = Tlp {
            address: window + place * 128,
            length_dw,
            first_be: 0xF,
            last_be: if length_dw == 1 { 0 } else { 0xF },
            requester: 0x8000 + card as u16,
            payload,
            relaxed,
            ..Tlp::of(TlpKind::MWr)
        };
        board.inject_at_card(CardIndex(card), ns(at), tlp);
    };
    for place in 0..8 {
        write(&mut board, 0, random.below(400), place, false);
        write(&mut board, 1, random.below(400), 16 + place, false);
    }
    // The flag.
    write(&mut board, 0, 400, 63, relaxed_flag);
    while board.step() {}
    assert_eq!(board.slots_in_use(), 0);
    board
        .crossings()
        .iter()
        .filter(|crossing| crossing.tlp.requester == 0x8000)
        .map(|c| (c.tlp.address - window) / 128)
        .collect()
}

#[test]
fn a_flag_passes_its_data_only_with_relaxed_ordering_and_ports_that_use_it() {
    let early =
        |passing, relaxed| (0..200).filter(|seed| producer(passing, relaxed, *seed).last() != Some(&63)).count();
    assert_eq!(early(OrderingChoice::Never, true), 0);
    for passing in [OrderingChoice::Never, OrderingChoice::Blocked, OrderingChoice::Random] {
        assert_eq!(early(passing, false), 0, "{passing:?}");
    }
    assert!(early(OrderingChoice::Blocked, true) > 0);
    assert!(early(OrderingChoice::Random, true) > 0);
}

#[test]
fn a_read_pushes_earlier_writes_of_other_requesters() {
    // Card a saturates the link of card c; a later read from the root returns the written bytes.
    let mut platform = tree_platform(&[]);
    platform.link.posted_data_credits.value = 8;
    let mut board = Board::new(&platform).unwrap();
    let window = BAR + (2 << 20) + offset_of("ddr");
    for place in 0..8 {
        let payload = board.payload(&[7; 128]);
        let tlp = Tlp {
            address: window + place * 128,
            length_dw: 32,
            first_be: 0xF,
            last_be: 0xF,
            requester: 0x8000,
            payload,
            ..Tlp::of(TlpKind::MWr)
        };
        board.inject_at_card(CardIndex(0), ns(0), tlp);
    }
    // By then, every write has reached the upper switch, and most wait there.
    board.inject_read(ns(700), window + 7 * 128, 64, 9);
    while board.step() {}
    let (_, completion, bytes) = board.outbox().pop_front().unwrap();
    assert_eq!((completion.tag, bytes), (9, [7; 64]));
}

/// Returns how long card a takes to read host memory while card b writes to a slow region of it.
fn read_beside_writes(relaxed: bool, id_based: bool, passing: OrderingChoice) -> f64 {
    let mut platform = tree_platform(&[("region.ddr.beat_ns", 200.0)]);
    platform.link.ordering.value = passing;
    platform.link.posted_header_credits.value = 1;
    let dma = platform.dma.as_mut().unwrap();
    (dma.relaxed_ordering.value, dma.id_based_ordering.value) = (relaxed, id_based);
    let window = |offset, len| Window { offset, len, pattern: Pattern::Sequential };
    let read = Transfer {
        card: 0,
        verb: Verb::Load,
        partner: Partner::Host,
        bytes: 4096,
        count: 4,
        window: window(0, 64 << 10),
        outstanding: None,
    };
    let partner = Partner::Peer { card: 0, bar: 0 };
    let to_ddr = window(offset_of("ddr"), 64 << 10);
    let write = Transfer { card: 1, verb: Verb::Store, partner, count: 64, window: to_ddr, ..read };
    let plan = Plan::new([read, write].map(EngineJob::Transfer).to_vec(), 1);
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(&platform).unwrap().run(&plan, &mut samples).unwrap();
    samples.together.unwrap().each[0].delivered.as_ns()
}

#[test]
fn completions_wait_behind_peer_writes_unless_the_read_was_relaxed() {
    let strict = read_beside_writes(false, false, OrderingChoice::Blocked);
    let free = read_beside_writes(true, false, OrderingChoice::Blocked);
    assert!(free * 2.0 < strict, "{free} and {strict}");
    assert!(
        read_beside_writes(true, false, OrderingChoice::Never) > strict * 0.99,
        "a port without optional reordering"
    );
    assert!(
        read_beside_writes(false, true, OrderingChoice::Blocked) > strict * 0.99,
        "ID-based ordering does not let completions pass"
    );
}
