//! Injected faults on a board: they affect TLPs, ports detect errors, requesters time out.
//!
//! If the platform has faults, every TLP is examined on arrival at a port. A defective TLP carries its [`Flaw`] to
//! its end: a completer refuses a request, a receiver drops data. TLPs on a link that is down are lost; TLPs withheld
//! by a port stay in its receive buffer.
//! A read whose request or completion is lost ends with a completion timeout. Other reads need no timer, because they
//! are always completed.
//!
//! Source: PCI Express Base Specification 6.0, sections 2.7 (poisoning, ECRC), 2.8 (completion timeout), 2.9 (link
//! down) and 6.2 (errors).

use super::Board;
use crate::error::BoardError;
use crate::fabric::link::Sent;
use crate::index::{CardIndex, DirectionIndex, PortIndex, Side};
use crate::noticed::{Noticed, PortLimit};
use crate::ports::{Port, root_input};
use crate::requester::{FIRST_CARD, OUTSIDE, ROOT_COMPLEX};
use crate::tlp::{AddressType, Flaw, Tlp, TlpKind};
use crate::topology::End;
use lanemark_engine::Slot;
use lanemark_platform::{Fault, FaultKind, Mailbox, Platform};
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;
use lanemark_wire::config::AerError;
use std::collections::BTreeMap;

mod hot_plug;
mod injected_fault;
mod pins;

/// The effect of faults on a TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It continues, with this flaw.
    GoesOn(Flaw),
    /// It is lost, because the link is down since `since`; `is_first` for the first such TLP.
    Lost { since: Ticks, is_first: bool },
    /// It stays in the receive buffer.
    Withheld,
}

/// A fault of the platform and its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Armed {
    /// Index in the platform's list.
    number: usize,
    kind: FaultKind,
    /// The direction whose receiver is the port.
    direction: DirectionIndex,
    /// The card whose driver it affects.
    card: Option<u32>,
    /// TLPs up to the fault, with the affected one.
    left: u64,
    /// Time from which TLPs count.
    from: Ticks,
    /// Duration of a link-down fault.
    down: Ticks,
    /// Time at which it was triggered.
    since: Option<Ticks>,
    /// Whether its effect has ended.
    is_over: bool,
    /// Whether a port has detected it.
    is_noticed: bool,
    /// Whether another fault already affected its TLP.
    is_eclipsed: bool,
}

impl Armed {
    fn new(platform: &Platform, number: usize, fault: &Fault, ports: &[[PortLimit; 2]]) -> Option<Armed> {
        let kind = fault.kind.value;
        let (left, from, down) = (fault.tlp.value, fault.at_ns.value, fault.down_ns.value);
        Some(Armed {
            number,
            kind,
            direction: DirectionIndex(ports.iter().position(|ends| ends[Side::Receiver].name == fault.port)?),
            card: pins::card_of(platform, kind, &fault.port),
            left,
            from,
            down: if down == Ticks::ZERO { Ticks::NEVER } else { down },
            // A link-down fault at the first TLP is triggered at its time, without a TLP.
            since: (kind.is_of_link() && left == 1).then_some(from),
            is_over: false,
            is_noticed: false,
            is_eclipsed: false,
        })
    }

    /// Returns whether it can affect a TLP of this kind.
    const fn is_for(&self, kind: TlpKind) -> bool {
        match self.kind {
            FaultKind::UnsupportedRequest | FaultKind::CompleterAbort | FaultKind::Unmapped => {
                matches!(kind, TlpKind::MRd | TlpKind::MWr)
            }
            FaultKind::ReadOnly => matches!(kind, TlpKind::MWr),
            FaultKind::StuckInvalidation | FaultKind::Unpinnable => false,
            FaultKind::Poisoned => matches!(kind, TlpKind::MWr | TlpKind::CplD),
            FaultKind::NoCompletion => matches!(kind, TlpKind::MRd | TlpKind::MsgD),
            FaultKind::Ecrc | FaultKind::CreditStarvation | FaultKind::LinkDown | FaultKind::SurpriseRemoval => true,
        }
    }

    /// Counts a TLP; returns whether the fault affects it.
    fn is_now(&mut self, kind: TlpKind, arrives: Ticks) -> bool {
        if self.since.is_some() || !self.is_for(kind) || arrives < self.from {
            return false;
        }
        self.left -= 1;
        if self.left == 0 {
            self.since = Some(arrives);
        }
        self.left == 0
    }

    /// Returns the effect on a TLP sent at `went` in this direction.
    ///
    /// `ends_here` if this is the destination: a flaw takes effect there.
    fn fate(&mut self, direction: DirectionIndex, went: Ticks, sent: &Sent, ends_here: bool) -> Option<Fate> {
        if self.is_over || direction.link() != self.direction.link() {
            return None;
        }
        let is_here = direction == self.direction;
        if self.kind.is_of_link() {
            let _ = is_here && self.is_now(sent.tlp.kind, sent.arrives);
            let since = self.since.filter(|since| *since <= sent.arrives)?;
            if Ticks(since.0.saturating_add(self.down.0)) <= went {
                self.is_over = true;
                return None;
            }
            let is_first = !std::mem::replace(&mut self.is_noticed, true);
            return Some(Fate::Lost { since, is_first });
        }
        let is_its_end = ends_here || self.kind == FaultKind::CreditStarvation;
        // Messages are not translated, and translated requests are not looked up.
        let is_translated = || sent.tlp.at == AddressType::Translated || Mailbox::MESSAGES.contains(&sent.tlp.address);
        if self.kind.is_of_iommu() && is_translated() {
            return None;
        }
        if !is_here || !self.is_for(sent.tlp.kind) || !is_its_end {
            return None;
        }
        if self.since.is_none() && !self.is_now(sent.tlp.kind, sent.arrives) {
            return None;
        }
        let flaw = match self.kind {
            FaultKind::NoCompletion => return Some(Fate::GoesOn(Flaw::Unanswered)),
            FaultKind::CreditStarvation => return Some(Fate::Withheld),
            FaultKind::UnsupportedRequest => Flaw::Unsupported,
            FaultKind::CompleterAbort => Flaw::Abort,
            FaultKind::Poisoned => Flaw::Poisoned,
            FaultKind::Ecrc => Flaw::BadEcrc,
            FaultKind::Unmapped => Flaw::Unmapped,
            FaultKind::ReadOnly => Flaw::ReadOnly,
            FaultKind::LinkDown | FaultKind::SurpriseRemoval | FaultKind::StuckInvalidation | FaultKind::Unpinnable => {
                return None;
            }
        };
        self.is_over = true;
        Some(Fate::GoesOn(flaw))
    }
}

/// TLPs that stay in the receive buffer of a port (injected fault).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// The port, and the sender at the other end, which waits for credits.
    pub port: String,
    /// See `port`.
    pub sender: String,
    /// Arrival time of the first one.
    pub since: Ticks,
    /// The first one; its payload slot is no longer valid.
    pub first: Tlp,
    /// Number of TLPs of each class, by [`FlowClass`].
    pub tlps: [u64; FlowClass::ALL.len()],
    /// Number of TLPs that wait at the sender.
    pub waiting: usize,
    direction: DirectionIndex,
}

/// TLPs lost on a link that is down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// The port above the link.
    pub port: String,
    /// The component below the link.
    pub below: String,
    /// Time since which it is down.
    pub since: Ticks,
    /// The first one; its payload slot is no longer valid.
    pub first: Tlp,
    /// Arrival time of the first one.
    pub at: Ticks,
    /// Number of lost TLPs.
    pub tlps: u64,
}

/// Injected faults, and their effects that no port detects.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    armed: Vec<Armed>,
    withheld: Vec<Withheld>,
    cut_off: Option<CutOff>,
    /// Reads that will time out: by time, requester ID and tag.
    given_up: BTreeMap<(Ticks, u16, u16), Tlp>,
    /// Completion timeouts of cores and of cards.
    timeouts: [Ticks; 2],
    /// Directions to cards that have not been configured since they were programmed: they decode no address.
    unconfigured: Vec<DirectionIndex>,
}

/// Returns the completion timeouts of cores and of cards.
fn timeouts(platform: &Platform) -> [Ticks; 2] {
    [platform.root_complex.completion_timeout_ns.value, platform.endpoint.completion_timeout_ns.value]
}

impl Faults {
    /// Creates the faults of a platform with these ports; `None` without faults.
    pub(crate) fn new(platform: &Platform, ports: &[[PortLimit; 2]]) -> Option<Box<Faults>> {
        let timeouts = timeouts(platform);
        let each = platform.faults.iter().enumerate();
        let mut armed: Vec<Armed> =
            each.filter_map(|(number, fault)| Armed::new(platform, number, fault, ports)).collect();
        // A TLP lost on a link is not affected by other faults.
        armed.sort_by_key(|fault| !fault.kind.is_of_link());
        (!armed.is_empty()).then(|| Box::new(Faults { armed, timeouts, ..Faults::default() }))
    }

    /// Handles a link reset: withheld TLPs are lost, and completers that did not answer work again. A link that is
    /// down stays down.
    fn reset(&mut self) {
        (self.withheld, self.cut_off, self.given_up) = (Vec::new(), None, BTreeMap::new());
        for fault in self.armed.iter_mut().filter(|fault| fault.since.is_some() && !fault.kind.is_of_link()) {
            fault.is_over = true;
        }
    }
}

impl Board {
    /// Applies faults to an arriving TLP; `None` if it is lost or withheld.
    #[cold]
    pub(super) fn apply_faults(&mut self, direction: DirectionIndex, sent: &Sent) -> Option<Tlp> {
        let (now, ends_here) = (self.now, self.ends_at(direction, &sent.tlp));
        // Every fault counts every TLP; if several meet, the first one affects it.
        let mut fate = None;
        for fault in &mut self.faults.as_mut()?.armed {
            let its = fault.fate(direction, now, sent, ends_here);
            fault.is_eclipsed |= its.is_some() && fate.is_some() && fault.is_over;
            fate = fate.or(its);
        }
        match fate {
            None if self.is_unconfigured(direction, &sent.tlp) => Some(Tlp { flaw: Flaw::Unsupported, ..sent.tlp }),
            None => Some(sent.tlp),
            Some(Fate::GoesOn(flaw)) => Some(Tlp { flaw, ..sent.tlp }),
            Some(Fate::Withheld) => {
                self.withhold(direction, sent);
                None
            }
            Some(Fate::Lost { since, is_first }) => {
                if is_first {
                    // The port above still works and detects the error.
                    self.note(AerError::SurpriseDown, direction.link().down(), Side::Sender, since, &sent.tlp);
                }
                self.cut_off(direction, since, sent);
                None
            }
        }
    }

    /// Returns whether the next invalidation command hangs.
    pub(super) fn hangs_invalidation(&mut self) -> bool {
        let now = self.now;
        let armed = self.faults.iter_mut().flat_map(|faults| &mut faults.armed);
        let waiting = armed
            .filter(|fault| fault.kind == FaultKind::StuckInvalidation && fault.since.is_none() && now >= fault.from);
        // Every fault counts every command.
        waiting.fold(false, |hangs, fault| {
            fault.left -= 1;
            let is_it = fault.left == 0;
            fault.since = is_it.then_some(now);
            hangs || is_it
        })
    }

    /// Returns whether a TLP arriving by this direction is at its destination.
    fn ends_at(&self, direction: DirectionIndex, tlp: &Tlp) -> bool {
        match self.directions[direction].to {
            End::Endpoint(_) => true,
            End::Switch { .. } => false,
            End::Root(_) => matches!(tlp.requester, OUTSIDE | ROOT_COMPLEX) || self.root_routes.below(tlp).is_none(),
        }
    }

    /// Keeps a TLP and its credits in the receive buffer of a port.
    fn withhold(&mut self, direction: DirectionIndex, sent: &Sent) {
        let [from, to] = &self.ports[direction];
        let Some(faults) = &mut self.faults else { return };
        if !faults.withheld.iter().any(|held| held.direction == direction) {
            let (port, sender) = (to.name.clone(), from.name.clone());
            let (since, first, tlps) = (sent.arrives, sent.tlp, [0; FlowClass::ALL.len()]);
            faults.withheld.push(Withheld { port, sender, since, first, tlps, waiting: 0, direction });
        }
        if let Some(held) = faults.withheld.iter_mut().find(|held| held.direction == direction) {
            held.tlps[sent.tlp.kind.class() as usize] += 1;
        }
        self.slab.give_back(sent.tlp.payload);
        self.give_up_later(&sent.tlp);
    }

    /// Handles a TLP on a link that is down: the port above completes downstream reads, and drops all else.
    fn cut_off(&mut self, direction: DirectionIndex, since: Ticks, sent: &Sent) {
        let [above, below] = &self.ports[direction.link().down()];
        let (port, below) = (above.name.clone(), below.name.clone());
        self.has_failed = true;
        if let Some(faults) = &mut self.faults {
            let (first, at) = (sent.tlp, self.now);
            faults.cut_off.get_or_insert(CutOff { port, below, since, first, at, tlps: 0 }).tlps += 1;
        }
        self.lose(direction, &sent.tlp);
        match sent.tlp.kind {
            TlpKind::MRd if direction.is_downstream() => self.refuse_above(direction, &sent.tlp),
            _ => self.give_up_later(&sent.tlp),
        }
    }

    /// Completes a read with Unsupported Request at the port above a link that is down.
    fn refuse_above(&mut self, direction: DirectionIndex, read: &Tlp) {
        let refusal = Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, flaw: Flaw::Unsupported, ..*read };
        match self.directions[direction].from {
            End::Root(port) => {
                if refusal.requester == ROOT_COMPLEX {
                    return self.refuse_peer(port, refusal);
                }
                if let Some(other) = self.root_routes.below(&refusal) {
                    return self.offer(other.down(), root_input::from(port), self.now, refusal);
                }
                let upstream = &mut self.roots[port].upstream;
                upstream.send(self.now.max(upstream.last_due()), refusal);
                let due = upstream.due();
                self.set(Port::Return(port), due);
            }
            End::Switch { switch, port } => {
                let towards = self.switches[switch].routes.below(&refusal).unwrap_or(PortIndex::UPSTREAM);
                let out = self.switch_ports[switch][towards];
                // Sent as if received by the link that is down, whose credits are unused.
                self.offer(out, port.0, self.now, refusal);
            }
            End::Endpoint(_) => {}
        }
    }

    /// Handles a defective TLP on arrival; returns whether it ends here. A request to be refused continues to its
    /// completer, and so does an error completion.
    #[cold]
    pub(super) fn ends_flawed(&mut self, direction: DirectionIndex, sent: &Sent) -> bool {
        let tlp = sent.tlp;
        if !self.ends_at(direction, &tlp) || tlp.kind == TlpKind::Cpl {
            return false;
        }
        match tlp.flaw {
            Flaw::None | Flaw::Unsupported | Flaw::Abort | Flaw::Unmapped | Flaw::ReadOnly => return false,
            Flaw::Poisoned => {
                self.note(AerError::PoisonedTlp, direction, Side::Receiver, sent.arrives, &tlp);
                match (tlp.kind, self.directions[direction].to) {
                    // The engine handles it.
                    (TlpKind::CplD, End::Endpoint(_)) => return false,
                    (TlpKind::CplD, End::Root(port)) => {
                        self.slab.give_back(tlp.payload);
                        let refusal = Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, ..tlp };
                        self.reach_root(port, &Sent { tlp: refusal, ..*sent });
                    }
                    _ => self.lose(direction, &tlp),
                }
            }
            Flaw::BadEcrc => {
                self.note(AerError::Ecrc, direction, Side::Receiver, sent.arrives, &tlp);
                self.lose(direction, &tlp);
                self.give_up_later(&tlp);
            }
            Flaw::Unanswered => {
                self.lose(direction, &tlp);
                self.give_up_later(&tlp);
            }
        }
        true
    }

    /// Logs an error at one port of a direction.
    pub(super) fn note(&mut self, error: AerError, direction: DirectionIndex, side: Side, at: Ticks, tlp: &Tlp) {
        let PortLimit { name, mps_bytes } = &self.ports[direction][side];
        let (port, mps_bytes) = (name.clone(), *mps_bytes);
        let skip = u64::from(tlp.first_be.trailing_zeros().min(3));
        let read_until = self.card_of(tlp).and_then(|card| self.engine(card)?.read_until(tlp.tag));
        let left_bytes =
            read_until.map_or(tlp.enabled_bytes() as u16, |end| end.wrapping_sub(tlp.address + skip) as u16);
        Noticed { error, port, at, tlp: *tlp, left_bytes, mps_bytes, count: 1 }.note(&mut self.errors);
        self.has_failed = true;
    }

    /// Logs the error of a request that its completer refuses.
    #[cold]
    pub(super) fn note_refused(&mut self, direction: DirectionIndex, tlp: &Tlp) {
        let aborted = tlp.flaw == Flaw::Abort;
        let error = if aborted { AerError::CompleterAbort } else { AerError::UnsupportedRequest };
        self.note(error, direction, Side::Receiver, self.now, tlp);
    }

    /// Returns the card that issued the request of a TLP.
    fn card_of(&self, tlp: &Tlp) -> Option<CardIndex> {
        let card = CardIndex(usize::from(tlp.requester.checked_sub(FIRST_CARD)?));
        (tlp.requester != OUTSIDE && card.0 < self.endpoints.len()).then_some(card)
    }

    /// Schedules the completion timeout of a lost request or completion, if it is non-posted.
    fn give_up_later(&mut self, tlp: &Tlp) {
        if tlp.kind.class() == FlowClass::Posted {
            return;
        }
        let (card, now) = (self.card_of(tlp), self.now);
        let asked = match card {
            Some(card) => self.engine(card).and_then(|engine| engine.asked_at(tlp.tag)),
            None => self.cores.get(usize::from(tlp.requester)).and_then(|core| core.asked_at(tlp.tag)),
        };
        let Some(faults) = &mut self.faults else { return };
        let at = asked.unwrap_or(now) + faults.timeouts[usize::from(card.is_some())];
        faults.given_up.insert((at.max(now), tlp.requester, tlp.tag), *tlp);
        self.refresh_timeouts();
    }

    fn refresh_timeouts(&mut self) {
        let first = self.faults.as_ref().and_then(|faults| faults.given_up.keys().next());
        let at = first.map_or(Ticks::NEVER, |(at, ..)| *at);
        self.set(Port::Timeouts, at);
    }

    /// Times out a read: it ends as if it had been refused.
    #[cold]
    pub(super) fn give_up(&mut self) {
        let due = |faults: &mut Box<Faults>| faults.given_up.pop_first();
        let Some((_, lost)) = self.faults.as_mut().and_then(due) else { return };
        let tlp = Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, flaw: Flaw::None, ..lost };
        let read = Tlp { kind: TlpKind::MRd, ..tlp };
        let card = self.card_of(&tlp);
        let root = self.root_port_of(tlp.address);
        let leaves_by = card.map_or(root.down(), |card| self.endpoint_up[card]);
        self.note(AerError::CompletionTimeout, leaves_by, Side::Sender, self.now, &read);
        if let Some(card) = card {
            if let Some(engine) = &mut self.endpoints[card].dma {
                engine.arrive(self.now, tlp);
                let due = engine.data_due();
                self.set(Port::Data(card), due);
            }
        } else if tlp.requester == OUTSIDE {
            self.outbox.push_back((self.now, tlp, [0xFF; 64]));
        } else if tlp.requester == ROOT_COMPLEX {
            self.refuse_peer(root, tlp);
        } else {
            self.root_complex.complete(self.now, tlp);
            self.set(Port::Completions, self.root_complex.completions.due());
        }
        self.refresh_timeouts();
    }

    /// Returns whether a failure occurred since the last reset.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns the errors that links have corrected since the last reset: port, error and number. A corrupted TLP is
    /// a Bad TLP at its receiver. If its `Nak` was corrupted too, its sender has a Bad DLLP and a `REPLAY_TIMER`
    /// timeout. The fourth replay in a row is a `REPLAY_NUM` rollover. There are no Receiver Errors, because symbols
    /// are not simulated.
    ///
    /// Source: PCI Express Base Specification 6.0, sections 3.6.2.1, 3.6.2.2 and 3.6.3.1.
    pub fn corrected(&self) -> impl Iterator<Item = (&str, AerError, u64)> {
        let each = self.directions.iter().zip(&self.ports).flat_map(|(direction, [from, to])| {
            let crossed = direction.transmitter.crossed;
            [
                (to.name.as_str(), AerError::BadTlp, crossed.replays),
                (from.name.as_str(), AerError::BadDllp, crossed.replay_timeouts),
                (from.name.as_str(), AerError::ReplayTimerTimeout, crossed.replay_timeouts),
                (from.name.as_str(), AerError::ReplayNumRollover, crossed.rollovers),
            ]
        });
        each.filter(|(.., count)| *count > 0)
    }

    /// Returns whether a lost read has not timed out yet.
    #[must_use]
    pub fn awaits_timeouts(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| !faults.given_up.is_empty())
    }

    /// Returns the TLPs lost on a link that is down.
    #[must_use]
    pub fn cut_off_tlps(&self) -> Option<&CutOff> {
        self.faults.as_ref()?.cut_off.as_ref()
    }

    /// Returns the TLPs withheld in receive buffers.
    pub fn withheld(&self) -> impl Iterator<Item = Withheld> + '_ {
        let all = self.faults.as_ref().map_or(&[][..], |faults| &faults.withheld);
        let waiting = |held: &Withheld| self.directions[held.direction].transmitter.queued();
        all.iter().map(move |held| Withheld { waiting: waiting(held), ..held.clone() })
    }

    /// Stops new requests; outstanding ones complete.
    pub fn halt(&mut self) {
        self.stop_kernels();
        for card in self.each_card() {
            if let Some(engine) = &mut self.endpoints[card].dma {
                engine.halt();
                self.refresh_issue(card);
            }
        }
        self.stop_cores();
        while self.step() {}
    }

    /// Resets links and engines, as after an error: outstanding requests are lost, memory and regions keep their
    /// bytes, and time continues. A link that is down stays down.
    ///
    /// # Errors
    /// [`BoardError`], as [`Board::new`] for the platform of this board.
    pub fn reset(&mut self, platform: &Platform) -> Result<(), BoardError> {
        let mut fresh = Board::new(platform)?;
        std::mem::swap(&mut fresh.memory, &mut self.memory);
        for (fresh, used) in fresh.endpoints.iter_mut().zip(&mut self.endpoints) {
            fresh.keep_bytes_of(used);
        }
        fresh.now = self.now;
        if let (Some(fresh), Some(used)) = (&mut fresh.iommu, &mut self.iommu) {
            fresh.take_over(self.now, used);
        }
        fresh.outbox = std::mem::take(&mut self.outbox);
        fresh.crossings = self.crossings.take();
        fresh.faults = self.faults.take();
        if let Some(faults) = &mut fresh.faults {
            faults.reset();
        }
        *self = fresh;
        // Pending invalidation commands are still executed.
        self.refresh_iommu();
        Ok(())
    }
}
