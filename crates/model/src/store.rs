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
        let (whole, tail) = (self.stream.span.len / 64, self.stream.span.len % 64);
        let pieces = self.pieces(tail);
        match (whole, self.drains()) {
            (0, false) => self.gathered(pieces),
            (_, true) => Lines::new(self, whole, pieces).drained(),
            (_, false) => Lines::new(self, whole, pieces).running(),
        }
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

/// Lines of a job that combines.
struct Lines<'a> {
    job: &'a Job<'a>,
    /// Whole lines of a pass.
    whole: u64,
    /// How many pieces the rest of a pass leaves as.
    pieces: u64,
    /// Times the lines are gone over, and instructions of each time.
    passes: u64,
    instructions: u64,
    per_line: u64,
    buffers: u64,
    /// From the first store of a line to its last.
    gather: f64,
    /// The same of the first line of a pass: a large copy completes it near its end.
    first_gather: f64,
    /// The way of its TLPs, of mean size.
    writes: Writes,
}

impl<'a> Lines<'a> {
    fn new(job: &'a Job<'a>, whole: u64, (pieces, piece_bytes): (u64, u64)) -> Lines<'a> {
        let len = job.stream.span.len;
        // The small copies of one library write their lines twice: as two passes over the same lines.
        let twice = if job.instructions * 16 == 2 * len && matches!(len, 64 | 128) { 2 } else { 1 };
        let instructions = job.instructions / twice;
        let per_line = (instructions / whole.max(1)).max(1);
        let first_line = match job.stream.access {
            Access::Memcpy if instructions > 2 * whole && whole > 2 => 4 * ((len - 32).div_ceil(128) - 1),
            _ => per_line - 1,
        };
        // A rest that nothing flushes keeps its buffer.
        let kept = u64::from(pieces > 0 && !job.drains());
        let mean = (whole * 64 + pieces * piece_bytes) / (whole + pieces);
        Lines {
            job,
            whole,
            pieces,
            passes: job.passes * twice,
            instructions,
            per_line,
            buffers: u64::from(job.costs.platform.core.wc_buffers.value).saturating_sub(kept).max(1),
            gather: (per_line - 1) as f64 * job.step,
            first_gather: first_line as f64 * job.step,
            writes: job.costs.writes(mean.next_multiple_of(4)),
        }
    }

    /// When the last store of line `line` leaves the store buffer, if only the count of buffers limits: each
    /// is taken from the first store of its line until its acknowledgment.
    fn by_buffers(&self, line: u64) -> (Bound, f64) {
        let (rounds, rest) = (line / self.buffers, line % self.buffers);
        let line_step = self.per_line as f64 * self.job.step;
        let ns = rounds as f64 * (self.job.round_trip + self.gather) + rest as f64 * line_step + self.gather;
        (Bound::Buffers, ns)
    }

    /// When pass `pass` begins, if only its lines' acknowledgments in the pass before limit.
    fn by_same_line(&self, pass: u64) -> (Bound, f64) {
        (Bound::SameLine, pass as f64 * (self.job.round_trip + self.first_gather))
    }

    fn within_pass(&self) -> f64 {
        (self.instructions - 1) as f64 * self.job.step
    }

    /// Nothing waits at the end of a pass, or only for the core itself.
    fn running(&self) -> Prediction {
        let job = self.job;
        let lines = self.whole * self.passes;
        let stores = job.instructions * job.passes;
        let ends = job.passes as f64 * job.end_ns();
        // The rest of the last pass leaves when it is over.
        let arrives = if self.pieces > 0 { Largest::of(self.writes.accepted(self.pieces - 1)).ns } else { self.writes.unloaded() };
        let last_pass = self.by_same_line(self.passes - 1);
        let near = [
            (Bound::Issue, (stores - 1) as f64 * job.step + ends - job.end_ns()),
            self.by_buffers(lines - 1),
            (last_pass.0, last_pass.1 + self.within_pass()),
        ];
        let far = job.accepted(&self.writes, lines + self.pieces, self.gather);
        let delivered = Largest::of(near.map(|(bound, ns)| (bound, ns + arrives)).into_iter().chain(far));

        // The last store issues when the one a store buffer before it has left; a fence, when the last has.
        let pace = (Bound::Issue, stores as f64 * job.pace + ends);
        let open = if job.end.is_some() { Some(stores - 1) } else { (stores - 1).checked_sub(job.store_buffer()) };
        let Some(open) = open else {
            return job.prediction(Largest::of([pace]), delivered, HOLDS_FOR);
        };
        let line = (open / self.per_line).min(lines - 1);
        let into_line = (open - line * self.per_line).min(self.per_line - 1) as f64 * job.step;
        let (pass, into_pass) = (open / self.instructions, (open % self.instructions) as f64 * job.step);
        let (by_buffers, by_pass) = (self.by_buffers(line), self.by_same_line(pass));
        let near = [pace, (by_buffers.0, by_buffers.1 - self.gather + into_line), (by_pass.0, by_pass.1 + into_pass)];
        // Its line needs a buffer, or the same line, back from behind the root complex's queue.
        let window = if self.passes > 1 { self.buffers.min(self.whole) } else { self.buffers };
        let back = line.checked_sub(window).map(|behind| self.writes.acknowledged(behind));
        let far = back.into_iter().flatten().map(|(bound, ns)| (bound, if ns > 0.0 { ns + self.gather + into_line } else { 0.0 }));
        job.prediction(Largest::of(near.into_iter().chain(far)), delivered, HOLDS_FOR)
    }

    /// Every pass ends when all its TLPs are acknowledged.
    fn drained(&self) -> Prediction {
        let job = self.job;
        let over_again = self.passes / job.passes - 1;
        let again = self.by_same_line(over_again);
        let stored = Largest::of([
            (Bound::Issue, over_again as f64 * (self.within_pass() + job.step) + self.within_pass()),
            self.by_buffers((self.whole * (over_again + 1)).max(1) - 1),
            (again.0, again.1 + self.within_pass()),
        ]);
        // The end comes a step behind the last store; only then do pieces leave, all together.
        let leaves = stored.ns + if self.pieces > 0 { job.step } else { 0.0 };
        let behind = self.pieces.max(1) - 1;
        let back = Largest::of(self.writes.acknowledged(behind)).ns.max(job.round_trip);
        let pass = (leaves + back).max(stored.ns + job.step) + job.end_ns();
        let bound = match job.end {
            Some(end) if back + end.ns > stored.ns => end.bound,
            _ => stored.bound,
        };
        let near_issue = (bound, job.passes as f64 * pass);
        let last = (job.passes - 1) as f64 * pass + job.ahead_ns() + leaves;
        let near_last = (bound, last + Largest::of(self.writes.accepted(behind)).ns);

        let tlps = self.whole * self.passes + self.pieces * job.passes;
        let first = if self.whole > 0 { self.gather } else { self.within_pass() + job.step };
        let far = self.writes.acknowledged(tlps - 1).map(|(bound, ns)| (bound, ns + first + job.end_ns()));
        let issued = Largest::of([near_issue].into_iter().chain(far));
        let delivered = Largest::of([near_last].into_iter().chain(job.accepted(&self.writes, tlps, first)));
        job.prediction(issued, delivered, "one core, aligned ranges, everything drained after each pass")
    }
}

const HOLDS_FOR: &str = "one core, aligned ranges of whole lines";
