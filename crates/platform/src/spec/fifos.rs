//! Keys of the queues between a DMA engine and what its user built.

use super::Kind;
use lanemark_units::Ticks;

/// Most bytes of a queue: more than any device has on the chip.
const MOST: u64 = 64 << 20;

section! {
    /// The queues between the DMA engine and the user's circuit.
    Fifos ["fifos"] {
        text {
            /// The region through which other cards write into `ep_rx_bytes`.
            ep_rx,
        }
        /// What the queue holds that takes what the engine reads.
        rx_bytes: u64 = Kind::Size(64, MOST);
        /// What the queue holds that the engine's writes to host memory come from.
        tx_bytes: u64 = Kind::Size(64, MOST);
        /// What the queue holds that takes what other cards write.
        ep_rx_bytes: u64 = Kind::Size(64, MOST);
        /// What the queue holds that the engine's writes to other cards come from.
        ep_tx_bytes: u64 = Kind::Size(64, MOST);
        /// Bytes of the user's side of a queue.
        beat_bytes: u32 = Kind::OneOf(&[4, 8, 16, 32, 64, 128]);
        /// The user's clock: time between two beats there.
        beat_ns: Ticks = Kind::Ns(1e6), unknown 0.25 to 100.0;
    }
}
