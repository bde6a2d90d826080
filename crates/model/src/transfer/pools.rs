//! Limited resources of each link: receiver credits and replay-buffer entries.
//!
//! If a link permits `k` of `n` packets in flight, the last starts `(n - 1) / k` round trips after the first; the
//! remainder follows back to back. Credits return when the packet has left for the next link or has reached its
//! destination. A replay-buffer entry is released when the packet is acknowledged, one link further.

use super::packets::Packets;
use super::sum::Sum;
use super::way::Way;
use crate::bound::Bound;
use crate::path::{CREDIT, Hop, Path, Pool};
use lanemark_machine::{Partner, Verb};
use lanemark_units::Ticks;
use lanemark_wire::{Mps, ack_latency_limit};

/// Extra waiting time of the last packet of a stream on one link, compared with the first, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wait {
    pub(crate) bound: Bound,
    pub(crate) ns: f64,
    /// Possible extra delay by DLLPs that find the link busy.
    pub(super) hidden_ns: f64,
}

/// Back-to-back packets of one kind over several links.
struct Stream<'p> {
    path: &'p Path,
    pool: fn(&Hop) -> Pool,
    packets: Packets,
    /// Number of repetitions.
    times: f64,
    header_dw: u8,
    /// Time for which a packet holds its credits at the destination: minimum and mean.
    held: [Ticks; 2],
    /// Interval between packets without stalls.
    step: Ticks,
    /// Payload in the opposite direction; `None` without any.
    against: Option<u32>,
    /// Whether credits may be returned as late as acknowledgments, because completions keep the link busy.
    is_late: bool,
}

/// Round trips of the limited resources of one link, for packets of minimum, mean and maximum payload.
#[derive(Clone, Copy, Debug)]
struct RoundTrips {
    least: Ticks,
    mean: Ticks,
    most: Ticks,
}

impl Stream<'_> {
    /// Waiting times on each link: by credits, and by the replay buffer.
    fn waits(&self) -> impl Iterator<Item = Wait> {
        self.path.hops.iter().enumerate().flat_map(|(place, hop)| {
            let payload = |bytes: f64| bytes as u32;
            let mean_bytes = payload(self.packets.payload_bytes as f64 / self.packets.count.max(1) as f64) / 4 * 4;
            let [held, mean_held] = self.held;
            let Packets { least_bytes, most_bytes, .. } = self.packets;
            let by_credits = |bytes, held| self.path.credit_loop(place, self.header_dw, bytes, held);
            let credits = RoundTrips {
                least: by_credits(least_bytes, held),
                mean: by_credits(mean_bytes, mean_held),
                most: by_credits(most_bytes, held),
            };
            let by_ack = |bytes| hop.ack_loop(self.header_dw, bytes);
            let acks = RoundTrips { least: by_ack(least_bytes), mean: by_ack(mean_bytes), most: by_ack(most_bytes) };
            let replay = Pool { headers: hop.replay_tlps, ..Pool::ENDLESS };
            // DLLPs of both kinds meet on the link, and meet the packets of the opposite direction.
            let against = self.against.or(self.path.turns_at(place).then_some(most_bytes));
            let found = hop.dllp() + hop.flit() * 2 + against.map_or(Ticks::ZERO, |payload| hop.wire(3, payload));
            let mps = against.and(Mps::new(hop.mps_bytes));
            let limit = mps.map_or(Ticks::ZERO, |mps| ack_latency_limit(hop.generation, hop.lanes, mps));
            [
                self.wait(
                    Bound::Credits,
                    hop,
                    (self.pool)(hop),
                    credits,
                    if self.is_late { found + limit } else { found },
                ),
                self.wait(Bound::Replay, hop, replay, acks, found + limit),
            ]
        })
    }

    /// Waiting time for `pool`, of which a packet takes its part for one round trip, or `found` longer.
    fn wait(&self, bound: Bound, hop: &Hop, pool: Pool, round_trip: RoundTrips, found: Ticks) -> Wait {
        let RoundTrips { least, mean, most } = round_trip;
        let Packets { count, credits, least_bytes, most_bytes, full, .. } = self.packets;
        let (packets, full) = (count as f64 * self.times, full as f64 * self.times);
        // All packets as if each were the smallest, and the largest ones alone.
        let as_least = self.rounds(packets, hop, pool, least_bytes, least);
        let of_the_most = self.rounds(full, hop, pool, most_bytes, most);
        // The sum of amount and time over all packets, divided by the capacity.
        let credits = credits as f64 * self.times;
        let taken = (packets / f64::from(pool.headers)).max(credits / f64::from(pool.data));
        let by_area = taken * mean.as_ns() - most.as_ns();
        let ns = as_least.max(of_the_most).max(by_area);
        // Short packets may or may not fit into the space that long ones leave.
        let unequal = self.rounds(packets, hop, pool, most_bytes, most) - ns;
        Wait { bound, ns, hidden_ns: taken.floor() * found.as_ns() + unequal.max(0.0) }
    }

    /// Waiting time of packets of equal payload, with as many in flight as `pool` permits.
    fn rounds(&self, packets: f64, hop: &Hop, pool: Pool, payload_bytes: u32, round_trip: Ticks) -> f64 {
        let by_data = pool.data.checked_div(payload_bytes.div_ceil(CREDIT)).unwrap_or(u32::MAX);
        let at_once = f64::from(pool.headers.min(by_data).max(1));
        let rounds = ((packets - 1.0) / at_once).floor();
        let step = self.step.max(hop.pace(self.header_dw, payload_bytes));
        let rest = (packets - 1.0) % at_once;
        if rounds > 0.0 { rounds * round_trip.as_ns() + rest * step.as_ns() } else { 0.0 }
    }
}

impl Way<'_> {
    /// Maximum extra waiting time, on any link, of the last of `times` repetitions of these requests. `step` is their
    /// interval without stalls.
    pub(super) fn waits_of_requests(&self, sum: &Sum, times: f64, step: Ticks) -> Vec<Wait> {
        let is_load = self.transfer.verb == Verb::Load;
        let there = if is_load { self.path_there() } else { None };
        let path = there.as_ref().unwrap_or(&self.path);
        let stream = Stream {
            path,
            pool: if is_load { |hop| hop.credits.nonposted } else { |hop| hop.credits.posted },
            packets: if is_load { Packets::empty(sum.requests) } else { sum.packets },
            times,
            header_dw: self.header_dw,
            held: [sum.held, Ticks(sum.all_held.0 / sum.requests.max(1))],
            step,
            against: if is_load { Some(self.payload_bytes) } else { self.against },
            is_late: self.against.is_some(),
        };
        stream.waits().collect()
    }

    /// Maximum extra waiting time of packets that result from requests: completions, and reads issued by the root
    /// complex. Writes have none.
    pub(super) fn waits_of_others(&self, sum: &Sum, times: f64) -> Vec<Wait> {
        if self.transfer.verb == Verb::Store {
            return Vec::new();
        }
        let mut waits: Vec<Wait> = self.completions_on_links(sum.packets, times).waits().collect();
        if let (Partner::Peer { card, .. }, true) = (self.transfer.partner, self.is_split_at_root())
            && let Some(down) = Path::down(self.platform, card)
        {
            waits.extend(self.reads_by_root(&down, sum.root_reads, times).waits());
        }
        waits
    }

    fn completions_on_links(&self, packets: Packets, times: f64) -> Stream<'_> {
        Stream {
            path: &self.path,
            pool: |hop| hop.credits.completion,
            packets,
            times,
            header_dw: 3,
            held: [Ticks::ZERO; 2],
            step: Ticks::ZERO,
            against: Some(0),
            is_late: false,
        }
    }

    /// Delay of the last of these completions of one read after the first, by limited resources.
    pub(super) fn last_completion(&self, packets: Packets) -> Ticks {
        last(self.completions_on_links(packets, 1.0).waits())
    }

    /// Reads issued by the root complex, on their way downstream.
    fn reads_by_root<'p>(&self, path: &'p Path, reads: u64, times: f64) -> Stream<'p> {
        Stream {
            path,
            pool: |hop| hop.credits.nonposted,
            packets: Packets::empty(reads),
            times,
            header_dw: self.header_dw,
            held: [self.platform.endpoint.ingress_ns.value; 2],
            step: Ticks::ZERO,
            against: Some(self.payload_bytes),
            is_late: false,
        }
    }

    /// Delay of the last of these reads of the root complex after the first, on the first link below it and on any
    /// link, by credits.
    pub(super) fn last_by_root(&self, path: &Path, reads: u64) -> [Ticks; 2] {
        let stream = self.reads_by_root(path, reads, 1.0);
        // Two on each link.
        [last(stream.waits().take(2)), last(stream.waits())]
    }

    /// Path of read requests, as far as they are forwarded whole.
    pub(super) fn path_there(&self) -> Option<Path> {
        match self.transfer.partner {
            Partner::Peer { card, .. } if !self.is_split_at_root() => {
                Path::between(self.platform, self.transfer.card, card)
            }
            _ => Path::up(self.platform, self.transfer.card),
        }
    }
}

/// Extra waiting time of the last of these packets, if they use credits of `pool` and hold them for `held` at the
/// destination.
pub(crate) fn longest(path: &Path, packets: Packets, header_dw: u8, pool: fn(&Hop) -> Pool, held: Ticks) -> Wait {
    let stream = Stream {
        path,
        pool,
        packets,
        times: 1.0,
        header_dw,
        held: [held; 2],
        step: Ticks::ZERO,
        against: None,
        is_late: false,
    };
    let none = Wait { bound: Bound::Credits, ns: 0.0, hidden_ns: 0.0 };
    stream.waits().fold(none, |longest, wait| if wait.ns > longest.ns { wait } else { longest })
}

/// The largest of several waiting times.
fn last(waits: impl Iterator<Item = Wait>) -> Ticks {
    Ticks::from_ns(waits.map(|wait| wait.ns).fold(0.0, f64::max)).unwrap_or(Ticks::ZERO)
}
