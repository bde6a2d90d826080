//! Builds the header of a TLP, as sent on a link, from the TLP of a board.

use crate::requester::FIRST_CARD;
use crate::tlp::{self, Flaw, Tlp, TlpKind};
use lanemark_wire::ats::{invalidate_completion, invalidate_request};
use lanemark_wire::{
    AddressType, Attr, CommonFields, Completion, CompletionStatus, FunctionId, Header, MemoryKind, MemoryRequest,
    byte_enable,
};

/// Function ID of the root complex as a requester: the last function of bus 0, which is unused otherwise.
pub(crate) const ROOT_COMPLEX_ID: FunctionId = FunctionId(0x00FF);

/// The requester and the completer.
#[derive(Clone, Copy)]
pub(crate) struct Parties {
    pub(crate) requester: FunctionId,
    pub(crate) completer: FunctionId,
}

/// Returns the header. Of a completion, `left_bytes` are the remaining bytes of its read, with its own.
pub(crate) fn header_of(tlp: &Tlp, parties: Parties, left_bytes: u16) -> Header {
    let attr = Attr { relaxed_ordering: tlp.relaxed, id_based_ordering: tlp.id_based, ..Attr::default() };
    let (ep, td) = (tlp.flaw == Flaw::Poisoned, tlp.flaw == Flaw::BadEcrc);
    let common = CommonFields { attr, ep, td, ..CommonFields::default() };
    let (requester_id, tag) = (parties.requester, tag(tlp));
    let request = |kind| {
        let Tlp { address, length_dw: length, first_be, last_be, .. } = *tlp;
        let at = match tlp.at {
            tlp::AddressType::Untranslated => AddressType::Untranslated,
            tlp::AddressType::TranslationRequest => AddressType::TranslationRequest { no_write: false },
            tlp::AddressType::Translated => AddressType::Translated,
        };
        Header::Memory(MemoryRequest {
            common,
            kind,
            requester_id,
            tag,
            address,
            length,
            first_be,
            last_be,
            at,
            th: None,
        })
    };
    match tlp.kind {
        TlpKind::MWr => request(MemoryKind::MWr),
        TlpKind::MRd => request(MemoryKind::MRd),
        TlpKind::CplD => {
            let bytes = tlp.enabled_bytes() as u16;
            let lower_address = byte_enable::lower_address(tlp.address, tlp.first_be);
            let data = Completion::data(parties.completer, requester_id, tag, lower_address, left_bytes, bytes);
            Header::Completion(Completion { common, ..data })
        }
        TlpKind::MsgD => Header::Message(invalidate_request(common, ROOT_COMPLEX_ID, requester_id, tlp.tag as u8)),
        TlpKind::Msg => Header::Message(invalidate_completion(common, requester_id, ROOT_COMPLEX_ID, tlp.tag as u8)),
        TlpKind::Cpl => {
            let status = match tlp.flaw {
                Flaw::Abort => CompletionStatus::CompleterAbort,
                _ => CompletionStatus::UnsupportedRequest,
            };
            let refusal = Completion::without_data(parties.completer, requester_id, tag, status);
            Header::Completion(Completion { common, ..refusal })
        }
    }
}

/// Returns the tag on the link. Cores use tags by purpose; a posted request needs none.
pub(crate) fn tag(tlp: &Tlp) -> u16 {
    match tlp.kind {
        TlpKind::MWr => 0,
        _ if tlp.requester < FIRST_CARD => tlp.tag & 0x3FFF,
        _ => tlp.tag,
    }
}
