//! A board: parts built from a platform and connected, driven by three calls.
//!
//! ```text
//!  core 0..n --from_cores--> root complex --queue--> link down --> endpoint --> regions
//!      ^  ^------ acks ----------+   ^                                |           |
//!      +------ completions ----------+------ link up <---- egress ----+-----------+
//! ```
//!
//! [`Board::inject`] puts a TLP on the link, [`Board::run_until`] lets time pass, [`Board::next_at`] says
//! when something happens next. Endpoint and link work without any core: their completions are then found
//! in [`Board::outbox`].

use crate::engine::{Schedule, Slab, Slot, Wire};
use crate::part::core::{Core, Seen};
use crate::part::endpoint::{self, Endpoint, Region, RegionSpec};
use crate::part::link::{self, Credits, Crossed, Transmitter};
use crate::part::program::{self, Program};
use crate::part::root_complex::{self, RootComplex};
use crate::tlp::{Tlp, TlpKind, span};
use lanemark_machine::{Cause, Lane};
use lanemark_platform::{Platform, RegionKind};
use lanemark_units::Ticks;
use lanemark_wire::{Generation, Lanes};
use std::collections::VecDeque;

/// Why a platform cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("platform {platform} cannot be simulated: {because}")]
pub struct BoardError {
    /// Which one.
    pub platform: String,
    /// Why not.
    pub because: String,
}

/// A TLP as it crossed the link, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// When it was checked at the other end; it is listed when the device has accepted it.
    pub at: Ticks,
    /// The packet; its payload slot is no longer valid.
    pub tlp: Tlp,
    /// The first eight bytes of its payload.
    pub head: [u8; 8],
}

/// Ports behind those of the cores, in the order ties are resolved.
#[derive(Clone, Copy)]
enum Port {
    Requests,
    LinkDown,
    Accept,
    Egress,
    LinkUp,
    Return,
    Completions,
    /// The first region; the others follow.
    Answers,
}

impl Port {
    /// The port at this place behind the cores.
    #[inline]
    fn of(place: usize) -> Port {
        const PORTS: [Port; Port::Answers as usize] =
            [Port::Requests, Port::LinkDown, Port::Accept, Port::Egress, Port::LinkUp, Port::Return, Port::Completions];
        PORTS.get(place).copied().unwrap_or(Port::Answers)
    }
}

/// A simulation: a value, independent of every other.
#[derive(Debug)]
pub struct Board {
    now: Ticks,
    schedule: Schedule,
    slab: Slab,
    cores: Vec<Core>,
    root_complex: RootComplex,
    down: Transmitter,
    endpoint: Endpoint,
    up: Transmitter,
    /// Completions on the link.
    upstream: Wire<Tlp>,
    program: program::Spec,
    /// Completions that no core asked for: those of injected reads.
    pub outbox: VecDeque<(Ticks, Tlp, [u8; 64])>,
    /// TLPs that arrived downstream, while somebody observes.
    pub crossings: Option<Vec<Crossing>>,
}

/// Requester of injected TLPs: no core has this number.
pub const OUTSIDE: u16 = u16::MAX;

impl Board {
    /// Builds the parts of `platform`.
    ///
    /// # Errors
    /// [`BoardError`] if the platform names a link that does not exist; files are checked for that.
    pub fn new(platform: &Platform) -> Result<Board, BoardError> {
        let fail = |because: &str| BoardError { platform: platform.name.clone(), because: because.to_owned() };
        let generation = u8::try_from(platform.link.generation.value)
            .ok()
            .and_then(Generation::from_number)
            .ok_or_else(|| fail("its link generation is unknown"))?;
        let lanes = u8::try_from(platform.link.width_lanes.value)
            .ok()
            .and_then(Lanes::new)
            .ok_or_else(|| fail("its link width is unknown"))?;
        let latency = platform.link.one_way_ns.value;
        let credits = Credits {
            posted_header: platform.link.posted_header_credits.value,
            posted_data: platform.link.posted_data_credits.value,
            nonposted_header: platform.link.nonposted_header_credits.value,
        };
        let regions = region_specs(platform).ok_or_else(|| fail("a region names a BAR that is not there"))?;
        let cores: Vec<Core> =
            (0..platform.core.cores.value).map(|number| Core::new(platform, number as u16)).collect();
        let ports = cores.len() + Port::Answers as usize + regions.len();
        Ok(Board {
            now: Ticks::ZERO,
            schedule: Schedule::new(ports),
            slab: Slab::default(),
            root_complex: RootComplex::new(root_complex::Spec {
                half_round_trip: platform.root_complex.core_round_trip_ns.value / 2,
                queue_entries: platform.root_complex.posted_queue_entries.value as usize,
            }),
            down: Transmitter::new(link::Spec { generation, lanes, latency, credits }),
            endpoint: Endpoint::new(
                endpoint::Spec {
                    ingress: platform.endpoint.ingress_ns.value,
                    egress: platform.endpoint.egress_ns.value,
                },
                regions,
            ),
            upstream: Wire::default(),
            up: Transmitter::new(link::Spec { generation, lanes, latency, credits: Credits::INFINITE }),
            program: program::Spec::new(platform),
            cores,
            outbox: VecDeque::new(),
            crossings: None,
        })
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Ticks {
        self.now
    }

    /// When something happens next; `None` if nothing ever will.
    #[must_use]
    pub fn next_at(&mut self) -> Option<Ticks> {
        self.schedule.first().map(|next| next.0)
    }

    /// Lets everything up to and including `until` happen.
    pub fn run_until(&mut self, until: Ticks) {
        while let Some((at, port)) = self.schedule.first()
            && at <= until
        {
            self.now = at;
            self.handle(port);
        }
        self.now = self.now.max(until);
    }

    /// Lets the next event happen and says whether there was one.
    pub fn step(&mut self) -> bool {
        let Some((at, port)) = self.schedule.first() else { return false };
        self.now = at;
        self.handle(port);
        true
    }

    /// Lets things happen until `done` says so; `false` if time or events run out before.
    pub fn run_while(&mut self, until: Ticks, mut busy: impl FnMut(&mut Board) -> bool) -> bool {
        while busy(self) {
            match self.schedule.first() {
                Some((at, port)) if at <= until => {
                    self.now = at;
                    self.handle(port);
                }
                _ => return false,
            }
        }
        true
    }

    /// Puts a memory write on the link, behind what already waits there; it may go from `at` on.
    pub fn inject_write(&mut self, at: Ticks, address: u64, data: &[u8]) {
        let (start, length_dw, first_be, last_be) = span(address, data.len() as u64);
        let payload = self.slab.take();
        let skip = (address - start) as usize;
        self.slab.bytes_mut(payload)[skip..skip + data.len()].copy_from_slice(data);
        let kind = TlpKind::MWr;
        self.inject(
            at,
            Tlp { kind, address: start, length_dw, first_be, last_be, requester: OUTSIDE, tag: 0, payload },
        );
    }

    /// Puts a memory read on the link; its completion comes to [`Board::outbox`] with this tag.
    pub fn inject_read(&mut self, at: Ticks, address: u64, len: u64, tag: u16) {
        let (address, length_dw, first_be, last_be) = span(address, len);
        let (kind, payload) = (TlpKind::MRd, Slot::NONE);
        self.inject(at, Tlp { kind, address, length_dw, first_be, last_be, requester: OUTSIDE, tag, payload });
    }

    /// Puts a TLP on the link downstream; it may go from `at` on, which is no earlier than now.
    pub fn inject(&mut self, at: Ticks, tlp: Tlp) {
        self.down.offer(at.max(self.now), tlp);
        self.set(Port::LinkDown, self.down.due());
        self.refresh_requests();
    }

    /// Starts a lane of a plan on its core: `passes` times its body.
    pub fn start(&mut self, lane: &Lane, passes: u64, first_pass: u64) {
        let program = Program::new(self.program.clone(), lane, passes, first_pass);
        let number = lane.core as usize;
        self.cores[number].start(self.now, program);
        self.schedule.set(number, self.cores[number].due());
    }

    /// Ends every lane where it is and lets what is under way arrive.
    pub fn stop(&mut self) {
        for number in 0..self.cores.len() {
            self.cores[number].stop();
            self.schedule.set(number, self.cores[number].due());
            self.flush(number);
        }
        while self.step() {}
    }

    /// Lets core `number` write out what it gathered, as a fence after its last instruction would.
    pub fn flush(&mut self, number: usize) {
        let (now, root_complex) = (self.now, &mut self.root_complex);
        self.cores[number].flush(&mut self.slab, |tlp| root_complex.request(now, tlp));
        self.invalidate_others(number);
        self.refresh_requests();
    }

    /// A core.
    #[must_use]
    pub fn core(&self, number: usize) -> &Core {
        &self.cores[number]
    }

    /// How many cores there are.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Keeps what core `number` loads from now on.
    pub fn observe_loads(&mut self, number: usize) {
        self.cores[number].seen = Some(Vec::new());
    }

    /// What core `number` loaded since it is observed.
    #[must_use]
    pub fn loads_seen(&self, number: usize) -> &[Seen] {
        self.cores[number].seen.as_deref().unwrap_or_default()
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A region, to look at its bytes and counters as the device does.
    pub fn region_mut(&mut self, name: &str) -> Option<&mut Region> {
        self.endpoint.region_mut(name)
    }

    /// What crossed the link downstream and upstream.
    #[must_use]
    pub fn crossed(&self) -> (Crossed, Crossed) {
        (self.down.crossed, self.up.crossed)
    }

    /// Whether nothing is under way anywhere.
    #[must_use]
    pub fn is_idle(&mut self) -> bool {
        self.schedule.first().is_none()
    }

    /// Payload slots in use: none when the board is idle and nothing is gathered.
    #[must_use]
    pub fn slots_in_use(&self) -> usize {
        self.slab.in_use()
    }

    #[inline]
    fn set(&mut self, port: Port, at: Ticks) {
        self.schedule.set(self.cores.len() + port as usize, at);
    }

    #[inline]
    fn refresh_requests(&mut self) {
        self.set(Port::Requests, self.root_complex.due(self.down.queued()));
    }

    fn handle(&mut self, port: usize) {
        let cores = self.cores.len();
        if port < cores {
            return self.run_core(port);
        }
        match Port::of(port - cores) {
            Port::Requests => self.take_requests(),
            Port::LinkDown => self.send_down(),
            Port::Accept => self.accept(),
            Port::Egress => self.leave_endpoint(),
            Port::LinkUp => self.send_up(),
            Port::Return => self.receive_completion(),
            Port::Completions => self.complete(),
            Port::Answers => self.answer(port - cores - Port::Answers as usize),
        }
    }

    #[inline]
    fn run_core(&mut self, number: usize) {
        let (now, root_complex) = (self.now, &mut self.root_complex);
        let core = &mut self.cores[number];
        core.execute(now, &mut self.slab, |tlp| root_complex.request(now, tlp));
        self.schedule.set(number, core.due());
        self.invalidate_others(number);
        self.refresh_requests();
    }

    /// Takes the lines that core `number` stored to out of the caches of the others.
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

    /// The root complex takes what has come as long as it has room; a core that waits learns when its
    /// acknowledgment comes.
    #[inline]
    fn take_requests(&mut self) {
        while self.root_complex.due(self.down.queued()) <= self.now {
            let Some((tlp, ack)) = self.root_complex.take(self.now) else { break };
            self.down.offer(self.now, tlp);
            if let Some((at, ack)) = ack {
                let number = usize::from(tlp.requester);
                self.cores[number].acks.send(at, ack);
                self.schedule.set(number, self.cores[number].due());
            }
        }
        self.set(Port::LinkDown, self.down.due());
        self.refresh_requests();
    }

    #[inline]
    fn send_down(&mut self) {
        if let Some(sent) = self.down.send(self.now) {
            self.root_complex.left(self.now, sent.because);
            self.endpoint.receive(sent.arrives, sent.tlp);
            self.set(Port::Accept, self.endpoint.accept_due());
        }
        self.take_requests();
    }

    #[inline]
    fn accept(&mut self) {
        let Some(accepted) = self.endpoint.accept(self.now, &mut self.slab) else { return };
        self.down.give_back(self.now, accepted.credits, accepted.because);
        self.set(Port::Accept, self.endpoint.accept_due());
        self.set(Port::LinkDown, self.down.due());
        if let Some(crossings) = &mut self.crossings {
            crossings.push(Crossing { at: accepted.at, tlp: accepted.tlp, head: accepted.head });
        }
        if accepted.tlp.kind == TlpKind::MRd {
            self.set(Port::Egress, self.endpoint.egress.due());
            for place in 0..self.endpoint.regions.len() {
                let due = self.endpoint.answer_due(place);
                self.schedule.set(self.cores.len() + Port::Answers as usize + place, due);
            }
        }
    }

    fn answer(&mut self, place: usize) {
        self.endpoint.answer(self.now, place, &mut self.slab);
        let due = self.endpoint.answer_due(place);
        self.schedule.set(self.cores.len() + Port::Answers as usize + place, due);
        self.set(Port::Egress, self.endpoint.egress.due());
    }

    fn leave_endpoint(&mut self) {
        if let Some(tlp) = self.endpoint.egress.take(self.now) {
            self.up.offer(self.now, tlp);
            self.set(Port::LinkUp, self.up.due());
        }
        self.set(Port::Egress, self.endpoint.egress.due());
    }

    fn send_up(&mut self) {
        if let Some(sent) = self.up.send(self.now) {
            self.upstream.send(sent.arrives, sent.tlp);
            self.set(Port::Return, self.upstream.due());
        }
        self.set(Port::LinkUp, self.up.due());
    }

    fn receive_completion(&mut self) {
        if let Some(tlp) = self.upstream.take(self.now) {
            if usize::from(tlp.requester) < self.cores.len() {
                self.root_complex.complete(self.now, tlp);
                self.set(Port::Completions, self.root_complex.completions.due());
            } else {
                let data = if tlp.payload == Slot::NONE { [0xFF; 64] } else { *self.slab.bytes(tlp.payload) };
                self.slab.give_back(tlp.payload);
                self.outbox.push_back((self.now, tlp, data));
            }
        }
        self.set(Port::Return, self.upstream.due());
    }

    fn complete(&mut self) {
        if let Some(tlp) = self.root_complex.completions.take(self.now) {
            let number = usize::from(tlp.requester);
            self.cores[number].complete(self.now, &tlp, &mut self.slab);
            self.schedule.set(number, self.cores[number].due());
        }
        self.set(Port::Completions, self.root_complex.completions.due());
    }

    /// What core `number` waited for since it was started, by [`Cause::index`].
    #[must_use]
    pub fn waits(&self, number: usize) -> [Ticks; Cause::ALL.len()] {
        self.cores[number].waits
    }
}

fn region_specs(platform: &Platform) -> Option<Vec<RegionSpec>> {
    platform
        .regions
        .iter()
        .map(|region| {
            let bar = platform.bar(u8::try_from(region.bar.value).ok()?)?;
            Some(RegionSpec {
                name: region.name.clone(),
                address: bar.address_bytes.value + region.offset_bytes.value,
                len: region.size_bytes.value,
                kind: match region.kind.value {
                    RegionKind::Registers => endpoint::Kind::Registers,
                    RegionKind::Sram => endpoint::Kind::Storage,
                    RegionKind::Ddr => endpoint::Kind::CountedStorage,
                    RegionKind::Fifo => endpoint::Kind::Fifo(region.fifo_entries.value as usize),
                },
                beat_bytes: u64::from(region.beat_bytes.value),
                beat: region.beat_ns.value,
                read: region.read_ns.value,
            })
        })
        .collect()
}
