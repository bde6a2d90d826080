//! Designs in `SystemVerilog` under the adversary: the card of `rtl/`, its mutants and the example engine.
//!
//! `make test-rtl` fetches Verilator and runs these tests.

use lanemark_adversary::{RULES, Request, SITUATIONS, Situation, Summary, Target, campaign};
use lanemark_checks::page::Page;
use lanemark_checks::shown::missing;
use lanemark_checks::trials::{Available, run};
use lanemark_checks::{lanemark, root, trials};
use lanemark_devices::DeviceFile;
use lanemark_hw::dut_library::DutLibrary;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;

/// TLPs that the correct card passes with each of both partners.
const TLPS: u64 = 100_000;
/// Seeds of a mutant with each partner: at most a few seconds.
const LEGAL_SEEDS: u64 = 48;
const ILLEGAL_SEEDS: u64 = 400;

fn main() -> ExitCode {
    let verilator = Available::unless("LANEMARK_SKIPPED_RTL");
    run(trials!(
        verilator;
        the_card_passes_a_hundred_thousand_tlps_of_a_legal_partner,
        the_card_passes_a_hundred_thousand_tlps_of_an_illegal_partner,
        each_mutant_of_the_card_is_found_with_its_rule,
        the_example_engine_works_with_a_legal_partner,
        both_failures_of_the_example_engine_are_found,
        the_same_seed_gives_the_same_run,
        commands_of_the_guide_print_the_shown_output,
    )
    .into())
}

/// Compiles files of a folder.
fn build(library: &Path, top: &str, folder: &Path) -> Result<(), String> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "sv"));
    files.sort();
    let output = Command::new(root().join("rtl/build")).arg(library).arg(top).args(&files).output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn target(file: &str) -> Target {
    let text = fs::read_to_string(root().join(file)).unwrap();
    Target::new(&DeviceFile::parse(file, &text).unwrap(), 2048).unwrap()
}

fn fuzz(library: &DutLibrary, target: &Target, seeds: u64, is_illegal: bool, threads: usize) -> Summary {
    let request = Request { seeds: 0..seeds, is_illegal, threads };
    campaign(&request, target, || library.open().map_err(|error| error.to_string()), || false).unwrap()
}

fn names(summary: &Summary) -> Vec<&'static str> {
    summary.failures.iter().map(|failure| failure.finding.rule.row().name).collect()
}

/// Builds a design of the tree, and loads it.
fn loaded(top: &str, folder: &str) -> (tempfile::TempDir, DutLibrary) {
    let temporary = tempfile::tempdir().unwrap();
    let library = temporary.path().join("design.so");
    build(&library, top, &root().join(folder)).unwrap();
    let loaded = DutLibrary::load(&library).unwrap();
    (temporary, loaded)
}

fn card_is_clean(is_illegal: bool) {
    let (_folder, library) = loaded("card", "rtl/card");
    let summary = fuzz(&library, &target("rtl/card.toml"), 700, is_illegal, 2);
    let texts: Vec<String> = summary.failures.iter().map(|failure| format!("{:?}", failure.finding)).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
    assert!(summary.tlps >= TLPS, "only {} TLPs", summary.tlps);
    for row in SITUATIONS.iter().filter(|row| row.is_legal || is_illegal) {
        assert!(summary.coverage.of(row.situation) > 0, "{} was never tried", row.name);
    }
}

fn the_card_passes_a_hundred_thousand_tlps_of_a_legal_partner() {
    card_is_clean(false);
}

fn the_card_passes_a_hundred_thousand_tlps_of_an_illegal_partner() {
    card_is_clean(true);
}

/// A row of `rtl/mutants.toml`.
struct Mutant {
    name: String,
    file: String,
    from: String,
    to: String,
    rules: Vec<String>,
    /// Whether the partner cannot see the change; the file says why.
    is_equivalent: bool,
}

fn mutants() -> Vec<Mutant> {
    let table: toml::Table = fs::read_to_string(root().join("rtl/mutants.toml")).unwrap().parse().unwrap();
    let text = |row: &toml::Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rules = |row: &toml::Value| {
        row["rules"].as_array().unwrap().iter().map(|rule| rule.as_str().unwrap().to_owned()).collect()
    };
    let rows = table["mutant"].as_array().unwrap().iter().map(|row| Mutant {
        name: text(row, "name"),
        file: text(row, "file"),
        from: text(row, "from"),
        to: text(row, "to"),
        rules: rules(row),
        is_equivalent: row.get("is_equivalent").is_some(),
    });
    rows.collect()
}

/// What is wrong with the search of a mutant; `None` if it is found with its rule.
fn search(mutant: &Mutant, target: &Target) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut is_changed = false;
    for entry in fs::read_dir(root().join("rtl/card")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let mut text = fs::read_to_string(&path).unwrap();
        if name == mutant.file {
            is_changed = text.matches(&mutant.from).count() == 1;
            text = text.replacen(&mutant.from, &mutant.to, 1);
        }
        fs::write(folder.path().join(name), text).unwrap();
    }
    if !is_changed {
        return Some(format!("its text is not once in {}", mutant.file));
    }
    if let Some(unknown) = mutant.rules.iter().find(|rule| RULES.iter().all(|row| row.name != **rule)) {
        return Some(format!("{unknown} is no rule"));
    }
    let library = folder.path().join("mutant.so");
    if let Err(error) = build(&library, "card", folder.path()) {
        return Some(format!("it does not compile: {error}"));
    }
    let library = DutLibrary::load(&library).unwrap();
    let mut found = names(&fuzz(&library, target, LEGAL_SEEDS, false, 1));
    if !found.iter().any(|name| mutant.rules.iter().any(|rule| rule == name)) {
        found.extend(names(&fuzz(&library, target, ILLEGAL_SEEDS, true, 1)));
    }
    let is_found = found.iter().any(|name| mutant.rules.iter().any(|rule| rule == name));
    match (is_found, mutant.is_equivalent) {
        (true, false) | (false, true) => None,
        (false, false) => Some(format!("found {found:?} instead of {:?}", mutant.rules)),
        (true, true) => Some("it is found, and the file says that it cannot be".to_owned()),
    }
}

fn each_mutant_of_the_card_is_found_with_its_rule() {
    let target = target("rtl/card.toml");
    let mutants = mutants();
    assert!(mutants.iter().filter(|mutant| !mutant.is_equivalent).count() >= 30);
    let rest = Mutex::new(mutants.iter());
    let missed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(mutant) = rest.lock().unwrap().next() else { break };
                    if let Some(what) = search(mutant, &target) {
                        missed.lock().unwrap().push(format!("{}: {what}", mutant.name));
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), mutants.len(), missed.join("\n"));
}

fn the_example_engine_works_with_a_legal_partner() {
    let (_folder, library) = loaded("copy_engine", "rtl/examples");
    let summary = fuzz(&library, &target("rtl/examples/copy_engine.toml"), 100, false, 2);
    let texts: Vec<String> = summary.failures.iter().map(|failure| format!("{:?}", failure.finding)).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
}

fn both_failures_of_the_example_engine_are_found() {
    let (_folder, library) = loaded("copy_engine", "rtl/examples");
    let summary = fuzz(&library, &target("rtl/examples/copy_engine.toml"), 100, true, 2);
    let found = names(&summary);
    for wanted in ["completion_mismatch", "unexpected_completion", "progress", "timeout"] {
        assert!(found.contains(&wanted), "{wanted} is not among {found:?}");
    }
    let shortest =
        |name: &str| summary.failures.iter().find(|failure| failure.finding.rule.row().name == name).unwrap();
    let mismatch = shortest("completion_mismatch");
    let situations: Vec<Situation> = mismatch.case.steps.iter().filter_map(|step| Some(step.illegal?.0)).collect();
    assert_eq!(situations.len(), 1, "{:?}", mismatch.case);
}

fn the_same_seed_gives_the_same_run() {
    let (_folder, library) = loaded("copy_engine", "rtl/examples");
    let target = target("rtl/examples/copy_engine.toml");
    let run = || {
        let failures = fuzz(&library, &target, 20, true, 2).failures;
        failures
            .into_iter()
            .map(|failure| (failure.seed, failure.finding, failure.case, failure.kept))
            .collect::<Vec<_>>()
    };
    let first = run();
    assert!(!first.is_empty());
    assert_eq!(first, run());
}

fn commands_of_the_guide_print_the_shown_output() {
    let folder = tempfile::tempdir().unwrap();
    build(&folder.path().join("card.so"), "card", &root().join("rtl/card")).unwrap();
    build(&folder.path().join("copy_engine.so"), "copy_engine", &root().join("rtl/examples")).unwrap();
    for file in ["card.toml", "examples/copy_engine.toml"] {
        let name = Path::new(file).file_name().unwrap();
        fs::copy(root().join("rtl").join(file), folder.path().join(name)).unwrap();
    }
    let mut commands = 0;
    for page in Page::all() {
        for block in page.blocks().iter().filter(|block| block.has("rtl")) {
            for (command, shown) in block.commands() {
                let words = command.strip_prefix("lanemark ").unwrap().split(' ');
                let output = Command::new(lanemark()).args(words).current_dir(folder.path()).output().unwrap();
                let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
                let code = block.note("exit").unwrap_or("0").parse().ok();
                assert_eq!(output.status.code(), code, "{}:{}: $ {command}\n{text}", page.path, block.line);
                if let Some(line) = missing(&shown, &text, block.note("varies")) {
                    panic!("{}:{}: $ {command}\n{line} is not in\n{text}", page.path, block.line);
                }
                commands += 1;
            }
        }
    }
    assert!(commands >= 2, "{commands} commands");
}
