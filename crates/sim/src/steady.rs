//! Steady states: where a run of devices' transfers is where it was before, as many periods as are left are skipped.
//!
//! A board is looked at each time its longest job has begun some more transfers, always between two ticks. What it is then is
//! written down without what only grows with time ([`Snapshot`]): instants as distances from now, transfers as distances from the
//! last one begun, addresses as distances from where that one goes, tags by the order in which they are met. A hash finds
//! candidates; if everything is equal, the future is that of then, moved by the difference ([`Period`]), and it is moved
//! ([`Mover`]). Why that is sound, and what makes it stop, stands in `docs/decisions/0020-a-steady-state-is-skipped.md`.

mod leg;
mod mover;
mod snapshot;

pub(crate) use leg::{Leg, PAGE, greatest_common_divisor};
pub(crate) use mover::Mover;
pub(crate) use snapshot::{Period, Snapshot, Writer};

use crate::tlp::Tlp;
use lanemark_engine::Visitor;
use lanemark_machine::Verb;

/// A visitor that knows what travels.
pub(crate) trait Survey: Visitor {
    /// A TLP, and the bytes it carries.
    fn tlp(&mut self, tlp: &mut Tlp);

    /// A bus address that is about a transfer by `owner`.
    fn place(&mut self, owner: u16, verb: Verb, address: &mut u64);

    /// A name of a tag that does not depend on which one it is.
    fn tag(&mut self, owner: u16, tag: u16) -> u64;
}
