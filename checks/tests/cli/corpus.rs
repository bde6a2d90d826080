//! `compare --to-corpus` and `check` of records: the nearest machine, and what a contributor is told.

use crate::folder::Folder;
use lanemark_checks::root;
use lanemark_record::corpus::Neighbourhood;
use lanemark_record::{Record, TargetKind};

/// Questions of the simulated reference records.
const ASKED: [&str; 4] = ["--question", "dma_read_latency,dma_write_bandwidth", "--sizes", "64,512,4K,64K"];

fn simulated(target: &str, more: &[&str]) -> Folder {
    let folder = Folder::new();
    folder.good(&[&["bench", "--on", target], &ASKED[..], more, &["--json", "--record", "mine.json"]].concat());
    folder
}

fn found(folder: &Folder, more: &[&str]) -> Neighbourhood {
    let out = folder.good(&[&["compare", "mine.json", "--to-corpus", "--json"], more].concat());
    serde_json::from_str(&out).unwrap()
}

/// The record with something else in it.
fn change(folder: &Folder, change: impl FnOnce(&mut Record)) {
    let mut record = lanemark_record::read(&folder.path("mine.json")).unwrap();
    change(&mut record);
    lanemark_record::write(&record, &folder.path("mine.json")).unwrap();
}

#[test]
fn each_built_in_card_is_nearest_to_itself_and_no_figure_differs() {
    for (target, file) in [
        ("card-gen5-x16", "simulated-card-gen5-x16.json"),
        ("xeon-icelake+fpga-gen3-xdma", "simulated-fpga-gen3-xdma.json"),
        ("xeon-spr+gpu-h100", "simulated-gpu-h100.json"),
    ] {
        let nearest = found(&simulated(target, &[]), &[]).targets.remove(0);
        assert_eq!((nearest.neighbours[0].file.as_str(), nearest.neighbours[0].distance), (file, 1.0));
        let differences = nearest.differences.unwrap();
        assert!(differences.questions.iter().all(|one| one.ratio_min == 1.0 && one.ratio_max == 1.0), "{target}");
        assert_eq!(differences.facts, [], "{target}");
        assert!(nearest.neighbours.is_sorted_by_key(|one| one.kind == TargetKind::Real), "simulated ones come first");
    }
}

#[test]
fn a_narrower_link_is_named_as_the_fact_that_differs() {
    let folder = simulated("xeon-spr+gpu-h100", &["--with", "link.width_lanes=8"]);
    // Beside the card alone, as one's own folder.
    std::fs::create_dir(folder.path("own")).unwrap();
    let reference = root().join("records/simulated-gpu-h100.json");
    std::fs::copy(reference, folder.path("own/gpu.json")).unwrap();
    let nearest = found(&folder, &["--corpus", "own"]);
    assert_eq!(nearest.machines, 1);
    let differences = nearest.targets[0].differences.clone().unwrap();
    let [width] = differences.facts.as_slice() else { panic!("{differences:?}") };
    assert_eq!(
        (width.name.as_str(), width.here.as_deref(), width.there.as_deref()),
        ("link width", Some("x8"), Some("x16"))
    );
    assert_eq!(differences.questions[0].question, "dma_write_bandwidth", "half of the width costs bandwidth first");
    let text = folder.good(&["compare", "mine.json", "--to-corpus", "--corpus", "own"]);
    assert!(text.contains("  - link width: x8 here, x16 there"), "{text}");
}

#[test]
fn a_measured_record_is_not_mixed_with_simulations_in_silence() {
    let folder = simulated("xeon-spr+gpu-h100", &[]);
    change(&folder, |record| {
        record.targets[0].kind = TargetKind::Real;
        record.written_unix_s = Some(1);
    });
    let text = folder.good(&["compare", "mine.json", "--to-corpus"]);
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(place("Nearest machines (real, as this record)") < place("Nearest simulated platforms: "), "{text}");
    assert!(text.contains("Differences from h") && !text.contains("warning: "), "{text}");
    std::fs::create_dir(folder.path("own")).unwrap();
    std::fs::copy(root().join("records/simulated-gpu-h100.json"), folder.path("own/gpu.json")).unwrap();
    let text = folder.good(&["compare", "mine.json", "--to-corpus", "--corpus", "own"]);
    assert!(text.contains("warning: no real machine of the corpus has enough cases in common"), "{text}");
}

#[test]
fn a_record_of_the_corpus_is_named_and_not_its_own_neighbour() {
    let folder = Folder::new();
    std::fs::copy(root().join("records/h200-dma-cuda.json"), folder.path("mine.json")).unwrap();
    let nearest = found(&folder, &[]).targets.remove(0);
    assert_eq!(nearest.itself, ["h200-dma-cuda.json"]);
    assert_eq!(nearest.neighbours[0].file, "h100-dma-cuda.json");
    assert!(folder.good(&["compare", "mine.json", "--to-corpus"]).contains("it is h200-dma-cuda.json of the corpus"));
}

#[test]
fn emulated_records_and_wrong_options_are_refused() {
    let folder = simulated("card-gen5-x16", &[]);
    let refused = |arguments: &[&str]| {
        let outcome = folder.run(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {}", outcome.err);
        outcome.err
    };
    for (arguments, words) in [
        (&["compare", "mine.json", "mine.json", "--to-corpus"][..], "2 records are given, and one is compared"),
        (&["compare", "mine.json", "--to-corpus", "--fail-above", "5"][..], "cannot be used with"),
        (&["compare", "mine.json", "--corpus", "."][..], "--to-corpus"),
        (&["compare", "mine.json", "--to-corpus", "--corpus", "absent"][..], "absent"),
    ] {
        let error = refused(arguments);
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
    change(&folder, |record| record.targets[0].kind = TargetKind::Emulated);
    let error = refused(&["compare", "mine.json", "--to-corpus"]);
    assert!(error.contains("'card-gen5-x16' of mine.json: timings in an emulator are not meaningful"), "{error}");
}

#[test]
fn check_lists_every_record_of_a_folder_and_fails_for_one_that_breaks_a_rule() {
    let folder = simulated("card-gen5-x16", &[]);
    assert!(folder.good(&["check", "mine.json"]).contains("mine.json: 8 answers, every rule"));
    std::fs::copy(folder.path("mine.json"), folder.path("other.json")).unwrap();
    change(&folder, |record| record.command.clear());
    let outcome = folder.run(&["check", "."]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    assert!(outcome.out.contains("other.json: 8 answers") && !outcome.out.contains("mine.json"), "{}", outcome.out);
    assert!(outcome.err.contains("mine.json: the record: 'command' is empty"), "{}", outcome.err);
    assert!(outcome.err.contains("1 record breaks the rules"), "{}", outcome.err);
    let json: serde_json::Value = serde_json::from_str(&folder.run(&["check", "mine.json", "--json"]).out).unwrap();
    assert_eq!((&json["breaches"][0]["rule"], &json["breaches"][1]), (&"provenance".into(), &serde_json::Value::Null));
}
