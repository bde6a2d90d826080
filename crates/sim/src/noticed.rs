//! Errors detected by ports, as in Advanced Error Reporting, with the offending TLP.
//!
//! One of them is a TLP longer than a port allows. A port must not send a TLP longer than its `Max_Payload_Size`, nor
//! may a switch port forward one, and a receiver must not accept it.
//!
//! Source: PCI Express Base Specification 6.0, sections 2.2.2 and 6.2.

use crate::tlp::Tlp;
use lanemark_units::Ticks;
use lanemark_wire::config::AerError;

/// A port and its `Max_Payload_Size`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortLimit {
    pub(crate) name: String,
    pub(crate) mps_bytes: u32,
}

/// The first uncorrectable error of a kind at a port, and the number of such errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noticed {
    /// The error.
    pub error: AerError,
    /// The port, by its name in the platform.
    pub port: String,
    /// Time of the error.
    pub at: Ticks,
    /// The TLP; its payload slot is no longer valid.
    pub tlp: Tlp,
    /// For a completion: remaining bytes of its read, with its own.
    pub left_bytes: u16,
    /// `Max_Payload_Size` of that port, in bytes.
    pub mps_bytes: u32,
    /// Number of errors, with this one.
    pub count: u64,
}

impl Noticed {
    /// Adds an error, or counts it if the port has detected its kind before.
    pub(crate) fn note(self, so_far: &mut Vec<Noticed>) {
        match so_far.iter_mut().find(|other| other.error == self.error && other.port == self.port) {
            Some(other) => other.count += 1,
            None => so_far.push(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlp::TlpKind;

    #[test]
    fn errors_of_one_kind_at_one_port_are_counted_and_the_first_is_kept() {
        let note = |error, port: &str, at| Noticed {
            error,
            port: port.to_owned(),
            at: Ticks(at),
            tlp: Tlp::of(TlpKind::MWr),
            left_bytes: 0,
            mps_bytes: 128,
            count: 1,
        };
        let (long, poisoned) = (AerError::MalformedTlp, AerError::PoisonedTlp);
        let mut so_far = Vec::new();
        for (error, port, at) in [(long, "root", 1), (long, "root", 2), (poisoned, "root", 3), (long, "card", 4)] {
            note(error, port, at).note(&mut so_far);
        }
        note(long, "root", 5).note(&mut so_far);
        let all: Vec<(u64, u64)> = so_far.iter().map(|noticed| (noticed.at.0, noticed.count)).collect();
        assert_eq!(all, [(1, 3), (3, 1), (4, 1)]);
    }
}
