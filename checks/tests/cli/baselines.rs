//! Several runs of one measurement, and records under a name.

use crate::folder::{Folder, small};
use lanemark_record::Record;

fn saved<'a>(more: &[&'a str]) -> Vec<&'a str> {
    small("bench", "card-gen5-x16", more)
}

#[test]
fn independent_runs_are_written_to_a_new_folder_and_their_variation_is_shown() {
    let folder = Folder::new();
    let out = folder.good(&saved(&["--repeat", "3", "--record", "runs"]));
    assert!(out.starts_with("3 runs: medians") && out.contains("slowest run"), "{out}");
    for run in 1..=3 {
        let record = lanemark_record::read(&folder.path(&format!("runs/{run}.json"))).unwrap();
        // The command is the one that was typed.
        assert_eq!(record.command[record.command.len() - 2..], ["--record", "runs"], "{:?}", record.command);
        assert_eq!(record.answers.len(), 1);
    }
    assert_eq!(folder.content().len(), 1, "no other file remains");
    let again = folder.run(&saved(&["--repeat", "2", "--record", "runs"]));
    assert_eq!((again.code, again.out.as_str()), (Some(2), ""), "{}", again.err);
    assert!(again.err.contains("the folder is not empty; name a new one"), "{}", again.err);
    let json: Vec<Record> = serde_json::from_str(&folder.good(&saved(&["--repeat", "2", "--json"]))).unwrap();
    assert_eq!(json.len(), 2);
    let same = folder.good(&["compare", "runs", "runs"]);
    assert!(same.contains("0 slower, 0 faster, 1 no difference seen"), "{same}");
}

#[test]
fn several_runs_that_make_no_sense_are_refused() {
    let folder = Folder::with(&[("file", b"")]);
    for (arguments, reason) in [
        (saved(&["--repeat", "0"]), "use a whole number from 1 to 1000"),
        (saved(&["--repeat", "-1"]), "invalid value '-1'"),
        (saved(&["--repeat", "1000000000000"]), "invalid value"),
        (saved(&["--repeat", "2", "--html", "x.html"]), "--html is about one record"),
        (saved(&["--repeat", "2", "--record", "file"]), "it is a file; several records need a folder"),
        (saved(&["--repeat", "2", "--record", "no/such/folder"]), "No such file"),
        (small("predict", "card-gen5-x16", &["--repeat", "2"]), "formulas take no samples"),
        (small("bench", "no-such-card", &["--repeat", "2"]), "run 1 of 2 failed for the reason above"),
    ] {
        let outcome = folder.run(&arguments);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{arguments:?}: {}", outcome.err);
        assert!(outcome.err.contains(reason), "{arguments:?}: {}", outcome.err);
    }
    assert_eq!(folder.content().len(), 1, "nothing was written");
}

#[test]
fn a_baseline_is_saved_listed_and_compared_with() {
    let folder = Folder::new();
    assert_eq!(folder.good(&["baselines"]), "");
    folder.good(&saved(&["--save-baseline", "main"]));
    folder.good(&saved(&["--repeat", "2", "--save-baseline", "v1.2"]));
    assert!(folder.path(".lanemark/baselines/v1.2/2.json").is_file());
    let listed = folder.good(&["baselines"]);
    assert!(listed.contains("main ") && listed.contains("2 records, 1 answer, card-gen5-x16"), "{listed}");
    let json: serde_json::Value = serde_json::from_str(&folder.good(&["baselines", "--json"])).unwrap();
    assert_eq!(json["baselines"][1]["records"], 2);
    folder.good(&saved(&["--record", "same.json"]));
    folder.good(&saved(&["--record", "slow.json", "--with", "link.latency_ns=140"]));
    let compared = |new: &str| folder.run(&["compare", "--baseline", "main", new, "--fail-above", "0.1%"]);
    assert_eq!((compared("same.json").code, compared("slow.json").code), (Some(0), Some(1)));
    assert!(compared("same.json").out.starts_with("baseline main to same.json: "));
    // The same name again replaces all records.
    folder.good(&saved(&["--save-baseline", "v1.2"]));
    assert!(!folder.path(".lanemark/baselines/v1.2/2.json").exists());
    folder.good(&saved(&["--save-baseline", "other", "--baseline-folder", "elsewhere"]));
    assert!(folder.path("elsewhere/other/1.json").is_file());
    for (arguments, reason) in [
        (vec!["compare", "--baseline", "mian", "same.json"], "there is no baseline 'mian'"),
        (vec!["compare", "--baseline", "../x", "same.json"], "'../x' is no name of a baseline"),
        (vec!["compare", "--baseline", "main"], "no new record is given"),
        (saved(&["--save-baseline", ""]), "'' is no name of a baseline"),
        (saved(&["--save-baseline", "a/b"]), "'a/b' is no name of a baseline"),
        (saved(&["--save-baseline", "x", "--baseline-folder", "same.json"]), "same.json"),
    ] {
        let outcome = folder.run(&arguments);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{arguments:?}: {}", outcome.err);
        assert!(outcome.err.contains(reason), "{arguments:?}: {}", outcome.err);
    }
}
