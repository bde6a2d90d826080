//! Words by which this program was started.

use std::ffi::OsString;
use std::sync::OnceLock;

/// The words of the program, and its arguments.
static WORDS: OnceLock<(Vec<OsString>, Vec<OsString>)> = OnceLock::new();

/// Sets the words of the program and its arguments; later calls have no effect.
pub fn set(program: Vec<OsString>, arguments: Vec<OsString>) {
    // The first call is that of the command itself.
    let _ = WORDS.set((program, arguments));
}

/// The words that start this program; empty if they are unknown.
pub fn program() -> &'static [OsString] {
    WORDS.get().map_or(&[], |(program, _)| program)
}

/// The arguments.
pub fn arguments() -> &'static [OsString] {
    WORDS.get().map_or(&[], |(_, arguments)| arguments)
}
