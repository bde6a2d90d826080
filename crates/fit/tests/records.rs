//! Fits of keys of a platform to a record.

use lanemark_bench::{Axes, Effort, ask, question};
use lanemark_fit::{FitData, FitDataError, fit};
use lanemark_machine::Machine as _;
use lanemark_platform::{Origin, Platform};
use lanemark_record::Record;
use lanemark_sim::SimulatedMachine;

const ROUND_TRIP: &str = "root_complex.core_round_trip_ns";

fn card(round_trip: f64) -> Platform {
    let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    card.with(ROUND_TRIP, round_trip, Origin::Given("a test".to_owned())).unwrap()
}

/// Answers of a card to 8 B stores of three sizes to UC and WC memory.
fn record(card: &Platform) -> Record {
    let mut machine = SimulatedMachine::new(card).unwrap();
    let question = question("mmio_write_bandwidth").unwrap();
    let axes = Axes {
        sizes: Some(vec![64, 256, 1024]),
        accesses: Some(vec!["8".parse().unwrap()]),
        memory_types: Some(vec!["uc".parse().unwrap(), "wc".parse().unwrap()]),
        ..Axes::default()
    };
    let cases = (question.cases)(machine.facts(), &axes);
    let answers = cases.iter().map(|case| ask(question, &mut machine, case, &Effort::default()).unwrap()).collect();
    Record { answers, ..Record::new(vec![]) }
}

#[test]
fn number_used_for_a_record_is_recovered() {
    let made_with = record(&card(217.0));
    let problem = FitData::new(&made_with, None, &card(120.0), &[ROUND_TRIP.to_owned()]).unwrap();
    assert_eq!(problem.data().count(), 6);
    let found = fit(&problem.parameters(), |values| problem.residuals(values)).unwrap();
    assert!((found.found[0].value - 217.0).abs() < 0.5, "{found:?}");
}

#[test]
fn unknown_targets_and_keys_are_rejected() {
    let made_with = record(&card(120.0));
    let new = |target, key: &str| FitData::new(&made_with, target, &card(120.0), &[key.to_owned()]).err();
    assert!(matches!(new(Some("other"), ROUND_TRIP), Some(FitDataError::WhichTarget { .. })));
    assert!(matches!(new(None, "link.speed"), Some(FitDataError::Key { .. })));
    let mistyped = new(None, "link.latncy_ns").unwrap().to_string();
    assert!(mistyped.contains("'link.latncy_ns': did you mean link.latency_ns"), "{mistyped}");
    let key = [ROUND_TRIP.to_owned()];
    let empty = FitData::new(&Record::new(vec![]), None, &card(120.0), &key).err();
    assert_eq!(empty, Some(FitDataError::NoAnswers));
    assert!(matches!(new(None, "core.wc_buffers"), Some(FitDataError::Whole { .. })));
    assert_eq!(new(Some("card-gen5-x16"), ROUND_TRIP), None);
}
