//! Copies of many pieces on a simulated platform: checks of plans, and verification of the pieces.

use super::SimulatedMachine;
use crate::host::runtime::CARD;
use crate::host::stored_data::stored_bytes;
use lanemark_machine::{Confirmed, CopyBy, SmallCopies, Unsupported, Verb};

impl SimulatedMachine {
    pub(super) fn check_small_copies(&self, copies: &SmallCopies) -> Result<(), Unsupported> {
        let what = format!("{} copies of {} B by {}", copies.count, copies.bytes, copies.by.in_words());
        let refused = |because: String| Err(self.unsupported(what.clone(), because));
        if copies.by == CopyBy::Stores {
            let because = "a runtime makes no accesses through a BAR: use the questions about MMIO";
            return refused(because.to_owned());
        }
        let group = self.board.group(copies).filter(|_| self.facts.runtime.is_some());
        let Some(group) = group else {
            return refused("it needs sections [runtime], [driver] and [dma] in its platform file".to_owned());
        };
        let mapped = self.platform.bytes_for_plans();
        if group.end() > mapped {
            return refused(format!("it needs {} B of DMA memory, which has {mapped} B", group.end()));
        }
        Ok(())
    }

    /// Compares the pieces of the last iteration at their destination. A packed buffer on the card counts as its pieces.
    pub(super) fn confirm_small_copies(&mut self, copies: &SmallCopies) -> Option<Confirmed> {
        let group = self.board.group(copies)?;
        let mapped_at = self.board.mapped_at();
        let is_packed = copies.by == CopyBy::Packed;
        let (mut found, mut meant) = (vec![0; copies.bytes as usize], vec![0; copies.bytes as usize]);
        let mut confirmed_bytes = 0;
        for nth in 0..u64::from(copies.count) {
            let (own, packed) = (group.place(nth), group.packed_at + nth * copies.bytes);
            let at = if is_packed { packed } else { own };
            if copies.verb == Verb::Store {
                let first = self.passes_done - self.passes_of_last_run;
                stored_bytes(mapped_at + own, first, &mut meant);
                self.board.engine_mut(CARD.into())?.sink.read(at, &mut found);
            } else {
                stored_bytes(mapped_at + at, self.passes_done - 1, &mut meant);
                self.board.memory_mut().read(own, &mut found);
            }
            confirmed_bytes += found.iter().zip(&meant).filter(|(found, meant)| found == meant).count() as u64;
        }
        Some(Confirmed { claimed_bytes: copies.bytes_in_all(), confirmed_bytes })
    }
}
