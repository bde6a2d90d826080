//! Problems of a platform file.

use std::fmt;

/// One problem of a platform file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the file or preset.
    pub file: String,
    /// Line, from 1; 0 if the problem is not in a file, as in [`Platform::with`](crate::Platform::with).
    pub line: usize,
    /// Path of the key, such as `link.width_lanes`; may be empty.
    pub key: String,
    /// The problem and the rule that is violated.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: ", self.file)?,
            line => write!(f, "{}:{line}: ", self.file)?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// All problems of a platform file, at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct PlatformError {
    /// The problems in the order of their lines.
    pub problems: Vec<Problem>,
}
