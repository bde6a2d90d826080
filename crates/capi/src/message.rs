//! What went wrong last, in words, for each thread; and the wall that no panic passes.

use crate::lanemark_status;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call did not do what it was asked for.
pub(crate) struct Failure {
    status: lanemark_status,
    message: String,
}

/// A failure with its message.
pub(crate) fn failed(status: lanemark_status, message: String) -> Failure {
    Failure { status, message }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// What the last call on this thread said, in English and UTF-8; empty after one that did what it was asked for. Never
/// null; stays until the next call on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn lanemark_message() -> *const c_char {
    MESSAGE.with(|message| message.try_borrow().map_or(c"".as_ptr(), |message| message.as_ptr()))
}

/// Runs what a function does, keeps its message and turns a panic into an answer.
pub(crate) fn answered(call: impl FnOnce() -> Result<(), Failure>) -> lanemark_status {
    let (status, message) = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => (lanemark_status::Ok, String::new()),
        Ok(Err(Failure { status, message })) => (status, message),
        Err(_) => (lanemark_status::Internal, "a defect of this library: please report it".to_owned()),
    };
    // A message with a zero byte in it ends there.
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

    fn said() -> String {
        // SAFETY: the message ends in zero and stays until the next call.
        unsafe { CStr::from_ptr(lanemark_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_an_answer_and_the_next_call_forgets_it() {
        assert_eq!(answered(|| panic!("caught by the wall, on purpose")), lanemark_status::Internal);
        assert!(said().contains("defect"));
        assert_eq!(answered(|| Err(failed(lanemark_status::Gone, "left\0over".to_owned()))), lanemark_status::Gone);
        assert_eq!(said(), "left");
        assert_eq!(answered(|| Ok(())), lanemark_status::Ok);
        assert_eq!(said(), "");
    }
}
