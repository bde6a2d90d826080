//! The situations that the partner creates, each with its rule.

use crate::rule::Rule;
use std::collections::BTreeMap;

/// A situation.
#[expect(missing_docs, reason = "SITUATIONS has a row for each")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Situation {
    SplitAtEveryRcb,
    SplitAnywhere,
    ReorderedAcrossTags,
    InterleavedAcrossTags,
    DelayedToTimeout,
    RandomDelays,
    TagsReusedAtOnce,
    CreditsWithheld,
    CreditsOneByOne,
    BackPressure,
    GapsInTlps,
    PayloadSizeChanged,
    ReadSizeChanged,
    UnalignedBuffers,
    AddressAbove4Gib,
    PollingDuringTransfer,
    ZeroLengthRead,
    OddByteEnables,
    LoadsAmongStores,
    BusMasterCleared,
    WrongByteCount,
    WrongLowerAddress,
    ExcessData,
    UnexpectedTag,
    WrongRequester,
    DuplicateCompletion,
    PoisonedCompletion,
    UnsupportedRequest,
    CompleterAbort,
    ReservedStatus,
    SuccessWithoutData,
    NoCompletion,
    LateCompletion,
    MalformedLength,
    FunctionLevelReset,
}

/// The name, legality and source of a situation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SituationRow {
    /// The situation.
    pub situation: Situation,
    /// Name in output.
    pub name: &'static str,
    /// Whether a correct partner may create it.
    pub is_legal: bool,
    /// Section of the PCI Express Base Specification 5.0 that allows it, or that it breaks.
    pub section: &'static str,
    /// What happens.
    pub about: &'static str,
    /// The rule that a device breaks which takes its data for good.
    pub breaks: Rule,
}

const fn legal(situation: Situation, name: &'static str, section: &'static str, about: &'static str) -> SituationRow {
    SituationRow { situation, name, is_legal: true, section, about, breaks: Rule::DataIntegrity }
}

const fn illegal(
    situation: Situation,
    name: &'static str,
    section: &'static str,
    about: &'static str,
    breaks: Rule,
) -> SituationRow {
    SituationRow { situation, name, is_legal: false, section, about, breaks }
}

/// Every situation, in the order of [`Situation`].
pub const SITUATIONS: [SituationRow; 35] = [
    legal(Situation::SplitAtEveryRcb, "split_at_every_rcb", "2.3.1.1", "a read is completed in pieces of one RCB"),
    legal(Situation::SplitAnywhere, "split_anywhere", "2.3.1.1", "a read is completed in pieces of any number of RCBs"),
    legal(Situation::ReorderedAcrossTags, "reordered_across_tags", "2.4.1", "a later read is completed first"),
    legal(Situation::InterleavedAcrossTags, "interleaved_across_tags", "2.4.1", "pieces of several reads alternate"),
    legal(Situation::DelayedToTimeout, "delayed_to_timeout", "2.8", "a completion comes just before the timeout"),
    legal(Situation::RandomDelays, "random_delays", "2.8", "completions come after random times"),
    legal(Situation::TagsReusedAtOnce, "tags_reused_at_once", "2.2.6.2", "one read is completed at once, others wait"),
    legal(Situation::CreditsWithheld, "credits_withheld", "2.6.1", "no credits are returned for a while"),
    legal(Situation::CreditsOneByOne, "credits_one_by_one", "2.6.1", "credits are returned one by one"),
    legal(Situation::BackPressure, "back_pressure", "2.6.1", "beats of the device are accepted at random clocks"),
    legal(Situation::GapsInTlps, "gaps_in_tlps", "rtl/README.md", "beats to the device have gaps between them"),
    legal(Situation::PayloadSizeChanged, "payload_size_changed", "7.5.3.4", "Max_Payload_Size changes"),
    legal(Situation::ReadSizeChanged, "read_size_changed", "7.5.3.4", "Max_Read_Request_Size changes"),
    legal(Situation::UnalignedBuffers, "unaligned_buffers", "2.2.5", "a buffer starts or ends within a DW"),
    legal(Situation::AddressAbove4Gib, "address_above_4_gib", "2.2.4.1", "a buffer is above 4 GiB"),
    legal(Situation::PollingDuringTransfer, "polling_during_transfer", "2.4.1", "registers are read back to back"),
    legal(Situation::ZeroLengthRead, "zero_length_read", "2.2.5", "a read of the BAR enables no byte"),
    legal(Situation::OddByteEnables, "odd_byte_enables", "2.2.5", "a write to the BAR enables bytes with holes"),
    legal(Situation::LoadsAmongStores, "loads_among_stores", "2.4.1", "stores follow a load that is not completed"),
    legal(Situation::BusMasterCleared, "bus_master_cleared", "7.5.1.1.3", "Bus Master Enable is clear for a while"),
    illegal(Situation::WrongByteCount, "wrong_byte_count", "2.2.9", "a Byte Count is wrong", Rule::CompletionMismatch),
    illegal(
        Situation::WrongLowerAddress,
        "wrong_lower_address",
        "2.2.9",
        "a Lower Address is wrong",
        Rule::CompletionMismatch,
    ),
    illegal(
        Situation::ExcessData,
        "excess_data",
        "2.2.9",
        "a completion is longer than the rest of its read",
        Rule::CompletionMismatch,
    ),
    illegal(
        Situation::UnexpectedTag,
        "unexpected_tag",
        "2.3.2",
        "a completion has a tag without a request",
        Rule::UnexpectedCompletion,
    ),
    illegal(
        Situation::WrongRequester,
        "wrong_requester",
        "2.3.2",
        "a completion has the ID of another requester",
        Rule::UnexpectedCompletion,
    ),
    illegal(
        Situation::DuplicateCompletion,
        "duplicate_completion",
        "2.3.2",
        "a completion comes twice",
        Rule::UnexpectedCompletion,
    ),
    illegal(Situation::PoisonedCompletion, "poisoned_completion", "2.7.2", "a completion is poisoned", Rule::Poison),
    illegal(
        Situation::UnsupportedRequest,
        "unsupported_request",
        "2.2.9",
        "a read is completed with UR",
        Rule::FailedStatus,
    ),
    illegal(Situation::CompleterAbort, "completer_abort", "2.2.9", "a read is completed with CA", Rule::FailedStatus),
    illegal(
        Situation::ReservedStatus,
        "reserved_status",
        "2.2.9",
        "a read is completed with a reserved status",
        Rule::FailedStatus,
    ),
    illegal(
        Situation::SuccessWithoutData,
        "success_without_data",
        "2.2.9",
        "a read is completed with success and no data",
        Rule::CompletionMismatch,
    ),
    illegal(Situation::NoCompletion, "no_completion", "2.8", "a read is never completed", Rule::Timeout),
    illegal(
        Situation::LateCompletion,
        "late_completion",
        "2.8",
        "a completion comes after the timeout",
        Rule::UnexpectedCompletion,
    ),
    illegal(
        Situation::MalformedLength,
        "malformed_length",
        "2.2.2",
        "the data are not as long as their Length",
        Rule::Malformed,
    ),
    illegal(
        Situation::FunctionLevelReset,
        "function_level_reset",
        "6.6.2",
        "the function is reset during a transfer",
        Rule::FunctionReset,
    ),
];

impl Situation {
    /// Row of this situation in [`SITUATIONS`].
    #[must_use]
    pub const fn row(self) -> &'static SituationRow {
        &SITUATIONS[self as usize]
    }
}

/// How often each situation was created.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Coverage {
    counts: BTreeMap<Situation, u64>,
}

impl Coverage {
    /// Counts a situation once.
    pub fn count(&mut self, situation: Situation) {
        *self.counts.entry(situation).or_default() += 1;
    }

    /// Adds `other` to every counter.
    pub fn add(&mut self, other: &Coverage) {
        for (situation, times) in &other.counts {
            *self.counts.entry(*situation).or_default() += times;
        }
    }

    /// How often a situation was created.
    #[must_use]
    pub fn of(&self, situation: Situation) -> u64 {
        self.counts.get(&situation).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_situations_and_names_are_unique() {
        for (place, row) in SITUATIONS.iter().enumerate() {
            assert_eq!(row.situation as usize, place);
            assert!(SITUATIONS[..place].iter().all(|other| other.name != row.name), "{}", row.name);
            assert!(!row.section.is_empty());
        }
    }
}
