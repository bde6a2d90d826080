//! Reads of an engine that stalls for descriptors, one after the other.
//!
//! While the engine reads a descriptor, tags that are free stay unused and later stages run idle; afterwards, all of them
//! work at once. No single term describes that, therefore the requests are followed one by one. Request `i` is issued at
//! `t`, its data are requested at `u`, and its tag is free at `c`:
//!
//! ```text
//! t(i) = max(u(i-1), a tag is free, request i-b has left)      b send buffers
//! u(i) = t(i) + descriptor + cost + beats
//! c(i) = max(u(i) + path, end of completions on the slowest link, end of beats at the engine)
//! ```
//!
//! A request reaches root complex, memory, link and engine no earlier than these have served the one before it. What only
//! has a mean, such as credits, remains with the other terms, of which this is one more.
//!
//! As soon as all of them are busy for as long as at an earlier repetition of the requests, the requests between repeat too:
//! the time of a repetition is added once for each of the rest. Otherwise, each further request is assumed to take the mean
//! time of the second half of the requests that were followed.

use super::alike::AlikeRequest;
use super::kept::Kept;
use super::sum::Sum;
use super::way::{MOST_PIECES, Way};
use crate::bound::Bound;
use crate::bounds::Largest;
use lanemark_machine::{Partner, Verb};
use lanemark_units::Ticks;
use lanemark_wire::Chunk;
use std::collections::VecDeque;

/// Requests that are followed at least, unless a repetition is found before.
const FEWEST: u64 = 1024;

/// Requests that are followed at least if transfers do not repeat.
const FEWEST_AT_RANDOM: u64 = MOST_PIECES;

/// Rounds of tags, and stalls for descriptors, that are followed at least.
pub(super) const ROUNDS: u64 = 8;
const STALLS: u64 = 32;

/// Number of periods from which on their line is used, and not that of the descriptors.
const ENOUGH: usize = 8;

/// Requests before the first that is compared with earlier ones.
const FIRST_COMPARED: u64 = 16;

/// Share of the time that stalls must have to be followed.
pub(super) const NEGLIGIBLE: f64 = 0.01;

/// Points of the second half of the followed requests, for a straight line: before some of them, the sum of the latencies of
/// all earlier ones, and when the last of these has ended, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) points: Vec<(f64, f64)>,
}

impl Line {
    /// The time of requests with this sum of latencies: the slope by least squares, below all points, because requests
    /// may also end early in their period. `None` with fewer than two points.
    pub(super) fn at(&self, latencies_ns: f64) -> Option<f64> {
        let count = self.points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| self.points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|(x, _)| *x), mean(|(_, y)| *y));
        let variance: f64 = self.points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let slope = self.points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / variance;
        let start = self.points.iter().map(|point| point.1 - slope * point.0).fold(f64::INFINITY, f64::min);
        let is_known = self.points.len() >= 2 && slope.is_finite();
        is_known.then_some(start + slope * latencies_ns)
    }
}

impl Way<'_> {
    /// Time of `times` repetitions of the requests of `sum`, those of all `transfers`, until the tag of the last one is free, if
    /// the engine stalls for more than a negligible part of `largest`, or tags are held for different times. `None` if other
    /// terms are enough.
    pub(super) fn stalled(&self, sum: &Sum, times: f64, transfers: u64, largest: &Largest) -> Option<f64> {
        let is_of_host = self.transfer.verb == Verb::Load && self.transfer.partner == Partner::Host;
        if is_of_host && self.channels > 1 {
            return self.stalled_channels(sum, times, transfers, largest);
        }
        if !is_of_host || self.can_be_overtaken() {
            return None;
        }
        let unstalled = self.dma.read_request_ns.value + self.dma.shared_request_ns.value + sum.least_request_beats;
        let stops = times * sum.engine.since(unstalled * sum.requests).as_ns();
        let stalls = self.dma.descriptor_ns.value > Ticks::ZERO && stops > NEGLIGIBLE * largest.ns;
        if !(stalls || largest.bound == Bound::Tags && self.hold_tags_unlike(sum, times)) {
            return None;
        }
        let tags = self.most_under_way() as u64;
        let all = (sum.requests as f64 * times).round() as u64;
        let described = u64::from(self.dma.descriptor_bytes.value).min(self.transfer.bytes);
        let of_descriptor = described / u64::from(self.most_of_request());
        // A whole period is in the second half, wherever it begins.
        let of_transfer = self.count_and_last(0)?.0 + 1;
        let of_periods = self.period().map_or(FEWEST_AT_RANDOM, |period| period.saturating_mul(4 * of_transfer));
        let of_periods = if of_periods <= MOST_PIECES { of_periods } else { 0 };
        let enough = FEWEST.max(of_periods).max(ROUNDS * tags).max(STALLS * of_descriptor);
        let followed = all.min(MOST_PIECES).min(enough);
        Requests::new(self, followed).time(all, times * sum.latencies.as_ns())
    }
}

/// A limited number of places, and when each is free again.
#[derive(Clone)]
struct Places {
    unused: u64,
    /// The earliest first.
    free_at: VecDeque<Ticks>,
    /// Sum of these, modulo 2^64.
    sum: u64,
}

impl Places {
    fn new(count: u64) -> Places {
        Places { unused: count, free_at: VecDeque::new(), sum: 0 }
    }

    /// Takes the place that is free first; returns when it is.
    fn take(&mut self) -> Ticks {
        match self.unused.checked_sub(1) {
            Some(left) => {
                self.unused = left;
                Ticks::ZERO
            }
            None => self.next().unwrap_or(Ticks::ZERO),
        }
    }

    fn next(&mut self) -> Option<Ticks> {
        let at = self.free_at.pop_front()?;
        self.sum = self.sum.wrapping_sub(at.0);
        Some(at)
    }

    fn give_back(&mut self, at: Ticks) {
        self.sum = self.sum.wrapping_add(at.0);
        // Most places are given back in the order in which they were taken.
        match self.free_at.iter().rev().take_while(|other| **other > at).count() {
            0 => self.free_at.push_back(at),
            later => self.free_at.insert(self.free_at.len() - later, at),
        }
    }

    /// Moves those that are free at `now` to `unused`.
    fn retire(&mut self, now: Ticks) {
        while self.free_at.front().is_some_and(|at| *at <= now) {
            self.next();
            self.unused += 1;
        }
    }

    /// Whether each of these places is free again exactly `later` after one of `earlier`.
    fn are_busy_like(&self, earlier: &Places, later: Ticks) -> bool {
        let count = self.free_at.len();
        let sum = earlier.sum.wrapping_add(later.0.wrapping_mul(count as u64));
        // The sum differs most of the time, and is found without looking at every place.
        count == earlier.free_at.len()
            && self.sum == sum
            && self.free_at.iter().zip(&earlier.free_at).all(|(at, before)| *at == *before + later)
    }
}

/// Times that are the same for all requests.
pub(super) struct Fixed {
    pub(super) egress: Ticks,
    root: Ticks,
    memory: Ticks,
    /// From the end of the data until the place of the request is free.
    apart: Option<Ticks>,
}

impl Fixed {
    pub(super) fn of(way: &Way<'_>) -> Fixed {
        let places = way.transfer.outstanding.filter(|most| *most > 1);
        let data = way.read_data().filter(|_| places.is_some_and(|most| most <= way.dma.tags.value));
        Fixed {
            egress: way.platform.endpoint.egress_ns.value,
            root: way.root_pace(),
            memory: way.pace(),
            apart: data.map(|data| data.signal + data.queue),
        }
    }
}

/// When each stage behind the requests of the engine is free again. Times are those at the engine, without the path.
#[derive(Clone, Default)]
pub(super) struct Downstream {
    root: Ticks,
    memory: Ticks,
    on_link: Ticks,
    at_engine: Ticks,
    /// When the last request has ended.
    pub(super) ended: Ticks,
}

impl Downstream {
    /// Runs a request that the engine has issued at `issued` through all stages; returns when its tag is free.
    pub(super) fn pass(&mut self, issued: Ticks, of_one: &Sum, fixed: &Fixed) -> Ticks {
        let at_root = issued.max(self.root);
        let at_memory = at_root.max(self.memory);
        (self.root, self.memory) = (at_root + fixed.root, at_memory + fixed.memory);
        self.on_link = (at_memory + of_one.before_link).max(self.on_link) + of_one.link;
        self.at_engine = (at_memory + of_one.before_beats).max(self.at_engine) + of_one.beats;
        let ends = (at_memory + of_one.last_way).max(self.on_link + of_one.behind_link).max(self.at_engine);
        self.ended = self.ended.max(ends);
        ends + fixed.apart.map_or(Ticks::ZERO, |apart| of_one.after + apart)
    }

    fn times(&self) -> [Ticks; 5] {
        [self.root, self.memory, self.on_link, self.at_engine, self.ended]
    }
}

/// When each stage is free again.
#[derive(Clone)]
struct Stages {
    engine: Ticks,
    send_buffers: Places,
    tags: Places,
    downstream: Downstream,
}

impl Stages {
    fn new(send_buffers: u64, tags: u64) -> Stages {
        let [send_buffers, tags] = [send_buffers, tags].map(Places::new);
        Stages { engine: Ticks::ZERO, send_buffers, tags, downstream: Downstream::default() }
    }

    /// Runs one request through all stages.
    fn run(&mut self, of_one: &Sum, fixed: &Fixed) {
        self.engine = self.engine.max(self.tags.take()).max(self.send_buffers.take()) + of_one.engine;
        self.send_buffers.give_back(self.engine + fixed.egress);
        let free_at = self.downstream.pass(self.engine, of_one, fixed);
        self.tags.give_back(free_at);
    }

    /// Drops the times of places that are free again.
    fn retire(&mut self) {
        self.send_buffers.retire(self.engine);
        self.tags.retire(self.engine);
    }

    /// Whether every stage is busy for as long as in `earlier`, so that the same requests take the same times. Both are
    /// without places that are free again.
    fn repeat(&self, earlier: &Stages) -> bool {
        let passed = self.engine - earlier.engine;
        self.downstream.times() == earlier.downstream.times().map(|at| at + passed)
            && self.send_buffers.are_busy_like(&earlier.send_buffers, passed)
            && self.tags.are_busy_like(&earlier.tags, passed)
    }
}

/// A request that begins with a descriptor.
#[derive(Clone, Copy)]
struct Mark {
    /// Requests before it, the sum of their latencies, and when the last of them has ended.
    done: u64,
    latencies: Ticks,
    ended: Ticks,
    /// Whether a period begins too.
    is_period: bool,
}

/// The lines of the second half of the requests.
struct Lines {
    followed: u64,
    periods: Line,
    descriptors: Line,
}

impl Lines {
    fn add(&mut self, mark: Mark) {
        if 2 * mark.done >= self.followed {
            let point = (mark.latencies.as_ns(), mark.ended.as_ns());
            self.descriptors.points.push(point);
            if mark.is_period {
                self.periods.points.push(point);
            }
        }
    }
}

/// The stages at an earlier repetition, and what has passed since.
struct Earlier {
    stages: Stages,
    next: u64,
    done: u64,
}

/// One request of a transfer.
struct Request {
    /// Index in `sums`.
    sum: usize,
    /// Whether it begins with a descriptor.
    is_described: bool,
}

/// The requests of a plan in order.
struct Requests<'w, 'a> {
    way: &'w Way<'a>,
    fixed: Fixed,
    stages: Stages,
    /// The next transfer.
    next: u64,
    done: u64,
    latencies: Ticks,
    /// Sums of different requests, and the index of each by what distinguishes it.
    sums: Vec<Sum>,
    places: Kept<AlikeRequest, usize>,
    lines: Lines,
    /// Requests after which the stages are kept, to be compared with later ones; the largest number: not any more.
    compare_from: u64,
    /// Time of the repetitions that were skipped, as a float: many iterations take longer than [`Ticks`] can hold.
    skipped_ns: f64,
}

impl<'w, 'a> Requests<'w, 'a> {
    /// The first `followed` requests of `way`.
    fn new(way: &'w Way<'a>, followed: u64) -> Requests<'w, 'a> {
        let tags = way.most_under_way() as u64;
        let fixed = Fixed::of(way);
        let stages = Stages::new(way.dma.send_buffers.value.into(), tags);
        // Requests repeat with the period of transfers; if that is too long to be seen, with descriptors.
        let lines = Lines { followed, periods: Line::default(), descriptors: Line::default() };
        Requests {
            way,
            fixed,
            stages,
            next: 0,
            done: 0,
            latencies: Ticks::ZERO,
            sums: Vec::new(),
            places: Kept::default(),
            lines,
            compare_from: FIRST_COMPARED,
            skipped_ns: 0.0,
        }
    }

    /// Time of `all` requests, whose latencies have this sum.
    fn time(&mut self, all: u64, latencies_ns: f64) -> Option<f64> {
        let way = self.way;
        let mut followed = self.lines.followed;
        let period = way.period().unwrap_or(1);
        let repeats =
            way.period().is_some_and(|period| way.transfer.window.places(way.transfer.bytes).is_multiple_of(period));
        let mut earlier: Option<Earlier> = None;
        let kinds = if repeats { None } else { way.kinds(0, followed) };
        // The requests of each transfer of a period, or of each kind; otherwise those of one transfer.
        let mut known: Vec<Vec<Request>> = Vec::new();
        while self.done < followed {
            if repeats && self.next.is_multiple_of(period) {
                self.stages.retire();
                if let Some(then) = earlier.take_if(|then| self.stages.repeat(&then.stages)) {
                    self.repeat(&then, all);
                    (followed, self.compare_from) = (all, u64::MAX);
                } else if self.done >= self.compare_from {
                    // Kept after twice as many requests each time, they find a repetition of any length: Brent, BIT 20, 1980.
                    self.compare_from = 2 * self.done;
                    earlier = Some(Earlier { stages: self.stages.clone(), next: self.next, done: self.done });
                }
            }
            if self.done == followed {
                break;
            }
            let nth = self.next;
            self.next += 1;
            let most = followed - self.done;
            let place = match kinds.as_ref().and_then(|kinds| kinds.order.get(nth as usize)) {
                Some(kind) => usize::from(*kind),
                None if repeats => (nth % period) as usize,
                None => {
                    known.clear();
                    0
                }
            };
            if place == known.len() {
                known.push(self.of_transfer(nth, most)?);
            }
            for (place, request) in known[place].iter().take(most as usize).enumerate() {
                if request.is_described {
                    let (ended, is_period) = (self.stages.downstream.ended, place == 0 && nth.is_multiple_of(period));
                    self.lines.add(Mark { done: self.done, latencies: self.latencies, ended, is_period });
                }
                let of_one = &self.sums[request.sum];
                self.stages.run(of_one, &self.fixed);
                self.latencies += of_one.latency;
                self.done += 1;
            }
        }
        if followed == all {
            return Some(self.stages.downstream.ended.as_ns() + self.skipped_ns);
        }
        let Lines { periods, descriptors, .. } = &self.lines;
        if periods.points.len() >= ENOUGH { periods.at(latencies_ns) } else { descriptors.at(latencies_ns) }
    }

    /// The first requests of transfer number `nth`, at most `most`.
    fn of_transfer(&mut self, nth: u64, most: u64) -> Option<Vec<Request>> {
        let (start, bytes) = self.way.range(nth)?;
        let mut request = |chunk: Chunk| {
            let offset = chunk.address - start;
            let alike = self.way.alike_request(nth, chunk, offset);
            let sum = if let Some(known) = self.places.find(alike) {
                *known
            } else {
                self.sums.push(self.way.sum_of_request(nth, chunk, offset)?);
                self.places.keep(alike, self.sums.len() - 1);
                self.sums.len() - 1
            };
            Some(Request { sum, is_described: self.way.is_described(chunk, offset) })
        };
        self.way.split(start, bytes).take(most as usize).map(&mut request).collect()
    }

    /// Skips whole repetitions of the requests since `then`, up to `all` requests.
    fn repeat(&mut self, then: &Earlier, all: u64) {
        let (requests, transfers) = (self.done - then.done, self.next - then.next);
        let passed = self.stages.engine - then.stages.engine;
        let times = (all - self.done) / requests;
        self.done += times * requests;
        self.next += times * transfers;
        self.skipped_ns = passed.as_ns() * times as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Pattern, Transfer, Window};
    use lanemark_platform::Origin;

    #[test]
    fn added_repetitions_take_the_same_time_as_requests_followed_one_by_one() {
        let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        let (mut found, mut tried) = (0, 0);
        for (tags, descriptor_ns) in [(8.0, 200.0), (64.0, 20.0), (64.0, 200.0)] {
            let given = || Origin::Given("a test".to_owned());
            let card = card.with("dma.tags", tags, given()).unwrap();
            let card = card.with("dma.descriptor_ns", descriptor_ns, given()).unwrap();
            for (bytes, offset) in
                [(64, 0), (100, 4), (512, 0), (512, 256), (1536, 0), (4096, 0), (12_289, 64), (1 << 16, 0)]
            {
                for pattern in [Pattern::Sequential, Pattern::Strided(8192), Pattern::Random] {
                    let window = Window { offset, len: 1 << 22, pattern };
                    let (verb, partner) = (Verb::Load, Partner::Host);
                    let transfer = Transfer { card: 0, verb, partner, bytes, count: 1, window, outstanding: None };
                    let way = Way::of(&card, &transfer).unwrap();
                    let mut one_by_one = Requests::new(&way, 20_000);
                    one_by_one.compare_from = u64::MAX;
                    let expected = one_by_one.time(20_000, 1e9).unwrap();
                    let time = |all| {
                        let mut requests = Requests::new(&way, 2000);
                        (requests.time(all, 1e9).unwrap(), requests.compare_from == u64::MAX)
                    };
                    let (taken, repeats) = time(20_000);
                    if repeats {
                        assert_eq!(
                            taken.to_bits(),
                            expected.to_bits(),
                            "{tags} tags, {descriptor_ns} ns, {transfer:?}"
                        );
                        // A run of hours, which is longer than `Ticks` for some of these cards, has the same rate.
                        let (weeks, _) = time(20_000 << 30);
                        assert!((weeks / (taken * f64::from(1 << 30)) - 1.0).abs() < 0.01, "{weeks} ns, {taken} ns");
                    }
                    (found, tried) = (found + u32::from(repeats), tried + 1);
                }
            }
        }
        assert_eq!((found, tried), (36, 72), "three in four that are not random repeat");
    }
}
