//! Keys of a card's MSI-X capability.

use super::{HUGE, Kind};

section! {
    /// The table of vectors through which the card interrupts; without it, its one message is plain MSI.
    MsiX ["msi_x"] {
        /// Vectors, each an entry of 16 B in the table.
        vectors: u32 = Kind::Count(1, 2048);
        /// In which BAR the table and the pending bits are.
        bar: u32 = Kind::Count(0, 5);
        /// Where the table starts in the BAR.
        table_offset_bytes: u64 = Kind::Size(0, HUGE);
        /// Where the pending bits start in the BAR: 8 B for every 64 vectors.
        pending_offset_bytes: u64 = Kind::Size(0, HUGE);
    }
}
