//! Loads: time until the last one has its data.

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::costs::{Costs, Reads};
use crate::number::Number;
use crate::prediction::Prediction;
use lanemark_machine::{Access, Fence, Stream};
use lanemark_units::MemoryType;

/// Predicts `passes` iterations of a stream of loads, each followed by a flush of `flushed` cache lines; `None` for
/// fences that do not order loads.
pub(crate) fn predict(costs: &Costs<'_>, stream: &Stream, flushed: u64, passes: u64) -> Option<Prediction> {
    let Loaded { time, holds_for } = time(costs, stream, flushed, passes)?;
    Some(Prediction { issue_ns: time.ns, delivered_ns: time.ns, bound: time.bound, lead: time.lead(), holds_for })
}

/// Time of a stream of loads, and the conditions for which it holds.
pub(crate) struct Loaded<N: Number> {
    pub(crate) time: Largest<N>,
    holds_for: &'static str,
}

/// Time of `passes` iterations of a stream of loads, as for [`predict`].
pub(crate) fn time<N: Number>(costs: &Costs<'_, N>, stream: &Stream, flushed: u64, passes: u64) -> Option<Loaded<N>> {
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

struct Job<'a, N: Number> {
    costs: &'a Costs<'a, N>,
    stream: &'a Stream,
    instructions: u64,
    passes: u64,
}

impl<N: Number> Job<'_, N> {
    /// Uncached loads: one at a time, or as many WC loads as overlap without a fence between them.
    fn single(&self, fence: Option<N>) -> Loaded<N> {
        let (core, cycle) = (&self.costs.platform.core, self.costs.numbers.cycle);
        let loads = N::count(self.instructions * self.passes);
        let all = self.costs.instructions(self.stream.access, self.stream.span.memory_type, self.stream.span.len);
        let reads = if self.stream.access == Access::Memcpy {
            self.costs.reads(cycle, all.map(|piece| piece.bytes))
        } else {
            let bytes = (self.stream.span.len / self.instructions).max(1);
            self.costs.reads(cycle, std::iter::once(bytes))
        };
        let one = reads.one;
        let overlap = u64::from(core.wc_loads_in_flight.value);
        if self.stream.span.memory_type != MemoryType::Wc || fence.is_some() || overlap == 1 {
            let time = loads * (one + fence.unwrap_or(N::all(0.0)));
            let time = Largest::of([(Bound::ReadRoundTrip, time)]);
            return Loaded { time, holds_for: "one core, aligned loads, one at a time" };
        }
        let holds_for = "one core, aligned loads, overlapping within the limits of speculation";
        Loaded { time: reads.back(loads, N::count(overlap)), holds_for }
    }

    fn lines(&self) -> u64 {
        self.stream.span.len.div_ceil(64)
    }

    /// Issue time of the instructions of one line.
    fn line_step(&self) -> N {
        let cycle = self.costs.numbers.cycle;
        match self.stream.access {
            // A copy accesses its first line again later.
            Access::Memcpy => cycle,
            _ => N::count(self.instructions) * cycle / N::count(self.lines()),
        }
    }

    /// Reads of whole lines.
    fn line_reads(&self) -> Reads<N> {
        self.costs.reads(self.line_step(), std::iter::once(64))
    }

    /// Streaming loads: each line occupies a streaming-load buffer.
    fn streamed(&self) -> Loaded<N> {
        let buffers = self.costs.numbers.streaming_load_buffers;
        // A line that is loaded again waits for the buffer that holds it.
        let together = if self.passes > 1 { buffers.min(N::count(self.lines())) } else { buffers };
        let time = self.line_reads().back(N::count(self.lines() * self.passes), together);
        Loaded { time, holds_for: "one core, aligned ranges" }
    }

    /// Cached loads: each miss occupies a fill buffer. A fetched line stays cached until it is flushed or evicted.
    fn cached(&self, flushed: u64) -> Loaded<N> {
        let (core, numbers) = (&self.costs.platform.core, &self.costs.numbers);
        let (lines, fills, zero) = (self.lines(), numbers.fill_buffers, N::all(0.0));
        let reads = self.line_reads();
        let fits = lines <= u64::from(core.cached_lines.value);
        let holds_for = "one core, aligned ranges, lines not cached before the first iteration";
        if flushed > 0 {
            let pass = reads.back(N::count(lines), fills);
            let time = pass.times(self.passes as f64, N::count(flushed) * numbers.cycle);
            return Loaded { time, holds_for };
        }
        if !fits {
            return Loaded { time: reads.back(N::count(lines * self.passes), fills), holds_for };
        }
        let first = reads.back(N::count(lines), fills);
        let hits = N::count(self.passes - 1) * N::count(self.instructions) * numbers.cycle;
        // Later iterations start when the last line has been requested, which takes a fill buffer.
        let needed = N::count(lines) - fills;
        let free = needed.if_above(zero, reads.back(needed.max(N::all(1.0)), fills).ns, zero);
        let issued = free.max(N::count(lines - 1) * self.line_step()) + self.line_step() + hits;
        let issued = if self.passes > 1 {
            let hit = (numbers.cached_load - numbers.cycle).max(zero);
            issued.if_above(first.ns, issued + hit, issued)
        } else {
            issued
        };
        let time = Largest::of([]).and_one(first.bound, first.ns).and([(Bound::Issue, issued)]);
        Loaded { time, holds_for }
    }

    /// A fence after each load: the first load of a line fetches it, the others hit, unless the fence discards the
    /// buffer.
    fn lines_fenced(&self, fence: N, empties: bool, streaming: bool, flushed: u64) -> Loaded<N> {
        let (core, numbers) = (&self.costs.platform.core, &self.costs.numbers);
        let one = self.costs.read_round_trip(64);
        let hit = if streaming { numbers.cycle } else { numbers.cycle.max(numbers.cached_load) };
        let kept = !streaming && flushed == 0 && self.lines() <= u64::from(core.cached_lines.value);
        let fetches = match (empties, kept) {
            (true, _) => self.instructions * self.passes,
            (false, true) => self.lines(),
            (false, false) => self.lines() * self.passes,
        };
        let hits = self.instructions * self.passes - fetches;
        let time = N::count(fetches) * (one + fence)
            + N::count(hits) * (hit + fence)
            + N::count(flushed * self.passes) * numbers.cycle;
        let time = Largest::of([(Bound::ReadRoundTrip, time)]);
        Loaded { time, holds_for: "one core, aligned ranges, a fence after each load" }
    }
}
