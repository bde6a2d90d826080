//! Looking at a board changes nothing of what happens on it. Links do not look at each acknowledgment and credit when it goes, and are
//! brought up to date where somebody asks what they carried: then everything goes on as if nobody had.

mod drawn;

use drawn::{Random, by_the_root, pairs, platform, platform_with_ways, set, transfer, with_few_credits};
use lanemark_machine::Verb;
use lanemark_platform::{OrderingChoice, Platform};
use lanemark_sim::Board;
use lanemark_units::Ticks;

/// A random platform whose links have few credits, wait for acknowledgments, or carry what comes damaged.
fn any_platform(random: &mut Random) -> Platform {
    let mut drawn = if random.below(2) == 0 { platform_with_ways(random) } else { platform(random) };
    if random.below(2) == 0 {
        drawn = with_few_credits(drawn, random);
    }
    if drawn.cards() > 1 && random.below(3) == 0 {
        drawn = by_the_root(drawn, random);
    }
    drawn.link.skp.value = random.below(3) == 0;
    drawn.link.ordering.value =
        random.pick(&[OrderingChoice::Blocked, OrderingChoice::Blocked, OrderingChoice::Never, OrderingChoice::Random]);
    for (key, values) in [
        ("link.replay_tlps", [0.0, 0.0, 1.0, 3.0, 16.0]),
        ("link.tlps_per_error", [0.0, 0.0, 0.0, 7.0, 50.0]),
        ("dma.send_buffers", [1.0, 2.0, 2.0, 8.0, 32.0]),
        ("link.posted_header_credits", [1.0, 2.0, 8.0, 32.0, 64.0]),
        ("link.nonposted_header_credits", [1.0, 2.0, 8.0, 32.0, 64.0]),
    ] {
        set(&mut drawn, key, random.pick(&values));
    }
    drawn
}

/// What happened on a board of this seed, in words, where somebody looks between ticks one time in three, or nobody does.
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
    format!("{} {} {:?} {waits:?} {carried:?} {:?}", board.hops(), board.slots_in_use(), board.now(), board.errors)
}

#[test]
fn who_looks_at_links_between_two_ticks_changes_nothing() {
    for seed in 0..1500 {
        assert_eq!(left(seed, true), left(seed, false), "seed {seed}");
    }
}
