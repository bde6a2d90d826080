//! Latencies and credits of links and switches.

use crate::{BY_SWITCHES_NS, READ_NS, SWITCHES, WRITE_NS, assert_ns, dma, mmio, platform, predicted, transfer};
use lanemark_machine::{Access, Partner, Span, Step, Stream, Verb, Width};
use lanemark_model::{Bound, Prediction};
use lanemark_platform::Platform;
use lanemark_units::{BarOffset, MemoryType};

#[test]
fn a_load_crosses_the_link_twice() {
    for latency in [1000.0, 1400.0] {
        let card = platform("", &[("link.latency_ns", &latency.to_string())]);
        // Request of 24 B, completion of 24 B, one beat of the region.
        let by_hand = 200.0 + 96.0 + latency + 10000.0 + 500_000.0 + 2.0 + 20000.0 + 96.0 + latency;
        assert_ns(mmio(&card, Verb::Load, 4).delivered_ns, by_hand);
    }
}

#[test]
fn a_store_crosses_the_link_once_and_half_of_the_root_complex() {
    let card = platform("", &[]);
    assert_ns(mmio(&card, Verb::Store, 4).delivered_ns, 100.0 + 112.0 + 1000.0 + 10000.0 + 2.0);
}

#[test]
fn a_load_crosses_every_link_and_switch_twice() {
    let card = platform(SWITCHES, &[]);
    // Every switch stores the whole packet: three times 96 ns each way.
    let by_hand = 200.0 + 2.0 * (3.0 * 96.0 + BY_SWITCHES_NS) + 10000.0 + 500_000.0 + 2.0 + 20000.0;
    assert_ns(mmio(&card, Verb::Load, 4).delivered_ns, by_hand);
    let by_hand = 100.0 + 3.0 * 112.0 + BY_SWITCHES_NS + 10000.0 + 2.0;
    assert_ns(mmio(&card, Verb::Store, 4).delivered_ns, by_hand);
}

#[test]
fn a_retimer_delays_each_direction_by_its_own_latency() {
    let retimer = "
[[retimer]]
name = \"r\"
link = \"card\"
down_ns = { value = 3000, source = \"a test\" }
up_ns = { value = 7000, source = \"a test\" }
";
    let (without, with) = (platform("", &[]), platform(retimer, &[]));
    let delay = |ask: &dyn Fn(&Platform) -> Prediction| ask(&with).delivered_ns - ask(&without).delivered_ns;
    assert_ns(delay(&|card| mmio(card, Verb::Store, 4)), 3000.0);
    assert_ns(delay(&|card| mmio(card, Verb::Load, 4)), 10000.0);
    assert_ns(delay(&|card| dma(card, Verb::Store, 1)), 7000.0);
    assert_ns(delay(&|card| dma(card, Verb::Load, 1)), 10000.0);
}

#[test]
fn a_dma_write_crosses_the_link_once_and_a_read_twice() {
    let card = platform("", &[]);
    assert_ns(dma(&card, Verb::Store, 1).delivered_ns, WRITE_NS);
    assert_ns(dma(&card, Verb::Load, 1).delivered_ns, READ_NS);
}

#[test]
fn dma_crosses_every_link_and_switch() {
    let card = platform(SWITCHES, &[]);
    let more = BY_SWITCHES_NS - 1000.0;
    assert_ns(dma(&card, Verb::Store, 1).delivered_ns, WRITE_NS + 2.0 * 336.0 + more);
    assert_ns(dma(&card, Verb::Load, 1).delivered_ns, READ_NS + 2.0 * (80.0 + 336.0) + 2.0 * more);
}

#[test]
fn a_write_to_a_peer_turns_at_the_lowest_common_switch() {
    let card = platform(SWITCHES, &[]);
    let peer = Partner::Peer { card: 1, bar: 2 };
    // Up to the lower switch, up to the upper one, down to the other card and its memory: 64 B every 2 ns. Its BAR is above
    // 4 GiB, so that a write has 4 DW of header: 88 B.
    let by_hand = 4.0 + 20000.0 + 3.0 * 352.0 + 1000.0 + 70000.0 + 5000.0 + 30000.0 + 1000.0 + 10000.0 + 2.0;
    assert_ns(predicted(&card, transfer(Verb::Store, peer, 64, 1)).delivered_ns, by_hand);
}

#[track_caller]
fn assert_credits(found: Prediction, by_hand: f64) {
    assert_eq!(found.bound, Bound::Credits, "{found:?}");
    assert_ns(found.delivered_ns, by_hand);
}

#[test]
fn posted_credits_allow_as_many_writes_per_round_trip() {
    // From the start of a write until its credits are back: there, and an UpdateFC.
    let round = 336.0 + 1000.0 + 32.0 + 1000.0;
    for credits in [("root_complex.posted_header_credits", "2"), ("root_complex.posted_data_credits", "8")] {
        let card = platform("", &[credits]);
        assert_credits(dma(&card, Verb::Store, 5), WRITE_NS + 2.0 * round);
        // The second of a pair follows the first at once.
        assert_credits(dma(&card, Verb::Store, 6), WRITE_NS + 2.0 * round + 336.0);
    }
    let card = platform("", &[("root_complex.posted_header_credits", "127")]);
    assert_ne!(dma(&card, Verb::Store, 5).bound, Bound::Credits);
}

#[test]
fn nonposted_credits_allow_as_many_reads_per_round_trip() {
    let round = 80.0 + 1000.0 + 32.0 + 1000.0;
    let card = platform("", &[("root_complex.nonposted_header_credits", "2")]);
    assert_credits(dma(&card, Verb::Load, 5), READ_NS + 2.0 * round);
}

#[test]
fn completion_credits_of_a_switch_allow_as_many_completions_per_round_trip() {
    // They are returned when the completion has left the switch.
    let round = 336.0 + 2000.0 + 30000.0 + 32.0 + 2000.0;
    let read = READ_NS + 2.0 * (80.0 + 336.0) + 2.0 * (BY_SWITCHES_NS - 1000.0);
    for credits in [("switch.upper.completion_header_credits", "2"), ("switch.upper.completion_data_credits", "8")] {
        assert_credits(dma(&platform(SWITCHES, &[credits]), Verb::Load, 5), read + 2.0 * round);
    }
}

#[test]
fn completions_of_one_read_use_credits_one_by_one() {
    let changes = [("memory.completion_bytes", "64"), ("switch.upper.completion_header_credits", "2")];
    let card = platform(SWITCHES, &changes);
    let round = 336.0 + 2000.0 + 30000.0 + 32.0 + 2000.0;
    let read = READ_NS + 2.0 * (80.0 + 336.0) + 2.0 * (BY_SWITCHES_NS - 1000.0);
    // Five reads of 128 B have ten completions of 64 B: two each round trip, and the last behind another one.
    let found = predicted(&card, transfer(Verb::Load, Partner::Host, 128, 5));
    assert_credits(found, read + 4.0 * round + 336.0);
}

#[test]
fn credits_of_every_switch_bound_what_passes_it() {
    let write = WRITE_NS + 2.0 * 336.0 + BY_SWITCHES_NS - 1000.0;
    let rounds =
        [("lower", 336.0 + 1000.0 + 70000.0 + 32.0 + 1000.0), ("upper", 336.0 + 5000.0 + 30000.0 + 32.0 + 5000.0)];
    for (switch, round) in rounds {
        let card = platform(SWITCHES, &[(&format!("switch.{switch}.posted_header_credits"), "2")]);
        assert_credits(dma(&card, Verb::Store, 5), write + 2.0 * round);
        let card = platform(SWITCHES, &[(&format!("switch.{switch}.nonposted_header_credits"), "2")]);
        let read = READ_NS + 2.0 * (80.0 + 336.0) + 2.0 * (BY_SWITCHES_NS - 1000.0);
        assert_credits(dma(&card, Verb::Load, 5), read + 2.0 * (round - 336.0 + 80.0));
    }
}

#[test]
fn credits_of_the_card_bound_stores_and_loads_of_a_core() {
    let card = platform("", &[("link.posted_header_credits", "2")]);
    let one = 100.0 + 112.0 + 1000.0 + 10000.0 + 2.0;
    let round = 112.0 + 1000.0 + 10000.0 + 2.0 + 32.0 + 1000.0;
    assert_credits(mmio(&card, Verb::Store, 20), one + 2.0 * round);

    let card = platform("", &[("link.nonposted_header_credits", "2")]);
    let span = Span { at: BarOffset { bar: 2, offset: 0 }, len: 5 * 64, memory_type: MemoryType::Wc };
    let loads = Stream::over(Verb::Load, Access::NonTemporal(Width::B16), span);
    // Five lines of 64 B, each read once; the region has 64 B every 2 ns, 80 ns after a request.
    let one = 200.0 + 96.0 + 1000.0 + 10000.0 + 80.0 + 2.0 + 20000.0 + 336.0 + 1000.0;
    let round = 96.0 + 1000.0 + 10000.0 + 32.0 + 1000.0;
    assert_credits(predicted(&card, Step::Stream(loads).into()), one + 2.0 * round);
}

#[test]
fn replay_buffer_entries_allow_as_many_packets_per_acknowledgement() {
    let round = 336.0 + 1000.0 + 32.0 + 1000.0;
    let found = dma(&platform("", &[("link.replay_tlps", "2")]), Verb::Store, 5);
    assert_eq!(found.bound, Bound::Replay, "{found:?}");
    assert_ns(found.delivered_ns, WRITE_NS + 2.0 * round);
}
