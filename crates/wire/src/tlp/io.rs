//! I/O requests: `IORd`, `IOWr`.

use super::field::{self, Dws};
use crate::{FunctionId, TlpKind, WireError};

/// A kind of I/O request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IoKind {
    /// Read.
    IORd,
    /// Write.
    IOWr,
}

impl IoKind {
    /// The kind of TLP of this request.
    #[inline]
    #[must_use]
    pub const fn tlp_kind(self) -> TlpKind {
        match self {
            IoKind::IORd => TlpKind::IORd,
            IoKind::IOWr => TlpKind::IOWr,
        }
    }
}

/// An I/O request: always one DW, TC 0, no attributes, a 32-bit address.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.7.
///
/// ```
/// use lanemark_wire::{FunctionId, Header, IoKind, IoRequest};
/// let request = IoRequest { kind: IoKind::IORd, td: false, ep: false, requester_id: FunctionId(0), tag: 2,
///     address: 0xc000, first_be: 0b0001 };
/// let mut bytes = [0; 12];
/// assert_eq!(Header::Io(request).emit(&mut bytes), Ok(12));
/// assert_eq!(bytes, [0x02, 0, 0, 1, 0, 0, 2, 0x01, 0, 0, 0xc0, 0]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IoRequest {
    /// Read or write.
    pub kind: IoKind,
    /// TD: a digest follows.
    pub td: bool,
    /// EP: the data are poisoned.
    pub ep: bool,
    /// Requester ID.
    pub requester_id: FunctionId,
    /// Tag, which matches the completion to the request; 0 to 1023.
    pub tag: u16,
    /// Address of the DW, a multiple of 4.
    pub address: u32,
    /// First DW BE, bit 0 for the lowest byte; holes are allowed.
    pub first_be: u8,
}

impl IoRequest {
    #[inline(never)]
    pub(super) fn parse(kind: IoKind, dws: &Dws) -> Result<IoRequest, WireError> {
        dws.one_plain_dw(kind.tlp_kind())?;
        field::zero(dws.dw[2] & 3, 11, "address[1:0]", kind.tlp_kind())?;
        Ok(IoRequest {
            kind,
            td: dws.td(),
            ep: dws.ep(),
            requester_id: FunctionId((dws.dw[1] >> 16) as u16),
            tag: dws.tag(1),
            address: dws.dw[2],
            first_be: dws.dw[1] as u8 & 0xf,
        })
    }

    #[inline(never)]
    pub(super) fn emit(&self) -> Result<Dws, WireError> {
        field::in_range(7, "1st DW BE", u16::from(self.first_be), 0, 0xf)?;
        if !self.address.is_multiple_of(4) {
            return Err(WireError::Unaligned { address: u64::from(self.address), align: 4 });
        }
        let mut dws = Dws::start(self.kind.tlp_kind(), false);
        dws.set_td_ep(self.td, self.ep);
        dws.set_length(1)?;
        dws.dw[1] = u32::from(self.requester_id.0) << 16 | u32::from(self.first_be);
        dws.set_tag(1, self.tag)?;
        dws.dw[2] = self.address;
        Ok(dws)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;
    use crate::tlp::testing::{both_ways, refused};

    const IORD: [u8; 12] = [0x02, 0, 0, 1, 0, 0, 2, 0x01, 0, 0, 0xc0, 0x04];
    const IOWR: [u8; 12] = [0x42, 0, 0xc0, 1, 0, 0, 2, 0x05, 0, 0, 0xc0, 0x04];

    const READ: IoRequest = IoRequest {
        kind: IoKind::IORd,
        td: false,
        ep: false,
        requester_id: FunctionId(0),
        tag: 2,
        address: 0xc004,
        first_be: 0b0001,
    };

    #[test]
    fn a_read_and_a_poisoned_write_with_digest_round_trip() {
        both_ways(&IORD, Header::Io(READ));
        both_ways(&IOWR, Header::Io(IoRequest { kind: IoKind::IOWr, td: true, ep: true, first_be: 0b0101, ..READ }));
    }

    #[test]
    fn fields_with_a_fixed_value_in_io_requests_are_checked() {
        let kind = TlpKind::IORd;
        let prescribed = |byte, field, value, wanted| WireError::Prescribed { byte, field, kind, value, wanted };
        let reserved = |byte, field| WireError::Reserved { byte, field, kind };
        for (byte, bits, error) in [
            (1, 0x10, prescribed(1, "TC", 1, 0)),
            (1, 0x04, reserved(1, "Attr[2]")),
            (1, 0x02, reserved(1, "LN")),
            (1, 0x01, reserved(1, "TH")),
            (2, 0x10, prescribed(2, "Attr", 1, 0)),
            (2, 0x20, prescribed(2, "Attr", 2, 0)),
            (2, 0x08, reserved(2, "AT")),
            (3, 0x03, prescribed(2, "Length", 3, 1)),
            (7, 0x10, prescribed(7, "Last DW BE", 1, 0)),
            (11, 0x01, reserved(11, "address[1:0]")),
        ] {
            let mut bytes = IORD;
            bytes[byte] |= bits;
            assert_eq!(refused(&bytes), error);
        }
        let mut bytes = IORD;
        bytes[3] = 0;
        assert_eq!(refused(&bytes), prescribed(2, "Length", 1024, 1));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let refuse = |request| Header::Io(request).emit(&mut [0; 12]).unwrap_err();
        assert_eq!(refuse(IoRequest { address: 2, ..READ }), WireError::Unaligned { address: 2, align: 4 });
        assert!(matches!(refuse(IoRequest { first_be: 16, ..READ }), WireError::OutOfRange { byte: 7, .. }));
        assert!(matches!(refuse(IoRequest { tag: 1024, ..READ }), WireError::OutOfRange { byte: 6, .. }));
    }
}
