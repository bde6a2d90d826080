//! The errors that advanced error reporting tells apart: a row each, with its bit, its default severity and its layer.
//!
//! The names are those of the bits in [`super::aer`], which are also those that Linux prints. What came with IDE and
//! deferrable writes (bits 27 to 31 of the uncorrectable ones) has no row: nothing here makes or explains it.

use super::Errors;

/// How bad an error is unless software says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Severity {
    /// Repaired by hardware: counted, and nothing is lost.
    Correctable,
    /// A transaction is lost, the link is not.
    NonFatal,
    /// The link cannot be relied on until it is reset.
    Fatal,
}

impl Severity {
    /// As Linux prints it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Correctable => "Correctable",
            Severity::NonFatal => "Uncorrectable (Non-Fatal)",
            Severity::Fatal => "Uncorrectable (Fatal)",
        }
    }
}

/// Where an error is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Layer {
    /// Symbols and lanes.
    Physical,
    /// DLLPs, sequence numbers, the state of the link.
    DataLink,
    /// TLPs.
    Transaction,
}

impl Layer {
    /// As Linux prints it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Physical => "Physical Layer",
            Layer::DataLink => "Data Link Layer",
            Layer::Transaction => "Transaction Layer",
        }
    }
}

/// An error that has a bit in the status registers of advanced error reporting.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AerError {
    /// A broken rule of acknowledging.
    DataLinkProtocol,
    /// The link went down and nobody had said so before.
    SurpriseDown,
    /// A TLP came whose sender says that its data are wrong.
    PoisonedTlp,
    /// A broken rule of credits.
    FlowControlProtocol,
    /// No completion came in time.
    CompletionTimeout,
    /// A completer could not do what it should have been able to.
    CompleterAbort,
    /// A completion that nobody waits for.
    UnexpectedCompletion,
    /// More came than there were credits for.
    ReceiverOverflow,
    /// A TLP that breaks a rule of its format.
    MalformedTlp,
    /// The digest of a TLP does not fit it.
    Ecrc,
    /// A request that nobody there can serve.
    UnsupportedRequest,
    /// A request that access control forbids.
    AcsViolation,
    /// An error inside that has no other name.
    UncorrectableInternal,
    /// A multicast TLP that was blocked.
    McBlockedTlp,
    /// An atomic operation that was blocked.
    AtomicOpEgressBlocked,
    /// A prefix that was blocked.
    TlpPrefixBlocked,
    /// A poisoned TLP that was blocked.
    PoisonedTlpEgressBlocked,
    /// A symbol that was no symbol.
    Receiver,
    /// A TLP whose LCRC or sequence number is wrong; it is sent again.
    BadTlp,
    /// A DLLP whose CRC is wrong.
    BadDllp,
    /// A TLP was sent again four times.
    ReplayNumRollover,
    /// No acknowledgment came in time; what waits for one is sent again.
    ReplayTimerTimeout,
    /// A non-fatal error that somebody else reports.
    AdvisoryNonFatal,
    /// An error inside that hardware has repaired.
    CorrectedInternal,
    /// There was no room for another header.
    HeaderLogOverflow,
}

/// What the specification fixes about one error: a row of [`AER_ERRORS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AerRow {
    /// Which error.
    pub error: AerError,
    /// Its bit in status, mask and severity register.
    pub bit: u8,
    /// Its short name, as `lspci` and Linux print it.
    pub name: &'static str,
    /// Its name in the specification.
    pub full_name: &'static str,
    /// How bad it is after a reset.
    pub severity: Severity,
    /// Where it is noticed.
    pub layer: Layer,
    /// Whether the header of the TLP that it is about is logged.
    pub logs_header: bool,
}

const fn row(
    error: AerError,
    bit: u8,
    name: &'static str,
    full_name: &'static str,
    severity: Severity,
    layer: Layer,
    logs_header: bool,
) -> AerRow {
    AerRow { error, bit, name, full_name, severity, layer, logs_header }
}

/// Every error, in the order of [`AerError`].
///
/// Source: PCI Express Base Specification 6.0; bits and severities: sections 7.8.4.2, 7.8.4.4 and 7.8.4.5; layers and whose header is
/// logged: section 6.2.7, tables of errors by layer. The header of a request that timed out is logged by ports that are
/// capable of it (section 7.8.4.7), as simulated ones are.
#[rustfmt::skip]
pub const AER_ERRORS: [AerRow; 25] = {
    use AerError as E;
    use Layer::{DataLink, Physical, Transaction};
    use Severity::{Correctable, Fatal, NonFatal};
    [
        row(E::DataLinkProtocol,         4,  "DLP",              "Data Link Protocol Error",           Fatal,       DataLink,    false),
        row(E::SurpriseDown,             5,  "SDES",             "Surprise Down Error",                Fatal,       DataLink,    false),
        row(E::PoisonedTlp,              12, "TLP",              "Poisoned TLP Received",              NonFatal,    Transaction, true),
        row(E::FlowControlProtocol,      13, "FCP",              "Flow Control Protocol Error",        Fatal,       Transaction, false),
        row(E::CompletionTimeout,        14, "CmpltTO",          "Completion Timeout",                 NonFatal,    Transaction, true),
        row(E::CompleterAbort,           15, "CmpltAbrt",        "Completer Abort",                    NonFatal,    Transaction, true),
        row(E::UnexpectedCompletion,     16, "UnxCmplt",         "Unexpected Completion",              NonFatal,    Transaction, true),
        row(E::ReceiverOverflow,         17, "RxOF",             "Receiver Overflow",                  Fatal,       Transaction, false),
        row(E::MalformedTlp,             18, "MalfTLP",          "Malformed TLP",                      Fatal,       Transaction, true),
        row(E::Ecrc,                     19, "ECRC",             "ECRC Error",                         NonFatal,    Transaction, true),
        row(E::UnsupportedRequest,       20, "UnsupReq",         "Unsupported Request Error",          NonFatal,    Transaction, true),
        row(E::AcsViolation,             21, "ACSViol",          "ACS Violation",                      NonFatal,    Transaction, true),
        row(E::UncorrectableInternal,    22, "UncorrIntErr",     "Uncorrectable Internal Error",       Fatal,       Transaction, false),
        row(E::McBlockedTlp,             23, "BlockedTLP",       "MC Blocked TLP",                     NonFatal,    Transaction, true),
        row(E::AtomicOpEgressBlocked,    24, "AtomicOpBlocked",  "AtomicOp Egress Blocked",            NonFatal,    Transaction, true),
        row(E::TlpPrefixBlocked,         25, "TLPBlockedErr",    "TLP Prefix Blocked Error",           NonFatal,    Transaction, true),
        row(E::PoisonedTlpEgressBlocked, 26, "PoisonTLPBlocked", "Poisoned TLP Egress Blocked",        NonFatal,    Transaction, true),
        row(E::Receiver,                 0,  "RxErr",            "Receiver Error",                     Correctable, Physical,    false),
        row(E::BadTlp,                   6,  "BadTLP",           "Bad TLP",                            Correctable, DataLink,    false),
        row(E::BadDllp,                  7,  "BadDLLP",          "Bad DLLP",                           Correctable, DataLink,    false),
        row(E::ReplayNumRollover,        8,  "Rollover",         "REPLAY_NUM Rollover",                Correctable, DataLink,    false),
        row(E::ReplayTimerTimeout,       12, "Timeout",          "Replay Timer Timeout",               Correctable, DataLink,    false),
        row(E::AdvisoryNonFatal,         13, "AdvNonFatalErr",   "Advisory Non-Fatal Error",           Correctable, Transaction, true),
        row(E::CorrectedInternal,        14, "CorrIntErr",       "Corrected Internal Error",           Correctable, Transaction, false),
        row(E::HeaderLogOverflow,        15, "HeaderOF",         "Header Log Overflow",                Correctable, Transaction, false),
    ]
};

impl AerError {
    /// Its row.
    ///
    /// ```
    /// use lanemark_wire::config::{AerError, Severity};
    /// let row = AerError::CompletionTimeout.row();
    /// assert_eq!((row.bit, row.name, row.severity), (14, "CmpltTO", Severity::NonFatal));
    /// ```
    #[must_use]
    pub const fn row(self) -> &'static AerRow {
        &AER_ERRORS[self as usize]
    }

    /// Whether hardware has repaired it.
    #[must_use]
    pub const fn is_correctable(self) -> bool {
        matches!(self.row().severity, Severity::Correctable)
    }

    /// The status register in which it stands, with its bit alone set.
    #[must_use]
    pub const fn status(self) -> Errors {
        let bit = 1 << self.row().bit;
        if self.is_correctable() { Errors::correctable(bit) } else { Errors::uncorrectable(bit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_at_the_place_of_its_error() {
        for (place, row) in AER_ERRORS.iter().enumerate() {
            assert_eq!(row.error as usize, place, "{}", row.full_name);
            assert_eq!(row.error.row(), row);
        }
    }

    #[test]
    fn every_bit_has_the_name_that_the_register_gives_it_and_no_two_share_one() {
        for row in &AER_ERRORS {
            assert_eq!(row.error.status().names().collect::<Vec<_>>(), [row.name]);
            let same =
                |other: &&AerRow| other.bit == row.bit && other.error.is_correctable() == row.error.is_correctable();
            assert_eq!(AER_ERRORS.iter().filter(same).count(), 1, "{}", row.name);
        }
    }

    #[test]
    fn every_named_bit_up_to_26_has_a_row_and_bit_27_is_the_first_without() {
        let all = |register: fn(u32) -> Errors| -> u32 {
            let has_row = |bit: &u32| {
                AER_ERRORS.iter().any(|row| {
                    row.error.status().raw == 1 << bit && {
                        let same = register(1 << bit).names().collect::<Vec<_>>();
                        same == [row.name]
                    }
                })
            };
            let named = |bit: &u32| register(1 << bit).names().count() == 1;
            (0..32).filter(named).find(|bit| !has_row(bit)).unwrap_or(32)
        };
        assert_eq!((all(Errors::uncorrectable), all(Errors::correctable)), (27, 32));
    }

    #[test]
    fn six_uncorrectable_errors_are_fatal_after_a_reset() {
        let fatal: Vec<u8> =
            AER_ERRORS.iter().filter(|row| row.severity == Severity::Fatal).map(|row| row.bit).collect();
        assert_eq!(fatal, [4, 5, 13, 17, 18, 22]);
    }
}
