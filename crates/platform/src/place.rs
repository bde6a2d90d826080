//! The place of a table among the files of a platform.

/// The file that a value is inherited from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Base<'a> {
    /// Name of the file as written.
    pub(crate) name: &'a str,
    /// Line of the platform file that leads to it.
    pub(crate) line: usize,
}

/// Meaning of a layer of `[link]` for what the link trains at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ability {
    /// Its values are those of the trained link.
    Trained,
    /// Its values are those of the card; the host may support less.
    OfCard,
    /// Its values are those of the host.
    OfHost,
}

/// Keys of a link of which both ends use the lesser value.
pub(crate) const LESSER: [&str; 3] = ["generation", "width_lanes", "mps_bytes"];

/// Place of a table among the files.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Position of the first byte of the file.
    pub(crate) offset: usize,
    /// `None` in the platform file itself.
    pub(crate) base: Option<Base<'a>>,
    pub(crate) ability: Ability,
}

impl Place<'_> {
    /// A file that inherits nothing.
    pub(crate) const ALONE: Place<'static> = Place { offset: 0, base: None, ability: Ability::Trained };
}
