//! Reprogramming of a card while the machine runs: its link goes down and up, and its state is lost.
//!
//! Source: PCI Express Base Specification 6.0, sections 2.9.1 (link down resets what is below it), 3.2.1 (surprise
//! down) and 7.5.1.1.3 (a function without `Memory Space Enable` accepts no memory request).

use super::Board;
use crate::error::BoardError;
use crate::index::{CardIndex, Side};
use crate::noticed::{Noticed, PortLimit};
use crate::tlp::{Tlp, TlpKind};
use lanemark_platform::Platform;
use lanemark_wire::config::AerError;

impl Board {
    /// Returns whether the link to a card is up.
    #[must_use]
    pub fn link_is_up(&self, card: CardIndex) -> bool {
        self.fabric.down_to(card).is_some_and(|down| self.failures.link_is_up(self.events.now, down))
    }

    /// Returns whether a card answers configuration requests: its link is up and it accepts TLPs. A card that
    /// completes no memory read may still answer them, because another block does so.
    #[must_use]
    pub fn answers_config(&self, card: CardIndex) -> bool {
        self.fabric.down_to(card).is_some_and(|down| self.failures.answers_config(self.events.now, down))
    }

    /// Reprograms a card on an idle board. Its link goes down, which the port above detects unless it was known to be
    /// down, and comes up. Triggered faults of the link and the card end. The card loses its state and decodes no
    /// address until it is configured. The rest of the board is unchanged.
    ///
    /// # Errors
    /// [`BoardError`], as [`Board::new`] for the platform of this board.
    pub fn reprogram(&mut self, platform: &Platform, card: CardIndex) -> Result<(), BoardError> {
        let Some(down) = self.fabric.down_to(card) else { return Ok(()) };
        let mut fresh = Board::new(platform)?;
        let mut faults = self.failures.injected.take().unwrap_or_default();
        let is_known = faults.reprogram(down.link(), self.events.now, platform);
        self.reset(platform)?;
        std::mem::swap(&mut self.endpoints[card], &mut fresh.endpoints[card]);
        self.failures.injected = Some(faults);
        if !is_known {
            // The error has no TLP.
            let (tlp, left_bytes, at, error) = (Tlp::of(TlpKind::MRd), 0, self.events.now, AerError::SurpriseDown);
            let PortLimit { name, mps_bytes } = self.fabric.port(down, Side::Sender);
            let (port, mps_bytes) = (name.clone(), *mps_bytes);
            self.failures.note(Noticed { error, port, at, tlp, left_bytes, mps_bytes, count: 1 });
        }
        Ok(())
    }

    /// Configures a card, so that it decodes its addresses.
    pub fn configure(&mut self, card: CardIndex) {
        if let Some(down) = self.fabric.down_to(card) {
            self.failures.configure(down);
        }
    }
}
