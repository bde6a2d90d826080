//! A TLP as one line.

use lanemark_wire::{AddressType, CompletionStatus, Header, ats};

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
}
