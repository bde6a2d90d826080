//! Reprogramming of a card while the machine runs: its link goes down and up, and its state is lost.
//!
//! Source: PCI Express Base Specification 6.0, sections 2.9.1 (link down resets what is below it), 3.2.1 (surprise
//! down) and 7.5.1.1.3 (a function without `Memory Space Enable` accepts no memory request).

use super::{Board, Faults, timeouts};
use crate::error::BoardError;
use crate::index::{CardIndex, DirectionIndex, LinkIndex, Side};
use crate::noticed::{Noticed, PortLimit};
use crate::tlp::{Tlp, TlpKind};
use lanemark_platform::{FaultKind, Platform};
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;
use lanemark_wire::config::AerError;

impl Faults {
    /// Returns whether a link is down at a time.
    fn is_down(&self, link: LinkIndex, at: Ticks) -> bool {
        let mut those = self.armed.iter().filter(|fault| fault.kind.is_of_link() && fault.direction.link() == link);
        those.any(|fault| {
            let until = |since: Ticks| Ticks(since.0.saturating_add(fault.down.0));
            !fault.is_over && fault.since.is_some_and(|since| since <= at && at < until(since))
        })
    }

    /// Returns whether the port above a link has detected that it is down.
    fn is_noticed(&self, link: LinkIndex) -> bool {
        let mut those = self.armed.iter().filter(|fault| fault.kind.is_of_link() && fault.direction.link() == link);
        those.any(|fault| fault.is_noticed && !fault.is_over)
    }

    /// Ends the faults of a link and of the card below it.
    fn heal(&mut self, link: LinkIndex, now: Ticks) {
        self.withheld.retain(|held| held.direction.link() != link);
        self.cut_off = None;
        for fault in self.armed.iter_mut().filter(|fault| fault.direction.link() == link) {
            fault.is_over |= fault.since.is_some_and(|since| since <= now);
        }
    }
}

impl Board {
    /// Takes the errors that ports detected since the last reset or the last call.
    pub fn take_errors(&mut self) -> Vec<Noticed> {
        self.has_failed = false;
        std::mem::take(&mut self.errors)
    }

    /// Returns the direction down to a card.
    fn down_to(&self, card: CardIndex) -> Option<DirectionIndex> {
        self.endpoint_up.get(card.0).map(|up| up.link().down())
    }

    /// Returns whether the link to a card is up.
    #[must_use]
    pub fn link_is_up(&self, card: CardIndex) -> bool {
        let is_down = |faults: &Faults, down: DirectionIndex| faults.is_down(down.link(), self.now);
        self.down_to(card).is_some_and(|down| !self.faults.as_ref().is_some_and(|faults| is_down(faults, down)))
    }

    /// Returns whether a card answers configuration requests: its link is up and it accepts TLPs. A card that
    /// completes no memory read may still answer them, because another block does so.
    #[must_use]
    pub fn answers_config(&self, card: CardIndex) -> bool {
        let takes = |down: DirectionIndex| {
            let mut armed = self.faults.iter().flat_map(|faults| &faults.armed);
            !armed.any(|fault| {
                fault.kind == FaultKind::CreditStarvation
                    && fault.direction == down
                    && fault.since.is_some()
                    && !fault.is_over
            })
        };
        self.link_is_up(card) && self.down_to(card).is_some_and(takes)
    }

    /// Reprograms a card on an idle board. Its link goes down, which the port above detects unless it was known to be
    /// down, and comes up. Triggered faults of the link and the card end. The card loses its state and decodes no
    /// address until it is configured. The rest of the board is unchanged.
    ///
    /// # Errors
    /// [`BoardError`], as [`Board::new`] for the platform of this board.
    pub fn reprogram(&mut self, platform: &Platform, card: CardIndex) -> Result<(), BoardError> {
        let Some(down) = self.down_to(card) else { return Ok(()) };
        let mut fresh = Board::new(platform)?;
        let mut faults = self.faults.take().unwrap_or_default();
        let is_known = faults.is_noticed(down.link());
        faults.heal(down.link(), self.now);
        faults.timeouts = timeouts(platform);
        faults.unconfigured.push(down);
        self.reset(platform)?;
        std::mem::swap(&mut self.endpoints[card], &mut fresh.endpoints[card]);
        self.faults = Some(faults);
        if !is_known {
            // The error has no TLP.
            let (tlp, left_bytes, at, error) = (Tlp::of(TlpKind::MRd), 0, self.now, AerError::SurpriseDown);
            let PortLimit { name, mps_bytes } = &self.ports[down][Side::Sender];
            let (port, mps_bytes) = (name.clone(), *mps_bytes);
            Noticed { error, port, at, tlp, left_bytes, mps_bytes, count: 1 }.note(&mut self.errors);
            self.has_failed = true;
        }
        Ok(())
    }

    /// Configures a card, so that it decodes its addresses.
    pub fn configure(&mut self, card: CardIndex) {
        let down = self.down_to(card);
        if let Some(faults) = &mut self.faults {
            faults.unconfigured.retain(|direction| Some(*direction) != down);
        }
    }

    /// Returns whether a TLP requests a card that decodes no address.
    pub(super) fn is_unconfigured(&self, direction: DirectionIndex, tlp: &Tlp) -> bool {
        let is_request = tlp.kind.class() != FlowClass::Completion;
        is_request && self.faults.as_ref().is_some_and(|faults| faults.unconfigured.contains(&direction))
    }
}
