//! Comparison of the bytes at both ends, after a sample on a compiled card.

use super::Job;
use crate::host::stored_data::stored_bytes;
use crate::machine::SimulatedMachine;
use lanemark_machine::{Confirmed, CoreWork, Lane, MachineError, Plan, Task, Transfer, Verb, Work};
use std::collections::BTreeSet;

/// Largest part of a BAR that is loaded to compare it with what was stored.
const MOST_COMPARED: u64 = 64 << 10;

impl SimulatedMachine {
    /// Compares both ends: of the last iteration of writes of the card, of its last read, or of stores to its memory.
    ///
    /// # Errors
    /// [`MachineError`] of the loads or of the transfer that reads the bytes back.
    pub(in crate::machine) fn confirm_compiled(&mut self, plan: &Plan) -> Result<Option<Confirmed>, MachineError> {
        if let Some(transfer) = self.transfer_of(plan) {
            return self.confirm_transfers(plan, &transfer).map(Some);
        }
        let Work::Cores(CoreWork { lanes, .. }) = &plan.work else { return Ok(None) };
        let [Lane { task: Task::Steps(steps), .. }] = lanes.as_slice() else { return Ok(None) };
        let Some((span, bus)) = self.stored_by(steps).filter(|(span, _)| span.len <= MOST_COMPARED) else {
            return Ok(None);
        };
        let (bar, from, len) = (span.at.bar, span.at.offset, span.len);
        let mut meant = vec![0; len as usize];
        stored_bytes(bus, self.passes_done - 1, &mut meant);
        let mut confirmed_bytes = 0;
        for at in from / 4..(from + len).div_ceil(4) {
            // Memory that cannot be read is not compared.
            let Some(word) = self.load(plan, bar, 4 * at, 4)? else { return Ok(None) };
            let word = word.to_le_bytes();
            for (byte, found) in (4 * at..).zip(word.into_iter().take(4)) {
                let place = byte.checked_sub(from).filter(|place| *place < len);
                confirmed_bytes += u64::from(place.is_some_and(|place| meant[place as usize] == found));
            }
        }
        Ok(Some(Confirmed { claimed_bytes: len, confirmed_bytes }))
    }

    fn confirm_transfers(&mut self, plan: &Plan, transfer: &Transfer) -> Result<Confirmed, MachineError> {
        let Transfer { verb, bytes, window, .. } = *transfer;
        let base = self.board.mapped_at();
        let (first, end) = self.last_of(transfer, 0);
        let (mut found, mut meant) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        if verb == Verb::Store {
            stored_bytes(0, self.written, &mut meant);
            let places: BTreeSet<u64> = (first..end).map(|nth| window.place(nth, bytes)).collect();
            let claimed_bytes = places.len() as u64 * bytes;
            let mut confirmed_bytes = 0;
            for place in places {
                self.board.memory_mut().read(place, &mut found);
                confirmed_bytes += equal(&found, &meant);
            }
            return Ok(Confirmed { claimed_bytes, confirmed_bytes });
        }
        let place = window.place(end.saturating_sub(1), bytes);
        self.board.memory_mut().read(place, &mut meant);
        let other: Vec<u8> = meant.iter().map(|byte| !*byte).collect();
        self.board.memory_mut().write(place, &other);
        self.transfer_once(plan, Job { verb: Verb::Store, at: base + place, bytes })?;
        self.board.memory_mut().read(place, &mut found);
        Ok(Confirmed { claimed_bytes: bytes, confirmed_bytes: equal(&found, &meant) })
    }
}

/// Number of equal bytes.
fn equal(found: &[u8], meant: &[u8]) -> u64 {
    found.iter().zip(meant).filter(|(found, meant)| found == meant).count() as u64
}
