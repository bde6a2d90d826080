//! Litmus tests of ordering: *No* is never seen, *Yes* is seen where blocking would stop everything, *Y/N* is seen both ways.

mod random;
mod stage;

use lanemark_machine::{Lane, Machine, Op, Partner, Pattern, Plan, Samples, Transfer, Verb, Window};
use lanemark_platform::OrderingChoice;
use lanemark_sim::SimulatedMachine;
use lanemark_sim::part::credit::{Cost, Credits, Pool};
use lanemark_sim::part::dllp::{DllpKind, Gone};
use lanemark_sim::part::link::{Spec, Transmitter};
use lanemark_sim::{Board, Tlp, TlpKind};
use lanemark_units::Ticks;
use lanemark_wire::{FlowClass, Generation, Lanes, Ordered, Pass, may_pass};
use random::Random;
use stage::{BAR, ns, offset_of, tree_platform};
use std::collections::BTreeSet;

const KINDS: [TlpKind; 3] = [TlpKind::MWr, TlpKind::MRd, TlpKind::CplD];

/// A link of so few credits that much waits, which its receiver gives back after `hold`.
fn link(passing: OrderingChoice, credits: [Pool; 3], number: u64) -> Transmitter {
    Transmitter::new(Spec {
        generation: Generation::Gen2,
        lanes: Lanes::X8,
        latency: Ticks(10),
        credits: Credits(credits),
        start_dw: 1,
        ack_latency_limit: Ticks::whole_ns(100),
        mps_bytes: 128,
        replay_tlps: Pool::INFINITE.header,
        ordering: passing,
        skp: None,
        tlps_per_error: 0,
        number,
        inputs: 1,
        first_served: 0,
    })
}

/// The places at which TLPs went that were offered in this order.
fn went(passing: OrderingChoice, offers: &[(Ticks, Tlp)], random: &mut Random) -> Vec<usize> {
    let credits = [0; 3].map(|_: u32| Pool { header: random.below(3) as u32 + 1, data: random.below(9) as u32 + 8 });
    let mut link = link(passing, credits, random.below(1000));
    let (mut went, mut next, mut now) = (Vec::new(), 0, Ticks::ZERO);
    // What the receiver has accepted, and when.
    let mut held: Vec<(Ticks, Cost)> = Vec::new();
    while went.len() < offers.len() {
        let offer = offers.get(next).map_or(Ticks::NEVER, |offer| offer.0);
        let freed = held.first().map_or(Ticks::NEVER, |held| held.0);
        let before = link.due(Ticks::NEVER);
        now = now.max(offer.min(freed).min(before.at));
        assert!(now < Ticks::NEVER, "nothing can go on: {went:?} of {offers:?}");
        if offer <= now {
            // The address says which it is.
            let goes_behind = !link.offer(0, now, Tlp { address: next as u64 * 4, ..offers[next].1 });
            assert!(
                !goes_behind || next == 0 || link.due(Ticks::NEVER) == before,
                "{passing:?}: it does not say that it goes earlier"
            );
            next += 1;
        } else if freed <= now {
            let (_, cost) = held.remove(0);
            let kind = DllpKind::update(cost.class);
            link.free(kind, now, cost.data, lanemark_machine::Cause::Device);
            link.told(Gone { kind, went: now, comes: now + Ticks(10) });
        } else if let Some(sent) = link.send(now) {
            went.push((sent.tlp.address / 4) as usize);
            let accepted = held.last().map_or(Ticks::ZERO, |held| held.0).max(sent.arrives);
            held.push((accepted + Ticks::whole_ns(random.below(200)), Cost::of(&sent.tlp)));
        }
    }
    went
}

fn drawn(random: &mut Random, count: usize) -> Vec<(Ticks, Tlp)> {
    let mut at = Ticks::ZERO;
    let one = |random: &mut Random, at: &mut Ticks| {
        *at += Ticks::whole_ns(random.below(30));
        let kind = KINDS[random.below(3) as usize];
        let tlp = Tlp {
            relaxed: random.below(3) == 0,
            id_based: random.below(3) == 0,
            requester: random.below(2) as u16,
            tag: random.below(3) as u16,
            length_dw: 1 + random.below(32) as u16,
            ..Tlp::of(kind)
        };
        (*at, tlp)
    };
    (0..count).map(|_| one(random, &mut at)).collect()
}

/// A cell of the table with what its answer depends on.
fn cell(later: Ordered, earlier: Ordered) -> (usize, usize, Pass) {
    (later.class as usize, earlier.class as usize, may_pass(later, earlier))
}

#[test]
fn no_tlp_passes_another_that_it_must_not_and_whatever_may_pass_does_and_does_not() {
    let mut random = Random::new(1);
    let (mut passed, mut kept) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..6000 {
        let passing = [OrderingChoice::Never, OrderingChoice::Blocked, OrderingChoice::Random][round % 3];
        let offers = drawn(&mut random, 24);
        let order = went(passing, &offers, &mut random);
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, which)| place[*which] = at);
        for later in 1..offers.len() {
            for earlier in 0..later {
                let [one, other] = [later, earlier].map(|which| offers[which].1.ordered());
                let cell = cell(one, other);
                if place[later] < place[earlier] {
                    assert_ne!(cell.2, Pass::No, "{passing:?}: {one:?} passed {other:?}");
                    passed.insert(cell);
                } else {
                    kept.insert(cell);
                }
            }
        }
    }
    let all = |wanted: &[Pass], seen: &BTreeSet<(usize, usize, Pass)>| {
        for later in FlowClass::ALL {
            for earlier in FlowClass::ALL {
                for pass in wanted {
                    let cell = (later as usize, earlier as usize, *pass);
                    let is_possible = kept.contains(&cell) || passed.contains(&cell);
                    assert!(!is_possible || seen.contains(&cell), "{later:?} and {earlier:?}: {pass:?} was not seen");
                }
            }
        }
    };
    all(&[Pass::Yes, Pass::Either], &passed);
    all(&[Pass::No, Pass::Either], &kept);
    // Nine cells: five answers without a choice, six with one.
    assert_eq!(passed.len(), 3 + 6, "{passed:?}");
}

#[test]
fn a_class_without_credits_holds_nothing_that_must_pass_it() {
    let none = Pool { header: 0, data: 0 };
    for passing in [OrderingChoice::Never, OrderingChoice::Blocked, OrderingChoice::Random] {
        for (stuck, passes) in
            [(TlpKind::MRd, &[TlpKind::MWr, TlpKind::CplD][..]), (TlpKind::CplD, &[TlpKind::MWr][..])]
        {
            for later in passes {
                let mut credits = [Pool::INFINITE; 3];
                credits[stuck.class() as usize] = none;
                let mut link = link(passing, credits, 0);
                link.offer(0, Ticks::ZERO, Tlp { length_dw: 4, ..Tlp::of(stuck) });
                link.offer(0, Ticks::ZERO, Tlp { length_dw: 4, ..Tlp::of(*later) });
                assert_eq!(link.due(Ticks::NEVER).at, Ticks::ZERO, "{passing:?}: {later:?} passes {stuck:?}");
                assert_eq!(link.send(Ticks::ZERO).map(|sent| sent.tlp.kind), Some(*later));
                assert_eq!(link.due(Ticks::NEVER).at, Ticks::NEVER);
            }
        }
    }
}

#[test]
fn writes_without_credits_hold_reads_and_completions_unless_these_are_free() {
    let goes = |passing, kind, relaxed, id_based, requester| {
        let mut link = link(passing, [Pool { header: 0, data: 0 }, Pool::INFINITE, Pool::INFINITE], 0);
        link.offer(0, Ticks::ZERO, Tlp { length_dw: 4, requester: 1, ..Tlp::of(TlpKind::MWr) });
        link.offer(0, Ticks::ZERO, Tlp { length_dw: 4, requester, relaxed, id_based, ..Tlp::of(kind) });
        link.send(Ticks::ZERO).is_some()
    };
    for passing in [OrderingChoice::Never, OrderingChoice::Blocked, OrderingChoice::Random] {
        let may = passing != OrderingChoice::Never;
        for kind in [TlpKind::MRd, TlpKind::CplD] {
            assert!(!goes(passing, kind, false, false, 2), "{passing:?}, {kind:?}");
            assert!(!goes(passing, kind, false, true, 1), "ID-based, of the same requester");
        }
        assert_eq!(goes(passing, TlpKind::MRd, false, true, 2), may, "ID-based, of another");
        assert!(!goes(passing, TlpKind::CplD, false, true, 2), "who completes is not known");
        assert!(!goes(passing, TlpKind::MRd, true, false, 2), "relaxed ordering frees no read");
        assert_eq!(goes(passing, TlpKind::CplD, true, false, 2), may);
    }
}

/// A writer's data and then its flag, each 64 B, to the same card over two switches; what the card accepted, in order.
fn producer(passing: OrderingChoice, relaxed_flag: bool, seed: u64) -> Vec<u64> {
    let mut platform = tree_platform(&[("switch.lower.posted_data_credits", 16.0)]);
    platform.link.ordering.value = passing;
    // Room for one payload and a flag.
    platform.link.posted_data_credits.value = 12;
    let mut board = Board::new(&platform).unwrap();
    board.crossings = Some(Vec::new());
    let mut random = Random::new(seed);
    // Card a writes into card c, and so does card b, to fill the way.
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
        board.inject_at_card(card, ns(at), tlp);
    };
    for place in 0..8 {
        write(&mut board, 0, random.below(400), place, false);
        write(&mut board, 1, random.below(400), 16 + place, false);
    }
    // The flag.
    write(&mut board, 0, 400, 63, relaxed_flag);
    while board.step() {}
    assert_eq!(board.slots_in_use(), 0);
    let crossings = board.crossings.take().unwrap();
    crossings
        .iter()
        .filter(|crossing| crossing.tlp.requester == 0x8000)
        .map(|c| (c.tlp.address - window) / 128)
        .collect()
}

#[test]
fn a_flag_never_comes_before_its_data_unless_it_was_sent_relaxed_and_ports_make_use_of_it() {
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
fn a_read_pushes_the_writes_of_others_that_were_at_the_switch_before_it() {
    // Card a fills the way to card c; a read from the root that comes behind is answered with what was written.
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
        board.inject_at_card(0, ns(0), tlp);
    }
    // All writes have reached the upper switch by then, and most wait there.
    board.inject_read(ns(700), window + 7 * 128, 64, 9);
    while board.step() {}
    let (_, completion, bytes) = board.outbox.pop_front().unwrap();
    assert_eq!((completion.tag, bytes), (9, [7; 64]));
}

/// How long card a takes to read host memory while card b fills a slow region of it.
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
    let lanes = (0..).zip([read, write]).map(|(core, transfer)| Lane { core, body: vec![Op::Transfer(transfer)] });
    let plan = Plan { lanes: lanes.collect(), ..Plan::on_one_core(Vec::new(), 1) };
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(&platform).unwrap().run(&plan, &mut samples).unwrap();
    samples.together.unwrap().each[0].delivered.as_ns()
}

#[test]
fn completions_wait_behind_a_peers_writes_unless_the_read_was_relaxed() {
    let strict = read_beside_writes(false, false, OrderingChoice::Blocked);
    let free = read_beside_writes(true, false, OrderingChoice::Blocked);
    assert!(free * 2.0 < strict, "{free} and {strict}");
    assert!(read_beside_writes(true, false, OrderingChoice::Never) > strict * 0.99, "a port that lets nothing pass");
    assert!(
        read_beside_writes(false, true, OrderingChoice::Blocked) > strict * 0.99,
        "ID-based ordering frees no completion"
    );
}
