//! The keys of a platform file, declared once: name, unit, range, default, meaning.
//!
//! Each `section!` makes a struct with one [`Param`] a key, its reader and its rows for schema and guide.
//! A key ends in its unit; a key without one is a count or a choice.

use crate::memcpy::Variant;
pub use crate::sections::SectionRow;
use lanemark_units::Ticks;

/// What values a key takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Nanoseconds, 0 or more, up to this.
    Ns(f64),
    /// A number between two bounds.
    Number(f64, f64),
    /// 0, which stands for none of its own, or a number between two bounds.
    ZeroOrNumber(f64, f64),
    /// A whole number between two bounds.
    Count(u64, u64),
    /// One of these whole numbers.
    OneOf(&'static [u64]),
    /// Bytes, as a whole number or as text with a unit (`"64KiB"`), between two bounds.
    Size(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
}

/// One key: the row behind reader, schema and guide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Its name; the unit is its last part.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// The value where the key is absent, as in a file, and what it stands for; `None` if it must be there.
    pub default: Option<(&'static str, &'static str)>,
    /// Between which values a fit looks for it where a file says that it is unknown; `None` if a file must know.
    pub searched: Option<(f64, f64)>,
}

impl Key {
    /// Where a search for an unknown value begins: the geometric mean of the bounds, as the key takes it. It
    /// depends on no machine.
    #[must_use]
    pub fn search_start(&self) -> Option<f64> {
        let (low, high) = self.searched?;
        let middle = (low * high).sqrt();
        Some(if self.kind.is_whole() { middle.round() } else { middle })
    }
}

/// What a checked value can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raw {
    /// From [`Kind::Ns`], [`Kind::Number`] or [`Kind::ZeroOrNumber`].
    Number(f64),
    /// From [`Kind::Count`], [`Kind::OneOf`] or [`Kind::Size`].
    Whole(u64),
    /// From [`Kind::Choice`].
    Word(&'static str),
    /// From [`Kind::Flag`].
    Flag(bool),
}

/// A type a checked value turns into, and back for printing.
pub(crate) trait Value: Sized {
    fn from_raw(raw: &Raw) -> Option<Self>;
    fn to_raw(&self) -> Raw;
}

impl Value for f64 {
    fn from_raw(raw: &Raw) -> Option<f64> {
        if let Raw::Number(number) = raw { Some(*number) } else { None }
    }
    fn to_raw(&self) -> Raw {
        Raw::Number(*self)
    }
}

impl Value for Ticks {
    fn from_raw(raw: &Raw) -> Option<Ticks> {
        if let Raw::Number(ns) = raw { Ticks::from_ns(*ns).ok() } else { None }
    }
    fn to_raw(&self) -> Raw {
        Raw::Number(self.as_ns())
    }
}

impl Value for u64 {
    fn from_raw(raw: &Raw) -> Option<u64> {
        if let Raw::Whole(whole) = raw { Some(*whole) } else { None }
    }
    fn to_raw(&self) -> Raw {
        Raw::Whole(*self)
    }
}

impl Value for u32 {
    fn from_raw(raw: &Raw) -> Option<u32> {
        u64::from_raw(raw).and_then(|whole| u32::try_from(whole).ok())
    }
    fn to_raw(&self) -> Raw {
        Raw::Whole(u64::from(*self))
    }
}

impl Value for bool {
    fn from_raw(raw: &Raw) -> Option<bool> {
        if let Raw::Flag(flag) = raw { Some(*flag) } else { None }
    }
    fn to_raw(&self) -> Raw {
        Raw::Flag(*self)
    }
}

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

        impl crate::spec::Value for $name {
            fn from_raw(raw: &crate::spec::Raw) -> Option<$name> {
                match raw {
                    $(crate::spec::Raw::Word($word) => Some($name::$variant),)*
                    _ => None,
                }
            }
            fn to_raw(&self) -> crate::spec::Raw {
                crate::spec::Raw::Word(self.word())
            }
        }
    };
}

words! {
    /// Who made the processor; decides the table of effective memory types.
    Vendor {
        /// Intel.
        Intel = "intel",
        /// AMD.
        Amd = "amd",
    }
}

words! {
    /// How a write-combining buffer that is not full is written out.
    WcPartialFlush {
        /// In aligned pieces of 8 B, each with its byte enables.
        EightBytes = "8B",
        /// In aligned pieces of 4 B, each with its byte enables.
        Dw = "dw",
        /// In one piece per contiguous run of valid bytes.
        Contiguous = "contiguous",
    }
}

words! {
    /// What stands behind a region.
    RegionKind {
        /// Registers: each access may have a side effect.
        Registers = "registers",
        /// On-chip or board SRAM.
        Sram = "sram",
        /// DRAM with counters of beats, cleared by reading.
        Ddr = "ddr",
        /// A queue: every write is an entry, every read takes one.
        Fifo = "fifo",
    }
}

words! {
    /// When a switch sends a TLP on.
    Forwarding {
        /// As soon as its header has come and the rest will not come too late.
        CutThrough = "cut_through",
        /// When all of it has come.
        StoreAndForward = "store_and_forward",
    }
}

words! {
    /// What a port does with TLPs where the rules of ordering leave it a choice.
    OrderingChoice {
        /// Nothing passes that need not.
        Never = "never",
        /// What relaxed or ID-based ordering lets pass does, where those before it wait for credits.
        Blocked = "blocked",
        /// Whatever may go does, at random: for software that must not rely on order.
        Random = "random",
    }
}

impl Value for Variant {
    fn from_raw(raw: &Raw) -> Option<Variant> {
        if let Raw::Word(word) = raw { Variant::from_name(word) } else { None }
    }
    fn to_raw(&self) -> Raw {
        Raw::Word(self.name())
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
            /// The section's name in a file.
            pub const PATH: &'static str = $path;
            /// Keys that are plain text and need no source.
            pub const TEXTS: &'static [&'static str] = &[$($(stringify!($text),)*)?];
            /// The other keys.
            pub const KEYS: &'static [crate::spec::Key] = &[$(crate::spec::Key {
                name: stringify!($key),
                doc: concat!($($kdoc),+),
                kind: $kind,
                default: section!(@default $($default, $because)?),
                searched: section!(@searched $($low, $high)?),
            },)*];

        }

        impl crate::sections::SectionType for $name {
            const PATH: &'static str = $path;

            fn read(section: &mut crate::read::Section<'_, '_>) -> Option<$name> {
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

            fn each(&self, visit: &mut dyn FnMut(&'static str, crate::spec::Raw, &crate::Origin)) {
                $(visit(stringify!($key), crate::spec::Value::to_raw(&self.$key.value), &self.$key.origin);)*
            }

            fn set(&mut self, key: &str, raw: &crate::spec::Raw, origin: crate::Origin) -> bool {
                match key {
                    $(stringify!($key) => match crate::spec::Value::from_raw(raw) {
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

/// 2^63: larger than any BAR.
const HUGE: u64 = 1 << 63;

mod bar;
mod coherence;
mod device_memory;
mod dma_way;
mod driver;
mod fifos;
mod iommu;
mod kernel;
mod memory;
mod msi_x;
mod raw;
mod registers;
mod root_complex;
mod runtime;

pub use bar::Bar;
pub use coherence::{Coherence, FlushLine};
pub use device_memory::DeviceMemory;
pub use dma_way::{DmaRead, DmaWay, DmaWrite};
pub use driver::Driver;
pub use fifos::Fifos;
pub use iommu::Iommu;
pub use kernel::Kernel;
pub use memory::Memory;
pub use msi_x::MsiX;
pub use registers::Registers;
pub use root_complex::RootComplex;
pub use runtime::Runtime;

section! {
    /// The cores and the buffers each of them has.
    Core ["core"] {
        text {
            /// The processor's name.
            name,
        }
        /// Who made it; decides the table of effective memory types.
        vendor: Vendor = Kind::Choice(Vendor::WORDS);
        /// Cores that may take part in a plan.
        cores: u32 = Kind::Count(1, 1024), default "1" because "one core";
        /// Sockets that they are in, as many in each but the last, one socket after the other; the card is at the first.
        sockets: u32 = Kind::Count(1, 8), default "1" because "one socket";
        /// Clock while measuring.
        clock_ghz: f64 = Kind::Number(0.1, 10.0), unknown 1.0 to 6.0;
        /// Cycles one iteration of a compiled loop of 1 to 8 B stores takes.
        store_loop_cycles: f64 = Kind::Number(0.25, 100.0), default "1" because "an optimised loop stores once a cycle", unknown 0.5 to 20.0;
        /// Widest plain vector register.
        vector_bytes: u32 = Kind::OneOf(&[16, 32, 64]);
        /// Whether the core has MOVDIRI and MOVDIR64B.
        direct_stores: bool = Kind::Flag, default "false" because "not before Tremont and Tiger Lake";
        /// Which memcpy programs on it use.
        memcpy: Variant = Kind::Choice(Variant::NAMES);
        /// Stores that may have retired and not yet left the core.
        store_buffer_entries: u32 = Kind::Count(1, 1024), unknown 16.0 to 128.0;
        /// Write-combining buffers of 64 B.
        wc_buffers: u32 = Kind::Count(1, 128), unknown 4.0 to 32.0;
        /// How a write-combining buffer that is not full is written out.
        wc_partial_flush: WcPartialFlush = Kind::Choice(WcPartialFlush::WORDS);
        /// Unfenced loads from WC memory that may be under way together.
        wc_loads_in_flight: u32 = Kind::Count(1, 128), default "1" because "no overlap of uncached loads";
        /// Buffers of 64 B that MOVNTDQA fills from WC memory; 0 if it is an ordinary load.
        streaming_load_buffers: u32 = Kind::Count(0, 128), unknown 4.0 to 32.0;
        /// Lines of WT, WP or WB memory that may be fetched together.
        fill_buffers: u32 = Kind::Count(1, 128), unknown 4.0 to 32.0;
        /// Lines of WT, WP or WB memory a core keeps, the oldest given up first.
        cached_lines: u32 = Kind::Count(1, 1 << 20), default "512" because "a first-level data cache of 32 KiB";
        /// Latency of a load that hits the first-level cache.
        cached_load_ns: Ticks = Kind::Ns(1e6), unknown 0.5 to 5.0;
        /// From a load to its bytes where no cache has the line, from memory of the core's socket; 0 for that of `coherence.read_ns`.
        memory_load_ns: Ticks = Kind::Ns(1e6), default "0" because "[coherence] says it, where it is known", unknown 20.0 to 500.0;
        /// The same from memory of the other socket; 0 where nothing is known of it.
        remote_memory_load_ns: Ticks = Kind::Ns(1e6), default "0" because "one socket", unknown 50.0 to 1000.0;
        /// The same of a line that another core of the socket has changed in its cache; 0 where nothing is known of it.
        cache_to_cache_ns: Ticks = Kind::Ns(1e6), default "0" because "nothing is known of it", unknown 10.0 to 500.0;
        /// The same of a line that a core of the other socket has changed in its cache; 0 where nothing is known of it.
        remote_core_load_ns: Ticks = Kind::Ns(1e6), default "0" because "one socket", unknown 20.0 to 1000.0;
        /// SFENCE with nothing to wait for.
        sfence_ns: Ticks = Kind::Ns(1e6), unknown 1.0 to 50.0;
        /// LFENCE with nothing to wait for.
        lfence_ns: Ticks = Kind::Ns(1e6), unknown 1.0 to 50.0;
        /// MFENCE or a locked instruction with nothing to wait for.
        mfence_ns: Ticks = Kind::Ns(1e6), unknown 5.0 to 100.0;
        /// Taking an interrupt and returning from it.
        interrupt_ns: Ticks = Kind::Ns(1e6), default "1000" because "a short handler on a desktop kernel", unknown 200.0 to 5000.0;
        /// Reading the time-stamp counter once.
        timestamp_ns: Ticks = Kind::Ns(1e6), unknown 5.0 to 50.0;
    }
}

section! {
    /// The link between the root port and the endpoint.
    Link ["link"] {
        /// PCIe generation it trained at.
        generation: u32 = Kind::OneOf(&[1, 2, 3, 4, 5, 6]);
        /// Width it trained at.
        width_lanes: u32 = Kind::OneOf(&[1, 2, 4, 8, 12, 16, 32]);
        /// `Max_Payload_Size` of every port that no `[[port]]` is about.
        mps_bytes: u32 = Kind::OneOf(&[128, 256, 512, 1024, 2048, 4096]);
        /// `Max_Read_Request_Size`.
        mrrs_bytes: u32 = Kind::OneOf(&[128, 256, 512, 1024, 2048, 4096]), default "512" because "the reset value";
        /// Read Completion Boundary.
        rcb_bytes: u32 = Kind::OneOf(&[64, 128]), default "64" because "the reset value";
        /// From the last bit sent to the packet checked at the other end.
        latency_ns: Ticks = Kind::Ns(1e9), unknown 20.0 to 1000.0;
        /// Posted header credits the endpoint advertises.
        posted_header_credits: u32 = Kind::Count(1, 127), unknown 8.0 to 127.0;
        /// Posted data credits of 16 B the endpoint advertises.
        posted_data_credits: u32 = Kind::Count(8, 2047), unknown 64.0 to 2047.0;
        /// Non-posted header credits the endpoint advertises.
        nonposted_header_credits: u32 = Kind::Count(1, 127), unknown 8.0 to 127.0;
        /// TLPs of the endpoint start at multiples of this many bytes, as its interface to the link is wide.
        tlp_alignment_bytes: u32 = Kind::OneOf(&[4, 8, 16, 32, 64]), default "4" because "a TLP may start at any DW";
        /// TLPs that the replay buffers of all links hold until they are acknowledged; 0 for as many as there are.
        replay_tlps: u32 = Kind::Count(0, 65_536), default "0" because "replay buffers are built for a round trip";
        /// What all ports do where the rules of ordering leave it to them.
        ordering: OrderingChoice = Kind::Choice(OrderingChoice::WORDS), default "\"blocked\"" because "that is what relaxed ordering is for";
        /// Whether all links send SKP ordered sets.
        skp: bool = Kind::Flag, default "false" because "they take 0.3 % of a link, and make single latencies vary";
        /// One in so many TLPs of every link comes damaged and is sent again; 0 for none.
        tlps_per_error: u32 = Kind::Count(0, 1_000_000_000), default "0" because "a link without errors";
    }
}

section! {
    /// The endpoint between link and regions.
    Endpoint ["endpoint"] {
        text {
            /// The card's name.
            name,
        }
        /// From a packet checked to the request at its region.
        ingress_ns: Ticks = Kind::Ns(1e9), unknown 10.0 to 1000.0;
        /// From a region's answer to the completion at the link.
        egress_ns: Ticks = Kind::Ns(1e9), unknown 10.0 to 1000.0;
        /// Largest `Max_Payload_Size` that it supports; `link.mps_bytes` in any case.
        mps_supported_bytes: u32 = Kind::OneOf(&[128, 256, 512, 1024, 2048, 4096]), default "128" because "what every port supports";
        /// How long it waits for a completion of a read of its own.
        completion_timeout_ns: Ticks = Kind::Ns(64e9), default "50000000" because "the longest of the default range of Device Control 2, 50 us to 50 ms", unknown 50_000.0 to 50_000_000.0;
    }
}

section! {
    /// The endpoint's DMA engine.
    Dma ["dma"] {
        /// Reads that may be under way at once.
        tags: u32 = Kind::Count(1, 15_360), unknown 8.0 to 768.0;
        /// Most bytes it asks for in one read; `Max_Read_Request_Size` may allow less.
        read_bytes: u32 = Kind::OneOf(&[64, 128, 256, 512, 1024, 2048, 4096]), default "4096" because "as much as the link allows";
        /// Most bytes of one write; `Max_Payload_Size` may allow less.
        write_bytes: u32 = Kind::OneOf(&[8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]), default "4096" because "as much as the link allows";
        /// Bytes of its data path: a TLP, header and payload, takes as many beats as begin with it.
        beat_bytes: u32 = Kind::OneOf(&[4, 8, 16, 32, 64, 128]), unknown 4.0 to 64.0;
        /// Time between two beats.
        beat_ns: Ticks = Kind::Ns(1e6), unknown 0.25 to 100.0;
        /// Jobs it can have at once: each has its descriptor and its request, and they take turns.
        channels: u32 = Kind::Count(1, 64), default "1" because "one job after the other";
        /// What a read request takes besides its beats.
        read_request_ns: Ticks = Kind::Ns(1e6), default "0" because "beats are all that is known", unknown 0.5 to 1000.0;
        /// What a write takes besides its beats.
        write_request_ns: Ticks = Kind::Ns(1e6), default "0" because "beats are all that is known", unknown 0.5 to 1000.0;
        /// From the command to the first request.
        start_ns: Ticks = Kind::Ns(1e9), default "0" because "time is counted from the first request", unknown 1.0 to 10000.0;
        /// Bytes of host memory that one descriptor stands for, from a multiple of them on.
        descriptor_bytes: u32 = Kind::OneOf(&[4096, 8192, 16384, 65536, 1 << 20, 2 << 20]), default "4096" because "a page";
        /// What a descriptor takes before its first request.
        descriptor_ns: Ticks = Kind::Ns(1e6), default "0" because "beats are all that is known", unknown 0.5 to 10000.0;
        /// Bytes of a descriptor, as it is written to the device or fetched by it.
        descriptor_entry_bytes: u32 = Kind::OneOf(&[8, 16, 32, 64]), default "16" because "an address and a length";
        /// Descriptors it has fetched from host memory and not begun, or is fetching, each by a read of its own.
        prefetch_descriptors: u32 = Kind::Count(1, 256), default "1" because "none is asked for before it is needed", unknown 1.0 to 64.0;
        /// TLPs that may be on their way from it to the link, or wait there.
        send_buffers: u32 = Kind::Count(1, 1024), default "8" because "a few packets in the transmit buffer of a PCIe core", unknown 1.0 to 64.0;
        /// Whether its requests for data have Relaxed Ordering set, and with them the completions of its reads.
        relaxed_ordering: bool = Kind::Flag, default "false" because "it is the engine's choice, and off after reset for many";
        /// The same of ID-Based Ordering.
        id_based_ordering: bool = Kind::Flag, default "false" because "few engines use it";
        /// Translations that it keeps itself, asked of the IOMMU by ATS; the one used longest ago leaves. 0 if it sends addresses as it was told them.
        ats_entries: u32 = Kind::Count(0, 4096), default "0" because "it has no ATS";
    }
}

section! {
    /// A switch.
    Switch ["switch"] {
        text {
            /// How others call it.
            name,
            /// What its upstream port hangs on: `root`, or a switch.
            below,
        }
        /// PCIe generation its upstream link trained at.
        generation: u32 = Kind::OneOf(&[1, 2, 3, 4, 5, 6]);
        /// Width its upstream link trained at.
        width_lanes: u32 = Kind::OneOf(&[1, 2, 4, 8, 12, 16, 32]);
        /// On its upstream link, from the last bit sent to the packet at the other end.
        link_latency_ns: Ticks = Kind::Ns(1e9), unknown 1.0 to 1000.0;
        /// When it sends a TLP on.
        forwarding: Forwarding = Kind::Choice(Forwarding::WORDS), default "\"cut_through\"" because "what makers state latencies for";
        /// From a header in to its first bit out, or from the last bit in to the first bit out if it stores first.
        latency_ns: Ticks = Kind::Ns(1e6), unknown 50.0 to 500.0;
        /// Posted header credits each of its ports advertises.
        posted_header_credits: u32 = Kind::Count(1, 127), default "64" because "room for two round trips of small packets", unknown 8.0 to 127.0;
        /// Posted data credits of 16 B each of its ports advertises.
        posted_data_credits: u32 = Kind::Count(8, 2047), default "1024" because "room for 16 KiB", unknown 64.0 to 2047.0;
        /// Non-posted header credits each of its ports advertises.
        nonposted_header_credits: u32 = Kind::Count(1, 127), default "64" because "room for two round trips of small packets", unknown 8.0 to 127.0;
        /// Completion header credits each of its ports advertises.
        completion_header_credits: u32 = Kind::Count(1, 127), default "64" because "room for two round trips of small packets", unknown 8.0 to 127.0;
        /// Completion data credits of 16 B each of its ports advertises.
        completion_data_credits: u32 = Kind::Count(8, 2047), default "1024" because "room for 16 KiB", unknown 64.0 to 2047.0;
        /// Largest `Max_Payload_Size` that each of its ports supports; `link.mps_bytes` in any case.
        mps_supported_bytes: u32 = Kind::OneOf(&[128, 256, 512, 1024, 2048, 4096]), default "128" because "what every port supports";
    }
}

section! {
    /// A place for the endpoint: it is there as often as there are slots, once below the root without any.
    Slot ["slot"] {
        text {
            /// How plans call the card in it.
            name,
            /// What its link hangs on: `root`, or a switch.
            below,
        }
        /// Added to the address of every BAR of this card.
        bar_shift_bytes: u64 = Kind::Size(0, HUGE), default "0" because "where the BARs themselves say";
    }
}

section! {
    /// A port whose control registers say something else than the others', as `setpci` writes them.
    Port ["port"] {
        text {
            /// Which: a slot (`card` without any), a switch for its upstream port, or `ABOVE/BELOW` for the port of a switch or of `root` that one of them hangs on.
            name,
        }
        /// Its `Max_Payload_Size`; 0 for `link.mps_bytes`.
        mps_bytes: u32 = Kind::OneOf(&[0, 128, 256, 512, 1024, 2048, 4096]), default "0" because "as every port that no `[[port]]` is about";
        /// Whether it sends requests that come up at it to the root, those for peers too (ACS P2P Request Redirect); only ports of switches that look down may.
        acs_redirect: bool = Kind::Flag, default "false" because "peers reach each other by the shortest way after a reset";
    }
}

section! {
    /// What lies behind a part of a BAR.
    Region ["region"] {
        text {
            /// How plans and other keys call it.
            name,
        }
        /// In which BAR.
        bar: u32 = Kind::Count(0, 5);
        /// Where it starts in the BAR.
        offset_bytes: u64 = Kind::Size(0, HUGE);
        /// How long it is.
        size_bytes: u64 = Kind::Size(1, HUGE);
        /// What it is.
        kind: RegionKind = Kind::Choice(RegionKind::WORDS);
        /// Bytes of its data path: an access takes as many beats as aligned pieces it touches.
        beat_bytes: u32 = Kind::OneOf(&[1, 2, 4, 8, 16, 32, 64, 128]), unknown 4.0 to 64.0;
        /// Time between two beats.
        beat_ns: Ticks = Kind::Ns(1e9), unknown 0.25 to 100.0;
        /// From a read request at the region to its first beat.
        read_ns: Ticks = Kind::Ns(1e9), unknown 5.0 to 2000.0;
        /// Entries, if it is a queue.
        fifo_entries: u32 = Kind::Count(1, 1 << 20), default "1024" because "deep enough for tests; only queues use it";
    }
}

mod fault;
pub(crate) use fault::check_faults;
pub use fault::{Fault, FaultKind, NoFault};

impl crate::Platform {
    /// Calls `visit` with the origin of every value.
    pub(crate) fn each_origin(&self, visit: &mut dyn FnMut(&crate::Origin)) {
        for section in self.sections().into_iter().flat_map(|(_, sections)| sections) {
            section.each(&mut |_, _, origin| visit(origin));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::default_is_right;

    const SECTIONS: &[SectionRow] = crate::Platform::SECTIONS;

    fn keys() -> impl Iterator<Item = (&'static str, &'static Key)> {
        SECTIONS.iter().flat_map(|row| row.keys.iter().map(move |key| (row.path, key)))
    }

    /// Units a key may end in.
    const UNITS: &[&str] = &["_ns", "_ghz", "_cycles", "_bytes", "_lanes"];

    /// Keys that have none: counts, choices, and numbers that are names.
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
        "memory.ddio_ways",
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
        "region.fifo_entries",
    ];

    #[test]
    fn every_key_ends_in_its_unit_or_is_known_to_have_none() {
        let ends_in_a_unit = |key: &Key| UNITS.iter().any(|unit| key.name.ends_with(unit));
        let without: Vec<String> =
            keys().filter(|(_, key)| !ends_in_a_unit(key)).map(|(path, key)| format!("{path}.{}", key.name)).collect();
        assert_eq!(without, WITHOUT_UNIT);
    }

    #[test]
    fn the_unit_agrees_with_the_kind() {
        for (path, key) in keys() {
            assert_eq!(matches!(key.kind, Kind::Ns(_)), key.name.ends_with("_ns"), "{path}.{}", key.name);
            assert!(!matches!(key.kind, Kind::Size(..)) || key.name.ends_with("_bytes"), "{path}.{}", key.name);
            let has_no_number = matches!(key.kind, Kind::Choice(_) | Kind::Flag);
            assert!(!has_no_number || WITHOUT_UNIT.contains(&format!("{path}.{}", key.name).as_str()));
        }
    }

    #[test]
    fn no_key_stands_twice() {
        for SectionRow { path, texts, keys, .. } in SECTIONS {
            let mut names: Vec<&str> = texts.iter().copied().chain(keys.iter().map(|key| key.name)).collect();
            names.sort_unstable();
            for pair in names.windows(2) {
                assert_ne!(pair[0], pair[1], "{path}");
            }
        }
    }

    #[test]
    fn every_name_is_one_that_toml_needs_no_quotes_for() {
        for SectionRow { path, texts, keys, .. } in SECTIONS {
            for name in texts.iter().copied().chain(keys.iter().map(|key| key.name)).chain([*path]) {
                assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{path}.{name}");
            }
        }
    }

    #[test]
    fn every_key_says_in_one_line_what_it_means() {
        for (path, key) in keys() {
            let doc = key.doc.trim();
            assert!(doc.len() > 5 && doc.ends_with('.') && !doc.contains(['\n', '|']), "{path}.{}: {doc:?}", key.name);
        }
    }

    #[test]
    fn every_default_could_stand_in_a_file_and_has_a_reason() {
        for (path, key) in keys() {
            let Some((text, because)) = key.default else { continue };
            assert!(default_is_right(key, text), "{path}.{} = {text}", key.name);
            assert!(!because.trim().is_empty(), "{path}.{}", key.name);
        }
        let wrong = Key { name: "x_ns", doc: "X.", kind: Kind::Ns(1.0), default: None, searched: None };
        assert!(!default_is_right(&wrong, "2") && !default_is_right(&wrong, "2 3") && default_is_right(&wrong, "1"));
    }

    #[test]
    fn an_unknown_value_is_looked_for_where_the_key_allows_it() {
        for (path, key) in keys() {
            let Some((low, high)) = key.searched else {
                // When something goes wrong is chosen.
                let is_latency = key.name.ends_with("_ns") && path != Fault::PATH;
                assert!(!is_latency, "{path}.{}: every latency may be unknown", key.name);
                continue;
            };
            let start = key.search_start().unwrap();
            assert!(0.0 < low && low < start && start < high, "{path}.{}", key.name);
            for value in [low, start, high] {
                assert!(key.kind.take_f64(value).is_some(), "{path}.{} = {value}", key.name);
            }
        }
    }

    #[test]
    fn every_range_has_a_bottom_below_its_top() {
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
