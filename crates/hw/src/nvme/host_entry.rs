//! Entries of queues in host memory.

#![allow(unsafe_code)]

use crate::host_pages::HostPages;
use crate::linux_sysfs::access;

/// Stores a submission of 64 B at a multiple of 8, by eight stores.
#[inline]
pub(crate) fn store_entry(pages: &HostPages, at: u64, entry: [u64; 8]) {
    let to = pages.within(at / 8 * 8, size_of_val(&entry));
    for (nth, word) in entry.into_iter().enumerate() {
        // SAFETY: the 64 B are within the mapping and aligned; no reference to them exists.
        unsafe { access::store(to.wrapping_add(8 * nth), 8, word) };
    }
}
