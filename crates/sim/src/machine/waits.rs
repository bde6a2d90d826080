//! Stall times of a run, and the limit of its iterations.

use lanemark_machine::Cause;
use lanemark_units::Ticks;

/// Stall times, by [`Cause::index`].
pub(super) type Waits = [Ticks; Cause::ALL.len()];

/// Upper limit of iterations: a run that was to do more was interrupted before.
pub(super) const MOST_PASSES: u64 = 1 << 40;
