//! The search for the steady state of a run of transfers, and the skip of the remaining periods.
//!
//! `steady.rs` defines a period and moves a board by it; this file decides when a board is examined.

use crate::board::Board;
use crate::index::CardIndex;
use crate::steady::{Period, Snapshot};
use lanemark_machine::{Steady, Unsteady};
use lanemark_units::Ticks;
use std::num::NonZeroU64;

/// Number of examined states after which the search ends.
const MOST_LOOKS: u64 = 1 << 16;
/// Capacity for stored states, in words.
const MOST_WORDS: usize = 1 << 22;
/// Minimum number of bytes between two examinations, so that these cost less than the simulation.
const LOOK_BYTES: u64 = 4096;
/// Minimum length of a job, in steps.
const WORTH_STEPS: u64 = 64;

/// The search for a steady state.
///
/// The search first stores a state at every step, for as many steps as later lie between two examinations. Whatever
/// the period is, one of the later states equals a stored one. After as many steps again it stores new states,
/// because the stored ones may precede the steady state.
#[derive(Debug)]
pub(crate) struct Search {
    /// The card with the longest job.
    lead: CardIndex,
    /// Number of its transfers in a step, and of those between two examinations.
    step: u64,
    sparse: u64,
    /// Transfer at which the board is examined next.
    next: u64,
    deadline: Ticks,
    remembered: Vec<Snapshot>,
    words: usize,
    spare: Snapshot,
    looks: u64,
    /// Transfer from which states are stored, and the number of steps left to store.
    remember_from: u64,
    to_remember: u64,
    found: Steady,
}

impl Search {
    /// Creates a search over the jobs of a board, until `deadline`; the search is disabled if no steady state can be
    /// found.
    pub(crate) fn new(board: &Board, deadline: Ticks, is_wanted: bool) -> Search {
        let legs = board.legs();
        let transfers = legs.iter().filter(|leg| !leg.is_over).map(|leg| leg.transfers).sum();
        let mut search = Search {
            lead: CardIndex::FIRST,
            step: 1,
            sparse: 1,
            next: u64::MAX,
            deadline,
            remembered: Vec::new(),
            words: 0,
            spare: Snapshot::default(),
            looks: 0,
            remember_from: 0,
            to_remember: 0,
            found: Steady { transfers, ..Steady::default() },
        };
        let unwanted = (!is_wanted).then_some(Unsteady::Unwanted);
        match unwanted.or_else(|| board.unsteady()) {
            Some(because) => search.found.because = Some(because),
            None => search.follow_longest(board),
        }
        search
    }

    /// Follows the longest job, if that is worth it.
    fn follow_longest(&mut self, board: &Board) {
        self.invalidate();
        self.next = u64::MAX;
        let legs = board.legs();
        let Some(longest) = legs.iter().max_by_key(|leg| leg.left()) else { return };
        let step = longest.step.map_or(1, NonZeroU64::get);
        if longest.left() / step < WORTH_STEPS {
            return self.found.because = Some(Unsteady::Few).filter(|_| self.found.skipped == 0);
        }
        (self.lead, self.step) = (longest.card(), step);
        self.sparse = (LOOK_BYTES / self.step.saturating_mul(longest.bytes).max(1)).clamp(1, 64);
        self.remember_from = board.begun(self.lead);
        self.look_after(board, 1);
    }

    fn invalidate(&mut self) {
        self.remembered = Vec::new();
        self.words = 0;
    }

    fn look_after(&mut self, board: &Board, steps: u64) {
        self.next = (board.begun(self.lead) / self.step).saturating_add(steps).saturating_mul(self.step);
    }

    /// Returns the result of the search after the run.
    pub(crate) fn ended(self) -> Steady {
        let nothing = self.found.skipped == 0 && self.found.because.is_none();
        Steady { because: if nothing { Some(Unsteady::Irregular) } else { self.found.because }, ..self.found }
    }

    /// Examines the board if it is due, and skips periods.
    #[inline]
    pub(crate) fn look(&mut self, board: &mut Board) {
        if board.begun(self.lead) >= self.next && board.is_between_ticks() {
            self.look_closely(board);
        }
    }

    #[cold]
    fn look_closely(&mut self, board: &mut Board) {
        let state = board.snapshot(std::mem::take(&mut self.spare));
        self.looks += 1;
        let period = self.remembered.iter().rev().find_map(|before| Period::between(before, &state));
        if let Some(period) = period {
            let times = period.most_times(&state, self.deadline);
            if times > 0 {
                board.skip(&period, times, &state.legs);
                self.found.skipped += period.transfers() * times;
                self.found.period = period.transfers_of(&state, self.lead);
                return self.follow_longest(board);
            }
        }
        if self.looks >= MOST_LOOKS {
            self.invalidate();
            self.next = u64::MAX;
            return;
        }
        let begun = board.begun(self.lead);
        if begun >= self.remember_from {
            self.remember_from = begun.saturating_mul(2);
            self.to_remember = self.sparse;
        }
        if self.to_remember == 0 {
            self.spare = state;
            return self.look_after(board, self.sparse);
        }
        self.words += state.words();
        if self.words > MOST_WORDS {
            self.invalidate();
        }
        self.remembered.push(state);
        self.to_remember -= 1;
        self.look_after(board, 1);
    }
}
