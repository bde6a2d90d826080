//! A card that is programmed again while the machine runs: its link goes down and comes up, and what it was is gone.
//!
//! Source: PCI Express Base Specification 6.0, sections 2.9.1 (a link that is down resets what is below it), 3.2.1 (surprise
//! down) and 7.5.1.1.3 (a function without `Memory Space Enable` takes no memory request).

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
    /// Whether a link is down at a time.
    fn is_down(&self, link: LinkIndex, at: Ticks) -> bool {
        let mut those = self.armed.iter().filter(|fault| fault.kind.is_of_link() && fault.direction.link() == link);
        those.any(|fault| {
            let until = |since: Ticks| Ticks(since.0.saturating_add(fault.down.0));
            !fault.is_over && fault.since.is_some_and(|since| since <= at && at < until(since))
        })
    }

    /// Whether the port above a link has noticed that it is down.
    fn is_noticed(&self, link: LinkIndex) -> bool {
        let mut those = self.armed.iter().filter(|fault| fault.kind.is_of_link() && fault.direction.link() == link);
        those.any(|fault| fault.is_noticed && !fault.is_over)
    }

    /// What was wrong until now at a link and at the card below it is over.
    fn heal(&mut self, link: LinkIndex, now: Ticks) {
        self.withheld.retain(|held| held.direction.link() != link);
        self.cut_off = None;
        for fault in self.armed.iter_mut().filter(|fault| fault.direction.link() == link) {
            fault.is_over |= fault.since.is_some_and(|since| since <= now);
        }
    }
}

impl Board {
    /// The errors that ports noticed since the last reset, or since somebody took them last.
    pub fn take_errors(&mut self) -> Vec<Noticed> {
        self.has_failed = false;
        std::mem::take(&mut self.errors)
    }

    /// The direction that leads down to a card.
    fn down_to(&self, card: CardIndex) -> Option<DirectionIndex> {
        self.endpoint_up.get(card.0).map(|up| up.link().down())
    }

    /// Whether the link to a card is up.
    #[must_use]
    pub fn link_is_up(&self, card: CardIndex) -> bool {
        let is_down = |faults: &Faults, down: DirectionIndex| faults.is_down(down.link(), self.now);
        self.down_to(card).is_some_and(|down| !self.faults.as_ref().is_some_and(|faults| is_down(faults, down)))
    }

    /// Whether a card answers requests for its configuration space: its link is up, and it takes what comes. One that answers no
    /// read of its memory may still do so, for the block that answers is another one.
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

    /// Programs a card again, on a quiet board: its link goes down, which the port above notices unless it was down and noticed
    /// already, and comes up; faults that have happened there are over; what the card kept is gone, and it decodes no address
    /// until somebody configures it. What else the board keeps, it keeps.
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
            // It is about no TLP.
            let (tlp, left_bytes, at, error) = (Tlp::of(TlpKind::MRd), 0, self.now, AerError::SurpriseDown);
            let PortLimit { name, mps_bytes } = &self.ports[down][Side::Sender];
            let (port, mps_bytes) = (name.clone(), *mps_bytes);
            Noticed { error, port, at, tlp, left_bytes, mps_bytes, count: 1 }.note(&mut self.errors);
            self.has_failed = true;
        }
        Ok(())
    }

    /// A card is configured: it decodes its addresses.
    pub fn configure(&mut self, card: CardIndex) {
        let down = self.down_to(card);
        if let Some(faults) = &mut self.faults {
            faults.unconfigured.retain(|direction| Some(*direction) != down);
        }
    }

    /// Whether a TLP asks a card that decodes no address.
    pub(super) fn is_unconfigured(&self, direction: DirectionIndex, tlp: &Tlp) -> bool {
        let is_request = tlp.kind.class() != FlowClass::Completion;
        is_request && self.faults.as_ref().is_some_and(|faults| faults.unconfigured.contains(&direction))
    }
}
