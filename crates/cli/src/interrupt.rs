//! Handling of Ctrl-C.

use crate::failure::Failure;
use lanemark_hw::end_at_once;
use lanemark_runner::Cancel;

/// Installs a handler of Ctrl-C that sets the returned flag. A second Ctrl-C ends the program immediately.
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

/// Installs a handler of Ctrl-C that ends the program immediately, even if the parent process ignores the signal.
pub fn exit_on_ctrl_c() -> Result<(), Failure> {
    handle(end)
}

fn end() {
    end_at_once(Failure::Interrupted.exit_code())
}

fn handle(what: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    ctrlc::set_handler(what).map_err(|error| match error {
        ctrlc::Error::System(error) => Failure::Usage(format!(
            "the thread that handles Ctrl-C cannot be created ({error}): raise the limits of processes (ulimit -u) and of memory \
             (ulimit -v)"
        )),
        error => Failure::Check(format!("installing the handler of Ctrl-C failed: {error}")),
    })
}
