//! The work that a delivered rate is of.

use crate::{Relay, Transfer, Verb};
use lanemark_compute::Workload;
use lanemark_units::BarOffset;

/// The work of a case whose delivered rate has a ceiling.
#[derive(Clone, Debug, PartialEq)]
pub enum Rated<'a> {
    /// Kernels on a device.
    Computation(&'a Workload),
    /// Copies by a runtime, as the program sees them: a store goes to the card.
    Copies {
        /// Their direction.
        verb: Verb,
        /// Bytes of one copy.
        bytes: u64,
    },
    /// A relay through cards.
    Relay(Relay),
    /// Transfers by DMA, at the same time if there are several.
    Transfers(Vec<Transfer>),
    /// Loads or stores of a core.
    Accesses {
        /// Their direction.
        verb: Verb,
        /// The first byte.
        at: BarOffset,
        /// Bytes of one iteration.
        bytes: u64,
    },
}
