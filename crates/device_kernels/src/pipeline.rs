//! The common part of kernels on a card: clock, load and store units, and the arbitration of shared memory ports.

use crate::kernel_time::KernelTime;
use crate::memory_port::MemoryPort;
use lanemark_compute::PortWords;
use lanemark_platform::{DeviceMemory, Kernel};
use lanemark_units::Ticks;

/// Constants of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Initiation interval: from one iteration of a loop to the next.
    pub interval: Ticks,
    /// Pipeline depth: from the last operand of an iteration to its store.
    pub depth: Ticks,
    /// Latency of an addition: from one addition to the next one of the same sum.
    pub addition: Ticks,
    /// Capacity of a load unit: words requested and not yet used.
    pub unit_words: u64,
    /// Words of a burst of a load or store unit.
    pub burst_words: u64,
    /// Word sizes, and whether a word keeps several elements.
    pub words: PortWords,
}

impl Spec {
    /// Reads the constants of a platform with both sections, for one of `kernels` kernels on the card.
    #[must_use]
    pub fn new(memory: &DeviceMemory, kernel: &Kernel, kernels: u32) -> Spec {
        let cycles = |count| kernel.cycles(count, kernels);
        Spec {
            interval: cycles(kernel.interval_cycles.value),
            depth: cycles(kernel.pipeline_cycles.value),
            addition: cycles(kernel.addition_cycles.value),
            unit_words: kernel.unit_words.value.into(),
            burst_words: kernel.burst_words.value.into(),
            words: PortWords { port_bytes: memory.port_bytes.value, keeps: kernel.keeps_words.value },
        }
    }
}

/// A kernel that issues requests to memory ports.
pub trait Pipeline {
    /// Type of its instants.
    type Time: KernelTime;

    /// Returns the memory ports it uses, by number.
    fn ports(&self) -> &[usize];

    /// Returns the time of its next request; [`Ticks::NEVER`] once it has ended.
    fn next_at(&mut self) -> Ticks;

    /// Issues every request that is due before `before`.
    fn run_until(&mut self, ports: &mut [MemoryPort<Self::Time>], before: Ticks);

    /// Returns its end time.
    fn ended(&self) -> Self::Time;
}

/// Runs kernels to their end and returns the latest end time. Kernels that share a port issue in time order; ties go
/// to the first in the list.
pub fn run<P: Pipeline>(kernels: &mut [P], ports: &mut [MemoryPort<P::Time>]) -> P::Time {
    for mut sharing in sharing(kernels, ports.len()) {
        if let [alone] = &mut sharing[..] {
            alone.run_until(ports, Ticks::NEVER);
        } else {
            in_order(&mut sharing, ports);
        }
    }
    kernels.iter().map(Pipeline::ended).fold(P::Time::ZERO, KernelTime::later)
}

/// Groups kernels that share memory ports, directly or through a third kernel.
fn sharing<P: Pipeline>(kernels: &mut [P], ports: usize) -> Vec<Vec<&mut P>> {
    // The first kernel of the group that uses each port.
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

fn in_order<P: Pipeline>(kernels: &mut [&mut P], ports: &mut [MemoryPort<P::Time>]) {
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
        // At equal times, kernels first in the list issue first.
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
        type Time = Ticks;

        fn ports(&self) -> &[usize] {
            &self.0
        }

        fn next_at(&mut self) -> Ticks {
            Ticks::NEVER
        }

        fn run_until(&mut self, _: &mut [MemoryPort<Ticks>], _: Ticks) {}

        fn ended(&self) -> Ticks {
            Ticks::ZERO
        }
    }

    #[test]
    fn kernels_are_grouped_if_they_share_ports_directly_or_through_another_kernel() {
        let ports = [vec![0, 1], vec![2], vec![3, 4], vec![5, 6], vec![4, 5], vec![1, 1]];
        let mut kernels = ports.map(Asks);
        let together: Vec<Vec<Vec<usize>>> =
            sharing(&mut kernels, 7).iter().map(|all| all.iter().map(|kernel| kernel.0.clone()).collect()).collect();
        assert_eq!(together, [vec![vec![0, 1], vec![1, 1]], vec![vec![2]], vec![vec![3, 4], vec![5, 6], vec![4, 5]]]);
    }
}
