//! Sums over the requests of transfers.

use super::packets::Packets;
use lanemark_units::Ticks;

/// Parameters of requests, as sum or minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) requests: u64,
    /// Minimum bytes of a request.
    pub(super) least_bytes: u32,
    /// Engine time of all requests of the busiest channel.
    pub(super) busiest: Ticks,
    /// Engine time of all requests, and of the first.
    pub(super) engine: Ticks,
    pub(super) first_engine: Ticks,
    /// Beats of all requests at the engine, and minimum of a request.
    pub(super) request_beats: Ticks,
    pub(super) least_request_beats: Ticks,
    /// Time of all data packets on the slowest link of their path.
    pub(super) link: Ticks,
    /// Beats of all data packets at their destination.
    pub(super) beats: Ticks,
    /// Beats of all reads at a peer's region.
    pub(super) at_region: Ticks,
    /// Number of data packets.
    pub(super) packets: Packets,
    /// From the engine to the last byte, summed over all requests.
    pub(super) latencies: Ticks,
    /// Path of the last request from the engine on, and minimum of all.
    pub(super) last_way: Ticks,
    pub(super) shortest: Ticks,
    /// From the engine to the last byte, for the first request.
    pub(super) first_latency: Ticks,
    /// Time before the data, on the link and at the destination (for reads, before the data of the first, which
    /// arrive in order); minimum time after any of them on the link; and minimum path.
    pub(super) before_link: Ticks,
    pub(super) before_beats: Ticks,
    pub(super) behind_link: Ticks,
    pub(super) besides_memory: Ticks,
    /// From the end of the last request until its data are stored (the minimum of all, if it may be overtaken), and the
    /// minimum and maximum of all.
    pub(super) after: Ticks,
    pub(super) least_after: Ticks,
    pub(super) most_after: Ticks,
    /// Latest end of any request, after its beats and those before it at a region of the destination.
    pub(super) last_at_region: Ticks,
    /// Minimum time for which a request holds its credits at the destination, and the sum over all.
    pub(super) held: Ticks,
    pub(super) all_held: Ticks,
    /// Time for which partial-line writes occupy memory: of all, of the longest request, and of the last one.
    pub(super) of_lines: Ticks,
    pub(super) most_of_lines: Ticks,
    pub(super) last_of_lines: Ticks,
    /// Minimum from the engine to the last byte of a request; minimum and maximum on the link; minimum beats; and
    /// minimum time between engine and link.
    pub(super) latency: Ticks,
    pub(super) most_latency: Ticks,
    pub(super) least_link: Ticks,
    pub(super) most_link: Ticks,
    pub(super) least_beats: Ticks,
    pub(super) to_link: Ticks,
    /// Reads that a root complex issues for these, the sum of the times for which they hold its tags, the minimum of
    /// one, and the minimum path of one.
    pub(super) root_reads: u64,
    pub(super) root_loops: Ticks,
    pub(super) root_loop: Ticks,
    pub(super) root_way: Ticks,
    /// Lines read from DRAM, if their latencies are spread.
    pub(super) spread_lines: u64,
    /// Beats of the user clock for all data packets, and the maximum part of them that the FIFO lets run ahead.
    pub(super) queued: Ticks,
    pub(super) ahead: Ticks,
    /// Minimum and maximum engine time of a request, and the excess of all requests but the first.
    pub(super) least_engine: Ticks,
    pub(super) most_engine: Ticks,
    pub(super) beyond: Ticks,
}

impl Sum {
    /// Adds the sum of the requests after these. `can_be_overtaken`: whether data of a later request may arrive before
    /// those of the first.
    pub(super) fn append(&mut self, next: &Sum, can_be_overtaken: bool) {
        if can_be_overtaken {
            self.before_link = self.before_link.min(next.before_link);
            self.before_beats = self.before_beats.min(next.before_beats);
            self.after = self.after.min(next.after);
        } else {
            self.after = next.after;
        }
        self.last_at_region = self.last_at_region.max(self.at_region + next.last_at_region);
        self.requests += next.requests;
        self.least_bytes = self.least_bytes.min(next.least_bytes);
        self.engine += next.engine;
        self.request_beats += next.request_beats;
        self.least_request_beats = self.least_request_beats.min(next.least_request_beats);
        self.link += next.link;
        self.beats += next.beats;
        self.at_region += next.at_region;
        self.packets = self.packets.and(next.packets);
        self.latencies += next.latencies;
        self.last_way = next.last_way;
        self.shortest = self.shortest.min(next.shortest);
        self.behind_link = self.behind_link.min(next.behind_link);
        self.besides_memory = self.besides_memory.min(next.besides_memory);
        self.least_after = self.least_after.min(next.least_after);
        self.most_after = self.most_after.max(next.most_after);
        self.held = self.held.min(next.held);
        self.all_held += next.all_held;
        self.of_lines += next.of_lines;
        self.most_of_lines = self.most_of_lines.max(next.most_of_lines);
        self.last_of_lines = next.last_of_lines;
        self.latency = self.latency.min(next.latency);
        self.most_latency = self.most_latency.max(next.most_latency);
        self.least_link = self.least_link.min(next.least_link);
        self.most_link = self.most_link.max(next.most_link);
        self.least_beats = self.least_beats.min(next.least_beats);
        self.to_link = self.to_link.min(next.to_link);
        self.root_reads += next.root_reads;
        self.root_loops += next.root_loops;
        self.root_loop = self.root_loop.min(next.root_loop);
        self.root_way = self.root_way.min(next.root_way);
        self.spread_lines += next.spread_lines;
        self.queued += next.queued;
        self.ahead = self.ahead.max(next.ahead);
        self.least_engine = self.least_engine.min(next.least_engine);
        self.most_engine = self.most_engine.max(next.most_engine);
    }
}
