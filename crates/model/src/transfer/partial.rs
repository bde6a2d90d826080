//! Partial-line writes to host memory.
//!
//! Each partially written line occupies the root port, unless the last-level cache holds it. Without a cache, no line
//! is held. With a cache, a line is held after its first write. Within one pass over a window, only the immediately
//! following access returns to the same line. If lines are evicted meanwhile, only those that were not cached at the
//! start are counted, which gives a lower bound.

use super::way::Way;
use lanemark_machine::{Partner, Transfer, Verb, Writer};
use lanemark_platform::Memory;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

impl Way<'_> {
    /// Time for which one such line occupies a root port; zero unless host memory is written.
    pub(super) fn partial_line(&self) -> Ticks {
        match (self.transfer.partner, self.transfer.verb) {
            (Partner::Host, Verb::Store) => self.memory().map_or(Ticks::ZERO, |memory| memory.partial_line_ns.value),
            _ => Ticks::ZERO,
        }
    }

    /// Minimum time for which a piece of transfer number `nth` occupies a root port.
    pub(super) fn held_by_lines(&self, nth: u64, piece: Chunk) -> Ticks {
        let partial_line = self.partial_line();
        if partial_line == Ticks::ZERO {
            return Ticks::ZERO;
        }
        let Transfer { bytes, window, .. } = self.transfer;
        let lines = Memory::partial_lines(piece.address, piece.bytes.into());
        if !self.has_cache() {
            return partial_line * lines.count() as u64;
        }
        if nth >= window.places(*bytes) || window.pattern.is_random() {
            return Ticks::ZERO;
        }
        // The line was just written by this transfer or the previous one.
        let start = self.base + window.place(nth, *bytes);
        let before = match nth.checked_sub(1) {
            _ if piece.address > start => Some(piece.address - 1),
            Some(before) => Some(self.base + window.place(before, *bytes) + bytes - 1),
            None => None,
        };
        let is_new = |line: &u64| before.is_none_or(|before| before / Memory::LINE_BYTES < *line);
        let is_nowhere = |line: &u64| {
            let start = line * Memory::LINE_BYTES;
            start >= self.cached.end || start + Memory::LINE_BYTES <= self.cached.start
        };
        partial_line * lines.filter(is_new).filter(is_nowhere).count() as u64
    }

    /// Whether that is exact for this many transfers.
    pub(super) fn knows_lines(&self, transfers: u64, written_by: Writer) -> bool {
        let Transfer { bytes, window, .. } = self.transfer;
        let is_one_round = transfers <= window.places(*bytes) && !window.pattern.is_random();
        let is_cold = written_by == Writer::Nobody && is_one_round && self.channels == 1;
        self.partial_line() == Ticks::ZERO || !self.has_cache() || is_cold || self.is_all_cached()
    }

    /// Whether each transfer occupies the root port for as long as the first one.
    pub(super) fn holds_alike(&self) -> bool {
        let step = self.transfer.window.step(self.transfer.bytes);
        self.partial_line() == Ticks::ZERO || !self.has_cache() && step.is_multiple_of(Memory::LINE_BYTES)
    }

    fn has_cache(&self) -> bool {
        self.memory().is_some_and(|memory| memory.cached_lines() > 0)
    }
}
