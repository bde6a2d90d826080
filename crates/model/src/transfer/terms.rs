//! The times that all requests together take at the least.

use super::pools::Wait;
use super::{Sum, Way};
use crate::bounds::Largest;
use crate::path::Hop;
use crate::predict::Bound;
use lanemark_machine::{Partner, Verb};
use lanemark_units::Ticks;
use lanemark_wire::{Mps, ack_latency_limit};

impl Way<'_> {
    /// The largest of the terms of requests that are so many times these.
    pub(super) fn terms(&self, sum: &Sum, times: f64) -> Largest {
        let step = if self.channels == 1 { sum.least_engine } else { sum.least_request_beats };
        let waits = self.waits(sum, times, step);
        let since_first = self.since_first(sum, times, step).into_iter().chain(in_all(&waits));
        let terms = self.of_engine(sum, times).into_iter().chain(since_first);
        let mut largest = Largest::of(terms);
        if self.transfer.verb == Verb::Load {
            // As if every read had its tag for as long as the longest of them.
            let longest = sum.requests as f64 * times * sum.most_latency.as_ns() / self.most_under_way();
            largest = if largest.bound == Bound::Tags { largest } else { largest.beside(longest) };
        }
        // What is not known of a round trip may make it as large as the largest; of that one itself, its lead is not known.
        let mut is_known = !self.goes_by_root();
        for (rest, wait) in waits {
            let leads = wait.bound == largest.bound && rest + wait.ns >= largest.ns;
            is_known &= !(leads && wait.hidden_ns > 0.02 * largest.ns);
            if !leads && wait.ns > 0.0 {
                largest = largest.beside(rest + wait.ns + wait.hidden_ns);
            }
        }
        // A descriptor between requests stops the engine and lets what it feeds run dry: no term has both.
        let stops = times * sum.beyond.as_ns();
        let others = f64::from(self.channels - 1) / f64::from(self.channels);
        match largest.bound {
            _ if !is_known => largest.blurred(),
            // What comes behind one that holds memory for longer than others waits, and then memory for it.
            _ if sum.holds_unlike() => largest.blurred(),
            // Each channel may wait for the beats of the others.
            Bound::Engine if times * sum.request_beats.as_ns() * others > 0.02 * largest.ns => largest.blurred(),
            // Credits come back one by one then, and no round trip has that.
            Bound::Credits if self.root_pace() > Ticks::ZERO => largest.blurred(),
            Bound::Tags if self.hold_tags_unlike(sum, times) => largest.blurred(),
            _ if largest.ns > 100.0 * stops => largest,
            Bound::Engine => largest.without(stops),
            _ => largest.blurred(),
        }
    }

    /// The largest of those that count from the first request on, whatever the engine does meanwhile.
    pub(super) fn behind_first(&self, sum: &Sum) -> Largest {
        let waits = self.waits(sum, 1.0, Ticks::ZERO);
        Largest::of(self.since_first(sum, 1.0, Ticks::ZERO).into_iter().chain(in_all(&waits)))
    }

    /// What the engine takes for all, and what is between it and the link.
    fn of_engine(&self, sum: &Sum, times: f64) -> [(Bound, f64); 4] {
        let n = sum.requests as f64 * times;
        let all = |sum: Ticks| times * sum.as_ns();
        let channels = f64::from(self.channels);
        let last_way = if self.channels == 1 { sum.last_way } else { sum.shortest };
        // Channels work side by side, and share a path for beats.
        let busiest = if times > 1.0 { sum.engine.as_ns() * (times / channels).ceil() } else { sum.busiest.as_ns() };
        let buffers = f64::from(self.dma.send_buffers.value) * channels;
        let besides = self.first(sum) + sum.besides_memory.as_ns();
        [
            (Bound::Engine, busiest + last_way.as_ns()),
            (Bound::Engine, all(sum.request_beats) + sum.shortest.as_ns()),
            (Bound::Tags, all(sum.latencies) / self.most_under_way()),
            (Bound::Buffers, besides + ((n - 1.0) / buffers).floor() * sum.to_link.as_ns()),
        ]
    }

    /// What counts from the first request on, where `step` is between requests at the least.
    fn since_first(&self, sum: &Sum, times: f64, step: Ticks) -> [(Bound, f64); 9] {
        let n = sum.requests as f64 * times;
        let all = |sum: Ticks| times * sum.as_ns();
        let (first, tags) = (self.first(sum), self.most_under_way());
        let besides_memory = first + sum.besides_memory.as_ns();
        let between = if tags.is_finite() {
            self.dllps_between(n, tags, all(sum.link), (sum.most_link + sum.most_link.max(sum.most_engine)).as_ns())
        } else {
            0.0
        };
        // As many go together as there are tags, one behind the other; each frees its tag for one of the next round.
        let step = step.max(sum.least_link).max(sum.least_beats);
        let (rounds, rest) = (((n - 1.0) / tags).floor(), (n - 1.0) % tags);
        // The first one's tag is free no earlier than the others', or theirs no earlier than they can begin.
        let first_round = sum.first_latency.as_ns().min(sum.latency.as_ns() + first - sum.least_engine.as_ns());
        let in_rounds =
            if tags.is_finite() { first_round + rounds * sum.latency.as_ns() + rest * step.as_ns() } else { 0.0 };
        let root_tags = f64::from(self.platform.root_complex.peer_tags.value);
        let root_rounds = ((sum.root_reads as f64 * times - 1.0) / root_tags).floor().max(0.0);
        let root_loops = if root_rounds > 0.0 { root_rounds * sum.root_loop.as_ns() } else { 0.0 };
        // Until something comes to the queue, or from the last that leaves it on.
        let at_queue = match self.transfer.verb {
            Verb::Store => (sum.least_engine + sum.shortest).as_ns(),
            Verb::Load => first + sum.before_beats.as_ns(),
        };
        // Nobody waits for what the last one holds memory for.
        let last_of_lines = if self.channels == 1 { sum.last_of_lines } else { sum.most_of_lines };
        let of_lines = all(sum.of_lines) - last_of_lines.as_ns();
        // In another order than they were asked for, what is behind the last one is not known.
        let last_at_region = if self.channels == 1 { sum.last_at_region } else { sum.at_region };
        [
            (Bound::Link, first + all(sum.link) + between + (sum.before_link + sum.behind_link).as_ns()),
            (Bound::Device, first + all(sum.beats) + sum.before_beats.as_ns()),
            (Bound::Device, first + (times - 1.0) * sum.at_region.as_ns() + last_at_region.as_ns()),
            (Bound::Memory, besides_memory + (n - 1.0) * self.pace().as_ns() + of_lines),
            (Bound::RootComplex, besides_memory + (n - 1.0) * self.root_pace().as_ns()),
            (Bound::Tags, in_rounds),
            (Bound::Tags, first + sum.root_way.as_ns() + root_loops),
            (Bound::Tags, first + all(sum.root_loops) / root_tags + self.besides_root().as_ns()),
            (Bound::Queue, at_queue + all(sum.queued) - sum.ahead.as_ns()),
        ]
    }

    /// What is waited for on links, each with the way of who waits besides.
    fn waits(&self, sum: &Sum, times: f64, step: Ticks) -> Vec<(f64, Wait)> {
        let first = self.first(sum);
        let requests = self.waits_of_requests(sum, times, step).into_iter();
        let requests = requests.map(|wait| (first + sum.besides_memory.as_ns(), wait));
        let others = self.waits_of_others(sum, times).into_iter();
        requests.chain(others.map(|wait| (first + sum.root_way.as_ns(), wait))).collect()
    }

    /// The engine's time for the first request that goes; of several channels it may be any.
    fn first(&self, sum: &Sum) -> f64 {
        let first = if self.channels == 1 { sum.first_engine } else { sum.least_engine };
        first.as_ns()
    }

    /// Requests that may be under way; writes are over when they have left.
    fn most_under_way(&self) -> f64 {
        match self.transfer.verb {
            Verb::Store => f64::INFINITY,
            Verb::Load => {
                // One at a time is summed transfer by transfer, and each of them has all tags.
                let most = self.transfer.outstanding.filter(|most| *most > 1).unwrap_or(u32::MAX);
                f64::from(most.min(self.dma.tags.value))
            }
        }
    }

    /// Whether tags are held for times that no term has: by short requests or pieces among long ones, which hold theirs for
    /// less than their share of the whole, or waiting for a place in a FLIT on each link of their way.
    fn hold_tags_unlike(&self, sum: &Sum, times: f64) -> bool {
        let root_loop = if sum.root_reads > 0 { sum.root_loop.as_ns() } else { f64::INFINITY };
        let flits = if self.transfer.verb == Verb::Load { self.flits().as_ns() } else { 0.0 };
        let n = sum.requests as f64 * times;
        times * sum.latencies.as_ns() >= 1.02 * n * sum.latency.as_ns()
            || sum.root_loops.as_ns() > 1.02 * sum.root_reads as f64 * sum.root_loop.as_ns()
            || flits > 0.02 * sum.latency.as_ns().min(root_loop)
    }

    /// Time of a FLIT on each link that a request and its answer cross, where links send them.
    fn flits(&self) -> Ticks {
        self.path.hops.iter().map(Hop::flit).sum::<Ticks>() * 2
    }

    /// Time between two request rate of host memory.
    pub(super) fn pace(&self) -> Ticks {
        match (self.transfer.partner, &self.platform.memory, self.transfer.verb) {
            (Partner::Host, Some(memory), Verb::Store) => memory.write_tlp_ns.value,
            (Partner::Host, Some(memory), Verb::Load) => memory.read_request_ns.value,
            _ => Ticks::ZERO,
        }
    }

    /// Time on the link between the completions of requests for the DLLPs that acknowledge these and return their credits,
    /// where completions leave no gap: those that can wait no longer go after what they are gathered for, the end of a
    /// completion, and the coming of the next request. With the last requests there is nothing more to tell of.
    fn dllps_between(&self, requests: f64, tags: f64, link: f64, longest: f64) -> f64 {
        let hop = self.path.slowest(3, self.payload_bytes);
        let gathered = |hop: &Hop, mps| ack_latency_limit(hop.generation, hop.lanes, mps).as_ns();
        let Some((hop, mps)) = hop.and_then(|hop| Some((hop, Mps::new(hop.mps_bytes)?))) else { return 0.0 };
        let dllps = 2.0 * hop.dllp().as_ns();
        let period = gathered(hop, mps) + longest + dllps;
        ((requests - tags).max(0.0) * link / requests / period).floor() * dllps
    }
}

impl Sum {
    /// Whether some writes hold memory for lines that they do not fill for longer than others.
    fn holds_unlike(&self) -> bool {
        (self.most_of_lines * self.requests).as_ns() > 1.02 * self.of_lines.as_ns()
    }
}

/// Waits as terms.
fn in_all(waits: &[(f64, Wait)]) -> impl Iterator<Item = (Bound, f64)> {
    waits.iter().map(|(rest, wait)| (wait.bound, rest + wait.ns))
}
