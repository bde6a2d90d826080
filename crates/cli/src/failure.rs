//! Errors of the command, and their exit codes.

use lanemark_runner::{Class, RunError};
use std::io::Write;

/// Reason for the end of the command.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An invalid command line or input file.
    #[error("{0}")]
    Usage(String),
    /// A check failed.
    #[error("{0}")]
    Check(String),
    /// A missing device, runtime or permission.
    #[error("skipped, because {0}")]
    Absent(String),
    /// An interrupt by Ctrl-C.
    #[error("interrupted; the results so far are kept")]
    Interrupted,
    /// A failed write to standard output.
    #[error("writing the output: {0}")]
    Output(#[from] std::io::Error),
}

impl Failure {
    /// A failed check: answers that are physically impossible.
    #[must_use]
    pub fn impossible(texts: &[String]) -> Failure {
        let answers = if texts.len() == 1 { "1 answer".to_owned() } else { format!("{} answers", texts.len()) };
        Failure::Check(format!("{answers} exceed what is physically possible:\n{}", texts.join("\n")))
    }

    /// Exit code: 1 failed check, 2 usage or bad input, 77 skipped or failed runtime device, 130 interrupted.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Failure::Check(_) | Failure::Output(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Absent(_) => 77,
            Failure::Interrupted => 130,
        }
    }
}

impl From<RunError> for Failure {
    /// Converts by the class of the error; a leading field name becomes the name of its option.
    fn from(error: RunError) -> Failure {
        let text = error.to_string();
        let text = match error.field().and_then(|field| Some((field, text.strip_prefix(field)?))) {
            Some((field, rest)) => format!("--{}{rest}", field.replace('_', "-")),
            None => text,
        };
        match error.class() {
            Class::Usage => Failure::Usage(text),
            Class::Absent => Failure::Absent(text),
            Class::Interrupted => Failure::Interrupted,
            Class::Failed => Failure::Check(text),
        }
    }
}

/// Prints a message to standard error. A failed write is ignored.
pub fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "{message}");
}
