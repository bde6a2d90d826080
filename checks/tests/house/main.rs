//! Are the invariants of ARCHITECTURE.md true of this tree?
//!
//! `rules.rs` has the rules that look at one file, each with a text that breaks it, so that a dead rule
//! is noticed; the tests below also look at the tree as a whole. A breach names file, line and rule.

mod cycles;
mod long_files;
mod pages;
mod rules;
mod source;

use rules::{LAYERS, RULES};
use source::SourceFile;
use std::collections::BTreeSet;

#[test]
fn the_tree_keeps_every_rule() {
    let tree = source::tree();
    assert!(tree.len() > 50, "only {} files were found: the walk is broken", tree.len());
    let mut breaches = Vec::new();
    for rule in RULES {
        for file in &tree {
            for (line, what) in (rule.breaches)(file) {
                breaches.push(format!("{}:{line}: {what} ({})", file.path, rule.name));
            }
        }
    }
    assert!(breaches.is_empty(), "{} breaches:\n{}", breaches.len(), breaches.join("\n"));
}

#[test]
fn every_rule_rejects_something_and_not_everything() {
    for rule in RULES {
        let breaches = |(path, text)| (rule.breaches)(&SourceFile::new(path, text));
        assert!(!breaches(rule.broken_by).is_empty(), "'{}' rejects nothing", rule.name);
        assert_eq!(breaches(rule.kept_by), [], "'{}' rejects what keeps it", rule.name);
    }
}

#[test]
fn an_unknown_crate_or_one_of_the_same_layer_is_refused() {
    let arrows = RULES[0].breaches;
    let breach = |name: &str, used: &str| {
        let text =
            format!("[package]\nname = \"lanemark-{name}\"\n\n[dependencies]\nlanemark-{used}.workspace = true\n");
        arrows(&SourceFile::new(&format!("crates/{name}/Cargo.toml"), &text))
    };
    assert_eq!(
        breach("other", "units"),
        [(1, "other has no layer: add it to LAYERS in checks/tests/house/rules.rs".to_owned())]
    );
    assert_eq!(breach("sim", "other"), [(5, "other has no layer".to_owned())]);
    assert_eq!(breach("sim", "model"), [(5, "sim (layer 4) uses model (layer 4)".to_owned())]);
    assert_eq!(breach("sim", "report"), [(5, "sim (layer 4) uses report (layer 6)".to_owned())]);
    assert_eq!(breach("engine", "wire"), [(5, "engine (layer 1) uses wire (layer 1)".to_owned())]);
    assert_eq!(breach("sim", "config-space"), []);
    assert_eq!(breach("sim", "platform"), []);
    let renamed = "[target.'cfg(unix)'.dependencies]\nother = { package = \"lanemark-hw\", path = \"../hw\" }\n";
    assert_eq!(arrows(&SourceFile::new("crates/bench/Cargo.toml", renamed)).len(), 1);
}

fn crates() -> BTreeSet<String> {
    let folders = std::fs::read_dir(source::root().join("crates")).unwrap();
    folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(source::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every `crates/<crate>` in a text.
fn named_crates(text: &str) -> BTreeSet<String> {
    text.split("crates/")
        .skip(1)
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("").to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn readme_and_architecture_list_exactly_the_crates_there_are() {
    for page in ["README.md", "ARCHITECTURE.md"] {
        assert_eq!(
            named_crates(&read(page)),
            crates(),
            "left: crates/<crate> in {page}; right: the folders in crates/"
        );
    }
    assert_eq!(named_crates("see crates/sim/src/lib.rs and crates/*"), BTreeSet::from(["sim".to_owned()]));
}

/// The lines `layer N  crate crate ...` of a drawing.
fn drawn_layers(text: &str) -> Vec<(u32, Vec<String>)> {
    text.lines()
        .filter_map(|line| {
            let (number, rest) = line.trim().strip_prefix("layer ")?.split_once(' ')?;
            let names = rest.split("  ").map(str::trim).filter(|name| !name.is_empty());
            let is_crate = |name: &&str| !name.contains(' ');
            Some((number.parse().ok()?, names.take_while(is_crate).map(str::to_owned).collect()))
        })
        .collect()
}

#[test]
fn the_drawing_in_architecture_has_every_crate_in_its_layer() {
    let sorted = |mut crates: Vec<String>| {
        crates.sort();
        crates
    };
    let drawn: Vec<(u32, Vec<String>)> =
        drawn_layers(&read("ARCHITECTURE.md")).into_iter().map(|(layer, crates)| (layer, sorted(crates))).collect();
    let here = crates();
    let there = LAYERS.iter().map(|(layer, crates)| {
        (*layer, sorted(crates.iter().filter(|name| here.contains(**name)).map(|name| (*name).to_owned()).collect()))
    });
    let there: Vec<(u32, Vec<String>)> = there.filter(|(_, crates)| !crates.is_empty()).collect();
    assert_eq!(drawn, there, "left: the drawing in ARCHITECTURE.md; right: LAYERS and crates/");
    assert_eq!(drawn_layers("layer 1   a   b      what it is"), [(1, vec!["a".to_owned(), "b".to_owned()])]);
}
