//! Keys of a card's own memory.

use super::Kind;
use lanemark_units::Ticks;

section! {
    /// The card's own memory as its kernels meet it: ports that know nothing of each other, an address behind exactly one of them.
    DeviceMemory ["device_memory"] {
        /// Ports, each with memory of its own behind it.
        ports: u32 = Kind::Count(1, 1024);
        /// Bytes of a word: what a port moves at a time, asked for or not.
        port_bytes: u32 = Kind::OneOf(&[8, 16, 32, 64, 128]);
        /// Bytes behind each port.
        size_bytes: u64 = Kind::Size(4096, 1 << 40), default "268435456" because "8 GiB behind 32 ports, a common stack";
        /// How long a port is held by each word.
        word_ns: Ticks = Kind::Ns(1e6), unknown 0.1 to 100.0;
        /// From the end of a word's hold of its port to its bytes in the kernel, with the request's way there.
        read_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 2000.0;
        /// What each burst of stores holds its port besides its words: the bus is turned round, and back.
        turnaround_ns: Ticks = Kind::Ns(1e6), default "0" because "words are all that is known", unknown 0.5 to 500.0;
    }
}
