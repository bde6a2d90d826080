//! Imports between the files of a simulation crate, or of the crates for papers, form no cycle.
//!
//! A module and its submodules count as one noun: imports between them are left out.

use crate::source::{self, SourceFile};
use std::collections::{BTreeMap, BTreeSet};

/// Crates without cycles between their files.
const WITHOUT_CYCLES: &[&str] = &["engine", "config_space", "device_kernels", "coherent", "sim", "rules", "experiment"];

/// A module by its path below the crate; the root is empty.
type Module = Vec<String>;

/// The module of a file `crates/<crate>/src/a/b.rs`: `a`, `b`.
fn module(file: &SourceFile) -> Module {
    let (_, path) = file.path.split_once("/src/").unwrap();
    let mut module: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| matches!(last.as_str(), "lib" | "main" | "mod")) {
        module.pop();
    }
    module
}

/// Every path below `crate::` in `code`, with groups in braces written out.
fn crate_paths(code: &str) -> Vec<Module> {
    let code: String = code.chars().map(|c| if c == '\n' { ' ' } else { c }).collect();
    let mut paths = Vec::new();
    for (at, start) in code.match_indices("crate::") {
        let is_word = code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        if !is_word {
            expand(&code[at + start.len()..], &mut Vec::new(), &mut paths);
        }
    }
    paths
}

/// Adds the paths that begin at `rest`, below `above`; returns what follows them.
fn expand<'a>(rest: &'a str, above: &mut Module, paths: &mut Vec<Module>) -> &'a str {
    let mut rest = rest.trim_start();
    let depth = above.len();
    loop {
        if let Some(mut group) = rest.strip_prefix('{') {
            loop {
                group = expand(group, above, paths).trim_start();
                match group.strip_prefix(',') {
                    Some(next) => group = next,
                    None => break,
                }
            }
            above.truncate(depth);
            return group.strip_prefix('}').unwrap_or(group);
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        above.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
        match rest.strip_prefix("::") {
            Some(next) => rest = next.trim_start(),
            None => break,
        }
    }
    paths.push(above.clone());
    above.truncate(depth);
    rest
}

/// Which modules of a crate import which others.
fn imports(files: &[SourceFile]) -> BTreeMap<Module, BTreeSet<Module>> {
    let modules: BTreeSet<Module> = files.iter().map(module).collect();
    let holds = |path: &Module| (1..=path.len()).rev().map(|len| path[..len].to_vec()).find(|at| modules.contains(at));
    let of_file = |file: &SourceFile| {
        let from = module(file);
        let is_other = |to: &Module| !from.starts_with(to) && !to.starts_with(&from);
        let to = crate_paths(&file.code().join("\n")).iter().filter_map(holds).filter(is_other).collect();
        (from, to)
    };
    files.iter().map(of_file).collect()
}

/// One cycle, if there is any: its modules in the order of their imports.
fn cycle(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Option<Vec<String>> {
    fn visit(
        at: &Module,
        imports: &BTreeMap<Module, BTreeSet<Module>>,
        open: &mut Vec<Module>,
        done: &mut BTreeSet<Module>,
    ) -> Option<Vec<String>> {
        if let Some(first) = open.iter().position(|other| other == at) {
            return Some(open[first..].iter().map(|module| module.join("/")).collect());
        }
        if done.contains(at) {
            return None;
        }
        open.push(at.clone());
        let found = imports[at].iter().find_map(|next| visit(next, imports, open, done));
        open.pop();
        done.insert(at.clone());
        found
    }
    let (mut open, mut done) = (Vec::new(), BTreeSet::new());
    imports.keys().find_map(|module| visit(module, imports, &mut open, &mut done))
}

#[test]
fn imports_between_files_of_a_simulation_crate_form_no_cycle() {
    let tree = source::tree();
    for name in WITHOUT_CYCLES {
        let of_crate = |file: &&SourceFile| file.crate_name() == Some(name);
        let files: Vec<SourceFile> = tree.iter().filter(of_crate).cloned().collect();
        assert!(files.len() > 1, "{name} has {} files", files.len());
        assert_eq!(cycle(&imports(&files)), None, "these files of {name} import each other in a circle");
    }
}

#[test]
fn a_cycle_is_found_in_groups_and_in_paths_and_a_submodule_is_none() {
    let file = |path: &str, text: &str| SourceFile::new(&format!("crates/sim/src/{path}"), text);
    let part = file("part.rs", "mod own;\nuse crate::other::{Deep, in_it::{self, More}};\n");
    let own = file("part/own.rs", "use crate::part::Part;\n");
    let in_it = |text: &str| file("other/in_it.rs", text);
    let other = file("other.rs", "// use crate::part::Part;\nmod in_it;\n");
    let found = |text: &str| cycle(&imports(&[part.clone(), own.clone(), other.clone(), in_it(text)]));
    assert_eq!(found("use std::fmt;\n"), None);
    assert_eq!(found("#[cfg(test)]\nmod tests { use crate::part::Part; }\n"), None);
    let both = Some(vec!["other/in_it".to_owned(), "part".to_owned()]);
    assert_eq!(found("fn f(part: &crate::part::Part) {}\n"), both);
}
