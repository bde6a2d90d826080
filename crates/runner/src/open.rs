//! Opening of targets.

use crate::cancel::Cancel;
use crate::card;
use crate::error::RunError;
use crate::open_target::{Kind, OpenTarget};
use crate::platform::platform;
use crate::runtime::{open_cl, open_sycl};
use crate::setup::Setup;
use crate::target::Target;
use lanemark_hw::HostMemory;
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;

impl Target {
    /// Opens the target. Setting `cancel` ends its long measurements.
    ///
    /// # Errors
    /// [`RunError`] if the target is absent, its file is invalid, or `setup` does not apply to it.
    pub fn open(&self, setup: &Setup, cancel: &Cancel) -> Result<OpenTarget, RunError> {
        setup.changes.check(self)?;
        let platform = match self {
            Target::Host => {
                let host = HostMemory::open().map_err(RunError::Host)?;
                return Ok(OpenTarget::of_memory(Box::new(host.interrupted_by(cancel.flag()))));
            }
            Target::OpenCl(number) => return open_cl(*number, setup, cancel),
            Target::Sycl(number) => return open_sycl(*number, setup, cancel),
            Target::Card(address) => {
                let (machine, card) = card::open(*address, &setup.card, cancel)?;
                return Ok(OpenTarget { machine, kind: Kind::Card(Box::new(card)), notes: Vec::new() });
            }
            Target::Named(name) => platform(name)?,
            Target::Platform(platform) => Platform::clone(platform),
        };
        let (platform, differences) = setup.changes.apply(&platform)?;
        let machine = SimulatedMachine::new(&platform)?.interrupted_by(cancel.flag());
        let machine = if setup.no_fast_forward { machine.in_detail() } else { machine };
        Ok(OpenTarget { notes: differences, ..OpenTarget::of_simulation(platform, machine) })
    }
}
