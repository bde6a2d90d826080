//! Recovery of the numbers of a card from its answers.

use lanemark_bench::{Axes, Effort, ask, question};
use lanemark_fit::{FillOptions, Fit, FitData, FitDataError, Measured, fill_in, fit_many};
use lanemark_machine::Machine;
use lanemark_platform::{Draft, Origin, Platform};
use lanemark_record::Record;
use lanemark_sim::SimulatedMachine;

const TRUTH: &str = include_str!("../../../platforms/card-gen5-x16.toml");

/// Answers of the card to four questions.
fn record(truth: &Platform) -> Record {
    let mut machine = SimulatedMachine::new(truth).unwrap();
    let mut answers = Vec::new();
    for name in ["mmio_read_latency", "mmio_write_latency", "mmio_write_bandwidth", "driver_call_overhead"] {
        let question = question(name).unwrap();
        let axes = Axes { sizes: Some(vec![64, 256, 4096]), ..Axes::default() };
        for case in (question.cases)(machine.facts(), &axes) {
            answers.push(ask(question, &mut machine, &case, &Effort::default()).unwrap());
        }
    }
    Record { answers, ..Record::new(vec![]) }
}

/// The card's file with the numbers at `keys` unknown.
fn blanked(keys: &[&str]) -> Draft {
    let mut text = TRUTH.to_owned();
    for key in keys {
        let (section, name) = key.rsplit_once('.').unwrap();
        let header = match section.split_once('.') {
            Some((_, region)) => format!("name = \"{region}\""),
            None => format!("[{section}]"),
        };
        let from = text.find(&header).unwrap();
        let start = from + text[from..].find(&format!("\n{name} =")).unwrap() + 1;
        let end = start + text[start..].find('\n').unwrap();
        text.replace_range(start..end, &format!("{name} = {{ unknown = \"blanked\" }}"));
    }
    Draft::parse("blanked.toml", &text).unwrap()
}

fn found(draft: &Draft, record: &Record) -> Fit {
    let problem = FitData::of_draft(record, None, draft).unwrap();
    fit_many(&problem.parameters(), |values| problem.residuals(values)).unwrap()
}

#[test]
fn unknown_latencies_are_recovered_within_one_percent() {
    let truth = Platform::parse("truth", TRUTH).unwrap();
    let record = record(&truth);
    let keys = ["root_complex.core_round_trip_ns", "link.latency_ns", "region.registers.read_ns", "driver.call_ns"];
    let fit = found(&blanked(&keys), &record);
    assert_eq!(fit.loose, [], "{fit:?}");
    for one in &fit.found {
        let wanted = truth.number(&one.name).unwrap().0;
        assert!((one.value / wanted - 1.0).abs() < 0.01, "{one:?}, expected {wanted}");
        assert!(!one.at_bound, "{one:?}");
    }
}

#[test]
fn terms_of_a_sum_stay_open_until_enough_are_known() {
    let record = record(&Platform::parse("truth", TRUTH).unwrap());
    let keys = ["root_complex.core_round_trip_ns", "link.latency_ns", "endpoint.ingress_ns", "endpoint.egress_ns"];
    let draft = blanked(&keys);
    let open = found(&draft, &record).loose;
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!(open[0].names, ["link.latency_ns", "endpoint.ingress_ns", "endpoint.egress_ns"]);
    assert_eq!(open[0].free, 1, "writes show one_way + ingress, reads 2 one_way + ingress + egress");
    let known = draft.fill("endpoint.ingress_ns", 60.0, &Origin::Given("a data sheet".to_owned())).unwrap();
    let fit = found(&known, &record);
    assert_eq!(fit.loose, []);
    let one_way = fit.found.iter().find(|found| found.name == "link.latency_ns").unwrap();
    assert!((one_way.value / 120.0 - 1.0).abs() < 0.01, "{one_way:?}");
}

#[test]
fn a_number_that_no_answer_depends_on_stays_open() {
    let record = record(&Platform::parse("truth", TRUTH).unwrap());
    assert_eq!(found(&blanked(&["link.latency_ns"]), &record).loose, []);
    let text = TRUTH.replace("[driver]", "interrupt_ns = { unknown = \"blanked\" }\n\n[driver]");
    let fit = found(&Draft::parse("x.toml", &text).unwrap(), &record);
    assert_eq!((fit.loose[0].names.as_slice(), fit.loose[0].free), (["core.interrupt_ns".to_owned()].as_slice(), 1));
}

#[test]
fn integers_are_fitted_and_a_draft_without_unknowns_is_rejected() {
    let record = record(&Platform::parse("truth", TRUTH).unwrap());
    let refused = |keys: &[&str]| FitData::of_draft(&record, None, &blanked(keys)).err();
    assert!(matches!(refused(&[]), Some(FitDataError::NothingUnknown { .. })));
    assert!(refused(&["core.wc_buffers", "link.latency_ns"]).is_none());
}

#[test]
fn each_answer_is_compared_with_simulation_and_formula() {
    let truth = Platform::parse("truth", TRUTH).unwrap();
    let record = record(&truth);
    let problem = FitData::of_draft(&record, None, &blanked(&["link.latency_ns"])).unwrap();
    let rows = problem.compare(&[120.0]).unwrap();
    assert!(rows.iter().all(|row| row.error_percent.abs() < 1e-9), "{rows:?}");
    assert!(rows.iter().any(|row| row.formula.is_some()));
    let slower = problem.compare(&[240.0]).unwrap();
    assert!(slower.iter().any(|row| row.error_percent > 10.0));
}

#[test]
fn determined_numbers_are_filled_in_and_the_others_stay_unknown() {
    let record = record(&Platform::parse("truth", TRUTH).unwrap());
    let keys = ["root_complex.core_round_trip_ns", "link.latency_ns", "endpoint.ingress_ns", "endpoint.egress_ns"];
    let filled =
        fill_in("card.json", &Measured::Record(&record, None), &blanked(&keys), FillOptions::default()).unwrap();
    let left: Vec<&str> = filled.draft.unknowns().iter().map(|unknown| unknown.key.as_str()).collect();
    assert_eq!(left, keys[1..]);
    assert!(filled.draft.text().contains("fitted_to = [\"card.json: mmio_read_latency ("), "{}", filled.draft.text());
    assert!(filled.draft.clone().complete().is_err());
}

#[test]
fn with_assumed_numbers_the_platform_answers_like_the_card() {
    let truth = Platform::parse("truth", TRUTH).unwrap();
    let record = record(&truth);
    let keys = ["root_complex.core_round_trip_ns", "link.latency_ns", "endpoint.ingress_ns", "endpoint.egress_ns"];
    let filled = fill_in(
        "card.json",
        &Measured::Record(&record, None),
        &blanked(&keys),
        FillOptions { assume_rest: true, ..FillOptions::default() },
    )
    .unwrap();
    assert_eq!(filled.assumed, keys[1..]);
    assert!(filled.residuals.iter().all(|row| row.error_percent.abs() < 1.0), "{:?}", filled.residuals);
    let twin = filled.draft.complete().unwrap();
    let of = |platform: &Platform, key: &str| platform.number(key).unwrap().0;
    let sum = |platform: &Platform| of(platform, "link.latency_ns") + of(platform, "endpoint.ingress_ns");
    assert!((sum(&twin) / sum(&truth) - 1.0).abs() < 0.01, "the determined sum must be right for any split");
}

#[test]
fn if_nothing_fits_a_number_at_the_end_of_its_range_is_said_to_lie_outside() {
    let key = "root_complex.core_round_trip_ns";
    let mut record = record(&Platform::parse("truth", TRUTH).unwrap());
    record.answers.retain(|answer| answer.question == "mmio_read_latency");
    // No round trip makes up for a link of 20 us.
    let slow = blanked(&[key]).state("link.latency_ns", 20_000.0, &Origin::Given("a test".to_owned())).unwrap();
    let options = FillOptions { assume_rest: true, ..FillOptions::default() };
    let filled = fill_in("card.json", &Measured::Record(&record, None), &slow, options).unwrap();
    assert_eq!(filled.beyond, [key], "{:?}", filled.fit);
    assert!(filled.draft.text().contains("the best value lies outside"), "{}", filled.draft.text());
}

#[test]
fn a_number_is_assumed_within_the_limits_of_the_file() {
    let truth = Platform::parse("truth", TRUTH).unwrap();
    let (record, usual) = (record(&truth), truth.number("endpoint.ingress_ns").unwrap().0);
    let keys = ["root_complex.core_round_trip_ns", "endpoint.ingress_ns"];
    for (limit, assumed) in [("at_most", usual - 1.0), ("at_most", usual), ("at_least", usual + 1.0)] {
        let text = blanked(&keys).text().to_owned();
        let (before, after) = text.split_once("\ningress_ns = { unknown = \"blanked\"").unwrap();
        let text = format!("{before}\ningress_ns = {{ unknown = \"blanked\", {limit} = {assumed}{after}");
        let draft = Draft::parse("limited.toml", &text).unwrap();
        let options = FillOptions { assume_rest: true, ..FillOptions::default() };
        let filled = fill_in("card.json", &Measured::Record(&record, None), &draft, options).unwrap();
        assert_eq!(filled.assumed, keys[1..]);
        let twin = filled.draft.complete().unwrap();
        assert_eq!(twin.number(keys[1]).unwrap().0.to_bits(), assumed.to_bits(), "{limit} {assumed}");
    }
}
