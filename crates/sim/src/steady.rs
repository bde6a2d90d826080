//! Steady states: when a run of DMA transfers repeats an earlier state, as many of the remaining periods as possible
//! are skipped.
//!
//! A board is examined each time its longest job has begun some more transfers, always between two ticks. Its state
//! is recorded without what only grows with time ([`Snapshot`]): instants as distances from now, transfers as
//! distances from the last one begun, addresses as distances from that one's address, tags by the order in which they
//! are visited. A hash finds candidates. If two states are equal, their futures are equal up to a shift ([`Period`]),
//! by which the board is moved ([`Mover`]). `docs/decisions/0020-a-steady-state-is-skipped.md` explains why this is
//! sound and when it stops.

mod leg;
mod mover;
mod snapshot;

pub(crate) use leg::{Leg, PAGE, greatest_common_divisor};
pub(crate) use mover::Mover;
pub(crate) use snapshot::{Period, Snapshot, Writer};

use crate::tlp::Tlp;
use lanemark_engine::Visitor;
use lanemark_machine::Verb;

/// A visitor that also receives TLPs, addresses and tags.
pub(crate) trait Survey: Visitor {
    /// A TLP and its payload.
    fn tlp(&mut self, tlp: &mut Tlp);

    /// A bus address of transfer `number` by `owner`.
    fn place(&mut self, owner: u16, verb: Verb, number: u64, address: &mut u64);

    /// Returns a name of a tag that does not depend on its value.
    fn tag(&mut self, owner: u16, tag: u16) -> u64;
}
