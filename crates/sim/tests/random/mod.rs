//! Random platforms and plans from a seed.

#![allow(dead_code)] // Each test binary uses its part.

use crate::stage;
use lanemark_machine::{Access, DriverCall, Fence, Lane, Machine, Plan, Span, Step, Stream, Task, Verb, Width};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;
use lanemark_units::{MemoryType, Ticks};

/// A linear congruential generator: the same seed gives the same numbers on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5555);
        random.below(2);
        random
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// The stage's platform with some random numbers.
    pub fn platform(&mut self) -> Platform {
        let policy = self.pick(&["8B", "dw", "contiguous"]);
        let mut changes = Vec::new();
        for (key, values) in [
            ("core.wc_buffers", [1.0, 2.0, 6.0, 16.0]),
            ("core.store_buffer_entries", [1.0, 3.0, 8.0, 64.0]),
            ("core.wc_loads_in_flight", [1.0, 2.0, 3.0, 8.0]),
            ("core.streaming_load_buffers", [0.0, 1.0, 2.0, 8.0]),
            ("core.fill_buffers", [1.0, 2.0, 4.0, 10.0]),
            ("core.cached_lines", [1.0, 2.0, 8.0, 512.0]),
            ("core.clock_ghz", [0.5, 1.0, 3.3, 5.0]),
            ("root_complex.core_round_trip_ns", [0.0, 7.0, 100.0, 300.0]),
            ("root_complex.posted_queue_entries", [1.0, 2.0, 8.0, 64.0]),
            ("link.width_lanes", [1.0, 4.0, 8.0, 16.0]),
            ("link.generation", [1.0, 2.0, 3.0, 5.0]),
            ("link.latency_ns", [0.0, 10.0, 100.0, 500.0]),
            ("link.posted_header_credits", [1.0, 2.0, 8.0, 127.0]),
            ("link.posted_data_credits", [8.0, 11.0, 32.0, 2047.0]),
            ("link.nonposted_header_credits", [1.0, 2.0, 8.0, 127.0]),
            ("region.sram.beat_ns", [0.0, 1.0, 10.0, 90.0]),
            ("region.sram.beat_bytes", [1.0, 8.0, 64.0, 128.0]),
        ] {
            if self.below(2) == 0 {
                changes.push((key, self.pick(&values)));
            }
        }
        stage::platform(policy, &changes)
    }

    /// A range of SRAM or DDR at any offset, a few lines at most.
    pub fn span(&mut self, access: Access) -> Span {
        let kind = self.pick(&[MemoryType::Uc, MemoryType::Wc, MemoryType::Wc, MemoryType::Wt, MemoryType::Wp]);
        let align = access.width().map_or(1, Width::bytes);
        let align =
            if self.below(2) == 0 || matches!(access, Access::NonTemporal(_) | Access::Movdir64b) { align } else { 1 };
        let offset = self.below(1024).next_multiple_of(align);
        let len = self.pick(&[1_u64, 3, 8, 16, 64, 64, 100, 256, 512, 1000, 2100]);
        let len = if access == Access::Movdir64b { len.next_multiple_of(64) } else { len };
        stage::span(self.pick(&["sram", "ddr"]), kind, offset, len)
    }

    pub fn access(&mut self, machine: &SimulatedMachine, verb: Verb) -> Access {
        self.pick(machine.facts().accesses(verb))
    }
}

/// Returns a plan of one or two lanes with a few steps each.
pub fn plan(random: &mut Random, machine: &SimulatedMachine) -> Plan {
    let lanes = 1 + random.below(2) as u32;
    let lanes = (0..lanes)
        .map(|core| Lane { core, task: Task::Steps((0..=random.below(4)).map(|_| step(random, machine)).collect()) })
        .collect::<Vec<Lane>>();
    let passes = 1 + random.below(4);
    let timeout = Ticks::whole_ns(10_000_000_000);
    Plan { warmup_passes: random.below(2), timeout, ..Plan::new(lanes, passes) }
}

fn step(random: &mut Random, machine: &SimulatedMachine) -> Step {
    let verb = random.pick(&[Verb::Store, Verb::Store, Verb::Load]);
    let access = random.access(machine, verb);
    let span = random.span(access);
    match random.below(8) {
        0 => Step::Fence(random.pick(&Fence::ALL)),
        1 => Step::FlushLines(span),
        2 => Step::Driver(DriverCall { verb, span, call_bytes: random.pick(&[1, 64, 300]), width: Width::B8 }),
        3 => Step::Pause(Ticks(random.below(1_000_000))),
        _ => {
            let fence_each = (random.below(4) == 0).then(|| random.pick(&Fence::ALL));
            Step::Stream(Stream { fence_each, ..Stream::over(verb, access, span) })
        }
    }
}

/// Returns whether a step is a stream of stores.
pub fn only_stores(step: &Step) -> bool {
    matches!(step, Step::Stream(Stream { verb: Verb::Store, .. }))
}
