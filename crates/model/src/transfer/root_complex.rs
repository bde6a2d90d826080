//! What a root complex does with requests of devices: how many it takes, and which reads it need not go to DRAM for.

use super::Way;
use lanemark_machine::{Partner, Pattern, Transfer, Verb, Writer};
use lanemark_platform::{Memory, PeerWay, Platform};
use lanemark_units::Ticks;
use lanemark_wire::Chunk;
use std::ops::Range;

/// Bus addresses of lines that the last-level cache holds when transfers begin; during reads nothing changes them.
///
/// What is to be read or written somebody has written before, from the start of its window to its end. Of that the last lines are
/// there, as many as there is room for: a line leaves when another one of its set is written, and a set has every so many of
/// them. What a device wrote has room in the ways that devices fill.
pub(super) fn cached(platform: &Platform, transfer: &Transfer, base: u64, written_by: Writer) -> Range<u64> {
    let lines = platform.memory.as_ref().map_or(0, |memory| match written_by {
        Writer::Nobody => 0,
        Writer::Core => memory.cached_lines(),
        Writer::Device => memory.device_lines(),
    });
    if transfer.partner != Partner::Host || lines == 0 {
        return 0..0;
    }
    let Range { start, end } = touched(transfer, base, u64::MAX);
    let end = end.next_multiple_of(Memory::LINE_BYTES);
    start.max(end.saturating_sub(lines * Memory::LINE_BYTES))..end
}

/// Where the first so many transfers go.
fn touched(transfer: &Transfer, base: u64, transfers: u64) -> Range<u64> {
    let places = transfer.window.places(transfer.bytes);
    let met = match transfer.window.pattern {
        Pattern::Sequential | Pattern::Strided(_) => transfers.min(places),
        Pattern::Random => places,
    };
    let start = base.saturating_add(transfer.window.offset);
    start..start.saturating_add(met.saturating_mul(transfer.window.step(transfer.bytes)))
}

impl Way<'_> {
    /// From a read of host memory at the root port to its first completion.
    pub(super) fn memory_read(&self, chunk: Chunk) -> Option<Ticks> {
        let memory = self.memory()?;
        let is_cached =
            self.cached.contains(&chunk.address) && chunk.address + u64::from(chunk.bytes) <= self.cached.end;
        Some(if is_cached { memory.cached_read_ns.value } else { memory.read_ns.value })
    }

    /// Whether the first so many transfers are all answered by the cache, or none of them is.
    pub(super) fn is_of_one_kind(&self, transfers: u64) -> bool {
        if self.transfer.verb == Verb::Store {
            return self.holds_alike();
        }
        let all = touched(self.transfer, self.base, transfers);
        let is_apart = all.end <= self.cached.start || self.cached.end <= all.start;
        self.cached.is_empty() || is_apart || self.cached.start <= all.start
    }

    /// Whether all lines of the window are there.
    pub(super) fn is_all_cached(&self) -> bool {
        let all = touched(self.transfer, self.base, u64::MAX);
        self.cached.start <= all.start && all.end <= self.cached.end
    }

    /// The same with every read answered by the cache, for its bytes have just been written; `None` if not all of one
    /// transfer's have room there.
    pub(super) fn of_written(self) -> Option<Self> {
        let lines = self.memory().map_or(0, Memory::device_lines);
        if lines == 0 {
            return Some(self);
        }
        let fits = self.transfer.bytes / Memory::LINE_BYTES + 2 <= lines;
        fits.then_some(Way { cached: 0..u64::MAX, ..self })
    }

    /// From when memory took the last of so many writes until the root complex takes the request behind it, at the least: where
    /// memory is the slower one, that one took the last write long before.
    pub(super) fn next_taken_after(&self, writes: u64) -> Ticks {
        if writes > 1 && self.pace() > self.root_pace() { Ticks::ZERO } else { self.root_pace() }
    }

    /// Time between two request rate of the root complex, if these come to it.
    pub(super) fn root_pace(&self) -> Ticks {
        let comes_there = match self.transfer.partner {
            Partner::Host => true,
            Partner::Peer { card, .. } => {
                self.platform.peer_way(self.transfer.card as usize, card as usize) == Some(PeerWay::ByRoot)
            }
        };
        if comes_there { self.platform.root_complex.request_ns.value } else { Ticks::ZERO }
    }
}
