//! Limits of a root complex: its request rate, and reads that hit in the last-level cache.

use super::cached::touched;
use super::sum::Sum;
use super::way::Way;
use lanemark_machine::{Partner, Verb};
use lanemark_platform::{Memory, PeerRoute};
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

impl Way<'_> {
    /// Mean time from a read of host memory at the root port to its first completion.
    pub(super) fn memory_read(&self, chunk: Chunk) -> Option<Ticks> {
        let memory = self.memory()?;
        Some(if self.is_cached(chunk) {
            memory.cached_read_ns.value
        } else {
            memory.read_ns.value + self.mean_spread(self.spread_lines(chunk))
        })
    }

    /// Whether the last-level cache holds all bytes of this request.
    pub(super) fn is_cached(&self, chunk: Chunk) -> bool {
        self.cached.contains(&chunk.address) && chunk.address + u64::from(chunk.bytes) <= self.cached.end
    }

    /// Whether the first transfers all hit, or all miss.
    pub(super) fn is_of_one_kind(&self, transfers: u64) -> bool {
        if self.transfer.verb == Verb::Store {
            return self.holds_alike();
        }
        let all = touched(self.transfer, self.base, transfers);
        let is_apart = all.end <= self.cached.start || self.cached.end <= all.start;
        self.cached.is_empty() || is_apart || self.cached.start <= all.start
    }

    /// Whether all lines of the window are cached.
    pub(super) fn is_all_cached(&self) -> bool {
        let all = touched(self.transfer, self.base, u64::MAX);
        self.cached.start <= all.start && all.end <= self.cached.end
    }

    /// Path of the transfer with all reads hitting, because their data have just been written; `None` if one transfer does not
    /// fit in the cache.
    pub(super) fn of_written(self) -> Option<Self> {
        let lines = self.memory().map_or(0, Memory::device_lines);
        if lines == 0 {
            return Some(self);
        }
        let fits = self.transfer.bytes / Memory::LINE_BYTES + 2 <= lines;
        fits.then_some(Way { cached: 0..u64::MAX, ..self })
    }

    /// Minimum time from the last of these writes at memory until the root complex accepts the request after it; `None`
    /// if memory is the slower one, also for one of them with partial lines: it may have accepted the last write long
    /// before.
    pub(super) fn next_taken_after(&self, writes: &Sum) -> Option<Ticks> {
        let is_memory_slower = self.pace() + writes.most_of_lines > self.root_pace();
        (writes.requests == 1 || !is_memory_slower).then(|| self.root_pace())
    }

    /// Minimum time from the start of the engine until the root complex accepts the request after these writes: they
    /// arrive after the first of them and are accepted one by one, however long memory takes.
    pub(super) fn accepted_after(&self, writes: &Sum) -> Option<Ticks> {
        let behind = self.memory()?.write_ns.value + self.lookup();
        Some(writes.first_latency.since(behind) + self.root_pace() * writes.requests)
    }

    /// Interval between two requests that the root complex accepts, if these pass it.
    pub(super) fn root_pace(&self) -> Ticks {
        let comes_there = match self.transfer.partner {
            Partner::Host => true,
            Partner::Peer { card, .. } => {
                self.platform.peer_route(self.transfer.card as usize, card as usize) == Some(PeerRoute::ByRoot)
            }
        };
        if comes_there { self.platform.root_complex.request_ns.value } else { Ticks::ZERO }
    }
}
