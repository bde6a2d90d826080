//! Reads the keys of one section of a platform file.

use crate::key::{Key, Raw, Value};
use crate::lesser::Lesser;
use crate::notes::Notes;
use crate::param::{Origin, Param};
use crate::place::{Ability, LESSER, Place};
use crate::text::{is_invisible, said, shown, shown_name};
use crate::unknown::{Limits, Unknown};
use lanemark_units::did_you_mean;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One section, whose keys are being read: its tables in the platform file and in the files that it inherits from, the
/// nearest first. There is at least one.
pub(crate) struct Section<'a, 'n> {
    pub(crate) path: String,
    pub(crate) tables: Vec<Table<'a>>,
    pub(crate) notes: &'a mut Notes<'n>,
}

/// One table of a section.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    pub(crate) keys: &'a DeTable<'a>,
    /// Position of its name.
    pub(crate) start: usize,
    pub(crate) place: Place<'a>,
}

/// A key as written.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// Position of the key.
    pub(crate) start: usize,
    pub(crate) value: &'a Spanned<DeValue<'a>>,
    table: Table<'a>,
}

impl<'a> Table<'a> {
    fn entry(self, key: &str) -> Option<Entry<'a>> {
        let (name, value) = self.keys.iter().find(|(name, _)| name.get_ref().as_ref() == key)?;
        Some(Entry { start: self.place.offset + name.span().start, value, table: self })
    }
}

/// The keys by which a section states the origin of its plain values.
pub(crate) const ORIGINS: [&str; 2] = ["source", "assumed"];

impl<'a> Section<'a, '_> {
    fn path_of(&self, key: &str) -> String {
        let key = shown_name(key);
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    pub(crate) fn problem(&mut self, position: usize, key: &str, message: String) {
        let path = self.path_of(key);
        self.notes.at_byte(position, path, message);
    }

    /// Position of the nearest table.
    pub(crate) fn start(&self) -> usize {
        self.tables.first().map_or(0, |table| table.start)
    }

    /// A key in the nearest table that has it.
    pub(crate) fn entry(&self, key: &str) -> Option<Entry<'a>> {
        self.tables.iter().find_map(|table| table.entry(key))
    }

    /// Reads a key of plain text.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        match self.entry(key) {
            None => {
                self.problem(self.start(), key, "is missing: one line of text in quotes".to_owned());
                None
            }
            Some(entry) => match entry.value.get_ref().as_str() {
                Some(text) if said(text) && !text.contains(is_invisible) => Some(text.to_owned()),
                _ => {
                    let found = shown(entry.value.get_ref());
                    let message = format!("is {found}; must be one line of text in quotes, not empty");
                    self.problem(entry.start, key, message);
                    None
                }
            },
        }
    }

    /// Reads a key with value and origin.
    pub(crate) fn param<T: Value>(&mut self, keys: &[Key], name: &str) -> Option<Param<T>> {
        let key = keys.iter().find(|key| key.name == name)?;
        let Some(entry) = self.entry(key.name) else {
            return self.default(key);
        };
        let param = self.stated(key, entry)?;
        if entry.table.place.ability == Ability::OfHost || !LESSER.contains(&name) {
            return Some(param);
        }
        // Host and card train at what both support.
        let is_of_host = |table: &&Table<'_>| table.place.ability == Ability::OfHost;
        let of_host = self.tables.iter().filter(is_of_host).find_map(|table| table.entry(name));
        let Some(limit) = of_host else { return Some(param) };
        let limit: Param<T> = self.stated(key, limit)?;
        let (Raw::Whole(host), Raw::Whole(card)) = (limit.value.to_raw(), param.value.to_raw()) else {
            return Some(param);
        };
        let names = [&limit.origin, &param.origin].map(|origin| origin.file().to_owned());
        let [of_host, of_card] = names;
        let key = self.path_of(name);
        if entry.table.place.ability == Ability::Trained {
            if host < card {
                self.notes.lesser.push(Lesser { key, value: card, from: of_card, other: host, other_from: of_host });
            }
            return Some(param);
        }
        if host < card {
            self.notes.lesser.push(Lesser { key, value: host, from: of_host, other: card, other_from: of_card });
            return Some(limit);
        }
        Some(param)
    }

    /// Reads a key from one table.
    fn stated<T: Value>(&mut self, key: &Key, entry: Entry<'a>) -> Option<Param<T>> {
        let (byte, place) = (entry.start, entry.table.place);
        let line = place.base.map_or_else(|| self.notes.line(byte), |base| base.line);
        let from = place.base.map(|base| base.name.to_owned());
        let entry_value = entry.value;
        let Some(table) = entry_value.get_ref().as_table() else {
            return self.plain(key, entry).map(|(value, origin)| Param { value, origin: of_base(origin, from), line });
        };
        let (mut value, mut has_value) = (None, false);
        let (mut origin, mut origins) = (None, 0);
        let mut unknown = None;
        let (mut limits, mut has_limit) = (Limits::default(), false);
        for (part, content) in table {
            let (at, content) = (place.offset + part.span().start, content.get_ref());
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
                name @ ("at_most" | "at_least") => {
                    let limit = key.kind.take(content).and_then(Raw::number);
                    if limit.is_none() {
                        self.problem(at, key.name, format!("{name} is {}; {}", shown(content), key.kind.wanted()));
                    }
                    *(if name == "at_most" { &mut limits.at_most } else { &mut limits.at_least }) = limit;
                    has_limit = true;
                }
                other => {
                    let other = shown_name(other);
                    let message =
                        format!("unknown key {other} beside the value; use value, source, assumed, fitted_to, unknown");
                    self.problem(at, key.name, message);
                }
            }
        }
        if let (Some(reason), false, 1) = (&unknown, has_value, origins) {
            let span = place.base.is_none().then(|| entry_value.span());
            let Param { value, origin, line } = self.unknown(key, line, reason, limits, span)?;
            return Some(Param { value, origin: of_base(origin, from), line });
        }
        if unknown.is_some() && has_value {
            self.problem(byte, key.name, "is unknown and has a value: write one or the other".to_owned());
            return None;
        }
        if has_limit {
            let message = "at_most and at_least bound an unknown number; with a value, omit them".to_owned();
            self.problem(byte, key.name, message);
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
        Some(Param { value: value?, origin: of_base(origin?, from), line })
    }

    /// Reads a value without an origin, which has that of its section.
    fn plain<T: Value>(&mut self, key: &Key, entry: Entry<'a>) -> Option<(T, Origin)> {
        let of_section: Vec<(&str, Entry<'a>)> =
            ORIGINS.iter().filter_map(|name| Some((*name, entry.table.entry(name)?))).collect();
        let [(name, stated)] = of_section[..] else {
            // Both of them are noted once for the section.
            if of_section.is_empty() {
                self.bare(entry.start, key, entry.value.get_ref());
            }
            return None;
        };
        let raw = key.kind.take(entry.value.get_ref());
        let value = raw.and_then(|raw| T::from_raw(&raw));
        if value.is_none() {
            let found = shown(entry.value.get_ref());
            self.problem(entry.start, key.name, format!("is {found}; {}", key.kind.wanted()));
        }
        // Another value is noted once for the section.
        let text = stated.value.get_ref().as_str().filter(|text| said(text))?.to_owned();
        Some((value?, if name == "source" { Origin::Given(text) } else { Origin::Assumed(text) }))
    }

    /// Notes what is wrong with the origins that tables state for their plain values.
    fn check_origins(&mut self) {
        for table in self.tables.clone() {
            let stated: Vec<Entry<'a>> = ORIGINS.iter().filter_map(|name| table.entry(name)).collect();
            if let [_, second] = stated[..] {
                let message = "a section has source or assumed, not both".to_owned();
                self.problem(second.start, "assumed", message);
            }
            for name in ORIGINS {
                let Some(entry) = table.entry(name) else { continue };
                if !entry.value.get_ref().as_str().is_some_and(said) {
                    let found = shown(entry.value.get_ref());
                    let message =
                        format!("is {found}; must be text that states the origin of the section's plain values");
                    self.problem(entry.start, name, message);
                }
            }
        }
    }

    /// Notes an unknown number. Its value until then is the start of the search.
    fn unknown<T: Value>(
        &mut self,
        key: &Key,
        line: usize,
        reason: &str,
        limits: Limits,
        span: Option<Range<usize>>,
    ) -> Option<Param<T>> {
        let Some(range) = key.searched else {
            let message = "cannot be unknown; write value and source";
            self.notes.at_line(line, self.path_of(key.name), message.to_owned());
            return None;
        };
        let Some((bounds, start)) = limits.of(range).and_then(|bounds| Some((bounds, key.search_start(bounds)?)))
        else {
            let message = limits.leaves_nothing(range);
            self.notes.at_line(line, self.path_of(key.name), message);
            return None;
        };
        self.notes.unknowns.push(Unknown {
            key: self.path_of(key.name),
            reason: reason.to_owned(),
            line,
            bounds,
            limits,
            start,
            default: key.default_number().filter(|default| limits.allow(*default)),
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
            let of_section = "or give the section one source or assumed for its plain values";
            self.problem(byte, name, format!("is a bare {found}; add its origin: {right}, {of_section}"));
        } else {
            let right = format!("{name} = {{ value = ..., source = \"...\" }}, where the value");
            self.problem(byte, name, format!("is a bare {found}; write {right} {}", key.kind.wanted()));
        }
    }

    fn default<T: Value>(&mut self, key: &Key) -> Option<Param<T>> {
        let Some((text, because)) = key.default else {
            self.problem(self.start(), key.name, format!("is missing: {}; {}", sentence(key.doc), key.kind.wanted()));
            return None;
        };
        let value = default_value(key, text)?;
        let origin = Origin::Default(because.to_owned());
        // A default of a section that a base has is the base's value.
        let base = self
            .tables
            .iter()
            .filter(|table| table.place.ability != Ability::OfHost)
            .find_map(|table| table.place.base);
        Some(Param { value, origin: of_base(origin, base.map(|base| base.name.to_owned())), line: 0 })
    }

    /// Notes every key that is not in the lists, and wrong origins of the section.
    pub(crate) fn refuse_others(&mut self, texts: &[&str], keys: &[Key]) {
        let known: Vec<&str> = texts.iter().copied().chain(keys.iter().map(|key| key.name)).collect();
        self.refuse_unknown(&known, &ORIGINS);
        self.check_origins();
    }

    /// Notes every key that is neither known nor accepted; a message lists the known ones.
    pub(crate) fn refuse_unknown(&mut self, known: &[&str], accepted: &[&str]) {
        for table in self.tables.clone() {
            for (name, _) in table.keys {
                let found = name.get_ref().as_ref();
                if !known.contains(&found) && !accepted.contains(&found) {
                    let start = table.place.offset + name.span().start;
                    self.problem(start, found, format!("unknown key; {}", hint(found, known)));
                }
            }
        }
    }
}

/// The origin of a value, inherited if it is from a base.
fn of_base(origin: Origin, base: Option<String>) -> Origin {
    match base {
        Some(base) => origin.inherited(&base),
        None => origin,
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
