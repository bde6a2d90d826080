//! Why the command ended early, and with which exit code.

use lanemark_runner::{Class, RunError};
use std::io::Write;

/// The reason why the command ended.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something the user typed, or a file of theirs, is wrong.
    #[error("{0}")]
    Usage(String),
    /// A check failed.
    #[error("{0}")]
    Check(String),
    /// Something that is needed is absent.
    #[error("skipped, because {0}")]
    Absent(String),
    /// Ctrl-C.
    #[error("interrupted; what was measured until then is kept")]
    Interrupted,
    /// Standard output cannot be written.
    #[error("writing the output: {0}")]
    Output(#[from] std::io::Error),
}

impl Failure {
    /// Answers that cannot be true.
    pub fn impossible(texts: &[String]) -> Failure {
        let answers = if texts.len() == 1 { "1 answer".to_owned() } else { format!("{} answers", texts.len()) };
        Failure::Check(format!("{answers} cannot be true:\n{}", texts.join("\n")))
    }

    /// 1 a check failed, 2 usage or bad input, 77 skipped, or a device behind a runtime failed, 130 interrupted.
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
    /// The error by its class; what is about one option is said of that option.
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

/// Tells the user on standard error; if nobody listens there, that is no failure.
pub fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "{message}");
}
