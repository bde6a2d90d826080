//! The rules: each looks at one file, and each has a text that breaks it and one that keeps it.

use crate::source::SourceFile;

/// The layer of every crate, including planned ones. A crate uses crates of lower layers only.
pub const LAYERS: &[(u32, &[&str])] = &[
    (8, &["py"]),
    (7, &["cli", "capi"]),
    (6, &["advise", "fit", "experiment", "report", "sweep"]),
    (5, &["runner", "rules", "live", "import"]),
    (4, &["model", "sim", "hw", "bench"]),
    (3, &["config_space", "device_kernels", "coherent", "adversary"]),
    (2, &["platform", "machine", "dma", "record", "inventory", "devices", "copy_plan", "hard_blocks"]),
    (1, &["wire", "compute", "method", "engine", "dut"]),
    (0, &["units"]),
];

/// Crates without clocks, files and threads: they are compiled to WebAssembly.
const PURE: &[&str] = &["units", "wire", "compute", "engine", "platform", "devices", "dut", "model", "live"];

/// Crates whose results depend on their input only, to the byte.
const DETERMINISTIC: &[&str] = &["engine", "config_space", "device_kernels", "coherent", "sim"];

/// Crates with unsafe code of their own: the one that touches hardware, the one whose callers are C programs, and the one
/// that exports names to the script of a page.
const WITH_UNSAFE: &[&str] = &["hw", "capi", "live"];

/// Crates with code for one kind of processor: `make lint` looks at them for another one too.
const WITH_PROCESSORS: &[&str] = &["hw", "model", "live"];

/// Crates that may print.
const PRINTING: &[&str] = &["cli"];

/// One rule of the house.
pub struct Rule {
    /// What holds.
    pub name: &'static str,
    /// Where a file breaks it: line and what is wrong.
    pub breaches: fn(&SourceFile) -> Vec<(usize, String)>,
    /// A file that breaks it, by path and text.
    pub broken_by: (&'static str, &'static str),
    /// A file that does not, however similar.
    pub kept_by: (&'static str, &'static str),
}

/// Every rule.
pub const RULES: &[Rule] = &[
    Rule {
        name: "a crate uses crates of lower layers only",
        breaches: arrows,
        broken_by: ("crates/model/Cargo.toml", "[dev-dependencies]\nlanemark-sim.workspace = true\n"),
        kept_by: ("crates/model/Cargo.toml", "[dependencies]\nlanemark-wire.workspace = true\nserde = \"1\"\n"),
    },
    Rule {
        name: "only hw, capi and live have unsafe code of their own",
        breaches: forbids_unsafe,
        broken_by: ("crates/record/src/lib.rs", "//! #![forbid(unsafe_code)]\nmod answer;\n"),
        kept_by: ("crates/record/src/lib.rs", "//! Records.\n\n#![forbid(unsafe_code)]\n"),
    },
    Rule {
        name: "units, wire, compute, engine, platform, model and live have no clock, file or thread",
        breaches: purity,
        broken_by: ("crates/wire/src/tlp.rs", "use std::{fmt, time::Duration};\n"),
        kept_by: ("crates/wire/src/tlp.rs", "// no std::time here\nuse std::fmt;\n"),
    },
    Rule {
        name: "simulation crates have no hash maps, statics, clocks or threads",
        breaches: determinism,
        broken_by: ("crates/sim/src/board.rs", "use std::collections::HashMap;\n"),
        kept_by: ("crates/sim/src/board.rs", "use std::collections::BTreeMap;\nfn name() -> &'static str { NAME }\n"),
    },
    Rule {
        name: "only hw, model and live have code for one kind of processor",
        breaches: processors,
        broken_by: ("crates/sim/src/board.rs", "#[cfg(target_arch = \"aarch64\")]\nfn f() {}\n"),
        kept_by: ("crates/hw/src/lib.rs", "#[cfg(target_arch = \"aarch64\")]\nfn f() {}\n"),
    },
    Rule {
        name: "only cli prints",
        breaches: printing,
        broken_by: ("crates/bench/src/case.rs", "fn f() {\n    eprintln!(\"x\");\n}\n"),
        kept_by: ("crates/cli/src/main.rs", "fn f() {\n    println!(\"x\");\n}\n"),
    },
    Rule {
        name: "nothing gives up outside tests",
        breaches: giving_up,
        broken_by: ("crates/fit/src/lib.rs", "fn f() {\n    g()\n        .unwrap();\n}\n"),
        kept_by: (
            "crates/fit/src/lib.rs",
            "fn f() { g().unwrap_or(1); }\n#[cfg(test)]\nmod tests { fn t() { g().unwrap() } }\n",
        ),
    },
    Rule {
        name: "no path of somebody's machine",
        breaches: absolute_paths,
        broken_by: ("docs/guide/platform.md", concat!("see `/", "home/me/card.toml`\n")),
        kept_by: ("docs/guide/platform.md", "see docs/home/card.toml and https://example.org/home/\n"),
    },
];

fn layer(name: &str) -> Option<u32> {
    LAYERS.iter().find(|(_, crates)| crates.contains(&name)).map(|(layer, _)| *layer)
}

fn arrows(file: &SourceFile) -> Vec<(usize, String)> {
    let Some(name) = file.path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml")) else {
        return Vec::new();
    };
    let Some(own) = layer(name) else {
        return vec![(1, format!("{name} has no layer: add it to LAYERS in checks/tests/house/rules.rs"))];
    };
    let manifest: toml::Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![(1, error.to_string())],
    };
    let used = used_crates(&manifest);
    let line = |used: &str| file.text.lines().position(|line| line.contains(used)).map_or(1, |line| line + 1);
    used.iter()
        .filter_map(|used| {
            let breach = match layer(used) {
                None => format!("{used} has no layer"),
                Some(other) if other >= own => format!("{name} (layer {own}) uses {used} (layer {other})"),
                Some(_) => return None,
            };
            Some((line(used), breach))
        })
        .collect()
}

/// The crates of this workspace in every table of dependencies: of the crate, of its tests and build, of one target.
///
/// Their folders: a package's name has hyphens where its folder has underscores.
fn used_crates(manifest: &toml::Table) -> Vec<String> {
    let mut crates = Vec::new();
    for (key, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        if matches!(key.as_str(), "dependencies" | "dev-dependencies" | "build-dependencies") {
            for (name, dependency) in table {
                let name = dependency.get("package").and_then(toml::Value::as_str).unwrap_or(name);
                crates.extend(name.strip_prefix("lanemark-").map(|name| name.replace('-', "_")));
            }
        } else if key != "package" {
            crates.extend(used_crates(table));
        }
    }
    crates
}

fn forbids_unsafe(file: &SourceFile) -> Vec<(usize, String)> {
    let is_root = file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs");
    if file.crate_name().is_none_or(|name| WITH_UNSAFE.contains(&name)) || !is_root {
        return Vec::new();
    }
    if file.code().iter().any(|line| line.trim() == "#![forbid(unsafe_code)]") {
        return Vec::new();
    }
    vec![(1, "#![forbid(unsafe_code)] is missing".to_owned())]
}

fn purity(file: &SourceFile) -> Vec<(usize, String)> {
    if !file.crate_name().is_some_and(|name| PURE.contains(&name)) {
        return Vec::new();
    }
    let mut found = standard_library(file, &["time", "fs", "thread", "net", "env", "process"]);
    found.extend(words(file, &["SystemTime", "Instant"]));
    found
}

fn determinism(file: &SourceFile) -> Vec<(usize, String)> {
    if !file.crate_name().is_some_and(|name| DETERMINISTIC.contains(&name)) {
        return Vec::new();
    }
    let mut found = words(file, &["HashMap", "HashSet", "RandomState", "SystemTime", "Instant", "thread_local"]);
    found.extend(standard_library(file, &["time", "thread", "env"]));
    for (number, line) in numbered(file) {
        let line = line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        if line.starts_with("static ") {
            found.push((number, "a static".to_owned()));
        }
    }
    found
}

fn processors(file: &SourceFile) -> Vec<(usize, String)> {
    if file.crate_name().is_none_or(|name| WITH_PROCESSORS.contains(&name)) {
        return Vec::new();
    }
    contains(file, &["target_arch", "std::arch", "core::arch"])
}

fn printing(file: &SourceFile) -> Vec<(usize, String)> {
    if file.crate_name().is_none_or(|name| PRINTING.contains(&name)) {
        return Vec::new();
    }
    contains(file, &["println!", "eprintln!", "print!", "eprint!", "dbg!"])
}

fn giving_up(file: &SourceFile) -> Vec<(usize, String)> {
    if file.crate_name().is_none() {
        return Vec::new();
    }
    contains(file, &[".unwrap()", ".expect(", "todo!", "unimplemented!"])
}

fn absolute_paths(file: &SourceFile) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in file.text.lines().enumerate() {
        for folder in ["home", "work", "root"] {
            let path = format!("/{folder}/");
            let of_a_machine = |(at, _): (usize, &str)| {
                !text[..at].ends_with(|before: char| before.is_alphanumeric() || "/.*_-}>".contains(before))
            };
            if text.match_indices(&path).any(of_a_machine) {
                found.push((line + 1, format!("a path below {path}")));
            }
        }
    }
    found
}

fn numbered(file: &SourceFile) -> impl Iterator<Item = (usize, String)> {
    file.code().into_iter().enumerate().map(|(line, text)| (line + 1, text))
}

/// Lines with one of these, not as the end of a longer word.
fn contains(file: &SourceFile, what: &[&str]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in numbered(file) {
        for what in what {
            let is_word = |(at, _): (usize, &str)| {
                what.starts_with('.') || !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
            };
            if line.match_indices(what).any(is_word) {
                found.push((number, (*what).to_owned()));
            }
        }
    }
    found
}

/// Lines with one of these as a whole word.
fn words(file: &SourceFile, wanted: &[&str]) -> Vec<(usize, String)> {
    numbered(file)
        .flat_map(|(number, line)| {
            line.split(|c: char| !c.is_alphanumeric() && c != '_')
                .filter(|word| wanted.contains(word))
                .map(|word| (number, word.to_owned()))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Lines that name one of these modules of the standard library, alone or in a group.
fn standard_library(file: &SourceFile, modules: &[&str]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in numbered(file) {
        let group = line.split_once("std::{").map_or("", |(_, group)| group);
        for module in modules {
            let alone = line.split("std::").skip(1).any(|rest| first_word(rest) == *module);
            let grouped = group.split(',').any(|item| first_word(item.trim()) == *module);
            if alone || grouped {
                found.push((number, format!("std::{module}")));
            }
        }
    }
    found
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
}
