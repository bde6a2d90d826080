//! A board: connected parts of a platform, driven by three calls.
//!
//! ```text
//!  core 0..n --from_cores--> root complex --> root port --link--> [switch --link-->] endpoint --> regions
//!      ^  ^------ acks ----------+   ^          |    ^                                |   ^          |
//!      |                             |        memory |                                |   DMA engine |
//!      +------ completions ----------+---------------+--------- link <----------------+--------------+
//! ```
//!
//! [`Board::inject_write`] and [`Board::inject_read`] inject a TLP below the root, [`Board::run_until`] advances
//! time, [`Board::next_at`] returns the time of the next event. Endpoints and links work without a core; completions
//! of injected reads then go to [`Board::outbox`].
//!
//! A TLP sent on a link is delivered to the other end immediately, with its arrival time. TLPs of a link arrive in
//! order, so their arrival needs no event.

mod ats;
mod carried;
mod faults;
mod inject;
mod links;
mod mapping;
mod moved;
mod peers;
mod queues;
mod quiesce;
mod relay;
mod root;
mod runtime;
mod steady;

pub use carried::Carried;
pub use faults::{CutOff, Withheld};
pub use mapping::Invalidating;

use crate::device::dma_engine::{DmaEngine, Made};
use crate::device::endpoint::{Accepted, Endpoint};
use crate::device::job::Job;
use crate::device::region::Region;
use crate::error::BoardError;
use crate::fabric::credit::Cost;
use crate::fabric::link::Crossed;
use crate::fabric::route::Routes;
use crate::fabric::switch::Switch;
use crate::host::core::{Core, Seen};
use crate::host::last_level_cache::LastLevelCache;
use crate::host::peer_forwarder::{self, PeerForwarder};
use crate::host::program::{self, Program};
use crate::host::rc_ingress::RcIngress;
use crate::host::root_complex::{self, RootComplex};
use crate::host::root_port::RootPort;
use crate::index::{CardIndex, DirectionIndex, RootPortIndex};
use crate::iommu::{self, Iommu};
use crate::noticed::{Noticed, PortLimit};
use crate::observer::{Line, Observer};
use crate::ports::{Places, Port, endpoint_input, root_input};
use crate::requester::ROOT_COMPLEX;
use crate::tlp::{Tlp, TlpKind};
use crate::topology::{self, Direction, Topology};
use lanemark_engine::{Memory, Schedule, Slab, Slot, Wire};
use lanemark_machine::{
    Cause, EngineJob, Lane, OnChannels, Partner, QueueRequest, StallSite, Task, Trace, Transfer, Verb, WriteRead,
    Writer,
};
use lanemark_platform::Platform;
use lanemark_units::{Iova, Ticks};
use std::collections::VecDeque;

/// A TLP delivered to an endpoint, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Time at which it was checked at the endpoint; it is listed once it is accepted.
    pub at: Ticks,
    /// The TLP; its payload slot is no longer valid.
    pub tlp: Tlp,
    /// The first eight bytes of its payload.
    pub head: [u8; 8],
}

/// A root port without its link.
#[derive(Debug)]
struct Root {
    port: RootPort,
    /// Completions for cores, in flight on the link.
    upstream: Wire<Tlp>,
}

/// A simulation: a value that is independent of others.
#[derive(Debug)]
pub struct Board {
    now: Ticks,
    schedule: Schedule,
    places: Places,
    table: Vec<Port>,
    slab: Slab,
    cores: Vec<Core>,
    root_complex: RootComplex,
    /// Number of requests of cores that wait at root ports.
    waiting_requests: usize,
    roots: Vec<Root>,
    root_routes: Routes<RootPortIndex>,
    peers: PeerForwarder,
    ingress: RcIngress,
    iommu: Option<Iommu>,
    /// DMA memory, and the last-level cache.
    memory: Memory,
    cache: LastLevelCache,
    /// The last writer of the buffers that transfers use.
    written_by: Writer,
    /// Two directions for each link, the downstream one first.
    directions: Vec<Direction>,
    /// The ports of each direction, the sender first.
    ports: Vec<[PortLimit; 2]>,
    switches: Vec<Switch>,
    /// The directions that leave each switch, the upstream one first.
    switch_ports: Vec<Vec<DirectionIndex>>,
    endpoints: Vec<Endpoint>,
    /// The direction that leaves each endpoint.
    endpoint_up: Vec<DirectionIndex>,
    /// Bus address of the DMA memory, and of the BARs of each card.
    mapped_at: u64,
    bars_at: Vec<[u64; 6]>,
    program: program::Spec,
    /// For each card, the core that last called the driver of each channel, and the core that launched its kernels.
    callers: Vec<Vec<usize>>,
    /// Completions of injected reads.
    pub outbox: VecDeque<(Ticks, Tlp, [u8; 64])>,
    /// TLPs that endpoints accepted, while there is an observer.
    pub crossings: Option<Vec<Crossing>>,
    /// The observer that records a trace.
    observer: Option<Box<Observer>>,
    /// Number of TLPs without a route.
    pub lost: u64,
    /// Uncorrectable errors detected by ports since the last reset, the first one first.
    pub errors: Vec<Noticed>,
    /// Whether any failure occurred since then.
    has_failed: bool,
    /// Injected faults.
    faults: Option<Box<faults::Faults>>,
}

impl Board {
    /// Builds the board of a platform.
    ///
    /// # Errors
    /// [`BoardError`] if the platform names a link or a place that does not exist, which the file parser prevents.
    pub fn new(platform: &Platform) -> Result<Board, BoardError> {
        let fail = |because: &str| BoardError { platform: platform.name.clone(), because: because.to_owned() };
        let Topology {
            directions,
            ports,
            root_ports,
            root_routes,
            switches,
            switch_ports,
            endpoints,
            endpoint_up,
            bars_at,
        } = topology::build(platform).map_err(fail)?;
        let cores: Vec<Core> =
            (0..platform.core.cores.value).map(|number| Core::new(platform, number as u16)).collect();
        let (places, table) =
            Places::table(cores.len(), directions.len(), root_ports.len(), endpoints.len(), platform.regions.len());
        // Cores send a line at most; with DMA, TLPs are as long as the links allow.
        let is_moving = platform.dma.is_some() || endpoints.len() > 1;
        let slot_bytes = if is_moving { platform.largest_mps_bytes() as usize } else { 64 };
        let mut board = Board {
            now: Ticks::ZERO,
            schedule: Schedule::new(table.len()),
            places,
            table,
            slab: Slab::new(slot_bytes),
            root_complex: RootComplex::new(root_complex::Spec {
                from_core: (0..platform.core.cores.value)
                    .map(|core| platform.root_complex.core_round_trip_ns.value / 2 + platform.core_distance(core))
                    .collect(),
                queue_entries: platform.root_complex.posted_queue_entries.value as usize,
            }),
            waiting_requests: 0,
            peers: PeerForwarder::new(peers_of(platform), root_ports.len()),
            ingress: RcIngress::new(platform.root_complex.request_ns.value, root_ports.len()),
            iommu: iommu::Spec::of(platform).map(|spec| Iommu::new(spec, root_ports.len())),
            roots: root_ports.into_iter().map(|port| Root { port, upstream: Wire::default() }).collect(),
            root_routes,
            memory: Memory::default(),
            cache: root::cache_of(platform),
            written_by: Writer::default(),
            directions,
            faults: faults::Faults::new(platform, &ports),
            ports,
            switches,
            switch_ports,
            endpoints,
            endpoint_up,
            mapped_at: platform.memory.as_ref().map_or(0, |memory| memory.address_bytes.value),
            bars_at,
            program: program::Spec::new(platform),
            callers: vec![vec![0; platform.channels() as usize + 1]; platform.cards() as usize],
            cores,
            outbox: VecDeque::new(),
            crossings: None,
            observer: None,
            lost: 0,
            errors: Vec::new(),
            has_failed: false,
        };
        // With ATS or IOMMU faults, the table must be changeable.
        if platform.has_ats() || platform.faults.iter().any(|fault| fault.kind.value.is_of_iommu()) {
            board.make_table_changeable();
        }
        Ok(board)
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Ticks {
        self.now
    }

    /// Returns the time of the next event; `None` if there is none.
    #[must_use]
    pub fn next_at(&mut self) -> Option<Ticks> {
        self.schedule.first().map(|next| next.0)
    }

    /// Processes every event up to and including `until`.
    pub fn run_until(&mut self, until: Ticks) {
        while let Some((at, port)) = self.schedule.first()
            && at <= until
        {
            self.handle(at, port);
        }
        self.now = self.now.max(until);
    }

    /// Processes the next event; returns whether there was one.
    pub fn step(&mut self) -> bool {
        let Some((at, port)) = self.schedule.first() else { return false };
        self.handle(at, port);
        true
    }

    /// Processes events while `busy` returns true; returns false if time or events end before.
    pub fn run_while(&mut self, until: Ticks, mut busy: impl FnMut(&mut Board) -> bool) -> bool {
        while busy(self) {
            match self.schedule.first() {
                Some((at, port)) if at <= until => {
                    self.handle(at, port);
                }
                _ => return false,
            }
        }
        true
    }

    /// Starts the task of a lane on its core, `passes` iterations.
    pub fn start(&mut self, lane: &Lane, passes: u64, first_pass: u64) {
        let number = lane.core as usize;
        let mut program = Program::new(self.program.clone(), &lane.task, passes, first_pass);
        if let Task::DmaCall(call) = &lane.task {
            self.fill_cache(&call.transfer);
            let card = CardIndex::from(call.transfer.card);
            let endpoint = self.endpoints.get_mut(card.0);
            let armed = endpoint.and_then(|card| card.arm(self.now, call, self.mapped_at, passes, first_pass));
            if let Some(done) = armed {
                self.callers[card][call.channel as usize] = number;
                program = program.with_calls_from(done);
                program = self.pins(call.transfer.card).into_iter().fold(program, Program::with_pins);
            }
        }
        self.start_program(number, program);
    }

    /// Starts a request of core `core` to the runtime, `passes` iterations.
    pub fn start_request(&mut self, core: u32, request: &QueueRequest, passes: u64, first_pass: u64) {
        let program = Program::of_request(self.program.clone(), request, passes, first_pass);
        let program = self.arm_runtime(request, core as usize, passes, first_pass, program);
        self.start_program(core as usize, program);
    }

    fn start_program(&mut self, number: usize, program: Program) {
        self.cores[number].start(self.now, program);
        self.schedule.set(number, self.cores[number].due());
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

    /// Starts the DMA `transfer` of a card, `passes` iterations.
    ///
    /// # Errors
    /// The reason, if the card or the target does not exist.
    pub fn start_transfer(&mut self, transfer: &Transfer, passes: u64, first_pass: u64) -> Result<(), &'static str> {
        let job = self.job_of(transfer, passes, first_pass)?;
        self.fill_cache(transfer);
        self.start_on(transfer.card.into(), 0, |engine, now| engine.start(now, 0, job))
    }

    /// Starts a DMA transfer with offset 0 of its window at an IOVA.
    ///
    /// # Errors
    /// As [`Board::start_transfer`].
    pub fn start_transfer_at(&mut self, transfer: &Transfer, at: Iova, passes: u64) -> Result<(), &'static str> {
        let job = self.job_at(at.0, transfer, passes, 0)?;
        self.start_on(transfer.card.into(), 0, |engine, now| engine.start(now, 0, job))
    }

    /// Starts DMA writes of a card to host memory, each followed by a read, `passes` iterations.
    ///
    /// # Errors
    /// As [`Board::start_transfer`], or if it does not write to host memory.
    pub fn start_pairs(&mut self, pairs: &WriteRead, passes: u64, first_pass: u64) -> Result<(), &'static str> {
        let write = &pairs.write;
        if (write.verb, write.partner) != (Verb::Store, Partner::Host) {
            return Err("the write must be to host memory, which is then read");
        }
        let job = self.job_of(write, passes, first_pass)?.with_reads(pairs);
        self.fill_cache(write);
        self.fill_cache(&pairs.read());
        self.start_on(write.card.into(), 0, |engine, now| engine.start(now, 0, job))
    }

    /// Starts DMA transfers on several channels of a card, `passes` iterations.
    ///
    /// # Errors
    /// As [`Board::start_transfer`].
    pub fn start_dealt(&mut self, dealt: &OnChannels, passes: u64, first_pass: u64) -> Result<(), &'static str> {
        let channels = dealt.channels as usize;
        self.fill_cache(&dealt.transfer);
        for channel in 0..channels {
            let job = self.job_of(&dealt.transfer, passes, first_pass)?.dealt(channel as u64, channels as u64);
            let card = CardIndex::from(dealt.transfer.card);
            self.start_on(card, channel, |engine, now| engine.start(now, channel, job))?;
        }
        Ok(())
    }

    /// Creates a job with no transfer released.
    fn job_of(&self, transfer: &Transfer, passes: u64, first_pass: u64) -> Result<Job, &'static str> {
        let base = match transfer.partner {
            Partner::Host => self.mapped_at,
            Partner::Peer { card, bar } => {
                let bars = self.bars_at.get(card as usize).ok_or("there is no such peer")?;
                *bars.get(usize::from(bar)).ok_or("a peer has BARs 0 to 5")?
            }
        };
        self.job_at(base, transfer, passes, first_pass)
    }

    fn job_at(&self, base: u64, transfer: &Transfer, passes: u64, first_pass: u64) -> Result<Job, &'static str> {
        let engine = self.engine(transfer.card.into()).ok_or("its card has no DMA engine")?;
        Ok(Job::new(transfer, base, passes, first_pass, engine.most_bytes()))
    }

    /// Starts a job on a channel of a card.
    fn start_on(
        &mut self,
        card: CardIndex,
        channel: usize,
        start: impl FnOnce(&mut DmaEngine, Ticks),
    ) -> Result<(), &'static str> {
        let now = self.now;
        let engine = self.engine_mut(card).ok_or("its card has no DMA engine")?;
        if channel >= engine.channels() {
            return Err("its DMA engine has no such channel");
        }
        start(engine, now);
        self.refresh_issue(card);
        Ok(())
    }

    /// Returns the DMA engine of a card.
    #[must_use]
    pub fn engine(&self, card: CardIndex) -> Option<&DmaEngine> {
        self.endpoints.get(card.0)?.dma.as_ref()
    }

    /// Returns the DMA engine of a card for writing, for example to read its received bytes.
    pub fn engine_mut(&mut self, card: CardIndex) -> Option<&mut DmaEngine> {
        self.endpoints.get_mut(card.0)?.dma.as_mut()
    }

    /// Returns the DMA memory.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Returns the bus address of the DMA memory.
    #[must_use]
    pub fn mapped_at(&self) -> u64 {
        self.mapped_at
    }

    /// Ends every lane and every transfer; outstanding requests complete.
    pub fn stop(&mut self) {
        for card in self.each_card() {
            if let Some(engine) = &mut self.endpoints[card].dma {
                engine.stop();
                self.refresh_issue(card);
                self.refresh_queues(card);
            }
        }
        self.stop_kernels();
        self.stop_cores();
        while self.step() {}
    }

    fn stop_cores(&mut self) {
        for number in 0..self.cores.len() {
            self.cores[number].stop();
            self.schedule.set(number, self.cores[number].due());
            self.flush(number);
        }
    }

    /// Evicts the write-combining buffers of core `number`, as a fence would.
    pub fn flush(&mut self, number: usize) {
        let (now, root_complex) = (self.now, &mut self.root_complex);
        self.cores[number].flush(&mut self.slab, |tlp| root_complex.request(now, tlp));
        self.invalidate_others(number);
        self.refresh_requests();
    }

    /// Returns a core.
    #[must_use]
    pub fn core(&self, number: usize) -> &Core {
        &self.cores[number]
    }

    /// Returns the number of cores.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Records the loads of core `number` from now on.
    pub fn observe_loads(&mut self, number: usize) {
        self.cores[number].seen = Some(Vec::new());
    }

    /// Returns the recorded loads of core `number`.
    #[must_use]
    pub fn loads_seen(&self, number: usize) -> &[Seen] {
        self.cores[number].seen.as_deref().unwrap_or_default()
    }

    /// Starts a trace of the last `most` frames and as many stalls; at most [`Trace::MOST`].
    ///
    /// # Errors
    /// [`BoardError`] if `platform`, the one of the board, has more buses than a trace can name.
    pub fn observe(&mut self, platform: &Platform, most: usize) -> Result<(), BoardError> {
        let lines = self.directions.iter().map(|line| Line { from: line.from, to: line.to }).collect();
        self.observer = Some(Box::new(Observer::new(platform, lines, &self.bars_at, self.now, most)?));
        Ok(())
    }

    /// Also records the last `most` DLLPs of each direction.
    pub fn observe_dllps(&mut self, most: usize) {
        let most = most.min(Trace::MOST);
        self.directions.iter_mut().for_each(|direction| direction.transmitter.watch_dllps(most));
    }

    /// Ends the trace and returns it; empty without [`Board::observe`]. On an idle board it includes the DLLPs that
    /// no sender waits for.
    pub fn take_trace(&mut self) -> Trace {
        self.deliver_all_dllps();
        self.quiesce();
        let watched = self.directions.iter_mut().enumerate().filter_map(|(number, direction)| {
            let (watch, on_line) = direction.transmitter.take_watched()?;
            Some((DirectionIndex(number), watch, on_line))
        });
        self.observer.take().map_or_else(Trace::default, |observer| observer.into_trace(watched))
    }

    /// Returns the first endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoints[0]
    }

    /// Returns an endpoint.
    #[must_use]
    pub fn card(&self, card: CardIndex) -> Option<&Endpoint> {
        self.endpoints.get(card.0)
    }

    /// Returns the number of endpoints.
    #[must_use]
    pub fn cards(&self) -> usize {
        self.endpoints.len()
    }

    /// Returns the index of each endpoint.
    pub fn each_card(&self) -> impl DoubleEndedIterator<Item = CardIndex> + use<> {
        (0..self.endpoints.len()).map(CardIndex)
    }

    /// Returns a region of the first endpoint, with its bytes and counters.
    pub fn region_mut(&mut self, name: &str) -> Option<&mut Region> {
        self.endpoints[0].region_mut(name)
    }

    /// Returns a region of an endpoint, with its bytes and counters.
    pub fn region_of_mut(&mut self, card: CardIndex, name: &str) -> Option<&mut Region> {
        self.endpoints.get_mut(card.0)?.region_mut(name)
    }

    /// Returns the traffic of a card's link, downstream and upstream.
    pub fn crossed(&mut self, card: CardIndex) -> (Crossed, Crossed) {
        self.deliver_all_dllps();
        let up = self.endpoint_up[card];
        (self.directions[up.opposite()].transmitter.crossed, self.directions[up].transmitter.crossed)
    }

    /// Returns the number of TLPs on links, counted on each link.
    #[must_use]
    pub fn hops(&self) -> u64 {
        let crossed = |direction: &Direction| direction.transmitter.crossed;
        self.directions.iter().map(crossed).map(|crossed| crossed.writes + crossed.reads + crossed.completions).sum()
    }

    /// Resets the coherent memory of every core: the caches hold every shared line.
    pub fn invalidate_shared(&mut self) {
        self.cores.iter_mut().for_each(Core::invalidate_shared);
    }

    /// Returns whether no event is due.
    #[must_use]
    pub fn is_idle(&mut self) -> bool {
        self.schedule.first().is_none()
    }

    /// Returns the number of payload slots in use; 0 if the board is idle and no store is gathered.
    #[must_use]
    pub fn slots_in_use(&self) -> usize {
        self.slab.in_use()
    }

    // The port is a constant at each call, so its index compiles to a sum.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn set(&mut self, port: Port, at: Ticks) {
        self.schedule.set(self.places.of(port), at);
    }

    #[inline]
    fn refresh_requests(&mut self) {
        self.set(Port::Requests, self.root_complex.due(self.waiting_requests));
    }

    fn handle(&mut self, at: Ticks, port: usize) {
        debug_assert!(at >= self.now, "{:?} is due at {at:?}, and it is {:?}", self.table[port], self.now);
        self.now = at;
        match self.table[port] {
            Port::Core(number) => self.run_core(number),
            Port::Requests => self.take_requests(),
            Port::Send(direction) => self.send(direction),
            Port::Take(port) => self.take_at_root(port),
            Port::Fetched(port) => self.fetched(port),
            Port::Return(port) => self.receive_completion(port),
            Port::Completions => self.complete(),
            Port::Peers => self.take_peers(),
            Port::RcIngress => self.take_in(),
            Port::Iommu => self.translate(),
            Port::Accept(card) => self.accept(card),
            Port::Issue(card) => self.issue(card),
            Port::Data(card) => self.take_data(card),
            Port::Carry(card) => self.carry(card),
            Port::Kernels(card) => self.end_kernel(card),
            Port::Answer(card, region) => self.answer(card, region),
            Port::Timeouts => self.give_up(),
        }
    }

    #[inline(never)]
    fn run_core(&mut self, number: usize) {
        let (now, root_complex) = (self.now, &mut self.root_complex);
        let core = &mut self.cores[number];
        let waits = self.observer.as_ref().map(|_| core.waits);
        core.execute(now, &mut self.slab, |tlp| root_complex.request(now, tlp));
        self.schedule.set(number, core.due());
        if let Some(before) = waits {
            self.observe_core(number, &before);
        }
        self.invalidate_others(number);
        self.copy_for(number);
        self.refresh_requests();
    }

    #[cold]
    fn observe_core(&mut self, number: usize, before: &[Ticks; Cause::ALL.len()]) {
        if let Some(observer) = &mut self.observer {
            observer.waited(StallSite::Core(number as u32), self.now, before, &self.cores[number].waits);
        }
    }

    /// Invalidates the lines that core `number` stored to in the other cores.
    #[inline]
    fn invalidate_others(&mut self, number: usize) {
        while let Some(line) = self.cores[number].invalidate.pop() {
            for (place, core) in self.cores.iter_mut().enumerate() {
                if place != number {
                    core.invalidate_line(line);
                }
            }
        }
    }

    /// Sends a request of a core to the root port above its completer.
    #[inline]
    fn request(&mut self, at: Ticks, tlp: Tlp) {
        self.waiting_requests += 1;
        self.offer(self.root_port_of(tlp.address).down(), root_input::CORES, at, tlp);
    }

    /// Returns the root port above an address; the first one for an address that is below none.
    #[inline]
    fn root_port_of(&self, address: u64) -> RootPortIndex {
        let found = if self.roots.len() == 1 { None } else { self.root_routes.of_address(address) };
        found.unwrap_or(RootPortIndex::FIRST)
    }

    /// Accepts arrived requests while the root complex has space, and schedules their acknowledgments.
    #[inline]
    fn take_requests(&mut self) {
        while self.root_complex.due(self.waiting_requests) <= self.now {
            let Some((tlp, ack)) = self.root_complex.take(self.now) else { break };
            self.request(self.now, tlp);
            if let Some((at, ack)) = ack {
                let number = usize::from(tlp.requester);
                self.cores[number].acks.send(at, ack);
                self.schedule.set(number, self.cores[number].due());
            }
        }
        self.refresh_requests();
    }

    #[inline(never)]
    fn accept(&mut self, card: CardIndex) {
        let mut accepted = Accepted::INVALID;
        let is_accepted = self.endpoints[card].accept(self.now, &mut self.slab, &mut accepted);
        let due = self.endpoints[card].accept_due().max(self.now);
        self.set(Port::Accept(card), due);
        if !is_accepted {
            return;
        }
        let up = self.endpoint_up[card];
        self.give_back(up.opposite(), Cost::of(&accepted.tlp), accepted.because);
        if accepted.is_refused {
            self.note_refused(up.opposite(), &accepted.tlp);
        }
        if accepted.rings {
            self.refresh_issue(card);
            self.refresh_kernels(card);
        }
        if let Some(crossings) = &mut self.crossings {
            crossings.push(Crossing { at: accepted.at, tlp: accepted.tlp, head: accepted.head });
        }
        if self.engine(card).is_some_and(DmaEngine::joins_queues) {
            self.refresh_queues(card);
        }
        if accepted.tlp.kind == TlpKind::MRd {
            if accepted.is_refused {
                let (at, refusal) = self.endpoints[card].refusal(self.now, &accepted.tlp);
                self.offer(up, endpoint_input::ANSWERS, at, refusal);
            }
            for place in 0..self.endpoints[card].regions.len() {
                let due = self.endpoints[card].answer_due(place);
                self.set(Port::Answer(card, place), due);
            }
        }
    }

    #[inline(never)]
    fn answer(&mut self, card: CardIndex, place: usize) {
        let up = self.endpoint_up[card];
        let (endpoint, transmitter) = (&mut self.endpoints[card], &mut self.directions[up].transmitter);
        let send = |at, tlp| {
            transmitter.offer(endpoint_input::ANSWERS, at, tlp);
        };
        endpoint.answer(self.now, place, &mut self.slab, send);
        let due = endpoint.answer_due(place);
        self.set(Port::Answer(card, place), due);
        self.refresh(up);
    }

    #[inline(never)]
    fn issue(&mut self, card: CardIndex) {
        let up = self.endpoint_up[card];
        let waits = self.observer.as_ref().and_then(|_| Some(self.engine(card)?.waits));
        let mut made = Made::INVALID;
        let is_made = self.endpoints[card].issue(self.now, &mut self.slab, &mut made);
        if let (Some(before), Some(engine), Some(observer)) = (waits, &self.endpoints[card].dma, &mut self.observer) {
            observer.waited(StallSite::Engine(card.0 as u32), self.now, &before, &engine.waits);
        }
        if is_made {
            self.offer(up, endpoint_input::ENGINE + made.channel, made.at, made.tlp);
        }
        self.refresh_engine(card);
    }

    #[inline(never)]
    fn take_data(&mut self, card: CardIndex) {
        let Some(engine) = &mut self.endpoints[card].dma else { return };
        let matters = engine.take_data(self.now, &mut self.slab) || engine.joins_queues();
        let data_due = engine.data_due().max(self.now);
        self.set(Port::Data(card), data_due);
        if matters {
            self.refresh_engine(card);
        }
    }

    #[inline(never)]
    fn receive_completion(&mut self, port: RootPortIndex) {
        if let Some(tlp) = self.roots[port].upstream.take(self.now) {
            if usize::from(tlp.requester) < self.cores.len() {
                self.root_complex.complete(self.now, tlp);
                self.set(Port::Completions, self.root_complex.completions.due());
            } else {
                let data = if tlp.payload == Slot::NONE { [0xFF; 64] } else { *self.slab.line(tlp.payload) };
                self.slab.give_back(tlp.payload);
                self.outbox.push_back((self.now, tlp, data));
            }
        }
        let due = self.roots[port].upstream.due();
        self.set(Port::Return(port), due);
    }

    #[inline(never)]
    fn complete(&mut self) {
        if let Some(tlp) = self.root_complex.completions.take(self.now) {
            let number = usize::from(tlp.requester);
            let waits = self.observer.as_ref().map(|_| self.cores[number].waits);
            self.cores[number].complete(self.now, &tlp, &mut self.slab);
            self.schedule.set(number, self.cores[number].due());
            if let Some(before) = waits {
                self.observe_core(number, &before);
            }
        }
        self.set(Port::Completions, self.root_complex.completions.due());
    }

    /// Returns the stall times of core `number` since its start, by [`Cause::index`].
    #[must_use]
    pub fn waits(&self, number: usize) -> [Ticks; Cause::ALL.len()] {
        self.cores[number].waits
    }
}

/// Returns the peer forwarding of a platform's root complex.
fn peers_of(platform: &Platform) -> peer_forwarder::Spec {
    let root = &platform.root_complex;
    peer_forwarder::Spec {
        reads: root.peer_reads.value,
        writes: root.peer_writes.value,
        latency: root.peer_forward_ns.value,
        // Completions end at a read completion boundary, so pieces are at least that long.
        read_bytes: match root.peer_read_bytes.value {
            0 => 0,
            bytes => bytes.max(platform.link.rcb_bytes.value),
        },
        tags: root.peer_tags.value as u16,
        in_order: root.peer_in_order.value,
        requester: ROOT_COMPLEX,
    }
}
