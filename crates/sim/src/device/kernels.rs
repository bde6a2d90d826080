//! The kernels that a runtime launches: they run in order, and each completion sends a message.
//!
//! ```text
//!  doorbell --> [start, empty kernel, end] --> message --egress--> link
//!      ^ further launches are queued
//! ```
//!
//! Ports: [`Kernels::store_arrives`] receives stores to the card, [`Kernels::end`] returns the message of a completed
//! kernel when that is [due](Kernels::due).

use crate::critical_path::{CriticalPath, Milestone, Place};
use crate::index::CardIndex;
use crate::steady::Survey;
use crate::tlp::{Tlp, TlpKind, span};
use lanemark_engine::{Slab, Wire};
use lanemark_machine::Cause;
use lanemark_platform::KernelDoorbell;
use lanemark_units::Ticks;

/// Constants of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Requester ID of the card.
    pub requester: u16,
    /// Channel number of its messages: one above those of the DMA engine.
    pub channel: u16,
    /// Its doorbell and completion address.
    pub bell: KernelDoorbell,
    /// From the doorbell store to the start of a kernel.
    pub start: Ticks,
    /// From the end of a kernel to its message.
    pub end: Ticks,
    /// From the message to the link.
    pub egress: Ticks,
}

/// State of the kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernels {
    spec: Spec,
    /// End of the last launched kernel, and the ends to be notified.
    until: Ticks,
    ends: Wire<Milestone>,
    /// End of the last kernel that has ended.
    ended: Milestone,
    /// Messages sent since construction, and those that have arrived.
    done: u64,
    notified: u64,
}

/// Bytes of a message.
const MESSAGE_BYTES: u64 = 4;

impl Kernels {
    /// Creates an idle unit.
    #[must_use]
    pub fn new(spec: Spec) -> Kernels {
        Kernels { spec, until: Ticks::ZERO, ends: Wire::default(), ended: Milestone::NONE, done: 0, notified: 0 }
    }

    /// Returns the channel number of its messages, and how many it has sent.
    #[must_use]
    pub fn notified(&self) -> (u16, u64) {
        (self.spec.channel, self.done)
    }

    /// Counts the arrival of a message; returns the number of completed kernels. Messages arrive in order.
    pub fn notify(&mut self) -> u64 {
        self.notified += 1;
        self.notified
    }

    /// Receives a store to the card, accepted at `milestone`. A store to the doorbell launches a kernel; returns
    /// whether it did.
    #[inline]
    pub fn store_arrives(&mut self, now: Ticks, address: u64, milestone: Milestone) -> bool {
        let rings = address == self.spec.bell.doorbell;
        if rings {
            // Behind another kernel, it waits for the end of that one.
            let before = if self.until > now { Milestone::NONE } else { milestone };
            self.until = self.until.max(now) + self.spec.start + self.spec.end;
            self.ends.send(self.until, before);
        }
        rings
    }

    /// Returns the next end of a kernel.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        self.ends.due()
    }

    /// Returns the message of the next kernel that has ended by `now`, and when it reaches the link.
    pub fn end(&mut self, now: Ticks, slab: &mut Slab, path: &mut CriticalPath) -> Option<(Ticks, Tlp)> {
        let launched = self.ends.take(now)?;
        let before = if launched == Milestone::NONE { self.ended } else { launched };
        self.ended = path.add(before, now, Place::card(CardIndex::of_requester(self.spec.requester)), Cause::Compute);
        let milestone = self.ended;
        self.done += 1;
        let Spec { requester, channel: tag, bell, egress, .. } = self.spec;
        let (address, length_dw, first_be, last_be) = span(bell.message, MESSAGE_BYTES);
        let payload = slab.take();
        slab.bytes_mut(payload)[..MESSAGE_BYTES as usize].copy_from_slice(&(self.done as u32).to_le_bytes());
        let tlp =
            Tlp { address, length_dw, first_be, last_be, requester, tag, payload, milestone, ..Tlp::of(TlpKind::MWr) };
        Some((now + egress, tlp))
    }

    /// Drops the launched kernels that have not ended.
    pub fn stop(&mut self) {
        self.ends = Wire::default();
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let Kernels { spec: _, until, ends, ended: _, done, notified } = self;
        view.time(until);
        view.count(ends.iter().count());
        view.state(*done);
        view.state(*notified);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels() -> Kernels {
        let bell = KernelDoorbell { doorbell: 0x1000, message: 0xFEE0_1000 };
        let (start, end, egress) = (Ticks(50), Ticks(30), Ticks(7));
        Kernels::new(Spec { requester: 0x8000, channel: 1, bell, start, end, egress })
    }

    #[test]
    fn kernels_run_in_order_and_each_sends_a_message() {
        let (mut kernels, mut slab) = (kernels(), Slab::new(64));
        assert!(!kernels.store_arrives(Ticks(10), 0x1008, Milestone::NONE), "not the doorbell");
        assert!(
            kernels.store_arrives(Ticks(10), 0x1000, Milestone::NONE)
                && kernels.store_arrives(Ticks(20), 0x1000, Milestone::NONE)
        );
        assert_eq!((kernels.due(), kernels.end(Ticks(89), &mut slab, &mut CriticalPath::default())), (Ticks(90), None));
        let (at, tlp) = kernels.end(Ticks(90), &mut slab, &mut CriticalPath::default()).unwrap();
        assert_eq!((at, tlp.address, tlp.tag, kernels.notified()), (Ticks(97), 0xFEE0_1000, 1, (1, 1)));
        assert_eq!(kernels.due(), Ticks(170), "the second begins at the end of the first");
        kernels.stop();
        assert_eq!(kernels.due(), Ticks::NEVER);
    }
}
