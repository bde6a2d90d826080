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
    /// Unknown, with a hint how to determine it. Only a [`Draft`](crate::Draft) has such values, and it does not
    /// expose them.
    Unknown(String),
}
