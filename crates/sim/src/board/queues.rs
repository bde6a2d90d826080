//! How a board lets bytes pass the queues of cards.

use super::Board;
use crate::device::dma_engine::DmaEngine;
use crate::device::interconnect::Interconnect;
use crate::index::CardIndex;
use crate::ports::Port;

impl Board {
    /// Bytes of a card go from queue to queue.
    #[inline(never)]
    pub(super) fn carry(&mut self, card: CardIndex) {
        let now = self.now;
        if let Some(queues) = self.endpoints[card].dma.as_mut().and_then(|engine| engine.queues.as_mut()) {
            queues.carry(now);
        }
        self.refresh_queues(card);
    }

    /// A card's engine did something: it is looked at again, and its queues are, if it has any.
    #[inline]
    pub(super) fn refresh_engine(&mut self, card: CardIndex) {
        // A queue that is joined to no other one matters only to what passes it.
        if self.engine(card).is_some_and(DmaEngine::joins_queues) {
            self.refresh_queues(card);
        } else {
            self.refresh_issue(card);
        }
    }

    /// When a card's engine makes its next request is looked at again: what it waited for was due before.
    #[inline]
    pub(super) fn refresh_issue(&mut self, card: CardIndex) {
        let Some(engine) = &mut self.endpoints[card].dma else { return };
        let due = engine.due().max(self.now);
        self.set(Port::Issue(card), due);
    }

    /// Something came into a queue of a card or left one: what waits for that is looked at again.
    #[inline]
    pub(super) fn refresh_queues(&mut self, card: CardIndex) {
        let endpoint = &mut self.endpoints[card];
        let Some(engine) = &mut endpoint.dma else { return };
        let Some(carry) = engine.queues.as_ref().map(Interconnect::due) else { return };
        let (issue, data) = (engine.due(), engine.data_due());
        let accept = endpoint.accept_due();
        self.set(Port::Carry(card), carry);
        for (port, due) in [(Port::Issue(card), issue), (Port::Data(card), data), (Port::Accept(card), accept)] {
            // What waited for room or for bytes was due before.
            self.set(port, due.max(self.now));
        }
    }
}
