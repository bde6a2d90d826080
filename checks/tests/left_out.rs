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
