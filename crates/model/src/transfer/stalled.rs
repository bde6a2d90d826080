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

use super::alike::AlikeRequest;
use super::kept::Kept;
use super::sum::Sum;
use super::way::{MOST_PIECES, Way};
use crate::bound::Bound;
use crate::bounds::Largest;
use lanemark_machine::{Partner, Verb};
use lanemark_units::Ticks;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Requests that are followed at least; further ones are assumed to take as long as the second half of them.
const FEWEST: u64 = 1024;

/// Requests that are followed at least if transfers do not repeat.
const FEWEST_AT_RANDOM: u64 = MOST_PIECES;

/// Rounds of tags, and stalls for descriptors, that are followed at least.
const ROUNDS: u64 = 8;
const STALLS: u64 = 32;

/// Number of periods from which on their line is used, and not that of the descriptors.
const ENOUGH: usize = 8;

/// Share of the time that stalls must have to be followed.
const NEGLIGIBLE: f64 = 0.01;

/// Points of the second half of the followed requests, for a straight line: before some of them, the sum of the latencies of
/// all earlier ones, and when the last of these has ended, in nanoseconds.
#[derive(Debug, Default)]
struct Line {
    points: Vec<(f64, f64)>,
}

impl Line {
    /// The time of requests with this sum of latencies: the slope by least squares, below all points, because requests
    /// may also end early in their period. `None` with fewer than two points.
    fn at(&self, latencies_ns: f64) -> Option<f64> {
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
    /// Time of `times` repetitions of the requests of `sum`, until the tag of the last one is free, if the engine stalls for
    /// more than a negligible part of `largest`, or tags are held for different times. `None` if other terms are enough.
    pub(super) fn stalled(&self, sum: &Sum, times: f64, largest: &Largest) -> Option<f64> {
        let is_of_host = self.transfer.verb == Verb::Load && self.transfer.partner == Partner::Host;
        if !is_of_host || self.channels > 1 || self.can_be_overtaken() {
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
        let mut requests = Requests { way: self, next: 0, kept: Kept::default(), tags: Tags::new(tags) };
        requests.time(all, followed, times * sum.latencies.as_ns())
    }
}

/// Tags of an engine, and when each is free again.
struct Tags {
    unused: u64,
    free_at: BinaryHeap<Reverse<Ticks>>,
}

impl Tags {
    fn new(count: u64) -> Tags {
        Tags { unused: count, free_at: BinaryHeap::new() }
    }

    /// Takes the tag that is free first; returns when it is.
    fn take(&mut self) -> Ticks {
        match self.unused.checked_sub(1) {
            Some(left) => {
                self.unused = left;
                Ticks::ZERO
            }
            None => self.free_at.pop().map_or(Ticks::ZERO, |Reverse(at)| at),
        }
    }

    fn give_back(&mut self, at: Ticks) {
        self.free_at.push(Reverse(at));
    }
}

/// The requests of a plan in order.
struct Requests<'w, 'a> {
    way: &'w Way<'a>,
    /// The next transfer.
    next: u64,
    kept: Kept<AlikeRequest, Sum>,
    tags: Tags,
}

impl Requests<'_, '_> {
    /// Time of `all` requests, whose latencies have this sum; the first `followed` of them are computed.
    fn time(&mut self, all: u64, followed: u64, latencies_ns: f64) -> Option<f64> {
        let way = self.way;
        let egress = way.platform.endpoint.egress_ns.value;
        let (root, memory) = (way.root_pace(), way.pace());
        let places = way.transfer.outstanding.filter(|most| *most > 1);
        let data = way.read_data().filter(|_| places.is_some_and(|most| most <= way.dma.tags.value));
        let behind_place = data.map_or(Ticks::ZERO, |data| data.signal + data.queue);
        let buffers = way.dma.send_buffers.value as usize;
        let (mut left, mut done) = (VecDeque::with_capacity(buffers + 1), 0);
        let mut engine = Ticks::ZERO;
        // When each of these is free again. Times are those at the engine, without the path.
        let (mut root_free, mut memory_free) = (Ticks::ZERO, Ticks::ZERO);
        let (mut on_link, mut at_engine) = (Ticks::ZERO, Ticks::ZERO);
        // Requests repeat with the period of transfers; if that is too long to be seen, with descriptors.
        let (mut periods, mut descriptors) = (Line::default(), Line::default());
        let period = way.period().unwrap_or(1);
        let mut latencies = Ticks::ZERO;
        let mut ended = Ticks::ZERO;
        while done < followed {
            let nth = self.next;
            self.next += 1;
            let (start, bytes) = way.range(nth)?;
            for chunk in way.split(start, bytes) {
                if done == followed {
                    break;
                }
                let offset = chunk.address - start;
                if 2 * done >= followed && way.is_described(chunk, offset) {
                    descriptors.points.push((latencies.as_ns(), ended.as_ns()));
                    if offset == 0 && nth.is_multiple_of(period) {
                        periods.points.push((latencies.as_ns(), ended.as_ns()));
                    }
                }
                let alike = way.alike_request(nth, chunk, offset);
                let computed;
                let of_one = if let Some(of_one) = self.kept.find(alike) {
                    of_one
                } else {
                    computed = way.sum_of_request(nth, chunk, offset)?;
                    self.kept.keep(alike, computed);
                    &computed
                };
                let has_room = if left.len() < buffers { Ticks::ZERO } else { left.pop_front().unwrap_or(Ticks::ZERO) };
                engine = engine.max(self.tags.take()).max(has_room) + of_one.engine;
                left.push_back(engine + egress);
                let at_root = engine.max(root_free);
                let at_memory = at_root.max(memory_free);
                (root_free, memory_free) = (at_root + root, at_memory + memory);
                on_link = (at_memory + of_one.before_link).max(on_link) + of_one.link;
                at_engine = (at_memory + of_one.before_beats).max(at_engine) + of_one.beats;
                let ends = (at_memory + of_one.last_way).max(on_link + of_one.behind_link).max(at_engine);
                let apart = if data.is_some() { of_one.after + behind_place } else { Ticks::ZERO };
                self.tags.give_back(ends + apart);
                latencies += of_one.latency;
                (ended, done) = (ended.max(ends), done + 1);
            }
        }
        if followed == all {
            return Some(ended.as_ns());
        }
        if periods.points.len() >= ENOUGH { periods.at(latencies_ns) } else { descriptors.at(latencies_ns) }
    }
}
