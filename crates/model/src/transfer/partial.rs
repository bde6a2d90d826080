//! Writes that do not fill the lines of host memory that they touch.
//!
//! Each such line holds the root port, unless the last-level cache has it. Without a cache none has; with one, lines that are nowhere
//! are there once something was written to them, and in one round over a window nothing comes back to a line but what follows it
//! at once. Where lines leave while others are written, only those count that were nowhere from the beginning: it is a bound.

use super::Way;
use lanemark_machine::{Partner, Pattern, Transfer, Verb, Writer};
use lanemark_platform::Memory;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

impl Way<'_> {
    /// What one such line holds a root port for; nothing where no host memory is written.
    pub(super) fn partial_line(&self) -> Ticks {
        match (self.transfer.partner, self.transfer.verb) {
            (Partner::Host, Verb::Store) => self.memory().map_or(Ticks::ZERO, |memory| memory.partial_line_ns.value),
            _ => Ticks::ZERO,
        }
    }

    /// What a piece of transfer number `nth` holds a root port for, at the least.
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
        if nth >= window.places(*bytes) || window.pattern == Pattern::Random {
            return Ticks::ZERO;
        }
        // What was written just before, of this transfer or the one before it.
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

    /// Whether that is all that so many transfers hold it for.
    pub(super) fn knows_lines(&self, transfers: u64, written_by: Writer) -> bool {
        let Transfer { bytes, window, .. } = self.transfer;
        let is_one_round = transfers <= window.places(*bytes) && window.pattern != Pattern::Random;
        let is_cold = written_by == Writer::Nobody && is_one_round && self.channels == 1;
        self.partial_line() == Ticks::ZERO || !self.has_cache() || is_cold || self.is_all_cached()
    }

    /// Whether each transfer holds it for as long as the first one.
    pub(super) fn holds_alike(&self) -> bool {
        let step = self.transfer.window.step(self.transfer.bytes);
        self.partial_line() == Ticks::ZERO || !self.has_cache() && step.is_multiple_of(Memory::LINE_BYTES)
    }

    fn has_cache(&self) -> bool {
        self.memory().is_some_and(|memory| memory.cached_lines() > 0)
    }
}
