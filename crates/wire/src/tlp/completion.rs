//! Completions: Cpl, `CplD`, `CplLk`, `CplDLk`.

use super::field::{self, CommonFields, Dws, MAX_LENGTH_DW};
use crate::{FunctionId, TlpKind, WireError};

/// Maximum Byte Count: the largest read.
const MAX_BYTE_COUNT: u16 = 4096;
/// The boundary on which every completion but the last ends, for any completer: the smaller of the two RCBs.
const SMALLEST_RCB: u32 = 64;

/// Completion Status.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CompletionStatus {
    /// SC, Successful Completion.
    Success,
    /// UR, Unsupported Request.
    UnsupportedRequest,
    /// CRS, Configuration Request Retry Status (RRS since 6.0).
    RequestRetry,
    /// CA, Completer Abort.
    CompleterAbort,
}

impl CompletionStatus {
    /// Every status, in order of codes.
    pub const ALL: [CompletionStatus; 4] = [
        CompletionStatus::Success,
        CompletionStatus::UnsupportedRequest,
        CompletionStatus::RequestRetry,
        CompletionStatus::CompleterAbort,
    ];

    /// Code: 0, 1, 2 or 4.
    #[inline]
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            CompletionStatus::Success => 0b000,
            CompletionStatus::UnsupportedRequest => 0b001,
            CompletionStatus::RequestRetry => 0b010,
            CompletionStatus::CompleterAbort => 0b100,
        }
    }

    /// The status with this code; `None` if it is reserved.
    #[inline]
    #[must_use]
    pub const fn from_code(code: u8) -> Option<CompletionStatus> {
        match code {
            0b000 => Some(CompletionStatus::Success),
            0b001 => Some(CompletionStatus::UnsupportedRequest),
            0b010 => Some(CompletionStatus::RequestRetry),
            0b100 => Some(CompletionStatus::CompleterAbort),
            _ => None,
        }
    }
}

/// A completion. Its header always has 3 DW.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.9; splitting of data: section 2.3.1.1.
///
/// ```
/// use lanemark_wire::{Completion, FunctionId, Header};
/// let answer = Completion::data(FunctionId(0), FunctionId(0x0100), 7, 0x40, 64, 64);
/// let mut bytes = [0; 12];
/// assert_eq!(Header::Completion(answer).emit(&mut bytes), Ok(12));
/// assert_eq!(bytes, [0x4a, 0, 0, 16, 0, 0, 0, 64, 1, 0, 7, 0x40]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Completion {
    /// TC, Attr, TD, EP; TC and Attr are those of the request.
    pub common: CommonFields,
    /// Whether it completes a locked read.
    pub locked: bool,
    /// Completer ID.
    pub completer_id: FunctionId,
    /// Completion Status.
    pub status: CompletionStatus,
    /// BCM: a PCI-X completer modified the byte count; `PCIe` completers leave it clear.
    pub bcm: bool,
    /// Byte Count: remaining bytes of the read, this completion included; 1 to 4096, and 4 if nothing was read.
    pub byte_count: u16,
    /// Requester ID.
    pub requester_id: FunctionId,
    /// Tag of the request, 0 to 1023.
    pub tag: u16,
    /// Address of the first byte returned, modulo 128.
    pub lower_address: u8,
    /// Length of the data in DW, at most 1024; 0 for a `Cpl`, above for a `CplD`.
    pub length: u16,
}

impl Completion {
    /// A completion with the next `bytes` of a read with `byte_count` remaining, at address `lower_address` modulo 128.
    #[must_use]
    pub fn data(
        completer_id: FunctionId,
        requester_id: FunctionId,
        tag: u16,
        lower_address: u8,
        byte_count: u16,
        bytes: u16,
    ) -> Completion {
        Completion {
            common: CommonFields::default(),
            locked: false,
            completer_id,
            status: CompletionStatus::Success,
            bcm: false,
            byte_count,
            requester_id,
            tag,
            lower_address,
            length: crate::byte_enable::contiguous(u64::from(lower_address), u32::from(bytes)).2,
        }
    }

    /// A completion without data: of a successful write, or of any failed request.
    #[must_use]
    pub fn without_data(
        completer_id: FunctionId,
        requester_id: FunctionId,
        tag: u16,
        status: CompletionStatus,
    ) -> Completion {
        let cpl = Completion::data(completer_id, requester_id, tag, 0, 4, 0);
        Completion { status, length: 0, ..cpl }
    }

    /// The kind of TLP.
    #[inline]
    #[must_use]
    pub const fn tlp_kind(&self) -> TlpKind {
        match (self.locked, self.length) {
            (false, 0) => TlpKind::Cpl,
            (false, _) => TlpKind::CplD,
            (true, 0) => TlpKind::CplLk,
            (true, _) => TlpKind::CplDLk,
        }
    }

    #[expect(clippy::inline_always, reason = "a hot path: by call, the result is copied twice through memory")]
    #[inline(always)]
    pub(super) fn parse(kind: TlpKind, dws: &Dws) -> Result<Completion, WireError> {
        dws.no_memory_fields(kind)?;
        let [_, dw1, dw2, _] = dws.dw;
        field::zero(dw2 & 0x80, 11, "the high bit", kind)?;
        let length = if kind.has_data() {
            dws.length()
        } else {
            field::zero(u32::from(dws.length_field()), 2, "Length", kind)?;
            0
        };
        let status = (dw1 >> 13) as u8 & 7;
        let count = dw1 as u16 & 0xfff;
        let completion = Completion {
            common: dws.common(),
            locked: matches!(kind, TlpKind::CplLk | TlpKind::CplDLk),
            completer_id: FunctionId((dw1 >> 16) as u16),
            status: CompletionStatus::from_code(status).ok_or(WireError::ReservedStatus { status })?,
            bcm: dw1 & 1 << 12 != 0,
            byte_count: if count == 0 { MAX_BYTE_COUNT } else { count },
            requester_id: FunctionId((dw2 >> 16) as u16),
            tag: dws.tag(2),
            lower_address: dw2 as u8 & 0x7f,
            length,
        };
        completion.check()?;
        Ok(completion)
    }

    #[expect(clippy::inline_always, reason = "a hot path: by call, the result is copied twice through memory")]
    #[inline(always)]
    pub(super) fn emit(&self) -> Result<Dws, WireError> {
        field::in_range(2, "Length", self.length, 0, MAX_LENGTH_DW)?;
        field::in_range(6, "Byte Count", self.byte_count, 1, MAX_BYTE_COUNT)?;
        field::in_range(11, "Lower Address", u16::from(self.lower_address), 0, 0x7f)?;
        self.check()?;
        let mut dws = Dws::start(self.tlp_kind(), false);
        dws.set_common(self.common)?;
        dws.dw[0] |= u32::from(self.length) & 0x3ff;
        dws.dw[1] = u32::from(self.completer_id.0) << 16
            | u32::from(self.status.code()) << 13
            | u32::from(self.bcm) << 12
            | u32::from(self.byte_count) & 0xfff;
        dws.dw[2] = u32::from(self.requester_id.0) << 16 | u32::from(self.lower_address);
        dws.set_tag(2, self.tag)?;
        Ok(dws)
    }

    #[expect(clippy::inline_always, reason = "a hot path: by call, the result is copied twice through memory")]
    #[inline(always)]
    fn check(self) -> Result<(), WireError> {
        let Completion { length, byte_count, lower_address, .. } = self;
        let success = self.status == CompletionStatus::Success;
        if length == 0 {
            // > CplLk: Completion for Locked Memory Read without Data. Used only in error case. (section 2.2.1)
            return if self.locked && success { Err(self.wrong_status()) } else { Ok(()) };
        }
        if !success {
            return Err(self.wrong_status());
        }
        // A byte count modified by a PCI-X bridge does not limit the length.
        if self.bcm {
            return Ok(());
        }
        let offset = u32::from(lower_address & 3);
        let remaining = (offset + u32::from(byte_count)).div_ceil(4);
        if u32::from(length) > remaining {
            return Err(WireError::MoreThanRemains { length, lower_address, byte_count });
        }
        let end = u32::from(lower_address & !3) + u32::from(length) * 4;
        if u32::from(length) < remaining && !end.is_multiple_of(SMALLEST_RCB) {
            return Err(WireError::OffBoundary { length, lower_address, byte_count });
        }
        Ok(())
    }

    #[cold]
    fn wrong_status(self) -> WireError {
        WireError::StatusOfKind { status: self.status.code(), kind: self.tlp_kind() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;
    use crate::tlp::testing::{both_ways, refused, sent};

    /// UR from 00:00.0 to 01:00.0, tag 3.
    const CPL: [u8; 12] = [0x0a, 0, 0, 0, 0, 0, 0x20, 4, 1, 0, 3, 0];
    /// The first 128 B of a read of 4096 B (Byte Count field 0).
    const CPLD: [u8; 12] = [0x4a, 0, 0, 32, 0, 0, 0, 0, 1, 0, 3, 0];

    fn id(raw: u16) -> FunctionId {
        FunctionId(raw)
    }

    fn data(lower_address: u8, byte_count: u16, bytes: u16) -> Completion {
        Completion::data(id(0), id(0x100), 3, lower_address, byte_count, bytes)
    }

    fn refuse(completion: Completion) -> WireError {
        Header::Completion(completion).emit(&mut [0; 12]).unwrap_err()
    }

    #[test]
    fn each_kind_round_trips() {
        let failed = Completion::without_data(id(0), id(0x100), 3, CompletionStatus::UnsupportedRequest);
        both_ways(&CPL, Header::Completion(failed));
        both_ways(&CPLD, Header::Completion(data(0, 4096, 128)));
        let mut bytes = CPL;
        bytes[0] = 0x0b;
        both_ways(&bytes, Header::Completion(Completion { locked: true, ..failed }));
        bytes = CPLD;
        bytes[0] = 0x4b;
        both_ways(&bytes, Header::Completion(Completion { locked: true, ..data(0, 4096, 128) }));
    }

    #[test]
    fn ten_bit_tags_use_t9_and_t8_of_byte_1() {
        let bytes = [0x4a, 0x88, 0, 1, 0, 0, 0, 4, 1, 0, 0xa5, 0];
        both_ways(&bytes, Header::Completion(Completion { tag: 0x3a5, ..data(0, 4, 4) }));
    }

    #[test]
    fn only_the_four_defined_statuses_are_accepted() {
        for code in 0..8 {
            let mut bytes = CPL;
            bytes[6] = code << 5;
            match CompletionStatus::from_code(code) {
                Some(status) => {
                    assert_eq!(status.code(), code);
                    let cpl = Completion::without_data(id(0), id(0x100), 3, status);
                    both_ways(&bytes, Header::Completion(cpl));
                }
                None => assert_eq!(refused(&bytes), WireError::ReservedStatus { status: code }),
            }
        }
        assert_eq!(CompletionStatus::ALL.map(CompletionStatus::code), [0, 1, 2, 4]);
    }

    #[test]
    fn data_require_success_and_a_locked_completion_without_data_an_error() {
        let failed = Completion { status: CompletionStatus::CompleterAbort, ..data(0, 4, 4) };
        assert_eq!(refuse(failed), WireError::StatusOfKind { status: 4, kind: TlpKind::CplD });
        let cpl = Completion::without_data(id(0), id(0), 0, CompletionStatus::Success);
        sent(Header::Completion(cpl));
        let locked = Completion { locked: true, ..cpl };
        assert_eq!(refuse(locked), WireError::StatusOfKind { status: 0, kind: TlpKind::CplLk });
    }

    #[test]
    fn a_completion_with_more_data_than_remain_is_refused() {
        sent(Header::Completion(data(0x3f, 2, 2)));
        let long = |length, lower_address, byte_count| WireError::MoreThanRemains { length, lower_address, byte_count };
        assert_eq!(refuse(Completion { length: 3, ..data(0x3f, 2, 2) }), long(3, 0x3f, 2));
        sent(Header::Completion(Completion { length: 2, ..data(0x7d, 4, 4) }));
        assert_eq!(refuse(Completion { length: 2, ..data(0x7c, 4, 4) }), long(2, 0x7c, 4));
        // Allowed for a PCI-X completer.
        sent(Header::Completion(Completion { length: 2, bcm: true, ..data(0x7c, 4, 4) }));
    }

    #[test]
    fn every_completion_but_the_last_ends_on_64_bytes() {
        sent(Header::Completion(data(0x44, 256, 60)));
        sent(Header::Completion(data(0x44, 256, 124)));
        sent(Header::Completion(data(0x44, 256, 256)));
        let off = WireError::OffBoundary { length: 14, lower_address: 0x44, byte_count: 256 };
        assert_eq!(refuse(data(0x44, 256, 56)), off);
        let halfway = WireError::OffBoundary { length: 8, lower_address: 0x40, byte_count: 256 };
        assert_eq!(refuse(data(0x40, 256, 32)), halfway);
        let mut bytes = CPLD;
        bytes[3] = 17;
        assert_eq!(refused(&bytes), WireError::OffBoundary { length: 17, lower_address: 0, byte_count: 4096 });
    }

    #[test]
    fn byte_count_and_lower_address_must_fit_their_fields() {
        assert!(matches!(refuse(data(0, 0, 4)), WireError::OutOfRange { byte: 6, value: 0, min: 1, .. }));
        assert!(matches!(refuse(data(0, 4097, 4)), WireError::OutOfRange { byte: 6, max: 4096, .. }));
        assert!(matches!(refuse(data(128, 4, 4)), WireError::OutOfRange { byte: 11, max: 127, .. }));
        let longest = Completion { length: 1025, bcm: true, ..data(0, 4096, 4096) };
        assert!(matches!(refuse(longest), WireError::OutOfRange { byte: 2, value: 1025, .. }));
    }

    #[test]
    fn reserved_bits_are_refused() {
        let kind = TlpKind::Cpl;
        for (byte, bits, at, field) in
            [(1, 1, 1, "TH"), (2, 4, 2, "AT"), (3, 1, 2, "Length"), (11, 0x80, 11, "the high bit")]
        {
            let mut bytes = CPL;
            bytes[byte] |= bits;
            assert_eq!(refused(&bytes), WireError::Reserved { byte: at, field, kind });
        }
    }
}
