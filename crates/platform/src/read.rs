//! Reader and checks of platform files. Reports every problem with file, line, key and rule.

use crate::check::{Parts, check_parts, check_whole};
use crate::notes::Notes;
use crate::platform::{Platform, SCHEMA, Sections};
use crate::problem::PlatformError;
use crate::section::Section;
use crate::text::{cut, shown, shown_name, whole};
use crate::unknown::Unknown;
use toml::de::DeTable;

/// Reads `text`. Returns the platform with its unknown numbers.
pub(crate) fn parse(file: &str, text: &str) -> Result<(Platform, Vec<Unknown>), PlatformError> {
    let mut notes = Notes::new(file, text.as_bytes());
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or_default();
        let line = notes.line(span.start);
        // Further errors in the same line are usually consequences of the first.
        if notes.problems.iter().all(|problem| problem.line != line) {
            let mut message = error.message().lines().collect::<Vec<_>>().join("; ");
            if let ("duplicate key", Some(key)) = (error.message(), text.get(span)) {
                message = format!("duplicate key: {} may occur here only once", shown_name(key));
            }
            notes.at_line(line, String::new(), format!("not TOML: {message}"));
        }
    }
    let platform = if errors.is_empty() { read(table.get_ref(), &mut notes) } else { None };
    let unknowns = std::mem::take(&mut notes.unknowns);
    match platform {
        Some(platform) if notes.problems.is_empty() => Ok((platform, unknowns)),
        _ => Err(PlatformError { problems: notes.problems() }),
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

fn read(table: &DeTable<'_>, notes: &mut Notes<'_>) -> Option<Platform> {
    let mut top = Section { path: String::new(), table, start: 0, notes };
    if is_newer(&mut top) {
        // Its other keys may be valid in the newer format.
        return None;
    }
    let texts = Platform::TEXTS.iter().copied();
    let known: Vec<&str> =
        ["schema"].into_iter().chain(texts).chain(Platform::SECTIONS.iter().map(|row| row.path)).collect();
    top.refuse_unknown(&known);
    let name = top.text("name");
    refuse_name_of_machine(&mut top, name.as_deref());
    let summary = top.text("summary");
    let sections = Sections::read(table, notes);
    check_parts(&Parts::of(&sections), notes);
    let platform = sections.complete(name?, summary?)?;
    check_whole(&platform, notes);
    Some(platform)
}

/// Notes a problem if the platform has the name of a real target: `host`, `opencl:0`, `sycl:0`.
fn refuse_name_of_machine(top: &mut Section<'_, '_>, name: Option<&str>) {
    let is_device = |name: &str| name.starts_with("opencl:") || name.starts_with("sycl:");
    if let Some(name) = name.filter(|name| *name == "host" || is_device(name)) {
        let byte = top.entry("name").map_or(0, |(byte, _)| byte);
        let message = format!("is {:?}, the name of a real target; give the platform another name", cut(name));
        top.problem(byte, "name", message);
    }
}

/// Notes a problem with the key `schema`. Returns whether the file is for a newer program.
fn is_newer(top: &mut Section<'_, '_>) -> bool {
    let Some((byte, value)) = top.entry("schema") else {
        top.problem(0, "schema", format!("is missing: schema = {SCHEMA}"));
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
