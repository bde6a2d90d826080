//! Plans in which cards relay data.

use super::SimulatedMachine;
use super::facts::{RELAY_CHANNELS, can_relay};
use super::flows::BytesBefore;
use super::waits::{MOST_PASSES, Waits};
use crate::device::dma_engine::DmaEngine;
use crate::host::stored_data::stored_bytes;
use lanemark_machine::{Cause, Confirmed, MachineError, Plan, Relay, Sample, Steady, Unsteady, Unsupported};

impl SimulatedMachine {
    pub(super) fn check_relay(&self, relay: &Relay) -> Result<(), Unsupported> {
        let refused = |because: String| Err(self.unsupported("a relay by cards", because));
        let Some(fifos) = &self.platform.fifos else {
            return refused("its platform file has no section [fifos]: its cards have no queues".to_owned());
        };
        if !self.platform.dma.as_ref().is_some_and(can_relay) {
            let channels = self.facts.dma.map_or(0, |dma| dma.channels);
            return refused(format!(
                "the first card reads and writes concurrently, which needs {RELAY_CHANNELS} channels or dma.full_duplex; dma.channels is {channels}"
            ));
        }
        relay.transfers().iter().try_for_each(|transfer| self.check_transfer(transfer))?;
        let (bytes, window) = (relay.bytes, &relay.at_peers);
        let region = self.platform.region_at(relay.bar, window.offset, window.len.max(bytes));
        if relay.cards.len() > 1 && region.is_none_or(|region| region.name != fifos.ep_rx) {
            return refused(format!("cards receive peer writes through region {}", fifos.ep_rx));
        }
        let tx_bytes = fifos.tx_bytes.value;
        if relay.is_stored && relay.bytes > tx_bytes {
            return refused(format!("{} B must fit into a queue of {tx_bytes} B (fifos.tx_bytes)", relay.bytes));
        }
        Ok(())
    }

    /// Relays the host data through the cards, `passes` iterations.
    pub(super) fn run_relay(
        &mut self,
        plan: &Plan,
        relay: &Relay,
        passes: u64,
    ) -> Result<(Sample, Waits), MachineError> {
        let transfers = relay.transfers();
        let [reads, .., writes] = transfers.as_slice() else {
            return Err(self.unsupported("a relay by cards", "it has no cards").into());
        };
        let start = self.board.now();
        let mut fresh = vec![0; relay.bytes as usize];
        for nth in 0..relay.from.places(relay.bytes).min(relay.count) {
            let offset = relay.from.place(nth, relay.bytes);
            stored_bytes(self.board.mapped_at() + offset, self.passes_done, &mut fresh);
            self.board.memory_mut().write(offset, &fresh);
        }
        let before = self.board.moved(writes).0;
        let before_all = BytesBefore::of(plan, &self.board);
        self.board
            .start_relay(relay, passes, self.passes_done)
            .map_err(|because| self.unsupported("a relay by cards", because))?;
        self.passes_done += passes.min(MOST_PASSES);
        let mut stop = self.stop();
        let mut is_over = false;
        let all_arrived = self.board.run_while(start + plan.timeout, |board| {
            board.bound_path(Some(writes));
            is_over = stop();
            !board.is_idle() && !is_over && !board.has_failed()
        });
        if is_over {
            return Err(MachineError::Interrupted { machine: self.facts.name.clone() });
        }
        self.failure(plan, passes, &before_all)?;
        let engines = || relay.cards.iter().filter_map(|card| self.board.engine((*card).into()));
        if !all_arrived || !engines().all(DmaEngine::is_done) {
            let waiting_for = engines().find_map(DmaEngine::waiting_for);
            return Err(self.timeout(plan, waiting_for.or(Some(Cause::Transit))));
        }
        let (moved, ended) = self.board.moved(writes);
        let (at, milestone) = self.board.last_moved(writes);
        self.path = self.board.path(milestone, at);
        let wanted = relay.bytes_per_pass().saturating_mul(passes);
        if moved - before != wanted {
            let what = format!("{}: {} of {wanted} bytes came back to host memory", self.facts.name, moved - before);
            return Err(MachineError::Device { machine: self.facts.name.clone(), what });
        }
        let (issued_at, waits) = self
            .board
            .engine(reads.card.into())
            .map_or((start, Waits::default()), |first| (first.issued_at(), first.waits));
        self.board.end_relay(relay);
        let made = transfers.len() as u64 * relay.count.saturating_mul(passes);
        let because = Some(if self.skips { Unsteady::Relayed } else { Unsteady::Unwanted });
        self.steady.get_or_insert_default().add(Steady { transfers: made, because, ..Steady::default() });
        self.board.run_until(ended);
        Ok((Sample { issue: issued_at.since(start), delivered: ended.since(start) }, waits))
    }

    /// Compares the returned data with the data read.
    pub(super) fn confirm_relay(&mut self, relay: &Relay) -> Confirmed {
        let mut confirmed = Confirmed { claimed_bytes: 0, confirmed_bytes: 0 };
        let (mut found, mut meant) = (vec![0; relay.bytes as usize], vec![0; relay.bytes as usize]);
        for nth in 0..relay.to.places(relay.bytes).min(relay.count) {
            let memory = self.board.memory_mut();
            memory.read(relay.to.place(nth, relay.bytes), &mut found);
            memory.read(relay.from.place(nth, relay.bytes), &mut meant);
            confirmed.claimed_bytes += relay.bytes;
            confirmed.confirmed_bytes +=
                found.iter().zip(&meant).filter(|(found, meant)| found == meant).count() as u64;
        }
        confirmed
    }
}
