//! Predictions on small platforms, against sums that are computed by hand.
//!
//! The link is Gen1 x1: 4 ns a byte. A TLP has 8 B besides header and payload (PCI Express Base Specification, 8b/10b), so that
//! a request with 3 DW of header takes 80 ns and one with 4 DW 96 ns; a DLLP of 8 B takes 32 ns. Every other time is a power of
//! ten or a small multiple of one, so that a missing or doubled term shows in its own digit.

mod calls;
mod engine;
mod kernels;
mod links;
mod stores;

use lanemark_machine::{Access, Partner, Pattern, Plan, Span, Step, Stream, Transfer, Verb, Width, Window, Work};
use lanemark_model::{Prediction, predict};
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
pub(crate) const SWITCHES: &str = "
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
pub(crate) const BY_SWITCHES_NS: f64 = 1000.0 + 70000.0 + 5000.0 + 30000.0 + 2000.0;

pub(crate) fn platform(more: &str, changes: &[(&str, &str)]) -> Platform {
    let preset = PRESETS.iter().find(|preset| preset.name == "card-gen5-x16").unwrap();
    let platform =
        Platform::parse("small.toml", &format!("{}{more}", preset.text)).unwrap_or_else(|error| panic!("{error}"));
    let origin = || Origin::Given("a test".to_owned());
    let all = SMALL.iter().chain(changes).map(|(key, value)| (*key, *value, origin()));
    platform.with_texts(all).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn predicted(platform: &Platform, work: Work) -> Prediction {
    let plan = Plan { timeout: Ticks::whole_ns(1_000_000_000_000), ..Plan::new(work, 1) };
    predict(platform, &plan).unwrap()
}

pub(crate) fn transfer(verb: Verb, partner: Partner, bytes: u64, count: u64) -> Work {
    let window = Window { offset: 0, len: 1 << 16, pattern: Pattern::Sequential };
    Transfer { card: 0, verb, partner, bytes, count, window, outstanding: None }.into()
}

pub(crate) fn dma(platform: &Platform, verb: Verb, count: u64) -> Prediction {
    predicted(platform, transfer(verb, Partner::Host, 64, count))
}

/// A load or store of the registers, 4 B at a time.
pub(crate) fn mmio(platform: &Platform, verb: Verb, bytes: u64) -> Prediction {
    let span = Span { at: BarOffset { bar: 0, offset: 0 }, len: bytes, memory_type: MemoryType::Uc };
    predicted(platform, Step::Stream(Stream::over(verb, Access::Plain(Width::B4), span)).into())
}

#[track_caller]
pub(crate) fn assert_ns(found: f64, by_hand: f64) {
    assert!((found - by_hand).abs() < 1e-3, "{found} ns predicted, {by_hand} ns by hand");
}

/// One write of 64 B by the engine: a beat, 84 B on the link.
pub(crate) const WRITE_NS: f64 = 4.0 + 20000.0 + 336.0 + 1000.0 + 400_000.0;
/// One read of 64 B: a beat, 20 B up, 84 B down, a beat.
pub(crate) const READ_NS: f64 = 4.0 + 20000.0 + 80.0 + 1000.0 + 300_000.0 + 336.0 + 1000.0 + 10000.0 + 4.0;
