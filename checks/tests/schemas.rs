//! Presets, records, diagnoses, guidance, spaces, logs of sweeps and tables of copies conform to the committed schemas, by two validators: one
//! in Rust, and Python's jsonschema, which `checks/schemas/validate` fetches.
//!
//! If that one is not available, its tests are ignored, with the reason; with `LANEMARK_REQUIRE_JSONSCHEMA=1` they fail.

use lanemark_checks::trials::{Available, Trial, run};
use lanemark_checks::{lanemark, root, trials};
use lanemark_platform::PRESETS;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

fn main() -> ExitCode {
    let python = python_available();
    let mut tests: Vec<Trial> = trials!(
        Available::ALWAYS;
        every_preset_conforms_as_json,
        records_diagnoses_and_guidance_conform,
        lines_of_a_log_conform,
        tables_of_copies_conform,
    )
    .into();
    tests.extend(trials!(
        python;
        every_preset_conforms_by_python_as_it_is_written_and_as_json,
        records_diagnoses_and_guidance_conform_by_python,
        every_space_conforms_by_python_as_it_is_written,
        lines_of_a_log_conform_by_python,
        tables_of_copies_conform_by_python,
        a_wrong_document_is_refused_by_python_too,
    ));
    run(tests)
}

/// Output of the program, as JSON.
fn document(arguments: &[&str]) -> Value {
    let output = Command::new(lanemark()).args(arguments).output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{arguments:?}: {error}; {}", String::from_utf8_lossy(&output.stderr)))
}

fn schema(kind: &str) -> PathBuf {
    root().join("schemas").join(format!("{kind}.json"))
}

/// Validates documents with Python.
fn python(kind: &str, documents: &[PathBuf]) -> Output {
    let mut command = Command::new(root().join("checks/schemas/validate"));
    command.arg(schema(kind)).args(documents).output().unwrap()
}

/// Whether Python's validator is available.
fn python_available() -> Available {
    let output = python("platform", &[]);
    let why = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Available::new(if output.status.code() == Some(77) { Err(why()) } else { Ok(()) }, "LANEMARK_REQUIRE_JSONSCHEMA")
}

#[track_caller]
fn all_conform(kind: &str, documents: &[PathBuf]) {
    let output = python(kind, documents);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.lines().filter(|line| line.ends_with(": valid")).count(), documents.len(), "{said}");
}

/// Writes documents into `folder`, after the validator in Rust has accepted them.
fn written(folder: &Path, kind: &str, documents: impl IntoIterator<Item = Value>) -> Vec<PathBuf> {
    let schema: Value = serde_json::from_slice(&std::fs::read(schema(kind)).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let write = |(number, document): (usize, Value)| {
        validator.validate(&document).unwrap_or_else(|error| panic!("{kind} {number}: {error}"));
        let path = folder.join(format!("{kind}-{number}.json"));
        std::fs::write(&path, document.to_string()).unwrap();
        path
    };
    documents.into_iter().enumerate().map(write).collect()
}

/// Every preset as JSON, written into `folder`.
fn presets(folder: &Path) -> Vec<PathBuf> {
    let parsed = PRESETS.iter().map(|preset| {
        lanemark_platform::Platform::parse(preset.name, preset.text).unwrap_or_else(|error| panic!("{error}")).to_json()
    });
    written(folder, "platform", parsed)
}

fn every_preset_conforms_as_json() {
    presets(tempfile::tempdir().unwrap().path());
}

fn every_preset_conforms_by_python_as_it_is_written_and_as_json() {
    let files: Vec<PathBuf> =
        PRESETS.iter().map(|preset| root().join(format!("platforms/{}.toml", preset.name))).collect();
    all_conform("platform", &files);
    let folder = tempfile::tempdir().unwrap();
    all_conform("platform", &presets(folder.path()));
}

/// Records, a diagnosis and guidance, written into `folder`, with their kinds.
fn answers(folder: &Path) -> [(&'static str, Vec<PathBuf>); 3] {
    let mut records = vec![document(&["bench", "--on", "card-gen5-x16", "--sizes", "64", "--json"])];
    records.extend(
        PRESETS.iter().map(|preset| document(&["predict", "--on", preset.name, "--sizes", "64,4KiB", "--json"])),
    );
    let records = written(folder, "record", records);
    let listing = folder.join("machine.lspci");
    let listing = listing.to_str().unwrap();
    let output =
        Command::new(lanemark()).args(["lspci", "--on", "rosta-virtex7", "--output", listing]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let diagnosis = document(&["doctor", "--from", listing, "--json"]);
    let advised = ["tacc-stratix4", "aws-f1"]
        .map(|preset| document(&["advise", "--on", preset, "--sizes", "64", "--rate", "1GB/s", "--json"]));
    let advised = written(folder, "guidance", advised);
    [("record", records), ("doctor", written(folder, "doctor", [diagnosis])), ("guidance", advised)]
}

fn records_diagnoses_and_guidance_conform() {
    answers(tempfile::tempdir().unwrap().path());
}

fn records_diagnoses_and_guidance_conform_by_python() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, documents) in answers(folder.path()) {
        all_conform(kind, &documents);
    }
}

fn every_space_conforms_by_python_as_it_is_written() {
    let files = std::fs::read_dir(root().join("spaces")).unwrap().map(|file| file.unwrap().path());
    let files: Vec<PathBuf> = files.collect();
    assert!(files.len() >= 2);
    all_conform("space", &files);
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, std::fs::read_to_string(&files[0]).unwrap().replace("[with]", "[width]")).unwrap();
    let output = python("space", std::slice::from_ref(&wrong));
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Some lines of logs, written into `folder`: of formulas, of simulations, and of a point that cannot run.
fn lines(folder: &Path) -> Vec<PathBuf> {
    let space = folder.join("space.toml");
    let text = "schema = 1\nplatforms = [\"card-gen5-x16\"]\n[with]\ndma.tags = [64, 4096]\n\
        [[question]]\nname = \"dma_read_latency\"\nsizes = \"64\"\nrandom = [true, false]\n\
        [[question]]\nname = \"mmio_write_bandwidth\"\nsizes = \"4K\"\n";
    let mut lines = Vec::new();
    for by in ["formulas", "simulation"] {
        std::fs::write(&space, text.replacen("schema = 1", &format!("schema = 1\nby = \"{by}\""), 1)).unwrap();
        let log = folder.join(by);
        let output = Command::new(lanemark()).arg("sweep").arg(&space).arg("--log").arg(&log).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(&log).unwrap();
        lines.extend(text.lines().map(|line| serde_json::from_str(line).unwrap()));
    }
    let count = |member: &str| lines.iter().filter(|line: &&Value| line.get(member).is_some()).count();
    assert!(count("because") > 0 && count("bound_by") > 0 && count("longest_wait_percent") > 0);
    written(folder, "sweep-log", lines)
}

fn lines_of_a_log_conform() {
    lines(tempfile::tempdir().unwrap().path());
}

fn lines_of_a_log_conform_by_python() {
    let folder = tempfile::tempdir().unwrap();
    all_conform("sweep-log", &lines(folder.path()));
}

/// A table that `tune` wrote, copied into `folder`.
fn tables(folder: &Path) -> Vec<PathBuf> {
    let table = folder.join("table.json");
    let table = table.to_str().unwrap();
    let output = Command::new(lanemark()).args(["tune", "--on", "xeon-spr+gpu-h100", "-o", table]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table: Value = serde_json::from_slice(&std::fs::read(table).unwrap()).unwrap();
    assert!(table["points"].as_array().unwrap().len() > 100, "{table}");
    written(folder, "copies", [table])
}

fn tables_of_copies_conform() {
    tables(tempfile::tempdir().unwrap().path());
}

fn tables_of_copies_conform_by_python() {
    let folder = tempfile::tempdir().unwrap();
    let tables = tables(folder.path());
    all_conform("copies", &tables);
    let wrong = folder.path().join("wrong.json");
    std::fs::write(&wrong, std::fs::read_to_string(&tables[0]).unwrap().replacen("\"loop\"", "\"loops\"", 1)).unwrap();
    assert_eq!(python("copies", &[wrong]).status.code(), Some(1));
}

fn a_wrong_document_is_refused_by_python_too() {
    let folder = tempfile::tempdir().unwrap();
    let preset = PRESETS.iter().find(|preset| preset.name == "card-gen5-x16").unwrap();
    let wrong = [
        preset.text.replacen("name = \"card-gen5-x16\"", "name = \"card\\n\"", 1),
        preset.text.replacen("name = \"card-gen5-x16\"", "name = \" \"", 1),
        preset.text.replacen("schema = 2", "schema = 3", 1),
    ];
    let paths: Vec<PathBuf> = (0..wrong.len()).map(|number| folder.path().join(format!("{number}.toml"))).collect();
    for (path, text) in paths.iter().zip(&wrong) {
        assert_ne!(text, preset.text, "the change has no effect");
        std::fs::write(path, text).unwrap();
    }
    let output = python("platform", &paths);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().count() == wrong.len() && !said.contains(": valid"), "{said}");
}
