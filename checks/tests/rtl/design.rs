//! Designs of the tree, compiled and loaded, and the mutants of the card.

use lanemark_checks::root;
use lanemark_hw::dut_library::{DutLibrary, Watchdog};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// Files in `SystemVerilog` of a folder.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "sv"));
    files.sort();
    files
}

/// Compiles files of a folder.
pub fn build(library: &Path, top: &str, folder: &Path) -> Result<(), String> {
    let files = sources(folder);
    let output = Command::new(root().join("rtl/build")).arg(library).arg(top).args(&files).output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Loads a library; a design that does not return ends the test.
pub fn load(library: &Path) -> DutLibrary {
    let watchdog = Watchdog::start(Duration::from_mins(1), |hang| {
        eprintln!("{hang}");
        std::process::abort();
    });
    DutLibrary::load(library, &watchdog.unwrap()).unwrap()
}

/// Builds a design of the tree, and loads it.
pub fn loaded(top: &str, folder: &str) -> (tempfile::TempDir, DutLibrary) {
    let temporary = tempfile::tempdir().unwrap();
    let library = temporary.path().join("design.so");
    build(&library, top, &root().join(folder)).unwrap();
    let loaded = load(&library);
    (temporary, loaded)
}

/// The card of the tree, compiled once.
pub fn card() -> &'static DutLibrary {
    static CARD: OnceLock<(tempfile::TempDir, DutLibrary)> = OnceLock::new();
    &CARD.get_or_init(|| loaded("card", "rtl/card")).1
}

/// A row of `rtl/mutants.toml`.
pub struct Mutant {
    pub name: String,
    pub file: String,
    pub from: String,
    pub to: String,
    pub rules: Vec<String>,
    /// Whether the partner cannot see the change; the file says why.
    pub is_equivalent: bool,
}

pub fn mutants() -> Vec<Mutant> {
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

/// Builds the card of the tree with the change of a mutant, and loads it; or says why it cannot.
pub fn changed(mutant: &Mutant) -> Result<(tempfile::TempDir, DutLibrary), String> {
    let folder = tempfile::tempdir().unwrap();
    let mut is_changed = false;
    for source in sources(&root().join("rtl/card")) {
        let mut text = fs::read_to_string(&source).unwrap();
        if source.ends_with(&mutant.file) {
            is_changed = text.matches(&mutant.from).count() == 1;
            text = text.replacen(&mutant.from, &mutant.to, 1);
        }
        fs::write(folder.path().join(source.file_name().unwrap()), text).unwrap();
    }
    if !is_changed {
        return Err(format!("its text is not once in {}", mutant.file));
    }
    let library = folder.path().join("mutant.so");
    build(&library, "card", folder.path()).map_err(|error| format!("it does not compile: {error}"))?;
    let loaded = load(&library);
    Ok((folder, loaded))
}

/// Tries every mutant, two at a time; fails with what `missed` says of those that a test does not detect.
pub fn all_detected(mutants: &[Mutant], missed: impl Fn(&Mutant) -> Option<String> + Sync) {
    let rest = Mutex::new(mutants.iter());
    let texts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(mutant) = rest.lock().unwrap().next() else { break };
                    if let Some(what) = missed(mutant) {
                        texts.lock().unwrap().push(format!("{}: {what}", mutant.name));
                    }
                }
            });
        }
    });
    let texts = texts.into_inner().unwrap();
    assert!(texts.is_empty(), "{} of {}:\n{}", texts.len(), mutants.len(), texts.join("\n"));
}
