//! Ctrl-C.

use crate::failure::Failure;
use lanemark_hw::end_at_once;
use lanemark_runner::Cancel;

/// What Ctrl-C cancels. A second Ctrl-C ends the program at once, without waiting for what is in flight.
pub fn cancel() -> Result<Cancel, Failure> {
    let cancel = Cancel::new();
    let flag = cancel.clone();
    handle(move || {
        if flag.cancel() {
            end();
        }
    })?;
    Ok(cancel)
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
