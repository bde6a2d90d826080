//! Imports between the files of a crate form no cycle.
//!
//! A file imports another one if a path in it, after `use` or elsewhere, leads to an item of that file.
//! Paths begin with `crate`, `super`, `self` or the name of a submodule. A name that a file re-exports
//! leads to the file that defines it. A `mod` item and a re-export are no imports.

use crate::source::{self, SourceFile};
use std::collections::{BTreeMap, BTreeSet};

/// A module by its path below the crate; the root is empty.
type Module = Vec<String>;

/// The folder of the crate that a file belongs to, and its module there. A folder of `src/bin` is a crate.
fn module(path: &str) -> Option<(String, Module)> {
    let (above, below) = path.strip_suffix(".rs")?.split_once("/src/")?;
    if !above.starts_with("crates/") && above != "checks" {
        return None;
    }
    let (folder, below) = match below.strip_prefix("bin/") {
        Some(program) => {
            let (name, below) = program.split_once('/')?;
            (format!("{above}/src/bin/{name}"), below)
        }
        None => (format!("{above}/src"), below),
    };
    let mut module: Module = below.split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| matches!(last.as_str(), "lib" | "main" | "mod")) {
        module.pop();
    }
    Some((folder, module))
}

/// A path after `use`, and the name of its item in the file.
struct Import {
    path: Module,
    name: String,
    is_public: bool,
}

/// The code of one module.
struct Code {
    imports: Vec<Import>,
    /// Paths outside imports.
    paths: Vec<Module>,
    /// Names that items of the module define.
    defined: BTreeSet<String>,
    /// Words outside imports that are no part of a path or a field.
    words: BTreeSet<String>,
}

const ITEMS: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod"];

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of `code`, each with its position.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.split(|c| !is_word(c))
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr() as usize - code.as_ptr() as usize, word))
}

impl Code {
    fn of(file: &SourceFile) -> Code {
        let code = file.code().join("\n");
        let (mut imports, mut body, mut from) = (Vec::new(), String::new(), 0);
        for (at, _) in words(&code).filter(|(_, word)| *word == "use") {
            let rest = &code[at + "use".len()..];
            // `use<'a>` of a type is none.
            if at < from || !rest.starts_with(char::is_whitespace) {
                continue;
            }
            let before = code[from..at].trim_end();
            let visible = before.strip_suffix(')').and_then(|before| before.rsplit_once('(')).map_or(before, |it| it.0);
            let mut paths = Vec::new();
            expand(rest, &mut Vec::new(), &mut paths);
            let is_public = visible.ends_with("pub");
            imports.extend(paths.into_iter().map(|(path, name)| Import { path, name, is_public }));
            body.push_str(&code[from..at]);
            from = at + "use".len() + rest.find(';').unwrap_or(rest.len());
        }
        body.push_str(&code[from..]);
        let (mut paths, mut defined, mut bare) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut last = "";
        for (at, word) in words(&body) {
            if ITEMS.contains(&last) {
                defined.insert(word.to_owned());
            }
            last = word;
            if body[..at].ends_with([':', '.']) {
                continue;
            }
            bare.insert(word.to_owned());
            if body[at + word.len()..].trim_start().starts_with("::") {
                let mut all = Vec::new();
                expand(&body[at..], &mut Vec::new(), &mut all);
                paths.extend(all.into_iter().map(|(path, _)| path));
            }
        }
        Code { imports, paths, defined, words: bare }
    }
}

/// Adds the paths that begin at `rest`, below `above`, with their names; returns what follows them.
fn expand<'a>(rest: &'a str, above: &mut Module, paths: &mut Vec<(Module, String)>) -> &'a str {
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
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        // `*`, or the end of a group.
        if end == 0 && rest.starts_with('*') {
            rest = &rest[1..];
            break;
        }
        if end == 0 {
            above.truncate(depth);
            return rest;
        }
        if &rest[..end] != "self" || above.is_empty() {
            above.push(rest[..end].to_owned());
        }
        rest = rest[end..].trim_start();
        match rest.strip_prefix("::") {
            Some(next) => rest = next.trim_start(),
            None => break,
        }
    }
    let mut name = above.last().cloned().unwrap_or_default();
    if let Some(alias) = rest.strip_prefix("as ") {
        let end = alias.find(|c: char| !is_word(c)).unwrap_or(alias.len());
        alias[..end].clone_into(&mut name);
        rest = &alias[end..];
    }
    paths.push((above.clone(), name));
    above.truncate(depth);
    rest
}

/// The modules of one crate.
struct Krate {
    modules: BTreeMap<Module, Code>,
}

impl Krate {
    /// The path from the root of the crate of a path in `from`; `None` if it leads to another crate.
    fn absolute(&self, from: &Module, path: &[String]) -> Option<Module> {
        let mut above = from.clone();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([from, &path[1..]].concat()),
            "super" => {
                let supers = path.iter().take_while(|part| *part == "super").count();
                above.truncate(from.len().checked_sub(supers)?);
                Some([&above, &path[supers..]].concat())
            }
            child => {
                above.push(child.to_owned());
                self.modules.contains_key(&above).then(|| [from, path].concat())
            }
        }
    }

    /// The module that defines the item at a path from the root; `None` if another crate does.
    fn defines(&self, path: &[String], depth: u32) -> Option<Module> {
        let len = (0..=path.len()).rev().find(|len| self.modules.contains_key(&path[..*len]))?;
        let (at, rest) = path.split_at(len);
        let code = &self.modules[at];
        let import = rest.first().and_then(|name| {
            let is_it = |import: &&Import| import.name == *name && !code.defined.contains(name);
            code.imports.iter().find(is_it)
        });
        let Some(import) = import.filter(|_| depth < 8) else { return Some(at.to_vec()) };
        let to = self.absolute(&at.to_vec(), &import.path)?;
        self.defines(&[&to, &rest[1..]].concat(), depth + 1)
    }

    /// Which modules import which others.
    fn imports(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let of_module = |(from, code): (&Module, &Code)| {
            let used = |import: &&Import| !import.is_public || code.words.contains(&import.name);
            let paths = code.imports.iter().filter(used).map(|import| &import.path).chain(&code.paths);
            let to = paths.filter_map(|path| self.defines(&self.absolute(from, path)?, 0)).filter(|to| to != from);
            (from.clone(), to.collect())
        };
        self.modules.iter().map(of_module).collect()
    }
}

/// The crates of a tree by their folders.
fn krates(files: &[SourceFile]) -> BTreeMap<String, Krate> {
    let mut all: BTreeMap<String, Krate> = BTreeMap::new();
    for file in files {
        if let Some((folder, module)) = module(&file.path) {
            let krate = all.entry(folder).or_insert(Krate { modules: BTreeMap::new() });
            krate.modules.insert(module, Code::of(file));
        }
    }
    all
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
fn imports_between_the_files_of_a_crate_form_no_cycle() {
    let krates = krates(&source::tree());
    assert!(krates.len() > 25, "{} crates", krates.len());
    for (folder, krate) in &krates {
        let imports = krate.imports();
        assert_eq!(cycle(&imports), None, "these files of {folder} import each other in a circle");
    }
}

/// One cycle among these files of a crate.
fn found(files: &[(&str, &str)]) -> Option<Vec<String>> {
    let files: Vec<SourceFile> =
        files.iter().map(|(path, text)| SourceFile::new(&format!("crates/sim/src/{path}"), text)).collect();
    cycle(&krates(&files)["crates/sim/src"].imports())
}

#[test]
fn a_cycle_is_found_in_groups_and_in_paths() {
    let part = ("part.rs", "mod own;\nuse crate::other::{Deep, in_it::{self, More}};\n");
    let own = ("part/own.rs", "use crate::part::Part;\n");
    let other = ("other.rs", "// use crate::part::Part;\nmod in_it;\n");
    let found = |text| found(&[part, own, other, ("other/in_it.rs", text)]);
    assert_eq!(found("use std::fmt;\n"), None);
    assert_eq!(found("#[cfg(test)]\nmod tests { use crate::part::Part; }\n"), None);
    let both = Some(vec!["other/in_it".to_owned(), "part".to_owned()]);
    assert_eq!(found("fn f(part: &crate::part::Part) {}\n"), both);
    assert_eq!(found("use super::super::part::Part;\n"), both);
}

#[test]
fn a_re_export_leads_to_the_file_that_defines_the_name() {
    let lib = ("lib.rs", "mod a;\nmod b;\npub use a::{A, One as Other};\npub use std::fmt::Debug;\n");
    let found = |a, b| found(&[lib, ("a.rs", a), ("b.rs", b)]);
    let circle = Some(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(found("use crate::b::B;\npub struct A;\n", "use crate::A;\npub struct B;\n"), circle);
    assert_eq!(found("use super::b::B;\npub struct One;\n", "use super::Other;\npub struct B;\n"), circle);
    assert_eq!(found("use crate::b::B;\npub struct A;\n", "use crate::Debug;\npub struct B;\n"), None);
}

#[test]
fn a_module_that_only_declares_and_re_exports_its_submodules_forms_no_cycle_with_them() {
    let own = ("part/own.rs", "use super::Part;\npub struct Own;\n");
    let found = |part| found(&[("part.rs", part), own]);
    assert_eq!(found("mod own;\npub use own::Own;\npub struct Part;\n"), None);
    let circle = Some(vec!["part".to_owned(), "part/own".to_owned()]);
    assert_eq!(found("mod own;\npub use own::Own;\npub struct Part(Own);\n"), circle);
    assert_eq!(found("mod own;\npub struct Part(own::Own);\n"), circle);
}
