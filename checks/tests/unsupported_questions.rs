//! A question without cases for a platform names what the platform lacks.

use lanemark_bench::{Axes, CATALOGUE, question};
use lanemark_machine::{Facts, Machine, Partner, Pattern, Plan, Transfer, Verb, Window};
use lanemark_model::{FormulaMachine, predict};
use lanemark_platform::{Origin, PRESETS, Platform, preset};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;

fn facts(platform: &Platform) -> Facts {
    SimulatedMachine::new(platform).unwrap().facts().clone()
}

/// The reason why a question has no cases for a platform; `None` if it has some.
fn left_out(name: &str, platform: &Platform) -> Option<String> {
    let left_out = (question(name).unwrap().left_out)(&facts(platform))?;
    left_out.is_all().then_some(left_out.because)
}

#[test]
fn a_question_has_either_cases_or_a_reason() {
    let mut reasons = Vec::new();
    for row in PRESETS {
        let whole = preset(row.name).unwrap().unwrap();
        let poor = Platform { dma: None, dma_read: None, dma_write: None, fifos: None, driver: None, ..whole.clone() };
        let undriven = Platform { driver: None, ..whole.clone() };
        for platform in [&whole, &poor, &undriven] {
            for question in CATALOGUE {
                let cases = (question.cases)(&facts(platform), &Axes::default());
                let because = left_out(question.name, platform);
                assert_eq!(cases.is_empty(), because.is_some(), "{} of {}: {because:?}", question.name, platform.name);
                reasons.extend(because);
            }
        }
    }
    reasons.sort();
    reasons.dedup();
    assert!(reasons.len() >= 5, "{reasons:#?}");
}

#[test]
fn relay_bandwidth_names_missing_queues_and_channels() {
    let rosta = preset("rosta-virtex7").unwrap().unwrap();
    let relay = |platform: &Platform| left_out("relay_bandwidth", platform);
    assert_eq!(relay(&rosta), None);
    let without = Platform { fifos: None, ..rosta.clone() };
    assert!(relay(&without).unwrap().contains("requires a section [fifos]"));
    let one = rosta.with("dma.channels", 1.0, Origin::Assumed("a test".to_owned())).unwrap();
    assert!(relay(&one).unwrap().contains("dma.channels of 2 or more, or dma.full_duplex"));
    let duplex = one.with_text("dma.full_duplex", "true", Origin::Assumed("a test".to_owned())).unwrap();
    assert_eq!(relay(&duplex), None);
}

#[test]
fn questions_about_caches_partial_lines_and_sockets_need_the_platform_keys() {
    let card = preset("card-gen5-x16").unwrap().unwrap();
    assert!(left_out("cache_residency", &card).unwrap().contains("memory.cached_read_ns"));
    assert!(left_out("partial_line_writes", &card).unwrap().contains("memory.partial_line_ns is 0"));
    let with = |changes: &[(&str, f64)]| {
        let set =
            |card: Platform, (key, value): &(&str, f64)| card.with(key, *value, Origin::Assumed("a test".to_owned()));
        changes.iter().try_fold(card.clone(), set).unwrap()
    };
    let methods = |name: &str, platform: &Platform| -> Vec<String> {
        let cases = (question(name).unwrap().cases)(&facts(platform), &Axes::default());
        let mut methods: Vec<String> = cases.iter().map(|case| case.method.to_string()).collect();
        methods.dedup();
        methods
    };
    let cache = [("memory.cached_read_ns", 120.0), ("memory.cache_bytes", 65536.0), ("memory.ddio_ways", 8.0)];
    let cached = with(&cache);
    let states: Vec<String> = ["cold", "host-warm", "device-warm"]
        .iter()
        .flat_map(|state| ["16KiB", "32KiB", "64KiB", "128KiB"].map(|window| format!(", {state}, in {window}")))
        .map(|reach| format!("host-to-device by DMA{reach}"))
        .collect();
    assert_eq!(methods("cache_residency", &cached), states);
    let far = with(&[("memory.remote_ns", 70.0)]);
    let sockets = ["host-to-device by DMA", "host-to-device by DMA, remote socket"];
    assert_eq!(methods("dma_read_latency", &far), sockets);
    assert_eq!(methods("dma_read_latency", &cached), sockets[..1]);
    let partial = with(&[("memory.partial_line_ns", 20.0)]);
    assert_eq!(methods("partial_line_writes", &partial), ["device-to-host by DMA, every 256B"]);
    let both = with(&[cache[0], cache[1], ("memory.partial_line_ns", 20.0)]);
    assert_eq!(methods("partial_line_writes", &both), ["device-to-host by DMA, cold, every 256B"]);
}

#[test]
fn a_formula_is_answered_up_to_the_52_days_that_times_represent() {
    let given = || Origin::Given("a test".to_owned());
    let card = preset("card-gen5-x16").unwrap().unwrap();
    let card = card.with("dma.descriptor_ns", 2000.0, given()).unwrap().with("dma.tags", 8.0, given()).unwrap();
    let window = Window { offset: 0, len: 64 << 20, pattern: Pattern::Sequential };
    let (verb, partner) = (Verb::Load, Partner::Host);
    let transfer = Transfer { card: 0, verb, partner, bytes: 64 << 20, count: 1, window, outstanding: None };
    let ns = |passes| predict(&card, &Plan::new(transfer, passes)).unwrap().delivered_ns;
    let most = Ticks::NEVER.as_ns() / (ns(2000) - ns(1000)) * 1000.0;
    let formula = FormulaMachine::new(&card, &facts(&card));
    assert!(formula.supports(&Plan::new(transfer, (0.999 * most) as u64)).is_ok());
    let refused = formula.supports(&Plan::new(transfer, (1.001 * most) as u64)).unwrap_err();
    assert!(refused.to_string().contains("it takes 52 days"), "{refused}");
}
