//! The keys of a platform file, declared once: name, unit, range, default, description.
//!
//! Each `section!` declares a struct with one [`Param`](crate::Param) per key, its reader, and its rows for schema
//! and guide. A key ends in its unit; a key without a unit is a count or a choice.

use crate::key::HUGE;
pub use crate::key::{Key, Kind, Raw};
use crate::memcpy::Variant;
pub use crate::sections::SectionRow;
use lanemark_units::Ticks;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
        }

        impl $name {
            /// The words in a file, in the order of the variants.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word in a file.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl crate::key::Value for $name {
            fn from_raw(raw: &crate::key::Raw) -> Option<$name> {
                match raw {
                    $(crate::key::Raw::Word($word) => Some($name::$variant),)*
                    _ => None,
                }
            }
            fn to_raw(&self) -> crate::key::Raw {
                crate::key::Raw::Word(self.word())
            }
        }
    };
}

words! {
    /// Vendor of the processor; selects the table of effective memory types.
    Vendor {
        /// Intel.
        Intel = "intel",
        /// AMD.
        Amd = "amd",
        /// Arm: page tables alone give the memory type. `uc` stands for Device-nGnRE, `wc` for Normal Non-cacheable.
        Arm = "arm",
    }
}

words! {
    /// How a partially filled write-combining buffer is evicted.
    WcPartialFlush {
        /// As aligned writes of 8 B with byte enables.
        EightBytes = "8B",
        /// As aligned writes of 4 B with byte enables.
        Dw = "dw",
        /// As one write per contiguous run of valid bytes.
        Contiguous = "contiguous",
    }
}

words! {
    /// Kind of a region.
    RegionKind {
        /// Registers: an access may have side effects.
        Registers = "registers",
        /// On-chip or on-board SRAM.
        Sram = "sram",
        /// DRAM with beat counters that are cleared by reading.
        Ddr = "ddr",
        /// FIFO: each write pushes an entry, each read pops one.
        Fifo = "fifo",
    }
}

words! {
    /// When a switch starts to forward a TLP.
    Forwarding {
        /// As soon as its header has been received and the rest cannot arrive too late.
        CutThrough = "cut_through",
        /// After the whole TLP has been received.
        StoreAndForward = "store_and_forward",
    }
}

words! {
    /// Reordering of TLPs by a port where the PCIe ordering rules permit but do not require it.
    OrderingChoice {
        /// No optional reordering.
        Never = "never",
        /// TLPs with relaxed or ID-based ordering pass TLPs that wait for credits.
        Blocked = "blocked",
        /// Random reordering wherever permitted, to test software that must not rely on order.
        Random = "random",
    }
}

macro_rules! section {
    (
        $(#[$doc:meta])*
        $name:ident [$path:literal] {
            $(text { $($(#[$tdoc:meta])* $text:ident,)* })?
            $(
                $(#[doc = $kdoc:literal])+
                $key:ident: $type:ty = $kind:expr
                    $(, default $default:literal because $because:literal)?
                    $(, unknown $low:literal to $high:literal)?;
            )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($($(#[$tdoc])* pub $text: String,)*)?
            $($(#[doc = $kdoc])+ pub $key: crate::Param<$type>,)*
        }

        impl $name {
            /// Name of the section in a file.
            pub const PATH: &'static str = $path;
            /// Keys of plain text, without an origin.
            pub const TEXTS: &'static [&'static str] = &[$($(stringify!($text),)*)?];
            /// All other keys.
            pub const KEYS: &'static [crate::key::Key] = &[$(crate::key::Key {
                name: stringify!($key),
                doc: concat!($($kdoc),+),
                kind: $kind,
                default: section!(@default $($default, $because)?),
                searched: section!(@searched $($low, $high)?),
            },)*];

        }

        impl crate::sections::SectionType for $name {
            const PATH: &'static str = $path;

            fn read(section: &mut crate::section::Section<'_, '_>) -> Option<$name> {
                $($(let $text = section.text(stringify!($text));)*)?
                $(let $key = section.param(Self::KEYS, stringify!($key));)*
                section.refuse_others(Self::TEXTS, Self::KEYS);
                Some($name { $($($text: $text?,)*)? $($key: $key?,)* })
            }
        }

        impl crate::sections::AnySection for $name {
            fn texts(&self) -> Vec<(&'static str, &str)> {
                vec![$($((stringify!($text), self.$text.as_str()),)*)?]
            }

            fn each(&self, visit: &mut dyn FnMut(&'static str, crate::key::Raw, &crate::Origin)) {
                $(visit(stringify!($key), crate::key::Value::to_raw(&self.$key.value), &self.$key.origin);)*
            }

            fn set(&mut self, key: &str, raw: &crate::key::Raw, origin: crate::Origin) -> bool {
                match key {
                    $(stringify!($key) => match crate::key::Value::from_raw(raw) {
                        Some(value) => {
                            self.$key = crate::Param { value, origin, line: self.$key.line };
                            true
                        }
                        None => false,
                    },)*
                    _ => false,
                }
            }
        }
    };
    (@default) => { None };
    (@default $default:literal, $because:literal) => { Some(($default, $because)) };
    (@searched) => { None };
    (@searched $low:literal, $high:literal) => { Some(($low, $high)) };
}

mod bar;
mod chunk_timing;
mod coherence;
mod device_memory;
mod driver;
mod fifos;
mod iommu;
mod kernel;
mod memory;
mod msi_x;
mod raw;
mod read_data;
mod registers;
mod retimer;
mod root_complex;
mod runtime;

pub use bar::Bar;
pub use chunk_timing::{ChunkTiming, DmaRead, DmaWrite};
pub use coherence::{Coherence, FlushLine};
pub use device_memory::DeviceMemory;
pub use driver::Driver;
pub use fifos::Fifos;
pub use iommu::Iommu;
pub use kernel::Kernel;
pub use memory::{Memory, Merging};
pub use msi_x::MsiX;
pub use read_data::ReadData;
pub use registers::Registers;
pub use retimer::Retimer;
pub use root_complex::RootComplex;
pub use runtime::Runtime;

section! {
    /// The cores and their buffers.
    Core ["core"] {
        text {
            /// Name of the processor.
            name,
        }
        /// Vendor, which selects the table of effective memory types.
        vendor: Vendor = Kind::Choice(Vendor::WORDS);
        /// Number of cores that a plan may use.
        cores: u32 = Kind::Count(1, 1024), default "1" because "one core";
        /// Number of sockets. Cores are numbered socket by socket, with the same number in each but the last; the
        /// card is attached to the first.
        sockets: u32 = Kind::Count(1, 8), default "1" because "one socket";
        /// Clock during the measurement.
        clock_ghz: f64 = Kind::Number(0.1, 10.0), unknown 1.0 to 6.0;
        /// Cycles per iteration of a compiled loop of stores of 1 to 8 B.
        store_loop_cycles: f64 = Kind::Number(0.25, 100.0), default "1" because "an optimised loop stores once per cycle", unknown 0.5 to 20.0;
        /// Width of the widest ordinary vector register.
        vector_bytes: u32 = Kind::OneOf(&[16, 32, 64]);
        /// Whether the core supports MOVDIRI and MOVDIR64B.
        direct_stores: bool = Kind::Flag, default "false" because "introduced with Tremont and Tiger Lake";
        /// Variant of memcpy that programs use.
        memcpy: Variant = Kind::Choice(Variant::NAMES);
        /// Entries of the store buffer: retired stores that have not left the core.
        store_buffer_entries: u32 = Kind::Count(1, 1024), unknown 16.0 to 128.0;
        /// Number of 64 B write-combining buffers.
        wc_buffers: u32 = Kind::Count(1, 128), unknown 4.0 to 32.0;
        /// How a partially filled write-combining buffer is evicted.
        wc_partial_flush: WcPartialFlush = Kind::Choice(WcPartialFlush::WORDS);
        /// Maximum number of unfenced loads from WC memory in flight.
        wc_loads_in_flight: u32 = Kind::Count(1, 128), default "1" because "no overlap of uncached loads";
        /// Number of 64 B buffers that MOVNTDQA fills from WC memory; 0 if it behaves as an ordinary load.
        streaming_load_buffers: u32 = Kind::Count(0, 128), unknown 4.0 to 32.0;
        /// Line fill buffers: maximum number of outstanding loads of WT, WP or WB lines.
        fill_buffers: u32 = Kind::Count(1, 128), unknown 4.0 to 32.0;
        /// Lines of WT, WP or WB memory in the core's cache, replaced first in, first out.
        cached_lines: u32 = Kind::Count(1, 1 << 20), default "512" because "a first-level data cache of 32 KiB";
        /// Latency of a load that hits in the first-level cache.
        cached_load_ns: Ticks = Kind::Ns(1e6), unknown 0.5 to 5.0;
        /// Latency of a load from local memory of a line that no cache holds; 0 to use `coherence.read_ns`.
        memory_load_ns: Ticks = Kind::Ns(1e6), default "0" because "taken from [coherence], if known", unknown 20.0 to 500.0;
        /// Latency of a load from memory of the other socket of a line that no cache holds; 0 if unknown.
        remote_memory_load_ns: Ticks = Kind::Ns(1e6), default "0" because "one socket", unknown 50.0 to 1000.0;
        /// Latency of a load of a line that another core of the socket holds modified; 0 if unknown.
        cache_to_cache_ns: Ticks = Kind::Ns(1e6), default "0" because "unknown", unknown 10.0 to 500.0;
        /// Latency of a load of a line that a core of the other socket holds modified; 0 if unknown.
        remote_core_load_ns: Ticks = Kind::Ns(1e6), default "0" because "one socket", unknown 20.0 to 1000.0;
        /// Latency of SFENCE with no outstanding stores.
        sfence_ns: Ticks = Kind::Ns(1e6), unknown 1.0 to 50.0;
        /// Latency of LFENCE with no outstanding loads.
        lfence_ns: Ticks = Kind::Ns(1e6), unknown 1.0 to 50.0;
        /// Latency of MFENCE or a locked instruction with no outstanding accesses.
        mfence_ns: Ticks = Kind::Ns(1e6), unknown 5.0 to 100.0;
        /// Time to take an interrupt and return from it.
        interrupt_ns: Ticks = Kind::Ns(1e6), default "1000" because "a short handler on a desktop kernel", unknown 200.0 to 5000.0;
        /// Time to read the time-stamp counter once.
        timestamp_ns: Ticks = Kind::Ns(1e6), unknown 5.0 to 50.0;
    }
}

section! {
    /// The link between an endpoint and the port above it.
    Link ["link"] {
        /// PCIe generation of the trained link.
        generation: u32 = Kind::OneOf(&[1, 2, 3, 4, 5, 6]);
        /// Width of the trained link.
        width_lanes: u32 = Kind::OneOf(&[1, 2, 4, 8, 12, 16, 32]);
        /// `Max_Payload_Size` of every port without a `[[port]]` section.
        mps_bytes: u32 = Kind::OneOf(&[128, 256, 512, 1024, 2048, 4096]);
        /// `Max_Read_Request_Size`.
        mrrs_bytes: u32 = Kind::OneOf(&[128, 256, 512, 1024, 2048, 4096]), default "512" because "the reset value";
        /// Read Completion Boundary.
        rcb_bytes: u32 = Kind::OneOf(&[64, 128]), default "64" because "the reset value";
        /// From the last bit of a packet sent until the packet is checked at the receiver.
        latency_ns: Ticks = Kind::Ns(1e9), unknown 20.0 to 1000.0;
        /// Posted header credits that the endpoint advertises.
        posted_header_credits: u32 = Kind::Count(1, 2032), unknown 8.0 to 2032.0;
        /// Posted data credits (16 B) that the endpoint advertises.
        posted_data_credits: u32 = Kind::Count(8, 32_752), unknown 64.0 to 32_752.0;
        /// Non-posted header credits that the endpoint advertises.
        nonposted_header_credits: u32 = Kind::Count(1, 2032), unknown 8.0 to 2032.0;
        /// Alignment of the start of the endpoint's TLPs, given by the width of its interface to the link.
        tlp_alignment_bytes: u32 = Kind::OneOf(&[4, 8, 16, 32, 64]), default "4" because "a TLP may start at any DW", unknown 4.0 to 64.0;
        /// Capacity of the replay buffer of each port, in unacknowledged TLPs; 0 for unlimited.
        replay_tlps: u32 = Kind::Count(0, 65_536), default "0" because "replay buffers are sized for the round trip";
        /// Reordering by all ports where the PCIe ordering rules permit but do not require it.
        ordering: OrderingChoice = Kind::Choice(OrderingChoice::WORDS), default "\"blocked\"" because "the purpose of relaxed ordering";
        /// Whether all links send SKP ordered sets.
        skp: bool = Kind::Flag, default "false" because "they take 0.3 % of a link and make single latencies vary";
        /// Mean number of TLPs per corrupted TLP of each link, which is replayed; 0 for none.
        tlps_per_error: u32 = Kind::Count(0, 1_000_000_000), default "0" because "an error-free link";
    }
}

section! {
    /// The endpoint, between the link and its regions.
    Endpoint ["endpoint"] {
        text {
            /// Name of the card.
            name,
        }
        /// From a checked packet to the request at its region.
        ingress_ns: Ticks = Kind::Ns(1e9), unknown 10.0 to 1000.0;
        /// From the data of a region to the completion at the link.
        egress_ns: Ticks = Kind::Ns(1e9), unknown 10.0 to 1000.0;
        /// Largest supported `Max_Payload_Size`; at least `link.mps_bytes`.
        mps_supported_bytes: u32 = Kind::OneOf(&[128, 256, 512, 1024, 2048, 4096]), default "128" because "the minimum for every port";
        /// Completion timeout of reads by the endpoint.
        completion_timeout_ns: Ticks = Kind::Ns(64e9), default "50000000" because "the maximum of the default range of Device Control 2, 50 us to 50 ms", unknown 50_000.0 to 50_000_000.0;
    }
}

section! {
    /// DMA engine of the endpoint.
    Dma ["dma"] {
        /// Maximum number of outstanding reads of the engine. The tags that configuration space enables are an upper
        /// limit; an engine may use fewer.
        tags: u32 = Kind::Count(1, 15_360), unknown 8.0 to 768.0;
        /// Maximum length of a read request; `Max_Read_Request_Size` may limit it further.
        read_bytes: u32 = Kind::OneOf(&[64, 128, 256, 512, 1024, 2048, 4096]), default "4096" because "limited by the link only", unknown 64.0 to 4096.0;
        /// Maximum payload of a write; `Max_Payload_Size` may limit it further.
        write_bytes: u32 = Kind::OneOf(&[8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]), default "4096" because "limited by the link only", unknown 64.0 to 4096.0;
        /// Address boundary of reads: the engine splits a read at each multiple of it, as a device that works by cache lines.
        /// `read_bytes` and `Max_Read_Request_Size` limit the length, too.
        read_boundary_bytes: u32 = Kind::OneOf(&[64, 128, 256, 512, 1024, 2048, 4096]), default "4096" because "no request crosses 4 KiB: PCI Express Base 5.0, section 2.2.7", unknown 64.0 to 4096.0;
        /// Address boundary of writes: the engine splits a write at each multiple of it. `write_bytes` and
        /// `Max_Payload_Size` limit the length, too.
        write_boundary_bytes: u32 = Kind::OneOf(&[64, 128, 256, 512, 1024, 2048, 4096]), default "4096" because "no request crosses 4 KiB: PCI Express Base 5.0, section 2.2.7", unknown 64.0 to 4096.0;
        /// Width of the data path; header and payload of a TLP occupy whole beats.
        beat_bytes: u32 = Kind::OneOf(&[4, 8, 16, 32, 64, 128]), unknown 4.0 to 64.0;
        /// Time between two beats.
        beat_ns: Ticks = Kind::Ns(1e6), unknown 0.25 to 100.0;
        /// Channels: concurrent jobs, each with a descriptor and a request, served round-robin.
        channels: u32 = Kind::Count(1, 64), default "1" because "one job at a time";
        /// Whether reads and writes of concurrent jobs use separate data paths, as with one engine for each
        /// direction; a concurrent write and read then are two jobs.
        full_duplex: bool = Kind::Flag, default "false" because "one data path in both directions", unknown 0.0 to 1.0;
        /// Time for which a request of either direction occupies the part of a full-duplex engine that both directions
        /// share, one request at a time; 0 if they share nothing.
        shared_request_ns: Ticks = Kind::Ns(1e6), default "0" because "directions share nothing", unknown 0.25 to 100.0;
        /// Extra time of a read request, in addition to its beats.
        read_request_ns: Ticks = Kind::Ns(1e6), default "0" because "no cost besides beats is known", unknown 0.5 to 1000.0;
        /// Extra time of a write, in addition to its beats.
        write_request_ns: Ticks = Kind::Ns(1e6), default "0" because "no cost besides beats is known", unknown 0.5 to 1000.0;
        /// From the start command to the first request.
        start_ns: Ticks = Kind::Ns(1e9), default "0" because "time is counted from the first request", unknown 1.0 to 10000.0;
        /// Bytes of host memory that one descriptor covers, an aligned block.
        descriptor_bytes: u32 = Kind::OneOf(&[4096, 8192, 16384, 65536, 1 << 20, 2 << 20]), default "4096" because "a page", unknown 4096.0 to 2_097_152.0;
        /// Time to process a descriptor before its first request.
        descriptor_ns: Ticks = Kind::Ns(1e6), default "0" because "no cost besides beats is known", unknown 0.5 to 10000.0;
        /// Bytes of a descriptor, as written to the device or fetched by it.
        descriptor_entry_bytes: u32 = Kind::OneOf(&[8, 16, 32, 64]), default "16" because "an address and a length";
        /// Prefetch depth: maximum number of descriptors fetched ahead, each by a read of its own, including those in
        /// flight.
        prefetch_descriptors: u32 = Kind::Count(1, 256), default "1" because "a descriptor is fetched only when it is needed", unknown 1.0 to 64.0;
        /// Transmit buffers: maximum number of TLPs queued or in flight between the engine and the link.
        send_buffers: u32 = Kind::Count(1, 1024), default "8" because "a few packets in the transmit buffer of a PCIe core", unknown 1.0 to 64.0;
        /// Whether its data requests, and the completions of its reads, have the Relaxed Ordering attribute.
        relaxed_ordering: bool = Kind::Flag, default "false" because "optional for an engine, and often disabled after reset";
        /// Whether its data requests, and the completions of its reads, have the ID-Based Ordering attribute.
        id_based_ordering: bool = Kind::Flag, default "false" because "few engines use it";
        /// Entries of its ATC, which caches translations requested through ATS (least recently used replaced); 0
        /// without ATS, for untranslated requests.
        ats_entries: u32 = Kind::Count(0, 4096), default "0" because "no ATS";
    }
}

section! {
    /// A switch.
    Switch ["switch"] {
        text {
            /// Name in plans and in other sections.
            name,
            /// Device above its upstream port: `root`, or a switch.
            below,
        }
        /// PCIe generation of its trained upstream link.
        generation: u32 = Kind::OneOf(&[1, 2, 3, 4, 5, 6]);
        /// Width of its trained upstream link.
        width_lanes: u32 = Kind::OneOf(&[1, 2, 4, 8, 12, 16, 32]);
        /// Upstream link: from the last bit of a packet sent until the packet is received.
        link_latency_ns: Ticks = Kind::Ns(1e9), unknown 1.0 to 1000.0;
        /// Time at which the switch starts to forward a TLP.
        forwarding: Forwarding = Kind::Choice(Forwarding::WORDS), default "\"cut_through\"" because "the mode for which vendors state latencies";
        /// Forwarding latency: from the header received (cut-through) or the last bit received (store-and-forward)
        /// until the first bit is sent.
        latency_ns: Ticks = Kind::Ns(1e6), unknown 50.0 to 500.0;
        /// Posted header credits that each of its ports advertises.
        posted_header_credits: u32 = Kind::Count(1, 2032), default "64" because "enough for two round trips of small packets", unknown 8.0 to 2032.0;
        /// Posted data credits (16 B) that each of its ports advertises.
        posted_data_credits: u32 = Kind::Count(8, 32_752), default "1024" because "16 KiB of data", unknown 64.0 to 32_752.0;
        /// Non-posted header credits that each of its ports advertises.
        nonposted_header_credits: u32 = Kind::Count(1, 2032), default "64" because "enough for two round trips of small packets", unknown 8.0 to 2032.0;
        /// Completion header credits that each of its ports advertises.
        completion_header_credits: u32 = Kind::Count(1, 2032), default "64" because "enough for two round trips of small packets", unknown 8.0 to 2032.0;
        /// Completion data credits (16 B) that each of its ports advertises.
        completion_data_credits: u32 = Kind::Count(8, 32_752), default "1024" because "16 KiB of data", unknown 64.0 to 32_752.0;
        /// Largest supported `Max_Payload_Size` of each of its ports; at least `link.mps_bytes`.
        mps_supported_bytes: u32 = Kind::OneOf(&[128, 256, 512, 1024, 2048, 4096]), default "128" because "the minimum for every port";
    }
}

section! {
    /// A slot that holds an endpoint. Without slots, there is one endpoint directly below the root.
    Slot ["slot"] {
        text {
            /// Name of the card in plans.
            name,
            /// Device above its link: `root`, or a switch.
            below,
        }
        /// Offset added to the address of every BAR of this card.
        bar_shift_bytes: u64 = Kind::Size(0, HUGE), default "0" because "the addresses of the BARs themselves";
    }
}

section! {
    /// A port whose control registers differ from those of the other ports, as `setpci` would set them.
    Port ["port"] {
        text {
            /// Port: a slot (`card` without slots), a switch for its upstream port, or `ABOVE/BELOW` for the port of
            /// a switch or of `root` above one of them.
            name,
        }
        /// `Max_Payload_Size` of the port; 0 for `link.mps_bytes`.
        mps_bytes: u32 = Kind::OneOf(&[0, 128, 256, 512, 1024, 2048, 4096]), default "0" because "as all ports without a `[[port]]` section";
        /// ACS P2P Request Redirect: whether requests received from below are forwarded upstream to the root, even if
        /// addressed to a peer. Downstream ports of switches only.
        acs_redirect: bool = Kind::Flag, default "false" because "disabled after reset: peers use the shortest path";
    }
}

section! {
    /// A region behind part of a BAR.
    Region ["region"] {
        text {
            /// Name in plans and in other keys.
            name,
        }
        /// BAR that contains it.
        bar: u32 = Kind::Count(0, 5);
        /// Offset of its start in the BAR.
        offset_bytes: u64 = Kind::Size(0, HUGE);
        /// Length.
        size_bytes: u64 = Kind::Size(1, HUGE);
        /// Kind of the region.
        kind: RegionKind = Kind::Choice(RegionKind::WORDS);
        /// Width of its data path: an access occupies one beat for each aligned piece of this size that it touches.
        beat_bytes: u32 = Kind::OneOf(&[1, 2, 4, 8, 16, 32, 64, 128]), unknown 4.0 to 64.0;
        /// Time between two beats.
        beat_ns: Ticks = Kind::Ns(1e9), unknown 0.25 to 100.0;
        /// From a read request at the region to its first beat.
        read_ns: Ticks = Kind::Ns(1e9), unknown 5.0 to 2000.0;
        /// Of this many reads, one takes `slow_read_ns` longer, and later ones are completed before it; 0 for none.
        slow_read_every: u32 = Kind::Count(0, 1 << 20), default "0" because "reads are completed in order";
        /// Additional time of such a read, as for a bank conflict or a refresh.
        slow_read_ns: Ticks = Kind::Ns(1e6), default "0" because "reads are completed in order", unknown 10.0 to 10_000.0;
        /// Number of entries of a FIFO.
        fifo_entries: u32 = Kind::Count(1, 1 << 20), default "1024" because "deep enough for tests; used by FIFOs only";
    }
}

mod fault;
pub use fault::{Fault, FaultKind, NoFault};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::default_is_right;

    const SECTIONS: &[SectionRow] = crate::Platform::SECTIONS;

    fn keys() -> impl Iterator<Item = (&'static str, &'static Key)> {
        SECTIONS.iter().flat_map(|row| row.keys.iter().map(move |key| (row.path, key)))
    }

    /// Units that a key may end in.
    const UNITS: &[&str] = &["_ns", "_ghz", "_cycles", "_bytes", "_lanes", "_percent"];

    /// Keys without a unit: counts, choices, and numbers that are names.
    const WITHOUT_UNIT: &[&str] = &[
        "core.vendor",
        "core.cores",
        "core.sockets",
        "core.direct_stores",
        "core.memcpy",
        "core.store_buffer_entries",
        "core.wc_buffers",
        "core.wc_partial_flush",
        "core.wc_loads_in_flight",
        "core.streaming_load_buffers",
        "core.fill_buffers",
        "core.cached_lines",
        "root_complex.posted_queue_entries",
        "root_complex.posted_header_credits",
        "root_complex.posted_data_credits",
        "root_complex.nonposted_header_credits",
        "root_complex.peer_reads",
        "root_complex.peer_writes",
        "root_complex.peer_tags",
        "root_complex.peer_in_order",
        "root_complex.peer_collects",
        "root_complex.peer_requester_id",
        "root_complex.peer_completer_is_root",
        "memory.ddio_ways",
        "memory.full_completion_lines",
        "memory.odd_end_completion",
        "iommu.iotlb_entries",
        "iommu.iotlb_ways",
        "iommu.iotlb_index_bit",
        "iommu.walk_reads",
        "iommu.walk_cache_entries",
        "iommu.walkers",
        "iommu.invalidation_entries",
        "iommu.pass_through",
        "coherence.flush",
        "coherence.flushes_in_flight",
        "link.generation",
        "link.posted_header_credits",
        "link.posted_data_credits",
        "link.nonposted_header_credits",
        "link.replay_tlps",
        "link.ordering",
        "link.skp",
        "link.tlps_per_error",
        "dma.tags",
        "dma.channels",
        "dma.full_duplex",
        "dma.prefetch_descriptors",
        "dma.send_buffers",
        "dma.relaxed_ordering",
        "dma.id_based_ordering",
        "dma.ats_entries",
        "device_memory.ports",
        "kernel.unit_words",
        "kernel.burst_words",
        "kernel.keeps_words",
        "kernel.most_kernels",
        "msi_x.vectors",
        "msi_x.bar",
        "switch.generation",
        "switch.forwarding",
        "switch.posted_header_credits",
        "switch.posted_data_credits",
        "switch.nonposted_header_credits",
        "switch.completion_header_credits",
        "switch.completion_data_credits",
        "port.acs_redirect",
        "fault.kind",
        "fault.tlp",
        "bar.index",
        "bar.prefetchable",
        "region.bar",
        "region.kind",
        "region.slow_read_every",
        "region.fifo_entries",
    ];

    #[test]
    fn every_key_ends_in_its_unit_or_is_listed_without_one() {
        let ends_in_a_unit = |key: &Key| UNITS.iter().any(|unit| key.name.ends_with(unit));
        let without: Vec<String> =
            keys().filter(|(_, key)| !ends_in_a_unit(key)).map(|(path, key)| format!("{path}.{}", key.name)).collect();
        assert_eq!(without, WITHOUT_UNIT);
    }

    #[test]
    fn units_match_kinds() {
        for (path, key) in keys() {
            assert_eq!(matches!(key.kind, Kind::Ns(_)), key.name.ends_with("_ns"), "{path}.{}", key.name);
            assert!(!matches!(key.kind, Kind::Size(..)) || key.name.ends_with("_bytes"), "{path}.{}", key.name);
            let has_no_number = matches!(key.kind, Kind::Choice(_) | Kind::Flag);
            assert!(!has_no_number || WITHOUT_UNIT.contains(&format!("{path}.{}", key.name).as_str()));
        }
    }

    #[test]
    fn keys_of_a_section_are_unique() {
        for SectionRow { path, texts, keys, .. } in SECTIONS {
            let mut names: Vec<&str> = texts.iter().copied().chain(keys.iter().map(|key| key.name)).collect();
            names.sort_unstable();
            for pair in names.windows(2) {
                assert_ne!(pair[0], pair[1], "{path}");
            }
        }
    }

    #[test]
    fn every_name_is_a_bare_toml_key() {
        for SectionRow { path, texts, keys, .. } in SECTIONS {
            for name in texts.iter().copied().chain(keys.iter().map(|key| key.name)).chain([*path]) {
                assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{path}.{name}");
            }
        }
    }

    #[test]
    fn every_key_has_a_one_line_description() {
        for (path, key) in keys() {
            let doc = key.doc.trim();
            assert!(doc.len() > 5 && doc.ends_with('.') && !doc.contains(['\n', '|']), "{path}.{}: {doc:?}", key.name);
        }
    }

    #[test]
    fn every_default_is_valid_and_has_a_reason() {
        for (path, key) in keys() {
            let Some((text, because)) = key.default else { continue };
            assert!(default_is_right(key, text), "{path}.{} = {text}", key.name);
            assert!(!because.trim().is_empty(), "{path}.{}", key.name);
        }
        let wrong = Key { name: "x_ns", doc: "X.", kind: Kind::Ns(1.0), default: None, searched: None };
        assert!(!default_is_right(&wrong, "2") && !default_is_right(&wrong, "2 3") && default_is_right(&wrong, "1"));
    }

    #[test]
    fn search_bounds_are_within_the_range_of_the_key() {
        for (path, key) in keys() {
            let Some(bounds @ (low, high)) = key.searched else {
                // The time of a fault is chosen, not measured.
                let is_latency = key.name.ends_with("_ns") && path != Fault::PATH;
                assert!(!is_latency, "{path}.{}: every latency may be unknown", key.name);
                continue;
            };
            let start = key.search_start(bounds).unwrap();
            let is_flag = key.kind == Kind::Flag;
            assert!(is_flag || (0.0 < low && low < start && start < high), "{path}.{}", key.name);
            for value in [low, start, high] {
                assert!(key.kind.take_f64(value).is_some(), "{path}.{} = {value}", key.name);
            }
        }
    }

    #[test]
    fn the_minimum_of_every_range_is_below_its_maximum() {
        for (path, key) in keys() {
            let name = key.name;
            match key.kind {
                Kind::Ns(max) => assert!(max > 0.0 && Ticks::from_ns(max).is_ok(), "{path}.{name}"),
                Kind::Number(min, max) => assert!(min < max && max.is_finite(), "{path}.{name}"),
                Kind::ZeroOrNumber(min, max) => assert!(0.0 < min && min < max && max.is_finite(), "{path}.{name}"),
                Kind::Count(min, max) | Kind::Size(min, max) => assert!(min < max, "{path}.{name}"),
                Kind::OneOf(these) => assert!(these.is_sorted_by(|a, b| a < b), "{path}.{name}"),
                Kind::Choice(words) => assert!(words.iter().all(|word| !word.is_empty()), "{path}.{name}"),
                Kind::Flag => {}
            }
        }
    }
}
