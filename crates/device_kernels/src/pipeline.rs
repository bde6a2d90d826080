//! What kernels on a card have in common: their clock, their units, and the order in which several of them ask ports of memory.

use crate::memory_port::MemoryPort;
use lanemark_compute::PortWords;
use lanemark_platform::{DeviceMemory, Kernel};
use lanemark_units::Ticks;

/// What never changes during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// From one step of a loop to the next.
    pub interval: Ticks,
    /// From the last operand of a step to its store.
    pub depth: Ticks,
    /// From an addition to the next one of the same sum.
    pub addition: Ticks,
    /// Words that a unit may have asked for and not used.
    pub unit_words: u64,
    /// Words that a unit gathers before it asks for them or stores them.
    pub burst_words: u64,
    /// How it uses words.
    pub words: PortWords,
}

impl Spec {
    /// That of a platform with both sections.
    #[must_use]
    pub fn new(memory: &DeviceMemory, kernel: &Kernel) -> Spec {
        Spec {
            interval: kernel.cycles(kernel.interval_cycles.value),
            depth: kernel.cycles(kernel.pipeline_cycles.value),
            addition: kernel.cycles(kernel.addition_cycles.value),
            unit_words: kernel.unit_words.value.into(),
            burst_words: kernel.burst_words.value.into(),
            words: PortWords { port_bytes: memory.port_bytes.value, keeps: kernel.keeps_words.value },
        }
    }
}

/// A kernel that asks ports for words.
pub trait Pipeline {
    /// The ports that it asks, by their number.
    fn ports(&self) -> &[usize];

    /// When it asks next; never where it is over.
    fn next_at(&mut self) -> Ticks;

    /// Asks for everything that it asks for before this time.
    fn run_until(&mut self, ports: &mut [MemoryPort], before: Ticks);

    /// When it was over.
    fn ended(&self) -> Ticks;
}

/// Runs kernels to their end, which is said. Those that share ports ask in the order of time, at one time in the order given.
pub fn run<P: Pipeline>(kernels: &mut [P], ports: &mut [MemoryPort]) -> Ticks {
    for mut sharing in sharing(kernels, ports.len()) {
        if let [alone] = &mut sharing[..] {
            alone.run_until(ports, Ticks::NEVER);
        } else {
            in_order(&mut sharing, ports);
        }
    }
    kernels.iter().map(Pipeline::ended).max().unwrap_or(Ticks::ZERO)
}

/// Kernels by whom they share a port with, by another one if need be.
fn sharing<P: Pipeline>(kernels: &mut [P], ports: usize) -> Vec<Vec<&mut P>> {
    // Of each port, the first kernel of those who share it.
    let mut first_of: Vec<Option<usize>> = vec![None; ports];
    for (place, kernel) in kernels.iter().enumerate() {
        let met: Vec<usize> = kernel.ports().iter().filter_map(|port| first_of[*port]).collect();
        let first = met.iter().copied().min().unwrap_or(place);
        for of in first_of.iter_mut().filter(|of| of.is_some_and(|of| met.contains(&of))) {
            *of = Some(first);
        }
        kernel.ports().iter().for_each(|port| first_of[*port] = Some(first));
    }
    let mut all: Vec<Vec<&mut P>> = kernels.iter().map(|_| Vec::new()).collect();
    for (place, kernel) in kernels.iter_mut().enumerate() {
        let first = kernel.ports().first().and_then(|port| first_of[*port]).unwrap_or(place);
        all[first].push(kernel);
    }
    all.retain(|sharing| !sharing.is_empty());
    all
}

fn in_order<P: Pipeline>(kernels: &mut [&mut P], ports: &mut [MemoryPort]) {
    let mut next: Vec<Ticks> = kernels.iter_mut().map(|kernel| kernel.next_at()).collect();
    loop {
        let (mut first, mut second) = ((Ticks::NEVER, usize::MAX), (Ticks::NEVER, usize::MAX));
        for (place, at) in next.iter().enumerate() {
            if *at < first.0 {
                (first, second) = ((*at, place), first);
            } else if *at < second.0 {
                second = (*at, place);
            }
        }
        let (at, place) = first;
        if at == Ticks::NEVER {
            return;
        }
        // At one time those that are first in the list ask first.
        let before = if place < second.1 && second.0 < Ticks::NEVER { Ticks(second.0.0 + 1) } else { second.0 };
        kernels[place].run_until(ports, before);
        next[place] = kernels[place].next_at();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Asks(Vec<usize>);

    impl Pipeline for Asks {
        fn ports(&self) -> &[usize] {
            &self.0
        }

        fn next_at(&mut self) -> Ticks {
            Ticks::NEVER
        }

        fn run_until(&mut self, _: &mut [MemoryPort], _: Ticks) {}

        fn ended(&self) -> Ticks {
            Ticks::ZERO
        }
    }

    #[test]
    fn kernels_go_together_with_all_they_share_a_port_with_even_by_another_one() {
        let ports = [vec![0, 1], vec![2], vec![3, 4], vec![5, 6], vec![4, 5], vec![1, 1]];
        let mut kernels = ports.map(Asks);
        let together: Vec<Vec<Vec<usize>>> =
            sharing(&mut kernels, 7).iter().map(|all| all.iter().map(|kernel| kernel.0.clone()).collect()).collect();
        assert_eq!(together, [vec![vec![0, 1], vec![1, 1]], vec![vec![2]], vec![vec![3, 4], vec![5, 6], vec![4, 5]]]);
    }
}
