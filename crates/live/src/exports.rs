//! The functions that the script of a page calls.
//!
//! Text passes through one buffer: the script asks for room, writes a message there, and calls a function, which replaces
//! it by its reply and returns the length. A reply is a JSON object; `problem` in it says why there is nothing else.

#![allow(unsafe_code, reason = "an exported name is unsafe; nothing here uses a pointer")]

use crate::message::{Page, answer, open};
use serde_json::json;
use std::cell::RefCell;

thread_local! {
    /// The buffer, and the opened page.
    static PAGE: RefCell<(Vec<u8>, Option<Page>)> = const { RefCell::new((Vec::new(), None)) };
}

/// Makes room for a message of `len` bytes and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn room(len: usize) -> *mut u8 {
    PAGE.with_borrow_mut(|(buffer, _)| {
        buffer.clear();
        buffer.resize(len, 0);
        buffer.as_mut_ptr()
    })
}

/// Opens a page with the message in the buffer; returns the length of the reply.
#[unsafe(no_mangle)]
pub extern "C" fn open_page() -> usize {
    PAGE.with_borrow_mut(|(buffer, page)| {
        let reply = match open(&String::from_utf8_lossy(buffer)) {
            Ok(opened) => {
                *page = Some(opened);
                json!({})
            }
            Err(error) => json!({"problem": error.to_string()}),
        };
        *buffer = reply.to_string().into_bytes();
        buffer.len()
    })
}

/// Answers the message in the buffer; returns the length of the reply.
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> usize {
    PAGE.with_borrow_mut(|(buffer, page)| {
        let reply = match page {
            None => json!({"problem": "no page is open"}),
            Some(page) => answer(page, &String::from_utf8_lossy(buffer))
                .unwrap_or_else(|error| json!({"problem": error.to_string()})),
        };
        *buffer = reply.to_string().into_bytes();
        buffer.len()
    })
}

/// Address of the reply.
#[unsafe(no_mangle)]
pub extern "C" fn reply() -> *const u8 {
    PAGE.with_borrow(|(buffer, _)| buffer.as_ptr())
}
