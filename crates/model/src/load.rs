//! Loads: time until the last one has its data.

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::costs::{Costs, Reads};
use crate::prediction::Prediction;
use lanemark_machine::{Access, Fence, Stream};
use lanemark_units::MemoryType;

/// Predicts `passes` iterations of a stream of loads, each followed by a flush of `flushed` cache lines; `None` for
/// fences that do not order loads.
pub(crate) fn predict(costs: &Costs<'_>, stream: &Stream, flushed: u64, passes: u64) -> Option<Prediction> {
    let fence = match stream.fence_each {
        None => None,
        Some(Fence::Lfence) => Some((costs.fence(Fence::Lfence), false)),
        Some(fence @ (Fence::Mfence | Fence::Locked | Fence::Interrupt)) => Some((costs.fence(fence), true)),
        Some(Fence::Sfence) => return None,
    };
    let core = &costs.platform.core;
    let kind = stream.span.memory_type;
    let streaming = kind == MemoryType::Wc
        && matches!(stream.access, Access::NonTemporal(_))
        && core.streaming_load_buffers.value > 0;
    let job =
        Job { costs, stream, instructions: costs.instructions(stream.access, kind, stream.span.len).left(), passes };
    Some(match fence {
        _ if !streaming && !kind.caches_loads() => job.single(fence.map(|fence| fence.0)),
        None if streaming => job.streamed(),
        None => job.cached(flushed),
        Some((ns, empties)) => job.lines_fenced(ns, streaming && empties, streaming, flushed),
    })
}

struct Job<'a> {
    costs: &'a Costs<'a>,
    stream: &'a Stream,
    instructions: u64,
    passes: u64,
}

impl Job<'_> {
    /// Uncached loads: one at a time, or as many WC loads as overlap without a fence between them.
    fn single(&self, fence: Option<f64>) -> Prediction {
        let core = &self.costs.platform.core;
        let loads = self.instructions * self.passes;
        let all = self.costs.instructions(self.stream.access, self.stream.span.memory_type, self.stream.span.len);
        let reads = if self.stream.access == Access::Memcpy {
            self.costs.reads(self.costs.cycle, all.map(|piece| piece.bytes))
        } else {
            let bytes = (self.stream.span.len / self.instructions).max(1);
            self.costs.reads(self.costs.cycle, std::iter::once(bytes))
        };
        let one = reads.one;
        let overlap = u64::from(core.wc_loads_in_flight.value);
        if self.stream.span.memory_type != MemoryType::Wc || fence.is_some() || overlap == 1 {
            let time = loads as f64 * (one + fence.unwrap_or(0.0));
            return prediction(Largest::of([(Bound::ReadRoundTrip, time)]), "one core, aligned loads, one at a time");
        }
        let holds_for = "one core, aligned loads, overlapping within the limits of speculation";
        prediction(reads.back(loads, overlap), holds_for)
    }

    fn lines(&self) -> u64 {
        self.stream.span.len.div_ceil(64)
    }

    /// Issue time of the instructions of one line.
    fn line_step(&self) -> f64 {
        match self.stream.access {
            // A copy accesses its first line again later.
            Access::Memcpy => self.costs.cycle,
            _ => self.instructions as f64 * self.costs.cycle / self.lines() as f64,
        }
    }

    /// Reads of whole lines.
    fn line_reads(&self) -> Reads {
        self.costs.reads(self.line_step(), std::iter::once(64))
    }

    /// Streaming loads: each line occupies a streaming-load buffer.
    fn streamed(&self) -> Prediction {
        let buffers = u64::from(self.costs.platform.core.streaming_load_buffers.value);
        // A line that is loaded again waits for the buffer that holds it.
        let together = if self.passes > 1 { buffers.min(self.lines()) } else { buffers };
        prediction(self.line_reads().back(self.lines() * self.passes, together), "one core, aligned ranges")
    }

    /// Cached loads: each miss occupies a fill buffer. A fetched line stays cached until it is flushed or evicted.
    fn cached(&self, flushed: u64) -> Prediction {
        let core = &self.costs.platform.core;
        let (lines, fills) = (self.lines(), u64::from(core.fill_buffers.value));
        let reads = self.line_reads();
        let fits = lines <= u64::from(core.cached_lines.value);
        let holds_for = "one core, aligned ranges, lines not cached before the first iteration";
        if flushed > 0 {
            let pass = reads.back(lines, fills);
            return prediction(pass.times(self.passes as f64, flushed as f64 * self.costs.cycle), holds_for);
        }
        if !fits {
            return prediction(reads.back(lines * self.passes, fills), holds_for);
        }
        let first = reads.back(lines, fills);
        let hits = (self.passes - 1) as f64 * self.instructions as f64 * self.costs.cycle;
        // Later iterations start when the last line has been requested, which takes a fill buffer.
        let free = lines.checked_sub(fills).filter(|needed| *needed > 0);
        let free = free.map_or(0.0, |needed| reads.back(needed, fills).ns);
        let mut issued = free.max((lines - 1) as f64 * self.line_step()) + self.line_step() + hits;
        if self.passes > 1 && issued > first.ns {
            issued += (core.cached_load_ns.value.as_ns() - self.costs.cycle).max(0.0);
        }
        prediction(Largest::of([(first.bound, first.ns), (Bound::Issue, issued)]), holds_for)
    }

    /// A fence after each load: the first load of a line fetches it, the others hit, unless the fence discards the
    /// buffer.
    fn lines_fenced(&self, fence: f64, empties: bool, streaming: bool, flushed: u64) -> Prediction {
        let core = &self.costs.platform.core;
        let one = self.costs.read_round_trip(64);
        let hit = if streaming { self.costs.cycle } else { self.costs.cycle.max(core.cached_load_ns.value.as_ns()) };
        let kept = !streaming && flushed == 0 && self.lines() <= u64::from(core.cached_lines.value);
        let fetches = match (empties, kept) {
            (true, _) => self.instructions * self.passes,
            (false, true) => self.lines(),
            (false, false) => self.lines() * self.passes,
        };
        let hits = self.instructions * self.passes - fetches;
        let time = fetches as f64 * (one + fence)
            + hits as f64 * (hit + fence)
            + (flushed * self.passes) as f64 * self.costs.cycle;
        prediction(Largest::of([(Bound::ReadRoundTrip, time)]), "one core, aligned ranges, a fence after each load")
    }
}

fn prediction(time: Largest, holds_for: &'static str) -> Prediction {
    Prediction { issue_ns: time.ns, delivered_ns: time.ns, bound: time.bound, lead: time.lead(), holds_for }
}
