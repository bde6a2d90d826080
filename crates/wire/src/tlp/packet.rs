//! A view of TLP bytes, legal or not.

use super::TlpKind;
use super::digest;
use super::field::length_dw;
use crate::{FunctionId, WireError};

const DW: usize = 4;

/// A view of a TLP in a buffer, legal or not, starting at its first prefix or header byte.
///
/// Accessors read their field at its place in this kind of TLP, or at its place in a request if the kind does not have
/// it. No accessor panics.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.
///
/// ```
/// use lanemark_wire::{Packet, TlpKind};
/// let bytes = [0x40, 0, 0, 4, 1, 0, 1, 0xff, 0xfe, 0, 0, 0x10, 0xaa, 0xbb];
/// let packet = Packet::new(&bytes).unwrap();
/// assert_eq!(packet.kind(), Some(TlpKind::MWr));
/// assert_eq!(packet.address(), 0xfe00_0010);
/// assert_eq!(packet.data_bytes(), 16);
/// assert_eq!(packet.data(), [0xaa, 0xbb]); // the capture is truncated
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
    start: usize,
    /// The header; the last 4 bytes are meaningless with a 3 DW header.
    header: [u8; 16],
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view of `buffer`; TLP prefixes are skipped.
    ///
    /// # Errors
    /// [`WireError::TooShort`] if the header is incomplete.
    pub fn new(buffer: T) -> Result<Packet<T>, WireError> {
        let bytes = buffer.as_ref();
        // Fast path, one load: most TLPs have no prefix, and more bytes than a header.
        if let Some(header) = bytes.first_chunk()
            && !is_prefix(header[0])
        {
            let header = *header;
            return Ok(Packet { buffer, start: 0, header });
        }
        if let Some(found) = bytes.first_chunk::<12>()
            && header_bytes(found[0]) == 12
            && !is_prefix(found[0])
        {
            let mut header = [0; 16];
            header[..12].copy_from_slice(found);
            return Ok(Packet { buffer, start: 0, header });
        }
        Packet::behind_prefixes(buffer)
    }

    #[cold]
    fn behind_prefixes(buffer: T) -> Result<Packet<T>, WireError> {
        let bytes = buffer.as_ref();
        let start = bytes.chunks(DW).take_while(|dw| is_prefix(dw[0])).count() * DW;
        let rest = bytes.get(start..).unwrap_or_default();
        let needed = rest.first().map_or(3 * DW, |byte0| header_bytes(*byte0));
        let Some(found) = rest.get(..needed) else {
            return Err(WireError::TooShort { needed, got: rest.len() });
        };
        let mut header = [0; 16];
        header[..needed].copy_from_slice(found);
        Ok(Packet { buffer, start, header })
    }

    /// Returns the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// TLP prefixes before the header, 4 B each.
    pub fn prefixes(&self) -> &[u8] {
        self.buffer.as_ref().get(..self.start).unwrap_or_default()
    }

    /// Length of the header: 12 or 16.
    pub fn header_bytes(&self) -> usize {
        header_bytes(self.header[0])
    }

    /// Fmt, 3 bits.
    pub fn fmt(&self) -> u8 {
        self.header[0] >> 5
    }

    /// Type, 5 bits.
    pub fn type_bits(&self) -> u8 {
        self.header[0] & 0x1f
    }

    /// The kind of TLP; `None` if Fmt and Type are reserved.
    pub fn kind(&self) -> Option<TlpKind> {
        TlpKind::from_byte0(self.header[0])
    }

    /// TC.
    pub fn tc(&self) -> u8 {
        self.header[1] >> 4 & 7
    }

    /// `Attr[2:0]`: IDO, RO, NS.
    pub fn attr(&self) -> u8 {
        self.header[1] & 4 | self.header[2] >> 4 & 3
    }

    /// LN.
    pub fn ln(&self) -> bool {
        self.header[1] & 2 != 0
    }

    /// TH.
    pub fn th(&self) -> bool {
        self.header[1] & 1 != 0
    }

    /// TD: a digest follows.
    pub fn td(&self) -> bool {
        self.header[2] & 0x80 != 0
    }

    /// EP: poisoned.
    pub fn ep(&self) -> bool {
        self.header[2] & 0x40 != 0
    }

    /// AT, 2 bits.
    pub fn at(&self) -> u8 {
        self.header[2] >> 2 & 3
    }

    /// Length field as sent, 10 bits.
    pub fn length_field(&self) -> u16 {
        self.half(2) & 0x3ff
    }

    /// Length in DW; field value 0 means 1024.
    pub fn length(&self) -> u16 {
        length_dw(self.length_field())
    }

    /// Requester ID.
    pub fn requester_id(&self) -> FunctionId {
        FunctionId(self.half(if self.is_completion() { 8 } else { 4 }))
    }

    /// Completer ID of a completion.
    pub fn completer_id(&self) -> FunctionId {
        FunctionId(self.half(4))
    }

    /// The 10-bit tag, T9 and T8 included.
    pub fn tag(&self) -> u16 {
        let low = self.header[if self.is_completion() { 10 } else { 6 }];
        u16::from(self.header[1] >> 7) << 9 | u16::from(self.header[1] >> 3 & 1) << 8 | u16::from(low)
    }

    /// First DW BE of a request.
    pub fn first_be(&self) -> u8 {
        self.header[7] & 0xf
    }

    /// Last DW BE of a request.
    pub fn last_be(&self) -> u8 {
        self.header[7] >> 4
    }

    /// Address of a memory, I/O or `AtomicOp` request with a 3 or 4 DW header, without its low two bits.
    pub fn address(&self) -> u64 {
        let [.., a, b, c, d] = self.header;
        let low = u32::from_be_bytes([a, b, c, d]);
        let first = u32::from(self.half(8)) << 16 | u32::from(self.half(10));
        if self.header_bytes() == 16 { u64::from(first) << 32 | u64::from(low & !3) } else { u64::from(first & !3) }
    }

    /// The two bits below the address: PH with TH, NW in a translation request.
    pub fn address_low_bits(&self) -> u8 {
        self.header[self.header_bytes() - 1] & 3
    }

    /// Destination of a configuration request.
    pub fn target(&self) -> FunctionId {
        FunctionId(self.half(8))
    }

    /// Register of a configuration request, as a byte offset.
    pub fn register(&self) -> u16 {
        self.half(10) & 0xffc
    }

    /// Message Code.
    pub fn code(&self) -> u8 {
        self.header[7]
    }

    /// Completion Status, 3 bits.
    pub fn status(&self) -> u8 {
        self.header[6] >> 5
    }

    /// BCM of a completion.
    pub fn bcm(&self) -> bool {
        self.header[6] & 0x10 != 0
    }

    /// Byte Count of a completion; field value 0 means 4096.
    pub fn byte_count(&self) -> u16 {
        match self.half(6) & 0xfff {
            0 => 4096,
            count => count,
        }
    }

    /// Lower Address of a completion.
    pub fn lower_address(&self) -> u8 {
        self.header[11] & 0x7f
    }

    /// Length of the data according to the header, in bytes; 0 if Fmt indicates none.
    pub fn data_bytes(&self) -> usize {
        if self.fmt() & 0b010 == 0 { 0 } else { usize::from(self.length()) * DW }
    }

    /// The data, as far as they are in the buffer.
    pub fn data(&self) -> &[u8] {
        let rest = self.behind_header();
        &rest[..rest.len().min(self.data_bytes())]
    }

    /// The digest (ECRC) after the data, if TD is set and the buffer contains it.
    pub fn ecrc(&self) -> Option<[u8; 4]> {
        if !self.td() {
            return None;
        }
        self.behind_header().get(self.data_bytes()..)?.first_chunk().copied()
    }

    /// The digest that its prefixes, header and data require, whether or not it has one; `None` if data are missing.
    ///
    /// ```
    /// use lanemark_wire::Packet;
    /// let mut read = vec![0x00, 0, 0x80, 1, 1, 0, 7, 0x0f, 0xfe, 0, 0, 0x10];
    /// let ecrc = Packet::new(&read).unwrap().expected_ecrc().unwrap();
    /// read.extend(ecrc);
    /// let packet = Packet::new(&read).unwrap();
    /// assert_eq!(packet.ecrc(), packet.expected_ecrc());
    /// ```
    pub fn expected_ecrc(&self) -> Option<[u8; 4]> {
        // Local prefixes come first, and links may change them.
        let local = self.prefixes().chunks(DW).take_while(|dw| dw[0] & 0x10 == 0).count() * DW;
        let end = self.start + self.header_bytes() + self.data_bytes();
        Some(digest::ecrc(self.buffer.as_ref().get(local..end)?, self.start - local))
    }

    fn behind_header(&self) -> &[u8] {
        self.buffer.as_ref().get(self.start + self.header_bytes()..).unwrap_or_default()
    }

    /// Compares Fmt without the 4 DW bit and Type without the locked bit; a test checks it against the table.
    fn is_completion(&self) -> bool {
        self.header[0] & 0b1011_1110 == 0b0000_1010
    }

    fn half(&self, byte: usize) -> u16 {
        u16::from_be_bytes([self.header[byte], self.header[byte + 1]])
    }
}

/// Whether a DW with first byte `byte0` is a TLP prefix.
const fn is_prefix(byte0: u8) -> bool {
    byte0 >> 5 == 0b100
}

/// Length of the header with first byte `byte0`, by the low bit of Fmt, also for reserved types.
const fn header_bytes(byte0: u8) -> usize {
    if byte0 & 0x20 == 0 { 3 * DW } else { 4 * DW }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowClass;

    #[test]
    fn a_completion_has_requester_id_and_tag_at_other_offsets_than_a_request() {
        let bytes = [0x4a, 0x08, 0, 1, 2, 0, 0x20, 8, 1, 0, 3, 0x44, 0xde, 0xad, 0xbe, 0xef];
        let packet = Packet::new(bytes).unwrap();
        assert_eq!(packet.completer_id(), FunctionId(0x200));
        assert_eq!(packet.requester_id(), FunctionId(0x100));
        assert_eq!((packet.tag(), packet.status(), packet.byte_count()), (0x103, 1, 8));
        assert_eq!(packet.lower_address(), 0x44);
        assert_eq!(packet.data(), [0xde, 0xad, 0xbe, 0xef]);
    }

    #[test]
    fn the_fast_completion_check_agrees_with_the_table() {
        for byte0 in (0..=u8::MAX).filter(|byte0| !is_prefix(*byte0)) {
            let mut bytes = [0; 16];
            bytes[0] = byte0;
            let is_one = TlpKind::from_byte0(byte0).is_some_and(|kind| kind.class() == FlowClass::Completion);
            assert_eq!(Packet::new(bytes).unwrap().is_completion(), is_one, "{byte0:#x}");
        }
    }

    #[test]
    fn prefixes_are_skipped() {
        let mut bytes = [0; 4 + 16 + 4];
        bytes[..4].copy_from_slice(&[0x91, 0, 0, 5]); // PASID 5
        bytes[4..20].copy_from_slice(&[0x20, 0, 0x80, 1, 1, 0, 9, 0xf, 0, 0, 0, 1, 0, 0, 0x10, 0]);
        bytes[20..].copy_from_slice(&[1, 2, 3, 4]);
        let packet = Packet::new(&bytes[..]).unwrap();
        assert_eq!(packet.prefixes(), [0x91, 0, 0, 5]);
        assert_eq!(packet.address(), 0x1_0000_1000);
        assert_eq!(packet.ecrc(), Some([1, 2, 3, 4]));
        assert_eq!(Packet::new(&bytes[..23]).unwrap().ecrc(), None);
    }

    #[test]
    fn an_incomplete_header_is_refused() {
        let mut bytes = [0; 16];
        assert!(Packet::new(&bytes[..12]).is_ok());
        assert_eq!(Packet::new(&bytes[..11]).unwrap_err(), WireError::TooShort { needed: 12, got: 11 });
        bytes[0] = 0x20;
        assert!(Packet::new(&bytes[..16]).is_ok());
        assert_eq!(Packet::new(&bytes[..15]).unwrap_err(), WireError::TooShort { needed: 16, got: 15 });
        assert_eq!(Packet::new(&[0x80; 6]).unwrap_err(), WireError::TooShort { needed: 12, got: 0 });
    }

    #[test]
    fn a_configuration_request_has_target_and_register() {
        let packet = Packet::new([0x44, 0, 0, 1, 0, 0, 1, 0x0f, 1, 8, 0x0f, 0xfc]).unwrap();
        assert_eq!((packet.target(), packet.register()), (FunctionId(0x108), 0xffc));
    }

    #[test]
    fn the_expected_digest_covers_end_to_end_prefixes_only() {
        let write = [0x40, 0, 0x80, 1, 1, 0, 1, 0x0f, 0xfe, 0, 0, 0x10, 1, 2, 3, 4];
        let of = |prefixes: &[u8]| Packet::new([prefixes, &write].concat()).unwrap().expected_ecrc().unwrap();
        let (local, pasid, other) = ([0x8e, 0, 0, 1], [0x91, 0, 0, 5], [0x91, 0, 0, 6]);
        assert_eq!(of(&local), of(&[]));
        assert_eq!(of(&[local, pasid].concat()), of(&pasid));
        assert!(of(&pasid) != of(&[]) && of(&pasid) != of(&other));
        assert_eq!(Packet::new(&write[..15]).unwrap().expected_ecrc(), None);
    }
}
