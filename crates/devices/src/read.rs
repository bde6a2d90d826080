//! Reader of device files. Reports every problem with file, line and key.

use crate::error::{DeviceFileError, FileProblem};
use crate::spec::{Fallback, Key, Kind, SECTIONS, Section};
use lanemark_units::{did_you_mean, format_size, parse_size};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Read {
    Text(String),
    Number(u64),
}

/// The values of one section, with their lines.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Values {
    /// Path in messages, such as `engine` or `bar.2`.
    path: String,
    line: usize,
    given: BTreeMap<&'static str, (Read, usize)>,
}

impl Values {
    /// Path of a key in messages.
    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Line of a key, or of the section if it is not given.
    pub(crate) fn line_of(&self, key: &str) -> usize {
        self.given.get(key).map_or(self.line, |(_, line)| *line)
    }

    /// A number that is given or has a default; 0 if it has a problem, which is reported elsewhere.
    pub(crate) fn number(&self, key: &str) -> u64 {
        self.some_number(key).unwrap_or(0)
    }

    /// A number that may be absent.
    pub(crate) fn some_number(&self, key: &str) -> Option<u64> {
        match self.given.get(key) {
            Some((Read::Number(number), _)) => Some(*number),
            _ => None,
        }
    }

    /// A text; empty if it has a problem, which is reported elsewhere.
    pub(crate) fn text(&self, key: &str) -> String {
        match self.given.get(key) {
            Some((Read::Text(text), _)) => text.clone(),
            _ => String::new(),
        }
    }
}

/// A file in progress: its sections and its problems.
pub(crate) struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    problems: Vec<FileProblem>,
    sections: BTreeMap<&'static str, Vec<Values>>,
}

impl<'a> Reader<'a> {
    /// Reads all sections of a text.
    pub(crate) fn new(file: &'a str, text: &'a str) -> Reader<'a> {
        let mut reader = Reader { file, text, problems: Vec::new(), sections: BTreeMap::new() };
        match DeTable::parse(text) {
            Err(error) => {
                let start = error.span().map_or(0, |span| span.start);
                let message = error.message().lines().collect::<Vec<_>>().join("; ");
                reader.problem(reader.line(start), "", format!("not TOML: {message}"));
            }
            Ok(table) => reader.read(table.get_ref()),
        }
        reader
    }

    /// Sections of this name, in order.
    pub(crate) fn all(&self, section: &str) -> &[Values] {
        self.sections.get(section).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn problem(&mut self, line: usize, key: impl Into<String>, message: impl Into<String>) {
        let (file, key, message) = (self.file.to_owned(), key.into(), message.into());
        self.problems.push(FileProblem { file, line, key, message });
    }

    /// The reader, or an error with all problems by line.
    pub(crate) fn without_problems(mut self) -> Result<Reader<'a>, DeviceFileError> {
        self.problems.sort_by_key(|problem| problem.line);
        if self.problems.is_empty() { Ok(self) } else { Err(DeviceFileError { problems: self.problems }) }
    }

    /// Line of a byte, from 1.
    fn line(&self, byte: usize) -> usize {
        1 + self.text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
    }

    fn read(&mut self, top: &DeTable<'_>) {
        let is_section = |name: &str| SECTIONS.iter().any(|section| !section.name.is_empty() && section.name == name);
        for section in SECTIONS {
            if section.name.is_empty() {
                let values = self.values(section, String::new(), 1, top, is_section);
                self.sections.insert(section.name, vec![values]);
                continue;
            }
            let Some(found) = top.get(section.name) else {
                if section.is_required {
                    let form = if section.is_repeated {
                        format!("[[{}]]", section.name)
                    } else {
                        format!("[{}]", section.name)
                    };
                    self.problem(1, section.name, format!("is missing: write {form}, {}", section.doc));
                }
                continue;
            };
            let line = self.line(found.span().start);
            let tables: Vec<(String, usize, &DeTable<'_>)> = match found.get_ref() {
                DeValue::Table(table) if !section.is_repeated => vec![(section.name.to_owned(), line, table)],
                DeValue::Array(array) if section.is_repeated => {
                    let table = |(place, value): (usize, &Spanned<DeValue<'_>>)| {
                        let DeValue::Table(_) = value.get_ref() else { return None };
                        Some((format!("{}.{}", section.name, place + 1), self.line(value.span().start), place))
                    };
                    let places: Vec<_> = array.iter().enumerate().filter_map(table).collect();
                    let read = places.into_iter().filter_map(|(path, line, place)| {
                        let DeValue::Table(table) = array.get(place)?.get_ref() else { return None };
                        Some((path, line, table))
                    });
                    read.collect()
                }
                _ => Vec::new(),
            };
            if tables.is_empty() {
                let form =
                    if section.is_repeated { format!("[[{}]]", section.name) } else { format!("[{}]", section.name) };
                self.problem(line, section.name, format!("is no section: write {form} and a key per line"));
            }
            let values: Vec<Values> = tables
                .into_iter()
                .map(|(path, line, table)| self.values(section, path, line, table, |_| false))
                .collect();
            self.sections.insert(section.name, values);
        }
    }

    /// Reads the keys of one section; refuses unknown ones.
    fn values(
        &mut self,
        section: &Section,
        path: String,
        line: usize,
        table: &DeTable<'_>,
        is_other: impl Fn(&str) -> bool,
    ) -> Values {
        let mut values = Values { path, line, given: BTreeMap::new() };
        for name in table.keys() {
            let (at, name) = (self.line(name.span().start), name.get_ref().as_ref());
            if section.keys.iter().any(|key| key.name == name) || is_other(name) {
                continue;
            }
            let sections = SECTIONS.iter().map(|section| section.name).filter(|name| !name.is_empty());
            let known: Vec<&str> = section.keys.iter().map(|key| key.name).chain(sections).collect();
            let hint =
                did_you_mean(name, known.iter().copied()).unwrap_or_else(|| format!("known: {}", known.join(", ")));
            let shown: String = name.chars().filter(|letter| !letter.is_control()).take(40).collect();
            let key = values.path_of(&shown);
            self.problem(at, key, format!("is unknown; {hint}"));
        }
        for key in section.keys {
            match table.get(key.name) {
                Some(found) => {
                    let at = self.line(found.span().start);
                    match value(key, found.get_ref()) {
                        Ok(read) => _ = values.given.insert(key.name, (read, at)),
                        Err(rule) => self.problem(at, values.path_of(key.name), rule),
                    }
                }
                None => match key.default {
                    Some(Fallback::Number(number)) => _ = values.given.insert(key.name, (Read::Number(number), line)),
                    Some(Fallback::Nothing) => {}
                    None => self.problem(line, values.path_of(key.name), format!("is missing: {}", key.doc)),
                },
            }
        }
        values
    }
}

/// Reads a value, or returns the rule that it breaks.
fn value(key: &Key, found: &DeValue<'_>) -> Result<Read, String> {
    let whole = || match found {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    match key.kind {
        Kind::Text => match found {
            DeValue::String(text) if !text.trim().is_empty() && !text.contains(char::is_control) => {
                Ok(Read::Text(text.to_string()))
            }
            _ => Err("must be one line of text in quotes".to_owned()),
        },
        Kind::Choice(words) => match found {
            DeValue::String(text) if words.contains(&text.as_ref()) => Ok(Read::Text(text.to_string())),
            _ => Err(format!("must be one of these words in quotes: {}", words.join(", "))),
        },
        Kind::Number(least, most) => match whole() {
            Some(number) if (least..=most).contains(&number) => Ok(Read::Number(number)),
            _ if least == most => Err(format!("must be {least}: this program reads no other version")),
            _ => Err(format!("must be a whole number from {least:#x} to {most:#x}")),
        },
        Kind::Size(least, most) => {
            let number = match found {
                DeValue::String(text) => parse_size(text).ok(),
                _ => whole(),
            };
            match number {
                Some(number) if (least..=most).contains(&number) => Ok(Read::Number(number)),
                _ => {
                    let (least, most) = (format_size(least), format_size(most));
                    Err(format!("must be a size from {least} to {most}, such as \"4KiB\""))
                }
            }
        }
    }
}
