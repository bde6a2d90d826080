//! Keys of the memory of a card.

use crate::key::Kind;
use lanemark_units::Ticks;

section! {
    /// Memory of the card as accessed by its kernels: independent ports, each with an address range of its own.
    DeviceMemory ["device_memory"] {
        /// Number of ports.
        ports: u32 = Kind::Count(1, 1024);
        /// Width of a port: bytes of a word, the unit of its transfers.
        port_bytes: u32 = Kind::OneOf(&[8, 16, 32, 64, 128]);
        /// Bytes behind each port.
        size_bytes: u64 = Kind::Size(4096, 1 << 40), default "268435456" because "8 GiB behind 32 ports, as in common HBM stacks";
        /// Time for which one word occupies its port.
        word_ns: Ticks = Kind::Ns(1e6), unknown 0.1 to 100.0;
        /// From the end of a word's transfer at the port until the kernel has the data, including the latency of the
        /// request.
        read_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 2000.0;
        /// Time for which a burst of stores occupies its port in addition to its words (bus turnaround).
        turnaround_ns: Ticks = Kind::Ns(1e6), default "0" because "no further cost is known", unknown 0.5 to 500.0;
    }
}
