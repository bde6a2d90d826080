//! Stores: how long a core issues them, and when the last is accepted.
//!
//! Every formula is the largest of several lower bounds, each of which is exact where it alone limits:
//! the core's pace, its buffers over their round trip, and the way behind it (link, credits, device). A
//! store issues as long as what lies before the bottleneck absorbs it.

use crate::bounds::Largest;
use crate::costs::{Costs, Writes};
use crate::predict::{Bound, Prediction};
use lanemark_machine::{Access, Fence, Stream};
use lanemark_platform::WcPartialFlush;
use lanemark_units::MemoryType;

/// What ends each pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// What it costs with nothing to wait for.
    pub(crate) ns: f64,
    /// How much of that lies before the first store instead of behind the last: a driver's entry.
    pub(crate) ahead_ns: f64,
    /// Whether all stores must be acknowledged first.
    pub(crate) drains: bool,
    /// What it is.
    pub(crate) bound: Bound,
}

impl End {
    pub(crate) fn fence(costs: &Costs<'_>, fence: Fence) -> End {
        End { ns: costs.fence(fence), ahead_ns: 0.0, drains: fence.drains_stores(), bound: Bound::Fence }
    }
}

/// The prediction for `passes` passes of a stream of stores, `pace` apart.
pub(crate) fn predict(costs: &Costs<'_>, stream: &Stream, pace: f64, end: Option<End>, passes: u64) -> Prediction {
    let kind = stream.span.memory_type;
    let direct = matches!(stream.access, Access::Movdiri(_) | Access::Movdir64b);
    let combines =
        kind == MemoryType::Wc || (kind == MemoryType::Wt && matches!(stream.access, Access::NonTemporal(_)));
    let job = Job::new(costs, stream, pace, end, passes);
    match stream.access {
        Access::Movdiri(_) => job.single(true),
        _ if direct || combines => job.combined(),
        _ => job.single(false),
    }
}

/// The work and the terms that all stores share.
struct Job<'a> {
    costs: &'a Costs<'a>,
    stream: &'a Stream,
    /// Instructions of a pass.
    instructions: u64,
    /// Bytes of one, on average.
    width: u64,
    passes: u64,
    end: Option<End>,
    /// From one instruction to the next at the front end.
    pace: f64,
    /// From one store to the next out of the store buffer.
    step: f64,
    round_trip: f64,
}

impl<'a> Job<'a> {
    fn new(costs: &'a Costs<'a>, stream: &'a Stream, pace: f64, end: Option<End>, passes: u64) -> Job<'a> {
        let all = costs.instructions(stream.access, stream.span.memory_type, stream.span.len);
        let instructions = all.left().max(1);
        let bytes: u64 = match stream.access {
            Access::Memcpy => all.map(|piece| piece.bytes).sum(),
            _ => stream.span.len,
        };
        let width = (bytes / instructions).max(1);
        let step = pace.max(costs.cycle);
        Job { costs, stream, instructions, width, passes, end, pace, step, round_trip: costs.round_trip }
    }

    fn store_buffer(&self) -> u64 {
        u64::from(self.costs.platform.core.store_buffer_entries.value)
    }

    fn drains(&self) -> bool {
        self.end.is_some_and(|end| end.drains)
    }

    fn end_ns(&self) -> f64 {
        self.end.map_or(0.0, |end| end.ns)
    }

    fn ahead_ns(&self) -> f64 {
        self.end.map_or(0.0, |end| end.ahead_ns)
    }

    /// UC, WT, WP and MOVDIRI: a TLP for each store, and a store waits for the acknowledgment of the one
    /// before it (MOVDIRI: of the one before it in its line).
    fn single(&self, direct: bool) -> Prediction {
        let writes = self.costs.writes(self.width);
        let (stores, last) = (self.instructions * self.passes, self.instructions * self.passes - 1);
        let uncached = !direct && self.stream.span.memory_type == MemoryType::Uc;
        let apart = self.round_trip.max(if uncached { 0.0 } else { self.step });
        // Stores of a pass that need not wait: those that begin another line, if there is a buffer for it.
        let lines = self.stream.span.len.div_ceil(64);
        let several = direct && lines > 1 && self.costs.platform.core.wc_buffers.value > 1;
        let free = if several { lines } else { 0 };
        let order = if direct { Bound::SameLine } else { Bound::StrongOrder };
        // From the first store of a pass to the first of the next.
        let pass = (self.instructions - free) as f64 * apart + free as f64 * self.step;
        let within = (pass - if several { self.step } else { apart }).max(0.0);
        let last_round = if self.drains() || uncached { self.round_trip.max(self.step) } else { self.step };
        let fenced = self.end.map_or(pass, |_| pass.max(within + last_round + self.end_ns()));
        let (mut near_issue, mut near_last) = (0.0_f64, (self.passes - 1) as f64 * fenced + within);
        if uncached {
            near_issue = self.passes as f64 * fenced;
        } else if self.end.is_some() {
            near_issue = near_last + last_round + self.end_ns();
        } else if let Some(open) = last.checked_sub(self.store_buffer()) {
            near_issue = open as f64 * pass / self.instructions as f64;
        }
        near_last += self.ahead_ns();
        let issue = stores as f64 * self.pace + self.passes as f64 * self.end_ns();
        // The store that must have left for the last to issue, and the one that must be acknowledged for it.
        let held = if uncached || self.end.is_some() { Some(stores) } else { last.checked_sub(self.store_buffer()) };
        let far_issue = held.and_then(|held| held.checked_sub(1)).map(|behind| writes.acknowledged(behind));
        let near = [(Bound::Issue, if uncached { 0.0 } else { issue }), (order, near_issue)];
        let issued = Largest::of(near.into_iter().chain(far_issue.into_iter().flatten()));
        let near_last = [(order, near_last + writes.unloaded())];
        let delivered = Largest::of(near_last.into_iter().chain(self.accepted(&writes, stores, 0.0)));
        self.prediction(issued, delivered, "one core, aligned stores")
    }

    /// Behind the core: when the last of `tlps` writes is accepted, the first of which left at `first`.
    fn accepted(&self, writes: &Writes, tlps: u64, first: f64) -> [(Bound, f64); 3] {
        writes.accepted(tlps - 1).map(|(bound, ns)| (bound, ns + first + self.ahead_ns()))
    }

    /// WC, non-temporal stores to WT, and MOVDIR64B: lines gather in buffers and leave when they are full,
    /// or in pieces at the end of a pass.
    fn combined(&self) -> Prediction {
        let core = &self.costs.platform.core;
        let len = self.stream.span.len;
        let (whole, tail) = (len / 64, len % 64);
        let pieces = self.pieces(tail);
        if whole == 0 && !self.drains() {
            return self.gathered(pieces);
        }
        // The small copies of one library write their lines twice: as two passes over the same lines.
        let twice = if self.instructions * 16 == 2 * len && matches!(len, 64 | 128) { 2 } else { 1 };
        let passes = self.passes * twice;
        let instructions = self.instructions / twice;
        let per_line = (instructions / whole.max(1)).max(1);
        // A line left open at the end of a pass keeps its buffer.
        let keeps = u64::from(tail > 0 && !self.drains() && core.wc_buffers.value > 1);
        let buffers = (u64::from(core.wc_buffers.value) - keeps).max(1);
        // From the first store of a line to its last; a large copy completes its first line last.
        let gather = (per_line - 1) as f64 * self.step;
        let first_line = match self.stream.access {
            Access::Memcpy if instructions > 2 * whole && whole > 2 => 4 * ((len - 32).div_ceil(128) - 1),
            _ => per_line - 1,
        };
        let first_gather = first_line as f64 * self.step;
        let bunch = self.round_trip + gather;
        let line_step = per_line as f64 * self.step;
        let within_pass = (instructions - 1) as f64 * self.step;

        // When the last store of line `line` (of all passes) leaves the store buffer, by each bound of the core.
        let near = |line: u64, passes_before: u64| {
            let (rounds, rest) = (line / buffers, line % buffers);
            [
                (Bound::Buffers, rounds as f64 * bunch + rest as f64 * line_step + gather),
                (Bound::SameLine, passes_before as f64 * (self.round_trip + first_gather)),
            ]
        };
        let tlps = whole + pieces.0;
        let mean = (whole * 64 + pieces.0 * pieces.1).checked_div(tlps).unwrap_or(64).max(1).next_multiple_of(4);
        let writes = self.costs.writes(mean);
        let all_tlps = tlps * passes;
        let all_lines = (whole * passes).max(1);
        let first = if whole > 0 { gather } else { within_pass + self.step };

        if self.drains() {
            let stored = Largest::of([
                (Bound::Issue, within_pass + (twice - 1) as f64 * (within_pass + self.step)),
                near((whole * twice).max(1) - 1, 0)[0],
                (Bound::SameLine, (twice - 1) as f64 * (self.round_trip + gather) + within_pass),
            ]);
            // The end comes a step behind the last store; only then do pieces leave.
            let leaves = stored.ns + if tail > 0 { self.step } else { 0.0 };
            let burst = if pieces.0 > 0 { pieces.0 - 1 } else { 0 };
            let back = Largest::of(writes.acknowledged(burst)).ns.max(self.round_trip);
            let pass = (leaves + back).max(stored.ns + self.step) + self.end_ns();
            let accepted = Largest::of(writes.accepted(burst)).ns;
            let near_issue = self.passes as f64 * pass;
            let near_last = (self.passes - 1) as f64 * pass + self.ahead_ns() + leaves + accepted;
            let end = self.end.map_or(Bound::Fence, |end| end.bound);
            let bound = if back + self.end_ns() > stored.ns { end } else { stored.bound };
            let behind_ns = self.end_ns() - self.ahead_ns();
            let far = writes.acknowledged(all_tlps - 1).map(|(bound, ns)| (bound, ns + first + behind_ns));
            let issued = Largest::of([(bound, near_issue)].into_iter().chain(far));
            let delivered =
                Largest::of([(bound, near_last)].into_iter().chain(self.accepted(&writes, all_tlps, first)));
            return self.prediction(issued, delivered, "one core, aligned ranges, everything drained after each pass");
        }

        let fences = self.passes as f64 * self.end_ns();
        let stores = self.instructions * self.passes;
        let last = near(all_lines - 1, passes - 1);
        let core_last = Largest::of([
            (Bound::Issue, (stores - 1) as f64 * self.step + fences - self.end_ns()),
            last[0],
            (last[1].0, last[1].1 + within_pass),
        ]);
        let drain = if tail > 0 { Largest::of(writes.accepted(pieces.0 - 1)).ns } else { writes.unloaded() };
        let near_last = (core_last.bound, core_last.ns + drain);
        let rival = Largest::of([
            (Bound::Issue, (stores - 1) as f64 * self.step + drain),
            (last[0].0, last[0].1 + drain),
            (last[1].0, last[1].1 + within_pass + drain),
        ]);
        debug_assert!(near_last.1 + 1e-6 >= rival.ns);
        let near_terms = [
            (Bound::Issue, (stores - 1) as f64 * self.step + fences - self.end_ns() + drain),
            (last[0].0, last[0].1 + drain),
            (last[1].0, last[1].1 + within_pass + drain),
        ];
        let far_tlps = if tail > 0 { whole * passes + pieces.0 } else { all_tlps };
        let delivered = Largest::of(near_terms.into_iter().chain(self.accepted(&writes, far_tlps, first)));

        // The last store issues when the one a store buffer before it has left; that one needs a buffer back.
        let mut issue_terms = vec![(Bound::Issue, stores as f64 * self.pace + fences)];
        let open = if self.end.is_some() { Some(stores - 1) } else { (stores - 1).checked_sub(self.store_buffer()) };
        if let Some(open) = open {
            let store = open % self.instructions;
            let line = (open * all_lines / stores).min(all_lines - 1);
            let pass = line / whole.max(1);
            let into = (store % per_line) as f64 * self.step - gather;
            let near = near(line, pass);
            let in_pass = (line % whole.max(1)) as f64 * line_step + (store % per_line) as f64 * self.step;
            issue_terms.push((near[0].0, near[0].1 + into));
            issue_terms.push((near[1].0, near[1].1 + in_pass));
            let window = if passes > 1 { buffers.min(whole.max(1)) } else { buffers };
            if let Some(behind) = line.checked_sub(window) {
                let back = writes.acknowledged(behind).map(|(bound, ns)| (bound, if ns > 0.0 { ns + first + into + gather } else { 0.0 }));
                issue_terms.extend(back);
            }
        }
        let issued = Largest::of(issue_terms);
        self.prediction(issued, delivered, "one core, aligned ranges of whole lines")
    }

    /// Less than a line, never flushed: all stores gather, and the line leaves after the last.
    fn gathered(&self, pieces: (u64, u64)) -> Prediction {
        let stores = (self.instructions * self.passes) as f64;
        let writes = self.costs.writes(pieces.1);
        let ends = self.passes as f64 * self.end_ns();
        let issued = Largest::of([(Bound::Issue, stores * self.pace + ends)]);
        let last = (stores - 1.0) * self.step + (ends - self.end_ns()).max(0.0);
        let last = if self.end.is_some() { issued.ns } else { last };
        let burst = Largest::of(writes.accepted(pieces.0 - 1));
        let delivered = Largest::of([(Bound::Issue, last + burst.ns)]);
        self.prediction(issued, delivered, "one core, less than a line, written out after the last pass")
    }

    /// How many pieces the first `bytes` bytes of a line leave as, and how large they are.
    fn pieces(&self, bytes: u64) -> (u64, u64) {
        match self.costs.platform.core.wc_partial_flush.value {
            WcPartialFlush::EightBytes => (bytes.div_ceil(8), bytes.clamp(1, 8)),
            WcPartialFlush::Dw => (bytes.div_ceil(4), bytes.clamp(1, 4)),
            WcPartialFlush::Contiguous => (bytes.min(1), bytes.max(1)),
        }
    }

    fn prediction(&self, issued: Largest, delivered: Largest, holds_for: &'static str) -> Prediction {
        Prediction {
            issue_ns: issued.ns,
            delivered_ns: delivered.ns,
            bound: delivered.bound,
            lead: delivered.lead(),
            holds_for,
        }
    }
}
