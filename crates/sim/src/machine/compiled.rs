//! Plans on a board whose card is compiled from its source.
//!
//! Cores, caches, root complex and link are simulated as on any board. DMA is started by a bench beside the card: it
//! stores the registers of the device file, and loads the one that shows the end. Its accesses cross no link. A sample
//! begins when the card has taken the first command, as one of a simulated engine begins with its start. Between two
//! transfers it includes the registers, unless the plan has one transfer at a time: then it is the sum of their times.
//! Where a core requests the DMA, it accesses the same registers through the link.

use super::SimulatedMachine;
use super::flows::BytesBefore;
use super::waits::Waits;
use crate::board::Board;
use crate::device::compiled_card::CompiledCard;
use crate::error::BoardError;
use crate::host::stored_data::stored_bytes;
use lanemark_devices::{Engine, Interrupt};
use lanemark_machine::{
    Access, Cause, Completion, Confirmed, CoreWork, Descriptors, DmaCall, DmaFacts, EngineJob, EngineWork, HostMemory,
    Lane, MachineError, Order, Partner, Plan, Sample, Share, Span, Step, Stream, Task, Transfer, Unsupported, Verb,
    Width, Work,
};
use lanemark_platform::{Driver, Platform, RegionKind as Kind};
use lanemark_units::{BarOffset, MemoryType, Ticks, format_size};

/// Largest part of a BAR that is loaded to compare it with what was stored.
const MOST_COMPARED: u64 = 64 << 10;

/// One transfer of the engine.
#[derive(Clone, Copy, Debug)]
struct Job {
    verb: Verb,
    /// Bus address in host memory.
    at: u64,
    bytes: u64,
}

impl Job {
    /// The registers of an engine and their values, in the order of the stores; the last one starts the transfer.
    fn registers(self, engine: &Engine) -> impl Iterator<Item = (u64, u64)> + use<> {
        let own = engine.limits.memory_start;
        let (source, destination, command) = match self.verb {
            Verb::Load => (self.at, own, engine.to_device),
            Verb::Store => (own, self.at, engine.to_host),
        };
        let all = [
            (Some(engine.source), source),
            (engine.source_high, source >> 32),
            (Some(engine.destination), destination),
            (engine.destination_high, destination >> 32),
            (Some(engine.count), self.bytes),
            (Some(engine.command), command),
        ];
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
    /// [`BoardError`], as [`Board::new`], and if the platform has several cards, faults, a runtime, or a card with more
    /// than registers, memory and a DMA engine.
    pub fn of_compiled(platform: &Platform, card: CompiledCard) -> Result<SimulatedMachine, BoardError> {
        let because = [
            (platform.cards() > 1, "a compiled card takes the place of the only card, and it has several"),
            (!platform.faults.is_empty(), "faults cannot be injected into the TLPs of a compiled card"),
            (platform.has_ats(), "a compiled card has no ATC in the simulation: set dma.ats to false"),
            (platform.fifos.is_some(), "queues are modelled only: remove [fifos]"),
            (platform.runtime.is_some(), "kernels are modelled only: remove [runtime]"),
        ];
        if let Some((_, because)) = because.into_iter().find(|(is_so, _)| *is_so) {
            return Err(BoardError { platform: platform.name.clone(), because: because.to_owned() });
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

    /// Checks whether a compiled card can do this work.
    pub(super) fn check_compiled(&self, work: &Work) -> Result<(), Unsupported> {
        match work {
            Work::Engines(engines) => self.check_compiled_job(engines),
            Work::Cores(CoreWork { lanes, before }) if work.dma_calls().next().is_some() => match lanes.as_slice() {
                [Lane { task: Task::DmaCall(call), .. }] if before.is_empty() => self.check_compiled_call(call),
                _ => Err(self.unsupported("DMA requested by several cores", "its engine does one transfer at a time")),
            },
            Work::Cores(CoreWork { lanes, .. }) if lanes.iter().any(|lane| matches!(lane.task, Task::Operation(_))) => {
                Err(self.unsupported("this operation", "only models of cards have what it needs"))
            }
            Work::Relay(_) | Work::Queue(_) => {
                Err(self.unsupported("work of several cards or of kernels", "a compiled card has neither"))
            }
            Work::Cores(_) | Work::Exchange(_) => self.check_work(work),
        }
    }

    fn check_compiled_call(&self, call: &DmaCall) -> Result<(), Unsupported> {
        let DmaCall { transfer, channel, share, descriptors, completion } = *call;
        let refused = |what: &str, because: &str| Err(self.unsupported(what, because));
        match (share, descriptors, completion) {
            (Share::Call, ..) => return refused("a call of a kernel driver", "a core writes the registers itself"),
            (Share::Doorbell, ..) => {
                return refused("a doorbell with descriptors prepared in advance", "the registers hold one transfer");
            }
            (Share::List, Descriptors::Fetched | Descriptors::Written(MemoryType::Wc), _) => {
                return refused("descriptors in host memory or in WC memory", "a transfer is described by registers");
            }
            (Share::List, Descriptors::Written(_), Completion::Flag) => {
                return refused("a completion flag in host memory", "a register of the device file shows the end");
            }
            (Share::List, Descriptors::Written(_), Completion::Interrupt)
                if self.board.compiled().and_then(CompiledCard::msi).is_none() =>
            {
                let because = "the device file has no [interrupt] of the kind msi, or no engine.interrupt_command";
                return refused("an interrupt", because);
            }
            (Share::List, Descriptors::Written(_), Completion::Interrupt) if self.platform.driver.is_none() => {
                let because = "the platform has no section [driver], which has the times of an interrupt";
                return refused("an interrupt", because);
            }
            (Share::List, Descriptors::Written(_), Completion::Interrupt | Completion::Register) => {}
        }
        if channel != 0 {
            return refused("another channel than 0", "its engine has one");
        }
        self.check_compiled_transfer(&transfer)
    }

    fn check_compiled_job(&self, EngineWork { jobs, memory }: &EngineWork) -> Result<(), Unsupported> {
        let [EngineJob::Transfer(transfer)] = jobs.as_slice() else {
            return Err(self.unsupported("concurrent transfers", "its engine does one transfer at a time"));
        };
        if *memory != HostMemory::default() {
            return Err(self.unsupported("this cache state or socket", "its memory was written by the host"));
        }
        self.check_compiled_transfer(transfer)
    }

    fn check_compiled_transfer(&self, transfer: &Transfer) -> Result<(), Unsupported> {
        let refused = |what: &str, because: String| Err(self.unsupported(what, because));
        let Some(engine) = self.engine() else {
            return refused("DMA", "no device file describes its engine: name one with a section [engine]".to_owned());
        };
        let Transfer { partner, bytes, window, outstanding, .. } = *transfer;
        if partner != Partner::Host {
            return refused("DMA between cards", "there is one card".to_owned());
        }
        if outstanding.is_some_and(|outstanding| outstanding > 1) {
            return refused("several outstanding transfers", "its engine does one transfer at a time".to_owned());
        }
        let most = engine.limits.most_bytes.min(engine.limits.memory_bytes);
        if bytes == 0 || bytes > most {
            let because = format!("the engine moves 1 B to {} at once", format_size(most));
            return refused(&format!("a transfer of {}", format_size(bytes)), because);
        }
        let alignment = engine.limits.alignment_bytes.max(1);
        if [bytes, window.offset, window.step(bytes)].iter().any(|at| !at.is_multiple_of(alignment)) {
            return refused("this alignment", format!("the engine needs multiples of {alignment} B"));
        }
        let end = self.board.mapped_at() + window.offset + window.len.max(bytes);
        if engine.limits.address_bits < 64 && end > 1 << engine.limits.address_bits {
            let because = format!(
                "its addresses have {} bits, and memory.address_bytes is {:#x}",
                engine.limits.address_bits,
                self.board.mapped_at()
            );
            return refused("this window of host memory", because);
        }
        Ok(())
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

    /// Before a sample: gives the card the bytes that it will write, by a read, and fills the window with others.
    pub(super) fn prepare_compiled(&mut self, plan: &Plan) -> Result<(), MachineError> {
        let Some(transfer) = self.transfer_of(plan) else { return Ok(()) };
        let Transfer { verb, bytes, window, .. } = transfer;
        let seed = self.passes_done;
        if verb == Verb::Store {
            let place = window.place(0, bytes);
            let mut data = vec![0; bytes as usize];
            stored_bytes(0, seed, &mut data);
            self.board.memory_mut().write(place, &data);
            let at = self.board.mapped_at() + place;
            self.transfer_once(plan, Job { verb: Verb::Load, at, bytes })?;
            for byte in &mut data {
                *byte = !*byte;
            }
            self.board.memory_mut().write(place, &data);
        }
        self.written = seed;
        Ok(())
    }

    /// Makes a transfer that is not timed.
    fn transfer_once(&mut self, plan: &Plan, job: Job) -> Result<(), MachineError> {
        let before = BytesBefore::of(plan, &self.board);
        let deadline = self.board.now() + plan.timeout;
        self.transfer(plan, job, deadline)?;
        self.failure(plan, 1, &before)?;
        self.settle(plan, deadline)?;
        self.failure(plan, 1, &before)
    }

    /// Runs the board until it is idle.
    fn settle(&mut self, plan: &Plan, deadline: Ticks) -> Result<(), MachineError> {
        let is_idle = self.board.run_while(deadline, |board| !board.is_idle() && !board.has_failed());
        self.check_design()?;
        if is_idle { Ok(()) } else { Err(self.timeout(plan, Some(Cause::Transit))) }
    }

    /// Runs transfers one by one.
    pub(super) fn run_compiled(
        &mut self,
        plan: &Plan,
        jobs: &[EngineJob],
        passes: u64,
    ) -> Result<(Sample, Waits), MachineError> {
        let Some(Transfer { verb, bytes, count, window, outstanding, .. }) = jobs.first().map(|job| *job.transfer())
        else {
            return Err(self.unsupported("an empty plan", "there is nothing to time").into());
        };
        let Some(transfer) = self.transfer_of(plan) else {
            return Err(self.unsupported("this plan", "it has several transfers").into());
        };
        let before_all = BytesBefore::of(plan, &self.board);
        let (base, first) = (self.board.mapped_at(), self.passes_done * count);
        self.passes_done += passes;
        let deadline = self.board.now() + plan.timeout;
        let moved_before = self.board.moved(&transfer).0;
        let (mut start, mut between, mut last) = (None, Ticks::ZERO, None);
        let total = passes.saturating_mul(count);
        for nth in 0..total {
            let job = Job { verb, at: base + window.place(first + nth, bytes), bytes };
            let begun = self.transfer(plan, job, deadline)?;
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
        let core = plan.work.lanes().first().map_or(0, |lane| lane.core);
        let (Some(engine), Some(transfer)) = (self.engine(), self.transfer_of(plan)) else {
            return Err(self.unsupported("DMA", "no device file describes its engine").into());
        };
        let by = plan.work.dma_calls().next().map_or(Completion::Register, |call| call.completion);
        let Transfer { verb, bytes, count, window, .. } = transfer;
        let before_all = BytesBefore::of(plan, &self.board);
        let (base, first) = (self.board.mapped_at(), self.passes_done * count);
        let total = passes.saturating_mul(count);
        self.passes_done += passes;
        let moved_before = self.board.moved(&transfer).0;
        let start = self.board.now();
        let deadline = start + plan.timeout;
        for nth in 0..total {
            let job = Job { verb, at: base + window.place(first + nth, bytes), bytes };
            let requested = if by == Completion::Interrupt { engine.with_interrupt.unwrap_or(0) } else { 0 };
            let values = job
                .registers(&engine)
                .map(|(register, value)| (register, value | if register == engine.command { requested } else { 0 }));
            let stores = self.stores(engine.bar, engine.register_bytes, values);
            if let Some(card) = self.board.compiled_mut() {
                card.interrupts_at = None;
            }
            self.run_steps(plan, core, stores, deadline)?;
            if by == Completion::Interrupt {
                self.await_interrupt(plan, core, moved_before + (nth + 1) * bytes, deadline)?;
                self.failure(plan, passes, &before_all)?;
                continue;
            }
            loop {
                let at = (engine.bar, engine.done, engine.register_bytes);
                let shown = self.load_by_core(plan, core, at, deadline)?;
                self.failure(plan, passes, &before_all)?;
                let value = shown.unwrap_or(!engine.done_value);
                if value & engine.done_mask == engine.done_value {
                    self.check_ended(&engine, value)?;
                    break;
                }
            }
        }
        let ended = self.board.core(core as usize).stamped_at();
        let ended = if by == Completion::Interrupt { self.board.now() } else { ended };
        let waits = self.board.waits(core as usize);
        self.settle(plan, deadline)?;
        self.failure(plan, passes, &before_all)?;
        self.check_arrived(&transfer, moved_before, total)?;
        let issue = ended.since(start);
        Ok((Sample { issue, delivered: issue }, waits))
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
    fn await_interrupt(&mut self, plan: &Plan, core: u32, moved: u64, deadline: Ticks) -> Result<(), MachineError> {
        let mut begins = None;
        self.await_design(plan, deadline, "send an interrupt", |board| {
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
        self.acknowledge(plan, core, (&interrupt, acknowledge), deadline)
    }

    /// Lets a core end an interrupt: it stores the pending reasons, or that of a transfer.
    fn acknowledge(
        &mut self,
        plan: &Plan,
        core: u32,
        (interrupt, register): (&Interrupt, u64),
        deadline: Ticks,
    ) -> Result<(), MachineError> {
        let Some(engine) = self.engine() else { return Ok(()) };
        let width = interrupt.register_bytes;
        let mut value = interrupt.done_value;
        if let Some(status) = interrupt.status {
            let shown = self.load_by_core(plan, core, (engine.bar, status, width), deadline)?;
            value = shown.unwrap_or(value);
        }
        let stores = self.stores(engine.bar, width, [(register, value)]);
        self.run_steps(plan, core, stores, deadline)
    }

    /// The stores of a core to registers, whose values the card expects.
    fn stores(&mut self, bar: u8, width: u8, values: impl IntoIterator<Item = (u64, u64)>) -> Vec<Step> {
        let mut steps = Vec::new();
        for (offset, value) in values {
            steps.push(step(Verb::Store, bar, offset, width));
            if let Some(card) = self.board.compiled_mut()
                && let Some(found) = card.bar(bar)
            {
                card.expect(found.start + offset, width, value);
            }
        }
        steps
    }

    /// Loads a register by a core; returns what the card has shown.
    fn load_by_core(
        &mut self,
        plan: &Plan,
        core: u32,
        (bar, offset, width): (u8, u64, u8),
        deadline: Ticks,
    ) -> Result<Option<u64>, MachineError> {
        self.run_steps(plan, core, vec![step(Verb::Load, bar, offset, width)], deadline)?;
        let card = self.board.compiled();
        Ok(card.and_then(|card| card.shown_at(card.bar(bar)?.start + offset)))
    }

    /// Runs steps of a core.
    fn run_steps(&mut self, plan: &Plan, core: u32, steps: Vec<Step>, deadline: Ticks) -> Result<(), MachineError> {
        self.board.start(&Lane { core, task: Task::Steps(steps) }, 1, 0);
        self.await_design(plan, deadline, "take or complete the accesses of a core", |board| {
            board.core(core as usize).is_done()
        })
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

    /// Makes a transfer: writes the registers and the command, waits for its bytes, and polls the register that shows its
    /// end. Returns when the card had taken the command.
    fn transfer(&mut self, plan: &Plan, job: Job, deadline: Ticks) -> Result<Ticks, MachineError> {
        let Some(engine) = self.engine() else {
            return Err(self.unsupported("DMA", "no device file describes its engine").into());
        };
        let moved = |board: &Board| match (board.compiled(), job.verb) {
            (Some(card), Verb::Load) => card.received_bytes,
            (Some(card), Verb::Store) => card.written_bytes,
            (None, _) => 0,
        };
        let until = moved(&self.board) + job.bytes;
        for (register, value) in job.registers(&engine) {
            self.access(&engine, register, Some(value))?;
        }
        self.await_design(plan, deadline, "take the stores to its registers", |board| {
            board.compiled().is_some_and(CompiledCard::has_taken_bench)
        })?;
        let begun = self.board.compiled().map_or(Ticks::ZERO, |card| card.bench_done_at);
        // Polls share the stream of completions with the requests, so there are none before the last request.
        self.await_design(plan, deadline, "move the bytes of a transfer", |board| moved(board) >= until)?;
        loop {
            let value = self.load(plan, engine.bar, engine.done, engine.register_bytes, deadline)?;
            if value & engine.done_mask == engine.done_value {
                return self.check_ended(&engine, value).map(|()| begun);
            }
            if self.board.has_failed() {
                return Ok(begun);
            }
        }
    }

    /// A register or a DW of a BAR, loaded by the bench.
    fn load(&mut self, plan: &Plan, bar: u8, offset: u64, width: u8, deadline: Ticks) -> Result<u64, MachineError> {
        self.board.access(bar, offset, width, None).map_err(|what| self.broken(what))?;
        let mut value = None;
        self.await_design(plan, deadline, "complete a load of a register", |board| {
            value = board.compiled_mut().and_then(CompiledCard::take_answer);
            value.is_some()
        })?;
        Ok(value.unwrap_or(0))
    }

    fn access(&mut self, engine: &Engine, register: u64, value: Option<u64>) -> Result<(), MachineError> {
        self.board.access(engine.bar, register, engine.register_bytes, value).map_err(|what| self.broken(what))
    }

    /// Runs the board until `is_so`; `what` says what the card has to do for it.
    fn await_design(
        &mut self,
        plan: &Plan,
        deadline: Ticks,
        what: &str,
        mut is_so: impl FnMut(&mut Board) -> bool,
    ) -> Result<(), MachineError> {
        let mut stop = self.stop();
        let mut is_over = false;
        self.board.keep_clocked();
        let came = self.board.run_while(deadline, |board| {
            is_over = stop();
            !is_over && !board.has_failed() && !board.has_failed_design() && !is_so(board)
        });
        if is_over {
            return Err(MachineError::Interrupted { machine: self.facts.name.clone() });
        }
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
            card.look();
        }
        match self.board.compiled().and_then(CompiledCard::failure).map(str::to_owned) {
            Some(what) => Err(self.broken(what)),
            None => Ok(()),
        }
    }

    fn broken(&self, what: impl Into<String>) -> MachineError {
        let machine = self.facts.name.clone();
        let what = format!("{machine}: {}; `lanemark fuzz-rtl` tests the design", what.into());
        MachineError::Device { machine, what }
    }

    /// After a run: an error of the design is the cause of others, and the board of a failed run is built again.
    pub(super) fn after_compiled(&mut self, done: Result<(), MachineError>) -> Result<(), MachineError> {
        if !self.is_compiled() {
            return done;
        }
        if let Some(card) = self.board.compiled_mut() {
            card.look();
        }
        let failed = self.board.compiled().and_then(|card| card.failure().map(str::to_owned).or_else(|| card.owes()));
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

    /// Compares both ends: of the last iteration of writes of the card, of its last read, or of stores to its memory.
    pub(super) fn confirm_compiled(&mut self, plan: &Plan) -> Option<Confirmed> {
        if let Some(transfer) = self.transfer_of(plan) {
            return self.confirm_transfers(plan, &transfer);
        }
        let Work::Cores(CoreWork { lanes, .. }) = &plan.work else { return None };
        let [Lane { task: Task::Steps(steps), .. }] = lanes.as_slice() else { return None };
        let mut moving = steps.iter().filter(|step| step.bytes() > 0);
        let (Some(Step::Stream(stream)), None) = (moving.next(), moving.next()) else { return None };
        let region = self.platform.region_at(stream.span.at.bar, stream.span.at.offset, stream.span.len)?;
        let keeps = !matches!(region.kind.value, Kind::Fifo | Kind::Registers);
        let is_in_order = !matches!(stream.order, Order::SameAddress { .. });
        if stream.verb != Verb::Store || !keeps || !is_in_order || stream.span.len > MOST_COMPARED {
            return None;
        }
        let (bar, from, len) = (stream.span.at.bar, stream.span.at.offset, stream.span.len);
        let bus = self.platform.bar(bar)?.address_bytes.value + from;
        let mut meant = vec![0; len as usize];
        stored_bytes(bus, self.passes_done - 1, &mut meant);
        let mut confirmed_bytes = 0;
        for at in from / 4..(from + len).div_ceil(4) {
            let deadline = self.board.now() + plan.timeout;
            let word = self.load(plan, bar, 4 * at, 4, deadline).ok()?.to_le_bytes();
            for (byte, found) in (4 * at..).zip(word.into_iter().take(4)) {
                let place = byte.checked_sub(from).filter(|place| *place < len);
                confirmed_bytes += u64::from(place.is_some_and(|place| meant[place as usize] == found));
            }
        }
        Some(Confirmed { claimed_bytes: len, confirmed_bytes })
    }

    fn confirm_transfers(&mut self, plan: &Plan, transfer: &Transfer) -> Option<Confirmed> {
        let Transfer { verb, bytes, count, window, .. } = *transfer;
        let base = self.board.mapped_at();
        let end = self.passes_done * count;
        let (mut found, mut meant) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        let equal =
            |found: &[u8], meant: &[u8]| found.iter().zip(meant).filter(|(found, meant)| found == meant).count() as u64;
        if verb == Verb::Store {
            stored_bytes(0, self.written, &mut meant);
            let mut places: Vec<u64> = (end - count..end).map(|nth| window.place(nth, bytes)).collect();
            places.sort_unstable();
            places.dedup();
            let claimed_bytes = places.len() as u64 * bytes;
            let mut confirmed_bytes = 0;
            for place in places {
                self.board.memory_mut().read(place, &mut found);
                confirmed_bytes += equal(&found, &meant);
            }
            return Some(Confirmed { claimed_bytes, confirmed_bytes });
        }
        let place = window.place(end - 1, bytes);
        self.board.memory_mut().read(place, &mut meant);
        let other: Vec<u8> = meant.iter().map(|byte| !*byte).collect();
        self.board.memory_mut().write(place, &other);
        self.transfer_once(plan, Job { verb: Verb::Store, at: base + place, bytes }).ok()?;
        self.board.memory_mut().read(place, &mut found);
        Some(Confirmed { claimed_bytes: bytes, confirmed_bytes: equal(&found, &meant) })
    }
}

/// An access of a core to a register, mapped as UC.
fn step(verb: Verb, bar: u8, offset: u64, width: u8) -> Step {
    let span = Span { at: BarOffset { bar, offset }, len: width.into(), memory_type: MemoryType::Uc };
    let access = Access::Plain(if width == 8 { Width::B8 } else { Width::B4 });
    Step::Stream(Stream::over(verb, access, span))
}
