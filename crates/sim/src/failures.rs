//! The failures of a board: errors detected by ports, TLPs without a route, and injected faults with their effects.
//!
//! The faults and their effects are in `failures/`. A board looks up the effect on each TLP that arrives at a port, if
//! the platform has faults, and carries it out.

mod faults;
mod injected_fault;
mod pins;

pub use faults::{CutOff, Withheld};
pub(crate) use faults::{Fate, Faults};

use crate::events::Events;
use crate::index::DirectionIndex;
use crate::noticed::{Noticed, PortLimit};
use crate::ports::Port;
use crate::steady::Survey;
use crate::tlp::Tlp;
use lanemark_platform::Platform;
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;

/// State of the failures.
#[derive(Debug)]
pub(crate) struct Failures {
    /// Uncorrectable errors detected by ports since the last reset, the first one first.
    errors: Vec<Noticed>,
    /// Whether any failure occurred since then.
    has_failed: bool,
    /// Number of TLPs without a route.
    lost: u64,
    /// Injected faults.
    pub(crate) injected: Option<Box<Faults>>,
}

impl Failures {
    /// Arms the faults of a platform with these ports; nothing has failed yet.
    pub(crate) fn new(platform: &Platform, ports: &[[PortLimit; 2]]) -> Failures {
        Failures { errors: Vec::new(), has_failed: false, lost: 0, injected: Faults::new(platform, ports) }
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let Failures { errors, has_failed, lost, injected } = self;
        view.state(*lost);
        view.count(errors.len());
        view.flag(*has_failed);
        // With faults, no steady state is skipped.
        view.flag(injected.is_some());
    }

    /// Logs an error detected by a port.
    pub(crate) fn note(&mut self, error: Noticed) {
        error.note(&mut self.errors);
        self.has_failed = true;
    }

    /// Records a failure that no port detects.
    pub(crate) fn fail(&mut self) {
        self.has_failed = true;
    }

    /// Counts a TLP without a route.
    pub(crate) fn lose(&mut self) {
        self.lost += 1;
    }

    /// Returns the number of TLPs without a route.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns whether a failure occurred since the last reset.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns the errors detected since the last reset, the first one first.
    pub(crate) fn errors(&self) -> &[Noticed] {
        &self.errors
    }

    /// Takes the errors detected since the last reset or the last call.
    pub(crate) fn take_errors(&mut self) -> Vec<Noticed> {
        self.has_failed = false;
        std::mem::take(&mut self.errors)
    }

    /// Takes over the injected faults of the board before a link reset.
    pub(crate) fn take_over(&mut self, used: &mut Failures) {
        self.injected = used.injected.take();
        if let Some(faults) = &mut self.injected {
            faults.reset();
        }
    }

    /// Returns whether the link of this direction down to a card is up.
    pub(crate) fn link_is_up(&self, now: Ticks, down: DirectionIndex) -> bool {
        !self.injected.as_ref().is_some_and(|faults| faults.is_down(down.link(), now))
    }

    /// Returns whether the card at the end of this direction answers configuration requests.
    pub(crate) fn answers_config(&self, now: Ticks, down: DirectionIndex) -> bool {
        self.link_is_up(now, down) && !self.injected.as_ref().is_some_and(|faults| faults.is_starved(down))
    }

    /// Makes the card at the end of this direction decode its addresses.
    pub(crate) fn configure(&mut self, down: DirectionIndex) {
        if let Some(faults) = &mut self.injected {
            faults.unconfigured.retain(|direction| *direction != down);
        }
    }

    /// Returns whether a TLP requests a card that decodes no address.
    pub(crate) fn is_unconfigured(&self, direction: DirectionIndex, tlp: &Tlp) -> bool {
        let is_request = tlp.kind.class() != FlowClass::Completion;
        is_request && self.injected.as_ref().is_some_and(|faults| faults.unconfigured.contains(&direction))
    }

    /// Returns whether a lost read has not timed out yet.
    pub(crate) fn awaits_timeouts(&self) -> bool {
        self.injected.as_ref().is_some_and(|faults| faults.timeout_due() < Ticks::NEVER)
    }

    /// Reschedules the next completion timeout.
    pub(crate) fn refresh_timeouts(&self, events: &mut Events) {
        let at = self.injected.as_ref().map_or(Ticks::NEVER, |faults| faults.timeout_due());
        events.set(Port::Timeouts, at);
    }

    /// Returns the TLPs lost on a link that is down.
    pub(crate) fn cut_off_tlps(&self) -> Option<&CutOff> {
        self.injected.as_ref()?.cut_off.as_ref()
    }

    /// Returns the TLPs withheld in receive buffers; their [`Withheld::waiting`] is zero.
    pub(crate) fn withheld(&self) -> &[Withheld] {
        self.injected.as_ref().map_or(&[], |faults| &faults.withheld)
    }
}
