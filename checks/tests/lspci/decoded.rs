//! Decoded fields of a structure, accessed by register and field, with a record of the accessed ones.

use lanemark_wire::config::{FieldValue, Reading, Region};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Structure, register, field.
pub type Name = (&'static str, &'static str, &'static str);

/// Fields that were compared so far.
#[derive(Default)]
pub struct Seen(RefCell<BTreeSet<Name>>);

impl Seen {
    /// The compared fields.
    pub fn names(&self) -> BTreeSet<Name> {
        self.0.borrow().clone()
    }
}

/// The fields of one structure.
pub struct Decoded<'a> {
    pub region: Region<'a>,
    fields: Vec<FieldValue>,
    seen: &'a Seen,
}

impl<'a> Decoded<'a> {
    pub fn new(region: Region<'a>, seen: &'a Seen) -> Decoded<'a> {
        Decoded { region, fields: region.fields().collect(), seen }
    }

    /// Whether the register exists and is visible.
    pub fn has(&self, register: &str) -> bool {
        self.fields.iter().any(|value| value.register == register)
    }

    pub fn at(&self, instance: Option<u16>, register: &str, field: &str) -> FieldValue {
        let wanted = |value: &&FieldValue| {
            value.register == register
                && value.field == field
                && (instance.is_none() || value.instance.map(|(index, _)| index) == instance)
        };
        let value = self.fields.iter().find(wanted);
        let value = value.unwrap_or_else(|| {
            panic!(
                "lspci prints {register} {field} ({instance:?}) of {}; we do not decode it",
                self.region.layout().name
            )
        });
        self.seen.0.borrow_mut().insert((value.structure, value.register, value.field));
        *value
    }

    /// A register that exists once.
    pub fn register<'d>(&'d self, name: &'d str) -> Printer<'d, 'a> {
        Printer { decoded: self, instance: None, name }
    }

    /// A register of a repeated group.
    pub fn instance<'d>(&'d self, index: u16, name: &'d str) -> Printer<'d, 'a> {
        Printer { decoded: self, instance: Some(index), name }
    }

    /// Number of groups.
    pub fn instances(&self) -> u16 {
        self.fields.iter().filter_map(|value| value.instance).map(|(index, _)| index + 1).max().unwrap_or(0)
    }
}

/// Formats a register like `lspci`.
#[derive(Clone, Copy)]
pub struct Printer<'d, 'a> {
    decoded: &'d Decoded<'a>,
    instance: Option<u16>,
    name: &'d str,
}

impl Printer<'_, '_> {
    pub fn value(&self, field: &str) -> FieldValue {
        self.decoded.at(self.instance, self.name, field)
    }

    pub fn raw(&self, field: &str) -> u64 {
        self.value(field).raw
    }

    pub fn on(&self, field: &str) -> bool {
        self.raw(field) != 0
    }

    /// `Name+`.
    pub fn flag(&self, field: &str) -> String {
        match self.value(field).reading {
            Reading::Flag(on) => format!("{}{}", last_word(field), if on { '+' } else { '-' }),
            other => panic!("{} {field} is no flag but {other:?}", self.name),
        }
    }

    /// `One+ Two-`.
    pub fn flags(&self, fields: &[&str]) -> String {
        fields.iter().map(|field| self.flag(field)).collect::<Vec<_>>().join(" ")
    }

    /// The value in our format.
    pub fn text(&self, field: &str) -> String {
        self.value(field).reading.to_string()
    }

    /// The value in our format, or `otherwise` for a reserved code.
    pub fn or(&self, field: &str, otherwise: &str) -> String {
        match self.value(field).reading {
            Reading::Reserved(_) => otherwise.to_owned(),
            other => other.to_string(),
        }
    }

    /// The number without its unit; a reserved code is an error of the caller.
    pub fn number(&self, field: &str) -> u64 {
        match self.value(field).reading {
            Reading::Number(number) | Reading::Hex(number, _) | Reading::Quantity(number, _) => number,
            other => panic!("{} {field} is {other}", self.name),
        }
    }
}

/// Last word of our name, which `lspci` prints for a flag: `Status MRL` is after `Status:`.
fn last_word(field: &str) -> &str {
    field.strip_prefix("Status ").or_else(|| field.strip_prefix("Changed ")).unwrap_or(field)
}
