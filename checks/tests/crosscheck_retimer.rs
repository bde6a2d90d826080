//! Comparison of formulas and simulation for links with retimers.
//!
//! A retimer lengthens unloaded latencies in both by exactly its latency. It lowers the read bandwidth where tags
//! are the bound, and nowhere else. SKP ordered sets pass it without further delay.

mod random_platform;

use lanemark_machine::{
    Access, Machine, Partner, Pattern, Plan, Samples, Span, Step, Stream, Transfer, Verb, Width, Window, Work,
};
use lanemark_model::{Bound, Prediction, predict};
use lanemark_platform::{Origin, PRESETS, Platform};
use lanemark_sim::SimulatedMachine;
use lanemark_units::{BarOffset, MemoryType, Ticks};
use lanemark_wire::{Generation, skp_ticks};
use random_platform::Random;
use std::fmt::Write as _;

/// A preset with retimers: link, latency down, latency up.
fn with(preset: &str, retimers: &[(&str, f64, f64)]) -> Platform {
    let mut text = PRESETS.iter().find(|row| row.name == preset).unwrap().text.to_owned();
    for (number, (link, down, up)) in retimers.iter().enumerate() {
        let _ = write!(
            text,
            "\n[[retimer]]\nname = \"r{number}\"\nlink = \"{link}\"\n\
             down_ns = {{ value = {down}, source = \"a test\" }}\nup_ns = {{ value = {up}, source = \"a test\" }}\n"
        );
    }
    Platform::parse("retimers.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn set(platform: &Platform, key: &str, value: &str) -> Platform {
    platform.with_text(key, value, Origin::Given("a test".to_owned())).unwrap()
}

fn plan(work: Work) -> Plan {
    Plan { timeout: Ticks::whole_ns(1_000_000_000_000), ..Plan::new(work, 1) }
}

fn transfer(verb: Verb, partner: Partner, bytes: u64, count: u64) -> Work {
    let offset = if partner == Partner::Host { 0 } else { 8 << 20 };
    let window = Window { offset, len: 1 << 20, pattern: Pattern::Sequential };
    Transfer { card: 0, verb, partner, bytes, count, window, outstanding: None }.into()
}

/// A load or store of 8 B of a region that stores what is written.
fn access(platform: &Platform, verb: Verb) -> Work {
    let region = platform.regions.iter().find(|region| region.size_bytes.value >= 1 << 20).unwrap();
    let at = BarOffset { bar: region.bar.value as u8, offset: region.offset_bytes.value };
    let span = Span { at, len: 8, memory_type: MemoryType::Uc };
    Step::Stream(Stream::over(verb, Access::Plain(Width::B8), span)).into()
}

fn simulated(platform: &Platform, work: Work) -> Ticks {
    let mut samples = Samples::wanted(1);
    let plan = plan(work);
    SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    samples.taken[0].delivered
}

fn predicted(platform: &Platform, work: Work) -> Prediction {
    predict(platform, &plan(work)).unwrap()
}

/// By how much the retimers delay the operation by the formula, in ticks.
fn predicted_delay(without: &Platform, with: &Platform, work: impl Fn() -> Work) -> f64 {
    (predicted(with, work()).delivered_ns - predicted(without, work()).delivered_ns) * Ticks::PER_NS as f64
}

#[test]
fn unloaded_latencies_grow_by_exactly_the_latency_of_the_retimers() {
    let cases: [(&str, &[&str], &[&str]); 2] =
        [("card-gen5-x16", &["card"], &["card"]), ("rosta-virtex7", &["fpga0", "rc47a", "rha25"], &["fpga4", "rc47b"])];
    let mut random = Random(5);
    for (preset, own, peers) in cases {
        for _ in 0..20 {
            let latency = |random: &mut Random| random.below(600) as f64 / 4.0;
            let mut place = |links: &[&'static str]| -> Vec<(&'static str, f64, f64)> {
                let count = random.below(3) as usize;
                let both: Vec<&str> = links.iter().flat_map(|link| [*link].repeat(count)).collect();
                both.into_iter().map(|link| (link, latency(&mut random), latency(&mut random))).collect()
            };
            let mut retimers = place(own);
            let sum = |retimers: &[(&str, f64, f64)]| {
                retimers.iter().fold((0.0, 0.0), |(down, up), retimer| (down + retimer.1, up + retimer.2))
            };
            let (down, up) = sum(&retimers);
            let peer = (preset == "rosta-virtex7").then(|| {
                let others = place(peers);
                let down = sum(&others).0;
                retimers.extend(others);
                // The switch above both cards is below `rha25`, whose link no request between them uses.
                let up = retimers
                    .iter()
                    .filter(|(link, ..)| ["fpga0", "rc47a"].contains(link))
                    .map(|row| row.2)
                    .sum::<f64>();
                (Partner::Peer { card: 4, bar: 0 }, down + up)
            });
            let (without, with) = (with(preset, &[]), with(preset, &retimers));
            let mut checks: Vec<(Work, f64)> = vec![
                (access(&without, Verb::Load), down + up),
                (access(&without, Verb::Store), down),
                (transfer(Verb::Load, Partner::Host, 64, 1), down + up),
                (transfer(Verb::Store, Partner::Host, 64, 1), up),
            ];
            checks.extend(peer.map(|(peer, delay)| (transfer(Verb::Store, peer, 64, 1), delay)));
            for (work, delay) in checks {
                let delay = Ticks::from_ns(delay).unwrap();
                let (before, after) = (simulated(&without, work.clone()), simulated(&with, work.clone()));
                assert_eq!(after, before + delay, "{work:?}: {retimers:?}");
                let by_formula = predicted_delay(&without, &with, || work.clone());
                assert!(
                    (by_formula - delay.0 as f64).abs() < 0.01,
                    "{work:?}: {retimers:?}: {by_formula} and {delay:?}"
                );
                // The costs of a core are rounded to ticks one by one.
                let gap = (predicted(&with, work.clone()).delivered_ns - after.as_ns()) * Ticks::PER_NS as f64;
                assert!(gap.abs() <= 1.0, "{work:?}: {gap} ticks between formula and simulation");
            }
        }
    }
}

#[test]
fn a_retimer_lowers_read_bandwidth_where_tags_are_the_bound_and_nowhere_else() {
    let (bytes, count) = (4096, 512);
    let read = || transfer(Verb::Load, Partner::Host, bytes, count);
    let (mut bound_by_tags, mut bound_by_others) = (0, 0);
    for tags in [1, 2, 3, 4, 6, 8, 16, 64, 256] {
        let tags = tags.to_string();
        let [without, with] =
            [&[][..], &[("card", 64.0, 50.0)]].map(|retimers| set(&with("card-gen5-x16", retimers), "dma.tags", &tags));
        let (before, after) = (simulated(&without, read()).as_ns(), simulated(&with, read()).as_ns());
        let said = [predicted(&without, read()), predicted(&with, read())];
        // Time that is not that of the first and last bytes, which a retimer delays in any case.
        let ratio = (after - 114.0) / before;
        match said.map(|said| said.bound == Bound::Tags) {
            [true, true] => {
                bound_by_tags += 1;
                let predicted = (said[1].delivered_ns - 114.0) / said[0].delivered_ns;
                assert!(ratio > 1.05 && (ratio / predicted - 1.0).abs() < 0.02, "{tags} tags: {ratio} and {predicted}");
            }
            [false, false] => {
                bound_by_others += 1;
                assert!((ratio - 1.0).abs() < 0.001, "{tags} tags: {ratio}");
            }
            _ => assert!(ratio >= 1.0, "{tags} tags: {ratio}"),
        }
    }
    assert!(bound_by_tags >= 3 && bound_by_others >= 2, "{bound_by_tags} and {bound_by_others}");
}

#[test]
fn a_retimer_without_latency_changes_nothing() {
    for preset in ["card-gen5-x16", "rosta-virtex7"] {
        let link = if preset == "rosta-virtex7" { "rc47a" } else { "card" };
        for skp in ["false", "true"] {
            let [without, with] =
                [&[][..], &[(link, 0.0, 0.0); 2]].map(|retimers| set(&with(preset, retimers), "link.skp", skp));
            for verb in [Verb::Load, Verb::Store] {
                let op = || transfer(verb, Partner::Host, 4096, 100);
                assert_eq!(simulated(&with, op()), simulated(&without, op()), "{preset} {verb:?}");
                assert_eq!(predicted(&with, op()).delivered_ns, predicted(&without, op()).delivered_ns);
            }
        }
    }
}

#[test]
fn ordered_sets_pass_a_retimer_and_delay_no_packet_longer_than_one_of_them() {
    let [without, with] =
        [&[][..], &[("card", 64.0, 50.0)]].map(|retimers| set(&with("card-gen5-x16", retimers), "link.skp", "true"));
    let (interval, one) = skp_ticks(Generation::Gen5).unwrap();
    let mut met = 0;
    // The link is the bound of these writes; with more bytes, more ordered sets are among them.
    for count in [1, 10, 100, 1000, 3000] {
        let op = || transfer(Verb::Store, Partner::Host, 4096, count);
        let plain = set(&without, "link.skp", "false");
        met += u32::from(simulated(&without, op()) > simulated(&plain, op()) + interval / 1000);
        let (before, after) = (simulated(&without, op()), simulated(&with, op()));
        let delay = after.0.abs_diff((before + Ticks::whole_ns(50)).0);
        assert!(delay <= one.0, "{count}: {before} and {after}");
    }
    assert!(met >= 3, "{met}");
}
