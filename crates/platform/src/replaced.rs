//! Checks of the sections that nearer files replace, so that a typo in a base is found while another file uses it.

use crate::key::{Raw, Value};
use crate::layers::{Layers, Written};
use crate::notes::Notes;
use crate::platform::Platform;
use crate::section::{Section, Table};
use crate::sections::SectionRow;

/// Any checked value.
struct AnyValue(Raw);

impl Value for AnyValue {
    fn from_raw(raw: &Raw) -> Option<AnyValue> {
        Some(AnyValue(*raw))
    }
    fn to_raw(&self) -> Raw {
        self.0
    }
}

/// Notes unknown keys and wrong values in every section that is in a file but gives the platform no value.
pub(crate) fn check(layers: &Layers<'_>, notes: &mut Notes<'_>) {
    // Numbers that replaced sections mark as unknown are not those of the platform.
    let (unknowns, lesser) = (notes.unknowns.len(), notes.lesser.len());
    for row in Platform::SECTIONS {
        let used = layers.of(row);
        let used = &used[..if row.is_repeated { used.len().min(1) } else { used.len() }];
        let is_used = |written: &Written<'_>| used.iter().any(|one| one.start == written.start);
        for written in layers.everywhere(row).iter().filter(|written| !is_used(written)) {
            check_section(row, written, notes);
        }
    }
    notes.unknowns.truncate(unknowns);
    notes.lesser.truncate(lesser);
}

fn check_section(row: &SectionRow, written: &Written<'_>, notes: &mut Notes<'_>) {
    let Written { start, value, place } = *written;
    let items = match value.get_ref().as_array().filter(|_| row.is_repeated) {
        Some(list) => list.iter().map(|item| (place.offset + item.span().start, item.get_ref().as_table())).collect(),
        None if row.is_repeated => vec![(start, None)],
        None => vec![(start, value.get_ref().as_table())],
    };
    for (start, keys) in items {
        let Some(keys) = keys else {
            let (open, close) = if row.is_repeated { ("[[", "]]") } else { ("[", "]") };
            notes.at_byte(start, row.path.to_owned(), format!("must be a section {open}{}{close}", row.path));
            continue;
        };
        let tables = vec![Table { keys, start, place }];
        let mut section = Section { path: row.path.to_owned(), tables, notes };
        for key in row.keys.iter().filter(|key| keys.contains_key(key.name)) {
            let _: Option<crate::Param<AnyValue>> = section.param(row.keys, key.name);
        }
        section.refuse_others(row.texts, row.keys);
    }
}
