//! A port of a card's memory: it transfers words back to back, in the order of their requests.
//!
//! Ports: [`MemoryPort::load`] and [`MemoryPort::store`] are called in time order and return completion times
//! immediately.

use crate::kernel_time::{KernelTime, Part};
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
pub struct MemoryPort<T> {
    spec: Spec,
    /// Time for which words and turnarounds have occupied it.
    busy: Ticks,
    free_at: T,
}

impl<T: KernelTime> MemoryPort<T> {
    /// Creates an idle port.
    #[must_use]
    pub fn new(spec: Spec) -> MemoryPort<T> {
        MemoryPort { spec, busy: Ticks::ZERO, free_at: T::ZERO }
    }

    /// Returns the time for which it has been occupied.
    #[must_use]
    pub fn busy(&self) -> Ticks {
        self.busy
    }

    /// Returns the constants.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Loads `words` words, requested at `at`. Returns when the first of them arrives in the kernel; the others
    /// follow at the rate of the port.
    #[inline]
    pub fn load(&mut self, at: T, words: u64) -> T {
        let begin = self.free_at.later(at);
        self.busy += self.spec.word * words;
        self.free_at = begin.plus(self.spec.word * words, Part::Port);
        begin.plus(self.spec.word, Part::Port).plus(self.spec.read, Part::Latency)
    }

    /// Stores `words` words. Returns when the last of them is stored.
    pub fn store(&mut self, at: T, words: u64) -> T {
        let span = self.spec.turnaround + self.spec.word * words;
        self.busy += span;
        self.free_at = self.free_at.later(at).plus(span, Part::Port);
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_time::{KernelPath, Traced};

    #[test]
    fn words_are_serialised_and_stores_pay_the_bus_turnaround() {
        let ns = Ticks::whole_ns;
        let mut port = MemoryPort::<Ticks>::new(Spec { word: ns(2), read: ns(100), turnaround: ns(20) });
        assert_eq!(port.load(ns(10), 4), ns(112));
        assert_eq!(port.load(ns(10), 1), ns(120));
        assert_eq!(port.store(ns(11), 2), ns(20 + 20 + 4));
        assert_eq!(port.load(ns(100), 1), ns(202));
        assert_eq!(port.busy(), ns(8 + 2 + 20 + 4 + 2));
    }

    #[test]
    fn a_word_that_waits_for_a_busy_port_continues_the_path_of_the_port() {
        let ns = Ticks::whole_ns;
        let mut port = MemoryPort::<Traced>::new(Spec { word: ns(2), read: ns(100), turnaround: ns(20) });
        let at = |at| Traced::ZERO.plus(ns(at), Part::Interval);
        let path = |port, interval, latency| KernelPath {
            port: ns(port),
            interval: ns(interval),
            additions: ns(0),
            unit_words: ns(0),
            latency: ns(latency),
        };
        assert_eq!(port.load(at(10), 4).path().unwrap(), path(2, 10, 100));
        assert_eq!(port.load(at(17), 1).path().unwrap(), path(8 + 2, 10, 100));
        // The port is free at 20; at that time, its path is taken.
        assert_eq!(port.store(at(20), 2).path().unwrap(), path(10 + 20 + 4, 10, 0));
        assert_eq!(port.load(at(45), 1).path().unwrap(), path(2, 45, 100));
    }
}
