//! Plans on a board whose card is compiled from its source.
//!
//! Cores, caches, root complex and link are simulated as on any board. DMA is started by the register port beside the link:
//! it stores the registers of the device file, and loads the one that shows the end. A sample begins when the card has
//! taken the first command, as one of a simulated engine begins with its start. Between two transfers it includes the
//! accesses to registers, unless the plan has one transfer at a time: then it is the sum of their times. Where a core
//! requests the DMA, it accesses the same registers through the link.

mod confirmed;
mod refused;

use super::SimulatedMachine;
use super::flows::BytesBefore;
use super::waits::{MOST_PASSES, Waits};
use crate::board::Board;
use crate::device::compiled_card::CompiledCard;
use crate::error::BoardError;
use crate::host::stored_data::stored_bytes;
use lanemark_devices::{Direction, Engine, Interrupt};
use lanemark_machine::{
    Access, Cause, Completion, DmaFacts, EngineJob, Lane, MachineError, Plan, Sample, Span, Step, Stream, Task,
    Transfer, Verb, Width,
};
use lanemark_platform::{Driver, Platform};
use lanemark_units::{BarOffset, MemoryType, Ticks};
use std::sync::atomic::Ordering;

/// One transfer of the engine.
#[derive(Clone, Copy, Debug)]
struct Job {
    verb: Verb,
    /// Bus address in host memory.
    at: u64,
    bytes: u64,
}

/// A core that requests transfers.
struct Caller {
    core: u32,
    /// Its stalls so far.
    waits: Waits,
    /// Time by which the current transfer must end.
    deadline: Ticks,
}

impl Job {
    /// The registers of an engine and their values, in the order of the stores; the last one starts the transfer.
    fn registers(self, engine: &Engine, has_interrupt: bool) -> impl Iterator<Item = (u64, u64)> + use<> {
        let direction = if self.verb == Verb::Load { Direction::ToDevice } else { Direction::ToHost };
        let all = engine.stores(direction, (self.at, engine.limits.memory_start), self.bytes, has_interrupt);
        all.into_iter().filter_map(|(register, value)| Some((register?, value)))
    }
}

impl SimulatedMachine {
    /// Builds the board of a platform with a compiled card in place of the platform's card.
    ///
    /// The host, the link and the hard block (`endpoint.ingress_ns`, `endpoint.egress_ns`, `dma.send_buffers`) are those of
    /// the platform; what is behind the hard block is the card.
    ///
    /// # Errors
    /// [`BoardError`], as [`Board::new`], and if the platform has what only a simulated card has, or lacks what the device
    /// file of the card names.
    pub fn of_compiled(platform: &Platform, card: CompiledCard) -> Result<SimulatedMachine, BoardError> {
        if let Some(because) = refused::platform(platform, &card) {
            return Err(BoardError { platform: platform.name.clone(), because });
        }
        let mut machine = SimulatedMachine::new(platform)?.in_detail();
        let page_bytes = machine.facts.dma.and_then(|dma| dma.page_bytes);
        machine.facts.dma = card
            .engine()
            .map(|_| DmaFacts { page_bytes, ..DmaFacts::of_register_engine(platform.bytes_for_plans(), 4096) });
        machine.facts.runtime = None;
        machine.board.attach(card, platform);
        Ok(machine)
    }

    pub(super) fn is_compiled(&self) -> bool {
        self.board.compiled().is_some()
    }

    fn engine(&self) -> Option<Engine> {
        self.board.compiled().and_then(CompiledCard::engine).copied()
    }

    /// The transfers of a plan with DMA by the compiled card.
    pub(super) fn transfer_of(&self, plan: &Plan) -> Option<Transfer> {
        if !self.is_compiled() {
            return None;
        }
        match (plan.work.jobs(), plan.work.lanes()) {
            ([EngineJob::Transfer(transfer)], _) => Some(*transfer),
            (_, [Lane { task: Task::DmaCall(call), .. }]) => Some(call.transfer),
            _ => None,
        }
    }

    /// The engine of the card and the transfers of a plan.
    fn asked_of(&self, plan: &Plan) -> Result<(Engine, Transfer), MachineError> {
        let asked = self.engine().zip(self.transfer_of(plan));
        asked.ok_or_else(|| self.unsupported("this DMA", "no device file describes the engine").into())
    }

    /// Before a sample: gives the card bytes by a read. Those of writes are then cleared in host memory; those of reads
    /// differ from the bytes that will be read. They are others in each sample.
    pub(super) fn prepare_compiled(&mut self, plan: &Plan) -> Result<(), MachineError> {
        let Some(transfer) = self.transfer_of(plan) else { return Ok(()) };
        let Transfer { verb, bytes, window, .. } = transfer;
        self.written += 1;
        let place = window.place(0, bytes);
        let mut data = vec![0; bytes as usize];
        stored_bytes(0, self.written, &mut data);
        self.board.memory_mut().write(place, &data);
        let at = self.board.mapped_at() + place;
        self.transfer_once(plan, Job { verb: Verb::Load, at, bytes })?;
        let (from, to) = self.last_of(&transfer, plan.warmup_passes + plan.passes);
        for nth in from..to {
            let place = window.place(nth, bytes);
            match verb {
                Verb::Load => stored_bytes(self.board.mapped_at() + place, self.written, &mut data),
                Verb::Store => data.fill(0),
            }
            self.board.memory_mut().write(place, &data);
        }
        Ok(())
    }

    /// Numbers of the last transfers, at most one for each place of the window, after `passes` more iterations.
    fn last_of(&self, transfer: &Transfer, passes: u64) -> (u64, u64) {
        let Transfer { bytes, count, window, .. } = *transfer;
        let end = (self.passes_done.saturating_add(passes)).saturating_mul(count);
        (end.saturating_sub(count.min(window.places(bytes))), end)
    }

    /// Makes a transfer that is not timed.
    fn transfer_once(&mut self, plan: &Plan, job: Job) -> Result<(), MachineError> {
        let (engine, _) = self.asked_of(plan)?;
        let before = BytesBefore::of(plan, &self.board);
        let deadline = self.board.now() + plan.timeout;
        self.transfer(plan, job, self.deadline_of(&engine, deadline))?;
        self.failure(plan, 1, &before)?;
        self.settle(plan, deadline)?;
        self.failure(plan, 1, &before)
    }

    /// Runs the board until it is idle, at most as long as a transfer may take: a card that sends without end is never idle.
    fn settle(&mut self, plan: &Plan, deadline: Ticks) -> Result<(), MachineError> {
        let (engine, _) = self.asked_of(plan)?;
        let deadline = self.deadline_of(&engine, deadline);
        let mut stop = self.stop();
        let mut is_over = false;
        let is_idle = self.board.run_while(deadline, |board| {
            is_over = stop();
            !is_over && !board.is_idle() && !board.has_failed()
        });
        self.check_interrupted(is_over)?;
        self.check_design()?;
        if is_idle { Ok(()) } else { Err(self.timeout(plan, Some(Cause::Transit))) }
    }

    /// Fails if the run is over, or was interrupted.
    fn check_interrupted(&self, is_over: bool) -> Result<(), MachineError> {
        let is_set = self.interrupted.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
        if is_over || is_set { Err(MachineError::Interrupted { machine: self.facts.name.clone() }) } else { Ok(()) }
    }

    /// Time by which a transfer that begins now must end: the device file says how long it may take.
    fn deadline_of(&self, engine: &Engine, all: Ticks) -> Ticks {
        all.min(self.board.now() + longest(engine))
    }

    /// Longest time of a sample with DMA by the compiled card; zero for other work.
    pub(super) fn slowest_compiled(&self, plan: &Plan) -> Ticks {
        let Ok((engine, transfer)) = self.asked_of(plan) else { return Ticks::ZERO };
        let transfers = plan.passes.max(plan.warmup_passes).saturating_mul(transfer.count);
        // Far below the largest time, to which others are added.
        Ticks(longest(&engine).0.saturating_mul(transfers).min(u64::MAX >> 4))
    }

    /// Runs transfers one by one.
    pub(super) fn run_compiled(
        &mut self,
        plan: &Plan,
        jobs: &[EngineJob],
        passes: u64,
    ) -> Result<(Sample, Waits), MachineError> {
        let (engine, transfer) = self.asked_of(plan)?;
        debug_assert_eq!(jobs.len(), 1, "others are refused");
        let Transfer { verb, bytes, count, window, outstanding, .. } = transfer;
        let before_all = BytesBefore::of(plan, &self.board);
        let (base, first) = (self.board.mapped_at(), self.passes_done.saturating_mul(count));
        self.passes_done += passes.min(MOST_PASSES);
        let deadline = self.board.now() + plan.timeout;
        self.board.fill_cache(&transfer);
        let moved_before = self.board.moved(&transfer).0;
        let (mut start, mut between, mut last) = (None, Ticks::ZERO, None);
        let total = passes.saturating_mul(count);
        for nth in 0..total {
            let job = Job { verb, at: base + window.place(first + nth, bytes), bytes };
            let begun = self.transfer(plan, job, self.deadline_of(&engine, deadline))?;
            start.get_or_insert(begun);
            if outstanding == Some(1) {
                self.settle(plan, deadline)?;
                between += last.map_or(Ticks::ZERO, |last| begun.since(last));
                last = Some(self.board.moved(&transfer).1);
            }
            self.board.bound_path(Some(&transfer));
            self.failure(plan, passes, &before_all)?;
        }
        let start = start.unwrap_or(deadline);
        self.settle(plan, deadline)?;
        self.failure(plan, passes, &before_all)?;
        self.check_arrived(&transfer, moved_before, total)?;
        let issue = self.board.compiled().map_or(start, |card| card.requested_at).since(start + between);
        let (ended, milestone) = self.board.last_moved(&transfer);
        // The path of a sum of times would contain what is between them.
        self.path = if last.is_some() { Vec::new() } else { self.board.path(milestone, ended) };
        self.board.run_until(ended);
        Ok((Sample { issue, delivered: ended.since(start + between) }, [Ticks::ZERO; Cause::ALL.len()]))
    }

    /// Runs transfers that a core requests: it stores the registers through the link, and loads the one that shows the end
    /// until it does, or waits for the interrupt.
    pub(super) fn run_called(&mut self, plan: &Plan, passes: u64) -> Result<(Sample, Waits), MachineError> {
        let (engine, transfer) = self.asked_of(plan)?;
        let by = plan.work.dma_calls().next().map_or(Completion::Register, |call| call.completion);
        let Transfer { verb, bytes, count, window, .. } = transfer;
        let before_all = BytesBefore::of(plan, &self.board);
        let (base, first) = (self.board.mapped_at(), self.passes_done.saturating_mul(count));
        let total = passes.saturating_mul(count);
        self.passes_done += passes.min(MOST_PASSES);
        self.board.fill_cache(&transfer);
        let moved_before = self.board.moved(&transfer).0;
        let start = self.board.now();
        let deadline = start + plan.timeout;
        let core = plan.work.lanes().first().map_or(0, |lane| lane.core);
        let mut caller = Caller { core, waits: [Ticks::ZERO; Cause::ALL.len()], deadline };
        for nth in 0..total {
            let job = Job { verb, at: base + window.place(first + nth, bytes), bytes };
            let values = job.registers(&engine, by == Completion::Interrupt);
            let stores = self.stores(engine.bar, engine.register_bytes, values);
            if let Some(card) = self.board.compiled_mut() {
                card.interrupts_at = None;
            }
            let crossed = crossed(&self.board, verb) + bytes;
            caller.deadline = self.deadline_of(&engine, deadline);
            self.run_steps(plan, &mut caller, stores)?;
            if by == Completion::Interrupt {
                self.await_interrupt(plan, &mut caller, moved_before + (nth + 1) * bytes)?;
            } else {
                self.poll_by_core(plan, &mut caller, &engine)?;
            }
            self.failure(plan, passes, &before_all)?;
            if self::crossed(&self.board, verb) < crossed {
                return Err(self.broken("the device shows the end of a transfer before its bytes are moved"));
            }
        }
        let stamped = self.board.core(core as usize).stamped_at();
        let ended = if by == Completion::Interrupt { self.board.now() } else { stamped };
        self.settle(plan, deadline)?;
        self.failure(plan, passes, &before_all)?;
        self.check_arrived(&transfer, moved_before, total)?;
        let issue = ended.since(start);
        Ok((Sample { issue, delivered: issue }, caller.waits))
    }

    /// Lets a core load the register that shows the end of a transfer, until it does.
    fn poll_by_core(&mut self, plan: &Plan, caller: &mut Caller, engine: &Engine) -> Result<(), MachineError> {
        loop {
            let shown = self.load_by_core(plan, caller, (engine.bar, engine.done, engine.register_bytes))?;
            if self.board.has_failed() {
                return Ok(());
            }
            let value = shown.unwrap_or(!engine.done_value);
            if value & engine.done_mask == engine.done_value {
                return self.check_ended(engine, value);
            }
            self.check_late(engine, value, caller.deadline)?;
        }
    }

    /// Fails if the register that shows the end does not do so in time.
    fn check_late(&self, engine: &Engine, value: u64, deadline: Ticks) -> Result<(), MachineError> {
        if self.board.now() <= deadline {
            return Ok(());
        }
        Err(self.broken(format!(
            "done_register, {:#x}, does not show the end of a transfer within engine.longest_ms: it is {value:#x}",
            engine.done
        )))
    }

    /// Fails unless all bytes of so many transfers have come to an end.
    fn check_arrived(&self, transfer: &Transfer, before: u64, total: u64) -> Result<(), MachineError> {
        let (moved, wanted) = (self.board.moved(transfer).0 - before, total.saturating_mul(transfer.bytes));
        if moved == wanted {
            return Ok(());
        }
        Err(self.broken(format!("{moved} B of {wanted} B came to an end, and the engine reports no failure")))
    }

    /// Waits until the handler of an interrupt has run and a thread is awake; by then, `moved` bytes have arrived.
    fn await_interrupt(&mut self, plan: &Plan, caller: &mut Caller, moved: u64) -> Result<(), MachineError> {
        let mut begins = None;
        self.await_design(plan, caller.deadline, "send an interrupt", |board| {
            begins = board.compiled().and_then(|card| card.interrupts_at);
            begins.is_some()
        })?;
        let Some(begins) = begins else { return Ok(()) };
        let wakes = |driver: &Driver| driver.handler_ns.value + driver.wake_ns.value;
        self.board.run_until(begins + self.platform.driver.as_ref().map_or(Ticks::ZERO, wakes));
        let seen = self.transfer_of(plan).map(|transfer| self.board.moved(&transfer));
        if seen.is_some_and(|(bytes, at)| bytes < moved || at > begins) {
            return Err(self.broken("the interrupt comes before the data of its transfer"));
        }
        let Some(interrupt) = self.board.compiled().and_then(CompiledCard::msi) else { return Ok(()) };
        let Some(acknowledge) = interrupt.acknowledge else { return Ok(()) };
        self.acknowledge(plan, caller, &interrupt, acknowledge)
    }

    /// Lets a core end an interrupt: it stores the pending reasons, or that of a transfer.
    fn acknowledge(
        &mut self,
        plan: &Plan,
        caller: &mut Caller,
        interrupt: &Interrupt,
        register: u64,
    ) -> Result<(), MachineError> {
        let Some(engine) = self.engine() else { return Ok(()) };
        let width = interrupt.register_bytes;
        let mut value = interrupt.done_value;
        if let Some(status) = interrupt.status {
            value = self.load_by_core(plan, caller, (engine.bar, status, width))?.unwrap_or(value);
        }
        let stores = self.stores(engine.bar, width, [(register, value)]);
        self.run_steps(plan, caller, stores)
    }

    /// The stores of a core to registers, whose values the card expects.
    fn stores(&mut self, bar: u8, width: u8, values: impl IntoIterator<Item = (u64, u64)>) -> Vec<Step> {
        let mut steps = Vec::new();
        for (offset, value) in values {
            steps.push(step(Verb::Store, bar, offset, width));
            if let Some(card) = self.board.compiled_mut()
                && let Some(found) = card.bar(bar)
            {
                card.await_store(found.start + offset, width, value);
            }
        }
        steps
    }

    /// Loads a register by a core; returns what the card has shown.
    fn load_by_core(
        &mut self,
        plan: &Plan,
        caller: &mut Caller,
        (bar, offset, width): (u8, u64, u8),
    ) -> Result<Option<u64>, MachineError> {
        self.run_steps(plan, caller, vec![step(Verb::Load, bar, offset, width)])?;
        let Some(card) = self.board.compiled_mut() else { return Ok(None) };
        Ok(card.bar(bar).and_then(|bar| card.take_shown(bar.start + offset)))
    }

    /// Runs steps of a core, and adds its stalls.
    fn run_steps(&mut self, plan: &Plan, caller: &mut Caller, steps: Vec<Step>) -> Result<(), MachineError> {
        let core = caller.core as usize;
        self.board.start(&Lane { core: caller.core, task: Task::Steps(steps) }, 1, 0);
        let what = "take or complete the accesses of a core";
        self.await_design(plan, caller.deadline, what, |board| board.core(core).is_done())?;
        for (sum, span) in caller.waits.iter_mut().zip(self.board.waits(core)) {
            *sum += span;
        }
        Ok(())
    }

    /// Fails if the register that shows the end says that the transfer has failed.
    fn check_ended(&self, engine: &Engine, value: u64) -> Result<(), MachineError> {
        match engine.failed_mask {
            Some(mask) if value & mask != 0 => {
                Err(self.broken(format!("done_register is {value:#x} after a transfer: it has failed")))
            }
            _ => Ok(()),
        }
    }

    /// Makes a transfer: writes the registers and the command, waits for its bytes, and loads the register that shows its
    /// end. Returns when the card had taken the command.
    fn transfer(&mut self, plan: &Plan, job: Job, deadline: Ticks) -> Result<Ticks, MachineError> {
        let (engine, _) = self.asked_of(plan)?;
        let before = crossed(&self.board, job.verb);
        for (register, value) in job.registers(&engine, false) {
            self.board.access(engine.bar, register, engine.register_bytes, Some(value));
        }
        self.await_design(plan, deadline, "take the stores to its registers", |board| {
            board.compiled().is_some_and(CompiledCard::has_taken_registers)
        })?;
        let begun = self.board.compiled().map_or(Ticks::ZERO, |card| card.registers_taken_at);
        // Loads share the stream of completions with the requests, so there are none before the last request.
        let until = before + job.bytes;
        let moved = self.await_design(plan, deadline, "move", |board| crossed(board, job.verb) >= until);
        if let Err(error) = moved {
            let is_known = self.board.has_failed_design() || matches!(error, MachineError::Interrupted { .. });
            let what = format!(
                "the engine has moved {} B of {} B and stops; check [engine] of the device file",
                crossed(&self.board, job.verb) - before,
                job.bytes
            );
            return Err(if is_known { error } else { self.broken(what) });
        }
        loop {
            let shown = self.load(plan, engine.bar, engine.done, engine.register_bytes)?;
            if self.board.has_failed() {
                return Ok(begun);
            }
            let Some(value) = shown else {
                return Err(self.broken(format!("the card refuses a load of done_register, {:#x}", engine.done)));
            };
            if value & engine.done_mask == engine.done_value {
                return self.check_ended(&engine, value).map(|()| begun);
            }
            self.check_late(&engine, value, deadline)?;
        }
    }

    /// A register or a DW of a BAR, loaded by the register port; `None` if the card refuses the load.
    fn load(&mut self, plan: &Plan, bar: u8, offset: u64, width: u8) -> Result<Option<u64>, MachineError> {
        self.board.access(bar, offset, width, None);
        let mut result = None;
        let usual = self.board.now() + plan.timeout;
        let deadline = self.engine().map_or(usual, |engine| self.deadline_of(&engine, usual));
        self.await_design(plan, deadline, "complete a load of a register", |board| {
            result = board.compiled_mut().and_then(CompiledCard::take_own_load);
            result.is_some()
        })?;
        Ok(result.and_then(Result::ok))
    }

    /// Runs the board until `is_so`; `what` says what the card has to do for it.
    fn await_design(
        &mut self,
        plan: &Plan,
        deadline: Ticks,
        what: &str,
        mut is_so: impl FnMut(&mut Board) -> bool,
    ) -> Result<(), MachineError> {
        self.check_interrupted(false)?;
        let mut stop = self.stop();
        let mut is_over = false;
        self.board.await_card(true);
        let came = self.board.run_while(deadline, |board| {
            is_over = stop();
            !is_over && !board.has_failed() && !board.has_failed_design() && !is_so(board)
        });
        self.board.await_card(false);
        self.check_interrupted(is_over)?;
        self.check_design()?;
        if came || self.board.has_failed() {
            return Ok(());
        }
        if self.board.is_idle() {
            return Err(self.broken(format!("the card does not {what}")));
        }
        Err(self.timeout(plan, Some(Cause::Device)))
    }

    /// Fails if the design has.
    fn check_design(&mut self) -> Result<(), MachineError> {
        if let Some(card) = self.board.compiled_mut() {
            card.poll_assertions();
        }
        match self.board.compiled().and_then(CompiledCard::failure).map(str::to_owned) {
            Some(what) => Err(self.broken(what)),
            None => Ok(()),
        }
    }

    fn broken(&self, what: impl Into<String>) -> MachineError {
        let machine = self.facts.name.clone();
        let what = format!("{machine}: {}; to find an error of the design, run `lanemark fuzz-rtl`", what.into());
        MachineError::Device { machine, what }
    }

    /// After a run: an error of the design is the cause of others, and the board of a failed run is built again.
    pub(super) fn after_compiled(&mut self, done: Result<(), MachineError>) -> Result<(), MachineError> {
        if !self.is_compiled() {
            return done;
        }
        if let Some(card) = self.board.compiled_mut() {
            card.poll_assertions();
        }
        let failed =
            self.board.compiled().and_then(|card| card.failure().map(str::to_owned).or_else(|| card.missing()));
        if done.is_ok() && failed.is_none() {
            return done;
        }
        self.keep_trace();
        self.board.stop();
        self.board.reset(&self.platform).map_err(|error| self.unsupported("a reset", error.because))?;
        match (failed, done) {
            // A request that a port has refused, for example one of the card to an unmapped address, is the cause.
            (_, Err(error @ (MachineError::Interrupted { .. } | MachineError::Bus(_)))) | (None, Err(error)) => {
                Err(error)
            }
            (Some(what), _) => Err(self.broken(what)),
            (None, Ok(())) => Ok(()),
        }
    }
}

/// Bytes of transfers in this direction that have crossed the streams of the card.
fn crossed(board: &Board, verb: Verb) -> u64 {
    board.compiled().map_or(0, |card| match verb {
        Verb::Load => card.received_bytes,
        Verb::Store => card.written_bytes,
    })
}

/// Longest time of a transfer.
const fn longest(engine: &Engine) -> Ticks {
    Ticks::whole_ns(engine.limits.longest_ms as u64 * 1_000_000)
}

/// An access of a core to a register, mapped as UC.
fn step(verb: Verb, bar: u8, offset: u64, width: u8) -> Step {
    let span = Span { at: BarOffset { bar, offset }, len: width.into(), memory_type: MemoryType::Uc };
    let access = Access::Plain(if width == 8 { Width::B8 } else { Width::B4 });
    Step::Stream(Stream::over(verb, access, span))
}
