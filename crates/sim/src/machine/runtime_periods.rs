//! Fast-forward of iterations in which a program repeats one command to its runtime.
//!
//! A period lasts from one time at which the core is about to ring the first doorbell of an iteration to the next. If
//! no other event is due on the board until then, and no earlier event has an effect any more, the future depends
//! only on the core's program, which is at the same place in each period. Such periods repeat exactly. Two must be
//! equal before any is skipped; the last two iterations are simulated.

use super::waits::Waits;
use crate::board::Board;
use crate::board::used::Used;
use crate::fabric::link::Crossed;
use crate::host::program::Program;
use crate::host::runtime::CARD;
use lanemark_machine::{Plan, QueueRequest, Steady, Unsteady};
use lanemark_units::Ticks;

/// Minimum number of iterations for the search.
const WORTH_PASSES: u64 = 8;
/// Number of iterations at the end that are simulated.
const LAST_PASSES: u64 = 2;

/// Counters of a run that grow from period to period, or their growth over periods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// Time since the start of the board, or of the periods.
    pub span: Ticks,
    pub waits: Waits,
    /// Stall time of the card for descriptors.
    pub fetching: Ticks,
    pub crossed: [Crossed; 2],
    pub used: Used,
}

/// The search for equal periods.
#[derive(Debug)]
pub(super) struct RuntimePeriods {
    core: usize,
    seen: u64,
    before: Option<Counts>,
    lap: Option<Counts>,
    left_out: Option<Counts>,
    found: Option<Steady>,
}

impl RuntimePeriods {
    /// Creates the search for a plan, if it uses a runtime.
    pub(super) fn of(plan: &Plan, board: &Board, passes: u64, is_wanted: bool) -> RuntimePeriods {
        let core = plan.work.cores().first().map_or(0, |core| *core as usize);
        let transfers = plan.work.request().and_then(|request| match request {
            QueueRequest::Launch(launch) => Some(passes.saturating_mul(launch.kernels.into())),
            QueueRequest::Copy(copy) => {
                Some(passes.saturating_mul(board.parts(copy).map_or(1, |parts| parts.call.transfer.count)))
            }
            QueueRequest::SmallCopies(copies) => {
                Some(passes.saturating_mul(board.group(copies).map_or(1, |group| group.call.transfer.count)))
            }
            QueueRequest::Compute(_) => None,
        });
        let unwanted = (!is_wanted).then_some(Unsteady::Unwanted);
        let few = (passes < WORTH_PASSES).then_some(Unsteady::Few);
        let because = unwanted.or(few).or_else(|| board.unsteady_runtime());
        let found = transfers.map(|transfers| Steady { transfers, because, ..Steady::default() });
        RuntimePeriods { core, seen: 0, before: None, lap: None, left_out: None, found }
    }

    /// Examines the board, and skips iterations that end before `deadline`; returns whether it skipped any.
    #[inline]
    pub(super) fn look(&mut self, board: &mut Board, passes: u64, deadline: Ticks) -> bool {
        let is_looking = self.left_out.is_none() && self.found.is_some_and(|found| found.because.is_none());
        if !is_looking {
            return false;
        }
        let laps = board.core(self.core).program().map_or(0, Program::laps);
        let is_next = laps != self.seen;
        self.seen = laps;
        is_next && self.look_closely(board, passes, deadline)
    }

    #[cold]
    fn look_closely(&mut self, board: &mut Board, passes: u64, deadline: Ticks) -> bool {
        let Some(now) = Counts::of(board, self.core) else {
            (self.before, self.lap) = (None, None);
            return false;
        };
        let lap = self.before.replace(now.clone()).map(|before| now.since(&before));
        let is_alike = lap.is_some() && lap == self.lap;
        self.lap = lap;
        let Some(lap) = self.lap.as_ref().filter(|lap| is_alike && lap.span > Ticks::ZERO) else { return false };
        let left = board.core(self.core).program().map_or(0, Program::passes_left);
        let times = left.saturating_sub(LAST_PASSES).min(deadline.since(now.span).0 / lap.span.0);
        if times == 0 {
            return false;
        }
        board.leave_out(self.core, times, lap.span);
        if let Some(found) = &mut self.found {
            found.period = found.transfers / passes.max(1);
            found.skipped = times.saturating_mul(found.period);
        }
        self.left_out = Some(lap.times(times));
        true
    }

    /// Returns the skipped iterations.
    pub(super) fn left_out(&self) -> Option<&Counts> {
        self.left_out.as_ref()
    }

    /// Returns the time of the skipped iterations.
    pub(super) fn span(&self) -> Ticks {
        self.left_out.as_ref().map_or(Ticks::ZERO, |left_out| left_out.span)
    }

    /// Returns the result of the search after the run; `None` for a plan without a runtime.
    pub(super) fn ended(&self) -> Option<Steady> {
        let found = self.found?;
        let nothing = found.skipped == 0 && found.because.is_none();
        Some(Steady { because: if nothing { Some(Unsteady::Irregular) } else { found.because }, ..found })
    }
}

impl Counts {
    /// Returns the counters, if no event is due before the core's next instruction.
    fn of(board: &mut Board, core: usize) -> Option<Counts> {
        let span = board.alone_until(core)?;
        let waits = board.waits(core);
        let fetching = board.engine(CARD.into()).map_or(Ticks::ZERO, |engine| engine.fetching(0));
        let crossed = board.crossed(CARD.into()).into();
        Some(Counts { span, waits, fetching, crossed, used: board.used(Ticks::ZERO) })
    }

    /// Returns the growth since `before`.
    fn since(&self, before: &Counts) -> Counts {
        let waits = std::array::from_fn(|cause| self.waits[cause] - before.waits[cause]);
        let crossed = std::array::from_fn(|way| self.crossed[way].since(before.crossed[way]));
        let used = self.used.since(&before.used);
        let (span, fetching) = (self.span - before.span, self.fetching - before.fetching);
        Counts { span, waits, fetching, crossed, used }
    }

    /// Multiplies the growth by `times`.
    fn times(&self, times: u64) -> Counts {
        Counts {
            span: self.span * times,
            waits: std::array::from_fn(|cause| self.waits[cause] * times),
            fetching: self.fetching * times,
            crossed: self.crossed.map(|crossed| crossed.times(times)),
            used: self.used.times(times),
        }
    }
}
