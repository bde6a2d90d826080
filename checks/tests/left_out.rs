//! Does a question that asks a platform nothing say what it would take?

use lanemark_bench::{Axes, CATALOGUE, question};
use lanemark_machine::{Facts, Machine};
use lanemark_platform::{Origin, PRESETS, Platform, preset};
use lanemark_sim::SimulatedMachine;

fn facts(platform: &Platform) -> Facts {
    SimulatedMachine::new(platform).unwrap().facts().clone()
}

/// Why a question asks nothing of a platform, if it says so.
fn left_out(name: &str, platform: &Platform) -> Option<String> {
    let left_out = (question(name).unwrap().left_out)(&facts(platform))?;
    left_out.is_all().then_some(left_out.because)
}

#[test]
fn a_question_that_has_nothing_to_ask_says_what_it_needs_and_one_that_has_leaves_nothing_out() {
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
fn a_card_without_queues_and_one_with_a_single_channel_say_so() {
    let rosta = preset("rosta-virtex7").unwrap().unwrap();
    let relay = |platform: &Platform| left_out("relay_bandwidth", platform);
    assert_eq!(relay(&rosta), None);
    let without = Platform { fifos: None, ..rosta.clone() };
    assert!(relay(&without).unwrap().contains("no section [fifos]"));
    let one = rosta.with("dma.channels", 1.0, Origin::Assumed("a test".to_owned())).unwrap();
    assert!(relay(&one).unwrap().contains("dma.channels is 1"));
}

#[test]
fn a_cache_lines_that_are_not_filled_and_another_socket_are_asked_about_where_there_are_any() {
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
