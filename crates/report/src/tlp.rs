//! A TLP as one line.

use lanemark_wire::{AddressType, CompletionStatus, FlowClass, Header, Packet, TlpKind, ats};

/// Type, size or status of a TLP: short enough for a slice in a trace viewer.
pub(crate) fn name(header: &Header) -> String {
    let kind = header.kind().name();
    match header {
        Header::Memory(request) => match request.span() {
            Some((_, bytes)) => format!("{kind} {bytes} B"),
            None => format!("{kind} {} DW with holes", request.length),
        },
        Header::Completion(completion) => match (completion.status, completion.length) {
            (CompletionStatus::Success, 0) => kind.to_owned(),
            (CompletionStatus::Success, _) => {
                let carried = u32::from(completion.length) * 4 - u32::from(completion.lower_address & 3);
                format!("{kind} {} B", carried.min(u32::from(completion.byte_count)))
            }
            (status, _) => format!("{kind} {}", status_name(status)),
        },
        _ => match header.data_bytes() {
            0 => kind.to_owned(),
            bytes => format!("{kind} {bytes} B"),
        },
    }
}

/// Type, size, addresses and IDs of the TLP with these bytes; the broken rule, if it has no valid header.
///
/// ```
/// use lanemark_report::tlp_in_words;
/// assert!(tlp_in_words(&[0x40, 0, 0, 1]).contains("12 B"), "{}", tlp_in_words(&[0x40, 0, 0, 1]));
/// ```
#[must_use]
pub fn tlp_in_words(tlp: &[u8]) -> String {
    Header::parse(tlp).map_or_else(|error| error.to_string(), |(header, _)| describe(&header))
}

/// Type, size, addresses and IDs of a TLP, from its header.
pub(crate) fn describe(header: &Header) -> String {
    let (name, requester, tag) = (name(header), header.requester_id(), header.tag());
    match header {
        Header::Memory(request) => {
            let address = request.span().map_or(request.address, |(address, _)| address);
            let tag = if header.kind().class() == lanemark_wire::FlowClass::Posted {
                String::new()
            } else {
                format!(", tag {tag}")
            };
            let at = match request.at {
                AddressType::Untranslated => "",
                AddressType::TranslationRequest { .. } => ", translation request",
                AddressType::Translated => ", translated",
            };
            format!("{name} at {address:#x} by {requester}{tag}{at}")
        }
        Header::Completion(completion) => {
            let carried = u32::from(completion.length) * 4;
            let skipped = u32::from(completion.lower_address & 3);
            let left = (u32::from(completion.byte_count) + skipped).saturating_sub(carried);
            let left = if carried > 0 && left > 0 { format!(", {left} B remaining") } else { String::new() };
            format!("{name} from {} for {requester}, tag {tag}{left}", completion.completer_id)
        }
        Header::Message(message) => match ats::what(message) {
            Some((what, to)) => format!("{name} by {requester}, {what} for {to}"),
            None => format!("{name} by {requester}"),
        },
        _ => format!("{name} by {requester}, tag {tag}"),
    }
}

/// Flaws of a TLP by its bytes: poisoned data, a digest that is not the ECRC. Empty if there is none.
pub(crate) fn flaws(tlp: &[u8]) -> String {
    let Ok(packet) = Packet::new(tlp) else { return String::new() };
    let poisoned = if packet.ep() { ", poisoned" } else { "" };
    let is_wrong = packet.ecrc().zip(packet.expected_ecrc()).is_some_and(|(found, expected)| found != expected);
    let digest = match packet.ecrc() {
        Some(_) if is_wrong => ", wrong ECRC",
        Some(_) => ", with ECRC",
        None => "",
    };
    format!("{poisoned}{digest}")
}

/// A TLP that breaks a rule: its type, length in DW, address, IDs and tag.
pub(crate) fn describe_irregular(packet: &Packet<&[u8]>) -> String {
    let Some(kind) = packet.kind() else { return "?".to_owned() };
    let (name, requester, tag) = (kind.name(), packet.requester_id(), packet.tag());
    let of_tag = if kind.class() == FlowClass::Posted { String::new() } else { format!(", tag {tag}") };
    let length = packet.length();
    match kind {
        TlpKind::Cpl | TlpKind::CplD | TlpKind::CplLk | TlpKind::CplDLk => {
            let (dw, count) = (packet.data_bytes() / 4, packet.byte_count());
            format!("{name} {dw} DW from {} for {requester}{of_tag}, Byte Count {count}", packet.completer_id())
        }
        TlpKind::CfgRd0 | TlpKind::CfgWr0 | TlpKind::CfgRd1 | TlpKind::CfgWr1 => {
            let (target, register) = (packet.target(), packet.register());
            format!("{name} at {target} register {register:#x} by {requester}{of_tag}")
        }
        TlpKind::Msg | TlpKind::MsgD => format!("{name} by {requester}"),
        _ => format!("{name} {length} DW at {:#x} by {requester}{of_tag}", packet.address()),
    }
}

fn status_name(status: CompletionStatus) -> &'static str {
    match status {
        CompletionStatus::Success => "SC",
        CompletionStatus::UnsupportedRequest => "UR",
        CompletionStatus::RequestRetry => "RRS",
        CompletionStatus::CompleterAbort => "CA",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_wire::{CommonFields, Completion, FunctionId, MemoryRequest, Message, Routing};

    const CARD: FunctionId = FunctionId(0x0100);

    #[test]
    fn each_type_is_described_with_its_ids_and_addresses() {
        let read = Header::Memory(MemoryRequest::read(CARD, 7, 0x1003, 70));
        assert_eq!(describe(&read), "MRd 70 B at 0x1003 by 01:00.0, tag 7");
        let write = Header::Memory(MemoryRequest::write(CARD, 1 << 32, 4));
        assert_eq!(describe(&write), "MWr 4 B at 0x100000000 by 01:00.0");
        let asks = MemoryRequest::read(CARD, 7, 0x2000, 8);
        let at = |at| describe(&Header::Memory(MemoryRequest { at, ..asks }));
        let question = at(AddressType::TranslationRequest { no_write: false });
        assert_eq!(question, "MRd 8 B at 0x2000 by 01:00.0, tag 7, translation request");
        assert_eq!(at(AddressType::Translated), "MRd 8 B at 0x2000 by 01:00.0, tag 7, translated");
        let forget = ats::invalidate_request(CommonFields::default(), FunctionId(0xff), CARD, 3);
        let request = describe(&Header::Message(forget));
        assert_eq!(request, "MsgD 8 B by 00:1f.7, Invalidate Request for 01:00.0");
        let done = ats::invalidate_completion(CommonFields::default(), CARD, FunctionId(0xff), 3);
        assert_eq!(describe(&Header::Message(done)), "Msg by 01:00.0, Invalidate Completion for 00:1f.7");
        let other = Message { routing: Routing::Local, ..done };
        assert_eq!(describe(&Header::Message(other)), "Msg by 01:00.0");
        let part = Header::Completion(Completion::data(FunctionId(0), CARD, 7, 3, 70, 61));
        assert_eq!(describe(&part), "CplD 61 B from 00:00.0 for 01:00.0, tag 7, 9 B remaining");
        let last = Header::Completion(Completion::data(FunctionId(0), CARD, 7, 64, 9, 9));
        assert_eq!(describe(&last), "CplD 9 B from 00:00.0 for 01:00.0, tag 7");
        let refused = Completion::without_data(FunctionId(0), CARD, 7, CompletionStatus::UnsupportedRequest);
        assert_eq!(describe(&Header::Completion(refused)), "Cpl UR from 00:00.0 for 01:00.0, tag 7");
    }

    #[test]
    fn irregular_tlps_are_described_by_kind() {
        let of = |bytes: &[u8]| describe_irregular(&Packet::new(bytes).unwrap());
        let read = [0, 0, 0, 2, 1, 0, 7, 0xf0, 0xfe, 0, 0, 0x10];
        assert_eq!(of(&read), "MRd 2 DW at 0xfe000010 by 01:00.0, tag 7");
        let write = [0x60, 0, 0, 2, 1, 0, 7, 0xff, 0, 0, 0, 0, 0xfe, 0, 0, 0x10];
        assert_eq!(of(&write), "MWr 2 DW at 0xfe000010 by 01:00.0");
        let completion = [0x4a, 0, 0, 2, 2, 0, 0, 4, 1, 0, 7, 0];
        assert_eq!(of(&completion), "CplD 2 DW from 02:00.0 for 01:00.0, tag 7, Byte Count 4");
        let config = [4, 0, 0, 2, 0, 0, 1, 0xff, 1, 0, 0, 0x10];
        assert_eq!(of(&config), "CfgRd0 at 01:00.0 register 0x10 by 00:00.0, tag 1");
        let message = [0x30, 0, 0, 1, 1, 0, 0, 0x18, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(of(&message), "Msg by 01:00.0");
    }

    #[test]
    fn poisoned_data_and_digests_are_told() {
        let mut write = vec![0x40, 0, 0, 1, 1, 0, 1, 0x0f, 0xfe, 0, 0, 0x10, 1, 2, 3, 4];
        assert_eq!(flaws(&write), "");
        write[2] = 0x40;
        assert_eq!(flaws(&write), ", poisoned");
        write[2] = 0x80;
        assert_eq!(flaws(&write), "", "the digest is not captured");
        let ecrc = Packet::new(&write).unwrap().expected_ecrc().unwrap();
        write.extend(ecrc);
        assert_eq!(flaws(&write), ", with ECRC");
        write[15] ^= 1;
        assert_eq!(flaws(&write), ", wrong ECRC");
        assert_eq!(flaws(&write[..3]), "");
    }
}
