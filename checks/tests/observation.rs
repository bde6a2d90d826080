//! Observing a board has no side effects. Links process acknowledgments and credits lazily, and are brought up to date when
//! their traffic is read; the simulation then continues as without the reading.

mod random_platform;

use lanemark_machine::Verb;
use lanemark_platform::{OrderingChoice, Platform};
use lanemark_sim::Board;
use lanemark_units::Ticks;
use random_platform::{Random, by_the_root, pairs, platform, platform_with_ways, set, transfer, with_few_credits};

/// A random platform whose links have few credits, wait for acknowledgments, or corrupt TLPs.
fn any_platform(random: &mut Random) -> Platform {
    let mut picked = if random.below(2) == 0 { platform_with_ways(random) } else { platform(random) };
    if random.below(2) == 0 {
        picked = with_few_credits(picked, random);
    }
    if picked.cards() > 1 && random.below(3) == 0 {
        picked = by_the_root(picked, random);
    }
    picked.link.skp.value = random.below(3) == 0;
    picked.link.ordering.value =
        random.pick(&[OrderingChoice::Blocked, OrderingChoice::Blocked, OrderingChoice::Never, OrderingChoice::Random]);
    for (key, values) in [
        ("link.replay_tlps", [0.0, 0.0, 1.0, 3.0, 16.0]),
        ("link.tlps_per_error", [0.0, 0.0, 0.0, 7.0, 50.0]),
        ("dma.send_buffers", [1.0, 2.0, 2.0, 8.0, 32.0]),
        ("link.posted_header_credits", [1.0, 2.0, 8.0, 32.0, 64.0]),
        ("link.nonposted_header_credits", [1.0, 2.0, 8.0, 32.0, 64.0]),
    ] {
        set(&mut picked, key, random.pick(&values));
    }
    picked
}

/// Result of a run with this seed as text; with `looks`, links are observed between one tick in three.
fn left(seed: u64, looks: bool) -> String {
    let mut random = Random(seed * 77 + 5);
    let platform = any_platform(&mut random);
    let mut board = Board::new(&platform).unwrap();
    for card in 0..platform.cards() {
        if random.below(4) == 0 {
            let mut both = pairs(&mut random, 1);
            both.write.card = card;
            board.start_pairs(&both, 1, 0).unwrap();
            continue;
        }
        let (mut one, _) = transfer(&mut random, 1);
        one.card = card;
        one.count = one.count.min(50_000 / one.bytes.max(1) + 1);
        one.outstanding = one.outstanding.filter(|_| one.verb == Verb::Load);
        board.start_transfer(&one, 1, 0).unwrap();
    }
    let mut who = Random(seed);
    while board.step() {
        let is_between_ticks = board.next_at().is_none_or(|next| next > board.now());
        if looks && is_between_ticks && who.below(3) == 0 {
            board.carried();
        }
        assert!(board.now() < Ticks::whole_ns(1_000_000_000), "seed {seed} does not end");
    }
    let waits: Vec<_> = board.each_card().map(|card| board.engine(card).map(|engine| engine.waits)).collect();
    let carried = board.carried();
    format!("{} {} {:?} {waits:?} {carried:?} {:?}", board.hops(), board.slots_in_use(), board.now(), board.errors())
}

#[test]
fn observing_links_between_ticks_has_no_side_effects() {
    for seed in 0..1500 {
        assert_eq!(left(seed, true), left(seed, false), "seed {seed}");
    }
}
