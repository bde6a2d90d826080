//! Mechanisms that an engine or a root complex may have, with the values among which a search chooses.

use lanemark_machine::Verb;
use lanemark_platform::{Unknown, default_of};

/// A mechanism of a card or its host: keys with a few physical values, and a time that belongs to it.
pub(crate) struct Mechanism {
    /// Keys that together describe its shape, each with the values tried.
    pub(crate) choices: &'static [(&'static str, &'static [f64])],
    /// Key of its time, with the values tried before it is fitted: in nanoseconds, or as shares of the time that it replaces.
    pub(crate) time: Option<(&'static str, [f64; 3])>,
    /// Whether all its keys have the same value.
    pub(crate) is_alike: bool,
    /// Key of the time that it replaces in some windows. Only figures of several windows show such a mechanism.
    pub(crate) replaces: Option<&'static str>,
    /// Whether it is an IOMMU of which the file says nothing. Only figures of several windows show one.
    pub(crate) is_iommu: bool,
}

impl Mechanism {
    const fn of(
        choices: &'static [(&'static str, &'static [f64])],
        time: Option<(&'static str, [f64; 3])>,
    ) -> Mechanism {
        Mechanism { choices, time, is_alike: false, replaces: None, is_iommu: false }
    }

    const fn alike(choices: &'static [(&'static str, &'static [f64])]) -> Mechanism {
        Mechanism { is_alike: true, ..Mechanism::of(choices, None) }
    }

    const fn instead_of(
        replaces: &'static str,
        time: (&'static str, [f64; 3]),
        choices: &'static [(&'static str, &'static [f64])],
    ) -> Mechanism {
        Mechanism { replaces: Some(replaces), ..Mechanism::of(choices, Some(time)) }
    }

    const fn iommu(choices: &'static [(&'static str, &'static [f64])]) -> Mechanism {
        Mechanism { is_iommu: true, ..Mechanism::of(choices, Some((WALK_READ_NS, OF_A_WALK))) }
    }
}

/// Sizes of the part of a last-level cache that serves devices: from a few ways of a small one, by half an octave.
const CACHES: &[f64] = &[
    1_048_576.0,
    1_572_864.0,
    2_097_152.0,
    3_145_728.0,
    4_194_304.0,
    6_291_456.0,
    8_388_608.0,
    12_582_912.0,
    16_777_216.0,
    25_165_824.0,
    33_554_432.0,
    50_331_648.0,
    67_108_864.0,
    100_663_296.0,
    134_217_728.0,
];
/// Key of whether an IOMMU passes addresses through, and its only value tried: it translates.
pub(crate) const PASS_THROUGH: &str = "iommu.pass_through";
const NO: &[f64] = &[0.0];
/// Page sizes, in bytes: 4 KiB and 2 MiB. Source: Intel VT-d specification, second-stage paging entries.
const SMALL_PAGES: &[f64] = &[4096.0];
const LARGE_PAGES: &[f64] = &[2_097_152.0];
/// Key of the number of entries of the IOTLB.
pub(crate) const ENTRIES: &str = "iommu.iotlb_entries";
/// Numbers of entries for pages of 4 KiB, all powers of two of the search range of the key: they hold 64 KiB to 16 MiB.
const NUMBERS_OF_ENTRIES: &[f64] = &[16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];
/// Numbers of entries for pages of 2 MiB: they hold 32 MiB to 512 MiB, more than those for pages of 4 KiB.
const NUMBERS_OF_LARGE: &[f64] = &[16.0, 32.0, 64.0, 128.0, 256.0];
/// Key of the number of concurrent page walks.
pub(crate) const WALKERS: &str = "iommu.walkers";
/// Numbers of concurrent page walks in the search range of the key, at least a third apart above 4.
pub(crate) const NUMBERS_OF_WALKERS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0];
/// Key of the time of one read of a page walk, in nanoseconds.
pub(crate) const WALK_READ_NS: &str = "iommu.walk_read_ns";
/// Key of the number of reads of a page walk. Figures determine only the time of all reads of a walk.
pub(crate) const WALK_READS: &str = "iommu.walk_reads";
/// Times of one read of a page walk that are tried first, in nanoseconds, a factor of three apart: from the lower end of the
/// search range of the key.
const OF_A_WALK: [f64; 3] = [20.0, 60.0, 180.0];

/// Sizes of chunks and segments, of requests, and of completions: powers of two.
const CHUNKS: &[f64] = &[64.0, 128.0, 256.0, 512.0, 1024.0];
const SEGMENTS: &[f64] = &[256.0, 512.0, 1024.0, 2048.0, 4096.0];
const COMPLETIONS: &[f64] = &[64.0, 128.0, 256.0, 512.0];
/// Sizes of what the device takes or stores at once: more than a completion of the usual payload is no step.
const PUSHES: &[f64] = &[64.0, 128.0, 256.0];
const UNMERGED: &[f64] = &[64.0, 128.0];
/// Widths of an interface to the link.
const WIDTHS: &[f64] = &[8.0, 16.0, 32.0, 64.0];
/// Widths of an engine's data path.
const BEATS: &[f64] = &[8.0, 16.0, 32.0, 64.0, 128.0];
/// `false` and `true`: one of them is the value before the search.
const FLAG: &[f64] = &[0.0, 1.0];
const YES: &[f64] = &[1.0];

/// Times that are tried first: a clock cycle or two, some cycles, and some tens of cycles.
const OF_A_REQUEST: [f64; 3] = [1.0, 5.0, 25.0];
const OF_A_PAUSE: [f64; 3] = [2.0, 10.0, 50.0];
/// Times outside of the engine, once for each transfer.
const OF_A_TRANSFER: [f64; 3] = [20.0, 100.0, 500.0];

/// The mechanisms, those of reads first. Of several with the same effect on all figures, only the first one is tried.
///
/// Source of the values: sizes are powers of two in the bounds that PCI Express Base 5.0 gives to payloads and requests,
/// 128 B to 4096 B, and the 64 B of a cache line; the widths are those of PCIe cores, 64 to 512 bits, and up to 1024 bits
/// inside of an engine.
pub(crate) const MECHANISMS: &[Mechanism] = &[
    Mechanism::of(&[], Some(("dma.read_request_ns", OF_A_REQUEST))),
    Mechanism::of(&[("dma.read_bytes", CHUNKS)], None),
    // A device that moves its own lines: alone, neither direction explains a data path that both share.
    Mechanism::alike(&[("dma.read_bytes", CHUNKS), ("dma.write_bytes", CHUNKS)]),
    Mechanism::of(&[("dma.read_boundary_bytes", CHUNKS)], None),
    Mechanism::alike(&[("dma.read_boundary_bytes", CHUNKS), ("dma.write_boundary_bytes", CHUNKS)]),
    Mechanism::of(&[("dma_read.chunk_bytes", CHUNKS)], Some(("dma_read.chunk_ns", OF_A_REQUEST))),
    Mechanism::of(&[("dma_read.segment_bytes", SEGMENTS)], Some(("dma_read.segment_ns", OF_A_PAUSE))),
    Mechanism::of(&[], Some(("dma_read.many_lines_ns", [5.0, 20.0, 80.0]))),
    Mechanism::of(&[("dma_read.push_bytes", PUSHES)], Some(("dma_read.many_pushes_ns", [20.0, 80.0, 300.0]))),
    Mechanism::of(&[("dma_read.store_bytes", PUSHES)], Some(("dma_read.store_ns", [10.0, 50.0, 250.0]))),
    Mechanism::of(&[], Some(("dma_read.signal_ns", OF_A_TRANSFER))),
    Mechanism::of(&[], Some(("dma_read.queue_ns", OF_A_TRANSFER))),
    Mechanism::of(&[], Some(("memory.read_spread_ns", [10.0, 40.0, 160.0]))),
    Mechanism::of(&[("memory.completion_bytes", COMPLETIONS)], None),
    Mechanism::of(&[("memory.completion_bytes", UNMERGED), ("memory.full_completion_lines", &[2.0, 4.0, 8.0])], None),
    Mechanism::of(
        &[
            ("memory.completion_bytes", UNMERGED),
            ("memory.full_completion_from_bytes", &[256.0, 512.0, 1024.0, 2048.0]),
        ],
        None,
    ),
    Mechanism::of(&[("memory.odd_end_completion", FLAG)], None),
    Mechanism::of(&[("root_complex.completion_alignment_bytes", WIDTHS)], None),
    Mechanism::of(&[], Some(("dma.write_request_ns", OF_A_REQUEST))),
    Mechanism::of(&[("dma.write_bytes", CHUNKS)], None),
    Mechanism::of(&[("dma.write_boundary_bytes", CHUNKS)], None),
    Mechanism::of(&[("dma_write.chunk_bytes", CHUNKS)], Some(("dma_write.chunk_ns", OF_A_REQUEST))),
    Mechanism::of(&[("dma_write.segment_bytes", SEGMENTS)], Some(("dma_write.segment_ns", OF_A_PAUSE))),
    Mechanism::of(&[("dma_write.segment_bytes", SEGMENTS)], Some(("dma_write.segment_link_ns", OF_A_PAUSE))),
    Mechanism::of(&[], Some(("dma_write.many_lines_ns", [5.0, 20.0, 80.0]))),
    Mechanism::of(&[], Some(("memory.partial_line_ns", [5.0, 20.0, 80.0]))),
    Mechanism::of(&[("link.tlp_alignment_bytes", WIDTHS)], None),
    Mechanism::of(
        &[("dma.descriptor_bytes", &[4096.0, 8192.0, 16384.0, 65536.0, 1_048_576.0, 2_097_152.0])],
        Some(("dma.descriptor_ns", [5.0, 25.0, 125.0])),
    ),
    Mechanism::of(&[], Some(("dma.start_ns", [50.0, 200.0, 1000.0]))),
    Mechanism::of(&[(BEAT_BYTES, BEATS)], None),
    Mechanism::of(&[("dma.full_duplex", FLAG)], None),
    Mechanism::of(&[("dma.full_duplex", YES)], Some(("dma.shared_request_ns", OF_A_REQUEST))),
    Mechanism::of(&[("memory.loaded_completion_bytes", COMPLETIONS)], None),
    Mechanism::instead_of(
        "memory.read_ns",
        ("memory.cached_read_ns", [1.0, 0.75, 0.5]),
        &[("memory.cache_bytes", CACHES)],
    ),
    Mechanism::iommu(&[
        (PASS_THROUGH, NO),
        ("iommu.page_bytes", SMALL_PAGES),
        (ENTRIES, NUMBERS_OF_ENTRIES),
        (WALKERS, NUMBERS_OF_WALKERS),
    ]),
    Mechanism::iommu(&[
        (PASS_THROUGH, NO),
        ("iommu.page_bytes", LARGE_PAGES),
        (ENTRIES, NUMBERS_OF_LARGE),
        (WALKERS, NUMBERS_OF_WALKERS),
    ]),
];

/// The section of an IOMMU that a search may add, with the values that figures hardly show. The time of a walk is unknown until
/// a fit determines it.
pub(crate) const IOMMU: &str = r#"[iommu]
iotlb_entries = { value = 64, assumed = "chosen by a fit" }
iotlb_ways = { value = 4, assumed = "figures at random places hardly depend on it" }
lookup_ns = { value = 0, assumed = "part of the latency of memory: every figure includes both" }
walk_read_ns = { unknown = "fitted to figures of several windows" }
"#;

/// Whether `key` belongs to the section of an IOMMU.
pub(crate) fn is_of_iommu(key: &str) -> bool {
    key.starts_with("iommu.")
}

/// Whether `key` is chosen among a few values by the search over structures.
pub(crate) fn is_chosen(key: &str) -> bool {
    // An unknown number of an IOMMU that the file has is fitted.
    let is_of = |mechanism: &&Mechanism| mechanism.choices.iter().any(|(name, _)| *name == key);
    MECHANISMS.iter().filter(|mechanism| !mechanism.is_iommu).any(|mechanism| is_of(&mechanism))
}

/// Whether `value` is one of the values of `key` among which the search over structures chooses.
pub(crate) fn is_choice(key: &str, value: f64) -> bool {
    let choices = MECHANISMS.iter().flat_map(|mechanism| mechanism.choices).filter(|(name, _)| *name == key);
    choices.flat_map(|(_, values)| *values).any(|other| other.to_bits() == value.to_bits())
}

/// Whether the search over structures chooses this unknown number.
pub(crate) fn is_structure(unknown: &Unknown) -> bool {
    is_chosen(&unknown.key) && default_of(&unknown.key).is_some()
}

/// The value of an unknown number before a search. For one that the search over structures chooses: its default, or the value
/// nearest to it among those tried that the limits of the file allow.
pub(crate) fn start_of(unknown: &Unknown) -> f64 {
    let Some(default) = default_of(&unknown.key).filter(|_| is_structure(unknown)) else { return unknown.start };
    let choices = MECHANISMS.iter().flat_map(|mechanism| mechanism.choices).filter(|(key, _)| *key == unknown.key);
    let values = choices.flat_map(|(_, values)| values.iter().copied()).filter(|value| unknown.limits.allow(*value));
    let nearest = || values.min_by(|one, other| (one - default).abs().total_cmp(&(other - default).abs()));
    unknown.default.or_else(nearest).unwrap_or(unknown.start)
}

/// Width of the engine's data path, and the time of a beat: a path of half the width and half the time has the same rate.
pub(crate) const BEAT_BYTES: &str = "dma.beat_bytes";
pub(crate) const BEAT_NS: &str = "dma.beat_ns";

/// The keys among them that a file may have to assume, each with the values tried: flags, and the width of beats.
pub(crate) fn reopenable() -> Vec<(&'static str, &'static [f64])> {
    let choices = MECHANISMS.iter().flat_map(|mechanism| mechanism.choices);
    choices.filter(|(key, values)| *values == FLAG || *key == BEAT_BYTES).copied().collect()
}

/// Whether a key with these values is `true` or `false`.
pub(crate) fn is_flag(values: &[f64]) -> bool {
    values == FLAG
}

/// The direction of the transfers that alone depend on `key`, if there is one: reads of the card load, writes store.
pub(crate) fn only_of(key: &str) -> Option<Verb> {
    // Walks of page tables read memory for writes too, so its latency is missing here. A cache, which its time switches on,
    // also holds what is written.
    const OF_READS: [&str; 9] = [
        "dma.tags",
        "dma.read_",
        "dma_read.",
        "memory.read_spread_ns",
        "memory.completion_bytes",
        "memory.full_completion_",
        "memory.odd_end_completion",
        "memory.loaded_completion_bytes",
        "root_complex.completion_alignment_bytes",
    ];
    const OF_WRITES: [&str; 4] = ["dma.write_", "dma_write.", "memory.write_", "memory.partial_line_ns"];
    let begins = |these: &[&str]| these.iter().any(|begin| key.starts_with(begin));
    if begins(&OF_READS) {
        Some(Verb::Load)
    } else if begins(&OF_WRITES) {
        Some(Verb::Store)
    } else {
        None
    }
}

impl Mechanism {
    /// Its time with each of the values tried, in nanoseconds; `now` gives the value of the time that it replaces.
    pub(crate) fn times(&self, now: impl Fn(&str) -> Option<f64>) -> Vec<(&'static str, f64)> {
        let unit = self.replaces.map_or(Some(1.0), now);
        let (Some((key, values)), Some(unit)) = (self.time, unit) else { return Vec::new() };
        values.map(|value| (key, value * unit)).to_vec()
    }

    /// Every combination of the values of its keys.
    pub(crate) fn combinations(&self) -> Vec<Vec<(&'static str, f64)>> {
        let mut all = vec![Vec::new()];
        for (key, values) in self.choices {
            let longer = |known: &Vec<(&'static str, f64)>| {
                let known = known.clone();
                values.iter().map(move |value| known.iter().copied().chain([(*key, *value)]).collect())
            };
            all = all.iter().flat_map(longer).collect();
        }
        let is_alike =
            |values: &Vec<(&str, f64)>| values.windows(2).all(|two| two[0].1.to_bits() == two[1].1.to_bits());
        all.retain(|values| !self.is_alike || is_alike(values));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::headline;
    use lanemark_bench::{Axes, Effort, ask, question};
    use lanemark_model::FormulaMachine;
    use lanemark_platform::{Origin, Platform};
    use lanemark_runner::OpenTarget;

    #[test]
    fn every_value_tried_is_allowed() {
        let origin = lanemark_platform::Origin::Assumed("a test".to_owned());
        for mechanism in MECHANISMS {
            let name = if mechanism.is_iommu { "card-gen5-x16-iommu" } else { "card-gen5-x16" };
            let card = lanemark_platform::preset(name).unwrap().unwrap();
            for combination in mechanism.combinations() {
                let mut changed = card.clone();
                for (key, value) in combination {
                    changed = changed.with(key, value, origin.clone()).unwrap_or_else(|error| panic!("{error}"));
                }
                for (key, value) in mechanism.times(|key| card.number(key).map(|(value, _)| value)) {
                    assert!(changed.with(key, value, origin.clone()).is_ok(), "{key} = {value}");
                }
            }
        }
    }

    #[test]
    fn keys_of_one_direction_have_no_effect_on_the_other() {
        let card = lanemark_platform::preset("card-gen5-x16-iommu").unwrap().unwrap();
        let facts = OpenTarget::of_platform(&card).unwrap().facts().clone();
        let figures = |platform: &Platform, name: &str| -> Vec<f64> {
            let question = question(name).unwrap();
            let axes = Axes { sizes: Some(vec![64, 200, 4096]), ..Axes::default() };
            let mut formulas = FormulaMachine::new(platform, &facts);
            let cases = (question.cases)(&facts, &axes);
            let once = Effort { simulated_passes: Some(1), ..Effort::default() };
            let mut figure = |case| headline(&ask(question, &mut formulas, case, &once).unwrap()).unwrap();
            cases.iter().map(&mut figure).collect()
        };
        let (mut own, mut tried) = (0, 0);
        let of_card = |key: &str| card.number(key).map(|(value, _)| value);
        let times = MECHANISMS.iter().filter_map(|one| one.times(of_card).pop());
        let choices = MECHANISMS.iter().flat_map(|one| one.choices.iter().map(|(key, values)| (*key, values[0])));
        for (key, value) in times.chain(choices).chain([("dma.tags", 8.0), ("memory.write_tlp_ns", 50.0)]) {
            let Some(verb) = only_of(key) else { continue };
            let changed = card.with(key, value, Origin::Given("a test".to_owned())).unwrap();
            let (mine, other) = match verb {
                Verb::Load => ("dma_read_bandwidth", "dma_write_bandwidth"),
                Verb::Store => ("dma_write_bandwidth", "dma_read_bandwidth"),
            };
            assert_eq!(figures(&card, other), figures(&changed, other), "{key}");
            own += u32::from(figures(&card, mine) != figures(&changed, mine));
            tried += 1;
        }
        // Some, such as the size of a segment without its time, have no effect alone.
        assert!(tried >= 15 && own >= 8, "{own} of {tried}");
    }

    #[test]
    fn combinations_of_two_keys_are_all_pairs() {
        let pairs: Vec<usize> = MECHANISMS
            .iter()
            .map(|mechanism| {
                let all = mechanism.choices.iter().map(|(_, values)| values.len()).product();
                if mechanism.is_alike { CHUNKS.len() } else { all }
            })
            .collect();
        let found: Vec<usize> = MECHANISMS.iter().map(|mechanism| mechanism.combinations().len()).collect();
        assert_eq!(found, pairs);
        assert!(is_chosen("memory.full_completion_lines") && !is_chosen("dma.tags"));
        let reopenable: Vec<&str> = reopenable().into_iter().map(|(key, _)| key).collect();
        assert_eq!(reopenable, ["memory.odd_end_completion", BEAT_BYTES, "dma.full_duplex"]);
    }

    #[test]
    fn a_number_whose_limits_exclude_its_default_starts_at_the_nearest_value_inside() {
        let start = |entry: &str| {
            let text = include_str!("../../../platforms/card-gen5-x16.toml");
            let text = text.replace("[memory]\n", &format!("[memory]\ncompletion_bytes = {entry}\n"));
            let draft = lanemark_platform::Draft::parse("card.toml", &text).unwrap();
            let [unknown] = draft.unknowns() else { panic!("{:?}", draft.unknowns()) };
            assert!(is_structure(unknown));
            start_of(unknown)
        };
        assert_eq!(start("{ unknown = \"x\" }").to_bits(), 4096.0_f64.to_bits());
        assert_eq!(start("{ unknown = \"x\", at_most = 4096 }").to_bits(), 4096.0_f64.to_bits());
        assert_eq!(start("{ unknown = \"x\", at_most = 256 }").to_bits(), 256.0_f64.to_bits());
    }
}
