//! Reader and checks of platform files. Reports every problem with file, line, key and rule.

use crate::check::{Parts, check_parts, check_whole};
use crate::draft::Unknown;
use crate::sections::SectionType;
use crate::spec::{Key, Kind, Raw, Value};
use crate::{Draft, Origin, Param, Platform, Port, SCHEMA, Sections};
use lanemark_units::{did_you_mean, format_size, parse_size};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One problem of a platform file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the file or preset.
    pub file: String,
    /// Line, from 1; 0 if the problem is not in a file, as in [`Platform::with`].
    pub line: usize,
    /// Path of the key, such as `link.width_lanes`; may be empty.
    pub key: String,
    /// The problem and the rule that is violated.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: ", self.file)?,
            line => write!(f, "{}:{line}: ", self.file)?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// All problems of a platform file, at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct PlatformError {
    /// The problems in the order of their lines.
    pub problems: Vec<Problem>,
}

/// Collects problems while a file is read.
pub(crate) struct Notes<'a> {
    file: &'a str,
    /// Start of each line but the first, in bytes.
    starts: Vec<usize>,
    problems: Vec<Problem>,
    unknowns: Vec<Unknown>,
}

impl<'a> Notes<'a> {
    pub(crate) fn new(file: &'a str, text: &[u8]) -> Notes<'a> {
        let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        Notes { file, starts: newlines.map(|(at, _)| at + 1).collect(), problems: Vec::new(), unknowns: Vec::new() }
    }

    fn line(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte) + 1
    }

    fn at_byte(&mut self, byte: usize, key: String, message: String) {
        self.at_line(self.line(byte), key, message);
    }

    pub(crate) fn at_line(&mut self, line: usize, key: String, message: String) {
        self.problems.push(Problem { file: self.file.to_owned(), line, key, message });
    }

    /// The problems in the order of their lines.
    pub(crate) fn problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }
}

/// One table of the file, whose keys are being read.
pub(crate) struct Section<'a, 'n> {
    path: String,
    table: &'a DeTable<'a>,
    start: usize,
    notes: &'a mut Notes<'n>,
}

/// Maximum number of characters of a file that a message quotes.
const SHOWN: usize = 60;

pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{:?}", cut(text)),
        DeValue::Integer(integer) => cut(&integer.to_string()),
        DeValue::Float(float) => cut(float.as_str()),
        DeValue::Boolean(flag) => flag.to_string(),
        other => format!("a TOML {}", other.type_str()),
    }
}

/// Whether `name` can be part of a path such as `region.sram.read_ns`.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Whether `name` can name a port: a device, or `ABOVE/BELOW`.
fn is_port(name: &str) -> bool {
    name.split_once('/').map_or_else(|| is_plain(name), |(above, below)| is_plain(above) && is_plain(below))
}

fn shown_name(name: &str) -> String {
    if is_plain(name) { cut(name) } else { format!("{:?}", cut(name)) }
}

/// Whether `text` is not blank.
pub(crate) fn said(text: &str) -> bool {
    !text.trim().is_empty()
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
    /// The rule for values of this kind, as a clause.
    #[must_use]
    pub fn wanted(&self) -> String {
        match self {
            Kind::Ns(max) => format!("must be nanoseconds from 0 to {max}"),
            Kind::Number(min, max) => format!("must be a number from {min} to {max}"),
            Kind::ZeroOrNumber(min, max) => format!("must be 0 or a number from {min} to {max}"),
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
            Kind::Ns(_) | Kind::Number(..) | Kind::ZeroOrNumber(..) => self.take_f64(number(value)?),
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

    /// Whether the values are whole numbers.
    pub(crate) const fn is_whole(&self) -> bool {
        matches!(self, Kind::Count(..) | Kind::OneOf(_) | Kind::Size(..))
    }

    fn take_whole(&self, whole: u64) -> Option<Raw> {
        let right = match self {
            Kind::Count(min, max) | Kind::Size(min, max) => (*min..=*max).contains(&whole),
            Kind::OneOf(these) => these.contains(&whole),
            _ => false,
        };
        right.then_some(Raw::Whole(whole))
    }

    /// As [`take`](Kind::take), from an argument of the command line: sizes without quotes.
    pub(crate) fn take_text(&self, text: &str) -> Option<Raw> {
        let text = text.trim();
        match self {
            Kind::Choice(words) => words.iter().find(|word| **word == text).map(|word| Raw::Word(word)),
            Kind::Flag => text.parse().ok().map(Raw::Flag),
            _ => {
                let size = || parse_size(text).ok().map(|bytes| bytes as f64);
                self.take_f64(text.parse().ok().or_else(size)?)
            }
        }
    }

    /// As [`take`](Kind::take), from a number.
    pub(crate) fn take_f64(&self, value: f64) -> Option<Raw> {
        match self {
            Kind::Ns(max) => (0.0..=*max).contains(&value).then_some(Raw::Number(value)),
            Kind::Number(min, max) => (*min..=*max).contains(&value).then_some(Raw::Number(value)),
            Kind::ZeroOrNumber(min, max) => {
                (value == 0.0 || (*min..=*max).contains(&value)).then_some(Raw::Number(value))
            }
            _ if value >= 0.0 && value.fract() == 0.0 && value < u64::MAX as f64 => self.take_whole(value as u64),
            _ => None,
        }
    }
}

/// Control characters, characters without width, and those that change the direction of text.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

impl<'a> Section<'a, '_> {
    fn path_of(&self, key: &str) -> String {
        let key = shown_name(key);
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
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

    /// Reads a key of plain text.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        match self.entry(key) {
            None => {
                self.problem(self.start, key, "is missing: one line of text in quotes".to_owned());
                None
            }
            Some((byte, value)) => match value.get_ref().as_str() {
                Some(text) if said(text) && !text.contains(is_invisible) => Some(text.to_owned()),
                _ => {
                    let found = shown(value.get_ref());
                    self.problem(byte, key, format!("is {found}; must be one line of text in quotes, not empty"));
                    None
                }
            },
        }
    }

    /// Reads a key with value and origin.
    pub(crate) fn param<T: Value>(&mut self, keys: &[Key], name: &str) -> Option<Param<T>> {
        let key = keys.iter().find(|key| key.name == name)?;
        let Some((byte, entry)) = self.entry(key.name) else {
            return self.default(key);
        };
        let line = self.notes.line(byte);
        let Some(table) = entry.get_ref().as_table() else {
            self.bare(byte, key, entry.get_ref());
            return None;
        };
        let (mut value, mut has_value) = (None, false);
        let (mut origin, mut origins) = (None, 0);
        let mut unknown = None;
        for (part, content) in table {
            let (at, content) = (part.span().start, content.get_ref());
            match part.get_ref().as_ref() {
                "value" => {
                    has_value = true;
                    value = key.kind.take(content).and_then(|raw| T::from_raw(&raw));
                    if value.is_none() {
                        self.problem(at, key.name, format!("is {}; {}", shown(content), key.kind.wanted()));
                    }
                }
                name @ ("source" | "assumed" | "unknown") => {
                    origins += 1;
                    match content.as_str().filter(|text| said(text)).map(str::to_owned) {
                        Some(text) if name == "unknown" => unknown = Some(text),
                        Some(text) if name == "source" => origin = Some(Origin::Given(text)),
                        Some(text) => origin = Some(Origin::Assumed(text)),
                        None => {
                            let message =
                                format!("{name} is {}; must be text that states a source or a reason", shown(content));
                            self.problem(at, key.name, message);
                        }
                    }
                }
                "fitted_to" => {
                    origins += 1;
                    origin = ids(content).map(Origin::FittedTo);
                    if origin.is_none() {
                        self.problem(at, key.name, "fitted_to must be a list of figure IDs: [\"T5\"]".to_owned());
                    }
                }
                other => {
                    let other = shown_name(other);
                    let message =
                        format!("unknown key {other} beside the value; use value, source, assumed, fitted_to");
                    self.problem(at, key.name, message);
                }
            }
        }
        if let (Some(reason), false, 1) = (&unknown, has_value, origins) {
            return self.unknown(key, line, reason, entry.span());
        }
        if unknown.is_some() && has_value {
            self.problem(byte, key.name, "is unknown and has a value: write one or the other".to_owned());
            return None;
        }
        if !has_value {
            self.problem(byte, key.name, format!("has no value; {}", key.kind.wanted()));
        }
        if origins != 1 {
            self.problem(
                byte,
                key.name,
                "must state its origin once: source = \"...\", assumed = \"why\" or fitted_to = [\"ID\"]".to_owned(),
            );
        }
        Some(Param { value: value?, origin: origin?, line })
    }

    /// Notes an unknown number. Its value until then is the start of the search.
    fn unknown<T: Value>(&mut self, key: &Key, line: usize, reason: &str, span: Range<usize>) -> Option<Param<T>> {
        let Some((bounds, start)) = key.searched.zip(key.search_start()) else {
            let message = "cannot be unknown; write value and source";
            self.notes.at_line(line, self.path_of(key.name), message.to_owned());
            return None;
        };
        self.notes.unknowns.push(Unknown {
            key: self.path_of(key.name),
            reason: reason.to_owned(),
            line,
            bounds,
            start,
            is_whole: key.kind.is_whole(),
            span,
        });
        let value = T::from_raw(&key.kind.take_f64(start)?)?;
        Some(Param { value, origin: Origin::Unknown(reason.to_owned()), line })
    }

    /// Notes a value without an origin.
    fn bare(&mut self, byte: usize, key: &Key, value: &DeValue<'_>) {
        let (found, name) = (shown(value), key.name);
        if key.kind.take(value).is_some() {
            let right = format!("{name} = {{ value = {found}, source = \"...\" }}");
            self.problem(byte, name, format!("is a bare {found}; add its origin: {right}"));
        } else {
            let right = format!("{name} = {{ value = ..., source = \"...\" }}, where the value");
            self.problem(byte, name, format!("is a bare {found}; write {right} {}", key.kind.wanted()));
        }
    }

    fn default<T: Value>(&mut self, key: &Key) -> Option<Param<T>> {
        let Some((text, because)) = key.default else {
            self.problem(self.start, key.name, format!("is missing: {}; {}", sentence(key.doc), key.kind.wanted()));
            return None;
        };
        let value = default_value(key, text)?;
        Some(Param { value, origin: Origin::Default(because.to_owned()), line: 0 })
    }

    /// Notes every key that is not in the lists.
    pub(crate) fn refuse_others(&mut self, texts: &[&str], keys: &[Key]) {
        let known: Vec<&str> = texts.iter().copied().chain(keys.iter().map(|key| key.name)).collect();
        self.refuse_unknown(&known);
    }

    fn refuse_unknown(&mut self, known: &[&str]) {
        for (name, _) in self.table {
            let found = name.get_ref().as_ref();
            if !known.contains(&found) {
                self.problem(name.span().start, found, format!("unknown key; {}", hint(found, known)));
            }
        }
    }
}

/// Units in which a misspelled key may end.
const UNITS: &[&str] = &[
    "ps", "ns", "us", "ms", "s", "ticks", "cycles", "b", "bytes", "kib", "mib", "gib", "dw", "hz", "mhz", "ghz",
    "lanes",
];

/// Suggests the key that may have been meant.
fn hint(found: &str, known: &[&str]) -> String {
    let without_unit = |key| str::rsplit_once(key, '_').filter(|(_, unit)| UNITS.contains(unit)).map(|(stem, _)| stem);
    if let Some(key) = known.iter().find(|key| key.strip_prefix(found).is_some_and(|rest| rest.starts_with('_'))) {
        format!("its name must end in the unit: {key}")
    } else if let Some(key) = known.iter().find(|key| without_unit(found).is_some_and(|s| without_unit(key) == Some(s)))
    {
        format!("its unit is different: {key}")
    } else if let Some(hint) = did_you_mean(found, known.iter().copied()) {
        hint
    } else {
        format!("known here: {}", known.join(", "))
    }
}

/// A doc comment without the full stop.
fn sentence(doc: &str) -> &str {
    doc.trim().trim_end_matches('.')
}

/// A default value, parsed as in a file.
fn default_value<T: Value>(key: &Key, text: &str) -> Option<T> {
    let value = DeValue::parse(text).ok()?.into_inner();
    T::from_raw(&key.kind.take(&value)?)
}

/// Whether a default is valid in a file.
#[cfg(test)]
pub(crate) fn default_is_right(key: &Key, text: &str) -> bool {
    DeValue::parse(text).is_ok_and(|value| key.kind.take(value.get_ref()).is_some())
}

fn ids(value: &DeValue<'_>) -> Option<Vec<String>> {
    let ids: Vec<String> =
        value.as_array()?.iter().map(|id| id.get_ref().as_str().map(str::to_owned)).collect::<Option<_>>()?;
    (!ids.is_empty() && ids.iter().all(|id| said(id))).then_some(ids)
}

impl Platform {
    /// Reads a platform from `text`; `file` is its name in messages.
    ///
    /// # Errors
    /// [`PlatformError`] with every problem of the file, by line. A file without problems but with unknown numbers is
    /// an error, too; [`Draft`] reads it.
    pub fn parse(file: &str, text: &str) -> Result<Platform, PlatformError> {
        Draft::parse(file, text)?.complete()
    }

    /// Reads a platform from the bytes of a file.
    ///
    /// # Errors
    /// As [`Platform::parse`]; bytes that are not UTF-8 are a problem of their line.
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Result<Platform, PlatformError> {
        Draft::from_bytes(file, bytes)?.complete()
    }
}

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
    let summary = top.text("summary");
    let sections = Sections::read(table, notes);
    check_parts(&Parts::of(&sections), notes);
    let platform = sections.complete(name?, summary?)?;
    check_whole(&platform, notes);
    Some(platform)
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

/// Reads a section that occurs once.
pub(crate) fn one<T: SectionType>(table: &DeTable<'_>, notes: &mut Notes<'_>) -> Option<T> {
    let path = T::PATH;
    let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref().as_ref() == path) else {
        notes.at_byte(0, path.to_owned(), format!("the section [{path}] is missing"));
        return None;
    };
    let start = name.span().start;
    let Some(section) = value.get_ref().as_table() else {
        let found = shown(value.get_ref());
        notes.at_byte(start, path.to_owned(), format!("is {found}; must be one section [{path}]"));
        return None;
    };
    T::read(&mut Section { path: path.to_owned(), table: section, start, notes })
}

/// A section with all keys at their defaults; `None` if a key has none.
pub(crate) fn of_defaults<T: SectionType>() -> Option<T> {
    let (table, mut notes) = (DeTable::new(), Notes::new("", b""));
    T::read(&mut Section { path: T::PATH.to_owned(), table: &table, start: 0, notes: &mut notes })
}

/// Reads a repeated section, which must occur.
pub(crate) fn at_least_one<T: SectionType>(table: &DeTable<'_>, notes: &mut Notes<'_>) -> Option<Vec<T>> {
    let path = T::PATH;
    let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref().as_ref() == path) else {
        notes.at_byte(0, path.to_owned(), format!("at least one section [[{path}]] is needed"));
        return None;
    };
    let Some(list) = value.get_ref().as_array().filter(|list| !list.is_empty()) else {
        let found = match value.get_ref() {
            DeValue::Array(_) => "an empty list".to_owned(),
            other => shown(other),
        };
        let message = format!("is {found}; write [[{path}]], once for each");
        notes.at_byte(name.span().start, path.to_owned(), message);
        return None;
    };
    let mut all = Some(Vec::new());
    let mut lines = BTreeMap::new();
    for item in list {
        let start = item.span().start;
        let read = if let Some(table) = item.get_ref().as_table() {
            let mut section = Section { path: format!("{path}.{}", label(path, table)), table, start, notes };
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
    let Some((byte, name)) = section.entry("name").and_then(|(byte, name)| Some((byte, name.get_ref().as_str()?)))
    else {
        return;
    };
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
