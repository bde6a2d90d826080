//! Keys of the root complex.

use super::Kind;
use lanemark_units::Ticks;

section! {
    /// The way from a core to the root port.
    RootComplex ["root_complex"] {
        /// From a core to the root complex and back: after it a posted write is acknowledged to the core.
        core_round_trip_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 1000.0;
        /// What a core is farther from it, each way, than the next core of its socket; the last one is the nearest.
        core_step_ns: Ticks = Kind::Ns(1e6), default "0" because "all cores are alike", unknown 0.1 to 50.0;
        /// What cores of other sockets than the first are farther from it, each way, besides.
        other_socket_ns: Ticks = Kind::Ns(1e6), default "0" because "one socket", unknown 10.0 to 500.0;
        /// Posted writes it holds on their way to the link.
        posted_queue_entries: u32 = Kind::Count(1, 4096), unknown 8.0 to 128.0;
        /// Time between two requests of devices that it takes, reads and writes of all root ports together.
        request_ns: Ticks = Kind::Ns(1e6), default "0" because "no limit is known", unknown 0.5 to 100.0;
        /// Posted header credits a root port advertises.
        posted_header_credits: u32 = Kind::Count(1, 127), default "127" because "as many as a counter can grant", unknown 8.0 to 127.0;
        /// Posted data credits of 16 B a root port advertises.
        posted_data_credits: u32 = Kind::Count(8, 2047), default "2047" because "as many as a counter can grant", unknown 64.0 to 2047.0;
        /// Non-posted header credits a root port advertises.
        nonposted_header_credits: u32 = Kind::Count(1, 127), default "127" because "as many as a counter can grant", unknown 8.0 to 127.0;
        /// Whether it sends reads of a card below one root port on to a card below another; otherwise they are Unsupported Requests.
        peer_reads: bool = Kind::Flag, default "true" because "most do, though none has to";
        /// Whether it does so with writes.
        peer_writes: bool = Kind::Flag, default "true" because "most do, though none has to";
        /// From a TLP of a peer at one root port until it can go at the other.
        peer_forward_ns: Ticks = Kind::Ns(1e6), default "0" because "nothing is known but the links", unknown 10.0 to 2000.0;
        /// It splits peers' reads at multiples of this, and of the RCB, into reads of its own; 0 if they pass whole.
        peer_read_bytes: u32 = Kind::OneOf(&[0, 64, 128, 256, 512]), default "64" because "a cache line, which is what it reads of memory";
        /// Such reads that may be under way, or wait for their turn to go back.
        peer_tags: u32 = Kind::Count(1, 4096), default "32" because "a guess: as many as a device without extended tags has";
        /// Whether it answers peers' reads in the order in which they came; otherwise as the answers come, those of one read in order.
        peer_in_order: bool = Kind::Flag, default "false" because "no rule asks for more than the order of one read";
        /// Largest `Max_Payload_Size` that a root port supports; `link.mps_bytes` in any case.
        mps_supported_bytes: u32 = Kind::OneOf(&[128, 256, 512, 1024, 2048, 4096]), default "128" because "what every port supports";
        /// How long it waits for the completion of a core's load.
        completion_timeout_ns: Ticks = Kind::Ns(64e9), default "50000000" because "the longest of the default range of Device Control 2, 50 us to 50 ms", unknown 50_000.0 to 50_000_000.0;
    }
}
