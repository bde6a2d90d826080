//! One sample of one operation on a new simulated machine.

use lanemark_machine::{Machine, MachineError, Placement, Plan, QueueRequest, QueueWork, Samples, Work};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;

/// Makes a request once on `core` of a new machine, and returns the machine and the samples.
pub(crate) fn sample(
    platform: &Platform,
    core: u32,
    request: QueueRequest,
) -> Result<(SimulatedMachine, Samples), String> {
    let mut machine = SimulatedMachine::new(platform).map_err(|error| error.to_string())?;
    let samples = again(&mut machine, core, request).map_err(|error| error.to_string())?;
    Ok((machine, samples))
}

/// Makes a request once on `core` of a machine that may have run others.
pub(crate) fn again(machine: &mut SimulatedMachine, core: u32, request: QueueRequest) -> Result<Samples, MachineError> {
    let plan = Plan::new(QueueWork { core, placement: Placement::Pinned, request }, 1);
    let mut samples = Samples::wanted(1);
    machine.run(&plan, &mut samples)?;
    Ok(samples)
}

/// Time of the first sample until delivery, in ns.
pub(crate) fn delivered_ns(samples: &Samples) -> Result<f64, String> {
    samples.taken.first().map(|sample| sample.delivered.as_ns()).ok_or_else(|| "no sample was taken".to_owned())
}

/// Time of a request until delivery after one warm-up iteration, in ns.
pub(crate) fn warm_ns(platform: &Platform, request: impl Into<Work>) -> Result<f64, String> {
    let mut machine = SimulatedMachine::new(platform).map_err(|error| error.to_string())?;
    let mut samples = Samples::wanted(1);
    let plan = Plan { warmup_passes: 1, ..Plan::new(request, 1) };
    machine.run(&plan, &mut samples).map_err(|error| error.to_string())?;
    samples.taken.first().map(|sample| sample.delivered.as_ns()).ok_or_else(|| "no sample was taken".to_owned())
}
