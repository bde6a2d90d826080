//! Opening of targets.

use crate::cancel::Cancel;
use crate::card::{self, OpenCard};
use crate::changes::Changes;
use crate::error::RunError;
use crate::gpu;
use crate::open_target::{Kind, OpenTarget};
use crate::platform::platform;
use crate::rtl;
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
        if let Target::Changed { of, with } = self {
            return open_changed(of, with, setup, cancel);
        }
        let platform = match self {
            Target::Host => {
                let host = HostMemory::open().map_err(RunError::Host)?;
                return Ok(OpenTarget::of_memory(Box::new(host.interrupted_by(cancel.flag()))));
            }
            Target::OpenCl(number) => return open_cl(*number, setup, cancel),
            Target::Sycl(number) => return open_sycl(*number, setup, cancel),
            Target::Cuda(number) => {
                let (machine, gpu, notes) = gpu::open(*number, cancel)?;
                let kind = Kind::Gpu(Box::new(gpu));
                return Ok(OpenTarget { machine: Box::new(machine), kind, notes, with: Vec::new() });
            }
            Target::Card(address) => {
                let OpenCard { machine, card, notes } = card::open(*address, &setup.card, cancel)?;
                return Ok(OpenTarget { machine, kind: Kind::Card(Box::new(card)), notes, with: Vec::new() });
            }
            Target::Nvme(path) => {
                let OpenCard { machine, card, notes } = card::open_drive(path, &setup.card, cancel)?;
                return Ok(OpenTarget { machine, kind: Kind::Card(Box::new(card)), notes, with: Vec::new() });
            }
            Target::Xdma(path) => {
                let OpenCard { machine, card, notes } = card::open_xdma(path, &setup.card, cancel)?;
                return Ok(OpenTarget { machine, kind: Kind::Card(Box::new(card)), notes, with: Vec::new() });
            }
            Target::Rtl(path) => return rtl::open(path, setup, cancel),
            Target::Named(name) => platform(name)?,
            Target::Platform(platform) => Platform::clone(platform),
            // Returned above.
            Target::Changed { of, .. } => platform(&of.to_string())?,
        };
        let (platform, differences) = setup.changes.apply(&platform)?;
        let machine = SimulatedMachine::new(&platform)?.interrupted_by(cancel.flag());
        let machine = if setup.no_fast_forward { machine.in_detail() } else { machine };
        Ok(OpenTarget { notes: differences, ..OpenTarget::of_simulation(platform, machine) })
    }
}

/// Opens `of` with more changed keys, which become a part of its name.
fn open_changed(
    of: &Target,
    with: &[(String, String)],
    setup: &Setup,
    cancel: &Cancel,
) -> Result<OpenTarget, RunError> {
    let own = Changes { with: with.to_vec(), ..Changes::default() };
    own.check(of)?;
    let mut changed = match of {
        Target::Named(name) => platform(name)?,
        Target::Platform(platform) => Platform::clone(platform),
        // Real targets are refused above.
        Target::Changed { .. }
        | Target::Host
        | Target::OpenCl(_)
        | Target::Sycl(_)
        | Target::Cuda(_)
        | Target::Card(_)
        | Target::Nvme(_)
        | Target::Xdma(_)
        | Target::Rtl(_) => {
            return of.open(setup, cancel);
        }
    };
    changed.name = with.iter().fold(changed.name, |name, (key, value)| format!("{name}, {key}={value}"));
    // All keys together: a value may be valid only with another one.
    let mut setup = setup.clone();
    setup.changes.with.extend_from_slice(with);
    let opened = Target::Platform(Box::new(changed)).open(&setup, cancel)?;
    Ok(OpenTarget { with: with.to_vec(), ..opened })
}
