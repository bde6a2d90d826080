//! The declared registers of a card: timers that a core reads and sets, and user registers.
//!
//! ```text
//!  store --> timers, user registers; ignored elsewhere
//!  load  <-- the timer when its region completes the read; the last written value
//! ```
//!
//! The first timer always runs. The timer of a channel runs while the channel has a transfer: from its command to the
//! arrival or departure of the last byte on the card's data path. The card cannot observe when its writes reach their
//! destination.

use crate::device::timer::Timer;
use crate::steady::Survey;
use crate::tlp::Tlp;
use lanemark_units::Ticks;
use std::ops::Range;

/// Constants of the registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Index of their region.
    pub place: usize,
    /// Offsets of the timers in the region.
    pub timers: Range<u64>,
    /// Offsets of the user registers in the region.
    pub users: Range<u64>,
    /// Period of the card's clock.
    pub tick: Ticks,
}

/// Bytes of a timer.
const TIMER: u64 = 8;

/// State of the registers, without the timers of channels and the stored bytes of the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    spec: Spec,
    clock: Timer,
}

impl Registers {
    /// Creates the registers as at power-on.
    #[must_use]
    pub fn new(spec: Spec) -> Registers {
        let mut clock = Timer::default();
        clock.start(Ticks::ZERO);
        Registers { spec, clock }
    }

    /// Returns the index of their region.
    pub(crate) fn place(&self) -> usize {
        self.spec.place
    }

    /// Returns the offsets that keep written bytes.
    pub(crate) fn kept(&self) -> [Range<u64>; 2] {
        [self.spec.timers.clone(), self.spec.users.clone()]
    }

    /// Returns the timers that a TLP at `offset` of region `place` touches; timer 0 is the free-running one.
    #[inline]
    pub(crate) fn touched(&self, place: usize, offset: u64, tlp: &Tlp) -> Range<usize> {
        let Range { start, end } = self.spec.timers;
        let (from, until) = (offset.max(start), (offset + u64::from(tlp.length_dw) * 4).min(end));
        if place != self.spec.place || from >= until {
            return 0..0;
        }
        ((from - start) / TIMER) as usize..((until - start).div_ceil(TIMER)) as usize
    }

    /// Returns the offset of a timer in the region.
    pub(crate) fn offset_of(&self, timer: usize) -> u64 {
        self.spec.timers.start + timer as u64 * TIMER
    }

    /// Returns the free-running timer.
    pub(crate) fn clock_at(&self, now: Ticks) -> u64 {
        self.clock.at(now, self.spec.tick)
    }

    /// Writes the free-running timer.
    pub(crate) fn set_clock(&mut self, now: Ticks, value: u64) {
        self.clock.set(now, value);
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let Registers { spec: _, clock } = self;
        clock.visit(view);
    }
}
