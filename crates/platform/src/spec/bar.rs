//! Keys of a base address register.

use crate::key::{HUGE, Kind};

section! {
    /// A base address register.
    Bar ["bar"] {
        /// Index of the BAR.
        index: u32 = Kind::Count(0, 5);
        /// Bus address to which the host maps it. From 4 GiB on, requests need 4 DW headers.
        address_bytes: u64 = Kind::Size(0, HUGE);
        /// Length of its window, a power of two.
        size_bytes: u64 = Kind::Size(16, HUGE);
        /// Whether it is prefetchable.
        prefetchable: bool = Kind::Flag;
    }
}
