//! A port of a card's own memory: words go through it one behind the other, in the order they are asked for.
//!
//! Ports: [`MemoryPort::load`] and [`MemoryPort::store`] are asked in the order of their times; each answers with times at once.

use lanemark_platform::DeviceMemory;
use lanemark_units::Ticks;

/// What never changes during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// How long each word holds it.
    pub word: Ticks,
    /// From the end of a word's hold to its bytes at the kernel.
    pub read: Ticks,
    /// What each burst of stores holds it besides.
    pub turnaround: Ticks,
}

impl From<&DeviceMemory> for Spec {
    fn from(memory: &DeviceMemory) -> Spec {
        Spec { word: memory.word_ns.value, read: memory.read_ns.value, turnaround: memory.turnaround_ns.value }
    }
}

/// Everything that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPort {
    spec: Spec,
    free_at: Ticks,
}

impl MemoryPort {
    /// One that is free.
    #[must_use]
    pub fn new(spec: Spec) -> MemoryPort {
        MemoryPort { spec, free_at: Ticks::ZERO }
    }

    /// What it was made from.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Loads so many words that are asked for at `at`, and says when the first of them is in the kernel; the others follow as fast as
    /// words go through.
    #[inline]
    pub fn load(&mut self, at: Ticks, words: u64) -> Ticks {
        let begin = self.free_at.max(at);
        self.free_at = begin + self.spec.word * words;
        begin + self.spec.word + self.spec.read
    }

    /// Stores so many words, and says when the last of them is there.
    pub fn store(&mut self, at: Ticks, words: u64) -> Ticks {
        self.free_at = self.free_at.max(at) + self.spec.turnaround + self.spec.word * words;
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wait_for_those_before_them_and_stores_turn_the_bus_round() {
        let ns = Ticks::whole_ns;
        let mut port = MemoryPort::new(Spec { word: ns(2), read: ns(100), turnaround: ns(20) });
        assert_eq!(port.load(ns(10), 4), ns(112));
        assert_eq!(port.load(ns(10), 1), ns(120));
        assert_eq!(port.store(ns(11), 2), ns(20 + 20 + 4));
        assert_eq!(port.load(ns(100), 1), ns(202));
    }
}
