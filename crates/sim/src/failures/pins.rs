//! Pages that cannot be pinned (injected fault): passed to programs of cores, and collected from them.

use super::Failures;
use crate::host::cores::Cores;
use crate::host::pins::{Pins, RefusedPage};
use lanemark_units::Ticks;

impl Failures {
    /// Returns the pin counter for a program that calls the driver of this card at `now`.
    pub(crate) fn pins(&self, now: Ticks, card: u32) -> Option<Pins> {
        let armed = self.injected.iter().flat_map(|faults| &faults.armed).filter(|fault| fault.since.is_none());
        let mut of_card = armed.filter(|fault| fault.card == Some(card) && now >= fault.from);
        of_card.next().map(|fault| Pins::until(card, fault.left))
    }

    /// Returns whether a program could not pin a page.
    pub(crate) fn has_refused_page(&self, cores: &Cores) -> bool {
        self.injected.is_some() && cores.pins().any(|(_, pins)| pins.refused().is_some())
    }

    /// Collects the pin counters of programs. Returns the page that could not be pinned and the end of its call, if
    /// there was one. Each core counts separately; the largest count is used.
    pub(crate) fn take_pins(&mut self, now: Ticks, cores: &Cores) -> Option<(RefusedPage, Ticks)> {
        let faults = self.injected.as_mut()?;
        let mut refused = None;
        for (core, pins) in cores.pins() {
            let mut armed = faults.armed.iter_mut().filter(|fault| fault.since.is_none());
            let Some(fault) = armed.find(|fault| fault.card == Some(pins.card())) else { continue };
            match pins.refused() {
                Some(page) => {
                    let over = core.issued_at().max(now);
                    (fault.since, fault.is_noticed) = (Some(over), true);
                    refused = refused.or(Some((page, over)));
                }
                None => fault.left = fault.left.min(pins.left()),
            }
        }
        refused
    }
}
