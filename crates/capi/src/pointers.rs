//! Checks of pointers and texts that come from C.

#![allow(unsafe_code)]

use crate::message::{Failure, failed};
use crate::status::lanemark_status;
use std::ffi::{CStr, c_char};
use std::slice;

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

/// The `count` values from `start`.
///
/// # Safety
/// `start` must be null or hold `count` values that do not change meanwhile.
pub(crate) unsafe fn slice_of<'a, T>(start: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    if !has_values(start, count, what)? {
        return Ok(&[]);
    }
    // SAFETY: guaranteed by the caller; the length was checked.
    Ok(unsafe { slice::from_raw_parts(start, count) })
}

/// The `count` values from `start`, to be written.
///
/// # Safety
/// `start` must be null or hold `count` values without other users meanwhile.
pub(crate) unsafe fn slice_of_mut<'a, T>(start: *mut T, count: usize, what: &str) -> Result<&'a mut [T], Failure> {
    if !has_values(start, count, what)? {
        return Ok(&mut []);
    }
    // SAFETY: guaranteed by the caller; the length was checked.
    Ok(unsafe { slice::from_raw_parts_mut(start, count) })
}

/// Whether there are values, that is, `count` is not 0. A length in bytes must not wrap.
fn has_values<T>(start: *const T, count: usize, what: &str) -> Result<bool, Failure> {
    let most = isize::MAX as usize / size_of::<T>();
    match count {
        0 => Ok(false),
        _ if start.is_null() => Err(null(what)),
        _ if count > most => Err(argument(format!("{count} {what} are more than memory can hold: at most {most}"))),
        _ => Ok(true),
    }
}

/// Failure of a null pointer.
pub(crate) fn null(what: &str) -> Failure {
    failed(lanemark_status::BadArgument, format!("{what} is null"))
}

/// Failure of an invalid argument.
pub(crate) fn argument(what: impl Into<String>) -> Failure {
    failed(lanemark_status::BadArgument, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{guarded, lanemark_message};

    #[test]
    fn a_count_whose_bytes_would_wrap_is_refused() {
        let word = [7_u32];
        let most = isize::MAX as usize / 4;
        for count in [1 << 62, most + 1, usize::MAX] {
            let refused = has_values(word.as_ptr(), count, "words").map(|_| ());
            assert_eq!(guarded(|| refused), lanemark_status::BadArgument);
            let message = format!("{count} words are more than memory can hold: at most {most}");
            // SAFETY: the message is NUL-terminated and valid until the next call.
            assert_eq!(unsafe { CStr::from_ptr(lanemark_message()) }.to_str(), Ok(&*message));
        }
        assert_eq!(has_values(word.as_ptr(), most, "words").ok(), Some(true));
        assert_eq!(has_values(std::ptr::null::<u32>(), 0, "words").ok(), Some(false));
        assert!(has_values(std::ptr::null::<u32>(), 1, "words").is_err());
        // SAFETY: the array holds one word.
        assert_eq!(unsafe { slice_of(word.as_ptr(), 1, "words") }.ok(), Some(&word[..]));
    }
}
