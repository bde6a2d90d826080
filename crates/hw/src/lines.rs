//! What a dry run has recorded.

use lanemark_machine::{Sample, Samples};
use lanemark_units::Ticks;
use std::sync::{Arc, Mutex, PoisonError};

/// Duration of every sample of a dry run.
const SAMPLE: Ticks = Ticks::whole_ns(1_000_000);

/// Record of a dry run, one sentence for each plan; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    /// Removes and returns the sentences since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a sentence that is not there yet.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) fn add(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }

    /// Fills `samples` with a duration that means nothing.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) fn sampled(samples: &mut Samples) {
        samples.clear();
        while samples.wants_more() {
            samples.keep(Sample { issue: SAMPLE, delivered: SAMPLE }, None);
        }
    }
}
