//! Numbers that a platform file marks as unknown.

use crate::text::shortest;
use std::ops::Range;

/// Limits of an unknown number, in the unit of its key: facts that exclude other values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Smallest possible value; `None` for that of the search range.
    pub at_least: Option<f64>,
    /// Largest possible value; `None` for that of the search range.
    pub at_most: Option<f64>,
}

impl Limits {
    /// Whether a value is within the limits.
    #[must_use]
    pub fn allow(&self, value: f64) -> bool {
        self.at_least.is_none_or(|least| value >= least) && self.at_most.is_none_or(|most| value <= most)
    }

    /// Bounds of the search; `None` if they are not positive and ascending.
    pub(crate) fn of(self, (low, high): (f64, f64)) -> Option<(f64, f64)> {
        if self == Limits::default() {
            return Some((low, high));
        }
        let bounds = (self.at_least.unwrap_or(low), self.at_most.unwrap_or(high));
        (0.0 < bounds.0 && bounds.0 < bounds.1).then_some(bounds)
    }

    /// The problem of limits without values between them.
    pub(crate) fn leaves_nothing(self, (low, high): (f64, f64)) -> String {
        format!(
            "is searched from {} to {}, which leaves nothing: at_least must be above 0 and below at_most; \
             without them the search is from {} to {}",
            shortest(self.at_least.unwrap_or(low)),
            shortest(self.at_most.unwrap_or(high)),
            shortest(low),
            shortest(high)
        )
    }

    /// The limits in words.
    pub(crate) fn in_words(self) -> String {
        let word = |name: &str, limit: Option<f64>| limit.map(|limit| format!("{name} = {}", shortest(limit)));
        let words: Vec<String> =
            [word("at_least", self.at_least), word("at_most", self.at_most)].into_iter().flatten().collect();
        words.join(", ")
    }
}

/// A number that a file marks as unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    /// Path of the key, as in [`Platform::with`](crate::Platform::with).
    pub key: String,
    /// Method that determines the number, as stated in the file.
    pub reason: String,
    /// Line in the file.
    pub line: usize,
    /// Bounds of the search: those of the key, which are independent of the machine, or the limits of the file.
    pub bounds: (f64, f64),
    /// Limits that the file states.
    pub limits: Limits,
    /// Start of the search.
    pub start: f64,
    /// Default of the key, 0 and 1 for `false` and `true`; `None` for a required key, and outside of the limits.
    pub default: Option<f64>,
    /// Whether it takes whole numbers only, 0 and 1 for `false` and `true`.
    pub is_whole: bool,
    /// Bytes of the file after the `=`; `None` if the number is inherited.
    pub(crate) span: Option<Range<usize>>,
}
