//! `PCIe` at the level of bytes: TLP formats, link timing, transfer splitting, credits and configuration space.
//!
//! Nothing here has state, reads a clock, does I/O or allocates. [`Packet`] is a view of any TLP, legal or not;
//! [`Header`] is a value that holds legal TLPs only. Constants of the specification are tables with their source
//! ([`LINK_RATES`],
//! [`TLP_KINDS`], [`COUNTERS`]).
//!
//! | module | contents |
//! | --- | --- |
//! | [`link`] | link rates, and the time that a packet occupies the link |
//! | [`flit`] | timing of TLPs in the flits of a 64 GT/s link |
//! | [`tlp`] | parsing and encoding of TLPs |
//! | [`ats`] | translations and invalidations of ATS |
//! | [`byte_enable`] | byte enables of requests |
//! | [`ordering`] | ordering rules between TLPs |
//! | [`split`] | splitting of transfers into TLPs |
//! | [`tag`] | tag widths |
//! | [`config`] | configuration space |
//! | [`credit`] | flow control credits |
//! | [`function_id`] | requester and completer IDs |
//! | [`error`] | errors of parsing and encoding |
//!
//! Not implemented: DLLPs as bytes, TLP prefixes as values.
//!
//! ```
//! use lanemark_wire::{FunctionId, Generation, Header, Lanes, MemoryRequest, tlp_ticks};
//!
//! // A doorbell: 4 B to a BAR below 4 GiB, on Gen3 x16.
//! let doorbell = Header::Memory(MemoryRequest::write(FunctionId(0x0000), 0xfe00_0010, 4));
//! let mut bytes = [0; Header::MAX_BYTES];
//! assert_eq!(doorbell.emit(&mut bytes)?, 12);
//! assert_eq!(Header::parse(&bytes)?.0, doorbell);
//! let bytes_on_wire = doorbell.wire_bytes(Generation::Gen3);
//! assert_eq!(bytes_on_wire, 24);
//! assert_eq!(tlp_ticks(Generation::Gen3, Lanes::X16, bytes_on_wire).as_ns(), 1.5234375);
//! # Ok::<(), lanemark_wire::WireError>(())
//! ```
#![forbid(unsafe_code)]

pub mod ats;
pub mod byte_enable;
pub mod config;
pub mod credit;
pub mod error;
pub mod flit;
mod flit_size;
pub mod function_id;
pub mod link;
pub mod ordering;
pub mod split;
pub mod tag;
pub mod tlp;

pub use credit::{COUNTERS, CreditLimits, Credits, DATA_CREDIT_BYTES, Grant, SCALES, Scale, data_credits};
pub use error::WireError;
pub use function_id::FunctionId;
pub use link::{
    Generation, LINK_RATES, Lanes, LinkRate, ack_latency_limit, bytes_per_s, dw_ticks, skp_ticks, tlp_ticks,
    tlp_wire_bytes,
};
pub use ordering::{Ordered, Pass, may_pass};
pub use split::{Chunk, CompletionChunk, Mps, Mrrs, Rcb};
pub use tag::TagBits;
pub use tlp::{
    AddressType, AtomicKind, AtomicRequest, Attr, CommonFields, Completion, CompletionStatus, ConfigKind,
    ConfigRequest, FlowClass, Header, IoKind, IoRequest, KindRow, MAX_LENGTH_DW, MAX_TAG, MemoryKind, MemoryRequest,
    Message, Packet, ProcessingHint, Routing, TLP_KINDS, TlpKind, Tph,
};
