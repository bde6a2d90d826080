//! Traffic of the links of a board.

use super::Board;
use crate::topology::Direction;
use lanemark_units::Ticks;

/// Traffic of one direction of a link since construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Line time of TLPs.
    pub tlps: Ticks,
    /// Line time of DLLPs.
    pub dllps: Ticks,
    /// Payload bytes.
    pub payload_bytes: u64,
}

impl Carried {
    /// Adds `other` to every counter.
    pub(crate) fn add(&mut self, other: &Carried) {
        self.tlps += other.tlps;
        self.dllps += other.dllps;
        self.payload_bytes += other.payload_bytes;
    }
}

impl Board {
    /// Returns the traffic of each direction of each link up to now, link after link, the downstream direction first.
    pub fn carried(&mut self) -> Vec<Carried> {
        self.deliver_all_dllps();
        let of = |line: &Direction| {
            let [tlps, dllps] = line.transmitter.carried(self.now);
            Carried { tlps, dllps, payload_bytes: line.transmitter.crossed.payload_bytes }
        };
        self.directions.iter().map(of).collect()
    }

    /// Returns the name of the component below each link.
    #[must_use]
    pub fn link_names(&self) -> Vec<&str> {
        self.ports.iter().step_by(2).map(|[_, lower]| lower.name.as_str()).collect()
    }
}
