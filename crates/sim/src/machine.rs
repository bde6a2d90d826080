//! A simulated platform as a [`Machine`].

mod compiled;
mod compute;
mod corrected;
mod facts;
mod failure;
mod flows;
mod refused;
mod relay;
mod runtime;
mod runtime_periods;
mod small_copies;
mod tracing;
mod waits;

pub use self::facts::facts;
use self::flows::BytesBefore;
use self::runtime_periods::{Counts, RuntimePeriods};
use self::waits::{MOST_PASSES, Waits};
use crate::board::Board;
use crate::board::used::{Resource, Used};
use crate::callers::Callers;
use crate::critical_path::Place;
use crate::device::dma_engine::DmaEngine;
use crate::error::BoardError;
use crate::fabric::carried::Carried;
use crate::fabric::link::Crossed;
use crate::fast_forward::Search;
use crate::host::stored_data::stored_bytes;
use crate::index::CardIndex;
use lanemark_config_space::LoggedError;
use lanemark_machine::{
    BytesMoved, Cause, Concurrent, Confirmed, CoreWork, Direction, DmaCall, EngineJob, EngineWork, Facts,
    InjectedFault, Lane, LinkUse, Machine, MachineError, Order, Partner, PathShare, Pattern, Plan, QueueRequest,
    QueueWork, Region, ResourceUse, Sample, Samples, Span, Steady, Step, Task, Trace, Traffic, Transfer, Unsupported,
    Verb, Wait, Work,
};
use lanemark_platform::{Platform, RegionKind as Kind};
use lanemark_units::Ticks;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of events between two polls of the interrupt flag.
const LOOK_EVERY: u32 = 1 << 16;

/// A simulated platform.
///
/// Every sample starts on an idle board that keeps its memory and has no cached translations. The samples of a plan are
/// therefore equal, unless the plan makes them differ, and they do not depend on earlier plans.
#[derive(Debug)]
pub struct SimulatedMachine {
    platform: Platform,
    facts: Facts,
    board: Board,
    passes_done: u64,
    /// Iterations of the last run.
    passes_of_last_run: u64,
    /// Bytes moved by several cards in the last sample.
    together: Option<Concurrent>,
    /// Use of the resources up to the time when the first card was done.
    used: Option<Used>,
    interrupted: Option<Arc<AtomicBool>>,
    /// Iterations of the last run that were skipped.
    left_out: Option<Counts>,
    /// Errors that ports have detected since construction.
    logged: Vec<LoggedError>,
    /// Number of frames and of stalls to record in the next samples, if a trace is wanted.
    tracing: Option<usize>,
    /// Whether a trace includes DLLPs.
    traces_dllps: bool,
    /// The trace of a run that failed.
    trace_to_failure: Option<Trace>,
    /// Results of kernels in the last sample.
    computed: Option<Confirmed>,
    /// From which number the bytes of a compiled card follow.
    written: u64,
    /// Use of the busiest memory port of the card by kernels in the last run.
    port_busy: Option<Ticks>,
    /// The critical path of the last sample.
    path: Vec<PathShare>,
    /// Whether steady states are skipped, and the result of the last search.
    skips: bool,
    steady: Option<Steady>,
}

impl SimulatedMachine {
    /// Builds the board of the platform.
    ///
    /// # Errors
    /// [`BoardError`], as [`Board::new`].
    pub fn new(platform: &Platform) -> Result<SimulatedMachine, BoardError> {
        Ok(SimulatedMachine {
            facts: facts(platform),
            board: Board::new(platform)?,
            platform: platform.clone(),
            passes_done: 0,
            passes_of_last_run: 0,
            together: None,
            used: None,
            interrupted: None,
            left_out: None,
            logged: Vec::new(),
            tracing: None,
            traces_dllps: false,
            trace_to_failure: None,
            computed: None,
            written: 0,
            port_busy: None,
            path: Vec::new(),
            skips: true,
            steady: None,
        })
    }

    /// Ends a run with [`MachineError::Interrupted`] when `flag` is set.
    #[must_use]
    pub fn interrupted_by(mut self, flag: Arc<AtomicBool>) -> SimulatedMachine {
        self.interrupted = Some(flag);
        self
    }

    /// Includes DLLPs in traces, up to the number of TLPs.
    #[must_use]
    pub fn with_dllps(mut self, wanted: bool) -> SimulatedMachine {
        self.traces_dllps = wanted;
        self
    }

    /// Simulates every transfer; disables the steady-state fast-forward.
    #[must_use]
    pub fn in_detail(mut self) -> SimulatedMachine {
        self.skips = false;
        self
    }

    /// Leaves out the critical path of samples, to measure its cost. Kernels on the card then have one stall cause,
    /// [`Cause::Compute`].
    #[must_use]
    pub fn without_path(mut self) -> SimulatedMachine {
        self.board.leave_out_path();
        self
    }

    /// Returns the board, for closer observation.
    pub fn board_mut(&mut self) -> &mut Board {
        &mut self.board
    }

    fn unsupported(&self, what: impl Into<String>, because: impl Into<String>) -> Unsupported {
        Unsupported { what: what.into(), machine: self.facts.name.clone(), because: because.into() }
    }

    fn check_span(&self, span: &Span) -> Result<(), MachineError> {
        match self.platform.region_at(span.at.bar, span.at.offset, span.len) {
            Some(_) => Ok(()),
            None => Err(MachineError::OutOfRange {
                machine: self.facts.name.clone(),
                at: span.at,
                len: span.len,
                regions: self.facts.regions.iter().map(Region::to_string).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    fn check(&self, plan: &Plan) -> Result<(), MachineError> {
        plan.check().map_err(|impossible| impossible.on(&self.facts.name))?;
        for span in plan.work.steps().chain(plan.work.before()).filter_map(Step::span) {
            self.check_span(span)?;
        }
        Ok(self.supports(plan)?)
    }

    fn timeout(&mut self, plan: &Plan, waiting_for: Option<Cause>) -> MachineError {
        let machine = self.facts.name.clone();
        let named = |cause: Cause| format!("{} ({})", cause.name().replace('_', " "), cause.explanation());
        let waiting_for = waiting_for.map_or("its instructions".to_owned(), named);
        let (idle, at) = (self.board.is_idle(), self.board.now());
        // Outstanding requests complete, so that the next plan starts on an idle board.
        self.board.stop();
        if idle {
            MachineError::Stuck { machine, at, waiting_for }
        } else {
            MachineError::Timeout { machine, after: plan.timeout, waiting_for }
        }
    }

    /// Runs DMA jobs, `passes` iterations.
    fn run_jobs(&mut self, plan: &Plan, jobs: &[EngineJob], passes: u64) -> Result<(Sample, Waits), MachineError> {
        let start = self.board.now();
        let deadline = start + plan.timeout;
        let before_all = BytesBefore::of(plan, &self.board);
        for job in jobs {
            let started = self.board.start_job(job, passes, self.passes_done);
            started.map_err(|because| self.unsupported("a transfer by a card", because))?;
        }
        self.passes_done += passes.min(MOST_PASSES);
        let mut stop = self.stop();
        let moving: Vec<Transfer> = jobs.iter().flat_map(EngineJob::directions).collect();
        let before: Vec<u64> = moving.iter().map(|transfer| self.board.moved(transfer).0).collect();
        let moved = |board: &Board| -> Vec<u64> {
            moving.iter().zip(&before).map(|(transfer, before)| board.moved(transfer).0 - before).collect()
        };
        let mut common: Option<(Ticks, Vec<u64>)> = None;
        let mut used: Option<Used> = None;
        let mut search = Search::new(&self.board, deadline, self.skips);
        let mut is_over = false;
        let all_arrived = self.board.run_while(deadline, |board| {
            search.look(board);
            board.bound_path(moving.first());
            if moving.len() > 1 && common.is_none() {
                let moved = moved(board);
                let is_done =
                    |(moved, transfer): (&u64, &Transfer)| *moved >= transfer.bytes_per_pass().saturating_mul(passes);
                if let Some(done) = moved.iter().zip(&moving).position(is_done) {
                    // Written data becomes visible a little after its acceptance.
                    common = Some((board.moved(&moving[done]).1.max(board.now()), moved));
                    // Both directions of one card end together or are timed until the last ends.
                    let is_one_card = moving.iter().all(|transfer| transfer.card == moving[done].card);
                    used = (!is_one_card).then(|| board.used(Ticks::ZERO));
                }
            }
            is_over = stop();
            !board.is_idle() && !is_over && !board.has_failed()
        });
        if is_over {
            return Err(MachineError::Interrupted { machine: self.facts.name.clone() });
        }
        self.failure(plan, passes, &before_all)?;
        let Some(first) = moving.first() else { return Err(self.timeout(plan, None)) };
        let card = first.card.into();
        let Some(engine) = self.board.engine(card).filter(|engine| all_arrived && engine.is_done()) else {
            let waiting_for = self.board.engine(card).and_then(DmaEngine::waiting_for);
            return Err(self.timeout(plan, waiting_for.or(Some(Cause::Transit))));
        };
        let (issue, waits) = (engine.issued_at().since(start), engine.waits);
        // Both directions, if it wrote and read.
        let of_first = moving.iter().filter(|transfer| transfer.card == first.card);
        let last = of_first.map(|transfer| self.board.last_moved(transfer)).max_by_key(|last| last.0);
        let (ended, milestone) = last.unwrap_or_default();
        self.path = self.board.path(milestone, ended);
        let all = moved(&self.board);
        for (transfer, bytes) in moving.iter().zip(&all) {
            let wanted = transfer.bytes_per_pass().saturating_mul(passes);
            if *bytes != wanted {
                let what = format!(
                    "{}: {bytes} of {wanted} bytes of card {} came to an end: the remaining requests target unmapped addresses",
                    self.facts.name, transfer.card
                );
                return Err(MachineError::Device { machine: self.facts.name.clone(), what });
            }
        }
        let together = common.map(|(common, bytes)| Concurrent {
            common: common.since(start),
            each: (moving.iter().zip(all).zip(bytes))
                .map(|((transfer, bytes), common_bytes)| {
                    let delivered = self.board.moved(transfer).1.since(start);
                    BytesMoved { delivered, bytes, common_bytes }
                })
                .collect(),
        });
        (self.together, self.used) = (together, used);
        self.steady.get_or_insert_default().add(search.ended());
        // No later sample begins before that time.
        self.board.run_until(ended);
        Ok((Sample { issue, delivered: ended.since(start) }, waits))
    }

    /// Returns a function that polls the interrupt flag, to be called once an event.
    fn stop(&self) -> impl FnMut() -> bool + use<> {
        let flag = self.interrupted.clone();
        let mut events = 0_u32;
        move || {
            events = events.wrapping_add(1);
            events.is_multiple_of(LOOK_EVERY) && flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
        }
    }

    /// Runs `passes` iterations of the plan's work.
    fn run_passes(&mut self, plan: &Plan, passes: u64) -> Result<(Sample, Waits), MachineError> {
        self.board.quiesce();
        self.board.align_to_clock();
        self.path.clear();
        let remote = self.platform.memory.as_ref().map_or(Ticks::ZERO, |memory| memory.remote_ns.value);
        self.board.find_memory(plan.work.memory(), remote);
        match &plan.work {
            Work::Engines(engines) if self.is_compiled() => self.run_compiled(plan, &engines.jobs, passes),
            Work::Engines(engines) => self.run_jobs(plan, &engines.jobs, passes),
            Work::Relay(relay) => self.run_relay(plan, relay, passes),
            Work::Queue(QueueWork { request: QueueRequest::Compute(compute), .. }) => {
                self.run_compute(plan, compute, passes)
            }
            Work::Cores(_) if self.is_compiled() && self.transfer_of(plan).is_some() => self.run_called(plan, passes),
            Work::Cores(_) | Work::Queue(_) | Work::Exchange(_) => self.run_cores(plan, passes),
        }
    }

    /// Runs `passes` iterations on the cores; then write-combining buffers are evicted and accepted.
    fn run_cores(&mut self, plan: &Plan, passes: u64) -> Result<(Sample, Waits), MachineError> {
        let numbers: Vec<usize> = plan.work.cores().into_iter().map(|core| core as usize).collect();
        let Some(&first) = numbers.first() else {
            return Err(self.unsupported("an empty plan", "there is nothing to time").into());
        };
        let start = self.board.now();
        let deadline = start + plan.timeout;
        let before = BytesBefore::of(plan, &self.board);
        match &plan.work {
            Work::Cores(cores) => {
                cores.lanes.iter().for_each(|lane| self.board.start(lane, passes, self.passes_done));
            }
            Work::Queue(queue) => self.board.start_request(queue.core, &queue.request, passes, self.passes_done),
            Work::Exchange(_) | Work::Engines(_) | Work::Relay(_) => {}
        }
        self.passes_of_last_run = passes.min(MOST_PASSES);
        self.passes_done += self.passes_of_last_run;
        let cores = |board: &Board, busy: fn(&crate::host::core::Core) -> bool| {
            numbers.iter().any(|core| busy(board.core(*core)))
        };
        let mut stop = self.stop();
        let mut watch = Callers::of(plan, &self.board);
        let mut laps = RuntimePeriods::of(plan, &self.board, passes, self.skips);
        let mut ended = false;
        let mut until = Ticks::NEVER;
        // Repeat if iterations were skipped: the deadline is earlier by their time.
        while until > deadline - laps.span() {
            until = deadline - laps.span();
            ended = self.board.run_while(until, |board| {
                watch.look(board);
                board.bound_path_of_core(first);
                let leaves_out = laps.look(board, passes, deadline);
                cores(board, |core| !core.is_done()) && !board.has_failed() && !stop() && !leaves_out
            });
        }
        if self.board.has_failed() || !ended || self.board.has_refused_page() {
            self.failure(plan, passes, &before)?;
        }
        if !ended {
            let waiting_for = self.board.core(first).waiting_for();
            return Err(self.timeout(plan, waiting_for));
        }
        if cores(&self.board, |core| !core.is_done()) {
            return Err(MachineError::Interrupted { machine: self.facts.name.clone() });
        }
        let issue = self.board.core(first).stamped_at().since(start) + laps.span();
        let mut waits = self.board.waits(first);
        let mut left_fetching = Ticks::ZERO;
        if let Some(left_out) = laps.left_out() {
            waits.iter_mut().zip(left_out.waits).for_each(|(wait, span)| *wait += span);
            left_fetching = left_out.fetching;
        }
        if let Some(steady) = laps.ended() {
            self.steady.get_or_insert_default().add(steady);
        }
        let called = match &plan.work {
            Work::Queue(queue) => self.call_of(&queue.request),
            Work::Cores(_) | Work::Exchange(_) | Work::Engines(_) | Work::Relay(_) => {
                plan.work.lanes().first().and_then(|lane| match &lane.task {
                    Task::DmaCall(call) => Some(*call),
                    Task::Steps(_) | Task::Operation(_) => None,
                })
            }
        };
        if let Some((call, engine)) =
            called.and_then(|call| Some((call, self.board.engine(call.transfer.card.into())?)))
        {
            // Part of the core's `Transfer` stall is the channel's wait for descriptors.
            let fetching = engine.fetching(call.channel as usize) + left_fetching;
            let fetching = fetching.min(waits[Cause::Transfer.index()]);
            waits[Cause::Transfer.index()] -= fetching;
            waits[Cause::Descriptor.index()] += fetching;
        }
        // Gathered stores are evicted after the second timestamp.
        let last_core = numbers.iter().copied().max_by_key(|core| self.board.core(*core).issued_at()).unwrap_or(first);
        let last = self.board.core(last_core).issued_at();
        let until_issue = self.board.path_of_core(first, start + issue - laps.span());
        let until_last = self.board.path_of_core(last_core, last);
        self.board.run_until(last);
        for core in &numbers {
            self.board.flush(*core);
        }
        let ended = self.board.run_while(deadline + plan.timeout, |board| !board.is_idle() && !stop());
        if ended && !self.board.is_idle() {
            return Err(MachineError::Interrupted { machine: self.facts.name.clone() });
        }
        self.failure(plan, passes, &before)?;
        if !ended {
            return Err(self.timeout(plan, None));
        }
        self.together = watch.ended(&self.board, start);
        let stores = plan.work.steps().any(Step::stores);
        // With several driver calls, the last one to complete counts.
        let is_last = plan.work.dma_calls().next().is_some() || plan.work.request().is_some();
        let known = if is_last { last.since(start) + laps.span() } else { issue };
        self.left_out = laps.left_out().cloned();
        let delivered = if stores { self.board.endpoint().last_accepted.since(start) } else { known };
        let delivered = delivered.max(if stores { Ticks::ZERO } else { known });
        self.path = match () {
            () if stores => self.board.path_of_stores(),
            () if is_last => until_last,
            () => until_issue,
        };
        Ok((Sample { issue, delivered }, waits))
    }

    /// Compares both ends of the only transfer: the bytes of the last iteration, or those read.
    fn confirm_transfer(&mut self, transfer: &Transfer, passes: u64) -> Option<Confirmed> {
        let Transfer { bytes, count, window, .. } = *transfer;
        if matches!(window.pattern, Pattern::Random | Pattern::RandomStrided(_)) {
            return None;
        }
        let touched = bytes * window.places(bytes).min(count);
        let last = (passes - 1) * count;
        let (mut found, mut meant) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        let mut confirmed = 0;
        for nth in 0..touched / bytes {
            let offset = window.place(last % window.places(bytes) + nth, bytes);
            match (transfer.verb, transfer.partner) {
                (Verb::Load, Partner::Peer { card, bar }) => {
                    let (name, within) = self.storage(bar, offset, bytes)?;
                    self.board.region_of_mut(card.into(), &name)?.memory.read(within, &mut meant);
                    self.board.engine_mut(transfer.card.into())?.sink.read(offset, &mut found);
                }
                (Verb::Load, Partner::Host) => {
                    self.board.memory_mut().read(offset, &mut meant);
                    self.board.engine_mut(transfer.card.into())?.sink.read(offset, &mut found);
                }
                (Verb::Store, Partner::Host) => {
                    self.board.memory_mut().read(offset, &mut found);
                    stored_bytes(self.board.mapped_at() + offset, self.passes_done - 1, &mut meant);
                }
                (Verb::Store, Partner::Peer { card, bar }) => {
                    let (name, within) = self.storage(bar, offset, bytes)?;
                    let region = self.board.region_of_mut(card.into(), &name)?;
                    let bus = region.spec.address + within;
                    region.memory.read(within, &mut found);
                    stored_bytes(bus, self.passes_done - 1, &mut meant);
                }
            }
            confirmed += found.iter().zip(&meant).filter(|(found, meant)| found == meant).count() as u64;
        }
        Some(Confirmed { claimed_bytes: touched, confirmed_bytes: confirmed })
    }

    /// Compares both ends of the transfers of a job.
    fn confirm_job(&mut self, job: &EngineJob, passes: u64) -> Option<Confirmed> {
        let mut all = Confirmed { claimed_bytes: 0, confirmed_bytes: 0 };
        for transfer in job.directions() {
            let confirmed = self.confirm_transfer(&transfer, passes)?;
            all.claimed_bytes += confirmed.claimed_bytes;
            all.confirmed_bytes += confirmed.confirmed_bytes;
        }
        Some(all)
    }

    /// Returns the storage region of a card that holds these bytes, and their offset in it.
    fn storage(&self, bar: u8, offset: u64, bytes: u64) -> Option<(String, u64)> {
        let region = self.platform.region_at(bar, offset, bytes)?;
        let keeps = !matches!(region.kind.value, Kind::Fifo | Kind::Registers);
        keeps.then(|| (region.name.clone(), offset - region.offset_bytes.value))
    }

    /// Compares the region with the bytes that the last iteration of the only stream stored.
    fn confirm(&mut self, plan: &Plan) -> Option<Confirmed> {
        let steps = match &plan.work {
            Work::Queue(QueueWork { request: QueueRequest::Copy(copy), .. }) => return self.confirm_moved(copy),
            Work::Queue(QueueWork { request: QueueRequest::SmallCopies(copies), .. }) => {
                return self.confirm_small_copies(copies);
            }
            Work::Queue(QueueWork { request: QueueRequest::Compute(_), .. }) => return self.computed.take(),
            Work::Relay(relay) => return Some(self.confirm_relay(relay)),
            Work::Engines(EngineWork { jobs, .. }) => {
                let [job] = jobs.as_slice() else { return None };
                return self.confirm_job(job, plan.passes);
            }
            Work::Cores(CoreWork { lanes, .. }) => match lanes.as_slice() {
                [Lane { task: Task::DmaCall(call), .. }] => return self.confirm_transfer(&call.transfer, plan.passes),
                [Lane { task: Task::Steps(steps), .. }] => steps,
                _ => return None,
            },
            Work::Queue(_) | Work::Exchange(_) => return None,
        };
        let (span, bus) = self.stored_by(steps)?;
        let region = self.platform.region_at(span.at.bar, span.at.offset, span.len)?;
        let (name, offset) = (region.name.clone(), span.at.offset - region.offset_bytes.value);
        let turn = self.passes_done - 1;
        let region = self.board.region_mut(&name)?;
        let (mut found, mut meant) = ([0; 4096], [0; 4096]);
        let mut confirmed = 0;
        for done in (0..span.len).step_by(found.len()) {
            let len = (span.len - done).min(found.len() as u64) as usize;
            region.memory.read(offset + done, &mut found[..len]);
            stored_bytes(bus + done, turn, &mut meant[..len]);
            confirmed += found[..len].iter().zip(&meant[..len]).filter(|(found, meant)| found == meant).count() as u64;
        }
        Some(Confirmed { claimed_bytes: span.len, confirmed_bytes: confirmed })
    }

    /// The bytes of storage that the only moving step stores, each address once, and their bus address; `None` for other steps.
    fn stored_by(&self, steps: &[Step]) -> Option<(Span, u64)> {
        let mut moving = steps.iter().filter(|step| step.bytes() > 0);
        let (Some(Step::Stream(stream)), None) = (moving.next(), moving.next()) else { return None };
        if stream.verb != Verb::Store || matches!(stream.order, Order::SameAddress { .. }) {
            return None;
        }
        let at = stream.span.at;
        let region = self.platform.region_at(at.bar, at.offset, stream.span.len)?;
        let keeps = !matches!(region.kind.value, Kind::Fifo | Kind::Registers);
        let bus = self.platform.bar(at.bar)?.address_bytes.value + at.offset;
        keeps.then_some((stream.span, bus))
    }
}

impl Machine for SimulatedMachine {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        plan.check().map_err(|impossible| impossible.on(&self.facts.name))?;
        if self.is_compiled() { self.check_compiled(&plan.work) } else { self.check_work(&plan.work) }
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        self.check(plan)?;
        let done = self.run_samples(plan, samples);
        if matches!(done, Err(MachineError::Interrupted { .. })) {
            self.board.stop();
        }
        self.after_compiled(done)
    }

    fn slowest_sample(&self, plan: &Plan) -> Ticks {
        self.slowest_compiled(plan)
    }

    fn injected_faults(&self) -> Vec<InjectedFault> {
        self.board.injected_faults(&self.platform)
    }
}

impl SimulatedMachine {
    /// Returns the driver call that a runtime makes for a request, if it makes one.
    fn call_of(&self, request: &QueueRequest) -> Option<DmaCall> {
        match request {
            QueueRequest::Copy(copy) => Some(self.board.parts(copy)?.call),
            QueueRequest::SmallCopies(copies) => Some(self.board.group(copies)?.call),
            QueueRequest::Launch(_) | QueueRequest::Compute(_) => None,
        }
    }

    /// Returns the traffic of both directions of the link of the first participating card.
    fn crossed(&mut self, plan: &Plan) -> [Crossed; 2] {
        let card = match &plan.work {
            Work::Engines(engines) => engines.jobs.first().map(|job| job.transfer().card),
            Work::Cores(_) => plan.work.dma_calls().next().map(|call| call.transfer.card),
            Work::Relay(relay) => relay.cards.first().copied(),
            Work::Exchange(_) | Work::Queue(_) => None,
        };
        self.board.crossed(card.unwrap_or(0).into()).into()
    }

    /// Adds the traffic of the links in a sample of this length.
    fn add_links(&self, samples: &mut Samples, span: Ticks, carried: &[Carried]) {
        if samples.links.is_empty() {
            let both = [Direction::Downstream, Direction::Upstream];
            let names = self.board.link_names().into_iter();
            let idle = names.flat_map(|name| both.map(|direction| LinkUse::idle(name, direction)));
            samples.links.extend(idle);
        }
        for (link, carried) in samples.links.iter_mut().zip(carried) {
            link.span += span;
            link.tlps += carried.tlps;
            link.dllps += carried.dllps;
            link.payload_bytes += carried.payload_bytes;
        }
    }

    /// Adds the use of the other resources of the board in a sample of this length; of several alike, such as the
    /// memory of each root port, the busiest.
    fn add_resources(&self, samples: &mut Samples, span: Ticks, busy: &[Ticks]) {
        let mut busiest: Vec<(Resource, Ticks)> = Vec::new();
        for (resource, busy) in self.board.resources().into_iter().zip(busy) {
            match busiest.iter_mut().find(|(other, _)| *other == resource) {
                Some((_, most)) => *most = (*most).max(*busy),
                None => busiest.push((resource, *busy)),
            }
        }
        for (Resource { place, cause, direction, servers }, busy) in busiest {
            samples.add_resource(ResourceUse {
                place: self.board.name_of(place),
                cause,
                direction,
                servers,
                span,
                busy,
            });
        }
    }

    /// Adds the use of the memory ports of the card by kernels in a sample of this length.
    fn add_port(&mut self, samples: &mut Samples, span: Ticks) {
        let Some(busy) = self.port_busy.take() else { return };
        let place = self.board.name_of(Place::card(CardIndex::FIRST));
        let (cause, direction, servers) = (Cause::MemoryPort, None, 1);
        samples.add_resource(ResourceUse { place, cause, direction, servers, span, busy });
    }

    fn run_samples(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        samples.clear();
        self.steady = None;
        self.board.invalidate_shared();
        let mut waits = [Ticks::ZERO; Cause::ALL.len()];
        let mut traffic = Traffic::default();
        let before = (!plan.work.before().is_empty()).then(|| {
            let core = plan.work.lanes().first().map_or(0, |lane| lane.core);
            let lanes = vec![Lane { core, task: Task::Steps(plan.work.before().to_vec()) }];
            Plan { work: lanes.into(), ..plan.clone() }
        });
        for _ in 0..samples.count_wanted() {
            self.board.quiesce();
            self.board.clear_translations();
            // If the plan fails before the sample, the trace covers that part.
            self.observe()?;
            self.prepare_compiled(plan)?;
            if let Some(before) = &before {
                self.run_passes(before, 1)?;
            }
            if plan.warmup_passes > 0 {
                self.run_passes(plan, plan.warmup_passes)?;
            }
            // DLLPs scheduled by the previous sample do not belong to this one.
            self.board.quiesce();
            self.observe()?;
            let (before, unused) = (self.crossed(plan), self.board.used(Ticks::ZERO));
            let began = self.board.now();
            let repaired = self.corrected();
            self.board.begin_path();
            let done = self.run_passes(plan, plan.passes);
            self.board.end_path();
            let (sample, waited) = done?;
            let mut after = self.crossed(plan);
            let left_out = self.left_out.take();
            if let Some(left_out) = &left_out {
                after.iter_mut().zip(left_out.crossed).for_each(|(after, left_out)| after.add(left_out));
            }
            for (before, after) in before.into_iter().zip(after) {
                traffic.write_tlps += after.writes - before.writes;
                traffic.read_tlps += after.reads - before.reads;
                traffic.completion_tlps += after.completions - before.completions;
                traffic.payload_bytes += after.payload_bytes - before.payload_bytes;
            }
            // If the first completion was not observed, the traffic up to the last one is used.
            let is_common = self.used.is_some();
            let skipped = left_out.as_ref().map_or(Ticks::ZERO, |left_out| left_out.span);
            let ended = began + sample.delivered.since(skipped);
            let mut used = self.used.take().unwrap_or_else(|| self.board.used(ended));
            if let Some(left_out) = &left_out {
                used.add(&left_out.used);
            }
            let span = if is_common { self.together.as_ref().map(|together| together.common) } else { None };
            let span = span.unwrap_or(sample.delivered);
            let used = used.since(&unused);
            self.add_links(samples, span, &used.links);
            self.add_resources(samples, span, &used.busy);
            self.add_port(samples, span);
            self.add_corrected(samples, &repaired);
            if let Some(EngineJob::Transfer(transfer)) = plan.work.jobs().first()
                && let Some(engine) = self.board.engine(transfer.card.into())
            {
                samples.latencies.extend_from_slice(&engine.latencies);
            }
            samples.taken.push(sample);
            samples.add_path(&self.path);
            waits.iter_mut().zip(waited).for_each(|(sum, span)| *sum += span);
        }
        samples.waits = Cause::ALL
            .into_iter()
            .zip(waits)
            .filter(|(_, span)| *span > Ticks::ZERO)
            .map(|(cause, span)| Wait { cause, span })
            .collect();
        samples.traffic = Some(traffic);
        samples.resources.retain(|resource| resource.busy > Ticks::ZERO);
        samples.links.retain(|link| link.tlps > Ticks::ZERO || link.dllps > Ticks::ZERO);
        samples.confirmed = if self.is_compiled() { self.confirm_compiled(plan)? } else { self.confirm(plan) };
        samples.together = self.together.take();
        samples.steady = self.steady.take();
        Ok(())
    }
}
