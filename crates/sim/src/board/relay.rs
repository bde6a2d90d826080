//! Relays between the cards of a board.

use super::Board;
use crate::device::interconnect::Mode;
use crate::index::CardIndex;
use lanemark_machine::Relay;

/// The writing channel of each card; the first card reads on its next one, or on that of the second direction.
const WRITING: usize = 0;

impl Board {
    /// Starts a relay through cards, `passes` iterations.
    ///
    /// # Errors
    /// The reason, if a card, engine or queue does not exist.
    pub fn start_relay(&mut self, relay: &Relay, passes: u64, first_pass: u64) -> Result<(), &'static str> {
        let transfers = relay.transfers();
        let (reads, writes) = transfers.split_first().ok_or("it has no cards")?;
        let last = writes.len() - 1;
        for (place, writes) in writes.iter().enumerate() {
            let card = CardIndex::from(writes.card);
            let mode = if last > 0 && (place == 0 || place == last) { Mode::Chain } else { Mode::Loopback };
            let is_whole = relay.is_stored && place == last;
            let engine = self.endpoints.engine_mut(card).ok_or("its card has no DMA engine")?;
            // The engine waits for a full TLP, or for a whole transfer.
            let few_bytes =
                u64::from(engine.request_limits().write.most_bytes).max(if is_whole { relay.bytes } else { 0 });
            engine.queues.as_mut().ok_or("its card has no queues")?.join(mode, few_bytes);
            let job = self.endpoints.job(self.memory.address, writes, passes, first_pass)?;
            self.endpoints.start(&mut self.events, card, WRITING, |engine, now| {
                if is_whole { engine.start_whole(now, WRITING, job) } else { engine.start(now, WRITING, job) }
            })?;
        }
        let job = self.endpoints.job(self.memory.address, reads, passes, first_pass)?;
        writes.iter().chain([reads]).for_each(|transfer| self.fill_cache(transfer));
        let first = CardIndex::from(reads.card);
        let reading = self.endpoints.engine(first).ok_or("its card has no DMA engine")?.reading_channel();
        self.endpoints.start(&mut self.events, first, reading, |engine, now| engine.start(now, reading, job))
    }

    /// Disconnects the queues.
    pub fn end_relay(&mut self, relay: &Relay) {
        for card in &relay.cards {
            if let Some(queues) = self.endpoints.engine_mut((*card).into()).and_then(|engine| engine.queues.as_mut()) {
                queues.join(Mode::Straight, 0);
                self.endpoints.refresh_queues(&mut self.events, (*card).into());
            }
        }
    }
}
