//! Entries of queues in host memory.

#![allow(unsafe_code)]

use super::command::ID;
use super::error::NvmeError;
use super::memory::{COMPLETION, ENTRIES, PAGE, SUBMISSION, Slots};
use crate::host_pages::HostPages;
use std::marker::PhantomData;

/// A page of host memory with entries of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostSlots<'a> {
    start: *mut u64,
    pages: PhantomData<&'a HostPages>,
}

impl HostSlots<'_> {
    /// The page at a multiple of a page.
    pub(crate) fn new(pages: &HostPages, at: u64) -> HostSlots<'_> {
        assert!(at.is_multiple_of(PAGE), "a queue at {at:#x}");
        HostSlots { start: pages.within(at, PAGE as usize).cast(), pages: PhantomData }
    }

    /// The word of 8 B with this number in an entry of `bytes` bytes.
    #[inline]
    const fn word(&self, index: u32, bytes: u64, word: usize) -> *mut u64 {
        self.start.wrapping_add((index as usize % ENTRIES as usize) * (bytes as usize / 8) + word)
    }
}

impl Slots for HostSlots<'_> {
    #[inline]
    fn submit(&self, index: u32, words: &[u64; 8], id: u16) -> Result<(), NvmeError> {
        for (nth, word) in words.iter().enumerate() {
            let id = if nth == 0 { u64::from(id) << ID } else { 0 };
            // SAFETY: 64 entries of 64 B fill the page, which is aligned and stays mapped; no reference to it exists.
            unsafe { self.word(index, SUBMISSION, nth).write_volatile(word | id) };
        }
        Ok(())
    }

    #[inline]
    fn completion(&self, index: u32) -> Result<u64, NvmeError> {
        // SAFETY: as above, with entries of 16 B.
        Ok(unsafe { self.word(index, COMPLETION, 1).read_volatile() })
    }
}
