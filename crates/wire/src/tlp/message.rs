//! Messages: Msg, `MsgD` (interrupts, power management, errors, vendor-defined).

use super::field::{self, CommonFields, Dws, MAX_LENGTH_DW};
use crate::{FunctionId, TlpKind, WireError};

/// Routing of a message: the low 3 bits of Type.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.8.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Routing {
    /// To the root complex.
    ToRootComplex,
    /// By the address in bytes 8 to 15.
    ByAddress,
    /// By the ID in bytes 8 and 9.
    ById,
    /// Broadcast from the root complex.
    BroadcastFromRootComplex,
    /// Local: terminates at the receiver.
    Local,
    /// Gathered from the downstream ports and sent to the root complex.
    GatheredToRootComplex,
}

impl Routing {
    /// Every routing, in order of codes.
    pub const ALL: [Routing; 6] = [
        Routing::ToRootComplex,
        Routing::ByAddress,
        Routing::ById,
        Routing::BroadcastFromRootComplex,
        Routing::Local,
        Routing::GatheredToRootComplex,
    ];
}

/// A message. Its header always has 4 DW; the meaning of bytes 8 to 15 depends on the code.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.8.
///
/// ```
/// use lanemark_wire::{CommonFields, FunctionId, Header, Message, Routing};
/// // PM_PME, code 0x18, to the root complex.
/// let pme = Message { common: CommonFields::default(), routing: Routing::ToRootComplex,
///     requester_id: FunctionId(0x0100), tag: 0, code: 0x18, code_specific: [0; 8], length: 0 };
/// let mut bytes = [0; 16];
/// assert_eq!(Header::Message(pme).emit(&mut bytes), Ok(16));
/// assert_eq!(bytes[..8], [0x30, 0, 0, 0, 1, 0, 0, 0x18]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    /// TC, Attr, TD, EP.
    pub common: CommonFields,
    /// Routing.
    pub routing: Routing,
    /// Requester ID of the sender.
    pub requester_id: FunctionId,
    /// Tag, 0 to 1023; meaningless in most messages.
    pub tag: u16,
    /// Message Code.
    pub code: u8,
    /// Bytes 8 to 15.
    pub code_specific: [u8; 8],
    /// Length of the data in DW, at most 1024; 0 for a `Msg`, above for a `MsgD`.
    pub length: u16,
}

impl Message {
    /// `Msg` or `MsgD`.
    #[inline]
    #[must_use]
    pub const fn tlp_kind(&self) -> TlpKind {
        if self.length == 0 { TlpKind::Msg } else { TlpKind::MsgD }
    }

    #[inline(never)]
    pub(super) fn parse(kind: TlpKind, dws: &Dws) -> Result<Message, WireError> {
        dws.no_memory_fields(kind)?;
        let length = if kind == TlpKind::MsgD { dws.length() } else { dws.length_field() };
        if kind == TlpKind::Msg {
            field::zero(u32::from(length), 2, "Length", kind)?;
        }
        // The table of kinds accepts only defined routings for a message.
        let routing = Routing::ALL[(dws.dw[0] >> 24) as usize & 7];
        Ok(Message {
            common: dws.common(),
            routing,
            requester_id: FunctionId((dws.dw[1] >> 16) as u16),
            tag: dws.tag(1),
            code: dws.dw[1] as u8,
            code_specific: (u64::from(dws.dw[2]) << 32 | u64::from(dws.dw[3])).to_be_bytes(),
            length,
        })
    }

    #[inline(never)]
    pub(super) fn emit(&self) -> Result<Dws, WireError> {
        field::in_range(2, "Length", self.length, 0, MAX_LENGTH_DW)?;
        let mut dws = Dws::start(self.tlp_kind(), true);
        dws.dw[0] |= (self.routing as u32) << 24;
        dws.set_common(self.common)?;
        if self.length > 0 {
            dws.set_length(self.length)?;
        }
        dws.dw[1] = u32::from(self.requester_id.0) << 16 | u32::from(self.code);
        dws.set_tag(1, self.tag)?;
        let rest = u64::from_be_bytes(self.code_specific);
        (dws.dw[2], dws.dw[3]) = ((rest >> 32) as u32, rest as u32);
        Ok(dws)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;
    use crate::tlp::testing::{both_ways, refused};

    /// `Assert_INTA`, local, from 01:00.0.
    const MSG: [u8; 16] = [0x34, 0, 0, 0, 1, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0];
    /// `Vendor_Defined` Type 1 with 2 DW, by ID to 02:00.0.
    const MSGD: [u8; 16] = [0x72, 0x20, 0, 2, 1, 0, 5, 0x7f, 2, 0, 0x1d, 0xe5, 9, 8, 7, 6];

    const INTA: Message = Message {
        common: CommonFields {
            tc: 0,
            attr: crate::Attr { relaxed_ordering: false, no_snoop: false, id_based_ordering: false },
            td: false,
            ep: false,
        },
        routing: Routing::Local,
        requester_id: FunctionId(0x0100),
        tag: 0,
        code: 0x20,
        code_specific: [0; 8],
        length: 0,
    };

    #[test]
    fn messages_with_and_without_data_round_trip() {
        both_ways(&MSG, Header::Message(INTA));
        let vendor = Message {
            common: CommonFields { tc: 2, ..CommonFields::default() },
            routing: Routing::ById,
            tag: 5,
            code: 0x7f,
            code_specific: [2, 0, 0x1d, 0xe5, 9, 8, 7, 6],
            length: 2,
            ..INTA
        };
        both_ways(&MSGD, Header::Message(vendor));
    }

    #[test]
    fn every_routing_round_trips() {
        for (code, routing) in Routing::ALL.into_iter().enumerate() {
            let mut bytes = MSG;
            bytes[0] = 0x30 | code as u8;
            both_ways(&bytes, Header::Message(Message { routing, ..INTA }));
        }
        for code in [6, 7] {
            let mut bytes = MSG;
            bytes[0] = 0x30 | code;
            assert_eq!(refused(&bytes), WireError::ReservedType { fmt: 0b001, type_bits: 0b1_0000 | code });
        }
    }

    #[test]
    fn reserved_fields_are_refused() {
        for (byte, bits, field) in [(1, 1, "TH"), (2, 4, "AT"), (3, 1, "Length")] {
            let mut bytes = MSG;
            bytes[byte] |= bits;
            let at = if byte == 3 { 2 } else { byte as u8 };
            assert_eq!(refused(&bytes), WireError::Reserved { byte: at, field, kind: TlpKind::Msg });
        }
    }

    #[test]
    fn data_end_at_1024_dw() {
        let mut bytes = MSGD;
        bytes[3] = 0;
        let (header, _) = Header::parse(&bytes).unwrap();
        assert_eq!(header.data_bytes(), 4096);
        let refuse = Header::Message(Message { length: 1025, ..INTA }).emit(&mut [0; 16]);
        assert!(matches!(refuse, Err(WireError::OutOfRange { byte: 2, value: 1025, .. })));
    }
}
