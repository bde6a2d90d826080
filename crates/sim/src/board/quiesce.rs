//! Quiescence: the time from which past events have no effect.

use super::Board;
use crate::iommu::Iommu;
use crate::ports::Port;
use lanemark_units::Ticks;

impl Board {
    /// Quiesces an idle board: sends and delivers the scheduled DLLPs, and advances time until no past request delays
    /// a new one.
    pub fn quiesce(&mut self) {
        if !self.is_idle() {
            return;
        }
        self.fabric.settle_all(self.events.now);
        self.events.now = self.events.now.max(self.quiet_at());
    }

    /// Returns the time from which no past request delays a new one, once every scheduled DLLP has been sent.
    fn quiet_at(&self) -> Ticks {
        let iommu = self.iommu.as_ref().map_or(Ticks::ZERO, Iommu::quiet_at);
        self.fabric.quiet_at().max(self.root_complex.quiet_at()).max(iommu)
    }

    /// Returns when core `number` executes its next instruction, if no other event is due before and the board is
    /// quiescent by then.
    pub(crate) fn alone_until(&mut self, number: usize) -> Option<Ticks> {
        let due = self.cores[number].due();
        self.events.set(Port::Core(number), Ticks::NEVER);
        let is_alone = self.is_idle() && self.fabric.settle_before(self.events.now, due) && self.quiet_at() <= due;
        self.events.set(Port::Core(number), due);
        is_alone.then_some(due)
    }
}
