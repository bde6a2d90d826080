//! Runtime commands on a board: preparing the card, and skipping iterations.

use super::Board;
use crate::device::dma_engine::DmaEngine;
use crate::device::kernels::Kernels;
use crate::host::program::Program;
use crate::host::runtime::{CARD, Parts};
use crate::host::small_copies::Group;
use crate::index::CardIndex;
use crate::ports::endpoint_input;
use lanemark_machine::{QueueRequest, RuntimeCopy, SmallCopies, Verb};
use lanemark_units::Ticks;

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
                let notified = self.endpoints.get(card).and_then(|card| card.kernels.as_ref()).map(Kernels::notified);
                let Some((channel, done)) = notified else { return program };
                self.cores.set_caller(card, usize::from(channel), number);
                program.with_calls_from(done)
            }
            QueueRequest::Copy(asked) => {
                let Some(parts) = self.cores.parts(asked) else { return program };
                if asked.verb == Verb::Store {
                    self.memory.fill(parts.own_at, asked.bytes, first_pass);
                }
                self.fill_cache(&parts.call.transfer);
                let (now, memory_at) = (self.events.now, self.memory.address);
                let Some(done) = self.endpoints.arm(now, &parts.call, memory_at, passes, first_pass) else {
                    return program;
                };
                if let Some(engine) = self.endpoints.engine_mut(card) {
                    engine.in_parts(0, parts.last);
                }
                self.cores.set_caller(card, 0, number);
                program.with_calls_from(done)
            }
            QueueRequest::SmallCopies(asked) => {
                let Some(group) = self.cores.group(asked) else { return program };
                if asked.verb == Verb::Store {
                    (0..u64::from(asked.count))
                        .for_each(|nth| self.memory.fill(group.place(nth), asked.bytes, first_pass));
                }
                self.fill_cache(&group.call.transfer);
                let (now, memory_at) = (self.events.now, self.memory.address);
                let Some(done) = self.endpoints.arm(now, &group.call, memory_at, passes, first_pass) else {
                    return program;
                };
                if let Some(engine) = self.endpoints.engine_mut(card) {
                    engine.in_group(0, group.rings);
                }
                self.cores.set_caller(card, 0, number);
                program.with_calls_from(done)
            }
            QueueRequest::Compute(_) => return program,
        };
        self.failures.pins(self.events.now, CARD).into_iter().fold(program, Program::with_pins)
    }

    /// Returns the transfers of the card for a copy; `None` without a runtime.
    pub(crate) fn parts(&self, asked: &RuntimeCopy) -> Option<Parts> {
        self.cores.parts(asked)
    }

    /// Returns the transfers of the card for many pieces; `None` without a runtime or a DMA engine.
    pub(crate) fn group(&self, asked: &SmallCopies) -> Option<Group> {
        self.cores.group(asked)
    }

    /// Ends a kernel of a card.
    #[inline(never)]
    pub(super) fn end_kernel(&mut self, card: CardIndex) {
        let (now, up) = (self.events.now, self.fabric.up_from(card));
        let channels = self.endpoints.engine(card).map_or(0, DmaEngine::channels);
        let ended = self.endpoints[card]
            .kernels
            .as_mut()
            .and_then(|kernels| kernels.end(now, &mut self.slab, &mut self.events.path));
        if let Some((at, tlp)) = ended {
            self.fabric.offer(&mut self.events, up, endpoint_input::ENGINE + channels, at, tlp);
        }
        self.endpoints.refresh_kernels(&mut self.events, card);
    }

    /// Skips `passes` iterations of the runtime commands of core `number`; an iteration takes `span`. The time of the
    /// board stays the same.
    pub(crate) fn leave_out(&mut self, number: usize, passes: u64, span: Ticks) {
        self.events.path.skip(self.events.now, span, passes, Ticks::ZERO);
        self.cores[number].leave_out(passes);
        if let Some(engine) = self.endpoints.engine_mut(CARD.into()) {
            engine.leave_out(0, passes);
        }
    }
}
