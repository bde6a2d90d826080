//! The errors of Advanced Error Reporting: bit, name, default severity and layer of each.
//!
//! The names are those of the bits in [`super::aer`], which Linux prints too. Errors of IDE and deferrable memory
//! writes (bits 27 to 31 of the uncorrectable ones) have no row, because nothing in this project generates them.

use super::Errors;

/// Default severity of an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Severity {
    /// Corrected by hardware without loss of information.
    Correctable,
    /// A transaction is lost, but the link is reliable.
    NonFatal,
    /// The link is unreliable until it is reset.
    Fatal,
}

impl Severity {
    /// Name as printed by Linux.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Correctable => "Correctable",
            Severity::NonFatal => "Uncorrectable (Non-Fatal)",
            Severity::Fatal => "Uncorrectable (Fatal)",
        }
    }
}

/// The layer that detects an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Layer {
    /// Physical layer.
    Physical,
    /// Data link layer.
    DataLink,
    /// Transaction layer.
    Transaction,
}

impl Layer {
    /// Name as printed by Linux.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Physical => "Physical Layer",
            Layer::DataLink => "Data Link Layer",
            Layer::Transaction => "Transaction Layer",
        }
    }
}

/// An error with a bit in the AER status registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AerError {
    /// Violation of the Ack/Nak protocol.
    DataLinkProtocol,
    /// The link went down unexpectedly.
    SurpriseDown,
    /// A received TLP is marked as poisoned (EP).
    PoisonedTlp,
    /// Violation of the flow control protocol.
    FlowControlProtocol,
    /// A request was not completed in time.
    CompletionTimeout,
    /// The completer aborted a request.
    CompleterAbort,
    /// A completion matches no outstanding request.
    UnexpectedCompletion,
    /// A receiver got more TLPs than it advertised credits for.
    ReceiverOverflow,
    /// A TLP violates a formatting rule.
    MalformedTlp,
    /// A TLP fails its ECRC check.
    Ecrc,
    /// A request is not supported by the completer.
    UnsupportedRequest,
    /// A request violates access control.
    AcsViolation,
    /// An uncorrectable internal error.
    UncorrectableInternal,
    /// A multicast TLP was blocked.
    McBlockedTlp,
    /// An `AtomicOp` was blocked at an egress port.
    AtomicOpEgressBlocked,
    /// A TLP with a prefix was blocked.
    TlpPrefixBlocked,
    /// A poisoned TLP was blocked at an egress port.
    PoisonedTlpEgressBlocked,
    /// A receiver error of the physical layer, such as an invalid symbol.
    Receiver,
    /// A TLP has a bad LCRC or sequence number; it is replayed.
    BadTlp,
    /// A DLLP has a bad CRC.
    BadDllp,
    /// A TLP was replayed four times (`REPLAY_NUM` rolled over).
    ReplayNumRollover,
    /// The replay timer expired without an Ack; unacknowledged TLPs are replayed.
    ReplayTimerTimeout,
    /// A non-fatal error that another function reports.
    AdvisoryNonFatal,
    /// A corrected internal error.
    CorrectedInternal,
    /// The header log had no space for another header.
    HeaderLogOverflow,
}

/// Properties of one error: a row of [`AER_ERRORS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AerRow {
    /// The error.
    pub error: AerError,
    /// Bit in the status, mask and severity registers.
    pub bit: u8,
    /// Short name, as printed by `lspci` and Linux.
    pub name: &'static str,
    /// Name in the specification.
    pub full_name: &'static str,
    /// Severity after reset.
    pub severity: Severity,
    /// Layer that detects it.
    pub layer: Layer,
    /// Whether the header of the offending TLP is logged.
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
/// Source: PCI Express Base Specification 6.0; bits and severities: sections 7.8.4.2, 7.8.4.4 and 7.8.4.5; layers and
/// header logging: section 6.2.7, tables of errors by layer. The header of a timed-out request is logged by ports with
/// that capability (section 7.8.4.7), which simulated ports have.
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
    /// The row of this error in [`AER_ERRORS`].
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

    /// Whether hardware has corrected the error.
    #[must_use]
    pub const fn is_correctable(self) -> bool {
        matches!(self.row().severity, Severity::Correctable)
    }

    /// The status register of this error, with only its bit set.
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
    fn rows_are_in_the_order_of_the_errors() {
        for (place, row) in AER_ERRORS.iter().enumerate() {
            assert_eq!(row.error as usize, place, "{}", row.full_name);
            assert_eq!(row.error.row(), row);
        }
    }

    #[test]
    fn every_row_has_the_bit_and_name_of_the_register_and_no_bit_is_used_twice() {
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
    fn six_uncorrectable_errors_are_fatal_after_reset() {
        let fatal: Vec<u8> =
            AER_ERRORS.iter().filter(|row| row.severity == Severity::Fatal).map(|row| row.bit).collect();
        assert_eq!(fatal, [4, 5, 13, 17, 18, 22]);
    }
}
