//! Keys of the register layout of a card.

use crate::key::{HUGE, Kind};

section! {
    /// Layout of the registers of the card: timers and user registers. Without the section, all registers keep the
    /// value written.
    Registers ["registers"] {
        text {
            /// Region that contains the registers.
            region,
        }
        /// Clock of the card, which its timers count.
        clock_ghz: f64 = Kind::Number(0.001, 10.0), unknown 0.05 to 2.0;
        /// Offset of the timers in the region, 8 B each: a free-running one, then one per channel of the DMA engine.
        timer_offset_bytes: u64 = Kind::Size(0, HUGE);
        /// Offset of the user registers in the region.
        user_offset_bytes: u64 = Kind::Size(0, HUGE);
        /// Length of the user registers; writes to all other registers are ignored.
        user_bytes: u64 = Kind::Size(8, HUGE);
    }
}
