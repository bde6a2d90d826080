//! A value and where it comes from.

/// One number (or choice) of a platform with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Param<T> {
    /// The value, in the unit of its key.
    pub value: T,
    /// Where it comes from.
    pub origin: Origin,
    /// The line it stands in; 0 for a default.
    pub line: usize,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A data sheet, a manual, a paper, a measurement: which one.
    Given(String),
    /// Assumed: why this value.
    Assumed(String),
    /// Fitted by `lanemark fit` to these figures.
    FittedTo(Vec<String>),
    /// Not in the file: the default, and what it stands for.
    Default(String),
    /// Nobody knows it yet: how it may be found. Only a [`Draft`](crate::Draft) has such numbers, and lets
    /// nobody see the value beside it.
    Unknown(String),
}
