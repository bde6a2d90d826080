//! What the links of a board carried.

use super::Board;
use crate::topology::Direction;
use lanemark_units::Ticks;

/// What one direction of a link carried since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Time of TLPs on the line.
    pub tlps: Ticks,
    /// Time of DLLPs.
    pub dllps: Ticks,
    /// Bytes of payload.
    pub payload_bytes: u64,
}

impl Carried {
    /// And this.
    pub(crate) fn add(&mut self, other: &Carried) {
        self.tlps += other.tlps;
        self.dllps += other.dllps;
        self.payload_bytes += other.payload_bytes;
    }
}

impl Board {
    /// What each direction of each link carried until now, link after link, that down first.
    pub fn carried(&mut self) -> Vec<Carried> {
        self.hear_all();
        let of = |line: &Direction| {
            let [tlps, dllps] = line.transmitter.carried(self.now);
            Carried { tlps, dllps, payload_bytes: line.transmitter.crossed.payload_bytes }
        };
        self.directions.iter().map(of).collect()
    }

    /// What hangs below each link, by its name in the platform.
    #[must_use]
    pub fn link_names(&self) -> Vec<&str> {
        self.ports.iter().step_by(2).map(|[_, lower]| lower.name.as_str()).collect()
    }
}
