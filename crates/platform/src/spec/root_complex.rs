//! Keys of the root complex.

use crate::key::Kind;
use lanemark_units::Ticks;

section! {
    /// Root complex, and the path between cores and root ports.
    RootComplex ["root_complex"] {
        /// Round trip between a core and the root complex, after which a posted write is acknowledged to the core.
        core_round_trip_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 1000.0;
        /// Extra latency, each way, of a core compared with the next one of its socket; the last core is the nearest.
        core_step_ns: Ticks = Kind::Ns(1e6), default "0" because "all cores are at the same distance", unknown 0.1 to 50.0;
        /// Extra latency, each way, of cores on other sockets than the first.
        other_socket_ns: Ticks = Kind::Ns(1e6), default "0" because "one socket", unknown 10.0 to 500.0;
        /// Posted writes that the root complex queues for the link.
        posted_queue_entries: u32 = Kind::Count(1, 4096), unknown 8.0 to 128.0;
        /// Minimum time between two requests of devices that the root complex accepts, over all root ports.
        request_ns: Ticks = Kind::Ns(1e6), default "0" because "no limit is known", unknown 0.5 to 100.0;
        /// Alignment of the start of the completions that a root port sends, given by the width of its interface to
        /// the link.
        completion_alignment_bytes: u32 = Kind::OneOf(&[4, 8, 16, 32, 64]), default "4" because "a TLP may start at any DW", unknown 4.0 to 64.0;
        /// Posted header credits that a root port advertises.
        posted_header_credits: u32 = Kind::Count(1, 2032), default "127" because "the maximum without Scaled Flow Control", unknown 8.0 to 2032.0;
        /// Posted data credits (16 B) that a root port advertises.
        posted_data_credits: u32 = Kind::Count(8, 32_752), default "2047" because "the maximum without Scaled Flow Control", unknown 64.0 to 32_752.0;
        /// Non-posted header credits that a root port advertises.
        nonposted_header_credits: u32 = Kind::Count(1, 2032), default "127" because "the maximum without Scaled Flow Control", unknown 8.0 to 2032.0;
        /// Whether root ports forward reads of a card to a card below another root port; otherwise they complete them
        /// with Unsupported Request.
        peer_reads: bool = Kind::Flag, default "true" because "most root complexes do, though it is optional";
        /// Whether root ports forward writes of a card to a card below another root port.
        peer_writes: bool = Kind::Flag, default "true" because "most root complexes do, though it is optional";
        /// From a TLP of a peer received at one root port until it is ready to be sent at another.
        peer_forward_ns: Ticks = Kind::Ns(1e6), default "0" because "no delay besides the links is known", unknown 10.0 to 2000.0;
        /// Boundary at which forwarded reads of peers are split, in addition to the RCB; 0 if they are forwarded
        /// whole.
        peer_read_bytes: u32 = Kind::OneOf(&[0, 64, 128, 256, 512]), default "64" because "a cache line, the unit of memory reads";
        /// Maximum number of such reads in flight, including those that wait to be completed.
        peer_tags: u32 = Kind::Count(1, 4096), default "32" because "a guess: the tags of a device without extended tags";
        /// Whether reads of peers are completed in the order of their arrival; otherwise only the completions of one
        /// read are in order.
        peer_in_order: bool = Kind::Flag, default "false" because "PCIe requires order only within one read";
        /// Whether the data of split reads of peers are collected into completions of up to the smallest
        /// `Max_Payload_Size` of all ports; otherwise each completion is forwarded as it arrives.
        peer_collects: bool = Kind::Flag, default "false" because "each completion is forwarded as it arrives";
        /// Requester ID of split reads of peers: bus, device and function as in a TLP (0x00ff is 00:1f.7).
        peer_requester_id: u32 = Kind::Count(0, 0xFFFF), default "255" because "00:1f.7, which no other function uses";
        /// Whether completions of split reads of peers have `peer_requester_id` as Completer ID too; otherwise the ID of
        /// the card.
        peer_completer_is_root: bool = Kind::Flag, default "false" because "the Completer ID is forwarded";
        /// Largest supported `Max_Payload_Size` of a root port; at least `link.mps_bytes`.
        mps_supported_bytes: u32 = Kind::OneOf(&[128, 256, 512, 1024, 2048, 4096]), default "128" because "the minimum for every port";
        /// Completion timeout of loads by cores.
        completion_timeout_ns: Ticks = Kind::Ns(64e9), default "50000000" because "the maximum of the default range of Device Control 2, 50 us to 50 ms", unknown 50_000.0 to 50_000_000.0;
    }
}
