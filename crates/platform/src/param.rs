//! Values with their origin.

/// A value of a platform with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Param<T> {
    /// The value, in the unit of its key.
    pub value: T,
    /// Origin of the value.
    pub origin: Origin,
    /// Line in the file; 0 for a default.
    pub line: usize,
}

/// Origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Source: a data sheet, a manual, a paper, or a measurement.
    Given(String),
    /// Assumption, with its reason.
    Assumed(String),
    /// Fitted by `lanemark fit` to these figures.
    FittedTo(Vec<String>),
    /// Default of the key, with its reason.
    Default(String),
    /// Inherited from a file that the platform file names.
    Inherited {
        /// Name of that file as written.
        from: String,
        /// Origin of the value there; not inherited itself.
        origin: Box<Origin>,
    },
    /// Unknown, with a hint how to determine it. Only a [`Draft`](crate::Draft) has such values, and it does not
    /// expose them.
    Unknown(String),
}

impl Origin {
    /// The origin in the file that states the value: an inherited origin without its file.
    #[must_use]
    pub fn stated(&self) -> &Origin {
        match self {
            Origin::Inherited { origin, .. } => origin.stated(),
            other => other,
        }
    }

    /// Name of the file that states an inherited value; empty for the platform file.
    pub(crate) fn file(&self) -> &str {
        if let Origin::Inherited { from, .. } = self { from } else { "" }
    }

    /// This origin, inherited from `from`; an inherited origin keeps its file.
    #[must_use]
    pub(crate) fn inherited(self, from: &str) -> Origin {
        match self {
            inherited @ Origin::Inherited { .. } => inherited,
            origin => Origin::Inherited { from: from.to_owned(), origin: Box::new(origin) },
        }
    }
}

/// Number of values by their stated origin; defaults count as assumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// From a source.
    pub given: u32,
    /// Assumed.
    pub assumed: u32,
    /// Fitted.
    pub fitted: u32,
    /// Unknown; 0 in a [`Platform`](crate::Platform).
    pub unknown: u32,
}

impl Counts {
    /// Number of values.
    #[must_use]
    pub const fn total(self) -> u32 {
        self.given + self.assumed + self.fitted + self.unknown
    }

    pub(crate) fn add(&mut self, origin: &Origin) {
        match origin.stated() {
            Origin::Given(_) => self.given += 1,
            Origin::FittedTo(_) => self.fitted += 1,
            Origin::Unknown(_) => self.unknown += 1,
            // The stated origin is never inherited.
            Origin::Assumed(_) | Origin::Default(_) | Origin::Inherited { .. } => self.assumed += 1,
        }
    }
}

/// Number of values of a platform by origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// Values that the platform file states itself, or that have the default of their key.
    pub own: Counts,
    /// Values inherited from other files, by the origin there.
    pub inherited: Counts,
}

impl Origins {
    /// Counts one value.
    pub(crate) fn add(&mut self, origin: &Origin) {
        match origin {
            Origin::Inherited { origin, .. } => self.inherited.add(origin),
            own => self.own.add(own),
        }
    }

    /// Number of values.
    #[must_use]
    pub const fn total(self) -> u32 {
        self.own.total() + self.inherited.total()
    }
}
