//! The endpoints of a board: their jobs, and the schedule of their engines, queues and kernels.

use crate::critical_path::Place;
use crate::device::dma_engine::DmaEngine;
use crate::device::endpoint::Endpoint;
use crate::device::interconnect::Interconnect;
use crate::device::job::Job;
use crate::device::kernels::Kernels;
use crate::events::Events;
use crate::index::CardIndex;
use crate::ports::Port;
use crate::requester::{FIRST_CARD, OUTSIDE};
use crate::steady::{Leg, PAGE, Survey, greatest_common_divisor};
use crate::tlp::{Tlp, TlpKind};
use lanemark_engine::Slab;
use lanemark_machine::{DmaCall, Partner, Transfer};
use lanemark_units::Ticks;
use std::ops::{Index, IndexMut};

/// Requests to addresses from here on have longer headers.
const FOUR_GIB: u64 = 1 << 32;

/// State of the endpoints.
#[derive(Debug)]
pub(crate) struct Endpoints {
    all: Vec<Endpoint>,
    /// Bus addresses of the BARs of each card.
    bars_at: Vec<[u64; 6]>,
}

impl Index<CardIndex> for Endpoints {
    type Output = Endpoint;

    #[inline]
    fn index(&self, card: CardIndex) -> &Endpoint {
        &self.all[card]
    }
}

impl IndexMut<CardIndex> for Endpoints {
    #[inline]
    fn index_mut(&mut self, card: CardIndex) -> &mut Endpoint {
        &mut self.all[card]
    }
}

impl Endpoints {
    /// Gathers the endpoints of a board, with the bus addresses of their BARs.
    pub(crate) fn new(all: Vec<Endpoint>, bars_at: Vec<[u64; 6]>) -> Endpoints {
        Endpoints { all, bars_at }
    }

    /// Visits the state of every endpoint, then that of every DMA engine.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let Endpoints { all, bars_at: _ } = self;
        for endpoint in &mut *all {
            endpoint.visit(view);
        }
        for engine in all.iter_mut().filter_map(|endpoint| endpoint.dma.as_mut()) {
            engine.visit(view);
        }
    }

    /// Returns the number of endpoints.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the bus addresses of the BARs of each card.
    pub(crate) fn bars_at(&self) -> &[[u64; 6]] {
        &self.bars_at
    }

    /// Returns the index of each endpoint.
    pub(crate) fn each_card(&self) -> impl DoubleEndedIterator<Item = CardIndex> + use<> {
        (0..self.all.len()).map(CardIndex)
    }

    /// Returns an endpoint, if there is this card.
    pub(crate) fn get(&self, card: CardIndex) -> Option<&Endpoint> {
        self.all.get(card.0)
    }

    /// Returns an endpoint, if there is this card.
    pub(crate) fn get_mut(&mut self, card: CardIndex) -> Option<&mut Endpoint> {
        self.all.get_mut(card.0)
    }

    /// Returns the DMA engine of a card.
    #[inline]
    pub(crate) fn engine(&self, card: CardIndex) -> Option<&DmaEngine> {
        self.all.get(card.0)?.dma.as_ref()
    }

    /// Returns the DMA engine of a card.
    pub(crate) fn engine_mut(&mut self, card: CardIndex) -> Option<&mut DmaEngine> {
        self.all.get_mut(card.0)?.dma.as_mut()
    }

    /// Returns the DMA engines of all cards.
    pub(crate) fn engines(&self) -> impl Iterator<Item = &DmaEngine> {
        self.all.iter().filter_map(|endpoint| endpoint.dma.as_ref())
    }

    /// Returns the card that issued the request of a TLP.
    pub(crate) fn card_of(&self, tlp: &Tlp) -> Option<CardIndex> {
        let card = CardIndex(usize::from(tlp.requester.checked_sub(FIRST_CARD)?));
        (tlp.requester != OUTSIDE && card.0 < self.all.len()).then_some(card)
    }

    /// Returns the card and the position of the region that holds a range of bus addresses, if it is a single one.
    pub(crate) fn region_at(&self, start: u64, end: u64) -> Option<(CardIndex, usize)> {
        self.all.iter().enumerate().find_map(|(card, endpoint)| {
            let holds = |address: u64| {
                endpoint.regions.iter().position(|region| {
                    address >= region.spec.address && address - region.spec.address < region.spec.len
                })
            };
            let place = holds(start)?;
            (holds(end - 1) == Some(place)).then_some((CardIndex(card), place))
        })
    }

    /// Creates the job of a transfer, with no transfer released; `memory_at` is the bus address of host memory.
    pub(crate) fn job(
        &self,
        memory_at: u64,
        transfer: &Transfer,
        passes: u64,
        first_pass: u64,
    ) -> Result<Job, &'static str> {
        let base = match transfer.partner {
            Partner::Host => memory_at,
            Partner::Peer { card, bar } => {
                let bars = self.bars_at.get(card as usize).ok_or("there is no such peer")?;
                *bars.get(usize::from(bar)).ok_or("a peer has BARs 0 to 5")?
            }
        };
        self.job_at(base, transfer, passes, first_pass)
    }

    /// Creates the job of a transfer with offset 0 of its window at this bus address.
    pub(crate) fn job_at(
        &self,
        base: u64,
        transfer: &Transfer,
        passes: u64,
        first_pass: u64,
    ) -> Result<Job, &'static str> {
        let engine = self.engine(transfer.card.into()).ok_or("its card has no DMA engine")?;
        Ok(Job::new(transfer, base, passes, first_pass, engine.request_limits()))
    }

    /// Starts a job on a channel of a card.
    pub(crate) fn start(
        &mut self,
        events: &mut Events,
        card: CardIndex,
        channel: usize,
        start: impl FnOnce(&mut DmaEngine, Ticks),
    ) -> Result<(), &'static str> {
        let engine = self.engine_mut(card).ok_or("its card has no DMA engine")?;
        if channel >= engine.channels() {
            return Err("its DMA engine has no such channel");
        }
        start(engine, events.now);
        self.refresh_issue(events, card);
        Ok(())
    }

    /// Prepares a card for a driver call; returns the number of completions that the driver has seen so far.
    pub(crate) fn arm(
        &mut self,
        now: Ticks,
        call: &DmaCall,
        memory_at: u64,
        passes: u64,
        first_pass: u64,
    ) -> Option<u64> {
        self.get_mut(call.transfer.card.into())?.arm(now, call, memory_at, passes, first_pass)
    }

    /// Returns the number of completions that an arrived message of a card reports, of a channel or, behind the
    /// channels, of its kernels.
    pub(crate) fn done(&mut self, card: CardIndex, channel: usize) -> Option<u64> {
        let kernels = self.get_mut(card)?.kernels.as_mut();
        match kernels.filter(|kernels| usize::from(kernels.notified().0) == channel) {
            Some(kernels) => Some(kernels.notify()),
            None => self.engine(card)?.done(channel),
        }
    }

    /// Stops new requests of every engine; outstanding ones complete.
    pub(crate) fn halt(&mut self, events: &mut Events) {
        for card in self.each_card() {
            if let Some(engine) = &mut self[card].dma {
                engine.halt();
                self.refresh_issue(events, card);
            }
        }
    }

    /// Ends every transfer; outstanding requests complete.
    pub(crate) fn stop(&mut self, events: &mut Events) {
        for card in self.each_card() {
            if let Some(engine) = &mut self[card].dma {
                engine.stop();
                self.refresh_issue(events, card);
                self.refresh_queues(events, card);
            }
        }
    }

    /// Stops the launched kernels of every card.
    pub(crate) fn stop_kernels(&mut self, events: &mut Events) {
        for card in self.each_card() {
            self[card].kernels.iter_mut().for_each(Kernels::stop);
            self.refresh_kernels(events, card);
        }
    }

    /// Invalidates every translation in the ATCs of all cards.
    pub(crate) fn invalidate_atcs(&mut self) {
        let caches = self.all.iter_mut().filter_map(|endpoint| endpoint.dma.as_mut()?.atc.as_mut());
        caches.for_each(|atc| atc.invalidate_all());
    }

    /// Receives a TLP at a card: a completion at its engine, anything else in its receive buffer.
    #[inline]
    pub(crate) fn receive(&mut self, events: &mut Events, card: CardIndex, arrives: Ticks, tlp: Tlp) {
        let endpoint = &mut self[card];
        if let (TlpKind::CplD | TlpKind::Cpl, Some(engine)) = (tlp.kind, &mut endpoint.dma) {
            if engine.arrive(arrives, tlp, &mut events.path) {
                events.set(Port::Data(card), engine.data_due().max(events.now));
            }
            return;
        }
        if endpoint.receive(arrives, tlp, &mut events.path) {
            events.set(Port::Accept(card), endpoint.accept_due().max(events.now));
        }
    }

    /// Lets the engine of a card take its due completions.
    #[inline(never)]
    pub(crate) fn take_data(&mut self, events: &mut Events, slab: &mut Slab, card: CardIndex) {
        let Some(engine) = &mut self[card].dma else { return };
        let matters = engine.take_data(events.now, slab, &mut events.path) || engine.joins_queues();
        events.set(Port::Data(card), engine.data_due().max(events.now));
        if matters {
            self.refresh_engine(events, card);
        }
    }

    /// Moves bytes between the queues of a card.
    #[inline(never)]
    pub(crate) fn carry(&mut self, events: &mut Events, card: CardIndex) {
        if let Some(queues) = self[card].dma.as_mut().and_then(|engine| engine.queues.as_mut()) {
            queues.carry(events.now, &mut events.path, Place::engine(card));
        }
        self.refresh_queues(events, card);
    }

    /// Reschedules a card's engine and its connected queues after an activity of the engine.
    #[inline]
    pub(crate) fn refresh_engine(&mut self, events: &mut Events, card: CardIndex) {
        // A queue without connections affects only the TLPs that pass it.
        if self.engine(card).is_some_and(DmaEngine::joins_queues) {
            self.refresh_queues(events, card);
        } else {
            self.refresh_issue(events, card);
        }
    }

    /// Reschedules the next request of a card's engine, whose stall has ended.
    #[inline]
    pub(crate) fn refresh_issue(&mut self, events: &mut Events, card: CardIndex) {
        let Some(engine) = &mut self[card].dma else { return };
        let due = engine.due().max(events.now);
        events.set(Port::Issue(card), due);
    }

    /// Reschedules what waits for a queue of a card after its content has changed.
    #[inline]
    pub(crate) fn refresh_queues(&mut self, events: &mut Events, card: CardIndex) {
        let endpoint = &mut self[card];
        let Some(engine) = &mut endpoint.dma else { return };
        let Some(carry) = engine.queues.as_ref().map(Interconnect::due) else { return };
        let (issue, data) = (engine.due(), engine.data_due());
        let accept = endpoint.accept_due();
        events.set(Port::Carry(card), carry);
        for (port, due) in [(Port::Issue(card), issue), (Port::Data(card), data), (Port::Accept(card), accept)] {
            // A stall for space or bytes may have ended in the past.
            events.set(port, due.max(events.now));
        }
    }

    /// Reschedules the next end of a kernel of a card.
    #[inline]
    pub(crate) fn refresh_kernels(&self, events: &mut Events, card: CardIndex) {
        if let Some(kernels) = &self[card].kernels {
            events.set(Port::Kernels(card), kernels.due());
        }
    }

    /// Returns the number of transfers that a card has begun.
    #[inline]
    pub(crate) fn begun(&self, card: CardIndex) -> u64 {
        self.engine(card).map_or(0, DmaEngine::begun)
    }

    /// Returns the legs of the jobs of all cards.
    pub(crate) fn legs(&self) -> Vec<Leg> {
        let mut legs: Vec<Leg> = self.engines().flat_map(DmaEngine::legs).collect();
        let modulus = self.address_modulus();
        let least_block = self.engines().map(DmaEngine::least_block_bytes).max().unwrap_or(1);
        for leg in &mut legs {
            leg.set_step(modulus, least_block, FOUR_GIB);
        }
        legs
    }

    /// Returns the modulus of addresses on which timing depends within one storage: pages, read completion boundaries
    /// and payloads are at most a page; descriptors, chunks and beats may be longer.
    fn address_modulus(&self) -> u64 {
        let beats = self.all.iter().flat_map(|endpoint| &endpoint.regions).map(|region| region.spec.beat_bytes);
        let all = beats.chain(self.engines().flat_map(DmaEngine::address_moduli));
        let common = |modulus, bytes| greatest_common_divisor(modulus, bytes);
        all.fold(PAGE, |modulus, bytes: u64| modulus.saturating_mul(bytes.max(1) / common(modulus, bytes.max(1))))
    }
}
