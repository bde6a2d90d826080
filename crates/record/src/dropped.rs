//! Dropped samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A dropped sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DroppedSample {
    /// Index into the lists, from 0.
    pub place: u64,
    /// Reason: `context_switch` or `clock_step`.
    pub reason: String,
}

/// Number of dropped samples, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    /// Another thread ran on the core, or the thread moved to another core.
    pub context_switches: u64,
    /// Two clocks disagree on the length of the sample.
    pub clock_steps: u64,
}

impl Dropped {
    /// Number of dropped samples for any reason.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.context_switches.saturating_add(self.clock_steps)
    }
}
