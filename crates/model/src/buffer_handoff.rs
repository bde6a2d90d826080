//! Cost for a core of a buffer shared with a device.
//!
//! Each method is a sequence of sweeps over the buffer. In a sweep, lines start at a fixed interval, and each
//! occupies one of a few buffers for a fixed time; see [`Sweep`]. The result is exact for a buffer that was shared
//! before.

use crate::bound::Bound;
use crate::costs::whole_ticks;
use crate::prediction::Prediction;
use lanemark_machine::{BufferHandoff, Discipline, Flush, Verb};
use lanemark_platform::{FlushLine, Platform};

/// Loads or stores per line.
const A_LINE: f64 = (BufferHandoff::LINE_BYTES / BufferHandoff::WIDTH_BYTES) as f64;

/// Steps in sequence, each of which occupies one of a few buffers.
struct Sweep {
    count: u64,
    buffers: u64,
    /// Minimum time between the starts of two steps.
    step: f64,
    /// Time for which a step occupies its buffer.
    hold: f64,
}

impl Sweep {
    /// Start of the last step. Steps take all buffers first, which then become free in the same order, unless the
    /// first is free again before the last is taken.
    fn last(&self) -> f64 {
        let before = self.count.saturating_sub(1);
        if self.hold <= self.buffers as f64 * self.step {
            return before as f64 * self.step;
        }
        (before / self.buffers) as f64 * self.hold + (before % self.buffers) as f64 * self.step
    }

    /// Time at which the last buffer is free and the core has continued.
    fn end(&self) -> f64 {
        self.last() + self.step.max(self.hold)
    }
}

/// Total time of the sweeps, and the largest bound.
struct Sum {
    ns: f64,
    largest: (Bound, f64),
}

impl Sum {
    fn add(&mut self, bound: Bound, ns: f64) {
        self.ns += ns;
        if ns > self.largest.1 {
            self.largest = (bound, ns);
        }
    }
}

/// Predicts successive iterations. `None` if the platform has no data for this method or another flush instruction,
/// or if the first iteration would find other cache states than the next.
pub(crate) fn predict(
    platform: &Platform,
    handover: &BufferHandoff,
    passes: u64,
    warmup_passes: u64,
) -> Option<Prediction> {
    let coherence = platform.coherence.as_ref()?;
    let is_first_alike = handover.finds_written_lines() || warmup_passes > 0;
    if handover.check().is_err() || passes == 0 || !is_first_alike {
        return None;
    }
    if let Discipline::Flushed(flush) = handover.discipline {
        let best = coherence.flush.value;
        let is_here = match flush {
            Flush::Clflush => best == FlushLine::Clflush,
            Flush::Clflushopt => best != FlushLine::Clflush,
            Flush::Clwb => best == FlushLine::Clwb,
        };
        is_here.then_some(())?;
    }
    let sum = Terms::new(platform)?.of(handover);
    let ns = sum.ns * passes as f64;
    let holds_for = "one core, a buffer already shared and cached, idle memory";
    Some(Prediction { issue_ns: ns, delivered_ns: ns, bound: sum.largest.0, lead: f64::INFINITY, holds_for })
}

/// Parameters of a platform, in nanoseconds.
struct Terms {
    cycle: f64,
    store: f64,
    cached_load: f64,
    fence: f64,
    read: f64,
    write: f64,
    flush: f64,
    purge: f64,
    fills: u64,
    combining: u64,
    single_loads: u64,
    flushes: u64,
}

impl Terms {
    fn new(platform: &Platform) -> Option<Terms> {
        let (core, coherence) = (&platform.core, platform.coherence.as_ref()?);
        let is_one = coherence.flush.value == FlushLine::Clflush;
        Some(Terms {
            cycle: whole_ticks(1.0 / core.clock_ghz.value),
            store: whole_ticks(core.store_loop_cycles.value / core.clock_ghz.value),
            cached_load: core.cached_load_ns.value.as_ns(),
            fence: core.mfence_ns.value.as_ns(),
            read: coherence.read_ns.value.as_ns(),
            write: coherence.write_ns.value.as_ns(),
            flush: coherence.flush_line_ns.value.as_ns(),
            purge: coherence.purge_line_ns.value.as_ns(),
            fills: u64::from(core.fill_buffers.value),
            combining: u64::from(core.wc_buffers.value),
            single_loads: u64::from(core.wc_loads_in_flight.value),
            flushes: if is_one { 1 } else { u64::from(coherence.flushes_in_flight.value) },
        })
    }

    /// Time of one iteration.
    fn of(&self, handover: &BufferHandoff) -> Sum {
        let mut sum = Sum { ns: 0.0, largest: (Bound::Issue, 0.0) };
        match handover.verb {
            Verb::Store => self.out(handover, &mut sum),
            Verb::Load => self.into(handover, &mut sum),
        }
        sum.add(Bound::Fence, self.fence);
        sum
    }

    /// Time of an iteration to the device.
    fn out(&self, handover: &BufferHandoff, sum: &mut Sum) {
        let count = handover.lines();
        let lines = count as f64;
        let written = A_LINE * self.store * lines;
        match handover.discipline {
            Discipline::Coherent => sum.add(Bound::Issue, written),
            Discipline::Flushed(flush) => {
                if flush.keeps() {
                    sum.add(Bound::Issue, written);
                } else {
                    // Lines that were invalidated by the previous flush are fetched first.
                    let step = A_LINE * self.store;
                    let fills = Sweep { count, buffers: self.fills, step, hold: self.read };
                    sum.add(if fills.end() > written { Bound::Buffers } else { Bound::Issue }, fills.end());
                }
                sum.add(Bound::Flush, self.flushed(count, self.flush));
            }
            Discipline::Uncached => sum.add(Bound::StrongOrdering, A_LINE * lines * self.write.max(self.cycle)),
            Discipline::Combining | Discipline::Streaming => {
                // A buffer is evicted by its last store.
                let hold = (A_LINE - 1.0) * self.store + self.write;
                let left = Sweep { count, buffers: self.combining, step: A_LINE * self.store, hold };
                sum.add(if left.end() > written { Bound::Buffers } else { Bound::Issue }, left.end());
            }
            Discipline::Bounced => {
                sum.add(Bound::Issue, written);
                let pair = 2.0 * self.cycle;
                sum.add(Bound::Issue, (A_LINE * lines - 1.0) * pair + pair.max(self.cached_load));
            }
            Discipline::BouncedCombining => {
                sum.add(Bound::Issue, written);
                let pair = 2.0 * self.cycle;
                // From the first store of a line to its last, which waits for the data it copies.
                let open = (A_LINE - 1.0) * pair + (self.cached_load - self.cycle).max(0.0);
                let copied = Sweep { count, buffers: self.combining, step: A_LINE * pair, hold: open + self.write };
                let end = self.cycle + copied.last() + copied.hold.max(copied.step - self.cycle);
                sum.add(if end > A_LINE * pair * lines { Bound::Buffers } else { Bound::Issue }, end);
            }
        }
    }

    /// Time of an iteration from the device.
    fn into(&self, handover: &BufferHandoff, sum: &mut Sum) {
        let count = handover.lines();
        let lines = count as f64;
        match handover.discipline {
            Discipline::Coherent => self.missed(count, sum),
            Discipline::Flushed(_) => {
                // Once before the transfer and once after it.
                for _ in 0..2 {
                    sum.add(Bound::Flush, self.flushed(count, self.purge));
                    sum.add(Bound::Fence, self.fence);
                }
                self.missed(count, sum);
            }
            Discipline::Uncached => sum.add(Bound::ReadRoundTrip, A_LINE * lines * self.read.max(self.cycle)),
            Discipline::Combining | Discipline::Streaming => {
                let count = count * A_LINE as u64;
                let loads = Sweep { count, buffers: self.single_loads, step: self.cycle, hold: self.read };
                sum.add(Bound::ReadRoundTrip, loads.end());
            }
            Discipline::Bounced => {
                let pair = 2.0 * self.cycle;
                let fills = Sweep { count, buffers: self.fills, step: A_LINE * pair, hold: self.read };
                // Data that the last load finds in the cache may arrive after its line.
                let last_hit = (A_LINE - 1.0) * pair + self.cached_load;
                sum.add(Bound::Buffers, fills.last() + fills.hold.max(fills.step).max(last_hit));
                self.hit(lines, sum);
            }
            Discipline::BouncedCombining => {
                let (count, step) = (count * A_LINE as u64, 2.0 * self.cycle);
                let loads = Sweep { count, buffers: self.single_loads, step, hold: self.read };
                sum.add(Bound::ReadRoundTrip, loads.end());
                self.hit(lines, sum);
            }
        }
    }

    /// A sweep that flushes `count` lines.
    fn flushed(&self, count: u64, each: f64) -> f64 {
        Sweep { count, buffers: self.flushes, step: self.cycle, hold: each }.end()
    }

    /// A sweep that reads `count` uncached lines.
    fn missed(&self, count: u64, sum: &mut Sum) {
        let fills = Sweep { count, buffers: self.fills, step: A_LINE * self.cycle, hold: self.read };
        let last_hit = (A_LINE - 1.0) * self.cycle + self.cached_load;
        sum.add(Bound::Buffers, fills.last() + fills.hold.max(fills.step).max(last_hit));
    }

    /// A sweep that reads `count` cached lines.
    fn hit(&self, lines: f64, sum: &mut Sum) {
        sum.add(Bound::Issue, (A_LINE * lines - 1.0) * self.cycle + self.cycle.max(self.cached_load));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference for the test: steps in sequence, each when a buffer is free and the interval has passed.
    fn walked(sweep: &Sweep) -> f64 {
        let mut starts: Vec<f64> = Vec::new();
        for nth in 0..sweep.count as usize {
            let behind = starts.last().map_or(0.0, |last| last + sweep.step);
            let freed = nth.checked_sub(sweep.buffers as usize).map_or(0.0, |other| starts[other] + sweep.hold);
            starts.push(behind.max(freed));
        }
        starts.last().copied().unwrap_or(0.0)
    }

    #[test]
    fn the_closed_form_of_a_sweep_matches_stepping_through_it() {
        for count in [1, 2, 3, 7, 8, 9, 64, 65] {
            for buffers in [1, 2, 3, 8, 100] {
                for (step, hold) in [(1.0, 0.0), (1.0, 8.0), (1.0, 8.5), (2.0, 50.0), (3.0, 1.0)] {
                    let sweep = Sweep { count, buffers, step, hold };
                    assert!((sweep.last() - walked(&sweep)).abs() < 1e-9, "{count} {buffers} {step} {hold}");
                }
            }
        }
    }

    #[test]
    fn a_sweep_ends_when_the_last_buffer_is_free_and_the_core_has_continued() {
        // Steps start at 0, 10 and 50 ns, when the first buffer is free.
        assert_eq!(Sweep { count: 3, buffers: 2, step: 10.0, hold: 50.0 }.end(), 50.0 + 50.0);
        // Buffers are free before they are needed.
        assert_eq!(Sweep { count: 3, buffers: 2, step: 10.0, hold: 4.0 }.end(), 20.0 + 10.0);
    }
}
