//! A kernel that copies words within one port of a card's memory.
//!
//! Ports: [`Pipeline`]; the memory port that it asks is handed to it.
//!
//! One step after the other is issued, an interval apart. At the first of a burst a unit asks for all of its words, when it has room for them.
//! A step is stored an interval behind the one before at the earliest, when its words have come; another unit gathers that until it has a burst.

use crate::memory_port::MemoryPort;
use crate::pipeline::{Pipeline, Spec};
use lanemark_compute::StreamCopy;
use lanemark_units::Ticks;
use std::collections::VecDeque;
use std::ops::Range;

/// Steps that a unit asks for at once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Burst {
    at: Ticks,
    words: u64,
    steps: Range<u64>,
}

/// Everything that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamKernel {
    spec: Spec,
    copy: StreamCopy,
    /// Which port.
    port: usize,
    /// What is copied, and to where, without what strides leave between.
    from: Vec<u64>,
    to: Vec<u64>,
    /// What it loads next.
    loads: Option<Burst>,
    /// What it stores, as far as it is known.
    stores: VecDeque<Burst>,
    /// What it gathers to store.
    gathered: Option<Burst>,
    /// Words that all loads so far were for.
    asked_words: u64,
    /// Words that were loaded before the end of each burst, and when the last of its steps was made.
    taken: VecDeque<(u64, Ticks)>,
    issued_at: Ticks,
    made_at: Ticks,
    ended: Ticks,
}

impl StreamKernel {
    /// One that copies `from` by this port, the first burst of which is ready.
    #[must_use]
    pub fn new(spec: Spec, copy: StreamCopy, port: usize, from: Vec<u64>) -> StreamKernel {
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
            issued_at: Ticks::ZERO,
            made_at: Ticks::ZERO,
            ended: Ticks::ZERO,
        };
        kernel.issue(0);
        kernel
    }

    /// What it has copied so far.
    #[must_use]
    pub fn copied(&self) -> &[u64] {
        &self.to
    }

    fn step_words(&self, step: u64) -> u64 {
        self.copy.step_words(step, self.spec.words)
    }

    /// Issues steps from `first` on that are a burst; all that it may need of made steps is known by now.
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
        // Room for all of it: what was taken longest ago that has to be.
        let mut room_at = Ticks::ZERO;
        let over = (self.asked_words + words).saturating_sub(self.spec.unit_words);
        while let Some((loaded, at)) = self.taken.front() {
            room_at = *at;
            if *loaded >= over {
                break;
            }
            self.taken.pop_front();
        }
        if over > 0 {
            self.issued_at = self.issued_at.max(room_at.since(self.spec.interval));
        }
        let at = self.issued_at + self.spec.interval;
        self.issued_at += self.spec.interval * (step - first);
        self.asked_words += words;
        self.loads = Some(Burst { at, words, steps: first..step });
    }

    /// Makes the steps of a burst whose first word is here at `first_at`.
    fn make(&mut self, burst: &Burst, first_at: Ticks, word: Ticks) {
        let mut words = 0;
        for step in burst.steps.clone() {
            let more = self.step_words(step);
            words += more;
            // A step whose words the one before has left waits for that one only.
            let arrived = first_at + word * words.saturating_sub(1);
            self.made_at = (self.made_at + self.spec.interval).max(arrived);
            self.gather_store(step, more);
        }
        self.taken.push_back((self.asked_words, self.made_at));
        if burst.steps.end == self.copy.steps() {
            self.stores.extend(self.gathered.take());
        }
    }

    fn gather_store(&mut self, step: u64, words: u64) {
        let at = self.made_at + self.spec.depth;
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

impl Pipeline for StreamKernel {
    fn ports(&self) -> &[usize] {
        std::slice::from_ref(&self.port)
    }

    fn next_at(&mut self) -> Ticks {
        let store = self.stores.front().map(|burst| burst.at);
        self.loads.as_ref().map(|burst| burst.at).into_iter().chain(store).min().unwrap_or(Ticks::NEVER)
    }

    fn run_until(&mut self, ports: &mut [MemoryPort], before: Ticks) {
        loop {
            let at = self.next_at();
            if at >= before {
                return;
            }
            let port = &mut ports[self.port];
            if let Some(burst) = self.loads.take_if(|burst| burst.at == at) {
                let (first_at, word) = (port.load(at, burst.words), port.spec().word);
                self.make(&burst, first_at, word);
                self.issue(burst.steps.end);
            } else if let Some(burst) = self.stores.pop_front() {
                self.ended = port.store(at, burst.words);
                let vector = u64::from(self.copy.vector_words);
                let words =
                    (burst.steps.start * vector) as usize..((burst.steps.end * vector).min(self.copy.count())) as usize;
                self.to[words.clone()].copy_from_slice(&self.from[words]);
            }
        }
    }

    fn ended(&self) -> Ticks {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memory_port, pipeline};
    use lanemark_compute::PortWords;

    fn ns(ns: u64) -> Ticks {
        Ticks::whole_ns(ns)
    }

    /// When a copy of so many words is over, one of 8 B a step; a port of that width takes 2 ns for one.
    fn copied(words: u64, unit_words: u64, burst_words: u64, turnaround: Ticks) -> Ticks {
        let memory = memory_port::Spec { word: ns(2), read: ns(10), turnaround };
        let words_of = PortWords { port_bytes: 8, keeps: false };
        let (interval, depth, addition) = (ns(1), ns(5), ns(1));
        let spec = Spec { interval, depth, addition, unit_words, burst_words, words: words_of };
        let copy = StreamCopy { first_port: 0, ports: 1, bytes_per_port: 8 * words, stride_bytes: 8, vector_words: 1 };
        let mut kernels = [StreamKernel::new(spec, copy, 0, (1..=words).collect())];
        let ended = pipeline::run(&mut kernels, &mut [MemoryPort::new(memory)]);
        assert!(kernels[0].copied().iter().copied().eq(1..=words));
        ended
    }

    #[test]
    fn each_word_is_stored_when_it_has_come_and_the_port_is_free() {
        // Asked for at 1, here at 13, made, stored from 18 to 40; the second one is made at 15, and stored from 40 on.
        assert_eq!(copied(1, 8, 1, ns(20)), ns(40));
        assert_eq!(copied(2, 8, 1, ns(20)), ns(62));
        // Of one burst the bus is turned round once: here at 13 and 15, stored from 20 on.
        assert_eq!(copied(2, 8, 2, ns(20)), ns(20 + 20 + 4));
    }

    #[test]
    fn a_unit_with_room_for_one_word_waits_for_each() {
        // Two have come at 13 and 15, or the second one, asked for when the first is made, at 25.
        assert_eq!(copied(2, 8, 1, ns(0)), ns(22));
        assert_eq!(copied(2, 1, 1, ns(0)), ns(25 + 5 + 2));
    }
}
