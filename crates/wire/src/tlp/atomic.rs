//! Atomic operations: `FetchAdd`, Swap, CAS.

use super::field::{self, AddressType, CommonFields, Dws, ProcessingHint, TH, Tph};
use super::memory::{address_and_low_bits, set_address, set_low_bits};
use crate::{FunctionId, TlpKind, WireError};

/// An atomic operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicKind {
    /// Adds an operand; 4 or 8 B.
    FetchAdd,
    /// Replaces the value by an operand; 4 or 8 B.
    Swap,
    /// Replaces the value by one operand if it equals the other; 4, 8 or 16 B each.
    Cas,
}

impl AtomicKind {
    /// The kind of TLP of this request.
    #[inline]
    #[must_use]
    pub const fn tlp_kind(self) -> TlpKind {
        match self {
            AtomicKind::FetchAdd => TlpKind::FetchAdd,
            AtomicKind::Swap => TlpKind::Swap,
            AtomicKind::Cas => TlpKind::Cas,
        }
    }

    /// Maximum size of an operand, in bytes.
    const fn max_operand_bytes(self) -> u16 {
        if matches!(self, AtomicKind::Cas) { 16 } else { 8 }
    }

    /// Number of operands in the request.
    const fn operands(self) -> u16 {
        if matches!(self, AtomicKind::Cas) { 2 } else { 1 }
    }
}

/// An `AtomicOp` request: non-posted, with data. Its completion is a `CplD` with the old value.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.7 and section 6.15.
///
/// ```
/// use lanemark_wire::{AtomicKind, AtomicRequest, FunctionId, Header};
/// let cas = AtomicRequest::new(AtomicKind::Cas, FunctionId(0x0100), 3, 0x1000, 8);
/// assert_eq!(Header::Atomic(cas).data_bytes(), 16); // compare value and swap value
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AtomicRequest {
    /// TC, Attr, TD, EP.
    pub common: CommonFields,
    /// The operation.
    pub kind: AtomicKind,
    /// Requester ID.
    pub requester_id: FunctionId,
    /// Tag, which matches the completion to the request; 0 to 1023.
    pub tag: u16,
    /// Address, a multiple of `operand_bytes`.
    pub address: u64,
    /// Size of an operand: 4 or 8; 16 for CAS only.
    pub operand_bytes: u16,
    /// Address type; a translation request is not allowed.
    pub at: AddressType,
    /// TLP processing hint, if TH is set.
    pub th: Option<Tph>,
}

impl AtomicRequest {
    /// A request without attributes. `emit` checks operand size and address.
    #[must_use]
    pub fn new(
        kind: AtomicKind,
        requester_id: FunctionId,
        tag: u16,
        address: u64,
        operand_bytes: u16,
    ) -> AtomicRequest {
        let common = CommonFields::default();
        AtomicRequest { common, kind, requester_id, tag, address, operand_bytes, at: AddressType::default(), th: None }
    }

    /// Length of the header in DW: 3 or 4.
    #[inline]
    #[must_use]
    pub const fn header_dw(&self) -> u8 {
        if self.address >> 32 == 0 { 3 } else { 4 }
    }

    /// Length of the data in DW.
    #[inline]
    #[must_use]
    pub const fn length(&self) -> u16 {
        self.operand_bytes / 4 * self.kind.operands()
    }

    #[inline(never)]
    pub(super) fn parse(kind: AtomicKind, dws: &Dws) -> Result<AtomicRequest, WireError> {
        let tlp_kind = kind.tlp_kind();
        dws.no_ln(tlp_kind)?;
        let (address, low) = address_and_low_bits(dws)?;
        let at = match dws.at() {
            0b00 => AddressType::Untranslated,
            0b10 => AddressType::Translated,
            _ => return Err(WireError::Reserved { byte: 2, field: "AT[0]", kind: tlp_kind }),
        };
        let st = dws.dw[1] as u8;
        let th = if dws.dw[0] & TH == 0 {
            field::zero(low, if dws.four { 15 } else { 11 }, "address[1:0]", tlp_kind)?;
            field::zero(u32::from(st), 7, "the byte of the enables", tlp_kind)?;
            None
        } else {
            Some(Tph { ph: ProcessingHint::ALL[low as usize & 3], st })
        };
        let length = dws.length();
        let operand_bytes = length * 4 / kind.operands();
        let request = AtomicRequest {
            common: dws.common(),
            kind,
            requester_id: FunctionId((dws.dw[1] >> 16) as u16),
            tag: dws.tag(1),
            address,
            operand_bytes,
            at,
            th,
        };
        request.check_operand(length)?;
        let align = operand_bytes;
        if address & (u64::from(align) - 1) == 0 { Ok(request) } else { Err(WireError::Unaligned { address, align }) }
    }

    fn check_operand(&self, length: u16) -> Result<(), WireError> {
        let size = self.operand_bytes;
        if size.is_power_of_two() && (4..=self.kind.max_operand_bytes()).contains(&size) {
            return Ok(());
        }
        Err(WireError::OperandSize { kind: self.kind.tlp_kind(), length })
    }

    #[inline(never)]
    pub(super) fn emit(&self) -> Result<Dws, WireError> {
        let tlp_kind = self.kind.tlp_kind();
        self.check_operand((u32::from(self.operand_bytes) * u32::from(self.kind.operands()) / 4) as u16)?;
        if let AddressType::TranslationRequest { .. } = self.at {
            return Err(WireError::Reserved { byte: 2, field: "AT[0]", kind: tlp_kind });
        }
        let mut dws = Dws::start(tlp_kind, self.header_dw() == 4);
        dws.set_common(self.common)?;
        dws.set_length(self.length())?;
        dws.set_at(self.at.bits());
        dws.dw[1] = u32::from(self.requester_id.0) << 16;
        dws.set_tag(1, self.tag)?;
        set_address(&mut dws, self.address, self.operand_bytes)?;
        if let Some(Tph { ph, st }) = self.th {
            dws.dw[0] |= TH;
            dws.dw[1] |= u32::from(st);
            set_low_bits(&mut dws, ph as u32);
        }
        Ok(dws)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;
    use crate::tlp::testing::{both_ways, refused};

    const FETCH_ADD: [u8; 12] = [0x4c, 0, 0, 1, 1, 0, 9, 0, 0, 0, 0x10, 4];
    const SWAP_64: [u8; 16] = [0x6d, 0, 0, 2, 1, 0, 9, 0, 0, 0, 0, 2, 0, 0, 0x10, 8];
    const CAS: [u8; 12] = [0x4e, 0, 0, 8, 1, 0, 9, 0, 0, 0, 0x10, 0x10];

    fn request(kind: AtomicKind, address: u64, operand_bytes: u16) -> AtomicRequest {
        AtomicRequest::new(kind, FunctionId(0x100), 9, address, operand_bytes)
    }

    fn refuse(request: AtomicRequest) -> WireError {
        Header::Atomic(request).emit(&mut [0; 16]).unwrap_err()
    }

    #[test]
    fn each_operation_round_trips() {
        both_ways(&FETCH_ADD, Header::Atomic(request(AtomicKind::FetchAdd, 0x1004, 4)));
        both_ways(&SWAP_64, Header::Atomic(request(AtomicKind::Swap, 0x2_0000_1008, 8)));
        both_ways(&CAS, Header::Atomic(request(AtomicKind::Cas, 0x1010, 16)));
    }

    #[test]
    fn a_steering_tag_round_trips() {
        let th = Some(Tph { ph: ProcessingHint::Target, st: 0x5a });
        let bytes = [0x4c, 1, 0, 1, 1, 0, 9, 0x5a, 0, 0, 0x10, 6];
        both_ways(&bytes, Header::Atomic(AtomicRequest { th, ..request(AtomicKind::FetchAdd, 0x1004, 4) }));
    }

    #[test]
    fn only_operand_sizes_of_the_specification_are_accepted() {
        for kind in [AtomicKind::FetchAdd, AtomicKind::Swap, AtomicKind::Cas] {
            let accepted: Vec<u16> = (0..=u16::MAX)
                .filter(|size| Header::Atomic(request(kind, 0, *size)).emit(&mut [0; 16]).is_ok())
                .collect();
            assert_eq!(accepted, [4, 8, 16][..if kind == AtomicKind::Cas { 3 } else { 2 }]);
        }
        let mut bytes = CAS;
        bytes[3] = 6;
        assert_eq!(refused(&bytes), WireError::OperandSize { kind: TlpKind::Cas, length: 6 });
        bytes[3] = 1;
        assert_eq!(refused(&bytes), WireError::OperandSize { kind: TlpKind::Cas, length: 1 });
        let mut bytes = FETCH_ADD;
        bytes[3] = 4;
        assert_eq!(refused(&bytes), WireError::OperandSize { kind: TlpKind::FetchAdd, length: 4 });
    }

    #[test]
    fn operands_must_be_aligned_to_their_size() {
        let wrong = WireError::Unaligned { address: 0x1008, align: 16 };
        assert_eq!(refuse(request(AtomicKind::Cas, 0x1008, 16)), wrong);
        let mut bytes = CAS;
        bytes[11] = 8;
        assert_eq!(refused(&bytes), wrong);
    }

    #[test]
    fn byte_enables_and_translation_requests_are_refused() {
        let mut bytes = FETCH_ADD;
        bytes[7] = 0x0f;
        assert!(matches!(refused(&bytes), WireError::Reserved { byte: 7, .. }));
        let mut bytes = FETCH_ADD;
        bytes[2] = 0b0100;
        let wrong = WireError::Reserved { byte: 2, field: "AT[0]", kind: TlpKind::FetchAdd };
        assert_eq!(refused(&bytes), wrong);
        let at = AddressType::TranslationRequest { no_write: false };
        assert_eq!(refuse(AtomicRequest { at, ..request(AtomicKind::FetchAdd, 0, 4) }), wrong);
    }
}
