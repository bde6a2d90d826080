//! Method for many small copies, from a table that `lanemark tune` has written.

#![allow(unsafe_code)]
#![allow(non_camel_case_types)] // Names follow C conventions.
#![allow(clippy::doc_markdown)] // Doc comments become those of the header.

use crate::message::{failed, guarded};
use crate::pointers::{argument, null, set_null, text};
use crate::status::lanemark_status;
use lanemark_copy_plan::{CopyPlan, CopyTable};
use lanemark_method::{CopyBy, CopyDirection};
use std::ffi::c_char;

/// Direction for `lanemark_copy_plan`: to the device.
pub const LANEMARK_TO_DEVICE: u32 = 0;
/// Direction for `lanemark_copy_plan`: from the device.
pub const LANEMARK_FROM_DEVICE: u32 = 1;

/// A table of methods for many small copies.
#[derive(Debug)]
pub struct lanemark_copy_table(CopyPlan);

/// How to copy many pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum lanemark_copy_method {
    /// The table has no method: it is null, or has no times of the direction, or the direction is invalid.
    Unknown = 0,
    /// An asynchronous copy for each piece, and one wait.
    Loop = 1,
    /// One call with the list of all pieces.
    Batch = 2,
    /// One copy of a packed buffer, and a kernel that distributes or gathers the pieces.
    Packed = 3,
    /// A kernel that accesses the pieces in host memory.
    InPlace = 4,
    /// Stores of the processor through a BAR, or loads.
    Stores = 5,
}

impl From<CopyBy> for lanemark_copy_method {
    fn from(by: CopyBy) -> lanemark_copy_method {
        match by {
            CopyBy::Loop => lanemark_copy_method::Loop,
            CopyBy::Batch => lanemark_copy_method::Batch,
            CopyBy::Packed => lanemark_copy_method::Packed,
            CopyBy::InPlace => lanemark_copy_method::InPlace,
            CopyBy::Stores => lanemark_copy_method::Stores,
        }
    }
}

/// Reads the table at `path`, which `lanemark tune` has written. Sets `table` to a handle for `lanemark_copy_table_close`, or
/// to null on failure. Several threads may use the handle at a time.
///
/// # Safety
/// `path` must be NUL-terminated; `table` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_copy_table_open(
    path: *const c_char,
    table: *mut *mut lanemark_copy_table,
) -> lanemark_status {
    guarded(|| {
        // SAFETY: guaranteed by the caller.
        let path = unsafe {
            set_null(table, "table")?;
            text(path, "path")?
        };
        let read = std::fs::read_to_string(path);
        let read = read.map_err(|error| failed(lanemark_status::System, format!("{path}: {error}")))?;
        let found = CopyTable::from_json(&read).map_err(|error| argument(format!("{path}: {error}")))?;
        let opened = Box::into_raw(Box::new(lanemark_copy_table(CopyPlan::new(&found))));
        // SAFETY: it was written above.
        unsafe { table.write(opened) };
        Ok(())
    })
}

/// Returns the fastest method for `count` pieces of `bytes` bytes; `direction` is LANEMARK_TO_DEVICE or LANEMARK_FROM_DEVICE.
/// It takes a few nanoseconds, and leaves the message of `lanemark_message` as it is.
///
/// # Safety
/// `table` must be null, or come from `lanemark_copy_table_open` and not be closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_copy_plan(
    table: *const lanemark_copy_table,
    bytes: u64,
    count: u32,
    direction: u32,
) -> lanemark_copy_method {
    let direction = match direction {
        LANEMARK_TO_DEVICE => CopyDirection::ToDevice,
        LANEMARK_FROM_DEVICE => CopyDirection::FromDevice,
        _ => return lanemark_copy_method::Unknown,
    };
    // SAFETY: guaranteed by the caller.
    let chosen = unsafe { table.as_ref() }.and_then(|table| table.0.choose(bytes, count, direction));
    chosen.map_or(lanemark_copy_method::Unknown, lanemark_copy_method::from)
}

/// Closes a table.
///
/// # Safety
/// `table` must come from `lanemark_copy_table_open`, and not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_copy_table_close(table: *mut lanemark_copy_table) -> lanemark_status {
    guarded(|| {
        if table.is_null() {
            return Err(null("table"));
        }
        // SAFETY: guaranteed by the caller.
        drop(unsafe { Box::from_raw(table) });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::ptr;

    const TABLE: &str = r#"{"schema": 1, "machine": "a test", "points": [
        {"direction": "to_device", "by": "loop", "copies": 1, "size_bytes": 64, "ns": 5000},
        {"direction": "to_device", "by": "loop", "copies": 9, "size_bytes": 64, "ns": 21000},
        {"direction": "to_device", "by": "in_place", "copies": 1, "size_bytes": 64, "ns": 9000},
        {"direction": "to_device", "by": "in_place", "copies": 9, "size_bytes": 64, "ns": 9100}]}"#;

    fn opened(name: &str, content: &str) -> (lanemark_status, *mut lanemark_copy_table) {
        let file = std::env::temp_dir().join(format!("lanemark-copies-{}-{name}.json", std::process::id()));
        std::fs::write(&file, content).unwrap();
        let path = CString::new(file.to_str().unwrap()).unwrap();
        let mut table = ptr::null_mut();
        // SAFETY: the path is NUL-terminated, and the handle is writable.
        let status = unsafe { lanemark_copy_table_open(path.as_ptr(), &raw mut table) };
        std::fs::remove_file(&file).unwrap();
        (status, table)
    }

    #[test]
    fn a_table_names_the_fastest_method_of_each_count() {
        let (status, table) = opened("good", TABLE);
        assert_eq!(status, lanemark_status::Ok);
        // SAFETY: the table is open.
        let chosen = |count, direction| unsafe { lanemark_copy_plan(table, 64, count, direction) };
        assert_eq!(chosen(2, LANEMARK_TO_DEVICE), lanemark_copy_method::Loop);
        assert_eq!(chosen(100, LANEMARK_TO_DEVICE), lanemark_copy_method::InPlace);
        assert_eq!(chosen(2, LANEMARK_FROM_DEVICE), lanemark_copy_method::Unknown);
        assert_eq!(chosen(2, 2), lanemark_copy_method::Unknown);
        // SAFETY: it is closed once; null is refused.
        let closed = unsafe { [lanemark_copy_table_close(table), lanemark_copy_table_close(ptr::null_mut())] };
        assert_eq!(closed, [lanemark_status::Ok, lanemark_status::BadArgument]);
    }

    #[test]
    fn a_file_that_is_no_table_leaves_a_null_handle() {
        let (status, table) = opened("other", &TABLE.replace("\"schema\": 1", "\"schema\": 7"));
        assert_eq!((status, table.is_null()), (lanemark_status::BadArgument, true));
        // SAFETY: null is accepted.
        assert_eq!(unsafe { lanemark_copy_plan(table, 1, 1, 0) }, lanemark_copy_method::Unknown);
    }
}
