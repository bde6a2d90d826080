//! Transaction layer packets: parsing and encoding.
//!
//! Two levels. [`Packet`] is a view over bytes that can show any TLP, legal or not; [`Header`] holds only legal TLPs,
//! so a parsed header needs no further checks. `emit` reproduces what `parse` accepted bit for bit. Sequence number,
//! LCRC and framing belong to the link, see [`crate::link`].
//!
//! ```text
//! byte    0          1                2            3         4..5          6    7
//!       Fmt Type | T9 TC T8 Attr LN TH | TD EP Attr AT Length | requester ID | Tag | Last BE, First BE   requests
//!                                                            | completer ID | Status BCM Byte Count    completions
//! ```

mod atomic;
mod completion;
mod config;
mod digest;
mod field;
mod io;
mod kind;
mod memory;
mod message;
mod packet;

pub use atomic::{AtomicKind, AtomicRequest};
pub use completion::{Completion, CompletionStatus};
pub use config::{ConfigKind, ConfigRequest};
pub use field::{AddressType, Attr, CommonFields, MAX_LENGTH_DW, MAX_TAG, ProcessingHint, Tph};
pub use io::{IoKind, IoRequest};
pub use kind::{FlowClass, KindRow, TLP_KINDS, TlpKind};
pub use memory::{MemoryKind, MemoryRequest};
pub use message::{Message, Routing};
pub use packet::Packet;

use crate::{Credits, FunctionId, Generation, WireError, data_credits, tlp_wire_bytes};
use field::{Dws, FMT_4DW};

/// A legal TLP header.
///
/// ```
/// use lanemark_wire::{Header, TlpKind};
/// let bytes = [0x40, 0, 0, 4, 1, 0, 1, 0xff, 0xfe, 0, 0, 0x10];
/// let (header, header_bytes) = Header::parse(&bytes)?;
/// assert_eq!((header.kind(), header_bytes, header.data_bytes()), (TlpKind::MWr, 12, 16));
/// # Ok::<(), lanemark_wire::WireError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Header {
    /// `MRd`, `MRdLk`, `MWr`.
    Memory(MemoryRequest),
    /// `FetchAdd`, `Swap`, `CAS`.
    Atomic(AtomicRequest),
    /// `IORd`, `IOWr`.
    Io(IoRequest),
    /// `CfgRd0`, `CfgWr0`, `CfgRd1`, `CfgWr1`.
    Config(ConfigRequest),
    /// `Msg`, `MsgD`.
    Message(Message),
    /// `Cpl`, `CplD`, `CplLk`, `CplDLk`.
    Completion(Completion),
}

impl Header {
    /// Maximum length that [`Header::emit`] writes, in bytes.
    pub const MAX_BYTES: usize = 16;

    /// Parses the header at the start of `bytes`, and returns its length. Data may be truncated or missing.
    ///
    /// # Errors
    /// [`WireError`] for the first violated rule.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Header, usize), WireError> {
        let got = bytes.len();
        let Some(start) = bytes.first_chunk::<12>() else { return Err(WireError::TooShort { needed: 12, got }) };
        let dw = |at: usize| u32::from_be_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]);
        let mut dws = Dws { dw: [dw(0), dw(4), dw(8), 0], four: false };
        let Some(kind) = TlpKind::from_byte0(start[0]) else { return Err(no_kind(start[0])) };
        let mut header_bytes = 12;
        if dws.dw[0] & FMT_4DW != 0 {
            let Some(end) = bytes[12..].first_chunk() else { return Err(WireError::TooShort { needed: 16, got }) };
            dws.dw[3] = u32::from_be_bytes(*end);
            dws.four = true;
            header_bytes = 16;
        }
        let header = match kind {
            TlpKind::MWr => Header::Memory(MemoryRequest::parse(MemoryKind::MWr, &dws)?),
            TlpKind::MRd => Header::Memory(MemoryRequest::parse(MemoryKind::MRd, &dws)?),
            TlpKind::MRdLk => Header::Memory(MemoryRequest::parse(MemoryKind::MRdLk, &dws)?),
            TlpKind::FetchAdd => Header::Atomic(AtomicRequest::parse(AtomicKind::FetchAdd, &dws)?),
            TlpKind::Swap => Header::Atomic(AtomicRequest::parse(AtomicKind::Swap, &dws)?),
            TlpKind::Cas => Header::Atomic(AtomicRequest::parse(AtomicKind::Cas, &dws)?),
            TlpKind::IORd => Header::Io(IoRequest::parse(IoKind::IORd, &dws)?),
            TlpKind::IOWr => Header::Io(IoRequest::parse(IoKind::IOWr, &dws)?),
            TlpKind::CfgRd0 => Header::Config(ConfigRequest::parse(ConfigKind::CfgRd0, &dws)?),
            TlpKind::CfgWr0 => Header::Config(ConfigRequest::parse(ConfigKind::CfgWr0, &dws)?),
            TlpKind::CfgRd1 => Header::Config(ConfigRequest::parse(ConfigKind::CfgRd1, &dws)?),
            TlpKind::CfgWr1 => Header::Config(ConfigRequest::parse(ConfigKind::CfgWr1, &dws)?),
            TlpKind::Msg | TlpKind::MsgD => Header::Message(Message::parse(kind, &dws)?),
            TlpKind::Cpl | TlpKind::CplD | TlpKind::CplLk | TlpKind::CplDLk => {
                Header::Completion(Completion::parse(kind, &dws)?)
            }
        };
        Ok((header, header_bytes))
    }

    /// Parses a header and all the data after it; a digest and further bytes may follow.
    ///
    /// ```
    /// use lanemark_wire::Header;
    /// let mut bytes = [0; 12 + 64];
    /// bytes[..12].copy_from_slice(&[0x40, 0, 0, 0, 1, 0, 1, 0xff, 0xfe, 0, 0, 0]);
    /// let error = Header::parse_whole(&bytes).unwrap_err();
    /// assert_eq!(error.to_string(), "byte 2: Length 0 means 1024 DW (4096 B); the buffer has 64 B");
    /// ```
    ///
    /// # Errors
    /// [`WireError::DataCut`] if data or digest exceed `bytes`, and the errors of [`Header::parse`].
    #[inline]
    pub fn parse_whole(bytes: &[u8]) -> Result<(Header, &[u8]), WireError> {
        let (header, header_bytes) = Header::parse(bytes)?;
        let rest = bytes.get(header_bytes..).unwrap_or_default();
        // Reads DW 0 again: the header just parsed lies in memory in other pieces than would be loaded here.
        let dw0 = bytes.first_chunk().map_or(0, |dw0| u32::from_be_bytes(*dw0));
        let (data_bytes, td) = field::data_bytes_and_td(dw0);
        debug_assert_eq!((data_bytes, td), (header.data_bytes() as usize, header.td()));
        if rest.len() < data_bytes + if td { 4 } else { 0 } {
            let dw = header.length();
            return Err(WireError::DataCut { field: dw & 0x3ff, dw, td, got: rest.len() });
        }
        Ok((header, &rest[..data_bytes]))
    }

    /// Writes the header to the start of `buffer` and returns its length; on error the buffer is unchanged.
    ///
    /// # Errors
    /// [`WireError::TooShort`] if `buffer` is too small, and the first violated rule of a field.
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        let dws = match self {
            Header::Memory(request) => request.emit()?,
            Header::Atomic(request) => request.emit()?,
            Header::Io(request) => request.emit()?,
            Header::Config(request) => request.emit()?,
            Header::Message(message) => message.emit()?,
            Header::Completion(completion) => completion.emit()?,
        };
        let got = buffer.len();
        let [a, b, c, d] = dws.dw.map(u128::from);
        let bytes = (a << 96 | b << 64 | c << 32 | d).to_be_bytes();
        if dws.four {
            let Some(out) = buffer.first_chunk_mut::<16>() else { return Err(WireError::TooShort { needed: 16, got }) };
            *out = bytes;
            return Ok(16);
        }
        let Some(out) = buffer.first_chunk_mut::<12>() else { return Err(WireError::TooShort { needed: 12, got }) };
        out.copy_from_slice(&bytes[..12]);
        Ok(12)
    }

    /// The kind of TLP.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> TlpKind {
        match self {
            Header::Memory(request) => request.kind.tlp_kind(),
            Header::Atomic(request) => request.kind.tlp_kind(),
            Header::Io(request) => request.kind.tlp_kind(),
            Header::Config(request) => request.kind.tlp_kind(),
            Header::Message(message) => message.tlp_kind(),
            Header::Completion(completion) => completion.tlp_kind(),
        }
    }

    /// The class for flow control and ordering.
    #[inline]
    #[must_use]
    pub const fn class(&self) -> FlowClass {
        match self {
            Header::Memory(MemoryRequest { kind: MemoryKind::MWr, .. }) | Header::Message(_) => FlowClass::Posted,
            Header::Completion(_) => FlowClass::Completion,
            _ => FlowClass::NonPosted,
        }
    }

    /// Length of the header in DW: 3 or 4.
    #[inline]
    #[must_use]
    pub const fn header_dw(&self) -> u8 {
        match self {
            Header::Memory(request) => request.header_dw(),
            Header::Atomic(request) => request.header_dw(),
            Header::Message(_) => 4,
            Header::Io(_) | Header::Config(_) | Header::Completion(_) => 3,
        }
    }

    /// Length in DW: of the data, or of the data requested by a read. 0 for `Msg`, `Cpl` and `CplLk`.
    #[inline]
    #[must_use]
    pub const fn length(&self) -> u16 {
        match self {
            Header::Memory(request) => request.length,
            Header::Atomic(request) => request.length(),
            Header::Io(_) | Header::Config(_) => 1,
            Header::Message(message) => message.length,
            Header::Completion(completion) => completion.length,
        }
    }

    /// Bytes of data after the header, in whole DWs; 0 for a read.
    #[inline]
    #[must_use]
    pub const fn data_bytes(&self) -> u32 {
        if self.kind().has_data() { self.length() as u32 * 4 } else { 0 }
    }

    /// TD: a digest of 4 B follows.
    #[inline]
    #[must_use]
    pub const fn td(&self) -> bool {
        match self {
            Header::Memory(request) => request.common.td,
            Header::Atomic(request) => request.common.td,
            Header::Io(request) => request.td,
            Header::Config(request) => request.td,
            Header::Message(message) => message.common.td,
            Header::Completion(completion) => completion.common.td,
        }
    }

    /// Requester ID: of the requester, or of the sender of a message.
    #[must_use]
    pub const fn requester_id(&self) -> FunctionId {
        match self {
            Header::Memory(request) => request.requester_id,
            Header::Atomic(request) => request.requester_id,
            Header::Io(request) => request.requester_id,
            Header::Config(request) => request.requester_id,
            Header::Message(message) => message.requester_id,
            Header::Completion(completion) => completion.requester_id,
        }
    }

    /// The tag; meaningless in a posted TLP.
    #[must_use]
    pub const fn tag(&self) -> u16 {
        match self {
            Header::Memory(request) => request.tag,
            Header::Atomic(request) => request.tag,
            Header::Io(request) => request.tag,
            Header::Config(request) => request.tag,
            Header::Message(message) => message.tag,
            Header::Completion(completion) => completion.tag,
        }
    }

    /// Credits of its [`FlowClass`] that it consumes.
    #[inline]
    #[must_use]
    pub const fn credits(&self) -> Credits {
        Credits { header: 1, data: data_credits(self.data_bytes()) }
    }

    /// Bytes of the whole TLP on the link.
    #[inline]
    #[must_use]
    pub const fn wire_bytes(&self, generation: Generation) -> u32 {
        tlp_wire_bytes(generation, self.header_dw(), self.data_bytes(), self.td())
    }
}

#[cold]
fn no_kind(byte0: u8) -> WireError {
    let fmt = byte0 >> 5;
    if fmt == 0b100 { WireError::Prefix { byte0 } } else { WireError::ReservedType { fmt, type_bits: byte0 & 0x1f } }
}

#[cfg(test)]
mod testing {
    use super::{Header, WireError};

    /// Checks that `bytes` parse to `header` and `header` encodes to `bytes`, and that one byte less is refused.
    pub fn both_ways(bytes: &[u8], header: Header) {
        assert_eq!(Header::parse(bytes), Ok((header, bytes.len())));
        assert_eq!(sent(header), bytes);
        let short = WireError::TooShort { needed: bytes.len(), got: bytes.len() - 1 };
        assert_eq!(Header::parse(&bytes[..bytes.len() - 1]), Err(short));
        assert_eq!(header.emit(&mut [0; 16][..bytes.len() - 1]), Err(short));
        assert_eq!(usize::from(header.header_dw()) * 4, bytes.len());
        assert_eq!(header.kind().class(), header.class());
    }

    pub fn refused(bytes: &[u8]) -> WireError {
        Header::parse(bytes).unwrap_err()
    }

    pub fn sent(header: Header) -> Vec<u8> {
        let mut bytes = [0; 16];
        let used = header.emit(&mut bytes).unwrap();
        bytes[..used].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_distinguished_from_reserved_types() {
        let mut bytes = [0; 12];
        bytes[0] = 0x91;
        assert_eq!(testing::refused(&bytes), WireError::Prefix { byte0: 0x91 });
        bytes[0] = 0x5b;
        assert_eq!(testing::refused(&bytes), WireError::ReservedType { fmt: 0b010, type_bits: 0b1_1011 });
        assert_eq!(testing::refused(&bytes).to_string(), "byte 0: Fmt 0b010 with Type 0b11011 is reserved");
    }

    #[test]
    fn parse_whole_requires_data_and_digest() {
        let write = MemoryRequest::write(FunctionId(0), 0x1000, 8);
        let write = MemoryRequest { common: CommonFields { td: true, ..write.common }, ..write };
        let mut bytes = [7; 12 + 8 + 4];
        Header::Memory(write).emit(&mut bytes).unwrap();
        assert_eq!(Header::parse_whole(&bytes), Ok((Header::Memory(write), &[7; 8][..])));
        let cut = Header::parse_whole(&bytes[..23]).unwrap_err();
        assert_eq!(cut, WireError::DataCut { field: 2, dw: 2, td: true, got: 11 });
        assert_eq!(cut.to_string(), "byte 2: Length 2 means 2 DW (8 B) and TD a digest of 4 B; the buffer has 11 B");
    }

    #[test]
    fn wire_bytes_and_credits_of_a_write_and_a_read() {
        let write = Header::Memory(MemoryRequest::write(FunctionId(0), 1 << 32, 256));
        assert_eq!(write.wire_bytes(Generation::Gen3), 280);
        assert_eq!(write.credits(), Credits { header: 1, data: 16 });
        let read = Header::Memory(MemoryRequest::read(FunctionId(0), 0, 0x1000, 512));
        assert_eq!(read.wire_bytes(Generation::Gen3), 20);
        assert_eq!(read.credits(), Credits { header: 1, data: 0 });
        assert_eq!((read.length(), read.data_bytes()), (128, 0));
    }
}
