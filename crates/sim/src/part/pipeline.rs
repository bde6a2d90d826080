//! What kernels on a card have in common: their clock, their units, and the order in which several of them ask ports of memory.

use crate::part::memory_port::MemoryPort;
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
    /// When it asks next; never where it is over.
    fn next_at(&mut self) -> Ticks;

    /// Asks for everything that it asks for before this time.
    fn run_until(&mut self, ports: &mut [MemoryPort], before: Ticks);

    /// When it was over.
    fn ended(&self) -> Ticks;
}

/// Runs kernels to their end, which is said; where ports are shared, all ask in the order of time, at one time in the order given.
pub fn run<P: Pipeline>(kernels: &mut [P], ports: &mut [MemoryPort], are_shared: bool) -> Ticks {
    if are_shared {
        in_order(kernels, ports);
    } else {
        for kernel in kernels.iter_mut() {
            kernel.run_until(ports, Ticks::NEVER);
        }
    }
    kernels.iter().map(Pipeline::ended).max().unwrap_or(Ticks::ZERO)
}

fn in_order<P: Pipeline>(kernels: &mut [P], ports: &mut [MemoryPort]) {
    let mut next: Vec<Ticks> = kernels.iter_mut().map(Pipeline::next_at).collect();
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
