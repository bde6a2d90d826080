//! Stores: issue time of a core, and the acceptance of the last store.
//!
//! Each formula is the largest of several lower bounds, each exact if it alone limits: the issue rate of the core,
//! its buffers per round trip, and the path after it (link, credits, device). Stores issue without delay as
//! long as the buffers before the bottleneck absorb them.

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::costs::{Costs, Writes};
use crate::prediction::Prediction;
use lanemark_machine::{Access, Fence, Stream};
use lanemark_platform::WcPartialFlush;
use lanemark_units::MemoryType;

/// Operation at the end of each iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// Its cost with nothing to wait for.
    pub(crate) ns: f64,
    /// Part of it before the first store instead of after the last: a driver's entry.
    pub(crate) ahead_ns: f64,
    /// Whether it waits until all stores are acknowledged.
    pub(crate) drains: bool,
    /// Its bound.
    pub(crate) bound: Bound,
}

impl End {
    pub(crate) fn fence(costs: &Costs<'_>, fence: Fence) -> End {
        End { ns: costs.fence(fence), ahead_ns: 0.0, drains: fence.drains_stores(), bound: Bound::Fence }
    }
}

/// Predicts `passes` iterations of a stream of stores issued every `pace`.
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

/// The stores, and the terms that all kinds of stores share.
struct Job<'a> {
    costs: &'a Costs<'a>,
    stream: &'a Stream,
    /// Instructions of an iteration.
    instructions: u64,
    passes: u64,
    end: Option<End>,
    /// Time between two instructions at the front end.
    pace: f64,
    /// Time between two stores at the exit of the store buffer.
    step: f64,
    round_trip: f64,
}

impl<'a> Job<'a> {
    fn new(costs: &'a Costs<'a>, stream: &'a Stream, pace: f64, end: Option<End>, passes: u64) -> Job<'a> {
        let instructions = costs.instructions(stream.access, stream.span.memory_type, stream.span.len).left().max(1);
        let step = pace.max(costs.cycle);
        // The end of an iteration waits until the last store has left the store buffer.
        let pace = if end.is_some() { step } else { pace };
        Job { costs, stream, instructions, passes, end, pace, step, round_trip: costs.round_trip }
    }

    /// From a store that had to wait until the `behind`-th store after it. Those in the store buffer leave one cycle
    /// apart; the others are issued first.
    fn stalled(&self, behind: u64) -> f64 {
        let issued = behind.saturating_sub(self.store_buffer() + 1) as f64 * self.pace;
        issued.max(behind as f64 * self.costs.cycle)
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

    /// UC, WT, WP and MOVDIRI: one TLP per store. A store waits for the acknowledgment of the previous one (MOVDIRI:
    /// of the previous one in its line).
    fn single(&self, direct: bool) -> Prediction {
        let all = self.costs.instructions(self.stream.access, self.stream.span.memory_type, self.stream.span.len);
        let writes = match self.stream.access {
            Access::Memcpy => self.costs.writes(all.map(|piece| piece.bytes)),
            _ => self.costs.writes(std::iter::once((self.stream.span.len / self.instructions).max(1))),
        };
        let (stores, last) = (self.instructions * self.passes, self.instructions * self.passes - 1);
        let uncached = !direct && self.stream.span.memory_type == MemoryType::Uc;
        let apart = self.round_trip.max(if uncached { 0.0 } else { self.step });
        // Stores of an iteration that need not wait: those that start another line, if a buffer is free.
        let lines = self.stream.span.len.div_ceil(64);
        let several = direct && lines > 1 && self.costs.platform.core.wc_buffers.value > 1;
        let free = if several { lines } else { 0 };
        let order = if direct { Bound::SameLine } else { Bound::StrongOrdering };
        // From the first store of an iteration to the first of the next.
        let pass = (self.instructions - free) as f64 * apart + free as f64 * self.step;
        let within = (pass - if several { self.step } else { apart }).max(0.0);
        let last_round = if self.drains() || uncached { self.round_trip.max(self.step) } else { self.step };
        let core = |behind: u64| behind as f64 * pass / self.instructions as f64;
        // The whole iteration after the core, which may be idle at its start.
        let answered =
            if self.drains() { writes.acknowledged(self.instructions - 1, core) } else { [(Bound::Link, 0.0); 3] };
        let ended = Largest::of([(order, within + last_round)].into_iter().chain(answered)).times(1.0, self.end_ns());
        let fenced = self.end.map_or(pass, |_| pass.max(ended.ns));
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
        // The store that must have left before the last one issues, and the store that must be acknowledged before
        // it.
        let held = if uncached || self.end.is_some() { Some(stores) } else { last.checked_sub(self.store_buffer()) };
        let far_issue = held.and_then(|held| held.checked_sub(1)).map(|behind| writes.acknowledged(behind, core));
        let near = [(Bound::Issue, if uncached { 0.0 } else { issue }), (order, near_issue)];
        let issued = Largest::of(near.into_iter().chain(far_issue.into_iter().flatten()));
        let near_last = [(order, near_last + writes.unloaded())];
        let far = self.behind(writes.accepted(last, core), 0.0);
        let delivered = Largest::of(near_last.into_iter().chain(far));
        let delivered = if self.drains() { delivered.no_clearer_than(&ended) } else { delivered };
        prediction(issued, delivered, "one core, aligned stores")
    }

    /// Times after the core, whose first TLP leaves at `first`.
    fn behind(&self, times: [(Bound, f64); 3], first: f64) -> [(Bound, f64); 3] {
        times.map(|(bound, ns)| (bound, ns + first + self.ahead_ns()))
    }

    /// WC memory, non-temporal stores to WT memory, and MOVDIR64B: lines are combined in buffers and evicted when
    /// full, or partially at the end of an iteration.
    fn combined(&self) -> Prediction {
        let (whole, tail) = (self.stream.span.len / 64, self.stream.span.len % 64);
        let pieces = self.pieces(tail);
        match (whole, self.drains()) {
            (0, false) => self.gathered(pieces),
            (_, true) => Lines::new(self, whole, pieces).drained(),
            (_, false) => Lines::new(self, whole, pieces).running(),
        }
    }

    /// Less than a line, never flushed: all stores combine, and the line is evicted after the last.
    fn gathered(&self, pieces: (u64, u64)) -> Prediction {
        let stores = (self.instructions * self.passes) as f64;
        let writes = self.costs.writes(std::iter::once(pieces.1));
        let ends = self.passes as f64 * self.end_ns();
        let issued = Largest::of([(Bound::Issue, stores * self.pace + ends)]);
        let over = issued.ns.max((stores - 1.0) * self.step + ends);
        let burst = Largest::of(writes.accepted(pieces.0 - 1, |_| 0.0));
        let delivered = Largest::of([(Bound::Issue, over + burst.ns)]);
        prediction(issued, delivered, "one core, less than a line, evicted after the last iteration")
    }

    /// Number and mean size of the writes into which the first `bytes` bytes of a line are evicted.
    fn pieces(&self, bytes: u64) -> (u64, u64) {
        match self.costs.platform.core.wc_partial_flush.value {
            WcPartialFlush::EightBytes => (bytes.div_ceil(8), bytes.clamp(1, 8)),
            WcPartialFlush::Dw => (bytes.div_ceil(4), bytes.clamp(1, 4)),
            WcPartialFlush::Contiguous => (bytes.min(1), bytes.max(1)),
        }
    }
}

/// Lines of a job that uses write combining.
struct Lines<'a> {
    job: &'a Job<'a>,
    /// Whole lines of an iteration.
    whole: u64,
    /// Number of writes for the remainder of an iteration.
    pieces: u64,
    /// Number of sweeps over the lines, and instructions of each.
    passes: u64,
    instructions: u64,
    per_line: u64,
    /// Position of the store that completes a line, after the first of its sweep; in a large copy, near its end.
    completes_first: u64,
    /// Lines that may be combining or in flight concurrently, and the bound behind that limit.
    together: (Bound, u64),
    /// The path of its TLPs, of mean size.
    writes: Writes,
}

impl<'a> Lines<'a> {
    fn new(job: &'a Job<'a>, whole: u64, (pieces, piece_bytes): (u64, u64)) -> Lines<'a> {
        let len = job.stream.span.len;
        let copied = job.stream.access == Access::Memcpy;
        // The small copies of one library write their lines twice, like two sweeps over the same lines.
        let twice = if copied && job.instructions * 16 == 2 * len && matches!(len, 64 | 128) { 2 } else { 1 };
        let (passes, instructions) = (job.passes * twice, job.instructions / twice);
        let per_line = (instructions / whole.max(1)).max(1);
        let completes_first = match job.stream.access {
            Access::Memcpy if len > 256 || instructions > 2 * whole => {
                4 * (len.saturating_sub(32).div_ceil(128).max(1) - 1)
            }
            _ => per_line - 1,
        };
        // A remainder that is never flushed keeps its buffer.
        let kept = u64::from(pieces > 0 && !job.drains());
        let buffers = u64::from(job.costs.platform.core.wc_buffers.value).saturating_sub(kept).max(1);
        // A line is written again only after its acknowledgment.
        let again = if job.drains() { twice > 1 } else { passes > 1 };
        let together =
            if again && whole < buffers { (Bound::SameLine, whole.max(1)) } else { (Bound::Buffers, buffers) };
        let sizes = (0..whole + pieces).map(|place| if place < whole { 64 } else { piece_bytes });
        // Equal lines need no sum.
        let writes = if pieces == 0 { job.costs.writes(std::iter::once(64)) } else { job.costs.writes(sizes) };
        Lines { job, whole, pieces, passes, instructions, per_line, completes_first, together, writes }
    }

    /// From the first store of the first line to its last.
    fn gather(&self) -> f64 {
        (self.per_line - 1) as f64 * self.job.step
    }

    /// Time at which store `store` of line `line` leaves the store buffer, if only the number of concurrent lines
    /// limits. Each line occupies a buffer from its first store until its acknowledgment.
    fn by_lines(&self, line: u64, store: u64) -> (Bound, f64) {
        let (bound, together) = self.together;
        let (rounds, rest) = (line / together, line % together);
        let start = (rest * self.per_line) as f64 * self.job.step;
        (bound, start + self.rounds(rounds, self.per_line - 1, store))
    }

    /// Time at which store `store` of sweep `pass` leaves, if only the line that is completed last limits.
    fn by_first_line(&self, pass: u64, store: u64) -> (Bound, f64) {
        (Bound::SameLine, self.rounds(pass, self.completes_first, store))
    }

    /// `rounds` times the combining of a line (`behind` stores after its first) and its acknowledgment, then `store`
    /// further stores. Nothing waits in the first round, whose stores arrive as issued.
    fn rounds(&self, rounds: u64, behind: u64, store: u64) -> f64 {
        let Some(more) = rounds.checked_sub(1) else { return store as f64 * self.job.step };
        let first = self.job.round_trip + behind as f64 * self.job.step;
        first + more as f64 * (self.job.round_trip + self.job.stalled(behind)) + self.job.stalled(store)
    }

    /// Earliest time at which line `line` leaves the core, after the first line.
    fn leaves(&self, line: u64) -> f64 {
        let by_issue = (line * self.per_line) as f64 * self.job.step;
        let last = self.per_line - 1;
        by_issue.max(self.by_lines(line, last).1 - self.gather())
    }

    /// No wait at the end of an iteration, or only for the core itself.
    fn running(&self) -> Prediction {
        let job = self.job;
        let lines = self.whole * self.passes;
        let stores = job.instructions * job.passes;
        let ends = job.passes as f64 * job.end_ns();
        // The remainder of the last iteration is evicted at its end.
        let arrives = match self.pieces.checked_sub(1) {
            Some(behind) => Largest::of(self.writes.accepted(behind, |_| 0.0)).ns,
            None => self.writes.unloaded(),
        };
        let near = [
            (Bound::Issue, (stores - 1) as f64 * job.step + ends - job.end_ns()),
            self.by_lines(lines - 1, self.per_line - 1),
            self.by_first_line(self.passes - 1, self.instructions - 1),
        ];
        let far = self.writes.accepted(lines + self.pieces - 1, |line| self.leaves(line));
        let near = near.map(|(bound, ns)| (bound, ns + arrives));
        let delivered = Largest::of(near.into_iter().chain(job.behind(far, self.gather())));

        // The last store issues when the store one store-buffer length before it has left; a fence, when the last one
        // has.
        let pace = (Bound::Issue, stores as f64 * job.pace + ends);
        let open = if job.end.is_some() { Some(stores - 1) } else { (stores - 1).checked_sub(job.store_buffer()) };
        let Some(open) = open else {
            return prediction(Largest::of([pace]), delivered, HOLDS_FOR);
        };
        let line = (open / self.per_line).min(lines - 1);
        let store = (open - line * self.per_line).min(self.per_line - 1);
        let by_first_line = self.by_first_line(open / self.instructions, open % self.instructions);
        let near = [pace, self.by_lines(line, store), by_first_line];
        // Its line needs the buffer of an earlier one, which waits in the queue of the root complex.
        let back = line.checked_sub(self.together.1);
        let back = back.map(|behind| self.writes.acknowledged(behind, |line| self.leaves(line)));
        let since = self.gather() + job.stalled(store);
        let far = back.into_iter().flatten().filter(|term| term.1 > 0.0).map(|(bound, ns)| (bound, ns + since));
        let held_up = job.end.map_or(0.0, |end| end.ns);
        let near = near.map(|(bound, ns)| (bound, if bound == Bound::Issue { ns } else { ns + held_up }));
        prediction(Largest::of(near.into_iter().chain(far)), delivered, HOLDS_FOR)
    }

    /// Each iteration ends when all its TLPs are acknowledged.
    fn drained(&self) -> Prediction {
        let job = self.job;
        let over = self.passes / job.passes;
        let stored = Largest::of([
            (Bound::Issue, (over * self.instructions - 1) as f64 * job.step),
            self.by_lines((self.whole * over).max(1) - 1, self.per_line - 1),
            self.by_first_line(over - 1, self.instructions - 1),
        ]);
        // The end follows one step after the last store; only then are partial lines evicted, all together.
        let leaves = stored.ns + if self.pieces > 0 { job.step } else { 0.0 };
        let behind = self.pieces.max(1) - 1;
        let back = Largest::of(self.writes.acknowledged(behind, |_| 0.0)).ns.max(job.round_trip);
        let bound = match job.end {
            Some(end) if back + end.ns > stored.ns => end.bound,
            _ => stored.bound,
        };
        let near_pass = (leaves + back).max(stored.ns + job.step);
        // The whole iteration after the core, which may be idle at its start.
        let tlps = self.whole * over + self.pieces;
        let first = if self.whole > 0 { self.gather() } else { leaves };
        let core = |line: u64| if line < self.whole * over { self.leaves(line) } else { 0.0 };
        let far_pass = self.writes.acknowledged(tlps - 1, core).map(|(bound, ns)| (bound, ns + first));
        let pass = Largest::of([(bound, near_pass)].into_iter().chain(far_pass)).times(1.0, job.end_ns());
        let before = (job.passes - 1) as f64 * pass.ns;
        let near_last = [(bound, job.ahead_ns() + leaves + Largest::of(self.writes.accepted(behind, |_| 0.0)).ns)];
        let far_last = job.behind(self.writes.accepted(tlps - 1, core), first);
        let last = Largest::of(near_last.into_iter().chain(far_last)).times(1.0, before);

        let all = tlps * job.passes - 1;
        let sent = |behind: u64| (behind / tlps) as f64 * pass.ns;
        let far = self.writes.acknowledged(all, sent).map(|(bound, ns)| (bound, ns + first + job.end_ns()));
        let issued = Largest::of([(pass.bound, pass.ns * job.passes as f64)].into_iter().chain(far));
        let far = job.behind(self.writes.accepted(all, sent), first);
        let delivered = Largest::of([(last.bound, last.ns)].into_iter().chain(far)).no_clearer_than(&pass);
        prediction(issued, delivered, "one core, aligned ranges, all buffers drained after each iteration")
    }
}

const HOLDS_FOR: &str = "one core, aligned ranges of whole lines";

fn prediction(issued: Largest, delivered: Largest, holds_for: &'static str) -> Prediction {
    Prediction {
        issue_ns: issued.ns,
        delivered_ns: delivered.ns,
        bound: delivered.bound,
        lead: delivered.lead(),
        holds_for,
    }
}
