//! Reads of several channels that stall for descriptors, one after the other.
//!
//! A channel that reads a descriptor holds a tag meanwhile, and the other channels go on with the tags that are left. Requests
//! therefore reach the host in another order than that in which they took their tags. No single term describes that, so the
//! requests are followed as events: the channel that can take a tag first issues its next request, and of the requests under
//! way the first one reaches root complex, memory, link and engine, as for a [single channel](super::stalled).
//!
//! Beats of requests on the data path that the channels share are left out: as a sum, they are another term.
//!
//! The channels may take turns in one of several orders, each of which then repeats. Where the simulation settles in another
//! order than is found here, it can be faster than this time: by 6 % in one of 300 random cases, so this is no strict bound.

use super::alike::AlikeRequest;
use super::followed::Line;
use super::kept::Kept;
use super::pipeline::{Downstream, Fixed};
use super::stalled::{NEGLIGIBLE, ROUNDS};
use super::sum::Sum;
use super::way::{MOST_PIECES, Way};
use crate::bounds::Largest;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;
use lanemark_wire::split::Chunks;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Requests that are followed at least: the order of channels repeats late, or not at all.
const FEWEST: u64 = 4096;

/// Transfers of each channel that are followed at least.
const TRANSFERS: u64 = 32;

impl Way<'_> {
    /// Time of `times` repetitions of the requests of `sum`, those of all `transfers`, on several channels, if reading
    /// descriptors takes more than a negligible part of `largest`; `None` if other terms are enough.
    pub(super) fn stalled_channels(&self, sum: &Sum, times: f64, transfers: u64, largest: &Largest) -> Option<f64> {
        let unstalled = self.dma.read_request_ns.value + self.dma.shared_request_ns.value + sum.least_request_beats;
        let stops = times * sum.engine.since(unstalled * sum.requests).as_ns() / f64::from(self.channels);
        let stalls = self.dma.descriptor_ns.value > Ticks::ZERO && stops > NEGLIGIBLE * largest.ns;
        if !stalls || !self.cached.is_empty() {
            return None;
        }
        let all = (sum.requests as f64 * times).round() as u64;
        let of_transfers = TRANSFERS * u64::from(self.channels) * (self.count_and_last(0)?.0 + 1);
        let enough = FEWEST.max(ROUNDS * self.most_under_way() as u64).max(of_transfers);
        Followed::new(self, transfers)?.time(all, all.min(MOST_PIECES).min(enough), times * sum.latencies.as_ns())
    }
}

/// A channel and its remaining requests.
struct Channel {
    /// When it is free for its next request.
    free_at: Ticks,
    /// When its last requests have left their send buffers, at most as many as it has.
    left_at: VecDeque<Ticks>,
    /// The transfer begun last, its first byte, and its next request.
    transfer: u64,
    start: u64,
    pieces: Chunks,
    next: Option<Chunk>,
}

/// The requests of all channels.
struct Followed<'w, 'a> {
    way: &'w Way<'a>,
    fixed: Fixed,
    /// Number of transfers of all channels.
    transfers: u64,
    channels: Vec<Channel>,
    /// The channel that has issued the last request.
    served: usize,
    /// Tags that were never used, and when the others are free.
    unused: u64,
    free_tags: BinaryHeap<Reverse<Ticks>>,
    /// Requests that have not reached the host, by the time when they left the engine, and their number.
    under_way: BTreeMap<(Ticks, u64), Sum>,
    downstream: Downstream,
    kept: Kept<AlikeRequest, Sum>,
}

impl<'w, 'a> Followed<'w, 'a> {
    /// The first requests of each channel.
    fn new(way: &'w Way<'a>, transfers: u64) -> Option<Followed<'w, 'a>> {
        let mut channels = Vec::new();
        for transfer in 0..u64::from(way.channels).min(transfers) {
            let (start, bytes) = way.range(transfer)?;
            let mut pieces = way.split(start, bytes);
            let next = pieces.next();
            let left_at = VecDeque::new();
            channels.push(Channel { free_at: Ticks::ZERO, left_at, transfer, start, pieces, next });
        }
        Some(Followed {
            way,
            fixed: Fixed::of(way),
            transfers,
            // As in the simulator, the first channel has the last turn of the first round.
            served: 0,
            channels,
            unused: way.most_under_way() as u64,
            free_tags: BinaryHeap::new(),
            under_way: BTreeMap::new(),
            downstream: Downstream::default(),
            kept: Kept::default(),
        })
    }

    /// Time of `all` requests, whose latencies have this sum, if `followed` of them are followed.
    fn time(mut self, all: u64, followed: u64, latencies_ns: f64) -> Option<f64> {
        let (mut line, mut latencies, mut least) = (Line::default(), Ticks::ZERO, Ticks::NEVER);
        for number in 0..followed {
            let (place, at) = self.due()?;
            let channel = self.channels.get(place)?;
            if place == 0 && 2 * number >= followed && channel.next?.address == channel.start {
                line.points.push((latencies.as_ns(), at.as_ns()));
            }
            let latency = self.issue(place, at, number)?;
            latencies += latency;
            least = least.min(latency);
        }
        while self.pass() {}
        if followed == all {
            return Some(self.downstream.ended.as_ns());
        }
        line.at(latencies_ns).map(|begun| begun + least.as_ns())
    }

    /// The channel that issues the next request, and when; round-robin if there are several.
    fn due(&mut self) -> Option<(usize, Ticks)> {
        loop {
            let tag_at = match self.unused {
                0 => self.free_tags.peek().map(|tag| tag.0),
                _ => Some(Ticks::ZERO),
            };
            let buffers = self.way.dma.send_buffers.value as usize;
            let behind_served = |place: usize| (place <= self.served, place);
            let due = self.channels.iter().enumerate().filter(|(_, channel)| channel.next.is_some());
            let due = due.map(|(place, channel)| {
                let room_at = channel.left_at.front().filter(|_| channel.left_at.len() >= buffers);
                let at = channel.free_at.max(room_at.copied().unwrap_or_default()).max(tag_at.unwrap_or_default());
                (at, behind_served(place))
            });
            let (at, (_, place)) = due.min()?;
            // A request that reaches the host before may free its tag before.
            let is_open = self.under_way.first_key_value().is_some_and(|((left, _), _)| tag_at.is_none() || *left < at);
            if !is_open {
                return tag_at.map(|_| (place, at));
            }
            self.pass();
        }
    }

    /// Issues the next request of a channel at `at`; returns its latency.
    fn issue(&mut self, place: usize, at: Ticks, number: u64) -> Option<Ticks> {
        self.served = place;
        match self.unused.checked_sub(1) {
            Some(left) => self.unused = left,
            None => drop(self.free_tags.pop()),
        }
        let (way, step) = (self.way, u64::from(self.way.channels));
        let channel = self.channels.get_mut(place)?;
        let chunk = channel.next?;
        let (nth, offset) = (channel.transfer, chunk.address - channel.start);
        let alike = way.alike_request(nth, chunk, offset);
        let of_one = if let Some(of_one) = self.kept.find(alike) {
            *of_one
        } else {
            let computed = way.sum_of_request(nth, chunk, offset)?;
            self.kept.keep(alike, computed);
            computed
        };
        channel.free_at = at + of_one.engine;
        if channel.left_at.len() >= way.dma.send_buffers.value as usize {
            channel.left_at.pop_front();
        }
        channel.left_at.push_back(channel.free_at + self.fixed.egress);
        channel.next = channel.pieces.next();
        if channel.next.is_none() && channel.transfer + step < self.transfers {
            channel.transfer += step;
            let (start, bytes) = way.range(channel.transfer)?;
            (channel.start, channel.pieces) = (start, way.split(start, bytes));
            channel.next = channel.pieces.next();
        }
        let latency = of_one.latency;
        self.under_way.insert((channel.free_at, number), of_one);
        Some(latency)
    }

    /// Takes the request that left the engine first, computes its times in the host, and notes when its tag is free. Returns
    /// whether there was one.
    fn pass(&mut self) -> bool {
        let Some(((left, _), of_one)) = self.under_way.pop_first() else { return false };
        let free_at = self.downstream.pass(left, &of_one, &self.fixed);
        self.free_tags.push(Reverse(free_at));
        true
    }
}
