//! Stores: issue time of a core, and the acceptance of the last store.
//!
//! Each formula is the largest of several lower bounds, each exact if it alone limits: the issue rate of the core,
//! its buffers per round trip, and the path after it (link, credits, device). Stores issue without delay as
//! long as the buffers before the bottleneck absorb them.

use crate::bound::Bound;
use crate::bounds::{Largest, most};
use crate::costs::{Costs, Writes};
use crate::number::Number;
use crate::prediction::Prediction;
use lanemark_machine::{Access, Fence, Stream};
use lanemark_platform::WcPartialFlush;
use lanemark_units::MemoryType;

/// Operation at the end of each iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<N = f64> {
    /// Its cost with nothing to wait for.
    pub(crate) ns: N,
    /// Part of it before the first store instead of after the last: a driver's entry.
    pub(crate) ahead_ns: N,
    /// Whether it waits until all stores are acknowledged.
    pub(crate) drains: bool,
    /// Its bound.
    pub(crate) bound: Bound,
}

impl<N: Number> End<N> {
    pub(crate) fn fence(costs: &Costs<'_, N>, fence: Fence) -> End<N> {
        End { ns: costs.fence(fence), ahead_ns: N::all(0.0), drains: fence.drains_stores(), bound: Bound::Fence }
    }
}

/// Predicts `passes` iterations of a stream of stores issued every `pace`.
pub(crate) fn predict(costs: &Costs<'_>, stream: &Stream, pace: f64, end: Option<End>, passes: u64) -> Prediction {
    let times = times(costs, stream, pace, end, passes);
    let delivered = times.delivered;
    Prediction {
        issue_ns: times.issued_ns,
        delivered_ns: delivered.ns,
        bound: delivered.bound,
        lead: delivered.lead(),
        holds_for: times.holds_for,
    }
}

/// Times of a stream of stores, and the conditions for which they hold.
pub(crate) struct Times<N: Number> {
    pub(crate) issued_ns: N,
    pub(crate) delivered: Largest<N>,
    holds_for: &'static str,
}

/// Times of `passes` iterations of a stream of stores issued every `pace`.
pub(crate) fn times<N: Number>(
    costs: &Costs<'_, N>,
    stream: &Stream,
    pace: N,
    end: Option<End<N>>,
    passes: u64,
) -> Times<N> {
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
struct Job<'a, N: Number> {
    costs: &'a Costs<'a, N>,
    stream: &'a Stream,
    /// Instructions of an iteration.
    instructions: u64,
    passes: u64,
    end: Option<End<N>>,
    /// Time between two instructions at the front end.
    pace: N,
    /// Time between two stores at the exit of the store buffer.
    step: N,
    round_trip: N,
}

impl<'a, N: Number> Job<'a, N> {
    fn new(costs: &'a Costs<'a, N>, stream: &'a Stream, pace: N, end: Option<End<N>>, passes: u64) -> Job<'a, N> {
        let instructions = costs.instructions(stream.access, stream.span.memory_type, stream.span.len).left().max(1);
        let step = pace.max(costs.numbers.cycle);
        // The end of an iteration waits until the last store has left the store buffer.
        let pace = if end.is_some() { step } else { pace };
        Job { costs, stream, instructions, passes, end, pace, step, round_trip: costs.numbers.round_trip }
    }

    /// From a store that had to wait until the `behind`-th store after it. Those in the store buffer leave one cycle
    /// apart; the others are issued first.
    #[inline]
    fn stalled(&self, behind: N) -> N {
        let issued = (behind - (self.store_buffer() + N::all(1.0))).max(N::all(0.0)) * self.pace;
        issued.max(behind * self.costs.numbers.cycle)
    }

    fn store_buffer(&self) -> N {
        self.costs.numbers.store_buffer
    }

    fn drains(&self) -> bool {
        self.end.is_some_and(|end| end.drains)
    }

    fn end_ns(&self) -> N {
        self.end.map_or(N::all(0.0), |end| end.ns)
    }

    fn ahead_ns(&self) -> N {
        self.end.map_or(N::all(0.0), |end| end.ahead_ns)
    }

    /// UC, WT, WP and MOVDIRI: one TLP per store. A store waits for the acknowledgment of the previous one (MOVDIRI:
    /// of the previous one in its line).
    fn single(&self, direct: bool) -> Times<N> {
        let all = self.costs.instructions(self.stream.access, self.stream.span.memory_type, self.stream.span.len);
        let writes = match self.stream.access {
            Access::Memcpy => self.costs.writes(all.map(|piece| (1, piece.bytes))),
            _ => self.costs.writes([(1, (self.stream.span.len / self.instructions).max(1))]),
        };
        let zero = N::all(0.0);
        let (stores, last) = (self.instructions * self.passes, self.instructions * self.passes - 1);
        let uncached = !direct && self.stream.span.memory_type == MemoryType::Uc;
        let apart = self.round_trip.max(if uncached { zero } else { self.step });
        // Stores of an iteration that need not wait: those that start another line, if a buffer is free.
        let lines = self.stream.span.len.div_ceil(64);
        let several = direct && lines > 1 && self.costs.platform.core.wc_buffers.value > 1;
        let free = if several { lines } else { 0 };
        let order = if direct { Bound::SameLine } else { Bound::StrongOrdering };
        // From the first store of an iteration to the first of the next.
        let pass = N::count(self.instructions - free) * apart + N::count(free) * self.step;
        let within = (pass - if several { self.step } else { apart }).max(zero);
        let last_round = if self.drains() || uncached { self.round_trip.max(self.step) } else { self.step };
        let core = |behind: N| behind * pass / N::count(self.instructions);
        // The whole iteration after the core, which may be idle at its start.
        let mut ended = Largest::of([(order, within + last_round)]);
        if self.drains() {
            ended = ended.and(writes.acknowledged(N::count(self.instructions - 1), core));
        }
        let ended = ended.times(1.0, self.end_ns());
        let fenced = self.end.map_or(pass, |_| pass.max(ended.ns));
        let mut near_last = N::count(self.passes - 1) * fenced + within;
        let near_issue = if uncached {
            N::count(self.passes) * fenced
        } else if self.end.is_some() {
            near_last + last_round + self.end_ns()
        } else {
            let open = (N::count(last) - self.store_buffer()).max(zero);
            open * pass / N::count(self.instructions)
        };
        near_last = near_last + self.ahead_ns();
        let issue = N::count(stores) * self.pace + N::count(self.passes) * self.end_ns();
        // The store that must have left before the last one issues, and the store that must be acknowledged before
        // it.
        let held = if uncached || self.end.is_some() { N::count(stores) } else { N::count(last) - self.store_buffer() };
        let behind = held - N::all(1.0);
        let far_issue = zero.if_above(behind, zero, most(writes.acknowledged(behind.max(zero), core)));
        let issued_ns = near_issue.max(if uncached { zero } else { issue }).max(far_issue);
        let far = self.behind(writes.accepted(N::count(last), core), zero);
        let delivered = Largest::of([(order, near_last + writes.unloaded())]).and(far);
        let delivered = if self.drains() { delivered.no_clearer_than(&ended) } else { delivered };
        Times { issued_ns, delivered, holds_for: "one core, aligned stores" }
    }

    /// Times after the core, whose first TLP leaves at `first`.
    fn behind(&self, times: [(Bound, N); 3], first: N) -> [(Bound, N); 3] {
        times.map(|(bound, ns)| (bound, ns + first + self.ahead_ns()))
    }

    /// WC memory, non-temporal stores to WT memory, and MOVDIR64B: lines are combined in buffers and evicted when
    /// full, or partially at the end of an iteration.
    fn combined(&self) -> Times<N> {
        let (whole, tail) = (self.stream.span.len / 64, self.stream.span.len % 64);
        let pieces = self.pieces(tail);
        match (whole, self.drains()) {
            (0, false) => self.gathered(pieces),
            (_, true) => Lines::new(self, whole, pieces).drained(),
            (_, false) => Lines::new(self, whole, pieces).running(),
        }
    }

    /// Less than a line, never flushed: all stores combine, and the line is evicted after the last.
    fn gathered(&self, pieces: (u64, u64)) -> Times<N> {
        let stores = self.instructions * self.passes;
        let writes = self.costs.writes([(1, pieces.1)]);
        let ends = N::count(self.passes) * self.end_ns();
        let issued_ns = N::count(stores) * self.pace + ends;
        let over = issued_ns.max(N::count(stores - 1) * self.step + ends);
        let burst = most(writes.accepted(N::count(pieces.0 - 1), |_| N::all(0.0)));
        let delivered = Largest::of([(Bound::Issue, over + burst)]);
        Times { issued_ns, delivered, holds_for: "one core, less than a line, evicted after the last iteration" }
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

/// A store, after the first one of its line or sweep.
#[derive(Clone, Copy)]
struct Stored<N> {
    /// When it leaves the store buffer if nothing waits.
    issued: N,
    /// When it leaves after a wait of the first one.
    stalled: N,
}

impl<N: Number> Stored<N> {
    #[inline]
    fn after(job: &Job<'_, N>, behind: N) -> Stored<N> {
        Stored { issued: behind * job.step, stalled: job.stalled(behind) }
    }
}

/// Rounds of combining something and waiting for its acknowledgment. Nothing waits in the first round, whose stores
/// arrive as issued.
#[derive(Clone, Copy)]
struct Rounds<N> {
    first: N,
    further: N,
}

impl<N: Number> Rounds<N> {
    /// Rounds that end with a store.
    #[inline]
    fn of(job: &Job<'_, N>, last: Stored<N>) -> Rounds<N> {
        Rounds { first: job.round_trip + last.issued, further: job.round_trip + last.stalled }
    }

    /// Time of `store` after so many rounds.
    #[inline]
    fn then(&self, rounds: N, store: Stored<N>) -> N {
        let waits = self.first + (rounds - N::all(1.0)) * self.further + store.stalled;
        rounds.if_above(N::all(0.0), waits, store.issued)
    }
}

/// Lines of a job that uses write combining.
struct Lines<'a, N: Number> {
    job: &'a Job<'a, N>,
    /// Whole lines of an iteration.
    whole: u64,
    /// Number of writes for the remainder of an iteration.
    pieces: u64,
    /// Number of sweeps over the lines, and instructions of each.
    passes: u64,
    instructions: u64,
    per_line: u64,
    /// The last store of a line.
    last: Stored<N>,
    /// Rounds of as many lines as go together, and of the line that a sweep completes last.
    in_rounds: Rounds<N>,
    over_sweeps: Rounds<N>,
    /// Lines that may be combining or in flight concurrently, and the bound behind that limit.
    together: (N::Bounds, N),
    /// The path of its TLPs, of mean size.
    writes: Writes<N>,
}

impl<'a, N: Number> Lines<'a, N> {
    fn new(job: &'a Job<'a, N>, whole: u64, (pieces, piece_bytes): (u64, u64)) -> Lines<'a, N> {
        let len = job.stream.span.len;
        let copied = job.stream.access == Access::Memcpy;
        // The small copies of one library write their lines twice, like two sweeps over the same lines.
        let twice = if copied && job.instructions * 16 == 2 * len && matches!(len, 64 | 128) { 2 } else { 1 };
        let (passes, instructions) = (job.passes * twice, job.instructions / twice);
        let per_line = (instructions / whole.max(1)).max(1);
        // Position of the store that completes a line, after the first of its sweep; in a large copy, near its end.
        let completes_first = match job.stream.access {
            Access::Memcpy if len > 256 || instructions > 2 * whole => {
                4 * (len.saturating_sub(32).div_ceil(128).max(1) - 1)
            }
            _ => per_line - 1,
        };
        // A remainder that is never flushed keeps its buffer.
        let kept = u64::from(pieces > 0 && !job.drains());
        let buffers = (job.costs.numbers.wc_buffers - N::count(kept)).max(N::all(1.0));
        // A line is written again only after its acknowledgment.
        let again = if job.drains() { twice > 1 } else { passes > 1 };
        let (lines, by_buffers) = (N::count(whole), N::bounds(Bound::Buffers));
        let together = if again {
            let bound = buffers.bound_if_above(lines, N::bounds(Bound::SameLine), by_buffers);
            (bound, buffers.if_above(lines, N::count(whole.max(1)), buffers))
        } else {
            (by_buffers, buffers)
        };
        let sizes = [(whole, 64), (pieces, piece_bytes)].into_iter().filter(|(times, _)| *times > 0);
        let writes = job.costs.writes(sizes);
        let last = Stored::after(job, N::count(per_line - 1));
        let in_rounds = Rounds::of(job, last);
        let over_sweeps = Rounds::of(job, Stored::after(job, N::count(completes_first)));
        Lines { job, whole, pieces, passes, instructions, per_line, last, in_rounds, over_sweeps, together, writes }
    }

    /// From the first store of the first line to its last.
    fn gather(&self) -> N {
        self.last.issued
    }

    /// Time at which store `store` of line `line` leaves the store buffer, if only the number of concurrent lines
    /// limits. Each line occupies a buffer from its first store until its acknowledgment.
    #[inline]
    fn by_lines(&self, line: N, store: Stored<N>) -> N {
        let (rounds, rest) = line.divided(self.together.1);
        let start = rest * N::count(self.per_line) * self.job.step;
        start + self.in_rounds.then(rounds, store)
    }

    /// Earliest time at which line `line` leaves the core, after the first line.
    #[inline]
    fn leaves(&self, line: N) -> N {
        let by_issue = line * N::count(self.per_line) * self.job.step;
        by_issue.max(self.by_lines(line, self.last) - self.gather())
    }

    /// No wait at the end of an iteration, or only for the core itself.
    fn running(&self) -> Times<N> {
        let job = self.job;
        let zero = N::all(0.0);
        let lines = self.whole * self.passes;
        let stores = job.instructions * job.passes;
        let ends = N::count(job.passes) * job.end_ns();
        // The remainder of the last iteration is evicted at its end.
        let arrives = match self.pieces.checked_sub(1) {
            Some(behind) => most(self.writes.accepted(N::count(behind), |_| zero)),
            None => self.writes.unloaded(),
        };
        let by_issue = N::count(stores - 1) * job.step + ends - job.end_ns();
        let by_lines = self.by_lines(N::count(lines - 1), self.last);
        let last_of_sweep = Stored::after(job, N::count(self.instructions - 1));
        let by_first_line = self.over_sweeps.then(N::count(self.passes - 1), last_of_sweep);
        let far = self.writes.accepted(N::count(lines + self.pieces - 1), |line| self.leaves(line));
        let delivered = Largest::of([(Bound::Issue, by_issue + arrives)])
            .and_one(self.together.0, by_lines + arrives)
            .and([(Bound::SameLine, by_first_line + arrives)])
            .and(job.behind(far, self.gather()));

        // The last store issues when the store one store-buffer length before it has left; a fence, when the last one
        // has.
        let pace = N::count(stores) * job.pace + ends;
        let last = N::count(stores - 1);
        let left = if job.end.is_some() { last } else { last - job.store_buffer() };
        let open = left.max(zero);
        let line = open.divided(N::count(self.per_line)).0.min(N::count(lines - 1));
        let store = (open - line * N::count(self.per_line)).min(N::count(self.per_line - 1));
        let (sweep, of_sweep) = open.divided(N::count(self.instructions));
        let store = Stored::after(job, store);
        let by_first_line = self.over_sweeps.then(sweep, Stored::after(job, of_sweep));
        let near = self.by_lines(line, store).max(by_first_line) + job.end_ns();
        // Its line needs the buffer of an earlier one, which waits in the queue of the root complex.
        let back = line - self.together.1;
        let waits = most(self.writes.acknowledged(back.max(zero), |line| self.leaves(line)));
        let waits = zero.if_above(back, zero, waits);
        let far = waits.if_above(zero, waits + self.gather() + store.stalled, zero);
        // Without a store that must have left, only the pace counts.
        let held = zero.if_above(left, zero, near.max(far));
        Times { issued_ns: pace.max(held), delivered, holds_for: HOLDS_FOR }
    }

    /// Each iteration ends when all its TLPs are acknowledged.
    fn drained(&self) -> Times<N> {
        let (job, zero) = (self.job, N::all(0.0));
        let over = self.passes / job.passes;
        let by_lines = self.by_lines(N::count((self.whole * over).max(1) - 1), self.last);
        let last_of_sweep = Stored::after(job, N::count(self.instructions - 1));
        let by_first_line = self.over_sweeps.then(N::count(over - 1), last_of_sweep);
        let stored = Largest::of([(Bound::Issue, N::count(over * self.instructions - 1) * job.step)])
            .and_one(self.together.0, by_lines)
            .and([(Bound::SameLine, by_first_line)]);
        // The end follows one step after the last store; only then are partial lines evicted, all together.
        let leaves = stored.ns + if self.pieces > 0 { job.step } else { zero };
        let behind = N::count(self.pieces.max(1) - 1);
        let back = most(self.writes.acknowledged(behind, |_| zero)).max(job.round_trip);
        let bound = match job.end {
            Some(end) => (back + end.ns).bound_if_above(stored.ns, N::bounds(end.bound), stored.bound),
            None => stored.bound,
        };
        let near_pass = (leaves + back).max(stored.ns + job.step);
        // The whole iteration after the core, which may be idle at its start.
        let tlps = self.whole * over + self.pieces;
        let first = if self.whole > 0 { self.gather() } else { leaves };
        let lines = N::count(self.whole * over);
        let core = |line: N| lines.if_above(line, self.leaves(line), zero);
        let far_pass = self.writes.acknowledged(N::count(tlps - 1), core).map(|(bound, ns)| (bound, ns + first));
        let pass = Largest::of([]).and_one(bound, near_pass).and(far_pass).times(1.0, job.end_ns());
        let before = N::count(job.passes - 1) * pass.ns;
        let near_last = job.ahead_ns() + leaves + most(self.writes.accepted(behind, |_| zero));
        let far_last = job.behind(self.writes.accepted(N::count(tlps - 1), core), first);
        let last = Largest::of([]).and_one(bound, near_last).and(far_last).times(1.0, before);

        let all = N::count(tlps * job.passes - 1);
        let sent = |behind: N| behind.divided(N::count(tlps)).0 * pass.ns;
        let far = most(self.writes.acknowledged(all, sent).map(|(bound, ns)| (bound, ns + first + job.end_ns())));
        let issued_ns = (pass.ns * N::count(job.passes)).max(far);
        let far = job.behind(self.writes.accepted(all, sent), first);
        let delivered = Largest::of([]).and_one(last.bound, last.ns).and(far).no_clearer_than(&pass);
        let holds_for = "one core, aligned ranges, all buffers drained after each iteration";
        Times { issued_ns, delivered, holds_for }
    }
}

const HOLDS_FOR: &str = "one core, aligned ranges of whole lines";
