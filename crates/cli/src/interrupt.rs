//! Ctrl-C.

use crate::failure::Failure;
use lanemark_hw::end_at_once;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What Ctrl-C sets; the second time it ends the program at once, for nobody wants to wait then for what is under way.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    handle(move || {
        if flag.swap(true, Ordering::Relaxed) {
            end();
        }
    })?;
    Ok(interrupted)
}

/// There is nothing to keep: Ctrl-C ends the program at once, also where it was started with it ignored.
pub fn ends() -> Result<(), Failure> {
    handle(end)
}

fn end() {
    end_at_once(Failure::Interrupted.exit_code())
}

fn handle(what: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    ctrlc::set_handler(what).map_err(|error| Failure::Check(format!("Ctrl-C cannot be caught: {error}")))
}
