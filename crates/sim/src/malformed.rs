//! TLPs that are longer than a port on their way allows.
//!
//! A port that sends may not send what is longer than its `Max_Payload_Size`, one of a switch that only sends on neither, and
//! one that receives must not take it: it is dropped there as malformed, and its credits go back.
//!
//! Source: PCI Express Base Specification 6.0, section 2.2.2.

use crate::part::link::Sent;
use crate::tlp::Tlp;
use lanemark_units::Ticks;

/// A port by its name, and its `Max_Payload_Size`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortLimit {
    pub(crate) name: String,
    pub(crate) mps_bytes: u32,
}

/// The first TLP that was too long, and how many followed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The TLP; its payload slot is no longer valid.
    pub tlp: Tlp,
    /// When it would have been at the other end of the link.
    pub at: Ticks,
    /// The port that it was too long for, by its name in the platform.
    pub port: String,
    /// `Max_Payload_Size` of that port, in bytes.
    pub mps_bytes: u32,
    /// How many there were, at any port.
    pub count: u64,
}

impl Malformed {
    /// Counts a TLP on a link between these ports, the sender's first.
    pub(crate) fn count(so_far: &mut Option<Malformed>, sent: &Sent, ports: &[PortLimit; 2]) {
        let [from, to] = ports;
        let port = if sent.tlp.payload_bytes() > from.mps_bytes { from } else { to };
        let first = || Malformed {
            tlp: sent.tlp,
            at: sent.arrives,
            port: port.name.clone(),
            mps_bytes: port.mps_bytes,
            count: 0,
        };
        so_far.get_or_insert_with(first).count += 1;
    }
}
