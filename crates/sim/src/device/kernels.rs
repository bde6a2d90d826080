//! What runs the kernels that a runtime launches: one after the other, and says of each that it is over.
//!
//! ```text
//!  doorbell --> [start, nothing to do, end] --> message --egress--> link
//!      ^ those rung for meanwhile wait
//! ```
//!
//! Ports: [`Kernels::store_arrives`] takes stores to the card, [`Kernels::end`] gives the message of a kernel that is over when that
//! is [due](Kernels::due).

use crate::steady::Survey;
use crate::tlp::{Tlp, TlpKind, span};
use lanemark_engine::{Slab, Wire};
use lanemark_platform::KernelBell;
use lanemark_units::Ticks;

/// What never changes during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The card's number as a requester.
    pub requester: u16,
    /// What its messages are told from those of the DMA engine's channels by: one more than these.
    pub channel: u16,
    /// Where a runtime meets it.
    pub bell: KernelBell,
    /// From the store to the doorbell until a kernel begins.
    pub start: Ticks,
    /// From its end to the message.
    pub end: Ticks,
    /// From there to the link.
    pub egress: Ticks,
}

/// Everything that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernels {
    spec: Spec,
    /// When the last one that was launched is over, and those that are to be told of.
    until: Ticks,
    ends: Wire<()>,
    /// How many it has told of, ever, and how many of these messages have come: others are on their way.
    done: u64,
    heard: u64,
}

/// Bytes of a message.
const MESSAGE_BYTES: u64 = 4;

impl Kernels {
    /// With nothing to run.
    #[must_use]
    pub fn new(spec: Spec) -> Kernels {
        Kernels { spec, until: Ticks::ZERO, ends: Wire::default(), done: 0, heard: 0 }
    }

    /// What its messages are told from others by, and how many it has sent.
    #[must_use]
    pub fn told(&self) -> (u16, u64) {
        (self.spec.channel, self.done)
    }

    /// One of its messages has come: how many kernels that says are over. They come in order.
    pub fn hear(&mut self) -> u64 {
        self.heard += 1;
        self.heard
    }

    /// A store to the card was accepted: if it is to the doorbell, one more kernel is launched. Says whether it was.
    #[inline]
    pub fn store_arrives(&mut self, now: Ticks, address: u64) -> bool {
        let rings = address == self.spec.bell.doorbell;
        if rings {
            self.until = self.until.max(now) + self.spec.start + self.spec.end;
            self.ends.send(self.until, ());
        }
        rings
    }

    /// When the next one is over.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        self.ends.due()
    }

    /// The message of the next one that is over by now, and when it is at the link.
    pub fn end(&mut self, now: Ticks, slab: &mut Slab) -> Option<(Ticks, Tlp)> {
        self.ends.take(now)?;
        self.done += 1;
        let Spec { requester, channel: tag, bell, egress, .. } = self.spec;
        let (address, length_dw, first_be, last_be) = span(bell.message, MESSAGE_BYTES);
        let payload = slab.take();
        slab.bytes_mut(payload)[..MESSAGE_BYTES as usize].copy_from_slice(&(self.done as u32).to_le_bytes());
        let tlp = Tlp { address, length_dw, first_be, last_be, requester, tag, payload, ..Tlp::of(TlpKind::MWr) };
        Some((now + egress, tlp))
    }

    /// Forgets what was launched and has not ended.
    pub fn stop(&mut self) {
        self.ends = Wire::default();
    }

    /// Shows everything that changes.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let Kernels { spec: _, until, ends, done, heard } = self;
        view.time(until);
        view.count(ends.iter().count());
        view.state(*done);
        view.state(*heard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels() -> Kernels {
        let bell = KernelBell { doorbell: 0x1000, message: 0xFEE0_1000 };
        let (start, end, egress) = (Ticks(50), Ticks(30), Ticks(7));
        Kernels::new(Spec { requester: 0x8000, channel: 1, bell, start, end, egress })
    }

    #[test]
    fn kernels_run_one_after_the_other_and_each_is_told_of() {
        let (mut kernels, mut slab) = (kernels(), Slab::new(64));
        assert!(!kernels.store_arrives(Ticks(10), 0x1008), "beside the doorbell");
        assert!(kernels.store_arrives(Ticks(10), 0x1000) && kernels.store_arrives(Ticks(20), 0x1000));
        assert_eq!((kernels.due(), kernels.end(Ticks(89), &mut slab)), (Ticks(90), None));
        let (at, tlp) = kernels.end(Ticks(90), &mut slab).unwrap();
        assert_eq!((at, tlp.address, tlp.tag, kernels.told()), (Ticks(97), 0xFEE0_1000, 1, (1, 1)));
        assert_eq!(kernels.due(), Ticks(170), "the second began when the first was over");
        kernels.stop();
        assert_eq!(kernels.due(), Ticks::NEVER);
    }
}
