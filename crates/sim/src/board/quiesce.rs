//! When nothing of what happened on a board is felt any more.

use super::Board;
use crate::index::DirectionIndex;
use crate::iommu::Iommu;
use lanemark_units::Ticks;

impl Board {
    /// On an idle board: lets the acknowledgments and credits go that nobody waits for, and come; and time pass until nothing that
    /// was taken keeps a request waiting.
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

    /// Since when nothing that was taken keeps a request waiting, once all that is owed has gone.
    fn quiet_at(&self) -> Ticks {
        let links = self.directions.iter().map(|direction| direction.transmitter.quiet_at());
        let roots = self.roots.iter().map(|root| root.port.quiet_at());
        let others = self.ingress.quiet_at().max(self.iommu.as_ref().map_or(Ticks::ZERO, Iommu::quiet_at));
        links.chain(roots).fold(others, Ticks::max)
    }

    /// When core `number` executes its next instruction, if nothing else happens on the board before, and nothing of what happened
    /// is felt then: what is owed has gone, of itself, and come, and nothing keeps a request waiting.
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
