//! The rules that the oracle checks.

/// A rule that a device can break.
#[expect(missing_docs, reason = "RULES has a row for each")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    StableBeats,
    HeaderFields,
    LengthField,
    MaxPayload,
    AddressFormat,
    ByteEnables,
    FourKib,
    MaxReadRequest,
    TagRange,
    TagInUse,
    RequesterId,
    Credits,
    BusMaster,
    OutOfBounds,
    CompletionFields,
    CompletionData,
    UnaskedCompletion,
    MissingCompletion,
    PostedOrder,
    InterruptOrder,
    InterruptMissing,
    DataIntegrity,
    FailedWithoutCause,
    UnexpectedCompletion,
    CompletionMismatch,
    FailedStatus,
    Poison,
    Malformed,
    Timeout,
    Progress,
    Recovery,
    FunctionReset,
    Assertion,
    Hang,
}

/// The name, source and statement of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuleRow {
    /// The rule.
    pub rule: Rule,
    /// Name in findings.
    pub name: &'static str,
    /// Section of the PCI Express Base Specification 5.0, or the other source.
    pub source: &'static str,
    /// What a device does.
    pub statement: &'static str,
}

const fn row(rule: Rule, name: &'static str, source: &'static str, statement: &'static str) -> RuleRow {
    RuleRow { rule, name, source, statement }
}

/// Every rule, in the order of [`Rule`].
pub const RULES: [RuleRow; 34] = [
    row(Rule::StableBeats, "stable_beats", "rtl/README.md", "a beat that is not accepted is offered again unchanged"),
    row(Rule::HeaderFields, "header_fields", "2.2.1", "reserved fields are 0, and types are defined"),
    row(Rule::LengthField, "length_field", "2.2.2", "the data of a TLP are as long as its Length"),
    row(Rule::MaxPayload, "max_payload", "2.2.2", "the data of a TLP do not exceed Max_Payload_Size"),
    row(Rule::AddressFormat, "address_format", "2.2.4.1", "an address below 4 GiB has a header of 3 DW"),
    row(Rule::ByteEnables, "byte_enables", "2.2.5", "byte enables are contiguous, and end where the request ends"),
    row(Rule::FourKib, "four_kib", "2.2.7", "a request does not cross a 4 KiB boundary"),
    row(Rule::MaxReadRequest, "max_read_request", "2.2.7", "a read does not exceed Max_Read_Request_Size"),
    row(Rule::TagRange, "tag_range", "2.2.6.2", "a tag is below the number of enabled tags"),
    row(Rule::TagInUse, "tag_in_use", "2.2.6.2", "the tag of an outstanding request is not used again"),
    row(Rule::RequesterId, "requester_id", "2.2.6.2", "a request has the requester ID of its function"),
    row(Rule::Credits, "credits", "2.6.1", "a TLP is sent only if its credits are available"),
    row(Rule::BusMaster, "bus_master", "7.5.1.1.3", "without Bus Master Enable no memory request is sent"),
    row(Rule::OutOfBounds, "out_of_bounds", "the transfer", "a request stays in the buffer of its transfer"),
    row(Rule::CompletionFields, "completion_fields", "2.2.9", "a completion has the IDs, tag and count of its request"),
    row(Rule::CompletionData, "completion_data", "2.3.1.1", "a read of a register returns what was stored"),
    row(Rule::UnaskedCompletion, "unasked_completion", "2.3.1", "a request is completed once"),
    row(Rule::MissingCompletion, "missing_completion", "2.3.1", "a read of a register is completed"),
    row(Rule::PostedOrder, "posted_order", "2.4.1", "a completion does not pass the writes before it"),
    row(Rule::InterruptOrder, "interrupt_order", "2.4.1", "an MSI does not pass the writes before it"),
    row(Rule::InterruptMissing, "interrupt_missing", "6.1.4", "a transfer with an interrupt sends one MSI"),
    row(Rule::DataIntegrity, "data_integrity", "2.3.1.1", "legal completions in any legal order give the right bytes"),
    row(Rule::FailedWithoutCause, "failed_without_cause", "2.3.2", "a transfer with legal completions does not fail"),
    row(Rule::UnexpectedCompletion, "unexpected_completion", "2.3.2", "a completion without a request is discarded"),
    row(
        Rule::CompletionMismatch,
        "completion_mismatch",
        "2.3.2",
        "data of a completion that contradicts its request are discarded",
    ),
    row(Rule::FailedStatus, "failed_status", "2.3.2", "a completion with an error status fails its transfer"),
    row(Rule::Poison, "poison", "2.7.2.2", "poisoned data are not used as good data"),
    row(Rule::Malformed, "malformed", "2.2.2", "a malformed TLP is discarded"),
    row(Rule::Timeout, "timeout", "2.8", "a read without its completion fails after the completion timeout"),
    row(Rule::Progress, "progress", "2.8", "a transfer ends"),
    row(Rule::Recovery, "recovery", "2.8", "the transfer after a failed one works"),
    row(
        Rule::FunctionReset,
        "function_reset",
        "6.6.2",
        "a function-level reset ends a transfer, and the next one works",
    ),
    row(Rule::Assertion, "assertion", "the design", "the assertions of the design hold"),
    row(Rule::Hang, "hang", "rtl/lanemark_dut.h", "each call of the design returns"),
];

impl Rule {
    /// Row of this rule in [`RULES`].
    #[must_use]
    pub const fn row(self) -> &'static RuleRow {
        &RULES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_rules_and_names_are_unique() {
        for (place, row) in RULES.iter().enumerate() {
            assert_eq!(row.rule as usize, place);
            assert!(RULES[..place].iter().all(|other| other.name != row.name), "{}", row.name);
        }
    }
}
