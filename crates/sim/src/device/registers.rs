//! What the registers of a card are: timers that a core reads and sets, and the user's, which keep what is written.
//!
//! ```text
//!  store --> timers, the user's registers; lost elsewhere
//!  load  <-- what a timer shows when its region answers; what was written
//! ```
//!
//! The first timer always runs. That of a channel runs while the channel has a transfer to make: from its command until the last
//! byte has come, or has gone on the card's data path. A card does not know when what it wrote is where it was to go.

use crate::device::timer::Timer;
use crate::steady::Survey;
use crate::tlp::Tlp;
use lanemark_units::Ticks;
use std::ops::Range;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// In which region.
    pub place: usize,
    /// Where in it the timers are.
    pub timers: Range<u64>,
    /// Where in it the user's registers are.
    pub users: Range<u64>,
    /// One of the card's clock.
    pub tick: Ticks,
}

/// Bytes of a timer.
const TIMER: u64 = 8;

/// Everything that changes, but for the timers of channels, which are theirs, and for what the region keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    spec: Spec,
    clock: Timer,
}

impl Registers {
    /// As at power-on.
    #[must_use]
    pub fn new(spec: Spec) -> Registers {
        let mut clock = Timer::default();
        clock.start(Ticks::ZERO);
        Registers { spec, clock }
    }

    /// In which region they are.
    pub(crate) fn place(&self) -> usize {
        self.spec.place
    }

    /// Where in it what is written stays.
    pub(crate) fn kept(&self) -> [Range<u64>; 2] {
        [self.spec.timers.clone(), self.spec.users.clone()]
    }

    /// Which timers a TLP touches that begins at `offset` in region `place`; the first is that which always runs.
    #[inline]
    pub(crate) fn touched(&self, place: usize, offset: u64, tlp: &Tlp) -> Range<usize> {
        let Range { start, end } = self.spec.timers;
        let (from, until) = (offset.max(start), (offset + u64::from(tlp.length_dw) * 4).min(end));
        if place != self.spec.place || from >= until {
            return 0..0;
        }
        ((from - start) / TIMER) as usize..((until - start).div_ceil(TIMER)) as usize
    }

    /// Where in the region a timer is.
    pub(crate) fn offset_of(&self, timer: usize) -> u64 {
        self.spec.timers.start + timer as u64 * TIMER
    }

    /// What the timer that always runs shows.
    pub(crate) fn clock_at(&self, now: Ticks) -> u64 {
        self.clock.at(now, self.spec.tick)
    }

    /// Somebody writes to it.
    pub(crate) fn set_clock(&mut self, now: Ticks, value: u64) {
        self.clock.set(now, value);
    }

    /// Shows everything that changes.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let Registers { spec: _, clock } = self;
        clock.visit(view);
    }
}
