//! Errors that links corrected while a simulated machine took its samples.

use super::SimulatedMachine;
use lanemark_machine::{Corrected, Samples};

impl SimulatedMachine {
    /// Returns the corrected errors since the last reset.
    pub(super) fn corrected(&self) -> Vec<Corrected> {
        let each = self.board.corrected();
        each.map(|(port, error, count)| Corrected { port: port.to_owned(), error, count }).collect()
    }

    /// Adds the increase since `before`.
    pub(super) fn add_corrected(&self, samples: &mut Samples, before: &[Corrected]) {
        let is_like = |one: &Corrected, other: &Corrected| (&one.port, one.error) == (&other.port, other.error);
        for mut now in self.corrected() {
            now.count -= before.iter().find(|before| is_like(before, &now)).map_or(0, |before| before.count);
            match samples.corrected.iter_mut().find(|sum| is_like(sum, &now)) {
                Some(sum) => sum.count += now.count,
                None if now.count > 0 => samples.corrected.push(now),
                None => {}
            }
        }
    }
}
