//! Runtime commands on a board: arming the card, copies by the core, and completions.

use super::Board;
use crate::device::dma_engine::DmaEngine;
use crate::device::kernels::Kernels;
use crate::host::program::Program;
use crate::host::runtime::{CARD, Copied, Parts};
use crate::host::stored_data::stored_bytes;
use crate::index::CardIndex;
use crate::ports::{Port, endpoint_input};
use lanemark_machine::{QueueRequest, RuntimeCopy, Verb};

/// Bytes of host memory copied or filled at a time.
const PIECE: usize = 4096;

impl Board {
    /// Prepares the card for the command of a runtime, `passes` iterations.
    pub(super) fn arm_runtime(
        &mut self,
        request: &QueueRequest,
        number: usize,
        passes: u64,
        first_pass: u64,
        program: Program,
    ) -> Program {
        let card = CardIndex::from(CARD);
        let program = match request {
            QueueRequest::Launch(_) => {
                let notified = self.endpoints.get(card.0).and_then(|card| card.kernels.as_ref()).map(Kernels::notified);
                let Some((channel, done)) = notified else { return program };
                self.callers[card][usize::from(channel)] = number;
                program.with_calls_from(done)
            }
            QueueRequest::Copy(asked) => {
                let Some(parts) = self.parts(asked) else { return program };
                if asked.verb == Verb::Store {
                    self.fill_own(&parts, asked.bytes, first_pass);
                }
                self.fill_cache(&parts.call.transfer);
                let endpoint = self.endpoints.get_mut(card.0);
                let armed =
                    endpoint.and_then(|card| card.arm(self.now, &parts.call, self.mapped_at, passes, first_pass));
                let Some(done) = armed else { return program };
                if let Some(engine) = self.engine_mut(card) {
                    engine.in_parts(0, parts.last);
                }
                self.callers[card][0] = number;
                program.with_calls_from(done)
            }
            QueueRequest::Compute(_) => return program,
        };
        self.pins(CARD).into_iter().fold(program, Program::with_pins)
    }

    /// Returns the transfers of the card for a copy; `None` without a runtime.
    pub(crate) fn parts(&self, asked: &RuntimeCopy) -> Option<Parts> {
        Some(self.program.runtime()?.parts(asked))
    }

    /// Fills the program's buffer before a runtime copies it.
    fn fill_own(&mut self, parts: &Parts, bytes: u64, pass: u64) {
        let mut piece = [0; PIECE];
        for done in (0..bytes).step_by(PIECE) {
            let piece = &mut piece[..(bytes - done).min(PIECE as u64) as usize];
            stored_bytes(self.mapped_at + parts.own_at + done, pass, piece);
            self.memory.write(parts.own_at + done, piece);
        }
    }

    /// Performs the copies of core `number`.
    #[inline]
    pub(super) fn copy_for(&mut self, number: usize) {
        while let Some(copied) = self.cores[number].copies.pop() {
            self.copy(copied);
        }
    }

    #[cold]
    fn copy(&mut self, Copied { from, to, bytes }: Copied) {
        let (from, at) = (from - self.mapped_at, to - self.mapped_at);
        let mut piece = [0; PIECE];
        for done in (0..bytes).step_by(PIECE) {
            let piece = &mut piece[..(bytes - done).min(PIECE as u64) as usize];
            self.memory.read(from + done, piece);
            self.memory.write(at + done, piece);
        }
        self.cache.write_by_core(to, bytes);
    }

    /// Returns the number of completions that an arrived message of a card reports, of a channel or, behind the
    /// channels, of its kernels.
    pub(super) fn done_of(&mut self, card: CardIndex, channel: usize) -> Option<u64> {
        let kernels = self.endpoints.get_mut(card.0)?.kernels.as_mut();
        match kernels.filter(|kernels| usize::from(kernels.notified().0) == channel) {
            Some(kernels) => Some(kernels.notify()),
            None => self.engine(card)?.done(channel),
        }
    }

    /// Reschedules the next end of a kernel of a card.
    #[inline]
    pub(super) fn refresh_kernels(&mut self, card: CardIndex) {
        if let Some(kernels) = &self.endpoints[card].kernels {
            let due = kernels.due();
            self.set(Port::Kernels(card), due);
        }
    }

    /// Ends a kernel of a card.
    #[inline(never)]
    pub(super) fn end_kernel(&mut self, card: CardIndex) {
        let (now, up) = (self.now, self.endpoint_up[card]);
        let channels = self.engine(card).map_or(0, DmaEngine::channels);
        let ended = self.endpoints[card].kernels.as_mut().and_then(|kernels| kernels.end(now, &mut self.slab));
        if let Some((at, tlp)) = ended {
            self.offer(up, endpoint_input::ENGINE + channels, at, tlp);
        }
        self.refresh_kernels(card);
    }

    /// Stops the launched kernels of every card.
    pub(super) fn stop_kernels(&mut self) {
        for card in self.each_card() {
            self.endpoints[card].kernels.iter_mut().for_each(Kernels::stop);
            self.refresh_kernels(card);
        }
    }

    /// Skips `passes` iterations of the runtime commands of core `number`.
    pub(crate) fn leave_out(&mut self, number: usize, passes: u64) {
        self.cores[number].leave_out(passes);
        if let Some(engine) = self.engine_mut(CARD.into()) {
            engine.leave_out(0, passes);
        }
    }
}
