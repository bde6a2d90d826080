//! Keys of the FIFOs between a DMA engine and the user logic.

use crate::key::Kind;
use lanemark_units::Ticks;

/// Maximum size of a FIFO, more than the on-chip memory of any device.
const MOST: u64 = 64 << 20;

section! {
    /// FIFOs between the DMA engine and the user logic.
    Fifos ["fifos"] {
        text {
            /// Region through which other cards write into the FIFO of `ep_rx_bytes`.
            ep_rx,
        }
        /// Capacity of the FIFO that receives data read by the engine.
        rx_bytes: u64 = Kind::Size(64, MOST);
        /// Capacity of the FIFO that feeds the engine's writes to host memory.
        tx_bytes: u64 = Kind::Size(64, MOST);
        /// Capacity of the FIFO that receives data written by other cards.
        ep_rx_bytes: u64 = Kind::Size(64, MOST);
        /// Capacity of the FIFO that feeds the engine's writes to other cards.
        ep_tx_bytes: u64 = Kind::Size(64, MOST);
        /// Width of a FIFO on the side of the user logic.
        beat_bytes: u32 = Kind::OneOf(&[4, 8, 16, 32, 64, 128]);
        /// Clock period of the user logic: time between two beats on its side.
        beat_ns: Ticks = Kind::Ns(1e6), unknown 0.25 to 100.0;
    }
}
