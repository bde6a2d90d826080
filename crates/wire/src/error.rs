//! Errors of TLP parsing and encoding, with byte offset and field.

use crate::TlpKind;

/// Reasons why bytes are not a legal TLP, or a header cannot be encoded. Nothing was written or consumed.
///
/// Byte offsets count from the first byte of the header, which contains Fmt and Type.
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
    /// The buffer ends inside the header, or is too small for it.
    #[error("byte 0: a header of this Fmt takes {needed} B; the buffer has {got} B")]
    TooShort {
        /// Length of the header.
        needed: usize,
        /// Length of the buffer.
        got: usize,
    },
    /// The buffer ends inside the data, or the digest after it.
    #[error(
        "byte 2: Length {field} means {dw} DW ({} B){}; the buffer has {got} B",
        u32::from(*.dw) * 4,
        if *.td { " and TD a digest of 4 B" } else { "" }
    )]
    DataCut {
        /// Length field; 0 means 1024 DW.
        field: u16,
        /// Decoded length, in DW.
        dw: u16,
        /// Whether a digest follows the data.
        td: bool,
        /// Bytes after the header.
        got: usize,
    },
    /// A TLP prefix precedes the header. [`crate::Packet`] shows it; [`crate::Header`] does not represent it.
    #[error("byte 0: {byte0:#04x} begins a TLP prefix, not a header")]
    Prefix {
        /// First byte.
        byte0: u8,
    },
    /// No TLP of this crate has this Fmt and Type.
    #[error("byte 0: Fmt {fmt:#05b} with Type {type_bits:#07b} is reserved")]
    ReservedType {
        /// Fmt, 3 bits.
        fmt: u8,
        /// Type, 5 bits.
        type_bits: u8,
    },
    /// A reserved bit of this kind of TLP is set.
    #[error("byte {byte}: {field} is reserved in {kind} and must be 0")]
    Reserved {
        /// Byte offset.
        byte: u8,
        /// Field.
        field: &'static str,
        /// Kind of TLP.
        kind: TlpKind,
    },
    /// A field has another value than this kind of TLP requires.
    #[error("byte {byte}: {field} is {value}; {kind} must have {wanted}")]
    Prescribed {
        /// Byte offset.
        byte: u8,
        /// Field.
        field: &'static str,
        /// Kind of TLP.
        kind: TlpKind,
        /// Actual value.
        value: u16,
        /// Required value.
        wanted: u16,
    },
    /// A value out of the range of its field.
    #[error("byte {byte}: {field} is {value}; it must be {min} to {max}")]
    OutOfRange {
        /// Byte offset.
        byte: u8,
        /// Field.
        field: &'static str,
        /// Actual value.
        value: u16,
        /// Minimum.
        min: u16,
        /// Maximum.
        max: u16,
    },
    /// An address that is not aligned as the header or the operation requires.
    #[error("byte 8: address {address:#x} is not a multiple of {align} B")]
    Unaligned {
        /// The address.
        address: u64,
        /// Required alignment.
        align: u16,
    },
    /// A 4 DW header for an address below 4 GiB, which requires a 3 DW header.
    #[error("byte 8: a 4 DW header for {address:#x}; below 4 GiB the header must have 3 DW")]
    FourDwBelow4GiB {
        /// The address.
        address: u64,
    },
    /// A request that crosses a 4 KiB boundary.
    #[error("byte 2: {length} DW at {address:#x} cross a 4 KiB boundary")]
    Crosses4KiB {
        /// Start address.
        address: u64,
        /// Length in DW.
        length: u16,
    },
    /// Last DW BE of a request of one DW, which must be 0.
    #[error("byte 7: Last DW BE is {last_be:#06b} with Length 1; it must be 0")]
    LastBeOfOneDw {
        /// Last DW BE.
        last_be: u8,
    },
    /// A request of several DWs without an enabled byte in its first or last DW.
    #[error("byte 7: {field} is 0 with Length {length}; only a request of 1 DW may enable no byte")]
    NoByteEnabled {
        /// First or Last DW BE.
        field: &'static str,
        /// Length in DW.
        length: u16,
    },
    /// Byte enables that are not contiguous where they must be.
    #[error("byte 7: {field} {be:#06b} leaves a hole in {length} DW at {address:#x}; holes need 1 DW, or 2 DW on a QW")]
    Hole {
        /// First or Last DW BE.
        field: &'static str,
        /// Its value.
        be: u8,
        /// Length in DW.
        length: u16,
        /// Start address.
        address: u64,
    },
    /// An invalid operand size.
    #[error("byte 2: Length {length} is not an operand size of {kind}")]
    OperandSize {
        /// Kind of `AtomicOp`.
        kind: TlpKind,
        /// Length in DW.
        length: u16,
    },
    /// A translation request with an odd Length.
    #[error("byte 2: Length {length} of a translation request is odd; a translation has 2 DW")]
    HalfTranslation {
        /// Length in DW.
        length: u16,
    },
    /// A reserved completion status.
    #[error("byte 6: completion status {status:#05b} is reserved")]
    ReservedStatus {
        /// Status, 3 bits.
        status: u8,
    },
    /// Data require status Success; a locked completion without data requires an error status.
    #[error("byte 6: completion status {status:#05b} is not allowed in {kind}")]
    StatusOfKind {
        /// Status, 3 bits.
        status: u8,
        /// Kind of completion.
        kind: TlpKind,
    },
    /// A completion with more data than remain of the read.
    #[error(
        "byte 2: {length} DW from lower address {lower_address:#04x} exceed the {byte_count} B that remain of the read"
    )]
    MoreThanRemains {
        /// Length in DW.
        length: u16,
        /// Address of its first byte, modulo 128.
        lower_address: u8,
        /// Byte Count: bytes that remain, this completion included.
        byte_count: u16,
    },
    /// A completion other than the last that does not end at a read completion boundary.
    #[error(
        "byte 2: {length} DW from lower address {lower_address:#04x} are not all of the {byte_count} B that remain, \
 and do not end on a 64 B boundary"
    )]
    OffBoundary {
        /// Length in DW.
        length: u16,
        /// Address of its first byte, modulo 128.
        lower_address: u8,
        /// Byte Count: bytes that remain, this completion included.
        byte_count: u16,
    },
}
