//! A simulated platform as a [`Machine`].

mod compute;
mod corrected;
mod facts;
mod failure;
mod laps;
mod refused;
mod relay;
mod runtime;
mod tracing;

use self::failure::Before;
use self::laps::{Laps, LeftOut};
use crate::board::{Board, Carried};
use crate::callers::Callers;
use crate::device::dma_engine::DmaEngine;
use crate::error::BoardError;
use crate::fabric::link::Crossed;
use crate::fast_forward::Search;
use crate::host::stored_data::stored_bytes;
use lanemark_config_space::LoggedError;
use lanemark_machine::{
    BytesMoved, Cause, Concurrent, Confirmed, Direction, DmaCall, Facts, InjectedFault, Lane, LinkUse, Machine,
    MachineError, OnChannels, Op, Order, Partner, Pattern, Placement, Plan, Region, Sample, Samples, Span, Steady,
    Trace, Traffic, Transfer, Unsupported, Verb, Wait, WriteRead,
};
use lanemark_platform::{Platform, RegionKind as Kind};
use lanemark_units::Ticks;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of events between two polls of the interrupt flag.
const LOOK_EVERY: u32 = 1 << 16;

/// Upper limit of iterations: a run that was to do more was interrupted before.
const MOST_PASSES: u64 = 1 << 40;

/// Stall times, by [`Cause::index`].
type Waits = [Ticks; Cause::ALL.len()];

/// A simulated platform.
///
/// Every sample starts on an idle board and keeps its memory. The samples of a plan are therefore equal, unless the
/// plan makes them differ.
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
    /// Traffic of the links up to the time when the first card was done.
    carried: Option<Vec<Carried>>,
    interrupted: Option<Arc<AtomicBool>>,
    /// Iterations of the last run that were skipped.
    left_out: Option<LeftOut>,
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
            facts: facts::facts(platform),
            board: Board::new(platform)?,
            platform: platform.clone(),
            passes_done: 0,
            passes_of_last_run: 0,
            together: None,
            carried: None,
            interrupted: None,
            left_out: None,
            logged: Vec::new(),
            tracing: None,
            traces_dllps: false,
            trace_to_failure: None,
            computed: None,
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
        for op in plan.lanes.iter().flat_map(|lane| &lane.body).chain(&plan.before) {
            span_of(op).map_or(Ok(()), |span| self.check_span(span))?;
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

    /// Runs the DMA transfers of the lanes, `passes` iterations.
    fn run_transfers(&mut self, plan: &Plan, passes: u64) -> Result<(Sample, Waits), MachineError> {
        let start = self.board.now();
        let deadline = start + plan.timeout;
        let before_all = Before::of(plan, &self.board);
        for op in plan.lanes.iter().flat_map(|lane| &lane.body) {
            let started = match op {
                Op::Transfer(transfer) => self.board.start_transfer(transfer, passes, self.passes_done),
                Op::WriteRead(pairs) => self.board.start_pairs(pairs, passes, self.passes_done),
                Op::OnChannels(dealt) => self.board.start_dealt(dealt, passes, self.passes_done),
                _ => Ok(()),
            };
            started.map_err(|because| self.unsupported("a transfer by a card", because))?;
        }
        self.passes_done += passes.min(MOST_PASSES);
        let mut stop = self.stop();
        let moving: Vec<Transfer> = jobs(plan).flat_map(legs).collect();
        let before: Vec<u64> = moving.iter().map(|transfer| self.board.moved(transfer).0).collect();
        let moved = |board: &Board| -> Vec<u64> {
            moving.iter().zip(&before).map(|(transfer, before)| board.moved(transfer).0 - before).collect()
        };
        let mut common: Option<(Ticks, Vec<u64>)> = None;
        let mut carried: Option<Vec<Carried>> = None;
        let mut search = Search::new(&self.board, deadline, self.skips);
        let mut is_over = false;
        let all_arrived = self.board.run_while(deadline, |board| {
            search.look(board);
            if moving.len() > 1 && common.is_none() {
                let moved = moved(board);
                let is_done = |(moved, transfer): (&u64, &Transfer)| *moved >= transfer.bytes_of_pass() * passes;
                if let Some(done) = moved.iter().zip(&moving).position(is_done) {
                    // Written data becomes visible a little after its acceptance.
                    common = Some((board.moved(&moving[done]).1.max(board.now()), moved));
                    carried = Some(board.carried());
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
        let ended = of_first.map(|transfer| self.board.moved(transfer).1).max().unwrap_or(start);
        let all = moved(&self.board);
        for (transfer, bytes) in moving.iter().zip(&all) {
            let wanted = transfer.bytes_of_pass().saturating_mul(passes);
            if *bytes != wanted {
                let what = format!(
                    "{}: {bytes} of {wanted} bytes of card {} came to an end: nothing is there to take the others",
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
        (self.together, self.carried) = (together, carried);
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

    /// Runs the lanes for `passes` iterations; then write-combining buffers are evicted and accepted.
    fn run_passes(&mut self, plan: &Plan, passes: u64) -> Result<(Sample, Waits), MachineError> {
        self.board.quiesce();
        let remote = self.platform.memory.as_ref().map_or(Ticks::ZERO, |memory| memory.remote_ns.value);
        self.board.find_memory(plan.memory, remote);
        if let Some(relay) = relay::relay(plan) {
            return self.run_relay(plan, relay, passes);
        }
        if jobs(plan).next().is_some() {
            return self.run_transfers(plan, passes);
        }
        if let Some(compute) = compute::compute(plan) {
            return self.run_compute(plan, compute, passes);
        }
        let start = self.board.now();
        let deadline = start + plan.timeout;
        let before = Before::of(plan, &self.board);
        for lane in &plan.lanes {
            self.board.start(lane, passes, self.passes_done);
        }
        self.passes_of_last_run = passes.min(MOST_PASSES);
        self.passes_done += self.passes_of_last_run;
        let cores = |board: &Board, busy: fn(&crate::host::core::Core) -> bool| {
            plan.lanes.iter().any(|lane| busy(board.core(lane.core as usize)))
        };
        let mut stop = self.stop();
        let mut watch = Callers::of(plan, &self.board);
        let mut laps = Laps::of(plan, &self.board, passes, self.skips);
        let mut ended = false;
        let mut until = Ticks::NEVER;
        // Repeat if iterations were skipped: the deadline is earlier by their time.
        while until > deadline - laps.span() {
            until = deadline - laps.span();
            ended = self.board.run_while(until, |board| {
                watch.look(board);
                let leaves_out = laps.look(board, passes, deadline);
                cores(board, |core| !core.is_done()) && !board.has_failed() && !stop() && !leaves_out
            });
        }
        if self.board.has_failed() || !ended || self.board.has_refused_page() {
            self.failure(plan, passes, &before)?;
        }
        if !ended {
            let waiting_for = self.board.core(plan.lanes[0].core as usize).waiting_for();
            return Err(self.timeout(plan, waiting_for));
        }
        if cores(&self.board, |core| !core.is_done()) {
            return Err(MachineError::Interrupted { machine: self.facts.name.clone() });
        }
        let first = plan.lanes[0].core as usize;
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
        let called = plan.lanes[0].body.iter().find_map(|op| self.call_of(op));
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
        let last = plan.lanes.iter().map(|lane| self.board.core(lane.core as usize).issued_at()).max().unwrap_or(start);
        self.board.run_until(last);
        for lane in &plan.lanes {
            self.board.flush(lane.core as usize);
        }
        let ended = self.board.run_while(deadline + plan.timeout, |board| !board.is_idle());
        self.failure(plan, passes, &before)?;
        if !ended {
            return Err(self.timeout(plan, None));
        }
        self.together = watch.ended(&self.board, start);
        let stores = plan.lanes.iter().flat_map(|lane| &lane.body).any(stores);
        // With several driver calls, the last one to complete counts.
        let known =
            if calls(plan).next().is_some() || asked(plan).is_some() { last.since(start) + laps.span() } else { issue };
        self.left_out = laps.left_out().cloned();
        let delivered = if stores { self.board.endpoint().last_accepted.since(start) } else { known };
        Ok((Sample { issue, delivered: delivered.max(if stores { Ticks::ZERO } else { known }) }, waits))
    }

    /// Compares both ends of the only transfer: the bytes of the last iteration, or those read.
    fn confirm_transfer(&mut self, transfer: &Transfer, passes: u64) -> Option<Confirmed> {
        let Transfer { bytes, count, window, .. } = *transfer;
        if window.pattern != Pattern::Sequential {
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

    /// Returns the storage region of a card that holds these bytes, and their offset in it.
    fn storage(&self, bar: u8, offset: u64, bytes: u64) -> Option<(String, u64)> {
        let region = self.platform.region_at(bar, offset, bytes)?;
        let keeps = !matches!(region.kind.value, Kind::Fifo | Kind::Registers);
        keeps.then(|| (region.name.clone(), offset - region.offset_bytes.value))
    }

    /// Compares the region with the bytes that the last iteration of the only stream stored.
    fn confirm(&mut self, plan: &Plan) -> Option<Confirmed> {
        let [Lane { body, .. }] = plan.lanes.as_slice() else { return None };
        match body.as_slice() {
            [Op::MovedByRuntime(moved)] => return self.confirm_moved(moved),
            [Op::Relay(relay)] => return Some(self.confirm_relay(relay)),
            [Op::Compute(_)] => return self.computed.take(),
            _ => {}
        }
        if let [
            Op::Transfer(transfer) | Op::OnChannels(OnChannels { transfer, .. }) | Op::Dma(DmaCall { transfer, .. }),
        ] = body.as_slice()
        {
            return self.confirm_transfer(&transfer.clone(), plan.passes);
        }
        if let [Op::WriteRead(pairs)] = body.as_slice() {
            let [written, read] = [pairs.write, pairs.read()].map(|leg| self.confirm_transfer(&leg, plan.passes));
            let (written, read) = (written?, read?);
            return Some(Confirmed {
                claimed_bytes: written.claimed_bytes + read.claimed_bytes,
                confirmed_bytes: written.confirmed_bytes + read.confirmed_bytes,
            });
        }
        let stream = body.iter().find_map(|op| if let Op::Stream(stream) = op { Some(stream) } else { None })?;
        if stream.verb != Verb::Store
            || matches!(stream.order, Order::SameAddress { .. })
            || body.iter().filter(|op| op.bytes() > 0).count() != 1
        {
            return None;
        }
        let region = self.platform.region_at(stream.span.at.bar, stream.span.at.offset, stream.span.len)?;
        let (name, offset) = (region.name.clone(), stream.span.at.offset - region.offset_bytes.value);
        if matches!(region.kind.value, Kind::Fifo | Kind::Registers) {
            return None;
        }
        let bus = self.platform.bar(stream.span.at.bar)?.address_bytes.value + stream.span.at.offset;
        let turn = self.passes_done - 1;
        let region = self.board.region_mut(&name)?;
        let (mut found, mut meant) = ([0; 4096], [0; 4096]);
        let mut confirmed = 0;
        for done in (0..stream.span.len).step_by(found.len()) {
            let len = (stream.span.len - done).min(found.len() as u64) as usize;
            region.memory.read(offset + done, &mut found[..len]);
            stored_bytes(bus + done, turn, &mut meant[..len]);
            confirmed += found[..len].iter().zip(&meant[..len]).filter(|(found, meant)| found == meant).count() as u64;
        }
        Some(Confirmed { claimed_bytes: stream.span.len, confirmed_bytes: confirmed })
    }
}

/// Returns the DMA transfers of all lanes, with the reads that follow their writes.
fn jobs(plan: &Plan) -> impl Iterator<Item = (&Transfer, Option<&WriteRead>)> {
    let ops = plan.lanes.iter().flat_map(|lane| &lane.body);
    ops.filter_map(|op| match op {
        Op::Transfer(transfer) => Some((transfer, None)),
        Op::WriteRead(pairs) => Some((&pairs.write, Some(pairs))),
        Op::OnChannels(dealt) => Some((&dealt.transfer, None)),
        _ => None,
    })
}

/// Returns each direction of a job as a transfer.
fn legs((transfer, pairs): (&Transfer, Option<&WriteRead>)) -> impl Iterator<Item = Transfer> {
    std::iter::once(*transfer).chain(pairs.map(WriteRead::read))
}

/// Returns the driver calls of all lanes.
fn calls(plan: &Plan) -> impl Iterator<Item = &DmaCall> {
    let ops = plan.lanes.iter().flat_map(|lane| &lane.body);
    ops.filter_map(|op| if let Op::Dma(call) = op { Some(call) } else { None })
}

/// Returns the operation of a runtime, if there is one.
fn asked(plan: &Plan) -> Option<&Op> {
    let mut ops = plan.lanes.iter().flat_map(|lane| &lane.body);
    ops.find(|op| matches!(op, Op::Launch(_) | Op::MovedByRuntime(_)))
}

fn span_of(op: &Op) -> Option<&Span> {
    match op {
        Op::Stream(stream) => Some(&stream.span),
        Op::Driver(call) => Some(&call.span),
        Op::Map(span) | Op::FlushLines(span) => Some(span),
        _ => None,
    }
}

fn stores(op: &Op) -> bool {
    match op {
        Op::Stream(stream) => stream.verb == Verb::Store,
        Op::Driver(call) => call.verb == Verb::Store,
        _ => false,
    }
}

impl Machine for SimulatedMachine {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        if plan.lanes.is_empty() || plan.passes == 0 {
            return Err(self.unsupported("an empty plan", "there is nothing to time"));
        }
        if plan.placement == Placement::Unpinned {
            return Err(self.unsupported("a thread that is not pinned", "here is no system that would move it"));
        }
        for (place, lane) in plan.lanes.iter().enumerate() {
            if lane.core >= self.facts.cores {
                return Err(self.unsupported(
                    format!("core {}", lane.core),
                    format!("it has {} cores, and each flow or thread takes one", self.facts.cores),
                ));
            }
            if plan.lanes[..place].iter().any(|other| other.core == lane.core) {
                return Err(self.unsupported("two lanes on one core", "each core runs one lane"));
            }
            lane.body.iter().try_for_each(|op| self.check_op(op))?;
        }
        if jobs(plan).next().is_some() {
            let is_alone =
                |lane: &Lane| matches!(lane.body[..], [Op::Transfer(_) | Op::WriteRead(_) | Op::OnChannels(_)]);
            let alone = plan.before.is_empty() && plan.lanes.iter().all(is_alone);
            if !alone {
                let because = "a card keeps the time of its transfers itself: a lane is one transfer and nothing else";
                return Err(self.unsupported("a transfer by a card beside other steps", because));
            }
            let cards: Vec<u32> = jobs(plan).map(|(transfer, _)| transfer.card).collect();
            if (1..cards.len()).any(|place| cards[..place].contains(&cards[place])) {
                return Err(self.unsupported("two transfers of one card at once", "each card makes one at a time here"));
            }
        }
        self.check_memory(plan)?;
        if relay::relay(plan).is_some() {
            let is_alone = plan.lanes.len() == 1 && plan.lanes[0].body.len() == 1 && plan.before.is_empty();
            if !is_alone {
                return Err(self.unsupported("a relay by cards beside other steps", "cards keep its time themselves"));
            }
        }
        self.check_alone(plan)?;
        let channels: Vec<[u32; 2]> = calls(plan).map(|call| [call.transfer.card, call.channel]).collect();
        if (1..channels.len()).any(|place| channels[..place].contains(&channels[place])) {
            let because = "its driver makes one call at a time on each channel; others may call on others";
            return Err(self.unsupported("two driver calls for one channel of a card at once", because));
        }
        if plan.lanes.iter().any(|lane| lane.body.iter().filter(|op| matches!(op, Op::Dma(_))).count() > 1) {
            return Err(
                self.unsupported("a core with several cards", "each core calls the driver of one channel of one card")
            );
        }
        if plan.before.iter().any(|op| matches!(op, Op::Dma(_))) {
            return Err(self.unsupported("a driver call before the first time stamp", "it is what is timed"));
        }
        self.check_asked(plan)?;
        plan.before.iter().try_for_each(|op| self.check_op(op))?;
        Ok(())
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        self.check(plan)?;
        let done = self.run_samples(plan, samples);
        if matches!(done, Err(MachineError::Interrupted { .. })) {
            self.board.stop();
        }
        done
    }

    fn injected_faults(&self) -> Vec<InjectedFault> {
        self.board.injected_faults(&self.platform)
    }
}

impl SimulatedMachine {
    /// Returns the driver call of an operation, or the one that a runtime makes of it.
    fn call_of(&self, op: &Op) -> Option<DmaCall> {
        match op {
            Op::Dma(call) => Some(*call),
            Op::MovedByRuntime(asked) => Some(self.board.parts(asked)?.call),
            _ => None,
        }
    }

    /// Returns the traffic of both directions of the link of the first lane's card.
    fn crossed(&mut self, plan: &Plan) -> [Crossed; 2] {
        let called = calls(plan).map(|call| call.transfer.card);
        let relayed = relay::relay(plan).and_then(|relay| relay.cards.first().copied());
        let card = jobs(plan).map(|(transfer, _)| transfer.card).chain(called).next().or(relayed).unwrap_or(0);
        self.board.crossed(card.into()).into()
    }

    /// Adds the traffic of the links in a sample of this length.
    fn add_links(&self, samples: &mut Samples, span: Ticks, before: &[Carried], after: &[Carried]) {
        if samples.links.is_empty() {
            let both = [Direction::Downstream, Direction::Upstream];
            let names = self.board.link_names().into_iter();
            let idle = names.flat_map(|name| both.map(|direction| LinkUse::idle(name, direction)));
            samples.links.extend(idle);
        }
        for ((link, before), after) in samples.links.iter_mut().zip(before).zip(after) {
            link.span += span;
            link.tlps += after.tlps - before.tlps;
            link.dllps += after.dllps - before.dllps;
            link.payload_bytes += after.payload_bytes - before.payload_bytes;
        }
    }

    fn run_samples(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        samples.clear();
        self.steady = None;
        self.board.invalidate_shared();
        let mut waits = [Ticks::ZERO; Cause::ALL.len()];
        let mut traffic = Traffic::default();
        let core = plan.lanes[0].core;
        let before = (!plan.before.is_empty()).then(|| Plan {
            lanes: vec![Lane { core, body: plan.before.clone() }],
            before: Vec::new(),
            ..plan.clone()
        });
        for _ in 0..samples.count_wanted() {
            // If the plan fails before the sample, the trace covers that part.
            self.observe()?;
            if let Some(before) = &before {
                self.run_passes(before, 1)?;
            }
            if plan.warmup_passes > 0 {
                self.run_passes(plan, plan.warmup_passes)?;
            }
            // DLLPs scheduled by the previous sample do not belong to this one.
            self.board.quiesce();
            self.observe()?;
            let (before, unused) = (self.crossed(plan), self.board.carried());
            let repaired = self.corrected();
            let (sample, waited) = self.run_passes(plan, plan.passes)?;
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
            let is_common = self.carried.is_some();
            let mut used = self.carried.take().unwrap_or_else(|| self.board.carried());
            if let Some(left_out) = &left_out {
                used.iter_mut().zip(&left_out.carried).for_each(|(used, left_out)| used.add(left_out));
            }
            let span = if is_common { self.together.as_ref().map(|together| together.common) } else { None };
            let span = span.unwrap_or(sample.delivered);
            self.add_links(samples, span, &unused, &used);
            self.add_corrected(samples, &repaired);
            if let Some(Op::Transfer(transfer)) = plan.lanes[0].body.first()
                && let Some(engine) = self.board.engine(transfer.card.into())
            {
                samples.latencies.extend_from_slice(&engine.latencies);
            }
            samples.taken.push(sample);
            waits.iter_mut().zip(waited).for_each(|(sum, span)| *sum += span);
        }
        samples.waits = Cause::ALL
            .into_iter()
            .zip(waits)
            .filter(|(_, span)| *span > Ticks::ZERO)
            .map(|(cause, span)| Wait { cause, span })
            .collect();
        samples.traffic = Some(traffic);
        samples.links.retain(|link| link.tlps > Ticks::ZERO || link.dllps > Ticks::ZERO);
        samples.confirmed = self.confirm(plan);
        samples.together = self.together.take();
        samples.steady = self.steady.take();
        Ok(())
    }
}
