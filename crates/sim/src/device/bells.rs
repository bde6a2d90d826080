//! What the doorbells of a group of transfers start, if one notification reports the end of all.

use crate::host::small_copies::Rings;
use lanemark_units::Ticks;

/// State of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bells {
    rings: Rings,
    /// Whether the second doorbell of a group is the next one.
    is_second: bool,
    /// End of the first kernel, or arrival of the doorbell of the second.
    kernel_at: Ticks,
}

/// Transfers that a doorbell starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Number of transfers.
    pub transfers: u64,
    /// Time from which on they may begin.
    pub from: Ticks,
}

impl Bells {
    /// Creates the state before the first doorbell.
    #[must_use]
    pub const fn new(rings: Rings) -> Bells {
        Bells { rings, is_second: false, kernel_at: Ticks::NEVER }
    }

    /// Receives a doorbell of a group of `count` transfers.
    pub fn ring(&mut self, now: Ticks, count: u64) -> Started {
        let was_second = self.is_second;
        let started = |transfers, from| Started { transfers, from };
        match self.rings {
            Rings::Each => started(1, now),
            Rings::All => started(count, now),
            Rings::Kernel { start, .. } => started(count, now + start),
            Rings::ThenKernel { .. } => {
                (self.is_second, self.kernel_at) = (!was_second, if was_second { now } else { Ticks::NEVER });
                started(if was_second { 0 } else { count }, now)
            }
            Rings::AfterKernel { span } => {
                self.is_second = !was_second;
                if was_second {
                    return started(count, self.kernel_at.max(now));
                }
                self.kernel_at = now + span;
                started(0, now)
            }
        }
    }

    /// Returns when the end of all transfers is notified, if the last of them ended at `ended`.
    #[must_use]
    pub fn notice_at(&self, ended: Ticks) -> Ticks {
        match self.rings {
            Rings::Each | Rings::All | Rings::AfterKernel { .. } => ended,
            Rings::Kernel { end, .. } => ended + end,
            Rings::ThenKernel { .. } if self.kernel_at == Ticks::NEVER => Ticks::NEVER,
            Rings::ThenKernel { span } => ended.max(self.kernel_at) + span,
        }
    }

    /// Returns whether a kernel precedes the transfers.
    #[must_use]
    pub const fn starts_by_kernel(&self) -> bool {
        matches!(self.rings, Rings::Kernel { .. } | Rings::AfterKernel { .. })
    }

    /// Returns whether a kernel follows the transfers.
    #[must_use]
    pub const fn ends_by_kernel(&self) -> bool {
        matches!(self.rings, Rings::Kernel { .. } | Rings::ThenKernel { .. })
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl lanemark_engine::Visitor) {
        let Bells { rings: _, is_second, kernel_at } = self;
        view.flag(*is_second);
        view.time(kernel_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(rings: Rings) -> (Bells, [(u64, u64); 2]) {
        let mut bells = Bells::new(rings);
        let both = [10, 20].map(|now| {
            let Started { transfers, from } = bells.ring(Ticks(now), 7);
            (transfers, from.0)
        });
        (bells, both)
    }

    #[test]
    fn a_doorbell_starts_one_transfer_or_all() {
        assert_eq!(rung(Rings::Each).1, [(1, 10), (1, 20)]);
        assert_eq!(rung(Rings::All).1, [(7, 10), (7, 20)]);
        let (bells, both) = rung(Rings::Kernel { start: Ticks(3), end: Ticks(4) });
        assert_eq!((both, bells.notice_at(Ticks(50))), ([(7, 13), (7, 23)], Ticks(54)));
    }

    #[test]
    fn a_kernel_waits_for_the_transfers_and_for_its_doorbell() {
        let rings = Rings::ThenKernel { span: Ticks(5) };
        let mut bells = Bells::new(rings);
        assert_eq!(bells.ring(Ticks(10), 7), Started { transfers: 7, from: Ticks(10) });
        assert_eq!(bells.notice_at(Ticks(12)), Ticks::NEVER);
        assert_eq!(bells.ring(Ticks(20), 7).transfers, 0);
        assert_eq!([12, 40].map(|ended| bells.notice_at(Ticks(ended))), [Ticks(25), Ticks(45)]);
    }

    #[test]
    fn transfers_wait_for_the_kernel_before_them_and_for_their_doorbell() {
        let both = |span| rung(Rings::AfterKernel { span: Ticks(span) }).1;
        assert_eq!((both(5), both(50)), ([(0, 10), (7, 20)], [(0, 10), (7, 60)]));
    }
}
