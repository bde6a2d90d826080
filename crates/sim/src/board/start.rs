//! Start of tasks on cores and of jobs on the DMA engines of cards.

use super::Board;
use crate::device::dma_engine::DmaEngine;
use crate::device::responder;
use crate::host::program::Program;
use crate::index::CardIndex;
use lanemark_machine::{
    EngineJob, Lane, OnChannels, Operation, Partner, QueueRequest, Task, Transfer, Verb, WriteRead,
};
use lanemark_units::Iova;

impl Board {
    /// Starts the task of a lane on its core, `passes` iterations.
    ///
    /// # Panics
    /// When the core reaches an operation that [`SimulatedMachine`](crate::SimulatedMachine) refuses: a copy of
    /// ordinary memory, a clock, a system call, or a mapping.
    pub fn start(&mut self, lane: &Lane, passes: u64, first_pass: u64) {
        let number = lane.core as usize;
        let mut program = self.cores.program(&lane.task, passes, first_pass);
        if let Task::DmaCall(call) = &lane.task {
            self.fill_cache(&call.transfer);
            if let Some(done) = self.endpoints.arm(self.events.now, call, self.memory.address, passes, first_pass) {
                let card = call.transfer.card;
                self.cores.set_caller(card.into(), call.channel as usize, number);
                program = program.with_calls_from(done);
                program = self.failures.pins(self.events.now, card).into_iter().fold(program, Program::with_pins);
            }
        }
        if let Task::Operation(Operation::Handshake(request)) = &lane.task {
            let data = program.bus(request.data.at);
            let (data, status) = (data..data + request.data.len, program.bus(request.status));
            self.endpoints[CardIndex(0)].respond(responder::Spec { data, status, busy: request.busy });
        }
        self.cores.start(&mut self.events, number, program);
    }

    /// Starts a request of core `core` to the runtime, `passes` iterations. Without a runtime, and for kernels that
    /// compute, the core has nothing to do.
    pub fn start_request(&mut self, core: u32, request: &QueueRequest, passes: u64, first_pass: u64) {
        let program = self.cores.program_of(request, passes, first_pass);
        let program = self.arm_runtime(request, core as usize, passes, first_pass, program);
        self.cores.start(&mut self.events, core as usize, program);
    }

    /// Starts a job of a card, `passes` iterations.
    ///
    /// # Errors
    /// As [`Board::start_transfer`]; for writes that are followed by reads also if they are not to host memory.
    pub fn start_job(&mut self, job: &EngineJob, passes: u64, first_pass: u64) -> Result<(), &'static str> {
        match job {
            EngineJob::Transfer(transfer) => self.start_transfer(transfer, passes, first_pass),
            EngineJob::WriteRead(pairs) => self.start_pairs(pairs, passes, first_pass),
            EngineJob::OnChannels(dealt) => self.start_dealt(dealt, passes, first_pass),
        }
    }

    /// Starts the DMA `transfer` of a card, `passes` iterations, beside one of the other direction if there is one.
    ///
    /// # Errors
    /// The reason, if the card or the target does not exist.
    pub fn start_transfer(&mut self, transfer: &Transfer, passes: u64, first_pass: u64) -> Result<(), &'static str> {
        let job = self.endpoints.job(self.memory.address, transfer, passes, first_pass)?;
        self.fill_cache(transfer);
        let channel = self.endpoints.engine(transfer.card.into()).map_or(0, DmaEngine::next_channel);
        self.endpoints
            .start(&mut self.events, transfer.card.into(), channel, |engine, now| engine.start(now, channel, job))
    }

    /// Starts a DMA transfer with offset 0 of its window at an IOVA.
    ///
    /// # Errors
    /// As [`Board::start_transfer`].
    pub fn start_transfer_at(&mut self, transfer: &Transfer, at: Iova, passes: u64) -> Result<(), &'static str> {
        let job = self.endpoints.job_at(at.0, transfer, passes, 0)?;
        self.endpoints.start(&mut self.events, transfer.card.into(), 0, |engine, now| engine.start(now, 0, job))
    }

    /// Starts DMA writes of a card to host memory, each followed by a read, `passes` iterations. A full-duplex engine
    /// does alternating writes and reads as two jobs.
    ///
    /// # Errors
    /// As [`Board::start_transfer`], or if it does not write to host memory.
    pub fn start_pairs(&mut self, pairs: &WriteRead, passes: u64, first_pass: u64) -> Result<(), &'static str> {
        let write = &pairs.write;
        if (write.verb, write.partner) != (Verb::Store, Partner::Host) {
            return Err("the write must be to host memory, which is then read");
        }
        let (card, read) = (CardIndex::from(write.card), pairs.read());
        if pairs.is_mixed && self.endpoints.engine(card).is_some_and(DmaEngine::is_full_duplex) {
            // A posted write completes when it is sent, so the limit of outstanding pairs is that of reads.
            self.start_transfer(&Transfer { outstanding: None, ..*write }, passes, first_pass)?;
            return self.start_transfer(&read, passes, first_pass);
        }
        let job = self.endpoints.job(self.memory.address, write, passes, first_pass)?.with_reads(pairs);
        self.fill_cache(write);
        self.fill_cache(&read);
        self.endpoints.start(&mut self.events, write.card.into(), 0, |engine, now| engine.start(now, 0, job))
    }

    /// Starts DMA transfers on several channels of a card, `passes` iterations.
    ///
    /// # Errors
    /// As [`Board::start_transfer`].
    pub fn start_dealt(&mut self, dealt: &OnChannels, passes: u64, first_pass: u64) -> Result<(), &'static str> {
        if dealt.channels == 1 {
            return self.start_transfer(&dealt.transfer, passes, first_pass);
        }
        let channels = dealt.channels as usize;
        self.fill_cache(&dealt.transfer);
        for channel in 0..channels {
            let job = self
                .endpoints
                .job(self.memory.address, &dealt.transfer, passes, first_pass)?
                .dealt(channel as u64, channels as u64);
            let card = CardIndex::from(dealt.transfer.card);
            self.endpoints.start(&mut self.events, card, channel, |engine, now| engine.start(now, channel, job))?;
        }
        Ok(())
    }
}
