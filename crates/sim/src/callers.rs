//! Concurrent driver calls of several cores, for several cards or channels: the completion time of each, and what the
//! others had moved by the first completion.

use crate::board::Board;
use crate::host::core::Core;
use lanemark_machine::{BytesMoved, Concurrent, DmaCall, Plan, Task};
use lanemark_units::Ticks;

/// Observes the lanes of a plan, if each is a driver call.
#[derive(Debug)]
pub(crate) struct Callers {
    lanes: Vec<(usize, DmaCall)>,
    /// Bytes that each channel had moved before.
    before: Vec<u64>,
    /// Time of the first completion, and the bytes that each channel had moved then.
    first: Option<(Ticks, Vec<u64>)>,
}

impl Callers {
    pub(crate) fn of(plan: &Plan, board: &Board) -> Callers {
        let all = plan.work.lanes();
        let called = all.iter().filter_map(|lane| match &lane.task {
            Task::DmaCall(call) => Some((lane.core as usize, *call)),
            Task::Steps(_) | Task::Operation(_) => None,
        });
        let lanes: Vec<(usize, DmaCall)> = if all.len() > 1 { called.collect() } else { Vec::new() };
        let lanes = if lanes.len() == all.len() { lanes } else { Vec::new() };
        let before = lanes.iter().map(|(_, call)| board.moved_by(call)).collect();
        Callers { lanes, before, first: None }
    }

    /// Checks whether a core has completed its last instruction.
    #[inline]
    pub(crate) fn look(&mut self, board: &Board) {
        if !self.lanes.is_empty()
            && self.first.is_none()
            && let Some(at) = self.first_done(board).filter(|at| *at <= board.now())
        {
            self.first = Some((at, self.moved(board)));
        }
    }

    /// Returns the earliest completion so far.
    fn first_done(&self, board: &Board) -> Option<Ticks> {
        let done = self.lanes.iter().map(|(core, _)| board.core(*core)).filter(|core| core.is_done());
        done.map(Core::issued_at).min()
    }

    fn moved(&self, board: &Board) -> Vec<u64> {
        let moved = |((_, call), before): (&(usize, DmaCall), &u64)| board.moved_by(call) - before;
        self.lanes.iter().zip(&self.before).map(moved).collect()
    }

    /// Returns the result, when every lane has completed.
    pub(crate) fn ended(&self, board: &Board, start: Ticks) -> Option<Concurrent> {
        // The first one to complete may have been in its last instruction when the last one completed.
        let (common, bytes) = self.first.clone().or_else(|| Some((self.first_done(board)?, self.moved(board))))?;
        let each = self.lanes.iter().zip(self.moved(board)).zip(&bytes).map(|(((core, _), bytes), common_bytes)| {
            BytesMoved { delivered: board.core(*core).issued_at().since(start), bytes, common_bytes: *common_bytes }
        });
        Some(Concurrent { common: common.since(start), each: each.collect() })
    }
}
