//! The fast-forward of a run of transfers: finds the steady state of a board, and skips the periods that are left.
//!
//! What a period is, and how a board is moved by some of them, is in `steady.rs`; here is when the board is looked at.

use crate::board::Board;
use crate::index::CardIndex;
use crate::steady::{Period, Snapshot};
use lanemark_machine::{Steady, Unsteady};
use lanemark_units::Ticks;

/// States looked at before it is given up.
const MOST_LOOKS: u64 = 1 << 16;
/// Words of states that are remembered.
const MOST_WORDS: usize = 1 << 22;
/// Bytes between two looks, so that looking costs less than simulating.
const LOOK_BYTES: u64 = 4096;
/// Steps that a job must be long for it to pay.
const WORTH_STEPS: u64 = 64;

/// Looks for a steady state, and skips it.
///
/// It looks at every step for as many steps as there are from then on between two looks, and remembers what it sees: so whatever the
/// period is, one of the later looks meets one of those. When as much has gone by again, it remembers anew, because what it
/// remembers may be of before the steady state.
#[derive(Debug)]
pub(crate) struct Search {
    /// The card with the longest job.
    lead: CardIndex,
    /// Transfers of it that look the same, and how many of these lie between two looks.
    step: u64,
    sparse: u64,
    /// The transfer at which it looks next.
    next: u64,
    deadline: Ticks,
    remembered: Vec<Snapshot>,
    words: usize,
    spare: Snapshot,
    looks: u64,
    /// Transfers from which on it remembers, and at how many steps it still does.
    remember_from: u64,
    to_remember: u64,
    found: Steady,
}

impl Search {
    /// Of the jobs that a board has begun, until `deadline`; if there is nothing to be found, this is said.
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

    /// From now on the longest job says when to look, if that pays.
    fn follow_longest(&mut self, board: &Board) {
        self.invalidate();
        self.next = u64::MAX;
        let legs = board.legs();
        let Some(longest) = legs.iter().max_by_key(|leg| leg.left()) else { return };
        if longest.left() / longest.step < WORTH_STEPS {
            return self.found.because = Some(Unsteady::Few).filter(|_| self.found.skipped == 0);
        }
        (self.lead, self.step) = (longest.card(), longest.step);
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

    /// What came of it, when the run is over.
    pub(crate) fn ended(self) -> Steady {
        let nothing = self.found.skipped == 0 && self.found.because.is_none();
        Steady { because: if nothing { Some(Unsteady::Irregular) } else { self.found.because }, ..self.found }
    }

    /// Looks at the board if it is time to, and skips what can be skipped.
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
