//! Checks of pointers and texts that come from C.

#![allow(unsafe_code)]

use crate::message::{Failure, failed};
use crate::status::lanemark_status;
use std::ffi::{CStr, c_char};

/// Writes null to a handle, which programs may free, so that it is valid after a failure.
///
/// # Safety
/// `handle` must be null or writable.
pub(crate) unsafe fn set_null<T>(handle: *mut *mut T, what: &str) -> Result<(), Failure> {
    if handle.is_null() {
        return Err(null(what));
    }
    // SAFETY: guaranteed by the caller.
    unsafe { handle.write(std::ptr::null_mut()) };
    Ok(())
}

/// Reads a text of C.
///
/// # Safety
/// `text` must be null or NUL-terminated, and valid as long as the result is used.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| argument(format!("{what} is not UTF-8")))
}

/// Failure of a null pointer.
pub(crate) fn null(what: &str) -> Failure {
    failed(lanemark_status::BadArgument, format!("{what} is null"))
}

/// Failure of an invalid argument.
pub(crate) fn argument(what: impl Into<String>) -> Failure {
    failed(lanemark_status::BadArgument, what.into())
}
