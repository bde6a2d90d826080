//! Problems of a device file.

use std::fmt;

/// One problem of a device file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Path of the key, such as `engine.address_bits`; may be empty.
    pub key: String,
    /// The problem and the rule that is violated.
    pub message: String,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for FileProblem {}

/// All problems of a device file, at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(FileProblem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct DeviceFileError {
    /// The problems in the order of their lines.
    pub problems: Vec<FileProblem>,
}
