//! Lower bounds of the time of all requests.

use super::pools::Wait;
use super::sum::Sum;
use super::way::Way;
use crate::bound::Bound;
use crate::bounds::Largest;
use crate::path::Hop;
use lanemark_machine::{Partner, Verb};
use lanemark_units::Ticks;
use lanemark_wire::{Mps, ack_latency_limit};

impl Way<'_> {
    /// The largest term of `times` repetitions of these requests, until the end of the last one is signalled.
    pub(super) fn terms(&self, sum: &Sum, times: f64) -> Largest {
        let largest = self.terms_until_free(sum, times).times(1.0, self.beyond(sum).as_ns());
        // The data of an earlier request may be stored later than those of a short last one.
        let later = sum.most_after.since(sum.after);
        if later.as_ns() > 0.02 * largest.ns { largest.blurred() } else { largest }
    }

    /// From the end of the last request, when its tag is free, until its end is signalled.
    pub(super) fn beyond(&self, sum: &Sum) -> Ticks {
        sum.after + self.read_data().map_or(Ticks::ZERO, |data| data.signal)
    }

    /// Time in the queue before a read takes its tag.
    pub(super) fn queue(&self) -> Ticks {
        self.read_data().map_or(Ticks::ZERO, |data| data.queue)
    }

    /// Minimum time between the end of a read, when its tag is free, and the start of the read that takes its place, if
    /// the number of outstanding transfers is limited.
    fn between_places(&self, sum: &Sum) -> Ticks {
        sum.least_after + self.read_data().map_or(Ticks::ZERO, |data| data.signal + data.queue)
    }

    /// The largest term of `times` repetitions of these requests, until the tag of the last one is free.
    pub(super) fn terms_until_free(&self, sum: &Sum, times: f64) -> Largest {
        let step = if self.channels == 1 { sum.least_engine } else { sum.least_request_beats };
        let waits = self.waits(sum, times, step, 0.0);
        let late = self.late(sum, times, step, &waits);
        let waits = if late > 0.0 { self.waits(sum, times, step, late) } else { waits };
        let since_first = self.since_first(sum, times, step, late).into_iter().chain(in_all(&waits));
        let terms = self.of_engine(sum, times, late).into_iter().chain(since_first);
        let mut largest = Largest::of(terms);
        if self.transfer.verb == Verb::Load {
            // As if every read held its tag for as long as the longest of them.
            let held = sum.most_latency + self.between_places(sum);
            let longest = sum.requests as f64 * times * held.as_ns() / self.most_under_way();
            largest = if largest.bound == Bound::Tags { largest } else { largest.beside(longest) };
        }
        // The uncertainty of a round trip may make it as large as the largest term, whose own lead is then unknown.
        let mut is_known = !self.goes_by_root();
        for (rest, wait) in waits {
            let leads = wait.bound == largest.bound && rest + wait.ns >= largest.ns;
            is_known &= !(leads && wait.hidden_ns > 0.02 * largest.ns);
            if !leads && wait.ns > 0.0 {
                largest = largest.beside(rest + wait.ns + wait.hidden_ns);
            }
        }
        // A descriptor between requests stalls the engine and lets later stages run idle; no term models both.
        let stops = times * sum.beyond.as_ns();
        let others = f64::from(self.channels - 1) / f64::from(self.channels);
        let bound = self.bound_of(sum, times, &largest);
        let largest = match largest.bound {
            _ if !is_known => largest.blurred(),
            // Requests after one that occupies memory for longer wait for it, and then for memory themselves.
            _ if sum.holds_unlike() => largest.blurred(),
            // Each channel may wait for the beats of the others.
            Bound::Engine if times * sum.request_beats.as_ns() * others > 0.02 * largest.ns => largest.blurred(),
            // Credits then return one by one, which no round trip models.
            Bound::Credits if self.root_pace() > Ticks::ZERO => largest.blurred(),
            // A credit may return during a pause of the link, or after it.
            Bound::Credits if self.pauses_on_link() => largest.blurred(),
            Bound::Tags if self.hold_tags_unlike(sum, times) => largest.blurred(),
            // Reads of different latency start those of the next round at different times, which no term models.
            Bound::Tags if late > 0.005 * largest.ns => largest.blurred(),
            _ if largest.ns > 100.0 * stops => largest,
            Bound::Engine => largest.without(stops),
            _ => largest.blurred(),
        };
        largest.named(bound)
    }

    /// Time by which the last data are later than those of a single read, because it waits for the slowest lines of all.
    fn late(&self, sum: &Sum, times: f64, step: Ticks, waits: &[(f64, Wait)]) -> f64 {
        let Some(spread) = self.spread(sum, times) else { return 0.0 };
        let n = sum.requests as f64 * times;
        let terms = self.of_engine(sum, times, 0.0).into_iter().chain(self.since_first(sum, times, step, 0.0));
        let terms = terms.chain(in_all(waits));
        let interval = (Largest::of(terms).ns - sum.latency.as_ns()) / (n - 1.0);
        spread.late(n, interval)
    }

    /// The bound of requests whose time is `largest`: the engine only if its time for them is most of it, and not the way
    /// of the last one.
    fn bound_of(&self, sum: &Sum, times: f64, largest: &Largest) -> Bound {
        let engine = sum.busiest.max(sum.request_beats).as_ns() * times;
        match (largest.bound, self.transfer.verb) {
            (Bound::Engine, Verb::Load) if 2.0 * engine < largest.ns => Bound::ReadRoundTrip,
            (Bound::Engine, Verb::Store) if 2.0 * engine < largest.ns => Bound::Latency,
            (bound, _) => bound,
        }
    }

    /// Terms that count from the first request, independent of the engine.
    pub(super) fn behind_first(&self, sum: &Sum) -> Vec<(Bound, f64)> {
        let waits = self.waits(sum, 1.0, Ticks::ZERO, 0.0);
        let late = self.late(sum, 1.0, Ticks::ZERO, &waits);
        let waits = if late > 0.0 { self.waits(sum, 1.0, Ticks::ZERO, late) } else { waits };
        self.since_first(sum, 1.0, Ticks::ZERO, late).into_iter().chain(in_all(&waits)).collect()
    }

    /// Engine time of all requests, and the buffers between engine and link. `late`: see [`Way::late`].
    fn of_engine(&self, sum: &Sum, times: f64, late: f64) -> [(Bound, f64); 6] {
        let n = sum.requests as f64 * times;
        let all = |sum: Ticks| times * sum.as_ns();
        let channels = f64::from(self.channels);
        let last_way = if self.channels == 1 { sum.last_way } else { sum.shortest };
        // Channels work in parallel and share one data path.
        let busiest = match self.channels {
            1 => all(sum.engine),
            // One transfer stands for all of them.
            _ if times > 1.0 => sum.engine.as_ns() * (times / channels).ceil(),
            _ => sum.busiest.as_ns(),
        };
        let buffers = f64::from(self.dma.send_buffers.value) * channels;
        let besides = self.first(sum) + sum.besides_memory.as_ns();
        [
            (Bound::Engine, busiest + last_way.as_ns() + late),
            (Bound::Engine, all(sum.request_beats) + sum.shortest.as_ns() + late),
            (Bound::Engine, n * self.dma.shared_request_ns.value.as_ns() + sum.shortest.as_ns() + late),
            (Bound::Tags, all(sum.latencies) / self.most_under_way() + late),
            (Bound::Tags, self.in_places(sum, times) + late),
            (Bound::SendBuffers, besides + late + ((n - 1.0) / buffers).floor() * sum.to_link.as_ns()),
        ]
    }

    /// Time of all requests of a limited number of outstanding transfers, each of which is one request and keeps its
    /// place until its end is signalled and the next one has left the queue.
    fn in_places(&self, sum: &Sum, times: f64) -> f64 {
        let Some(most) = self.transfer.outstanding.filter(|most| *most > 1) else { return 0.0 };
        let (n, most) = (sum.requests as f64 * times, f64::from(most));
        let between = (n - most).max(0.0) * self.between_places(sum).as_ns();
        (times * sum.latencies.as_ns() + between) / most
    }

    /// Terms that count from the first request, with `step` as the minimum interval between requests. `late`: see
    /// [`Way::late`].
    fn since_first(&self, sum: &Sum, times: f64, step: Ticks, late: f64) -> [(Bound, f64); 9] {
        let n = sum.requests as f64 * times;
        let all = |sum: Ticks| times * sum.as_ns();
        let (first, tags) = (self.first(sum), self.most_under_way());
        let besides_memory = first + sum.besides_memory.as_ns() + late;
        // What is behind memory starts with the first data, which need not be those of the first request.
        let (spread, arrival) = (self.spread(sum, times), step.max(self.pace()).max(self.root_pace()).as_ns());
        let early_by = |busy_ns: f64| spread.map_or(0.0, |spread| spread.early(arrival, busy_ns));
        let early = |busy: Ticks| early_by(all(busy) / n);
        let between = if tags.is_finite() {
            self.dllps_between(n, tags, all(sum.link), (sum.most_link + sum.most_link.max(sum.most_engine)).as_ns())
        } else {
            0.0
        };
        // Reads go in rounds of as many as there are tags, back to back; each releases its tag for a read of the next
        // round.
        let step = step.max(sum.least_link).max(sum.least_beats);
        let (rounds, rest) = (((n - 1.0) / tags).floor(), (n - 1.0) % tags);
        // The tag of the first read is released no earlier than those of the others, or theirs no earlier than they
        // can start.
        let first_round = sum.first_latency.as_ns().min(sum.latency.as_ns() + first - sum.least_engine.as_ns());
        // Transfers keep their places for longer than their tags.
        let is_limited = self.transfer.outstanding.is_some_and(|most| most > 1 && most <= self.dma.tags.value);
        let apart = if is_limited { self.between_places(sum).as_ns() } else { 0.0 };
        let round = sum.latency.as_ns() + apart;
        // The first tags are released by the fastest of the first reads, or their data arrive first.
        let first_round = first_round - if rounds > 0.0 { early(sum.latencies) } else { early_by(step.as_ns()) };
        let in_rounds = if tags.is_finite() { first_round + rounds * round + rest * step.as_ns() } else { 0.0 };
        let root_tags = f64::from(self.platform.root_complex.peer_tags.value);
        let root_rounds = ((sum.root_reads as f64 * times - 1.0) / root_tags).floor().max(0.0);
        let root_loops = if root_rounds > 0.0 { root_rounds * sum.root_loop.as_ns() } else { 0.0 };
        // Until data reach the FIFO, or from the last data that leave it.
        let at_queue = match self.transfer.verb {
            Verb::Store => (sum.least_engine + sum.shortest).as_ns(),
            Verb::Load => first + sum.before_beats.as_ns() - early(sum.queued),
        };
        // Nothing waits for the memory time of the last one.
        let last_of_lines = if self.channels == 1 { sum.last_of_lines } else { sum.most_of_lines };
        let of_lines = all(sum.of_lines) - last_of_lines.as_ns();
        // With out-of-order completion, the time after the last one is unknown.
        let last_at_region = if self.channels == 1 { sum.last_at_region } else { sum.at_region };
        [
            (
                Bound::Link,
                first + all(sum.link) + between + (sum.before_link + sum.behind_link).as_ns() - early(sum.link),
            ),
            (Bound::Device, first + all(sum.beats) + sum.before_beats.as_ns() - early(sum.beats)),
            (Bound::Device, first + (times - 1.0) * sum.at_region.as_ns() + last_at_region.as_ns()),
            (Bound::Memory, besides_memory + (n - 1.0) * self.pace().as_ns() + of_lines),
            (Bound::RootComplex, besides_memory + (n - 1.0) * self.root_pace().as_ns()),
            (Bound::Tags, in_rounds),
            (Bound::Tags, first + sum.root_way.as_ns() + root_loops),
            (Bound::Tags, first + all(sum.root_loops) / root_tags + self.besides_root().as_ns()),
            (Bound::Queue, at_queue + all(sum.queued) - sum.ahead.as_ns()),
        ]
    }

    /// Waiting times on links, each with the remaining path of the waiting packet. `late`: see [`Way::late`].
    fn waits(&self, sum: &Sum, times: f64, step: Ticks, late: f64) -> Vec<(f64, Wait)> {
        let first = self.first(sum);
        let requests = self.waits_of_requests(sum, times, step).into_iter();
        let requests = requests.map(|wait| (first + sum.besides_memory.as_ns() + late, wait));
        let others = self.waits_of_others(sum, times).into_iter();
        requests.chain(others.map(|wait| (first + sum.root_way.as_ns(), wait))).collect()
    }

    /// Engine time of the first request; with several channels it may be any.
    fn first(&self, sum: &Sum) -> f64 {
        let first = if self.channels == 1 { sum.first_engine } else { sum.least_engine };
        first.as_ns()
    }

    /// Maximum number of outstanding requests; writes are complete when they have been sent.
    pub(super) fn most_under_way(&self) -> f64 {
        match self.transfer.verb {
            Verb::Store => f64::INFINITY,
            Verb::Load => {
                // One transfer at a time is summed transfer by transfer, and each may use all tags.
                let most = self.transfer.outstanding.filter(|most| *most > 1).unwrap_or(u32::MAX);
                f64::from(most.min(self.dma.tags.value))
            }
        }
    }

    /// Whether tags are held for times that no term models: by short requests or parts among long ones, or by waits
    /// for a place in a FLIT on each link.
    pub(super) fn hold_tags_unlike(&self, sum: &Sum, times: f64) -> bool {
        let root_loop = if sum.root_reads > 0 { sum.root_loop.as_ns() } else { f64::INFINITY };
        let flits = if self.transfer.verb == Verb::Load { self.flits().as_ns() } else { 0.0 };
        let n = sum.requests as f64 * times;
        times * sum.latencies.as_ns() >= 1.02 * n * sum.latency.as_ns()
            || sum.root_loops.as_ns() > 1.02 * sum.root_reads as f64 * sum.root_loop.as_ns()
            || flits > 0.02 * sum.latency.as_ns().min(root_loop)
    }

    /// Time of a FLIT on each link that a request and its completion cross, in FLIT mode.
    fn flits(&self) -> Ticks {
        self.path.hops.iter().map(Hop::flit).sum::<Ticks>() * 2
    }

    /// Interval between two requests that memory accepts.
    pub(super) fn pace(&self) -> Ticks {
        match (self.transfer.partner, &self.platform.memory, self.transfer.verb) {
            (Partner::Host, Some(memory), Verb::Store) => memory.write_tlp_ns.value,
            (Partner::Host, Some(memory), Verb::Load) => memory.read_request_ns.value,
            _ => Ticks::ZERO,
        }
    }

    /// Link time, between completions, of the DLLPs that acknowledge requests and return their credits, if
    /// completions leave no gap. DLLPs whose delay expires are sent between completions. That time includes the delay
    /// limit, the end of a completion, and the arrival of the next request. After the last requests there are no more
    /// DLLPs.
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
    /// Whether some partial-line writes occupy memory for longer than others.
    fn holds_unlike(&self) -> bool {
        (self.most_of_lines * self.requests).as_ns() > 1.02 * self.of_lines.as_ns()
    }
}

/// Waiting times as terms.
fn in_all(waits: &[(f64, Wait)]) -> impl Iterator<Item = (Bound, f64)> {
    waits.iter().map(|(rest, wait)| (wait.bound, rest + wait.ns))
}
