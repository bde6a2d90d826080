//! What can be wrong with a packet, and where.

use crate::TlpKind;

/// Why bytes are no legal TLP, or why a header cannot be sent. Nothing was written or consumed.
///
/// Byte offsets count from the first byte of the header (the one with Fmt and Type).
///
/// ```
/// use lanemark_wire::{Header, WireError};
/// let error = Header::parse(&[0x40; 8]).unwrap_err();
/// assert_eq!(error, WireError::TooShort { needed: 12, got: 8 });
/// assert_eq!(error.to_string(), "byte 0: a header of this Fmt takes 12 B; the buffer has 8 B");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The buffer ends inside the header, or has no room for it.
    #[error("byte 0: a header of this Fmt takes {needed} B; the buffer has {got} B")]
    TooShort {
        /// Bytes of the header.
        needed: usize,
        /// Bytes of the buffer.
        got: usize,
    },
    /// The buffer ends inside the data (or the digest behind it).
    #[error(
        "byte 2: Length {field} means {dw} DW ({} B){}; the buffer has {got} B",
        u32::from(*.dw) * 4,
        if *.td { " and TD a digest of 4 B" } else { "" }
    )]
    DataCut {
        /// The field as sent; 0 means 1024 DW.
        field: u16,
        /// What it means, in DW.
        dw: u16,
        /// Whether a digest follows the data.
        td: bool,
        /// Bytes behind the header.
        got: usize,
    },
    /// A TLP prefix stands before the header: [`crate::Packet`] shows it, [`crate::Header`] does not hold it.
    #[error("byte 0: {byte0:#04x} begins a TLP prefix, not a header")]
    Prefix {
        /// The byte.
        byte0: u8,
    },
    /// No TLP of this crate has these bits.
    #[error("byte 0: Fmt {fmt:#05b} with Type {type_bits:#07b} is reserved")]
    ReservedType {
        /// Fmt, 3 bits.
        fmt: u8,
        /// Type, 5 bits.
        type_bits: u8,
    },
    /// A bit is set that must be 0 in this kind of TLP.
    #[error("byte {byte}: {field} is reserved in {kind} and must be 0")]
    Reserved {
        /// Where.
        byte: u8,
        /// Which field.
        field: &'static str,
        /// In which TLP.
        kind: TlpKind,
    },
    /// A field whose value the kind of TLP prescribes has another one.
    #[error("byte {byte}: {field} is {value}; {kind} must have {wanted}")]
    Prescribed {
        /// Where.
        byte: u8,
        /// Which field.
        field: &'static str,
        /// In which TLP.
        kind: TlpKind,
        /// What it is.
        value: u16,
        /// What it must be.
        wanted: u16,
    },
    /// A value does not fit its field.
    #[error("byte {byte}: {field} is {value}; it lies between {min} and {max}")]
    OutOfRange {
        /// Where.
        byte: u8,
        /// Which field.
        field: &'static str,
        /// What it is.
        value: u16,
        /// The least it can be.
        min: u16,
        /// The most it can be.
        max: u16,
    },
    /// The address has bits that the header cannot carry or the operation forbids.
    #[error("byte 8: address {address:#x} is not a multiple of {align} B")]
    Unaligned {
        /// The address.
        address: u64,
        /// What it must be a multiple of.
        align: u16,
    },
    /// A 4 DW header for an address that a 3 DW header holds.
    #[error("byte 8: a 4 DW header for {address:#x}; below 4 GiB the header has 3 DW")]
    FourDwBelow4GiB {
        /// The address.
        address: u64,
    },
    /// The request touches two 4 KiB pages.
    #[error("byte 2: {length} DW at {address:#x} cross a 4 KiB boundary")]
    Crosses4KiB {
        /// Where it begins.
        address: u64,
        /// DWs it spans.
        length: u16,
    },
    /// A request of one DW has no last DW besides the first.
    #[error("byte 7: Last DW BE is {last_be:#06b} with Length 1; it must be 0")]
    LastBeOfOneDw {
        /// The field.
        last_be: u8,
    },
    /// A request of several DWs enables nothing in its first or last one.
    #[error("byte 7: {field} is 0 with Length {length}; only a request of 1 DW may enable no byte")]
    NoByteEnabled {
        /// Which of the two.
        field: &'static str,
        /// DWs of the request.
        length: u16,
    },
    /// The enabled bytes have a hole where none is allowed.
    #[error("byte 7: {field} {be:#06b} leaves a hole in {length} DW at {address:#x}; holes need 1 DW, or 2 DW on a QW")]
    Hole {
        /// Which of the two.
        field: &'static str,
        /// The enables.
        be: u8,
        /// DWs of the request.
        length: u16,
        /// Where it begins.
        address: u64,
    },
    /// No such operand.
    #[error("byte 2: Length {length} is no operand size of {kind}")]
    OperandSize {
        /// Which `AtomicOp`.
        kind: TlpKind,
        /// DWs.
        length: u16,
    },
    /// A translation request for half a translation.
    #[error("byte 2: Length {length} of a translation request is odd; a translation takes 2 DW")]
    HalfTranslation {
        /// DWs.
        length: u16,
    },
    /// A completion status that is not defined.
    #[error("byte 6: completion status {status:#05b} is reserved")]
    ReservedStatus {
        /// The field, 3 bits.
        status: u8,
    },
    /// Data come with success only, and a locked completion without data means failure.
    #[error("byte 6: completion status {status:#05b} does not go with {kind}")]
    StatusOfKind {
        /// The field, 3 bits.
        status: u8,
        /// The completion.
        kind: TlpKind,
    },
    /// The completion carries more DWs than bytes are missing.
    #[error(
        "byte 2: {length} DW from lower address {lower_address:#04x} hold more than the {byte_count} B that remain"
    )]
    MoreThanRemains {
        /// DWs.
        length: u16,
        /// Where its first byte lies, modulo 128.
        lower_address: u8,
        /// Bytes that remain, this completion included.
        byte_count: u16,
    },
    /// The completion is not the last one and ends at no read completion boundary.
    #[error(
        "byte 2: {length} DW from lower address {lower_address:#04x} leave some of {byte_count} B \
         and do not end on a 64 B boundary"
    )]
    OffBoundary {
        /// DWs.
        length: u16,
        /// Where its first byte lies, modulo 128.
        lower_address: u8,
        /// Bytes that remain, this completion included.
        byte_count: u16,
    },
}
