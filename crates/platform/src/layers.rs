//! The tables of a section: its own in the platform file, and those of the files that it inherits from.

use crate::document::{FileKind, Member, Reference};
use crate::place::{Ability, Base, Place};
use crate::section::Table;
use crate::sections::{SectionPart, SectionRow};
use crate::spec::Link;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The tables of all files of a platform.
pub(crate) struct Layers<'a> {
    members: &'a [Member],
    tables: Vec<&'a DeTable<'a>>,
    /// Position of the first byte of each file.
    offsets: Vec<usize>,
}

/// A section in one file, as written.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    /// Position of its name.
    pub(crate) start: usize,
    pub(crate) value: &'a Spanned<DeValue<'a>>,
    pub(crate) place: Place<'a>,
}

impl<'a> Layers<'a> {
    pub(crate) fn new(members: &'a [Member], tables: Vec<&'a DeTable<'a>>, offsets: Vec<usize>) -> Layers<'a> {
        Layers { members, tables, offsets }
    }

    /// All of a file as one table.
    pub(crate) fn table(&self, at: usize) -> Option<Table<'a>> {
        let (table, offset) = (*self.tables.get(at)?, *self.offsets.get(at)?);
        Some(Table { keys: table, start: offset, place: Place { offset, ..Place::ALONE } })
    }

    /// The section in all files, the nearest first.
    pub(crate) fn of(&self, row: &SectionRow) -> Vec<Written<'a>> {
        let mut found = Vec::new();
        self.collect(0, row, Ability::Trained, false, &mut found);
        found
    }

    /// The section in every file that has it, whether it gives the platform values or not.
    pub(crate) fn everywhere(&self, row: &SectionRow) -> Vec<Written<'a>> {
        let of_file = |(at, table): (usize, &&'a DeTable<'a>)| {
            let (member, offset) = (self.members.get(at)?, *self.offsets.get(at)?);
            let (name, value) = table.iter().find(|(name, _)| name.get_ref().as_ref() == row.path)?;
            let base = (at > 0).then_some(Base { name: member.name.as_str(), line: member.line });
            let place = Place { offset, base, ability: Ability::Trained };
            Some(Written { start: offset + name.span().start, value, place })
        };
        self.tables.iter().enumerate().filter_map(of_file).collect()
    }

    /// Adds the section of a file and of those that it names. `has_host`: whether a nearer file names another host, which
    /// replaces the hosts of this one.
    fn collect(&self, at: usize, row: &SectionRow, ability: Ability, has_host: bool, found: &mut Vec<Written<'a>>) {
        let (Some(member), Some(table)) = (self.members.get(at), self.tables.get(at)) else { return };
        let offset = self.offsets.get(at).copied().unwrap_or_default();
        let base = (at > 0).then_some(Base { name: member.name.as_str(), line: member.line });
        if let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref().as_ref() == row.path) {
            let place = Place { offset, base, ability };
            found.push(Written { start: offset + name.span().start, value, place });
        }
        let named = |reference| member.names.iter().find(|(other, _)| *other == reference).map(|(_, place)| *place);
        let (extends, host, card) = (named(Reference::Extends), named(Reference::Host), named(Reference::Card));
        let is_link = row.path == Link::PATH;
        let next = match row.part {
            // The parts extend files of their kind only.
            _ if member.kind != FileKind::Platform => extends,
            SectionPart::Host => host.or(extends),
            SectionPart::Card => card.or(extends),
            SectionPart::Machine => extends,
        };
        // The end of a link that is farther from the platform file cannot exceed the limits of the host.
        let is_of_card = is_link && (host.is_some() || (card.is_some() && extends.is_some()));
        let ability = if is_of_card && ability == Ability::Trained { Ability::OfCard } else { ability };
        if let Some(next) = next {
            self.collect(next, row, ability, has_host || host.is_some(), found);
        }
        if !is_link || has_host {
            return;
        }
        if let Some(host) = host {
            self.collect(host, row, Ability::OfHost, false, found);
        } else if let (Some(_), Some(extends)) = (card, extends) {
            self.collect_host(extends, row, found);
        }
    }

    /// The limits of the nearest host below a file whose own link is not used.
    fn collect_host(&self, at: usize, row: &SectionRow, found: &mut Vec<Written<'a>>) {
        let Some(member) = self.members.get(at) else { return };
        let named = |reference| member.names.iter().find(|(other, _)| *other == reference).map(|(_, place)| *place);
        match (named(Reference::Host), named(Reference::Extends)) {
            (Some(host), _) => self.collect(host, row, Ability::OfHost, false, found),
            (None, Some(extends)) => self.collect_host(extends, row, found),
            (None, None) => {}
        }
    }

    /// Whether the platform file names another one.
    pub(crate) fn inherits(&self) -> bool {
        self.members.first().is_some_and(|first| !first.names.is_empty())
    }
}
