//! Message of the last call on each thread; catches panics.

use crate::lanemark_status;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Failure of a call.
pub(crate) struct Failure {
    status: lanemark_status,
    message: String,
}

/// Creates a failure.
pub(crate) fn failed(status: lanemark_status, message: String) -> Failure {
    Failure { status, message }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Returns the message of the last call on this thread, in English and UTF-8; empty if it succeeded. Never null; valid
/// until the next call on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn lanemark_message() -> *const c_char {
    MESSAGE.with(|message| message.try_borrow().map_or(c"".as_ptr(), |message| message.as_ptr()))
}

/// Runs the body of a function, stores its message and converts a panic to a status.
pub(crate) fn guarded(call: impl FnOnce() -> Result<(), Failure>) -> lanemark_status {
    let (status, message) = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => (lanemark_status::Ok, String::new()),
        Ok(Err(Failure { status, message })) => (status, message),
        Err(_) => (lanemark_status::Internal, "internal error: please report this defect".to_owned()),
    };
    // A message ends at its first NUL.
    let message = message.split('\0').next().unwrap_or_default();
    MESSAGE.with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = CString::new(message).unwrap_or_default();
        }
    });
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn message() -> String {
        // SAFETY: the message is NUL-terminated and valid until the next call.
        unsafe { CStr::from_ptr(lanemark_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_a_status_and_the_next_call_clears_its_message() {
        assert_eq!(guarded(|| panic!("a deliberate panic")), lanemark_status::Internal);
        assert!(message().contains("defect"));
        assert_eq!(guarded(|| Err(failed(lanemark_status::Gone, "left\0over".to_owned()))), lanemark_status::Gone);
        assert_eq!(message(), "left");
        assert_eq!(guarded(|| Ok(())), lanemark_status::Ok);
        assert_eq!(message(), "");
    }
}
