//! A simulated platform as the device of a runtime: checks of plans, and verification of copies.

use super::SimulatedMachine;
use crate::host::runtime::{CARD, Way};
use crate::host::stored_data::stored_bytes;
use lanemark_machine::{Confirmed, LaunchBy, RuntimeCopy, Unsupported, Verb};
use lanemark_platform::Runtime;

/// Bytes compared at a time.
const PIECE: usize = 4096;

impl SimulatedMachine {
    fn runtime(&self, what: &str) -> Result<&Runtime, Unsupported> {
        let because = "it simulates no runtime: add a section [runtime] to its platform file, and the sections that its copies use";
        self.platform
            .runtime
            .as_ref()
            .filter(|_| self.facts.runtime.is_some())
            .ok_or_else(|| self.unsupported(what, because))
    }

    pub(super) fn check_launch(&self, by: LaunchBy) -> Result<(), Unsupported> {
        if !by.is_calls() {
            let because = "a simulated runtime makes a call for each kernel".to_owned();
            return Err(self.unsupported(format!("a launch by {by}"), because));
        }
        self.runtime("a launch").map(drop)
    }

    pub(super) fn check_moved(&self, moved: &RuntimeCopy) -> Result<(), Unsupported> {
        let runtime = self.runtime("a copy by a runtime")?;
        let RuntimeCopy { bytes, allocation, .. } = *moved;
        let refused = |because: String| Err(self.unsupported(format!("a copy of {bytes} B as {allocation}"), because));
        let Some(parts) = self.board.parts(moved) else { return refused("it simulates no runtime".to_owned()) };
        let (kept, most) = (parts.kept_pages() * Runtime::PAGE_BYTES, runtime.pinned_bytes.value);
        if kept > most {
            return refused(format!("{kept} B would stay pinned for it, and runtime.pinned_bytes is {most}"));
        }
        let lent = self.platform.bytes_for_plans();
        if parts.end() > lent {
            return refused(format!("it needs {} B of DMA memory, which has {lent} B", parts.end()));
        }
        Ok(())
    }

    /// Compares both ends of a copy.
    pub(super) fn confirm_moved(&mut self, moved: &RuntimeCopy) -> Option<Confirmed> {
        let parts = self.board.parts(moved)?;
        let (transfer, mapped_at) = (parts.call.transfer, self.board.mapped_at());
        let first_part = (self.passes_done - 1).wrapping_mul(transfer.count);
        let (mut found, mut meant) = ([0; PIECE], [0; PIECE]);
        let mut confirmed = 0;
        for nth in 0..transfer.count {
            let bytes = parts.bytes_of(nth);
            let own = parts.own_at + nth * transfer.bytes;
            for done in (0..bytes).step_by(PIECE) {
                let len = (bytes - done).min(PIECE as u64) as usize;
                let (found, meant) = (&mut found[..len], &mut meant[..len]);
                let at_own = own + done;
                if moved.verb == Verb::Store {
                    let first = self.passes_done - self.passes_of_last_run;
                    stored_bytes(mapped_at + at_own, first, meant);
                    let at = transfer.window.offset + nth * transfer.bytes + done;
                    self.board.engine_mut(CARD.into())?.sink.read(at, found);
                } else {
                    let at = if parts.way == Way::Staged { transfer.window.offset } else { parts.own_at };
                    stored_bytes(mapped_at + at + done, first_part.wrapping_add(nth), meant);
                    self.board.memory_mut().read(at_own, found);
                }
                confirmed += found.iter().zip(&*meant).filter(|(found, meant)| found == meant).count() as u64;
            }
        }
        Some(Confirmed { claimed_bytes: moved.bytes, confirmed_bytes: confirmed })
    }
}
