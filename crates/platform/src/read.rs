//! From text to a checked platform, with every problem named: file, line, key, and what would be right.

use crate::spec::{Key, Kind, Raw, Value};
use crate::{Bar, Core, Driver, Endpoint, Link, Origin, Param, Platform, Region, RootComplex, SCHEMA};
use lanemark_units::{format_size, parse_size};
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One thing that is wrong with a platform file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which file (or preset).
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The path of the key, `link.width_lanes`; empty if it is about no key.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that is wrong with a platform file; there is at least one problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct PlatformError {
    /// By line.
    pub problems: Vec<Problem>,
}

/// Where problems go while a file is read.
pub(crate) struct Notes<'a> {
    file: &'a str,
    text: &'a str,
    problems: Vec<Problem>,
}

impl Notes<'_> {
    fn line(&self, byte: usize) -> usize {
        let byte = byte.min(self.text.len());
        self.text.as_bytes()[..byte].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    fn at_byte(&mut self, byte: usize, key: String, message: String) {
        self.at_line(self.line(byte), key, message);
    }

    pub(crate) fn at_line(&mut self, line: usize, key: String, message: String) {
        self.problems.push(Problem { file: self.file.to_owned(), line, key, message });
    }
}

/// One table of the file, while its keys are taken.
pub(crate) struct Section<'a, 'n> {
    path: String,
    table: &'a DeTable<'a>,
    start: usize,
    notes: &'a mut Notes<'n>,
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Integer(integer) => integer.as_str().to_owned(),
        DeValue::Float(float) => float.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        other => format!("a TOML {}", other.type_str()),
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => whole(value).map(|whole| whole as f64),
    }
}

fn whole(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

impl Kind {
    /// What would be right, as a clause.
    #[must_use]
    pub fn wanted(&self) -> String {
        match self {
            Kind::Ns(max) => format!("must be nanoseconds from 0 to {max}"),
            Kind::Number(min, max) => format!("must be a number from {min} to {max}"),
            Kind::Count(min, max) => format!("must be a whole number from {min} to {max}"),
            Kind::OneOf(these) => {
                format!("must be one of {}", these.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
            }
            Kind::Size(min, max) => format!(
                "must be bytes (4096) or a size with its unit (\"4KiB\") from {} to {}",
                format_size(*min),
                format_size(*max)
            ),
            Kind::Choice(words) => format!("must be one of \"{}\"", words.join("\", \"")),
            Kind::Flag => "must be true or false".to_owned(),
        }
    }

    fn take(&self, value: &DeValue<'_>) -> Option<Raw> {
        match self {
            Kind::Ns(max) => number(value).filter(|ns| (0.0..=*max).contains(ns)).map(Raw::Number),
            Kind::Number(min, max) => number(value).filter(|n| (*min..=*max).contains(n)).map(Raw::Number),
            Kind::Count(..) | Kind::OneOf(_) => self.take_whole(u64::try_from(whole(value)?).ok()?),
            Kind::Size(..) => match value {
                DeValue::String(text) => self.take_whole(parse_size(text).ok()?),
                _ => self.take_whole(u64::try_from(whole(value)?).ok()?),
            },
            Kind::Choice(words) => {
                let wanted = value.as_str()?;
                words.iter().find(|word| **word == wanted).map(|word| Raw::Word(word))
            }
            Kind::Flag => value.as_bool().map(Raw::Flag),
        }
    }

    fn take_whole(&self, whole: u64) -> Option<Raw> {
        let right = match self {
            Kind::Count(min, max) | Kind::Size(min, max) => (*min..=*max).contains(&whole),
            Kind::OneOf(these) => these.contains(&whole),
            _ => false,
        };
        right.then_some(Raw::Whole(whole))
    }

    /// As [`take`](Kind::take), from a number.
    pub(crate) fn take_f64(&self, value: f64) -> Option<Raw> {
        match self {
            Kind::Ns(_) | Kind::Number(..) => self.take(&DeValue::parse(&format!("{value:?}")).ok()?.into_inner()),
            _ if value >= 0.0 && value.fract() == 0.0 && value < 9.0e15 => self.take_whole(value as u64),
            _ => None,
        }
    }
}

impl<'a> Section<'a, '_> {
    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn problem(&mut self, byte: usize, key: &str, message: String) {
        let path = self.path_of(key);
        self.notes.at_byte(byte, path, message);
    }

    fn entry(&self, key: &str) -> Option<(usize, &'a Spanned<DeValue<'a>>)> {
        self.table
            .iter()
            .find(|(name, _)| name.get_ref().as_ref() == key)
            .map(|(name, value)| (name.span().start, value))
    }

    /// A key that is plain text.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        match self.entry(key) {
            None => {
                self.problem(self.start, key, "is missing: a text in quotes".to_owned());
                None
            }
            Some((byte, value)) => match value.get_ref().as_str() {
                Some(text) if !text.trim().is_empty() => Some(text.to_owned()),
                _ => {
                    let found = shown(value.get_ref());
                    self.problem(byte, key, format!("is {found}; must be a text in quotes that is not empty"));
                    None
                }
            },
        }
    }

    /// A key with value and origin.
    pub(crate) fn param<T: Value>(&mut self, keys: &[Key], name: &str) -> Option<Param<T>> {
        let key = keys.iter().find(|key| key.name == name)?;
        let Some((byte, entry)) = self.entry(key.name) else {
            return self.default(key);
        };
        let line = self.notes.line(byte);
        let Some(table) = entry.get_ref().as_table() else {
            let found = shown(entry.get_ref());
            let name = key.name;
            self.problem(
                byte,
                name,
                format!(
                    "is a bare {found}; write where it comes from: {name} = {{ value = {found}, source = \"...\" }}"
                ),
            );
            return None;
        };
        let mut value = None;
        let mut origins = Vec::new();
        let mut sound = true;
        for (part, content) in table {
            let (at, content) = (part.span().start, content.get_ref());
            let text = content.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
            match (part.get_ref().as_ref(), text) {
                ("value", _) => {
                    value = key.kind.take(content).and_then(|raw| T::from_raw(&raw));
                    if value.is_none() {
                        self.problem(at, key.name, format!("is {}; {}", shown(content), key.kind.wanted()));
                        sound = false;
                    }
                }
                ("source", Some(text)) => origins.push(Origin::Given(text)),
                ("assumed", Some(text)) => origins.push(Origin::Assumed(text)),
                ("fitted_to", _) => match ids(content) {
                    Some(ids) => origins.push(Origin::FittedTo(ids)),
                    None => {
                        self.problem(at, key.name, "fitted_to must be a list of figure IDs: [\"T5\"]".to_owned());
                        sound = false;
                    }
                },
                ("source" | "assumed", None) => {
                    self.problem(at, key.name, "source and assumed must be texts that say where or why".to_owned());
                    sound = false;
                }
                (other, _) => {
                    self.problem(
                        at,
                        key.name,
                        format!("unknown key '{other}' beside the value; use value, source, assumed, fitted_to"),
                    );
                    sound = false;
                }
            }
        }
        if sound && value.is_none() {
            self.problem(byte, key.name, format!("has no value; {}", key.kind.wanted()));
        }
        if sound && origins.len() != 1 {
            self.problem(
                byte,
                key.name,
                "must say once where it comes from: source = \"...\", assumed = \"why\" or fitted_to = [\"ID\"]"
                    .to_owned(),
            );
        }
        match (value, origins.pop()) {
            (Some(value), Some(origin)) if sound && origins.is_empty() => Some(Param { value, origin, line }),
            _ => None,
        }
    }

    fn default<T: Value>(&mut self, key: &Key) -> Option<Param<T>> {
        let Some((text, because)) = key.default else {
            self.problem(self.start, key.name, format!("is missing: {}; {}", key.doc.trim(), key.kind.wanted()));
            return None;
        };
        let value = default_value(key, text)?;
        Some(Param { value, origin: Origin::Default(because.to_owned()), line: 0 })
    }

    /// Notes every key that is not among these.
    pub(crate) fn refuse_others(&mut self, texts: &[&str], keys: &[Key]) {
        let known: Vec<&str> = texts.iter().copied().chain(keys.iter().map(|key| key.name)).collect();
        self.refuse_unknown(&known);
    }

    fn refuse_unknown(&mut self, known: &[&str]) {
        for (name, _) in self.table {
            let found = name.get_ref().as_ref();
            if !known.contains(&found) {
                let message = match known.iter().find(|key| key.starts_with(&format!("{found}_"))) {
                    Some(key) => format!("unknown key; its name must end in the unit: {key}"),
                    None => format!("unknown key; known here: {}", known.join(", ")),
                };
                self.problem(name.span().start, found, message);
            }
        }
    }
}

/// The value of a default as it stands in [`spec`](crate::spec).
pub(crate) fn default_value<T: Value>(key: &Key, text: &str) -> Option<T> {
    let value = DeValue::parse(text).ok()?.into_inner();
    T::from_raw(&key.kind.take(&value)?)
}

fn ids(value: &DeValue<'_>) -> Option<Vec<String>> {
    let ids: Vec<String> =
        value.as_array()?.iter().map(|id| id.get_ref().as_str().map(str::to_owned)).collect::<Option<_>>()?;
    (!ids.is_empty()).then_some(ids)
}

impl Platform {
    /// Reads a platform from `text`; `file` is for messages.
    ///
    /// # Errors
    /// [`PlatformError`] with every problem of the file, by line.
    pub fn parse(file: &str, text: &str) -> Result<Platform, PlatformError> {
        let mut notes = Notes { file, text, problems: Vec::new() };
        let platform = match DeTable::parse(text) {
            Ok(table) => read(table.get_ref(), &mut notes),
            Err(error) => {
                let byte = error.span().map_or(0, |span| span.start);
                let message = error.message().lines().collect::<Vec<_>>().join("; ");
                notes.at_byte(byte, String::new(), format!("not TOML: {message}"));
                None
            }
        };
        if let (Some(platform), true) = (&platform, notes.problems.is_empty()) {
            crate::check::check(platform, &mut notes);
        }
        let mut problems = notes.problems;
        problems.sort_by_key(|problem| problem.line);
        match platform {
            Some(platform) if problems.is_empty() => Ok(platform),
            _ => Err(PlatformError { problems }),
        }
    }

    /// Reads a platform from the bytes of a file.
    ///
    /// # Errors
    /// As [`Platform::parse`]; bytes that are not UTF-8 are a problem of their line.
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Result<Platform, PlatformError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Platform::parse(file, text),
            Err(error) => {
                let good = error.valid_up_to();
                let line = bytes[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
                let message = format!("byte {good} is not UTF-8; a platform file is TOML, which is UTF-8 text");
                Err(PlatformError {
                    problems: vec![Problem { file: file.to_owned(), line, key: String::new(), message }],
                })
            }
        }
    }
}

const TOP: &[&str] =
    &["schema", "name", "summary", "core", "driver", "root_complex", "link", "endpoint", "bar", "region"];

fn read(table: &DeTable<'_>, notes: &mut Notes<'_>) -> Option<Platform> {
    let mut top = Section { path: String::new(), table, start: 0, notes };
    top.refuse_unknown(TOP);
    let schema = check_schema(&mut top);
    let name = top.text("name");
    let summary = top.text("summary");
    let core = one(table, Core::PATH, notes, Core::read);
    let driver = if table.contains_key(Driver::PATH) {
        one(table, Driver::PATH, notes, Driver::read).map(Some)
    } else {
        Some(None)
    };
    let root_complex = one(table, RootComplex::PATH, notes, RootComplex::read);
    let link = one(table, Link::PATH, notes, Link::read);
    let endpoint = one(table, Endpoint::PATH, notes, Endpoint::read);
    let bars = several(table, Bar::PATH, notes, Bar::read);
    let regions = several(table, Region::PATH, notes, Region::read);
    schema?;
    Some(Platform {
        name: name?,
        summary: summary?,
        core: core?,
        driver: driver?,
        root_complex: root_complex?,
        link: link?,
        endpoint: endpoint?,
        bars: bars?,
        regions: regions?,
    })
}

fn check_schema(top: &mut Section<'_, '_>) -> Option<()> {
    match top.entry("schema").map(|(byte, value)| (byte, whole(value.get_ref()))) {
        Some((_, Some(found))) if found == i128::from(SCHEMA) => Some(()),
        Some((byte, Some(found))) if found > i128::from(SCHEMA) => {
            top.problem(byte, "schema", format!("is {found}; this program reads up to {SCHEMA}: use a newer lanemark"));
            None
        }
        Some((byte, _)) => {
            top.problem(byte, "schema", format!("must be the whole number {SCHEMA}"));
            None
        }
        None => {
            top.problem(0, "schema", format!("is missing: schema = {SCHEMA}"));
            None
        }
    }
}

fn one<T>(
    table: &DeTable<'_>,
    path: &str,
    notes: &mut Notes<'_>,
    read: fn(&mut Section<'_, '_>) -> Option<T>,
) -> Option<T> {
    let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref().as_ref() == path) else {
        notes.at_byte(0, path.to_owned(), format!("the section [{path}] is missing"));
        return None;
    };
    let Some(section) = value.get_ref().as_table() else {
        notes.at_byte(name.span().start, path.to_owned(), format!("must be a section [{path}]"));
        return None;
    };
    read(&mut Section { path: path.to_owned(), table: section, start: name.span().start, notes })
}

fn several<T>(
    table: &DeTable<'_>,
    path: &str,
    notes: &mut Notes<'_>,
    read: fn(&mut Section<'_, '_>) -> Option<T>,
) -> Option<Vec<T>> {
    let entry = table.iter().find(|(name, _)| name.get_ref().as_ref() == path);
    let list = entry.and_then(|(_, value)| value.get_ref().as_array()).filter(|list| !list.is_empty());
    let Some(list) = list else {
        let byte = entry.map_or(0, |(name, _)| name.span().start);
        notes.at_byte(byte, path.to_owned(), format!("at least one section [[{path}]] is needed"));
        return None;
    };
    let mut all = Some(Vec::new());
    for item in list.iter() {
        let start = item.span().start;
        let read = item.get_ref().as_table().and_then(|section| {
            let name = section.get("name").or(section.get("index")).map(|name| shown(name.get_ref()));
            let path = format!("{path}.{}", name.unwrap_or_else(|| "?".to_owned()).trim_matches('"'));
            read(&mut Section { path, table: section, start, notes })
        });
        match (read, &mut all) {
            (Some(item), Some(list)) => list.push(item),
            _ => all = None,
        }
    }
    all
}

/// Splits `region.sram.read_ns` into section, name (for BARs and regions) and key.
fn split(path: &str) -> Option<(&str, &str, &str)> {
    let mut parts = path.split('.');
    match (parts.next()?, parts.next()?, parts.next(), parts.next()) {
        (section, key, None, None) => Some((section, "", key)),
        (section, name, Some(key), None) => Some((section, name, key)),
        _ => None,
    }
}

pub(crate) fn with(platform: &Platform, path: &str, value: f64, origin: Origin) -> Result<Platform, PlatformError> {
    let mut changed = platform.clone();
    let refused = |message: String| {
        let problem = Problem { file: platform.name.clone(), line: 0, key: path.to_owned(), message };
        PlatformError { problems: vec![problem] }
    };
    let unknown = || refused("there is no such number in this platform".to_owned());
    let (section, name, key) = split(path).ok_or_else(unknown)?;
    let keys = match section {
        "core" => Core::KEYS,
        "driver" => Driver::KEYS,
        "root_complex" => RootComplex::KEYS,
        "link" => Link::KEYS,
        "endpoint" => Endpoint::KEYS,
        "bar" => Bar::KEYS,
        "region" => Region::KEYS,
        _ => &[],
    };
    let row = keys.iter().find(|row| row.name == key).ok_or_else(unknown)?;
    let raw = row.kind.take_f64(value).ok_or_else(|| refused(format!("is {value}; {}", row.kind.wanted())))?;
    let done = match section {
        "core" => changed.core.set(key, &raw, &origin),
        "driver" => changed.driver.as_mut().is_some_and(|driver| driver.set(key, &raw, &origin)),
        "root_complex" => changed.root_complex.set(key, &raw, &origin),
        "link" => changed.link.set(key, &raw, &origin),
        "endpoint" => changed.endpoint.set(key, &raw, &origin),
        "bar" => changed
            .bars
            .iter_mut()
            .find(|bar| bar.index.value.to_string() == name)
            .is_some_and(|bar| bar.set(key, &raw, &origin)),
        _ => changed
            .regions
            .iter_mut()
            .find(|region| region.name == name)
            .is_some_and(|region| region.set(key, &raw, &origin)),
    };
    if !done {
        return Err(unknown());
    }
    let mut notes = Notes { file: &platform.name, text: "", problems: Vec::new() };
    crate::check::check(&changed, &mut notes);
    if notes.problems.is_empty() { Ok(changed) } else { Err(PlatformError { problems: notes.problems }) }
}

pub(crate) fn number_at(platform: &Platform, path: &str) -> Option<(f64, Origin)> {
    let (section, name, wanted) = split(path)?;
    let mut found = None;
    let mut visit = |key: &'static str, raw: Raw, origin: &Origin| {
        if key == wanted {
            found = match raw {
                Raw::Number(number) => Some((number, origin.clone())),
                Raw::Whole(whole) => Some((whole as f64, origin.clone())),
                Raw::Word(_) | Raw::Flag(_) => None,
            };
        }
    };
    match section {
        "core" => platform.core.each(&mut visit),
        "driver" => platform.driver.as_ref()?.each(&mut visit),
        "root_complex" => platform.root_complex.each(&mut visit),
        "link" => platform.link.each(&mut visit),
        "endpoint" => platform.endpoint.each(&mut visit),
        "bar" => platform.bars.iter().find(|bar| bar.index.value.to_string() == name)?.each(&mut visit),
        "region" => platform.region(name)?.each(&mut visit),
        _ => {}
    }
    found
}
