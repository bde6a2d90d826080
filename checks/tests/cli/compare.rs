//! Two records against each other, as a script would do it after each change.

use crate::folder::{Folder, card_with, small};
use lanemark_record::{Comparison, Record, TargetKind};

/// A folder with records of the default card, of one whose round trip is some 7 % longer, and of a formula.
fn folder() -> Folder {
    let slow = card_with(&[("latency_ns = { value = 120", "latency_ns = { value = 140")]);
    let folder = Folder::with(&[("slow.toml", slow.as_bytes())]);
    folder.good(&small("bench", "card-gen5-x16", &["--json", "--record", "a.json"]));
    folder.good(&small("bench", "slow.toml", &["--json", "--record", "b.json"]));
    folder.good(&small("predict", "card-gen5-x16", &["--json", "--record", "formula.json"]));
    folder
}

/// The same record with something else in it.
fn changed(folder: &Folder, from: &str, to: &str, change: fn(&mut Record)) {
    let mut record = lanemark_record::read(&folder.path(from)).unwrap();
    change(&mut record);
    lanemark_record::write(&record, &folder.path(to)).unwrap();
}

#[test]
fn what_became_slower_is_told_and_fails_where_that_is_asked_for() {
    let folder = folder();
    let outcome = folder.run(&["compare", "a.json", "b.json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(outcome.out.contains("1 pair: 1 slower, 0 faster, 0 no difference seen, 0 undecided"), "{}", outcome.out);
    let json: Comparison = serde_json::from_str(&folder.good(&["compare", "a.json", "b.json", "--json"])).unwrap();
    let percent = 100.0 * (json.pairs[0].ratio.unwrap() - 1.0);
    assert!(percent > 0.1, "{percent}");
    // Tight: just below what it is fails, just above does not.
    for (above, code) in [(percent - 1e-6, 1), (percent + 1e-6, 0)] {
        let outcome = folder.run(&["compare", "a.json", "b.json", "--fail-above", &format!("{above}%")]);
        assert_eq!(outcome.code, Some(code), "{above}: {}", outcome.err);
        assert_eq!(outcome.err.contains("1 answer became slower by more than"), code == 1, "{}", outcome.err);
    }
    assert_eq!(folder.run(&["compare", "b.json", "a.json", "--fail-above", "0"]).code, Some(0), "faster is no failure");
    assert_eq!(folder.run(&["compare", "a.json", "a.json", "--fail-above", "0"]).code, Some(0));
}

#[test]
fn what_was_not_measured_again_does_not_pass() {
    let folder = folder();
    folder.good(&["bench", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--record", "all.json"]);
    changed(&folder, "all.json", "fewer.json", |record| {
        record.answers.pop();
    });
    // Without samples nothing can be said of a time.
    changed(&folder, "a.json", "none.json", |record| record.answers[0].samples_ns.clear());
    for (first, second, reason) in [
        ("all.json", "fewer.json", Some("1 answer of all.json is missing in fewer.json")),
        ("fewer.json", "all.json", None),
        ("a.json", "none.json", Some("1 answer cannot be judged: too few samples")),
    ] {
        let outcome = folder.run(&["compare", first, second, "--fail-above", "5%", "--strict"]);
        assert_eq!(outcome.code, Some(i32::from(reason.is_some())), "{first} {second}: {}", outcome.err);
        assert!(outcome.err.contains(reason.unwrap_or("")), "{first} {second}: {}", outcome.err);
        assert_eq!(folder.run(&["compare", first, second]).code, Some(0), "{first} {second}");
    }
}

#[test]
fn an_answer_that_cannot_be_judged_fails_a_comparison_only_with_strict() {
    let folder = folder();
    changed(&folder, "a.json", "few.json", |record| record.answers[0].samples_ns.clear());
    let lenient = folder.run(&["compare", "a.json", "few.json", "--fail-above", "5%"]);
    assert_eq!(lenient.code, Some(0), "{}", lenient.err);
    assert!(lenient.err.contains("1 answer cannot be judged") && lenient.err.contains("--strict"), "{}", lenient.err);
    assert_eq!(folder.run(&["compare", "a.json", "few.json", "--fail-above", "5%", "--strict"]).code, Some(1));
}

#[test]
fn a_record_compared_with_itself_passes_whatever_its_samples_are() {
    let folder = folder();
    changed(&folder, "a.json", "odd.json", |record| record.answers[0].samples_ns = vec![0.0, -5.0]);
    let outcome = folder.run(&["compare", "odd.json", "odd.json", "--fail-above", "5%", "--strict"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
}

/// Writes records of a real machine, whose runs have these medians, into a folder.
fn measured(folder: &Folder, into: &str, medians: &[f64]) {
    let record = lanemark_record::read(&folder.path("a.json")).unwrap();
    std::fs::create_dir(folder.path(into)).unwrap();
    for (place, median) in medians.iter().enumerate() {
        let mut record = Record { written_unix_s: Some(place as u64), ..record.clone() };
        record.targets[0].kind = TargetKind::Real;
        record.answers[0].samples_ns = vec![*median; 9];
        lanemark_record::write(&record, &folder.path(&format!("{into}/{}.json", place + 1))).unwrap();
    }
}

#[test]
fn several_records_a_side_are_judged_by_the_variation_between_them() {
    let folder = folder();
    for (name, by) in [("base", 1.0), ("same", 1.01), ("slow", 1.1)] {
        measured(&folder, name, &[99.0, 99.5, 100.0, 100.5, 101.0].map(|median| median * by));
    }
    for (new, counts, code) in [
        ("same", "0 slower, 0 faster, 1 no difference seen", 0),
        ("slow", "1 slower, 0 faster, 0 no difference seen", 1),
    ] {
        let outcome = folder.run(&["compare", "--base", "base", "--new", new, "--fail-above", "5%"]);
        assert_eq!(outcome.code, Some(code), "{new}: {}", outcome.err);
        assert!(outcome.out.contains(counts), "{new}: {}", outcome.out);
        assert!(outcome.out.starts_with(&format!("base (5 records) to {new} (5 records)")), "{}", outcome.out);
        assert_eq!(folder.run(&["compare", "base", new, "--fail-above", "5%"]), outcome, "folders stand for records");
        let files = |side: &str| (1..=5).map(|n| format!("{side}/{n}.json")).collect::<Vec<_>>();
        let [base, new] = [files("base"), files(new)];
        let each: Vec<&str> = ["compare", "--fail-above", "5%", "--base"]
            .into_iter()
            .chain(base.iter().map(String::as_str))
            .chain(["--new"])
            .chain(new.iter().map(String::as_str))
            .collect();
        assert_eq!(folder.run(&each).code, Some(code));
    }
    // The same change is none of interest, or may be the variation that one record does not show.
    let larger = folder.good(&["compare", "base", "slow", "--min-effect", "15%"]);
    assert!(larger.contains("0 slower"), "{larger}");
    let one = folder.good(&["compare", "base/1.json", "slow/1.json", "--fail-above", "5%"]);
    assert!(one.contains("0 slower") && one.contains("assumed to be 10 % (--between-runs)"), "{one}");
    let told = folder.run(&["compare", "base/1.json", "slow/1.json", "--fail-above", "5%", "--between-runs", "0.5%"]);
    assert_eq!(told.code, Some(1), "{}", told.err);
}

#[test]
fn a_record_that_counts_twice_and_sides_that_are_none_are_refused() {
    let folder = folder();
    measured(&folder, "base", &[99.0, 100.0, 101.0]);
    std::fs::create_dir(folder.path("empty")).unwrap();
    for (arguments, reason) in [
        (&["--base", "base/1.json", "base/1.json", "--new", "base/2.json"][..], "base/1.json are the same record"),
        (&["--base", "base/1.json", "base/2.json", "--new", "base/2.json"], "are the same record"),
        (&["base"], "1 record is given: use `compare BASE NEW`"),
        (&[], "no record is given"),
        (&["a.json", "a.json", "a.json"], "3 records are given"),
        (&["base", "empty"], "reading empty: the folder has no records"),
        (&["--base", "base"], "--new"),
        (&["--new", "base"], "no record is given"),
        (&["base", "base", "--between-runs", "-1"], "a percentage of at least 0"),
    ] {
        let outcome = folder.run(&[&["compare"], arguments].concat());
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{arguments:?}: {}", outcome.err);
        assert!(outcome.err.contains(reason), "{arguments:?}: {}", outcome.err);
    }
}

#[test]
fn what_cannot_be_compared_is_refused_and_the_reason_said() {
    let folder = folder();
    changed(&folder, "a.json", "real.json", |record| record.targets[0].kind = TargetKind::Real);
    changed(&folder, "a.json", "emulated.json", |record| record.targets[0].kind = TargetKind::Emulated);
    let old = std::fs::read_to_string(folder.path("a.json")).unwrap().replacen("\"schema\": 4", "\"schema\": 2", 1);
    std::fs::write(folder.path("old.json"), old).unwrap();
    changed(&folder, "a.json", "other.json", |record| record.answers[0].question = "other".to_owned());
    changed(&folder, "a.json", "larger.json", |record| record.answers[0].size_bytes = 16);
    changed(&folder, "a.json", "empty.json", |record| record.answers.clear());
    for (first, second, reason) in [
        ("a.json", "real.json", "is simulated and"),
        ("real.json", "emulated.json", "timings in an emulator are not meaningful"),
        ("formula.json", "a.json", "has formulas only"),
        ("a.json", "old.json", "this record has schema 2 and this program reads 4"),
        ("a.json", "other.json", "the records have no question in common"),
        ("a.json", "larger.json", "no answer has a counterpart"),
        ("empty.json", "a.json", "empty.json has no answers"),
        ("a.json", "none.json", "reading none.json"),
    ] {
        let outcome = folder.run(&["compare", first, second, "--fail-above", "5%"]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{first} {second}: {}", outcome.err);
        assert!(outcome.err.contains(reason), "{first} {second}: {}", outcome.err);
    }
}

#[test]
fn percentages_and_seconds_that_are_none_are_refused() {
    let folder = folder();
    for percent in ["-1", "x", "nan", "inf", "5 % more"] {
        let argument = format!("--fail-above={percent}");
        assert_eq!(folder.run(&["compare", "a.json", "a.json", &argument]).code, Some(2), "{percent}");
        let argument = format!("--interval={percent}");
        assert_eq!(folder.run(&small("bench", "card-gen5-x16", &[&argument])).code, Some(2), "{percent}");
    }
    for seconds in ["-1", "x", "nan", "86401", "1s"] {
        let argument = format!("--budget={seconds}");
        assert_eq!(folder.run(&small("bench", "card-gen5-x16", &[&argument])).code, Some(2), "{seconds}");
    }
    for option in [["--budget", "1"], ["--interval", "1"], ["--samples", "s.parquet"]] {
        let outcome = folder.run(&small("predict", "card-gen5-x16", &option));
        assert_eq!(outcome.code, Some(2), "{}", outcome.err);
        assert!(outcome.err.contains("formulas take no samples"), "{}", outcome.err);
    }
}
