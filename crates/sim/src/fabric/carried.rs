//! Traffic of the links of a fabric.

use super::{Direction, Fabric};
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

    /// Returns the traffic since `before`.
    pub(crate) fn since(&self, before: &Carried) -> Carried {
        Carried {
            tlps: self.tlps - before.tlps,
            dllps: self.dllps - before.dllps,
            payload_bytes: self.payload_bytes - before.payload_bytes,
        }
    }

    /// Returns `times` this traffic.
    pub(crate) fn times(&self, times: u64) -> Carried {
        let Carried { tlps, dllps, payload_bytes } = *self;
        Carried { tlps: tlps * times, dllps: dllps * times, payload_bytes: payload_bytes * times }
    }
}

impl Fabric {
    /// Returns the traffic of each direction up to now.
    pub(crate) fn carried(&self, now: Ticks) -> Vec<Carried> {
        let of = |line: &Direction| {
            let [tlps, dllps] = line.transmitter.carried(now);
            Carried { tlps, dllps, payload_bytes: line.transmitter.crossed.payload_bytes }
        };
        self.directions.iter().map(of).collect()
    }
}
