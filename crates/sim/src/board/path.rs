//! The critical path of a sample on a board, with the names of its places.

use super::Board;
use crate::critical_path::{Milestone, Place, PlaceKind, Share, Shares};
use crate::index::CardIndex;
use lanemark_device_kernels::KernelPath;
use lanemark_machine::{Cause, PathShare, Transfer};
use lanemark_units::Ticks;

impl Board {
    /// Leaves out the critical path of all samples.
    pub(crate) fn leave_out_path(&mut self) {
        self.events.path.leave_out();
    }

    /// Returns whether the critical path is recorded.
    pub(crate) fn records_path(&self) -> bool {
        self.events.path.is_on()
    }

    /// Begins the critical path of a sample.
    pub(crate) fn begin_path(&mut self) {
        self.events.path.begin(self.events.now);
    }

    /// Ends the recording of milestones.
    pub(crate) fn end_path(&mut self) {
        self.events.path.end();
    }

    /// Bounds the memory of the critical path, which is that of this transfer.
    #[inline]
    pub(crate) fn bound_path(&mut self, transfer: Option<&Transfer>) {
        if self.events.path.is_long() {
            let milestone = transfer.map_or_else(|| self.events.path.latest(), |transfer| self.last_moved(transfer).1);
            self.events.path.sum_up(milestone);
        }
    }

    /// Bounds the memory of the critical path, which is that of a core.
    #[inline]
    pub(crate) fn bound_path_of_core(&mut self, number: usize) {
        if self.events.path.is_long() {
            let milestone = self.cores[number].milestone();
            self.events.path.sum_up(milestone);
        }
    }

    /// Returns the critical path that ends at `at` with `milestone`; the time after it is a latency of memory.
    pub(crate) fn path(&mut self, milestone: Milestone, at: Ticks) -> Vec<PathShare> {
        let end = self.events.path.add(milestone, at, Place::MEMORY, Cause::Transit);
        self.named(&self.events.path.shares(end, at))
    }

    /// Returns the critical path of a core that ended its program at `at`.
    pub(crate) fn path_of_core(&mut self, number: usize, at: Ticks) -> Vec<PathShare> {
        let milestone = self.cores[number].ended(at, &mut self.events.path);
        self.path(milestone, at)
    }

    /// Returns the critical path of the last store that the first card accepted.
    pub(crate) fn path_of_stores(&mut self) -> Vec<PathShare> {
        let card = &self.endpoints[CardIndex::FIRST];
        let (milestone, at) = (card.last_milestone, card.last_accepted);
        self.path(milestone, at)
    }

    /// Returns the critical path of kernels on the first card, which do their work `times` times.
    pub(crate) fn path_of_kernels(&self, path: &KernelPath, times: u64) -> Vec<PathShare> {
        let KernelPath { port, interval, additions, unit_words, latency } = *path;
        let spent = [
            (Cause::MemoryPort, false, port),
            (Cause::InitiationInterval, false, interval),
            (Cause::Additions, false, additions),
            (Cause::OutstandingWords, true, unit_words),
            (Cause::Transit, true, latency),
        ];
        let mut shares = Shares::default();
        for (cause, is_latency, span) in spent {
            shares.add(Share { place: Place::card(CardIndex::FIRST), cause, is_latency, span: span * times });
        }
        self.named(&shares)
    }

    fn named(&self, shares: &Shares) -> Vec<PathShare> {
        let name = |share: &Share| PathShare {
            place: self.name_of(share.place),
            cause: share.cause,
            is_latency: share.is_latency,
            span: share.span,
        };
        shares.0.iter().map(name).collect()
    }

    /// Returns the name of a place.
    pub(crate) fn name_of(&self, place: Place) -> String {
        let named = |name: &str, card: CardIndex| {
            if self.endpoints.len() > 1 { format!("{name} {}", card.0) } else { name.to_owned() }
        };
        match place.kind() {
            PlaceKind::RootComplex => "root complex".to_owned(),
            PlaceKind::Memory => "memory".to_owned(),
            PlaceKind::Iommu => "IOMMU".to_owned(),
            PlaceKind::Core(number) => format!("core {number}"),
            PlaceKind::Link(direction) => {
                let link = self.fabric.link_names().get(direction.0 / 2).copied().unwrap_or("link");
                format!("{link} {}", if direction.is_downstream() { "down" } else { "up" })
            }
            PlaceKind::Engine(card) => named("DMA engine", card),
            PlaceKind::Card(card) => named("card", card),
        }
    }
}
