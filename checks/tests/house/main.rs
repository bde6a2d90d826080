//! Are the invariants of ARCHITECTURE.md true of this tree?
//!
//! `rules.rs` has the rules that look at one file, each with a text that breaks it, so that a dead rule
//! is noticed; the tests below also look at the tree as a whole. A breach names file, line and rule.

mod rules;
mod source;

use rules::{FLOORS, RULES};
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
fn an_unknown_room_or_one_on_the_same_floor_is_refused() {
    let arrows = RULES[0].breaches;
    let breach = |room: &str, used: &str| {
        let text =
            format!("[package]\nname = \"lanemark-{room}\"\n\n[dependencies]\nlanemark-{used}.workspace = true\n");
        arrows(&SourceFile::new(&format!("crates/{room}/Cargo.toml"), &text))
    };
    assert_eq!(
        breach("cellar", "units"),
        [(1, "nobody has given cellar a floor: FLOORS in checks/tests/house/rules.rs".to_owned())]
    );
    assert_eq!(breach("sim", "cellar"), [(5, "cellar has no floor".to_owned())]);
    assert_eq!(breach("sim", "model"), [(5, "sim (floor 3) uses model (floor 3)".to_owned())]);
    assert_eq!(breach("sim", "report"), [(5, "sim (floor 3) uses report (floor 5)".to_owned())]);
    assert_eq!(breach("sim", "platform"), []);
    let renamed = "[target.'cfg(unix)'.dependencies]\nother = { package = \"lanemark-hw\", path = \"../hw\" }\n";
    assert_eq!(arrows(&SourceFile::new("crates/bench/Cargo.toml", renamed)).len(), 1);
}

fn rooms() -> BTreeSet<String> {
    let folders = std::fs::read_dir(source::root().join("crates")).unwrap();
    folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(source::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every `crates/<room>` a text names.
fn named_rooms(text: &str) -> BTreeSet<String> {
    text.split("crates/")
        .skip(1)
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("").to_owned())
        .filter(|room| !room.is_empty())
        .collect()
}

#[test]
fn readme_and_architecture_list_exactly_the_rooms_there_are() {
    for page in ["README.md", "ARCHITECTURE.md"] {
        assert_eq!(named_rooms(&read(page)), rooms(), "left: crates/<room> in {page}; right: the folders in crates/");
    }
    assert_eq!(named_rooms("see crates/sim/src/lib.rs and crates/*"), BTreeSet::from(["sim".to_owned()]));
}

/// The lines `floor N  room room ...` of a drawing.
fn drawn_floors(text: &str) -> Vec<(u32, Vec<String>)> {
    text.lines()
        .filter_map(|line| {
            let (number, rest) = line.trim().strip_prefix("floor ")?.split_once(' ')?;
            let names = rest.split("  ").map(str::trim).filter(|name| !name.is_empty());
            let is_room = |name: &&str| !name.contains(' ');
            Some((number.parse().ok()?, names.take_while(is_room).map(str::to_owned).collect()))
        })
        .collect()
}

#[test]
fn the_drawing_in_architecture_has_every_room_on_its_floor() {
    let sorted = |mut rooms: Vec<String>| {
        rooms.sort();
        rooms
    };
    let drawn: Vec<(u32, Vec<String>)> =
        drawn_floors(&read("ARCHITECTURE.md")).into_iter().map(|(floor, rooms)| (floor, sorted(rooms))).collect();
    let here = rooms();
    let there = FLOORS.iter().map(|(floor, rooms)| {
        (*floor, sorted(rooms.iter().filter(|room| here.contains(**room)).map(|room| (*room).to_owned()).collect()))
    });
    assert_eq!(drawn, there.collect::<Vec<_>>(), "left: the drawing in ARCHITECTURE.md; right: FLOORS and crates/");
    assert_eq!(drawn_floors("floor 1   a   b      what it is"), [(1, vec!["a".to_owned(), "b".to_owned()])]);
}
