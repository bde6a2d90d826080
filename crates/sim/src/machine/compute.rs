//! Plans in which kernels on the card compute: their execution time, without launches.

use super::SimulatedMachine;
use super::waits::{MOST_PASSES, Waits};
use lanemark_device_kernels as kernels;
use lanemark_machine::{Cause, Compute, Confirmed, MachineError, PathShare, Plan, Sample, Unsupported};
use lanemark_platform::{DeviceMemory, Kernel, Platform};
use lanemark_units::Ticks;
use std::sync::atomic::Ordering;

fn sections(platform: &Platform) -> Option<(&DeviceMemory, &Kernel)> {
    Some((platform.device_memory.as_ref()?, platform.kernel.as_ref()?))
}

impl SimulatedMachine {
    pub(super) fn check_compute(&self, compute: &Compute) -> Result<(), Unsupported> {
        let refused = |because: String| Err(self.unsupported("kernels that compute", because));
        let Some((memory, kernel)) = sections(&self.platform) else {
            return refused("its platform file has no sections [device_memory] and [kernel]".to_owned());
        };
        kernels::refused(memory, kernel, &compute.work).map_or(Ok(()), refused)
    }

    /// Executes a work `passes` times; every iteration is the same.
    pub(super) fn run_compute(
        &mut self,
        plan: &Plan,
        compute: &Compute,
        passes: u64,
    ) -> Result<(Sample, Waits), MachineError> {
        let Some((memory, kernel)) = sections(&self.platform) else {
            return Err(self.unsupported("kernels that compute", "its card has none").into());
        };
        let flag = self.interrupted.as_ref();
        let mut stop = || flag.is_some_and(|flag| flag.load(Ordering::Relaxed));
        let Some(done) = kernels::compute(memory, kernel, &compute.work, &mut stop) else {
            return Err(MachineError::Interrupted { machine: self.facts.name.clone() });
        };
        let span = Ticks(done.span.0.saturating_mul(passes.min(MOST_PASSES)));
        if span > plan.timeout {
            let (machine, waiting_for) = (self.facts.name.clone(), Cause::Compute.explanation().to_owned());
            return Err(MachineError::Timeout { machine, after: plan.timeout, waiting_for });
        }
        self.computed = Some(Confirmed { claimed_bytes: done.claimed_bytes, confirmed_bytes: done.confirmed_bytes });
        self.board.run_until(self.board.now() + span);
        let mut waits = [Ticks::ZERO; Cause::ALL.len()];
        waits[Cause::Compute.index()] = span;
        self.path = vec![PathShare { place: "card".to_owned(), cause: Cause::Compute, is_latency: false, span }];
        Ok((Sample { issue: span, delivered: span }, waits))
    }
}
