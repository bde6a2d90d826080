//! Keys of the MSI-X capability.

use crate::key::{HUGE, Kind};

section! {
    /// MSI-X capability of the card. Without the section, the card uses MSI with one vector.
    MsiX ["msi_x"] {
        /// Number of vectors; each has a 16 B entry in the table.
        vectors: u32 = Kind::Count(1, 2048);
        /// BAR that contains the table and the pending bits.
        bar: u32 = Kind::Count(0, 5);
        /// Offset of the table in the BAR.
        table_offset_bytes: u64 = Kind::Size(0, HUGE);
        /// Offset of the pending bits in the BAR, 8 B per 64 vectors.
        pending_offset_bytes: u64 = Kind::Size(0, HUGE);
    }
}
