//! Presets, records and diagnoses conform to the committed schemas, by two validators: one in Rust, and Python's
//! jsonschema, which `checks/schemas/validate` fetches.
//!
//! If that one is not available, it is left out and the reason is printed; with `LANEMARK_REQUIRE_JSONSCHEMA=1` this is
//! a failure.

use lanemark_checks::{lanemark, root};
use lanemark_platform::PRESETS;
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Output of the program, as JSON.
fn document(arguments: &[&str]) -> Value {
    let output = Command::new(lanemark()).args(arguments).output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{arguments:?}: {error}; {}", String::from_utf8_lossy(&output.stderr)))
}

fn schema(kind: &str) -> PathBuf {
    root().join("schemas").join(format!("{kind}.json"))
}

/// Validates documents with Python; `None` if it is not available.
fn python(kind: &str, documents: &[PathBuf]) -> Option<Output> {
    let mut command = Command::new(root().join("checks/schemas/validate"));
    let output = command.arg(schema(kind)).args(documents).output().unwrap();
    if output.status.code() != Some(77) {
        return Some(output);
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let is_wanted = std::env::var_os("LANEMARK_REQUIRE_JSONSCHEMA").is_some_and(|value| !value.is_empty());
    assert!(!is_wanted, "LANEMARK_REQUIRE_JSONSCHEMA requires it: {why}");
    // Not captured by the test harness.
    let _ = writeln!(std::io::stderr(), "skipped: Python as a second validator of schemas, because {why}");
    None
}

#[track_caller]
fn all_conform(kind: &str, documents: &[PathBuf]) {
    let Some(output) = python(kind, documents) else { return };
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

#[test]
fn every_preset_conforms_as_it_is_written_and_as_json() {
    let files: Vec<PathBuf> =
        PRESETS.iter().map(|preset| root().join(format!("platforms/{}.toml", preset.name))).collect();
    all_conform("platform", &files);
    let folder = tempfile::tempdir().unwrap();
    let parsed = PRESETS.iter().map(|preset| {
        lanemark_platform::Platform::parse(preset.name, preset.text).unwrap_or_else(|error| panic!("{error}")).to_json()
    });
    all_conform("platform", &written(folder.path(), "platform", parsed));
}

#[test]
fn records_and_diagnoses_conform() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = vec![document(&["bench", "--on", "card-gen5-x16", "--sizes", "64", "--json"])];
    records.extend(
        PRESETS.iter().map(|preset| document(&["predict", "--on", preset.name, "--sizes", "64,4KiB", "--json"])),
    );
    all_conform("record", &written(folder.path(), "record", records));
    let listing = folder.path().join("machine.lspci");
    let listing = listing.to_str().unwrap();
    let output =
        Command::new(lanemark()).args(["lspci", "--on", "rosta-virtex7", "--output", listing]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let diagnosis = document(&["doctor", "--from", listing, "--json"]);
    all_conform("doctor", &written(folder.path(), "doctor", [diagnosis]));
}

#[test]
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
    let Some(output) = python("platform", &paths) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().count() == wrong.len() && !said.contains(": valid"), "{said}");
}
