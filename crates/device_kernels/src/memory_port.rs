//! A port of a card's memory: it transfers words back to back, in the order of their requests.
//!
//! Ports: [`MemoryPort::load`] and [`MemoryPort::store`] are called in time order and return completion times
//! immediately.

use lanemark_platform::DeviceMemory;
use lanemark_units::Ticks;

/// Constants of a memory port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Time for which a word occupies the port.
    pub word: Ticks,
    /// From the end of that time to the word's arrival in the kernel.
    pub read: Ticks,
    /// Extra time for which each burst of stores occupies the port (bus turnaround).
    pub turnaround: Ticks,
}

impl From<&DeviceMemory> for Spec {
    fn from(memory: &DeviceMemory) -> Spec {
        Spec { word: memory.word_ns.value, read: memory.read_ns.value, turnaround: memory.turnaround_ns.value }
    }
}

/// State of a memory port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPort {
    spec: Spec,
    free_at: Ticks,
}

impl MemoryPort {
    /// Creates an idle port.
    #[must_use]
    pub fn new(spec: Spec) -> MemoryPort {
        MemoryPort { spec, free_at: Ticks::ZERO }
    }

    /// Returns the constants.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Loads `words` words, requested at `at`. Returns when the first of them arrives in the kernel; the others
    /// follow at the rate of the port.
    #[inline]
    pub fn load(&mut self, at: Ticks, words: u64) -> Ticks {
        let begin = self.free_at.max(at);
        self.free_at = begin + self.spec.word * words;
        begin + self.spec.word + self.spec.read
    }

    /// Stores `words` words. Returns when the last of them is stored.
    pub fn store(&mut self, at: Ticks, words: u64) -> Ticks {
        self.free_at = self.free_at.max(at) + self.spec.turnaround + self.spec.word * words;
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_serialised_and_stores_pay_the_bus_turnaround() {
        let ns = Ticks::whole_ns;
        let mut port = MemoryPort::new(Spec { word: ns(2), read: ns(100), turnaround: ns(20) });
        assert_eq!(port.load(ns(10), 4), ns(112));
        assert_eq!(port.load(ns(10), 1), ns(120));
        assert_eq!(port.store(ns(11), 2), ns(20 + 20 + 4));
        assert_eq!(port.load(ns(100), 1), ns(202));
    }
}
