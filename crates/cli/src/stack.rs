//! The stack of the program.

use crate::failure::{Failure, say};
use rustix::process::{Resource, getrlimit};
use std::thread::Builder;

/// Stack that suffices for every command, in bytes: the usual limit of Linux.
const BYTES: u64 = 8 << 20;

/// Exit code of a Rust program after a panic.
const PANICKED: u8 = 101;

/// Runs `program` on a new thread with a stack of 8 MiB if the stack of this one is limited to less (`ulimit -s`); otherwise
/// directly.
pub fn with_enough_stack(program: impl FnOnce() -> u8 + Send + 'static) -> u8 {
    let Some(limit) = getrlimit(Resource::Stack).current.filter(|limit| *limit < BYTES) else { return program() };
    match Builder::new().name("lanemark".to_owned()).stack_size(BYTES as usize).spawn(program) {
        // A panic has printed its message.
        Ok(thread) => thread.join().unwrap_or(PANICKED),
        Err(error) => {
            let remedy = "raise 'ulimit -s' to 8192 (KiB), or 'ulimit -v' and 'ulimit -u'";
            let failure = Failure::Usage(format!(
                "the stack is limited to {limit} B, and no thread with a larger one can be created ({error}): {remedy}"
            ));
            say(&format!("lanemark: {failure}"));
            failure.exit_code()
        }
    }
}
