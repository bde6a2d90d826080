//! A retimer: a repeater of the physical layer between the two ports of a link.
//!
//! It forwards TLPs, DLLPs and ordered sets in order and without loss, with a latency per direction. It has no
//! credits and takes no part in acknowledgments, so it has no state, no events and no stalls of its own. It adds its
//! latency to that of the link; the longer round trips appear as stalls of the causes `tag`, `credit` and `replay`.
//!
//! A real retimer has its own clock, and compensates for the difference by SKP symbols that it adds to or removes
//! from SKP ordered sets. The clocks of a simulated board have no tolerance, so there is nothing to compensate: an
//! SKP ordered set leaves the retimer with the length it had.
//!
//! Ports: none. [`latencies`] gives the latencies of the two [`Transmitter`](crate::fabric::link::Transmitter)s of a
//! link.

use lanemark_units::Ticks;

/// Latency of one retimer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Of packets to the device.
    pub down: Ticks,
    /// Of packets to the root.
    pub up: Ticks,
}

/// Latencies of a link with these retimers, downstream and upstream. `alone` is its latency without them.
#[must_use]
pub fn latencies(alone: Ticks, retimers: impl Iterator<Item = Spec>) -> [Ticks; 2] {
    retimers.fold([alone; 2], |[down, up], retimer| [down + retimer.down, up + retimer.up])
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn retimer(down: u64, up: u64) -> Spec {
        Spec { down: Ticks(down), up: Ticks(up) }
    }

    #[test]
    fn retimers_add_up_separately_for_each_direction() {
        let of = |retimers: &[Spec]| latencies(Ticks(100), retimers.iter().copied());
        assert_eq!(of(&[]), [Ticks(100); 2]);
        assert_eq!(of(&[retimer(0, 0)]), [Ticks(100); 2]);
        assert_eq!(of(&[retimer(7, 0), retimer(20, 3)]), [Ticks(127), Ticks(103)]);
    }
}
