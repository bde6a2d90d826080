//! Plans in which kernels on the card compute: their execution time, without launches.

use super::SimulatedMachine;
use super::waits::{MOST_PASSES, Waits};
use lanemark_device_kernels::{self as kernels, Computed, KernelPath, KernelTime, Traced};
use lanemark_machine::{Cause, Compute, Confirmed, MachineError, Plan, Sample, Unsupported};
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
        let compute_once = if self.board.records_path() { compute_once::<Traced> } else { compute_once::<Ticks> };
        let Some(done) = compute_once(memory, kernel, compute, &mut stop) else {
            return Err(MachineError::Interrupted { machine: self.facts.name.clone() });
        };
        let passes = passes.min(MOST_PASSES);
        let span = Ticks(done.span.0.saturating_mul(passes));
        if span > plan.timeout {
            let (machine, waiting_for) = (self.facts.name.clone(), Cause::Compute.explanation().to_owned());
            return Err(MachineError::Timeout { machine, after: plan.timeout, waiting_for });
        }
        self.computed = Some(done.confirmed);
        self.port_busy = Some(done.port_busy * passes);
        self.board.run_until(self.board.now() + span);
        let mut waits = [Ticks::ZERO; Cause::ALL.len()];
        match done.path {
            Some(path) => self.path = self.board.path_of_kernels(&path, passes),
            None => waits[Cause::Compute.index()] = span,
        }
        self.path.iter().for_each(|share| waits[share.cause.index()] += share.span);
        Ok((Sample { issue: span, delivered: span }, waits))
    }
}

/// The outcome of one iteration.
struct Done {
    span: Ticks,
    path: Option<KernelPath>,
    port_busy: Ticks,
    confirmed: Confirmed,
}

fn compute_once<T: KernelTime>(
    memory: &DeviceMemory,
    kernel: &Kernel,
    compute: &Compute,
    stop: &mut dyn FnMut() -> bool,
) -> Option<Done> {
    let Computed { ended, port_busy, claimed_bytes, confirmed_bytes } =
        kernels::compute::<T>(memory, kernel, &compute.work, stop)?;
    let confirmed = Confirmed { claimed_bytes, confirmed_bytes };
    Some(Done { span: ended.ticks(), path: ended.path(), port_busy, confirmed })
}
