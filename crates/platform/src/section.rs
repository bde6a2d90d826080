//! Reads the keys of one table of a platform file.

use crate::key::{Key, Value};
use crate::notes::Notes;
use crate::param::{Origin, Param};
use crate::text::{is_invisible, said, shown, shown_name};
use crate::unknown::Unknown;
use lanemark_units::did_you_mean;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One table of the file, whose keys are being read.
pub(crate) struct Section<'a, 'n> {
    pub(crate) path: String,
    pub(crate) table: &'a DeTable<'a>,
    pub(crate) start: usize,
    pub(crate) notes: &'a mut Notes<'n>,
}

impl<'a> Section<'a, '_> {
    fn path_of(&self, key: &str) -> String {
        let key = shown_name(key);
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    pub(crate) fn problem(&mut self, byte: usize, key: &str, message: String) {
        let path = self.path_of(key);
        self.notes.at_byte(byte, path, message);
    }

    pub(crate) fn entry(&self, key: &str) -> Option<(usize, &'a Spanned<DeValue<'a>>)> {
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

    pub(crate) fn refuse_unknown(&mut self, known: &[&str]) {
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
