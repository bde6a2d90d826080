//! Predictions on small platforms, against sums that are computed by hand.
//!
//! The link is Gen1 x1: 4 ns a byte. A TLP has 8 B besides header and payload (PCI Express Base Specification, 8b/10b), so that
//! a request with 3 DW of header takes 80 ns and one with 4 DW 96 ns; a DLLP of 8 B takes 32 ns. Every other time is a power of
//! ten or a small multiple of one, so that a missing or doubled term shows in its own digit.

use lanemark_machine::{Access, Partner, Pattern, Plan, Span, Step, Stream, Transfer, Verb, Width, Window, Work};
use lanemark_model::{Bound, Prediction, predict};
use lanemark_platform::{Origin, PRESETS, Platform};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// Times that every platform of this file has.
const SMALL: &[(&str, &str)] = &[
    ("link.generation", "1"),
    ("link.width_lanes", "1"),
    ("link.latency_ns", "1000"),
    ("link.mps_bytes", "128"),
    ("link.mrrs_bytes", "128"),
    ("endpoint.ingress_ns", "10000"),
    ("endpoint.egress_ns", "20000"),
    ("root_complex.core_round_trip_ns", "200"),
    ("memory.address_bytes", "0x10000000"),
    ("memory.read_ns", "300000"),
    ("memory.write_ns", "400000"),
    ("region.registers.read_ns", "500000"),
    ("region.registers.beat_ns", "2"),
    ("dma.beat_ns", "4"),
    ("dma.tags", "256"),
];

/// Two switches between the root port and the card, each after a link of its own.
const SWITCHES: &str = "
[[switch]]
name = \"upper\"
below = \"root\"
generation = { value = 1, source = \"a test\" }
width_lanes = { value = 1, source = \"a test\" }
link_latency_ns = { value = 2000, source = \"a test\" }
latency_ns = { value = 30000, source = \"a test\" }
forwarding = { value = \"store_and_forward\", source = \"a test\" }

[[switch]]
name = \"lower\"
below = \"upper\"
generation = { value = 1, source = \"a test\" }
width_lanes = { value = 1, source = \"a test\" }
link_latency_ns = { value = 5000, source = \"a test\" }
latency_ns = { value = 70000, source = \"a test\" }
forwarding = { value = \"store_and_forward\", source = \"a test\" }

[[slot]]
name = \"card0\"
below = \"lower\"
bar_shift_bytes = { value = 0, source = \"a test\" }

[[slot]]
name = \"card1\"
below = \"upper\"
bar_shift_bytes = { value = \"1GiB\", source = \"a test\" }
";

/// Latencies of all links and switches of [`SWITCHES`] in one direction.
const BY_SWITCHES_NS: f64 = 1000.0 + 70000.0 + 5000.0 + 30000.0 + 2000.0;

fn platform(more: &str, changes: &[(&str, &str)]) -> Platform {
    let preset = PRESETS.iter().find(|preset| preset.name == "card-gen5-x16").unwrap();
    let platform =
        Platform::parse("small.toml", &format!("{}{more}", preset.text)).unwrap_or_else(|error| panic!("{error}"));
    let origin = || Origin::Given("a test".to_owned());
    let all = SMALL.iter().chain(changes).map(|(key, value)| (*key, *value, origin()));
    platform.with_texts(all).unwrap_or_else(|error| panic!("{error}"))
}

fn predicted(platform: &Platform, work: Work) -> Prediction {
    let plan = Plan { timeout: Ticks::whole_ns(1_000_000_000_000), ..Plan::new(work, 1) };
    predict(platform, &plan).unwrap()
}

fn transfer(verb: Verb, partner: Partner, bytes: u64, count: u64) -> Work {
    let window = Window { offset: 0, len: 1 << 16, pattern: Pattern::Sequential };
    Transfer { card: 0, verb, partner, bytes, count, window, outstanding: None }.into()
}

fn dma(platform: &Platform, verb: Verb, count: u64) -> Prediction {
    predicted(platform, transfer(verb, Partner::Host, 64, count))
}

/// A load or store of the registers, 4 B at a time.
fn mmio(platform: &Platform, verb: Verb, bytes: u64) -> Prediction {
    let span = Span { at: BarOffset { bar: 0, offset: 0 }, len: bytes, memory_type: MemoryType::Uc };
    predicted(platform, Step::Stream(Stream::over(verb, Access::Plain(Width::B4), span)).into())
}

#[track_caller]
fn assert_ns(found: f64, by_hand: f64) {
    assert!((found - by_hand).abs() < 1e-3, "{found} ns predicted, {by_hand} ns by hand");
}

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

/// One write of 64 B by the engine: a beat, 84 B on the link.
const WRITE_NS: f64 = 4.0 + 20000.0 + 336.0 + 1000.0 + 400_000.0;
/// One read of 64 B: a beat, 20 B up, 84 B down, a beat.
const READ_NS: f64 = 4.0 + 20000.0 + 80.0 + 1000.0 + 300_000.0 + 336.0 + 1000.0 + 10000.0 + 4.0;

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
