//! Numbers that a platform file marks as unknown.

use std::ops::Range;

/// A number that a file marks as unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    /// Path of the key, as in [`Platform::with`](crate::Platform::with).
    pub key: String,
    /// Method that determines the number, as stated in the file.
    pub reason: String,
    /// Line in the file.
    pub line: usize,
    /// Bounds of the search, those of the key and independent of the machine.
    pub bounds: (f64, f64),
    /// Start of the search.
    pub start: f64,
    /// Default of the key, 0 and 1 for `false` and `true`; `None` for a required key.
    pub default: Option<f64>,
    /// Whether it takes whole numbers only, 0 and 1 for `false` and `true`.
    pub is_whole: bool,
    /// Bytes of the file after the `=`; `None` if the number is inherited.
    pub(crate) span: Option<Range<usize>>,
}
