//! Litmus tests of ordering on one transmitter: *No* is never observed, *Yes* is observed where blocking would
//! deadlock, *Y/N* is observed both ways. `tests/ordering.rs` has those of whole boards.

use super::{Spec, Transmitter};
use crate::fabric::credit::{Cost, Credits, Pool};
use crate::fabric::dllp::{DllpKind, Gone};
use crate::tlp::{Tlp, TlpKind};
use lanemark_platform::OrderingChoice;
use lanemark_units::Ticks;
use lanemark_wire::{FlowClass, Generation, Lanes, Ordered, Pass, may_pass};
use std::collections::BTreeSet;

/// A linear congruential generator with a fixed seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5555);
        random.below(2);
        random
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

const KINDS: [TlpKind; 3] = [TlpKind::MWr, TlpKind::MRd, TlpKind::CplD];

/// Creates a link with few credits, so that TLPs stall; the receiver returns credits after `hold`.
fn link(passing: OrderingChoice, credits: [Pool; 3], number: u64) -> Transmitter {
    Transmitter::new(Spec {
        generation: Generation::Gen2,
        lanes: Lanes::X8,
        latency: Ticks(10),
        latency_back: Ticks(10),
        credits: Credits(credits),
        start_dw: 1,
        completion_start_dw: 1,
        pause: Ticks::ZERO,
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

/// Returns the input positions of the TLPs in the order in which they were sent.
fn went(passing: OrderingChoice, offers: &[(Ticks, Tlp)], random: &mut Random) -> Vec<usize> {
    let credits = [0; 3].map(|_: u32| Pool { header: random.below(3) as u32 + 1, data: random.below(9) as u32 + 8 });
    let mut link = link(passing, credits, random.below(1000));
    let (mut went, mut next, mut now) = (Vec::new(), 0, Ticks::ZERO);
    // Accepted TLPs and their times.
    let mut held: Vec<(Ticks, Cost)> = Vec::new();
    while went.len() < offers.len() {
        let offer = offers.get(next).map_or(Ticks::NEVER, |offer| offer.0);
        let freed = held.first().map_or(Ticks::NEVER, |held| held.0);
        let before = link.due(Ticks::NEVER);
        now = now.max(offer.min(freed).min(before.at));
        assert!(now < Ticks::NEVER, "deadlock: {went:?} of {offers:?}");
        if offer <= now {
            // The address identifies the TLP.
            let goes_behind = !link.offer(0, now, Tlp { address: next as u64 * 4, ..offers[next].1 });
            assert!(
                !goes_behind || next == 0 || link.due(Ticks::NEVER) == before,
                "{passing:?}: `offer` does not report that the TLP passes"
            );
            next += 1;
        } else if freed <= now {
            let (_, cost) = held.remove(0);
            let kind = DllpKind::update(cost.class);
            link.free(kind, now, cost.data, lanemark_machine::Cause::Device, crate::critical_path::Milestone::NONE);
            link.receive_dllp(Gone { kind, went: now, comes: now + Ticks(10) });
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

/// Returns a cell of the ordering table, with the answer for this pair.
fn cell(later: Ordered, earlier: Ordered) -> (usize, usize, Pass) {
    (later.class as usize, earlier.class as usize, may_pass(later, earlier))
}

#[test]
fn ordering_obeys_the_table_and_every_optional_cell_is_seen_both_ways() {
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
    // Nine cells: five with one answer, six with both.
    assert_eq!(passed.len(), 3 + 6, "{passed:?}");
}

#[test]
fn a_class_without_credits_does_not_block_tlps_that_must_pass_it() {
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
fn writes_without_credits_block_reads_and_completions_without_ro_or_ido() {
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
            assert!(!goes(passing, kind, false, true, 1), "IDO, same requester");
        }
        assert_eq!(goes(passing, TlpKind::MRd, false, true, 2), may, "IDO, another requester");
        assert!(!goes(passing, TlpKind::CplD, false, true, 2), "the completer ID is not modelled");
        assert!(!goes(passing, TlpKind::MRd, true, false, 2), "relaxed ordering does not let reads pass");
        assert_eq!(goes(passing, TlpKind::CplD, true, false, 2), may);
    }
}
