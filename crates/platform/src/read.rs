//! Reader and checks of platform files. Reports every problem with file, line, key and rule.

use crate::check::{Parts, check_parts, check_whole};
use crate::document::{Document, FileKind, Members};
use crate::layers::Layers;
use crate::lesser::Lesser;
use crate::notes::Notes;
use crate::platform::{Platform, SCHEMA, Sections};
use crate::problem::{PlatformError, Problem};
use crate::replaced;
use crate::section::{Entry, Section};
use crate::sections::{SectionPart, SectionRow};
use crate::spec::Link;
use crate::text::{cut, shown, shown_name, whole};
use crate::unknown::Unknown;
use toml::Spanned;
use toml::de::DeTable;

/// A platform as read, with its unknown numbers, and where host and card differ.
pub(crate) struct Found {
    pub(crate) platform: Platform,
    pub(crate) unknowns: Vec<Unknown>,
    pub(crate) lesser: Vec<Lesser>,
}

/// Reads a platform file with the files that it names.
pub(crate) fn parse(members: &Members, problems: Vec<Problem>) -> Result<Found, PlatformError> {
    let (mut notes, offsets) = Notes::of(members);
    notes.problems = problems;
    if !notes.problems.is_empty() {
        // What is missing may be in a file that was not read.
        return Err(PlatformError { problems: notes.problems() });
    }
    let mut is_toml = true;
    let mut tables = Vec::new();
    for (member, offset) in members.iter().zip(&offsets) {
        let (table, errors) = DeTable::parse_recoverable(&member.document.text);
        is_toml &= errors.is_empty();
        note_syntax(&member.document, *offset, &errors, &mut notes);
        tables.push(table);
    }
    let tables = tables.iter().map(Spanned::get_ref).collect();
    let platform = if is_toml { read(members, &Layers::new(members, tables, offsets), &mut notes) } else { None };
    let (unknowns, lesser) = (std::mem::take(&mut notes.unknowns), std::mem::take(&mut notes.lesser));
    match platform {
        Some(platform) if notes.problems.is_empty() => Ok(Found { platform, unknowns, lesser }),
        _ => Err(PlatformError { problems: notes.problems() }),
    }
}

/// Notes the errors of a text that is not TOML.
fn note_syntax(document: &Document, offset: usize, errors: &[toml::de::Error], notes: &mut Notes<'_>) {
    let mut lines = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or_default();
        let line = notes.line(offset + span.start);
        // Further errors in the same line are usually consequences of the first.
        if !lines.contains(&line) {
            let start = offset + span.start;
            let mut message = error.message().lines().collect::<Vec<_>>().join("; ");
            if let ("duplicate key", Some(key)) = (error.message(), document.text.get(span)) {
                message = format!("duplicate key: {} may occur here only once", shown_name(key));
            }
            notes.at_byte(start, String::new(), format!("not TOML: {message}"));
            lines.push(line);
        }
    }
}

/// Decodes the bytes of a file.
pub(crate) fn text<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, PlatformError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let good = error.valid_up_to();
        let message = format!("byte {good} is not UTF-8; a platform file is TOML, which is UTF-8 text");
        let mut notes = Notes::new(file, bytes);
        notes.at_byte(good, String::new(), message);
        PlatformError { problems: notes.problems() }
    })
}

fn read(members: &Members, layers: &Layers<'_>, notes: &mut Notes<'_>) -> Option<Platform> {
    let mut texts = Vec::new();
    for at in 0..members.len() {
        texts.push(head(members, layers, at, notes)?);
    }
    let summary = summary(members, &texts, 0);
    let sections = Sections::read(layers, notes);
    replaced::check(layers, notes);
    check_parts(&Parts::of(&sections), notes);
    let name = texts.swap_remove(0).name;
    let platform = sections.complete(name?, summary?)?;
    check_whole(&platform, notes);
    Some(platform)
}

/// The text before the sections of a file, as far as it could be read.
struct Head {
    name: Option<String>,
    summary: Option<String>,
}

/// Reads what a file has before its sections, and refuses unknown sections. `None` if the file is for a newer program.
fn head(members: &Members, layers: &Layers<'_>, at: usize, notes: &mut Notes<'_>) -> Option<Head> {
    let (member, table) = (members.get(at)?, layers.table(at)?);
    let kind = member.kind;
    let mut top = Section { path: String::new(), tables: vec![table], notes };
    if is_newer(&mut top) {
        // Its other keys may be valid in the newer format.
        return None;
    }
    let references = kind.references().iter().map(|reference| reference.key());
    let is_of_kind = |row: &&SectionRow| match kind {
        FileKind::Platform => true,
        FileKind::Host => row.part == SectionPart::Host || row.path == Link::PATH,
        FileKind::Card => row.part == SectionPart::Card,
    };
    let sections = Platform::SECTIONS.iter().filter(is_of_kind).map(|row| row.path);
    let texts = Platform::TEXTS.iter().copied();
    let known: Vec<&str> = ["schema"].into_iter().chain(texts).chain(references).chain(sections).collect();
    top.refuse_unknown(&known, &[]);
    let name = top.text("name");
    refuse_name_of_machine(&mut top, name.as_deref());
    let summary = if member.names.is_empty() || top.entry("summary").is_some() { top.text("summary") } else { None };
    Some(Head { name, summary })
}

/// The summary of a file: its own, or that of the files that it names.
fn summary(members: &Members, texts: &[Head], at: usize) -> Option<String> {
    let member = members.get(at)?;
    if let Some(own) = texts.get(at).and_then(|head| head.summary.clone()) {
        return Some(own);
    }
    let of_named: Vec<String> = member.names.iter().filter_map(|(_, place)| summary(members, texts, *place)).collect();
    (!of_named.is_empty()).then(|| of_named.join("; "))
}

/// Notes a problem if the platform has the name of a real target: `host`, `opencl:0`, `sycl:0`.
fn refuse_name_of_machine(top: &mut Section<'_, '_>, name: Option<&str>) {
    let is_device = |name: &str| name.starts_with("opencl:") || name.starts_with("sycl:");
    if let Some(name) = name.filter(|name| *name == "host" || is_device(name)) {
        let byte = top.entry("name").map_or(0, |entry| entry.start);
        let message = format!("is {:?}, the name of a real target; give the platform another name", cut(name));
        top.problem(byte, "name", message);
    }
}

/// Notes a problem with the key `schema`. Returns whether the file is for a newer program.
fn is_newer(top: &mut Section<'_, '_>) -> bool {
    let Some(Entry { start: byte, value, .. }) = top.entry("schema") else {
        top.problem(top.start(), "schema", format!("is missing: schema = {SCHEMA}"));
        return false;
    };
    let found = whole(value.get_ref());
    if found == Some(i128::from(SCHEMA)) {
        return false;
    }
    let newer = found.is_some_and(|found| found > i128::from(SCHEMA));
    let is_older = found.is_some_and(|found| (1..i128::from(SCHEMA)).contains(&found));
    let right = if newer {
        format!("this program reads up to {SCHEMA}: use a newer lanemark")
    } else if is_older {
        format!(
            "must be {SCHEMA}: the names of keys have changed since; run `lanemark schema platform`, rename the keys it does \
             not list, and write schema = {SCHEMA}"
        )
    } else {
        format!("must be the whole number {SCHEMA}")
    };
    top.problem(byte, "schema", format!("is {}; {right}", shown(value.get_ref())));
    newer
}
