//! A runtime with known times, for tests.

use lanemark_machine::{
    Allocation, DeviceKind, Facts, LaunchBy, Machine, MachineError, Plan, QueueRequest, RuntimeFacts, Sample, Samples,
    TimeBase, Unsupported,
};
use lanemark_units::Ticks;

/// Facts of a runtime with these kinds of memory.
pub(crate) fn facts(allocations: &[Allocation]) -> Facts {
    Facts {
        name: "a runtime".to_owned(),
        summary: String::new(),
        time_base: TimeBase::Real,
        cores: 1,
        regions: vec![],
        memory_types: vec![],
        stores: vec![],
        loads: vec![],
        memcpy: String::new(),
        dma: None,
        driver_width: None,
        tables: vec![],
        disciplines: vec![],
        line_sources: vec![],
        runtime: Some(RuntimeFacts {
            kind: DeviceKind::Accelerator,
            is_emulated: false,
            allocations: allocations.to_vec(),
            launches: vec![LaunchBy::Calls],
            small_copies: Vec::new(),
            memory_ports: 1,
            computes: false,
        }),
    }
}

/// A launch takes 5 us, plus 300 ns per buffer argument. A copy takes 1 us, plus 0.1 ns per byte.
pub(crate) struct Runtime {
    facts: Facts,
}

impl Runtime {
    pub(crate) fn new(allocations: &[Allocation]) -> Runtime {
        Runtime { facts: facts(allocations) }
    }
}

impl Machine for Runtime {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, _: &Plan) -> Result<(), Unsupported> {
        Ok(())
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        samples.clear();
        let ns = match plan.work.request() {
            Some(QueueRequest::Launch(launch)) if launch.arguments.allocation == Allocation::Buffer => {
                5000 + 300 * u64::from(launch.arguments.count)
            }
            Some(QueueRequest::Launch(_)) => 5000,
            Some(QueueRequest::Copy(moved)) => 1000 + moved.bytes / 10,
            Some(QueueRequest::SmallCopies(copies)) => 1000 + copies.bytes_in_all() / 10,
            Some(QueueRequest::Compute(_)) | None => 0,
        };
        let time = Ticks::whole_ns(ns * plan.passes);
        while samples.wants_more() {
            samples.keep(Sample { issue: time, delivered: time }, None);
        }
        Ok(())
    }
}
