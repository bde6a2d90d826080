//! Configuration requests: `CfgRd0`, `CfgWr0`, `CfgRd1`, `CfgWr1`.

use super::field::{self, Dws};
use crate::{FunctionId, TlpKind, WireError};

/// Bytes of the configuration space of one function.
const SPACE: u16 = 4096;
/// Reserved bits of the third DW: above Ext. Register Number, and below Register Number.
const RESERVED: u32 = 0xf003;

/// A kind of configuration request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConfigKind {
    /// Type 0 read: for the device at the other end of the link.
    CfgRd0,
    /// Type 0 write: for the device at the other end of the link.
    CfgWr0,
    /// Type 1 read: forwarded by a bridge.
    CfgRd1,
    /// Type 1 write: forwarded by a bridge.
    CfgWr1,
}

impl ConfigKind {
    /// The kind of TLP of this request.
    #[inline]
    #[must_use]
    pub const fn tlp_kind(self) -> TlpKind {
        match self {
            ConfigKind::CfgRd0 => TlpKind::CfgRd0,
            ConfigKind::CfgWr0 => TlpKind::CfgWr0,
            ConfigKind::CfgRd1 => TlpKind::CfgRd1,
            ConfigKind::CfgWr1 => TlpKind::CfgWr1,
        }
    }
}

/// A configuration request: always one DW, TC 0, no attributes, routed by ID.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.7.
///
/// ```
/// use lanemark_wire::{ConfigKind, ConfigRequest, FunctionId, Header};
/// let request = ConfigRequest { kind: ConfigKind::CfgRd0, td: false, ep: false, requester_id: FunctionId(0),
///     tag: 1, target: FunctionId(0x0100), register: 0x104, first_be: 0b1111 };
/// let mut bytes = [0; 12];
/// assert_eq!(Header::Config(request).emit(&mut bytes), Ok(12));
/// assert_eq!(bytes, [0x04, 0, 0, 1, 0, 0, 1, 0x0f, 1, 0, 1, 4]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConfigRequest {
    /// Read or write, type 0 or 1.
    pub kind: ConfigKind,
    /// TD: a digest follows.
    pub td: bool,
    /// EP: the data are poisoned.
    pub ep: bool,
    /// Requester ID.
    pub requester_id: FunctionId,
    /// Tag, which matches the completion to the request; 0 to 1023.
    pub tag: u16,
    /// Destination function.
    pub target: FunctionId,
    /// Byte offset of the DW, a multiple of 4 below 4096: Ext. Register Number and Register Number.
    pub register: u16,
    /// First DW BE, bit 0 for the lowest byte; holes are allowed.
    pub first_be: u8,
}

impl ConfigRequest {
    #[inline(never)]
    pub(super) fn parse(kind: ConfigKind, dws: &Dws) -> Result<ConfigRequest, WireError> {
        let (tlp_kind, dw2) = (kind.tlp_kind(), dws.dw[2]);
        dws.one_plain_dw(tlp_kind)?;
        field::zero(dw2 & RESERVED & 0xff00, 10, "the bits above Ext. Register Number", tlp_kind)?;
        field::zero(dw2 & RESERVED & 0x00ff, 11, "Register Number[1:0]", tlp_kind)?;
        Ok(ConfigRequest {
            kind,
            td: dws.td(),
            ep: dws.ep(),
            requester_id: FunctionId((dws.dw[1] >> 16) as u16),
            tag: dws.tag(1),
            target: FunctionId((dw2 >> 16) as u16),
            register: dw2 as u16,
            first_be: dws.dw[1] as u8 & 0xf,
        })
    }

    #[inline(never)]
    pub(super) fn emit(&self) -> Result<Dws, WireError> {
        field::in_range(7, "1st DW BE", u16::from(self.first_be), 0, 0xf)?;
        field::in_range(10, "register offset", self.register, 0, SPACE - 4)?;
        if !self.register.is_multiple_of(4) {
            return Err(WireError::Unaligned { address: u64::from(self.register), align: 4 });
        }
        let mut dws = Dws::start(self.kind.tlp_kind(), false);
        dws.set_td_ep(self.td, self.ep);
        dws.set_length(1)?;
        dws.dw[1] = u32::from(self.requester_id.0) << 16 | u32::from(self.first_be);
        dws.set_tag(1, self.tag)?;
        dws.dw[2] = u32::from(self.target.0) << 16 | u32::from(self.register);
        Ok(dws)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;
    use crate::tlp::testing::{both_ways, refused};

    const CFGRD0: [u8; 12] = [0x04, 0, 0, 1, 0, 0, 1, 0x0f, 1, 0, 0x0f, 0xfc];

    const READ: ConfigRequest = ConfigRequest {
        kind: ConfigKind::CfgRd0,
        td: false,
        ep: false,
        requester_id: FunctionId(0),
        tag: 1,
        target: FunctionId(0x0100),
        register: 0xffc,
        first_be: 0xf,
    };

    #[test]
    fn each_kind_round_trips() {
        both_ways(&CFGRD0, Header::Config(READ));
        for (byte0, kind) in [(0x44, ConfigKind::CfgWr0), (0x05, ConfigKind::CfgRd1), (0x45, ConfigKind::CfgWr1)] {
            let mut bytes = CFGRD0;
            bytes[0] = byte0;
            both_ways(&bytes, Header::Config(ConfigRequest { kind, ..READ }));
        }
    }

    #[test]
    fn fields_with_a_fixed_value_in_configuration_requests_are_checked() {
        let kind = TlpKind::CfgRd0;
        let prescribed = |byte, field, value, wanted| WireError::Prescribed { byte, field, kind, value, wanted };
        let reserved = |byte, field| WireError::Reserved { byte, field, kind };
        for (byte, bits, error) in [
            (1, 0x70, prescribed(1, "TC", 7, 0)),
            (2, 0x20, prescribed(2, "Attr", 2, 0)),
            (3, 0x02, prescribed(2, "Length", 3, 1)),
            (7, 0x80, prescribed(7, "Last DW BE", 8, 0)),
            (10, 0x10, reserved(10, "the bits above Ext. Register Number")),
            (11, 0x02, reserved(11, "Register Number[1:0]")),
        ] {
            let mut bytes = CFGRD0;
            bytes[byte] |= bits;
            assert_eq!(refused(&bytes), error);
        }
    }

    #[test]
    fn register_offsets_end_at_4092() {
        let refuse = |register| Header::Config(ConfigRequest { register, ..READ }).emit(&mut [0; 12]).unwrap_err();
        assert!(matches!(refuse(4096), WireError::OutOfRange { byte: 10, value: 4096, max: 4092, .. }));
        assert_eq!(refuse(0x102), WireError::Unaligned { address: 0x102, align: 4 });
    }
}
