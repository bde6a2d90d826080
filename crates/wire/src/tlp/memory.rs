//! Memory requests: `MRd`, `MRdLk`, `MWr`.

use super::field::{self, AddressType, CommonFields, Dws, FMT_4DW, ProcessingHint, TH, Tph};
use crate::byte_enable::{self, contiguous, reaches_end, reaches_start};
use crate::{FunctionId, TlpKind, WireError};

/// First address that needs a 4 DW header.
const FOUR_GIB: u64 = 1 << 32;
const PAGE: u64 = 4096;

/// A kind of memory request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryKind {
    /// Read.
    MRd,
    /// Locked read.
    MRdLk,
    /// Write.
    MWr,
}

impl MemoryKind {
    /// The kind of TLP of this request.
    #[inline]
    #[must_use]
    pub const fn tlp_kind(self) -> TlpKind {
        match self {
            MemoryKind::MRd => TlpKind::MRd,
            MemoryKind::MRdLk => TlpKind::MRdLk,
            MemoryKind::MWr => TlpKind::MWr,
        }
    }
}

/// A memory request. The address determines the length of the header: 4 DW from 4 GiB on, 3 DW below.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.7; enables: section 2.2.5; TH: section 2.2.7.1.
///
/// ```
/// use lanemark_wire::{FunctionId, Header, MemoryRequest};
/// let write = MemoryRequest::write(FunctionId(0x0100), 0xfe00_0010, 16);
/// let mut bytes = [0; 16];
/// assert_eq!(Header::Memory(write).emit(&mut bytes), Ok(12));
/// assert_eq!(bytes[..12], [0x40, 0, 0, 4, 1, 0, 0, 0xff, 0xfe, 0, 0, 0x10]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemoryRequest {
    /// TC, Attr, TD, EP.
    pub common: CommonFields,
    /// Read, locked read or write.
    pub kind: MemoryKind,
    /// Requester ID.
    pub requester_id: FunctionId,
    /// Tag, which matches completions to a read; 0 to 1023. Meaningless in a write, and 0 in a write with TH.
    pub tag: u16,
    /// Address of the first DW, a multiple of 4 B.
    pub address: u64,
    /// Length in DW, 1 to 1024.
    pub length: u16,
    /// First DW BE, bit 0 for the lowest byte.
    pub first_be: u8,
    /// Last DW BE; 0 if the length is 1 DW.
    pub last_be: u8,
    /// Address type.
    pub at: AddressType,
    /// TLP processing hint, if TH is set. A read with TH reads whole DWs.
    pub th: Option<Tph>,
}

impl MemoryRequest {
    fn contiguous(kind: MemoryKind, requester_id: FunctionId, tag: u16, address: u64, bytes: u32) -> MemoryRequest {
        let (first_be, last_be, length) = contiguous(address, bytes);
        MemoryRequest {
            common: CommonFields::default(),
            kind,
            requester_id,
            tag,
            address: address & !3,
            length,
            first_be,
            last_be,
            at: AddressType::Untranslated,
            th: None,
        }
    }

    /// A read of `bytes` from `address`. `emit` checks the length and the 4 KiB rule.
    #[must_use]
    pub fn read(requester_id: FunctionId, tag: u16, address: u64, bytes: u32) -> MemoryRequest {
        MemoryRequest::contiguous(MemoryKind::MRd, requester_id, tag, address, bytes)
    }

    /// A write of `bytes` to `address`. `emit` checks the length and the 4 KiB rule.
    #[must_use]
    pub fn write(requester_id: FunctionId, address: u64, bytes: u32) -> MemoryRequest {
        MemoryRequest::contiguous(MemoryKind::MWr, requester_id, 0, address, bytes)
    }

    /// Address and number of the enabled bytes; `None` if the enables leave a hole.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u32)> {
        byte_enable::span(self.address, self.first_be, self.last_be, self.length)
    }

    /// Length of the header in DW: 3 or 4.
    #[inline]
    #[must_use]
    pub const fn header_dw(&self) -> u8 {
        if self.address < FOUR_GIB { 3 } else { 4 }
    }

    #[expect(clippy::inline_always, reason = "a hot path: by call, the result is copied twice through memory")]
    #[inline(always)]
    pub(super) fn parse(kind: MemoryKind, dws: &Dws) -> Result<MemoryRequest, WireError> {
        let tlp_kind = kind.tlp_kind();
        dws.no_ln(tlp_kind)?;
        let (address, low) = address_and_low_bits(dws)?;
        let length = dws.length();
        let dw1 = dws.dw[1];
        let (at, low) = match dws.at() {
            0b00 => (AddressType::Untranslated, low),
            0b01 => (AddressType::TranslationRequest { no_write: low & 1 != 0 }, low & 0b10),
            0b10 => (AddressType::Translated, low),
            _ => return Err(WireError::Reserved { byte: 2, field: "AT", kind: tlp_kind }),
        };
        let request = MemoryRequest {
            common: dws.common(),
            kind,
            requester_id: FunctionId((dw1 >> 16) as u16),
            tag: dws.tag(1),
            address,
            length,
            first_be: dw1 as u8 & 0xf,
            last_be: dw1 as u8 >> 4,
            at,
            th: None,
        };
        let request = if dws.dw[0] & TH == 0 {
            field::zero(low, low_bits_byte(dws), "address[1:0]", tlp_kind)?;
            request
        } else {
            request.with_hint(low)?
        };
        request.check()?;
        Ok(request)
    }

    /// Reinterprets tag and byte enables as those of a request with TH set.
    #[cold]
    fn with_hint(self, low: u32) -> Result<MemoryRequest, WireError> {
        let ph = ProcessingHint::ALL[low as usize & 3];
        Ok(if self.kind == MemoryKind::MWr {
            field::prescribed(1, "Tag[9:8]", TlpKind::MWr, self.tag >> 8, 0)?;
            MemoryRequest { tag: 0, th: Some(Tph { ph, st: self.tag as u8 }), ..self }
        } else {
            let (first_be, last_be) = whole_dws(self.length);
            let st = self.last_be << 4 | self.first_be;
            MemoryRequest { first_be, last_be, th: Some(Tph { ph, st }), ..self }
        })
    }

    #[expect(clippy::inline_always, reason = "a hot path: by call, the result is copied twice through memory")]
    #[inline(always)]
    pub(super) fn emit(&self) -> Result<Dws, WireError> {
        field::in_range(7, "1st DW BE", u16::from(self.first_be), 0, 0xf)?;
        field::in_range(7, "Last DW BE", u16::from(self.last_be), 0, 0xf)?;
        let mut dws = Dws::start(self.kind.tlp_kind(), self.address >= FOUR_GIB);
        dws.set_common(self.common)?;
        dws.set_length(self.length)?;
        dws.set_at(self.at.bits());
        set_address(&mut dws, self.address, 4)?;
        self.check()?;
        dws.dw[1] = u32::from(self.requester_id.0) << 16 | u32::from(self.last_be << 4 | self.first_be);
        dws.set_tag(1, self.tag)?;
        if let AddressType::TranslationRequest { no_write: true } = self.at {
            set_low_bits(&mut dws, 1);
        }
        if let Some(Tph { ph, st }) = self.th {
            dws.dw[0] |= TH;
            set_low_bits(&mut dws, ph as u32);
            let (clear, shift) = if self.kind == MemoryKind::MWr { (0xff00, 8) } else { (0xff, 0) };
            dws.dw[1] = dws.dw[1] & !clear | u32::from(st) << shift;
        }
        Ok(dws)
    }

    #[expect(clippy::inline_always, reason = "a hot path: by call, the result is copied twice through memory")]
    #[inline(always)]
    fn check(self) -> Result<(), WireError> {
        if (self.address & (PAGE - 1)) + u64::from(self.length) * 4 > PAGE {
            return Err(WireError::Crosses4KiB { address: self.address, length: self.length });
        }
        self.check_enables()?;
        if self.th.is_some() {
            self.check_hint()?;
        }
        if let AddressType::TranslationRequest { .. } = self.at {
            self.check_translation()?;
        }
        Ok(())
    }

    #[expect(clippy::inline_always, reason = "a hot path: by call, the result is copied twice through memory")]
    #[inline(always)]
    fn check_enables(self) -> Result<(), WireError> {
        let MemoryRequest { first_be, last_be, length, address, .. } = self;
        if length == 1 {
            return if last_be == 0 { Ok(()) } else { Err(WireError::LastBeOfOneDw { last_be }) };
        }
        if first_be == 0 {
            return Err(WireError::NoByteEnabled { field: "1st DW BE", length });
        }
        if last_be == 0 {
            return Err(WireError::NoByteEnabled { field: "Last DW BE", length });
        }
        if reaches_end(first_be) && reaches_start(last_be) || length == 2 && address.is_multiple_of(8) {
            return Ok(());
        }
        let first = !reaches_end(first_be);
        let (field, be) = if first { ("1st DW BE", first_be) } else { ("Last DW BE", last_be) };
        Err(WireError::Hole { field, be, length, address })
    }

    #[cold]
    fn check_hint(self) -> Result<(), WireError> {
        let kind = self.kind.tlp_kind();
        match self.kind {
            MemoryKind::MRdLk => Err(WireError::Reserved { byte: 1, field: "TH", kind }),
            MemoryKind::MWr => field::prescribed(6, "Tag beside a steering tag", kind, self.tag, 0),
            MemoryKind::MRd => {
                let (first_be, last_be) = whole_dws(self.length);
                let be = "1st DW BE beside a steering tag";
                field::prescribed(7, be, kind, u16::from(self.first_be), u16::from(first_be))?;
                let be = "Last DW BE beside a steering tag";
                field::prescribed(7, be, kind, u16::from(self.last_be), u16::from(last_be))
            }
        }
    }

    /// Checks a translation request. Source: PCI Express Base Specification 5.0, section 10.2.2.
    #[cold]
    fn check_translation(self) -> Result<(), WireError> {
        let kind = self.kind.tlp_kind();
        if kind != TlpKind::MRd {
            return Err(WireError::Reserved { byte: 2, field: "AT[0]", kind });
        }
        if self.th.is_some() {
            return Err(WireError::Reserved { byte: 1, field: "TH beside a translation request", kind });
        }
        if self.length % 2 == 1 { Err(WireError::HalfTranslation { length: self.length }) } else { Ok(()) }
    }
}

/// The enables of a request for whole DWs.
const fn whole_dws(length: u16) -> (u8, u8) {
    (0xf, if length == 1 { 0 } else { 0xf })
}

/// Offset of the byte with the lowest bits of the address.
const fn low_bits_byte(dws: &Dws) -> u8 {
    if dws.four { 15 } else { 11 }
}

/// The address of a memory request or an `AtomicOp`, and the two bits below it.
#[inline]
pub(super) fn address_and_low_bits(dws: &Dws) -> Result<(u64, u32), WireError> {
    debug_assert_eq!(dws.four, dws.dw[0] & FMT_4DW != 0);
    let (high, low) = if dws.four { (dws.dw[2], dws.dw[3]) } else { (0, dws.dw[2]) };
    let address = u64::from(high) << 32 | u64::from(low & !3);
    if dws.four && high == 0 { Err(WireError::FourDwBelow4GiB { address }) } else { Ok((address, low & 3)) }
}

#[inline]
pub(super) fn set_address(dws: &mut Dws, address: u64, align: u16) -> Result<(), WireError> {
    if address & (u64::from(align) - 1) != 0 {
        return Err(WireError::Unaligned { address, align });
    }
    (dws.dw[2], dws.dw[3]) = if dws.four { ((address >> 32) as u32, address as u32) } else { (address as u32, 0) };
    Ok(())
}

#[inline]
pub(super) fn set_low_bits(dws: &mut Dws, bits: u32) {
    dws.dw[if dws.four { 3 } else { 2 }] |= bits;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlp::testing::{both_ways, refused, sent};
    use crate::{Attr, Header};

    /// A frame that two public dissectors decode.
    const MWR_32: [u8; 12] = [0x40, 0x00, 0x00, 0x04, 0x01, 0x00, 0x01, 0xff, 0xfe, 0x00, 0x00, 0x10];
    /// `MRd` of 4096 B (Length 0) at `0x1_2345_6000`, TC 5, RO, IDO, ECRC, tag 0x3a5, requester 3b:1f.7.
    const MRD_64: [u8; 16] =
        [0x20, 0xdc, 0xa0, 0x00, 0x3b, 0xff, 0xa5, 0xff, 0x00, 0x00, 0x00, 0x01, 0x23, 0x45, 0x60, 0x00];
    const MRDLK_32: [u8; 12] = [0x01, 0x00, 0x00, 0x01, 0x00, 0x00, 0x07, 0x0f, 0x00, 0x0c, 0x00, 0x04];

    fn id(raw: u16) -> FunctionId {
        FunctionId(raw)
    }

    fn read(address: u64, bytes: u32) -> MemoryRequest {
        MemoryRequest::read(id(0x100), 1, address, bytes)
    }

    fn refuse(request: MemoryRequest) -> WireError {
        Header::Memory(request).emit(&mut [0; 16]).unwrap_err()
    }

    #[test]
    fn a_write_has_the_bytes_that_dissectors_decode() {
        let write = MemoryRequest { tag: 1, ..MemoryRequest::write(id(0x0100), 0xfe00_0010, 16) };
        both_ways(&MWR_32, Header::Memory(write));
    }

    #[test]
    fn a_read_of_4096_bytes_above_4_gib_round_trips() {
        let attr = Attr { relaxed_ordering: true, no_snoop: false, id_based_ordering: true };
        let common = CommonFields { tc: 5, attr, td: true, ep: false };
        let read = MemoryRequest { common, ..MemoryRequest::read(id(0x3bff), 0x3a5, 0x1_2345_6000, 4096) };
        both_ways(&MRD_64, Header::Memory(read));
    }

    #[test]
    fn a_locked_read_round_trips() {
        let read = MemoryRequest { kind: MemoryKind::MRdLk, ..MemoryRequest::read(id(0), 7, 0xc_0004, 4) };
        both_ways(&MRDLK_32, Header::Memory(read));
    }

    #[test]
    fn a_4_dw_header_is_used_from_4_gib_on() {
        let mut bytes = sent(Header::Memory(read(0x1_0000_0000, 4)));
        assert_eq!(bytes.len(), 16);
        assert_eq!(sent(Header::Memory(read(0xffff_fffc, 4))).len(), 12);
        bytes[11] = 0;
        bytes[14] = 0x20;
        assert_eq!(refused(&bytes), WireError::FourDwBelow4GiB { address: 0x2000 });
    }

    #[test]
    fn a_read_crossing_4k_is_rejected() {
        assert_eq!(sent(Header::Memory(read(0x1ffc, 4))).len(), 12);
        assert_eq!(refuse(read(0x1ffc, 5)), WireError::Crosses4KiB { address: 0x1ffc, length: 2 });
        assert_eq!(sent(Header::Memory(read(0x1000, 4096))).len(), 12);
        let mut bytes = MWR_32;
        bytes[10] = 0x0f;
        bytes[11] = 0xf0; // 4 DW up to the boundary
        assert!(Header::parse(&bytes).is_ok());
        bytes[11] = 0xf4;
        assert_eq!(refused(&bytes), WireError::Crosses4KiB { address: 0xfe00_0ff4, length: 4 });
    }

    #[test]
    fn length_must_be_1_to_1024() {
        for (length, ok) in [(0, false), (1, true), (1024, true), (1025, false)] {
            let request = MemoryRequest { length, last_be: if length > 1 { 0xf } else { 0 }, ..read(0, 4) };
            assert_eq!(Header::Memory(request).emit(&mut [0; 16]).is_ok(), ok, "{length}");
        }
    }

    #[test]
    fn last_be_is_0_exactly_for_one_dw() {
        let one = read(0x1000, 4);
        let two = read(0x1000, 8);
        assert_eq!(refuse(MemoryRequest { last_be: 1, ..one }), WireError::LastBeOfOneDw { last_be: 1 });
        let none = |field| WireError::NoByteEnabled { field, length: 2 };
        assert_eq!(refuse(MemoryRequest { last_be: 0, ..two }), none("Last DW BE"));
        assert_eq!(refuse(MemoryRequest { first_be: 0, ..two }), none("1st DW BE"));
        sent(Header::Memory(MemoryRequest { first_be: 0, ..one }));
        sent(Header::Memory(MemoryRequest { first_be: 8, last_be: 1, ..two }));
    }

    #[test]
    fn holes_are_allowed_in_one_dw_or_an_aligned_qw_only() {
        for first_be in 0..16 {
            sent(Header::Memory(MemoryRequest { first_be, ..read(0x1004, 4) }));
        }
        let hole = |field, be, length, address| WireError::Hole { field, be, length, address };
        let two = |address| MemoryRequest { first_be: 0b0101, last_be: 0b1001, ..read(address, 8) };
        sent(Header::Memory(two(0x1000)));
        assert_eq!(refuse(two(0x1004)), hole("1st DW BE", 0b0101, 2, 0x1004));
        let three = MemoryRequest { last_be: 0b1110, ..read(0x1000, 12) };
        assert_eq!(refuse(three), hole("Last DW BE", 0b1110, 3, 0x1000));
        for (first_be, ok) in [(0b1111, true), (0b1000, true), (0b0111, false), (0b1011, false)] {
            let three = MemoryRequest { first_be, ..read(0x1000, 12) };
            assert_eq!(Header::Memory(three).emit(&mut [0; 16]).is_ok(), ok, "{first_be:04b}");
        }
    }

    #[test]
    fn addresses_must_be_dw_aligned() {
        let request = MemoryRequest { address: 0x1002, ..read(0x1000, 4) };
        assert_eq!(refuse(request), WireError::Unaligned { address: 0x1002, align: 4 });
        let mut bytes = MWR_32;
        bytes[11] |= 2;
        assert_eq!(refused(&bytes), WireError::Reserved { byte: 11, field: "address[1:0]", kind: TlpKind::MWr });
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let out = |byte, field, value, max| WireError::OutOfRange { byte, field, value, min: 0, max };
        let tc = |tc| MemoryRequest { common: CommonFields { tc, ..CommonFields::default() }, ..read(0, 4) };
        sent(Header::Memory(tc(7)));
        assert_eq!(refuse(tc(8)), out(1, "TC", 8, 7));
        let tag = |tag| MemoryRequest { tag, ..read(0, 4) };
        sent(Header::Memory(tag(1023)));
        assert_eq!(refuse(tag(1024)), out(6, "Tag", 1024, 1023));
        assert_eq!(refuse(MemoryRequest { first_be: 16, ..read(0, 4) }), out(7, "1st DW BE", 16, 15));
        assert_eq!(refuse(MemoryRequest { last_be: 31, ..read(0, 8) }), out(7, "Last DW BE", 31, 15));
    }

    #[test]
    fn at_3_and_ln_are_refused() {
        let mut bytes = MWR_32;
        bytes[2] |= 0b1000;
        both_ways(
            &bytes,
            Header::Memory(MemoryRequest {
                at: AddressType::Translated,
                tag: 1,
                ..MemoryRequest::write(id(0x0100), 0xfe00_0010, 16)
            }),
        );
        bytes[2] |= 0b1100;
        assert_eq!(refused(&bytes), WireError::Reserved { byte: 2, field: "AT", kind: TlpKind::MWr });
        let mut bytes = MWR_32;
        bytes[1] |= 0b10;
        assert_eq!(refused(&bytes), WireError::Reserved { byte: 1, field: "LN", kind: TlpKind::MWr });
    }

    #[test]
    fn a_steering_tag_replaces_the_tag_or_the_enables() {
        let th = Some(Tph { ph: ProcessingHint::TargetWithPriority, st: 0xa5 });
        let write = MemoryRequest { th, ..MemoryRequest::write(id(0x100), 0x1000, 8) };
        both_ways(&[0x40, 1, 0, 2, 1, 0, 0xa5, 0xff, 0, 0, 0x10, 3], Header::Memory(write));
        let one = MemoryRequest { th, ..read(0x1000, 4) };
        both_ways(&[0, 1, 0, 1, 1, 0, 1, 0xa5, 0, 0, 0x10, 3], Header::Memory(one));

        let prescribed = |error| match error {
            WireError::Prescribed { byte, value, wanted, .. } => (byte, value, wanted),
            other => panic!("{other}"),
        };
        assert_eq!(prescribed(refuse(MemoryRequest { tag: 5, ..write })), (6, 5, 0));
        let two = MemoryRequest { th, ..read(0x1000, 8) };
        assert_eq!(prescribed(refuse(MemoryRequest { first_be: 0xe, ..two })), (7, 0xe, 0xf));
        assert_eq!(prescribed(refuse(MemoryRequest { last_be: 0x7, ..two })), (7, 0x7, 0xf));
        let nine_bit_steering_tag = [0x40, 0x09, 0, 2, 1, 0, 0xa5, 0xff, 0, 0, 0x10, 3];
        assert_eq!(prescribed(refused(&nine_bit_steering_tag)), (1, 1, 0));
    }

    #[test]
    fn locked_reads_and_translation_requests_have_no_steering_tag() {
        let th = Some(Tph { ph: ProcessingHint::Target, st: 1 });
        let locked = MemoryRequest { kind: MemoryKind::MRdLk, th, ..read(0, 4) };
        assert_eq!(refuse(locked), WireError::Reserved { byte: 1, field: "TH", kind: TlpKind::MRdLk });
        let at = AddressType::TranslationRequest { no_write: false };
        assert!(matches!(refuse(MemoryRequest { at, th, ..read(0, 8) }), WireError::Reserved { byte: 1, .. }));
    }

    #[test]
    fn a_translation_request_reads_whole_translations() {
        let at = AddressType::TranslationRequest { no_write: true };
        let request = MemoryRequest { at, ..read(0x1000, 8) };
        both_ways(&[0, 0, 0x04, 2, 1, 0, 1, 0xff, 0, 0, 0x10, 1], Header::Memory(request));
        assert_eq!(refuse(MemoryRequest { at, ..read(0, 12) }), WireError::HalfTranslation { length: 3 });
        let write = MemoryRequest { at, ..MemoryRequest::write(id(0), 0, 8) };
        assert_eq!(refuse(write), WireError::Reserved { byte: 2, field: "AT[0]", kind: TlpKind::MWr });
    }
}
