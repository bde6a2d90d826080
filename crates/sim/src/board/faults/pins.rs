//! Pages that cannot be pinned: from the platform's faults to the programs of cores, and back.

use super::Board;
use crate::host::core::Core;
use crate::host::pins::{Pins, RefusedPage};
use lanemark_platform::{FaultKind, Platform};
use lanemark_units::Ticks;

impl Board {
    /// What a program that calls the driver of this card has to count.
    pub(in crate::board) fn pins(&self, card: u32) -> Option<Pins> {
        let armed = self.faults.iter().flat_map(|faults| &faults.armed).filter(|fault| fault.since.is_none());
        let mut of_card = armed.filter(|fault| fault.card == Some(card) && self.now >= fault.from);
        of_card.next().map(|fault| Pins::until(card, fault.left))
    }

    /// Whether a program could not pin a page.
    #[must_use]
    pub fn has_refused_page(&self) -> bool {
        self.faults.is_some() && self.cores.iter().filter_map(Core::pins).any(|pins| pins.refused().is_some())
    }

    /// Takes over what programs have counted. The page that one of them could not pin, and when its call was over, if there was one: each
    /// core counts for itself, and the one that has pinned most is ahead.
    pub fn take_pins(&mut self) -> Option<(RefusedPage, Ticks)> {
        let faults = self.faults.as_mut()?;
        let mut refused = None;
        for core in &self.cores {
            let Some(pins) = core.pins() else { continue };
            let mut armed = faults.armed.iter_mut().filter(|fault| fault.since.is_none());
            let Some(fault) = armed.find(|fault| fault.card == Some(pins.card())) else { continue };
            match pins.refused() {
                Some(page) => {
                    let over = core.issued_at().max(self.now);
                    (fault.since, fault.is_noticed) = (Some(over), true);
                    refused = refused.or(Some((page, over)));
                }
                None => fault.left = fault.left.min(pins.left()),
            }
        }
        refused
    }
}

/// The card whose driver a fault is about, if it is about one.
pub(super) fn card_of(platform: &Platform, kind: FaultKind, port: &str) -> Option<u32> {
    let cards = (0..platform.cards()).filter(|_| kind == FaultKind::Unpinnable);
    cards.into_iter().find(|card| platform.card_name(*card as usize) == Some(port))
}
