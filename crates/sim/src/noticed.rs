//! What ports notice: errors of advanced error reporting, with the TLP that each is about.
//!
//! A TLP that is longer than a port on its way allows is one of them: a port that sends may not send what is longer than its
//! `Max_Payload_Size`, one of a switch that only sends on neither, and one that receives must not take it.
//!
//! Source: PCI Express Base Specification 6.0, sections 2.2.2 and 6.2.

use crate::tlp::Tlp;
use lanemark_units::Ticks;
use lanemark_wire::config::AerError;

/// A port by its name, and its `Max_Payload_Size`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortLimit {
    pub(crate) name: String,
    pub(crate) mps_bytes: u32,
}

/// An uncorrectable error that a port noticed, the first of its kind there, and how many followed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noticed {
    /// Which.
    pub error: AerError,
    /// The port, by its name in the platform.
    pub port: String,
    /// When.
    pub at: Ticks,
    /// The TLP; its payload slot is no longer valid.
    pub tlp: Tlp,
    /// For a completion: bytes of its read that were to come, its own too.
    pub left_bytes: u16,
    /// `Max_Payload_Size` of that port, in bytes.
    pub mps_bytes: u32,
    /// How many there were, this one too.
    pub count: u64,
}

impl Noticed {
    /// Adds one, which is counted where its like was noticed before.
    pub(crate) fn note(self, so_far: &mut Vec<Noticed>) {
        match so_far.iter_mut().find(|other| other.error == self.error && other.port == self.port) {
            Some(other) => other.count += 1,
            None => so_far.push(self),
        }
    }
}
