//! Effects of injected faults on a board: they affect TLPs, ports detect errors, requesters time out.
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
use crate::fabric::End;
use crate::fabric::link::Sent;
use crate::failures::{CutOff, Fate, Withheld};
use crate::host::pins::RefusedPage;
use crate::index::{DirectionIndex, Side};
use crate::noticed::{Noticed, PortLimit};
use crate::ports::{Port, root_input};
use crate::requester::{OUTSIDE, ROOT_COMPLEX};
use crate::tlp::{Flaw, Tlp, TlpKind};
use lanemark_engine::Slot;
use lanemark_machine::InjectedFault;
use lanemark_platform::Platform;
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;
use lanemark_wire::config::AerError;

mod hot_plug;

impl Board {
    /// Applies faults to an arriving TLP; `None` if it is lost or withheld.
    #[cold]
    pub(super) fn apply_faults(&mut self, direction: DirectionIndex, sent: &Sent) -> Option<Tlp> {
        let (now, ends_here) = (self.events.now, self.ends_at(direction, &sent.tlp));
        let fate = self.failures.injected.as_mut()?.fate(direction, now, sent, ends_here);
        match fate {
            None if self.failures.is_unconfigured(direction, &sent.tlp) => {
                Some(Tlp { flaw: Flaw::Unsupported, ..sent.tlp })
            }
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
        self.failures.injected.as_mut().is_some_and(|faults| faults.hangs_invalidation(self.events.now))
    }

    /// Returns whether a TLP arriving by this direction is at its destination.
    fn ends_at(&self, direction: DirectionIndex, tlp: &Tlp) -> bool {
        match self.fabric.directions[direction].to {
            End::Endpoint(_) => true,
            End::Switch { .. } => false,
            End::Root(_) => {
                matches!(tlp.requester, OUTSIDE | ROOT_COMPLEX) || self.root_complex.routes.below(tlp).is_none()
            }
        }
    }

    /// Keeps a TLP and its credits in the receive buffer of a port.
    fn withhold(&mut self, direction: DirectionIndex, sent: &Sent) {
        if let Some(faults) = &mut self.failures.injected {
            faults.withhold(direction, &self.fabric.ports()[direction.0], sent);
        }
        self.slab.give_back(sent.tlp.payload);
        self.give_up_later(&sent.tlp);
    }

    /// Handles a TLP on a link that is down: the port above completes downstream reads, and drops all else.
    fn cut_off(&mut self, direction: DirectionIndex, since: Ticks, sent: &Sent) {
        self.failures.fail();
        if let Some(faults) = &mut self.failures.injected {
            faults.cut_off(&self.fabric.ports()[direction.link().down().0], since, self.events.now, sent.tlp);
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
        let now = self.events.now;
        match self.fabric.directions[direction].from {
            End::Root(port) => {
                if refusal.requester == ROOT_COMPLEX {
                    return self.root_complex.refuse_peer(&mut self.events, port, refusal);
                }
                if let Some(other) = self.root_complex.routes.below(&refusal) {
                    return self.fabric.offer(&mut self.events, other.down(), root_input::from(port), now, refusal);
                }
                let at = now.max(self.root_complex.roots[port].upstream.last_due());
                self.root_complex.send_upstream(&mut self.events, port, at, refusal);
            }
            End::Switch { switch, port } => {
                let out = self.fabric.to_requester(switch, &refusal);
                // Sent as if received by the link that is down, whose credits are unused.
                self.fabric.offer(&mut self.events, out, port.0, now, refusal);
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
                match (tlp.kind, self.fabric.directions[direction].to) {
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
        let PortLimit { name, mps_bytes } = self.fabric.port(direction, side);
        let (port, mps_bytes) = (name.clone(), *mps_bytes);
        let skip = u64::from(tlp.first_be.trailing_zeros().min(3));
        let read_until = self.endpoints.card_of(tlp).and_then(|card| self.endpoints.engine(card)?.read_until(tlp.tag));
        let left_bytes =
            read_until.map_or(tlp.enabled_bytes() as u16, |end| end.wrapping_sub(tlp.address + skip) as u16);
        self.failures.note(Noticed { error, port, at, tlp: *tlp, left_bytes, mps_bytes, count: 1 });
    }

    /// Logs the error of a request that its completer refuses.
    #[cold]
    pub(super) fn note_refused(&mut self, direction: DirectionIndex, tlp: &Tlp) {
        let aborted = tlp.flaw == Flaw::Abort;
        let error = if aborted { AerError::CompleterAbort } else { AerError::UnsupportedRequest };
        self.note(error, direction, Side::Receiver, self.events.now, tlp);
    }

    /// Schedules the completion timeout of a lost request or completion, if it is non-posted.
    fn give_up_later(&mut self, tlp: &Tlp) {
        if tlp.kind.class() == FlowClass::Posted {
            return;
        }
        let (card, now) = (self.endpoints.card_of(tlp), self.events.now);
        let asked = match card {
            Some(card) => self.endpoints.engine(card).and_then(|engine| engine.asked_at(tlp.tag)),
            None => self.cores.get(usize::from(tlp.requester)).and_then(|core| core.asked_at(tlp.tag)),
        };
        let Some(faults) = &mut self.failures.injected else { return };
        faults.give_up_later(now, asked, card.is_some(), tlp);
        self.failures.refresh_timeouts(&mut self.events);
    }

    /// Times out a read: it ends as if it had been refused.
    #[cold]
    pub(super) fn give_up(&mut self) {
        let Some(lost) = self.failures.injected.as_mut().and_then(|faults| faults.take_timeout()) else { return };
        let tlp = Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, flaw: Flaw::None, ..lost };
        let read = Tlp { kind: TlpKind::MRd, ..tlp };
        let card = self.endpoints.card_of(&tlp);
        let root = self.root_complex.port_above(tlp.address);
        let leaves_by = card.map_or(root.down(), |card| self.fabric.up_from(card));
        self.note(AerError::CompletionTimeout, leaves_by, Side::Sender, self.events.now, &read);
        if let Some(card) = card {
            if let Some(engine) = &mut self.endpoints[card].dma {
                engine.arrive(self.events.now, tlp, &mut self.events.path);
                let due = engine.data_due();
                self.events.set(Port::Data(card), due);
            }
        } else if tlp.requester == OUTSIDE {
            self.observation.outbox.push_back((self.events.now, tlp, [0xFF; 64]));
        } else if tlp.requester == ROOT_COMPLEX {
            self.root_complex.refuse_peer(&mut self.events, root, tlp);
        } else {
            self.root_complex.requests.complete(&mut self.events, tlp);
        }
        self.failures.refresh_timeouts(&mut self.events);
    }

    /// Returns whether a failure occurred since the last reset.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failures.has_failed()
    }

    /// Returns the uncorrectable errors that ports detected since the last reset, the first one first.
    #[must_use]
    pub fn errors(&self) -> &[Noticed] {
        self.failures.errors()
    }

    /// Takes the errors that ports detected since the last reset or the last call.
    pub fn take_errors(&mut self) -> Vec<Noticed> {
        self.failures.take_errors()
    }

    /// Returns the number of TLPs without a route.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.failures.lost()
    }

    /// Returns the state of each fault of `platform`, the one of the board.
    #[must_use]
    pub fn injected_faults(&self, platform: &Platform) -> Vec<InjectedFault> {
        self.failures.injected_faults(self.events.now, platform)
    }

    /// Returns whether a program could not pin a page.
    #[must_use]
    pub fn has_refused_page(&self) -> bool {
        self.failures.has_refused_page(&self.cores)
    }

    /// Collects the pin counters of programs. Returns the page that could not be pinned and the end of its call, if
    /// there was one.
    pub fn take_pins(&mut self) -> Option<(RefusedPage, Ticks)> {
        self.failures.take_pins(self.events.now, &self.cores)
    }

    /// Returns whether a lost read has not timed out yet.
    #[must_use]
    pub fn awaits_timeouts(&self) -> bool {
        self.failures.awaits_timeouts()
    }

    /// Returns the TLPs lost on a link that is down.
    #[must_use]
    pub fn cut_off_tlps(&self) -> Option<&CutOff> {
        self.failures.cut_off_tlps()
    }

    /// Returns the TLPs withheld in receive buffers.
    pub fn withheld(&self) -> impl Iterator<Item = Withheld> + '_ {
        let waiting = |held: &Withheld| self.fabric.directions[held.direction].transmitter.queued();
        self.failures.withheld().iter().map(move |held| Withheld { waiting: waiting(held), ..held.clone() })
    }

    /// Resets links and engines, as after an error: outstanding requests are lost, memory and regions keep their
    /// bytes, and time continues. A link that is down stays down.
    ///
    /// # Errors
    /// [`BoardError`], as [`Board::new`] for the platform of this board.
    pub fn reset(&mut self, platform: &Platform) -> Result<(), BoardError> {
        let mut fresh = Board::new(platform)?;
        std::mem::swap(&mut fresh.memory.bytes, &mut self.memory.bytes);
        for card in fresh.each_card() {
            fresh.endpoints[card].keep_bytes_of(&mut self.endpoints[card]);
        }
        if let Some(card) = self.detach() {
            fresh.attach(card, platform);
        }
        fresh.events.now = self.events.now;
        if let (Some(fresh), Some(used)) = (&mut fresh.iommu, &mut self.iommu) {
            fresh.take_over(self.events.now, used);
        }
        fresh.observation.take_over(&mut self.observation);
        fresh.failures.take_over(&mut self.failures);
        *self = fresh;
        // Pending invalidation commands are still executed.
        self.refresh_iommu();
        Ok(())
    }
}
