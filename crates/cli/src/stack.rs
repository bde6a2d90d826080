//! The stack of the program.

use crate::failure::{Failure, say};
use rustix::process::{Resource, getrlimit};
use std::thread::Builder;

/// Stack that suffices for every command: the usual limit of Linux.
const BYTES: u64 = 8 << 20;

/// Exit code after a panic, as the language defines it.
const PANICKED: u8 = 101;

/// Runs the program on a thread of its own if its stack is limited to less than commands need (`ulimit -s`).
pub fn with_enough_stack(program: impl FnOnce() -> u8 + Send + 'static) -> u8 {
    let Some(limit) = getrlimit(Resource::Stack).current.filter(|limit| *limit < BYTES) else { return program() };
    match Builder::new().name("lanemark".to_owned()).stack_size(BYTES as usize).spawn(program) {
        // A panic has printed its message.
        Ok(thread) => thread.join().unwrap_or(PANICKED),
        Err(error) => {
            let remedy = "raise 'ulimit -s' to 8192, or 'ulimit -v' and 'ulimit -u'";
            let failure = Failure::Usage(format!(
                "the stack is limited to {limit} B, and no thread with a larger one can be created ({error}): {remedy}"
            ));
            say(&format!("lanemark: {failure}"));
            failure.exit_code()
        }
    }
}
