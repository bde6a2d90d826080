//! A simulated platform as the device of a runtime: checks of plans, and verification of copies.

use super::{SimulatedMachine, asked};
use crate::host::runtime::{CARD, Way};
use crate::host::stored_data::stored_bytes;
use lanemark_machine::{Allocation, Arguments, Confirmed, Launch, MovedByRuntime, Plan, Unsupported, Verb};
use lanemark_platform::Runtime;
use lanemark_units::format_size;

/// Bytes compared at a time.
const PIECE: usize = 4096;

impl SimulatedMachine {
    fn runtime(&self, what: &str) -> Result<&Runtime, Unsupported> {
        let because = "it simulates no runtime: that takes a section [runtime] of its platform file, and what its copies go through";
        self.platform
            .runtime
            .as_ref()
            .filter(|_| self.facts.runtime.is_some())
            .ok_or_else(|| self.unsupported(what, because))
    }

    pub(super) fn check_launch(&self, launch: &Launch) -> Result<(), Unsupported> {
        self.runtime("a launch")?;
        let Launch { kernels, arguments: Arguments { count, allocation }, .. } = *launch;
        if kernels == 0 || kernels > Launch::MOST_KERNELS {
            let because = format!("launches between two waits are 1 to {}", Launch::MOST_KERNELS);
            return Err(self.unsupported(format!("{kernels} launches"), because));
        }
        if count > Arguments::MOST {
            let because = format!("kernels are given {} at the most", Arguments::MOST);
            return Err(self.unsupported(format!("kernels that are given {count} pieces of memory"), because));
        }
        if count > 0 && !matches!(allocation, Allocation::Buffer | Allocation::Device) {
            let because = "kernels are given buffers, or addresses of the device";
            return Err(self.unsupported(format!("kernels that are given memory as {allocation}"), because));
        }
        Ok(())
    }

    pub(super) fn check_moved(&self, moved: &MovedByRuntime) -> Result<(), Unsupported> {
        let runtime = self.runtime("a copy by a runtime")?;
        let MovedByRuntime { bytes, allocation, .. } = *moved;
        let refused = |because: String| Err(self.unsupported(format!("a copy of {bytes} B as {allocation}"), because));
        if bytes == 0 || bytes > MovedByRuntime::MOST_BYTES {
            return refused(format!("a copy is of 1 B to {}", format_size(MovedByRuntime::MOST_BYTES)));
        }
        let Some(parts) = self.board.parts(moved) else { return refused("it simulates no runtime".to_owned()) };
        let (kept, most) = (parts.kept_pages() * Runtime::PAGE_BYTES, runtime.pinned_bytes.value);
        if kept > most {
            return refused(format!("{kept} B would stay pinned for it, and runtime.pinned_bytes is {most}"));
        }
        let lent = self.platform.bytes_for_plans();
        if parts.end() > lent {
            return refused(format!("it takes {} B of what is lent, {lent} B", parts.end()));
        }
        Ok(())
    }

    /// Checks that a program repeats one command to its runtime.
    pub(super) fn check_asked(&self, plan: &Plan) -> Result<(), Unsupported> {
        if asked(plan).is_none() {
            return Ok(());
        }
        let is_alone = plan.lanes.len() == 1 && plan.lanes[0].body.len() == 1 && plan.before.is_empty();
        if is_alone {
            return Ok(());
        }
        let because = "one program has the queue, and asks for one thing in each pass";
        Err(self.unsupported("a runtime beside other steps", because))
    }

    /// Compares both ends of a copy.
    pub(super) fn confirm_moved(&mut self, moved: &MovedByRuntime) -> Option<Confirmed> {
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
