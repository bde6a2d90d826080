//! A kernel that copies words within one port of a card's memory.
//!
//! Ports: [`Pipeline`]; the memory port is passed to it.
//!
//! One iteration is issued an initiation interval. The load unit requests the words of a burst at its first
//! iteration, when it has space for them. An iteration is stored when its words have arrived, and at least an
//! interval after the previous one; the store unit gathers iterations into bursts.

use crate::kernel_time::{KernelTime, Part};
use crate::memory_port::MemoryPort;
use crate::pipeline::{Pipeline, Spec};
use lanemark_compute::StreamCopy;
use lanemark_units::Ticks;
use std::collections::VecDeque;
use std::ops::Range;

/// Iterations that a unit requests in one burst.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Burst<T> {
    at: T,
    words: u64,
    steps: Range<u64>,
}

/// State of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamKernel<T> {
    spec: Spec,
    copy: StreamCopy,
    /// The memory port.
    port: usize,
    /// Source and destination words, without the gaps of a stride.
    from: Vec<u64>,
    to: Vec<u64>,
    /// The next burst to load.
    loads: Option<Burst<T>>,
    /// The bursts to store, as far as they are known.
    stores: VecDeque<Burst<T>>,
    /// The burst being gathered.
    gathered: Option<Burst<T>>,
    /// Words of all loads so far.
    asked_words: u64,
    /// Words loaded up to the end of each burst, and the time of its last iteration.
    taken: VecDeque<(u64, T)>,
    issued_at: T,
    made_at: T,
    ended: T,
}

impl<T: KernelTime> StreamKernel<T> {
    /// Creates a kernel that copies `from` through this port, with its first burst issued.
    #[must_use]
    pub fn new(spec: Spec, copy: StreamCopy, port: usize, from: Vec<u64>) -> StreamKernel<T> {
        let to = vec![0; from.len()];
        let mut kernel = StreamKernel {
            spec,
            copy,
            port,
            from,
            to,
            loads: None,
            stores: VecDeque::new(),
            gathered: None,
            asked_words: 0,
            taken: VecDeque::new(),
            issued_at: T::ZERO,
            made_at: T::ZERO,
            ended: T::ZERO,
        };
        kernel.issue(0);
        kernel
    }

    /// Returns the words copied so far.
    #[must_use]
    pub fn copied(&self) -> &[u64] {
        &self.to
    }

    fn step_words(&self, step: u64) -> u64 {
        self.copy.step_words(step, self.spec.words)
    }

    /// Issues the iterations of a burst from `first` on. Every earlier iteration that affects its space is known.
    fn issue(&mut self, first: u64) {
        let (mut words, mut step) = (0, first);
        while step < self.copy.steps() {
            let more = self.step_words(step);
            if step > first && words + more > self.spec.burst_words {
                break;
            }
            words += more;
            step += 1;
        }
        if step == first {
            return;
        }
        // The unit needs space for the whole burst: find the oldest burst that must have been used.
        let mut room_at = T::ZERO;
        let over = (self.asked_words + words).saturating_sub(self.spec.unit_words);
        while let Some((loaded, at)) = self.taken.front() {
            room_at = *at;
            if *loaded >= over {
                break;
            }
            self.taken.pop_front();
        }
        let mut at = self.issued_at.plus(self.spec.interval, Part::Interval);
        if over > 0 {
            at = at.later(room_at.released());
        }
        self.issued_at = at.plus(self.spec.interval * (step - first - 1), Part::Interval);
        self.asked_words += words;
        self.loads = Some(Burst { at, words, steps: first..step });
    }

    /// Executes the iterations of a burst whose first word arrives at `first_at`.
    fn make(&mut self, burst: &Burst<T>, first_at: T, word: Ticks) {
        let mut words = 0;
        for step in burst.steps.clone() {
            let more = self.step_words(step);
            words += more;
            // An iteration whose words arrived with the previous one waits for the interval only.
            let arrived = first_at.plus(word * words.saturating_sub(1), Part::Port);
            self.made_at = self.made_at.plus(self.spec.interval, Part::Interval).later(arrived);
            self.gather_store(step, more);
        }
        self.taken.push_back((self.asked_words, self.made_at));
        if burst.steps.end == self.copy.steps() {
            self.stores.extend(self.gathered.take());
        }
    }

    fn gather_store(&mut self, step: u64, words: u64) {
        let at = self.made_at.plus(self.spec.depth, Part::Latency);
        if self.gathered.as_ref().is_some_and(|burst| burst.words + words > self.spec.burst_words) {
            self.stores.extend(self.gathered.take());
        }
        match &mut self.gathered {
            Some(burst) => {
                (burst.at, burst.words, burst.steps.end) = (at, burst.words + words, step + 1);
            }
            None => self.gathered = Some(Burst { at, words, steps: step..step + 1 }),
        }
    }
}

impl<T: KernelTime> Pipeline for StreamKernel<T> {
    type Time = T;

    fn ports(&self) -> &[usize] {
        std::slice::from_ref(&self.port)
    }

    fn next_at(&mut self) -> Ticks {
        let store = self.stores.front().map(|burst| burst.at.ticks());
        self.loads.as_ref().map(|burst| burst.at.ticks()).into_iter().chain(store).min().unwrap_or(Ticks::NEVER)
    }

    fn run_until(&mut self, ports: &mut [MemoryPort<T>], before: Ticks) {
        loop {
            let at = self.next_at();
            if at >= before {
                return;
            }
            let port = &mut ports[self.port];
            if let Some(burst) = self.loads.take_if(|burst| burst.at.ticks() == at) {
                let (first_at, word) = (port.load(burst.at, burst.words), port.spec().word);
                self.make(&burst, first_at, word);
                self.issue(burst.steps.end);
            } else if let Some(burst) = self.stores.pop_front() {
                self.ended = port.store(burst.at, burst.words);
                let vector = u64::from(self.copy.vector_words);
                let words =
                    (burst.steps.start * vector) as usize..((burst.steps.end * vector).min(self.copy.count())) as usize;
                self.to[words.clone()].copy_from_slice(&self.from[words]);
            }
        }
    }

    fn ended(&self) -> T {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_time::{KernelPath, Traced};
    use crate::{memory_port, pipeline};
    use lanemark_compute::PortWords;

    fn ns(ns: u64) -> Ticks {
        Ticks::whole_ns(ns)
    }

    /// A copy of words of 8 B, one an iteration; the port takes 2 ns for each.
    struct Copies {
        words: u64,
        interval: Ticks,
        unit_words: u64,
        burst_words: u64,
        turnaround: Ticks,
    }

    impl Copies {
        fn ended(&self) -> Traced {
            let Copies { words, interval, unit_words, burst_words, turnaround } = *self;
            let memory = memory_port::Spec { word: ns(2), read: ns(10), turnaround };
            let words_of = PortWords { port_bytes: 8, keeps: false };
            let (depth, addition) = (ns(5), ns(1));
            let spec = Spec { interval, depth, addition, unit_words, burst_words, words: words_of };
            let copy =
                StreamCopy { first_port: 0, ports: 1, bytes_per_port: 8 * words, stride_bytes: 8, vector_words: 1 };
            let mut kernels = [StreamKernel::new(spec, copy, 0, (1..=words).collect())];
            let ended = pipeline::run(&mut kernels, &mut [MemoryPort::new(memory)]);
            assert!(kernels[0].copied().iter().copied().eq(1..=words));
            ended
        }
    }

    fn copied(words: u64, unit_words: u64, burst_words: u64, turnaround: Ticks) -> Ticks {
        Copies { words, interval: ns(1), unit_words, burst_words, turnaround }.ended().ticks()
    }

    #[test]
    fn a_word_is_stored_once_it_has_arrived_and_the_port_is_free() {
        // Requested at 1, arrived at 13, stored from 18 to 40. The second one is processed at 15 and stored from 40
        // on.
        assert_eq!(copied(1, 8, 1, ns(20)), ns(40));
        assert_eq!(copied(2, 8, 1, ns(20)), ns(62));
        // One burst turns the bus around once: arrivals at 13 and 15, stored from 20 on.
        assert_eq!(copied(2, 8, 2, ns(20)), ns(20 + 20 + 4));
    }

    #[test]
    fn a_load_unit_of_one_word_serialises_its_loads() {
        // Arrivals at 13 and 15; or the second one at 25, if it is requested when the first one is used.
        assert_eq!(copied(2, 8, 1, ns(0)), ns(22));
        assert_eq!(copied(2, 1, 1, ns(0)), ns(25 + 5 + 2));
    }

    fn path(port: u64, interval: u64, unit_words: u64, latency: u64) -> KernelPath {
        KernelPath {
            port: ns(port),
            interval: ns(interval),
            additions: ns(0),
            unit_words: ns(unit_words),
            latency: ns(latency),
        }
    }

    #[test]
    fn the_path_of_one_word_is_the_interval_the_port_and_latency() {
        let one = Copies { words: 1, interval: ns(1), unit_words: 8, burst_words: 1, turnaround: ns(20) };
        // The load and the store with its turnaround at the port; the read and the pipeline.
        assert_eq!(one.ended().path().unwrap(), path(2 + 22, 1, 0, 10 + 5));
        // The second store waits for the first one.
        assert_eq!(Copies { words: 2, ..one }.ended().path().unwrap(), path(2 + 22 + 22, 1, 0, 10 + 5));
    }

    #[test]
    fn a_copy_whose_port_is_never_idle_is_bound_by_the_port() {
        let copies = Copies { words: 100, interval: ns(1), unit_words: 128, burst_words: 16, turnaround: ns(0) };
        assert_eq!(copies.ended().path().unwrap(), path(2 * 2 * 100, 1, 0, 0));
    }

    #[test]
    fn a_copy_with_a_long_interval_is_bound_by_the_interval() {
        // Words arrive at 22, 32, ... and 212.
        let copies = Copies { words: 20, interval: ns(10), unit_words: 8, burst_words: 1, turnaround: ns(0) };
        assert_eq!(copies.ended().path().unwrap(), path(2 + 2, 20 * 10, 0, 10 + 5));
    }

    #[test]
    fn a_copy_with_a_unit_of_one_word_is_bound_by_the_unit() {
        // The latency of nine reads delays the next request; that of the last one delays none.
        let copies = Copies { words: 10, interval: ns(1), unit_words: 1, burst_words: 1, turnaround: ns(0) };
        assert_eq!(copies.ended().path().unwrap(), path(10 * 2 + 2, 1, 9 * 10, 10 + 5));
    }
}
