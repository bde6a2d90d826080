//! How often a section occurs in a file, and its reader.

use crate::layers::{Layers, Written};
use crate::notes::Notes;
use crate::place::Place;
use crate::section::{Section, Table};
use crate::sections::{AnySection, SectionPart, SectionRow, SectionType};
use crate::spec::Port;
use crate::text::{cut, is_plain, is_port, said, shown, shown_name, whole};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Marks a section with problems, which are in the [`Notes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted;

/// How often a section occurs: `T` once, `Option<T>` at most once, `Vec<T>` any number of times.
pub(crate) trait Occurrence: Sized {
    const IS_REPEATED: bool;

    /// Reads the section (or sections) from the files of a platform.
    fn read(row: &SectionRow, layers: &Layers<'_>, notes: &mut Notes<'_>) -> Result<Self, Noted>;

    fn all(&self) -> Vec<&dyn AnySection>;

    fn all_mut(&mut self) -> Vec<&mut dyn AnySection>;

    /// Creates a missing optional section if all its keys have defaults. Returns whether there is one afterwards.
    fn create(&mut self) -> bool {
        true
    }
}

impl<T: SectionType> Occurrence for T {
    const IS_REPEATED: bool = false;

    fn read(row: &SectionRow, layers: &Layers<'_>, notes: &mut Notes<'_>) -> Result<T, Noted> {
        one(row, layers, notes).ok_or(Noted)
    }

    fn all(&self) -> Vec<&dyn AnySection> {
        vec![self]
    }

    fn all_mut(&mut self) -> Vec<&mut dyn AnySection> {
        vec![self]
    }
}

impl<T: SectionType> Occurrence for Option<T> {
    const IS_REPEATED: bool = false;

    fn read(row: &SectionRow, layers: &Layers<'_>, notes: &mut Notes<'_>) -> Result<Option<T>, Noted> {
        if layers.of(row).is_empty() { Ok(None) } else { one(row, layers, notes).map(Some).ok_or(Noted) }
    }

    fn all(&self) -> Vec<&dyn AnySection> {
        self.iter().map(|section| section as &dyn AnySection).collect()
    }

    fn all_mut(&mut self) -> Vec<&mut dyn AnySection> {
        self.iter_mut().map(|section| section as &mut dyn AnySection).collect()
    }

    fn create(&mut self) -> bool {
        if self.is_none() {
            *self = of_defaults();
        }
        self.is_some()
    }
}

impl<T: SectionType> Occurrence for Vec<T> {
    const IS_REPEATED: bool = true;

    fn read(row: &SectionRow, layers: &Layers<'_>, notes: &mut Notes<'_>) -> Result<Vec<T>, Noted> {
        if row.is_required || !layers.of(row).is_empty() {
            at_least_one(row, layers, notes).ok_or(Noted)
        } else {
            Ok(Vec::new())
        }
    }

    fn all(&self) -> Vec<&dyn AnySection> {
        self.iter().map(|section| section as &dyn AnySection).collect()
    }

    fn all_mut(&mut self) -> Vec<&mut dyn AnySection> {
        self.iter_mut().map(|section| section as &mut dyn AnySection).collect()
    }
}

/// Notes that no file has a required section.
fn missing(row: &SectionRow, layers: &Layers<'_>, what: &str, notes: &mut Notes<'_>) {
    let remedy = match row.part {
        _ if !layers.inherits() => "",
        SectionPart::Host => "; name a file that has it: host = \"...\" or extends = \"...\"",
        SectionPart::Card => "; name a file that has it: card = \"...\" or extends = \"...\"",
        SectionPart::Machine => "; name a file that has it: extends = \"...\"",
    };
    notes.at_byte(0, row.path.to_owned(), format!("{what}{remedy}"));
}

/// Reads a section that occurs once.
fn one<T: SectionType>(row: &SectionRow, layers: &Layers<'_>, notes: &mut Notes<'_>) -> Option<T> {
    let path = T::PATH;
    let written = layers.of(row);
    if written.is_empty() {
        missing(row, layers, &format!("the section [{path}] is missing"), notes);
        return None;
    }
    let mut tables = Vec::new();
    for Written { start, value, place } in written {
        let Some(table) = value.get_ref().as_table() else {
            let found = shown(value.get_ref());
            notes.at_byte(start, path.to_owned(), format!("is {found}; must be one section [{path}]"));
            return None;
        };
        tables.push(Table { keys: table, start, place });
    }
    T::read(&mut Section { path: path.to_owned(), tables, notes })
}

/// A section with all keys at their defaults; `None` if a key has none.
fn of_defaults<T: SectionType>() -> Option<T> {
    let (table, mut notes) = (DeTable::new(), Notes::new("", b""));
    let tables = vec![Table { keys: &table, start: 0, place: Place::ALONE }];
    T::read(&mut Section { path: T::PATH.to_owned(), tables, notes: &mut notes })
}

/// Reads a repeated section, which must occur. The nearest file that has one of them gives all of them.
fn at_least_one<T: SectionType>(row: &SectionRow, layers: &Layers<'_>, notes: &mut Notes<'_>) -> Option<Vec<T>> {
    let path = T::PATH;
    let Some(Written { start, value, place }) = layers.of(row).first().copied() else {
        missing(row, layers, &format!("at least one section [[{path}]] is needed"), notes);
        return None;
    };
    let Some(list) = value.get_ref().as_array().filter(|list| !list.is_empty()) else {
        let found = match value.get_ref() {
            DeValue::Array(_) => "an empty list".to_owned(),
            other => shown(other),
        };
        let message = format!("is {found}; write [[{path}]], once for each");
        notes.at_byte(start, path.to_owned(), message);
        return None;
    };
    let mut all = Some(Vec::new());
    let mut lines = BTreeMap::new();
    for item in list {
        let start = place.offset + item.span().start;
        let read = if let Some(table) = item.get_ref().as_table() {
            let tables = vec![Table { keys: table, start, place }];
            let mut section = Section { path: format!("{path}.{}", label(path, table)), tables, notes };
            check_name(&mut section, &mut lines);
            T::read(&mut section)
        } else {
            let message = format!("is {}; must be a section [[{path}]]", shown(item.get_ref()));
            notes.at_byte(start, path.to_owned(), message);
            None
        };
        match (read, &mut all) {
            (Some(item), Some(list)) => list.push(item),
            _ => all = None,
        }
    }
    all
}

/// Name of one of several sections in paths: its `name` or `index`.
fn label(path: &str, table: &DeTable<'_>) -> String {
    if let Some(name) = table.get("name").and_then(|name| name.get_ref().as_str()) {
        return if path == Port::PATH && is_port(name) { cut(name) } else { shown_name(name) };
    }
    let index = table.get("index").map(Spanned::get_ref);
    let index = index.and_then(|index| index.as_table().map_or(Some(index), |row| Some(row.get("value")?.get_ref())));
    index.and_then(whole).map_or_else(|| "?".to_owned(), |index| index.to_string())
}

/// Notes a name that is invalid in a path or already used; `lines` has the lines of earlier names.
fn check_name(section: &mut Section<'_, '_>, lines: &mut BTreeMap<String, usize>) {
    let written = section.entry("name").and_then(|entry| Some((entry.start, entry.value.get_ref().as_str()?)));
    let Some((byte, name)) = written else { return };
    let is_of_port = section.path.split('.').next() == Some(Port::PATH);
    let is_right = if is_of_port { is_port(name) } else { is_plain(name) };
    if said(name) && !is_right {
        let between = if is_of_port { ", with one '/' between two names" } else { "" };
        let message = format!("is {:?}; must be letters, digits, '_' and '-'{between}", cut(name));
        section.problem(byte, "name", message);
    }
    let line = section.notes.line(byte);
    if let Some(first) = lines.insert(name.to_owned(), line) {
        section.problem(byte, "name", format!("is used in line {first} already; give each its own name"));
    }
}
