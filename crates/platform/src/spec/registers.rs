//! Keys of what the registers of a card are.

use super::{HUGE, Kind};

section! {
    /// Which of a card's registers are timers and which are its user's; without the section all of them keep what is written.
    Registers ["registers"] {
        text {
            /// The region of registers that they are in.
            region,
        }
        /// The card's clock, whose ticks its timers count.
        clock_ghz: f64 = Kind::Number(0.001, 10.0), unknown 0.05 to 2.0;
        /// Where in the region its timers lie, of 8 B each: one that always runs, then that of each channel of its DMA engine.
        timer_offset_bytes: u64 = Kind::Size(0, HUGE);
        /// Where in the region the user's registers lie.
        user_offset_bytes: u64 = Kind::Size(0, HUGE);
        /// How long they are; what is written to other registers is lost.
        user_bytes: u64 = Kind::Size(8, HUGE);
    }
}
