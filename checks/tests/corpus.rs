//! Reference records (`records/`): every one keeps the rules, and the compact form and the simulated ones are those of today.
//!
//! With `LANEMARK_BLESS` set, which `make corpus` does, simulated records and the compact form are written instead.

use lanemark_checks::{lanemark, root};
use lanemark_record::corpus::Corpus;
use lanemark_record::reference::{Rule, breaches};
use lanemark_record::{Record, TargetKind, records_in};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compact form of all records.
const COMPACT: &str = "corpus.json";

fn folder() -> PathBuf {
    root().join("records")
}

/// The reference records, by file name.
fn records() -> Vec<(String, Record)> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let files = records_in(&folder()).unwrap().into_iter().filter(|path| name(path) != COMPACT);
    files.map(|path| (name(&path), lanemark_record::read(&path).unwrap_or_else(|error| panic!("{error}")))).collect()
}

fn is_blessing() -> bool {
    std::env::var_os("LANEMARK_BLESS").is_some()
}

#[test]
fn every_record_conforms_to_the_schema_and_keeps_every_rule() {
    let schema = std::fs::read(root().join("schemas/record.json")).unwrap();
    let schema = jsonschema::draft202012::new(&serde_json::from_slice(&schema).unwrap()).unwrap();
    let records = records();
    assert!(records.len() >= 14, "{}", records.len());
    for (file, record) in &records {
        let document = serde_json::from_slice(&std::fs::read(folder().join(file)).unwrap()).unwrap();
        schema.validate(&document).unwrap_or_else(|error| panic!("{file}: {error}"));
        let broken: Vec<String> = breaches(record).iter().map(ToString::to_string).collect();
        assert!(broken.is_empty(), "{file}: {}", broken.join("\n"));
    }
}

#[test]
fn every_record_has_a_row_with_its_provenance_and_every_row_a_record() {
    let text = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| ["))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let records = records();
    let listed: Vec<&str> = rows.iter().map(|row| row[0].split(['[', ']']).nth(1).unwrap()).collect();
    let files: Vec<&str> = records.iter().map(|(file, _)| file.as_str()).collect();
    assert_eq!(listed, files, "left: rows of records/README.md; right: the files");
    for (row, (file, record)) in rows.iter().zip(&records) {
        let [_, machine, by, date, command, licence] = row.as_slice() else { panic!("{file}: {row:?}") };
        assert!(!machine.is_empty() && licence.contains("Apache-2.0"), "{file}: {row:?}");
        let kinds: Vec<&str> = record.targets.iter().map(|target| kind(target.kind)).collect();
        assert!(kinds.iter().all(|kind| kind == by), "{file}: answered by {kinds:?}, and the row says {by}");
        match record.written_unix_s {
            Some(seconds) => assert_eq!(*date, lanemark_units::figures::date(seconds).split(' ').next().unwrap()),
            None => assert_eq!(*date, "any", "{file}: a simulation has no date"),
        }
        // The name of the output is not part of what was asked.
        let words: Vec<&str> = record.command.iter().map(String::as_str).collect();
        let asked = words.iter().take_while(|word| **word != "--record").copied().collect::<Vec<_>>().join(" ");
        assert_eq!(command.trim_matches('`'), asked, "{file}");
    }
}

fn kind(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Simulated => "simulated",
        TargetKind::Real => "real",
        TargetKind::Emulated => "emulated",
        TargetKind::Formula => "formulas",
        TargetKind::Imported => "imported",
    }
}

/// Runs the command of a simulated record again and returns the new record.
fn simulated_again(file: &str, record: &Record) -> Record {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("records")).unwrap();
    let output = Command::new(lanemark()).args(&record.command[1..]).current_dir(place.path()).output().unwrap();
    assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    lanemark_record::read(&place.path().join("records").join(file)).unwrap()
}

#[test]
fn simulated_records_and_the_compact_form_are_those_of_todays_program() {
    let mut records = records();
    for (file, record) in &mut records {
        if record.targets.iter().all(|target| target.kind == TargetKind::Simulated) {
            let again = simulated_again(file, record);
            if is_blessing() {
                lanemark_record::write(&again, &folder().join(&*file)).unwrap();
                record.clone_from(&again);
            }
            // `assert_eq` would print both records.
            assert!(again == *record, "{file} is not what the program answers; renew it by: make corpus");
        }
    }
    let text = Corpus::of_records(records.iter().map(|(file, record)| (file.as_str(), record))).to_text();
    let path = folder().join(COMPACT);
    if is_blessing() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == text, "records/{COMPACT} is not the compact form of the records; renew it by: make corpus");
    assert!(text.len() < 300 << 10, "{} B are in every program: ask fewer questions", text.len());
}

#[test]
fn each_simulated_or_host_record_is_small() {
    let is_of_gpu = |record: &Record| ["cuda:", "opencl:"].iter().any(|gpu| record.targets[0].name.starts_with(gpu));
    for (file, _) in records().iter().filter(|(_, record)| !is_of_gpu(record)) {
        let bytes = std::fs::metadata(folder().join(file)).unwrap().len();
        assert!(bytes < 150 << 10, "{file} has {bytes} B: ask fewer sizes");
    }
}

/// A change that breaks a rule, and words of the message.
type Break = (Rule, &'static str, fn(&mut Record));

/// Runs `lanemark check` on a changed copy of a record, and returns exit code and messages.
fn checked(place: &Path, record: &Record) -> (Option<i32>, String) {
    let path = place.join("mine.json");
    std::fs::write(&path, lanemark_record::file::to_json(record)).unwrap();
    let output = Command::new(lanemark()).arg("check").arg("mine.json").current_dir(place).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_broken_copy_of_each_kind_is_refused_with_file_answer_and_rule() {
    let place = tempfile::tempdir().unwrap();
    let (_, good) = records().into_iter().find(|(file, _)| file == "h100-dma-cuda.json").unwrap();
    assert_eq!(checked(place.path(), &good), (Some(0), String::new()));
    let breaks: [Break; 6] = [
        (Rule::Provenance, "the record: 'command' is empty", |record| record.command.clear()),
        (Rule::Complete, "the record: the run was stopped early", |record| record.interrupted = true),
        (Rule::Units, "dma_read_bandwidth on cuda:0, host-to-device by DMA, 64B: its quantity", |record| {
            let is_rate = |answer: &&mut lanemark_record::Answer| answer.question == "dma_read_bandwidth";
            record.answers.iter_mut().find(is_rate).unwrap().delivered_rate_bytes_per_s = None;
        }),
        (Rule::Samples, "dma_read_latency on cuda:0, host-to-device by DMA, 8B: min of 'latency_ns'", |record| {
            record.answers[0].samples_ns.iter_mut().for_each(|ns| *ns *= 1.001);
        }),
        (Rule::Ceiling, "of the limit of", |record| {
            let is_rate = |answer: &&mut lanemark_record::Answer| answer.question == "dma_read_bandwidth";
            record.answers.iter_mut().rev().find(is_rate).unwrap().ceiling.rate_bytes_per_s = Some(5e10);
        }),
        (Rule::Paths, "the record: 'command[2]' has the path", |record| {
            record.command[2] = concat!("--twin=/", "home/me/twin.toml").to_owned();
        }),
    ];
    for (rule, words, change) in breaks {
        let mut record = good.clone();
        change(&mut record);
        let (code, said) = checked(place.path(), &record);
        assert_eq!(code, Some(1), "{rule:?}: {said}");
        assert!(said.contains("mine.json: ") && said.contains(words), "{rule:?}: {said}");
        assert!(said.contains(&format!("(rule '{}')", rule.name())), "{rule:?}: {said}");
    }
    std::fs::write(place.path().join("mine.json"), "{\"schema\": 4}").unwrap();
    let output = Command::new(lanemark()).args(["check", "mine.json"]).current_dir(place.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a file that is no record");
}
