//! A platform file and the files that it names with `extends`, `host` and `card`.

use crate::built_in::{CARDS, HOSTS, PRESETS, Preset};
use crate::problem::Problem;
use crate::text::{cut, said, shown};
use lanemark_units::did_you_mean;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::Path;
use toml::de::DeTable;

/// Largest number of files that one platform consists of.
const MOST_FILES: usize = 32;

/// The text of a file, and the name of the file in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Name of the file.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// Reads a file that another one names by a path. The arguments are the file that names it and the path as written there,
/// which is relative to the folder of that file. The error is a clause.
pub type Open<'a> = &'a dyn Fn(&str, &str) -> Result<Document, String>;

/// A key that names another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// A file of the same kind, whose values hold unless this file has its own.
    Extends,
    /// A file with the sections of a host.
    Host,
    /// A file with the sections of a card.
    Card,
}

impl Reference {
    pub(crate) const ALL: [Reference; 3] = [Reference::Extends, Reference::Host, Reference::Card];

    /// The key in a file.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Reference::Extends => "extends",
            Reference::Host => "host",
            Reference::Card => "card",
        }
    }
}

/// Contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A whole platform.
    Platform,
    /// The sections of a host.
    Host,
    /// The sections of a card.
    Card,
}

impl FileKind {
    /// The keys by which a file of this kind can name others.
    pub(crate) const fn references(self) -> &'static [Reference] {
        match self {
            FileKind::Platform => &Reference::ALL,
            FileKind::Host | FileKind::Card => &[Reference::Extends],
        }
    }

    /// Kind of a file that a file of this kind names.
    const fn named(self, reference: Reference) -> FileKind {
        match reference {
            Reference::Extends => self,
            Reference::Host => FileKind::Host,
            Reference::Card => FileKind::Card,
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            FileKind::Platform => "platform",
            FileKind::Host => "host",
            FileKind::Card => "card",
        }
    }

    const fn built_in(self) -> &'static [Preset] {
        match self {
            FileKind::Platform => PRESETS,
            FileKind::Host => HOSTS,
            FileKind::Card => CARDS,
        }
    }
}

/// One file of a platform.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) document: Document,
    pub(crate) kind: FileKind,
    /// Its name as written by the file that names it; empty for the first file.
    pub(crate) name: String,
    /// The files that it names: the key and the place in [`Members`].
    pub(crate) names: Vec<(Reference, usize)>,
    /// Line of the first file that leads to this one; 0 for the first file.
    pub(crate) line: usize,
}

/// All files of a platform; the first one is the platform file.
pub(crate) type Members = Vec<Member>;

/// Reads all files that `first` names, directly or not.
pub(crate) fn load(first: Document, open: Open<'_>) -> (Members, Vec<Problem>) {
    let member =
        |document, kind, name: &str, line| Member { document, kind, name: name.to_owned(), names: Vec::new(), line };
    let mut members = vec![member(first, FileKind::Platform, "", 0)];
    let mut problems = Vec::new();
    // Files to be read, each with the files that lead to it.
    let mut open_ends = VecDeque::from([(0, vec![0])]);
    while let Some((at, trail)) = open_ends.pop_front() {
        let (kind, file) = (members[at].kind, members[at].document.file.clone());
        for (reference, line, value) in written(&members[at]) {
            let mut refuse = |message: String| {
                problems.push(Problem { file: file.clone(), line, key: reference.key().to_owned(), message });
            };
            let named = kind.named(reference);
            let document = match value {
                Ok(name) => find(named, &file, &name, open).map(|document| (name, document)),
                Err(message) => Err(message),
            };
            let (name, document) = match document {
                Ok(found) => found,
                Err(message) => {
                    refuse(message);
                    continue;
                }
            };
            let is_same = |other: &usize| members[*other].document.file == document.file;
            if trail.iter().any(is_same) {
                refuse(format!(
                    "is {:?}, which leads back to this file; end the chain with a file that names none",
                    cut(&name)
                ));
                continue;
            }
            if members.len() >= MOST_FILES {
                refuse(format!(
                    "is {:?}; a platform consists of at most {MOST_FILES} files: do they name each other?",
                    cut(&name)
                ));
                return (members, problems);
            }
            let place = members.len();
            let line = if at == 0 { line } else { members[at].line };
            members.push(member(document, named, &name, line));
            members[at].names.push((reference, place));
            open_ends.push_back((place, [&trail[..], &[place]].concat()));
        }
    }
    (members, problems)
}

/// The names that a file has, each with its line. A file that is not TOML has none, which its reader reports.
fn written(member: &Member) -> Vec<(Reference, usize, Result<String, String>)> {
    let text = &member.document.text;
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Vec::new();
    }
    let entries = member.kind.references().iter().filter_map(|reference| {
        let (name, value) = table.get_ref().iter().find(|(name, _)| name.get_ref().as_ref() == reference.key())?;
        let line = text.as_bytes().iter().take(name.span().start).filter(|byte| **byte == b'\n').count() + 1;
        let value = match value.get_ref().as_str().filter(|text| said(text)) {
            Some(text) => Ok(text.to_owned()),
            None => {
                Err(format!("is {}; must be the name of a built-in file or a path, in quotes", shown(value.get_ref())))
            }
        };
        Some((*reference, line, value))
    });
    entries.collect()
}

/// Whether a name in `extends`, `host` or `card` is the path of a file, which has a `/` or ends in `.toml`; any other name is
/// that of a built-in file.
#[must_use]
pub fn is_path(name: &str) -> bool {
    let is_toml = |extension: &OsStr| extension.eq_ignore_ascii_case("toml");
    name.contains('/') || Path::new(name).extension().is_some_and(is_toml)
}

/// A built-in file by its name, or another one by its path, which has a `/` or ends in `.toml`.
fn find(kind: FileKind, from: &str, name: &str, open: Open<'_>) -> Result<Document, String> {
    if is_path(name) {
        return open(from, name).map_err(|why| format!("is {:?}, which cannot be read: {why}", cut(name)));
    }
    let built_in = kind.built_in();
    if let Some(preset) = built_in.iter().find(|preset| preset.name == name) {
        return Ok(Document { file: preset.file.to_owned(), text: preset.text.to_owned() });
    }
    let noun = kind.noun();
    let known = || built_in.iter().map(|preset| preset.name);
    let hint =
        did_you_mean(name, known()).unwrap_or_else(|| format!("known: {}", known().collect::<Vec<_>>().join(", ")));
    Err(format!(
        "is {:?}; there is no built-in {noun} of this name; {hint}; the path of a file ends in .toml",
        cut(name)
    ))
}

/// Refuses every path: without files there are built-in names only.
pub(crate) fn no_files(_: &str, _: &str) -> Result<Document, String> {
    Err("only built-in names can be used here".to_owned())
}
