//! A board: connected parts of a platform, driven by three calls.
//!
//! Each part owns its state and has a file of its own. The board routes: it passes due events to parts, and TLPs from
//! one part to the next.
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
mod compiled;
mod faults;
mod inject;
mod links;
mod mapping;
mod moved;
mod observe;
mod path;
mod quiesce;
mod relay;
mod root;
mod runtime;
mod start;
mod steady;
pub(crate) mod used;

pub use mapping::Invalidating;

use crate::critical_path::Place;
use crate::device::compiled_card::CompiledCard;
use crate::device::dma_engine::{DmaEngine, Made};
use crate::device::endpoint::{Accepted, Endpoint};
use crate::device::endpoints::Endpoints;
use crate::device::region::Region;
use crate::error::BoardError;
use crate::events::Events;
use crate::fabric::Fabric;
use crate::fabric::credit::Cost;
use crate::failures::Failures;
use crate::host::core::Core;
use crate::host::cores::Cores;
use crate::host::dma_memory::DmaMemory;
use crate::host::root_complex::RootComplex;
use crate::index::{CardIndex, RootPortIndex};
use crate::iommu::{self, Iommu};
use crate::observation::{Crossing, Observation};
use crate::ports::{Port, endpoint_input, root_input};
use crate::tlp::{Tlp, TlpKind};
use crate::topology::{self, Topology};
use lanemark_engine::{Memory, Slab, Slot};
use lanemark_machine::{Cause, StallSite};
use lanemark_platform::Platform;
use lanemark_units::Ticks;

/// A simulation: a value that is independent of others.
#[derive(Debug)]
pub struct Board {
    /// The current time, and when each port of a part is due.
    events: Events,
    /// Payloads of TLPs.
    slab: Slab,
    cores: Cores,
    root_complex: RootComplex,
    iommu: Option<Iommu>,
    memory: DmaMemory,
    /// Links and switches.
    fabric: Fabric,
    endpoints: Endpoints,
    /// What is behind the first endpoint, if it is compiled, and whether its next clock is scheduled.
    compiled: Option<Box<CompiledCard>>,
    is_clocked: bool,
    failures: Failures,
    observation: Observation,
}

impl Board {
    /// Builds the board of a platform.
    ///
    /// # Errors
    /// [`BoardError`] if the platform names a link or a place that does not exist, which the file parser prevents.
    pub fn new(platform: &Platform) -> Result<Board, BoardError> {
        let fail = |because: &str| BoardError { platform: platform.name.clone(), because: because.to_owned() };
        let Topology { fabric, root_ports, root_routes, endpoints, bars_at } =
            topology::build(platform).map_err(fail)?;
        let cores = Cores::new(platform);
        let (directions, regions) = (fabric.directions.len(), platform.regions.len());
        // Cores send a line at most; with DMA, TLPs are as long as the links allow.
        let is_moving = platform.dma.is_some() || endpoints.len() > 1;
        let slot_bytes = if is_moving { platform.largest_mps_bytes() as usize } else { 64 };
        let mut board = Board {
            events: Events::new(cores.len(), directions, root_ports.len(), endpoints.len(), regions),
            slab: Slab::new(slot_bytes),
            cores,
            iommu: iommu::Spec::of(platform).map(|spec| Iommu::new(spec, root_ports.len())),
            root_complex: RootComplex::new(platform, root_ports, root_routes),
            memory: DmaMemory::new(platform),
            failures: Failures::new(platform, fabric.ports()),
            fabric,
            endpoints: Endpoints::new(endpoints, bars_at),
            compiled: None,
            is_clocked: false,
            observation: Observation::default(),
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
        self.events.now
    }

    /// Returns the time of the next event; `None` if there is none.
    #[must_use]
    pub fn next_at(&mut self) -> Option<Ticks> {
        self.events.first().map(|next| next.0)
    }

    /// Processes every event up to and including `until`.
    pub fn run_until(&mut self, until: Ticks) {
        while let Some((at, port)) = self.events.first()
            && at <= until
        {
            self.handle(at, port);
        }
        self.events.now = self.events.now.max(until);
    }

    /// Processes at most `most` events up to and including `until`, as [`Board::run_until`]; returns whether none is left.
    pub fn run_some(&mut self, until: Ticks, most: u64) -> bool {
        for _ in 0..most {
            match self.events.first() {
                Some((at, port)) if at <= until => self.handle(at, port),
                _ => {
                    self.events.now = self.events.now.max(until);
                    return true;
                }
            }
        }
        false
    }

    /// Processes the next event; returns whether there was one.
    pub fn step(&mut self) -> bool {
        let Some((at, port)) = self.events.first() else { return false };
        self.handle(at, port);
        true
    }

    /// Processes events while `busy` returns true; returns false if time or events end before.
    pub fn run_while(&mut self, until: Ticks, mut busy: impl FnMut(&mut Board) -> bool) -> bool {
        while busy(self) {
            match self.events.first() {
                Some((at, port)) if at <= until => {
                    self.handle(at, port);
                }
                _ => return false,
            }
        }
        true
    }

    /// Returns the DMA engine of a card.
    #[must_use]
    pub fn engine(&self, card: CardIndex) -> Option<&DmaEngine> {
        self.endpoints.engine(card)
    }

    /// Returns the DMA engine of a card for writing, for example to read its received bytes.
    pub fn engine_mut(&mut self, card: CardIndex) -> Option<&mut DmaEngine> {
        self.endpoints.engine_mut(card)
    }

    /// Returns the DMA memory.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory.bytes
    }

    /// Returns the bus address of the DMA memory.
    #[must_use]
    pub fn mapped_at(&self) -> u64 {
        self.memory.address
    }

    /// Ends every lane and every transfer; outstanding requests complete.
    pub fn stop(&mut self) {
        self.endpoints.stop(&mut self.events);
        self.endpoints.stop_kernels(&mut self.events);
        self.stop_cores();
    }

    /// Stops new requests; outstanding ones complete.
    pub fn halt(&mut self) {
        self.endpoints.stop_kernels(&mut self.events);
        self.endpoints.halt(&mut self.events);
        self.stop_cores();
    }

    /// Stops every core, and processes events until the board is idle.
    fn stop_cores(&mut self) {
        for number in 0..self.cores.len() {
            self.cores[number].stop();
            self.cores.refresh(&mut self.events, number);
            self.flush(number);
        }
        self.halt_compiled();
        while self.step() {}
    }

    /// Evicts the write-combining buffers of core `number`, as a fence would.
    pub fn flush(&mut self, number: usize) {
        let (now, requests, path) = (self.events.now, &mut self.root_complex.requests, &mut self.events.path);
        self.cores[number].flush(&mut self.slab, |tlp| {
            let milestone = path.add(tlp.milestone, now, Place::core(number), Cause::Issue);
            requests.request(now, Tlp { milestone, ..tlp }, path);
        });
        self.cores.invalidate_others(number);
        self.root_complex.requests.refresh(&mut self.events);
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

    /// Returns the first endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoints[CardIndex::FIRST]
    }

    /// Returns an endpoint.
    #[must_use]
    pub fn card(&self, card: CardIndex) -> Option<&Endpoint> {
        self.endpoints.get(card)
    }

    /// Returns the number of endpoints.
    #[must_use]
    pub fn cards(&self) -> usize {
        self.endpoints.len()
    }

    /// Returns the index of each endpoint.
    #[must_use]
    pub fn each_card(&self) -> impl DoubleEndedIterator<Item = CardIndex> + use<> {
        self.endpoints.each_card()
    }

    /// Returns a region of the first endpoint, with its bytes and counters.
    pub fn region_mut(&mut self, name: &str) -> Option<&mut Region> {
        self.endpoints[CardIndex::FIRST].region_mut(name)
    }

    /// Returns a region of an endpoint, with its bytes and counters.
    pub fn region_of_mut(&mut self, card: CardIndex, name: &str) -> Option<&mut Region> {
        self.endpoints.get_mut(card)?.region_mut(name)
    }

    /// Resets the coherent memory of every core: the caches hold every shared line.
    pub fn invalidate_shared(&mut self) {
        self.cores.invalidate_shared();
    }

    /// Returns whether no event is due.
    #[must_use]
    pub fn is_idle(&mut self) -> bool {
        self.events.first().is_none()
    }

    /// Returns the number of payload slots in use; 0 if the board is idle and no store is gathered.
    #[must_use]
    pub fn slots_in_use(&self) -> usize {
        self.slab.in_use()
    }

    /// Processes an event, by the index of its port in the schedule.
    fn handle(&mut self, at: Ticks, index: usize) {
        match self.events.begin(at, index) {
            Port::Core(number) => self.run_core(number),
            Port::Requests => self.take_requests(),
            Port::Send(direction) => self.send(direction),
            Port::Take(port) => self.take_at_root(port),
            Port::Fetched(port) => self.fetched(port),
            Port::Return(port) => self.receive_completion(port),
            Port::Completions => self.complete(),
            Port::Peers => self.root_complex.step_peers(&mut self.fabric, &mut self.events, &mut self.slab),
            Port::RcIngress => self.take_in(),
            Port::Iommu => self.translate(),
            Port::Accept(card) => self.accept(card),
            Port::Issue(card) => self.issue(card),
            Port::Data(card) => self.endpoints.take_data(&mut self.events, &mut self.slab, card),
            Port::Carry(card) => self.endpoints.carry(&mut self.events, card),
            Port::Kernels(card) => self.end_kernel(card),
            Port::Answer(card, region) => self.answer(card, region),
            Port::Timeouts => self.give_up(),
        }
    }

    #[inline(never)]
    fn run_core(&mut self, number: usize) {
        let (now, requests, path) = (self.events.now, &mut self.root_complex.requests, &mut self.events.path);
        let core = &mut self.cores[number];
        let waits = self.observation.is_traced().then_some(core.waits);
        let mut is_sent = false;
        core.execute(now, &mut self.slab, path, |tlp, path| {
            is_sent = true;
            requests.request(now, tlp, path);
        });
        self.cores.refresh(&mut self.events, number);
        if let Some(before) = waits {
            self.observe_core(number, &before);
        }
        self.cores.invalidate_others(number);
        while let Some(copied) = self.cores[number].copies.pop() {
            self.memory.copy(copied);
        }
        if is_sent {
            self.root_complex.requests.refresh(&mut self.events);
        }
    }

    #[cold]
    fn observe_core(&mut self, number: usize, before: &[Ticks; Cause::ALL.len()]) {
        let site = StallSite::Core(number as u32);
        self.observation.waited(site, self.events.now, before, &self.cores[number].waits);
    }

    /// Sends a request of a core to the root port above its completer.
    #[inline]
    fn request(&mut self, at: Ticks, tlp: Tlp) {
        self.root_complex.requests.queue();
        self.fabric.offer(
            &mut self.events,
            self.root_complex.port_above(tlp.address).down(),
            root_input::CORES,
            at,
            tlp,
        );
    }

    /// Accepts arrived requests while the root complex has space, and schedules their acknowledgments.
    #[inline]
    fn take_requests(&mut self) {
        while self.root_complex.requests.due() <= self.events.now {
            let Some((tlp, ack)) = self.root_complex.requests.take(self.events.now, &mut self.events.path) else {
                break;
            };
            self.request(self.events.now, tlp);
            if let Some((at, ack)) = ack {
                let number = usize::from(tlp.requester);
                let core = &mut self.cores[number];
                // During the program, an acknowledgment behind another one changes nothing yet.
                let matters = core.acks.is_empty() || core.is_done();
                core.acks.send(at, ack);
                if matters {
                    self.cores.refresh(&mut self.events, number);
                }
            }
        }
        self.root_complex.requests.refresh(&mut self.events);
    }

    #[inline(never)]
    fn accept(&mut self, card: CardIndex) {
        if self.compiled.is_some() {
            return self.hand_over();
        }
        let mut accepted = Accepted::INVALID;
        let endpoint = &mut self.endpoints[card];
        let is_accepted = endpoint.accept(self.events.now, &mut self.slab, &mut self.events.path, &mut accepted);
        self.events.set(Port::Accept(card), endpoint.accept_due().max(self.events.now));
        if !is_accepted {
            return;
        }
        let up = self.fabric.up_from(card);
        let Accepted { ref tlp, because, .. } = accepted;
        self.fabric.return_credits(&mut self.events, up.opposite(), Cost::of(tlp), because, tlp.milestone);
        if accepted.is_refused {
            self.note_refused(up.opposite(), &accepted.tlp);
        }
        if accepted.rings {
            self.endpoints.refresh_issue(&mut self.events, card);
            self.endpoints.refresh_kernels(&mut self.events, card);
        }
        self.observation.accepted(|| Crossing { at: accepted.at, tlp: accepted.tlp, head: accepted.head });
        if self.endpoints.engine(card).is_some_and(DmaEngine::joins_queues) {
            self.endpoints.refresh_queues(&mut self.events, card);
        }
        if accepted.tlp.kind == TlpKind::MRd {
            if accepted.is_refused {
                let (at, refusal) = self.endpoints[card].refusal(self.events.now, &accepted.tlp);
                self.fabric.offer(&mut self.events, up, endpoint_input::ANSWERS, at, refusal);
            }
            for place in 0..self.endpoints[card].regions.len() {
                let due = self.endpoints[card].answer_due(place);
                self.events.set(Port::Answer(card, place), due);
            }
        }
    }

    #[inline(never)]
    fn answer(&mut self, card: CardIndex, place: usize) {
        let up = self.fabric.up_from(card);
        let (endpoint, transmitter) = (&mut self.endpoints[card], &mut self.fabric.directions[up].transmitter);
        let send = |at, tlp| {
            transmitter.offer(endpoint_input::ANSWERS, at, tlp);
        };
        endpoint.answer(self.events.now, place, &mut self.slab, &mut self.events.path, send);
        let due = endpoint.answer_due(place);
        self.events.set(Port::Answer(card, place), due);
        self.fabric.refresh(&mut self.events, up);
    }

    #[inline(never)]
    fn issue(&mut self, card: CardIndex) {
        if self.compiled.is_some() {
            return self.clock();
        }
        let up = self.fabric.up_from(card);
        let waits = self.observation.is_traced().then(|| self.endpoints.engine(card).map(|engine| engine.waits));
        let mut made = Made::INVALID;
        let is_made = self.endpoints[card].issue(self.events.now, &mut self.slab, &mut self.events.path, &mut made);
        if let (Some(Some(before)), Some(engine)) = (waits, self.endpoints.engine(card)) {
            let site = StallSite::Channel { card: card.0 as u32, channel: made.channel as u32 };
            self.observation.waited(site, self.events.now, &before, &engine.waits);
        }
        if is_made {
            self.fabric.offer(&mut self.events, up, endpoint_input::ENGINE + made.channel, made.at, made.tlp);
        }
        self.endpoints.refresh_engine(&mut self.events, card);
    }

    #[inline(never)]
    fn receive_completion(&mut self, port: RootPortIndex) {
        if let Some(tlp) = self.root_complex.roots[port].upstream.take(self.events.now) {
            if usize::from(tlp.requester) < self.cores.len() {
                self.root_complex.requests.complete(&mut self.events, tlp);
            } else {
                let data = if tlp.payload == Slot::NONE { [0xFF; 64] } else { *self.slab.line(tlp.payload) };
                self.slab.give_back(tlp.payload);
                self.observation.outbox.push_back((self.events.now, tlp, data));
            }
        }
        let due = self.root_complex.roots[port].upstream.due();
        self.events.set(Port::Return(port), due);
    }

    #[inline(never)]
    fn complete(&mut self) {
        if let Some(tlp) = self.root_complex.requests.completions.take(self.events.now) {
            let number = usize::from(tlp.requester);
            let waits = self.observation.is_traced().then(|| self.cores[number].waits);
            self.cores[number].complete(self.events.now, &tlp, &mut self.slab);
            self.cores.refresh(&mut self.events, number);
            if let Some(before) = waits {
                self.observe_core(number, &before);
            }
        }
        self.events.set(Port::Completions, self.root_complex.requests.completions.due());
    }
}
