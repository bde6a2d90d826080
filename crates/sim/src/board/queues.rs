//! The queues of cards on a board.

use super::Board;
use crate::device::dma_engine::DmaEngine;
use crate::device::interconnect::Interconnect;
use crate::index::CardIndex;
use crate::ports::Port;

impl Board {
    /// Moves bytes between the queues of a card.
    #[inline(never)]
    pub(super) fn carry(&mut self, card: CardIndex) {
        let now = self.now;
        if let Some(queues) = self.endpoints[card].dma.as_mut().and_then(|engine| engine.queues.as_mut()) {
            queues.carry(now);
        }
        self.refresh_queues(card);
    }

    /// Reschedules a card's engine and its connected queues after an activity of the engine.
    #[inline]
    pub(super) fn refresh_engine(&mut self, card: CardIndex) {
        // A queue without connections affects only the TLPs that pass it.
        if self.engine(card).is_some_and(DmaEngine::joins_queues) {
            self.refresh_queues(card);
        } else {
            self.refresh_issue(card);
        }
    }

    /// Reschedules the next request of a card's engine, whose stall has ended.
    #[inline]
    pub(super) fn refresh_issue(&mut self, card: CardIndex) {
        let Some(engine) = &mut self.endpoints[card].dma else { return };
        let due = engine.due().max(self.now);
        self.set(Port::Issue(card), due);
    }

    /// Reschedules what waits for a queue of a card after its content has changed.
    #[inline]
    pub(super) fn refresh_queues(&mut self, card: CardIndex) {
        let endpoint = &mut self.endpoints[card];
        let Some(engine) = &mut endpoint.dma else { return };
        let Some(carry) = engine.queues.as_ref().map(Interconnect::due) else { return };
        let (issue, data) = (engine.due(), engine.data_due());
        let accept = endpoint.accept_due();
        self.set(Port::Carry(card), carry);
        for (port, due) in [(Port::Issue(card), issue), (Port::Data(card), data), (Port::Accept(card), accept)] {
            // A stall for space or bytes may have ended in the past.
            self.set(port, due.max(self.now));
        }
    }
}
