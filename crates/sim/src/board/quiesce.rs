//! Quiescence: the time from which past events have no effect.

use super::Board;
use crate::index::DirectionIndex;
use crate::iommu::Iommu;
use lanemark_units::Ticks;

impl Board {
    /// Quiesces an idle board: sends and delivers the scheduled DLLPs, and advances time until no past request delays
    /// a new one.
    pub fn quiesce(&mut self) {
        if !self.is_idle() {
            return;
        }
        for direction in DirectionIndex::all(self.directions.len()) {
            self.directions[direction].transmitter.settle_all();
            self.hear(direction.opposite());
        }
        self.now = self.now.max(self.quiet_at());
    }

    /// Returns the time from which no past request delays a new one, once every scheduled DLLP has been sent.
    fn quiet_at(&self) -> Ticks {
        let links = self.directions.iter().map(|direction| direction.transmitter.quiet_at());
        let roots = self.roots.iter().map(|root| root.port.quiet_at());
        let others = self.ingress.quiet_at().max(self.iommu.as_ref().map_or(Ticks::ZERO, Iommu::quiet_at));
        links.chain(roots).fold(others, Ticks::max)
    }

    /// Returns when core `number` executes its next instruction, if no other event is due before and the board is
    /// quiescent by then.
    pub(crate) fn alone_until(&mut self, number: usize) -> Option<Ticks> {
        let due = self.cores[number].due();
        self.schedule.set(number, Ticks::NEVER);
        let is_alone = self.is_idle() && self.settles_before(due);
        self.schedule.set(number, due);
        is_alone.then_some(due)
    }

    fn settles_before(&mut self, due: Ticks) -> bool {
        for direction in DirectionIndex::all(self.directions.len()) {
            if !self.directions[direction].transmitter.settle_before(due) {
                return false;
            }
            self.hear(direction.opposite());
        }
        self.quiet_at() <= due
    }
}
