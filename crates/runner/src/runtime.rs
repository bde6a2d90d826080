//! Runtime devices (OpenCL, SYCL) of this machine.

use crate::cancel::Cancel;
use crate::error::RunError;
use crate::input::read_file;
use crate::open_target::OpenTarget;
use crate::setup::Setup;
use lanemark_hw::opencl::{Device, FinishedKernels, OpenClError, OpenClMachine, vendors};
use lanemark_hw::sycl::{SyclError, SyclMachine};
use lanemark_record::Software;

/// Largest kernels file, in bytes: a bitstream of a large FPGA has 100 MiB.
const LONGEST_KERNELS: u64 = 1 << 30;

/// Opens `opencl:NUMBER`.
pub(crate) fn open_cl(number: usize, setup: &Setup, cancel: &Cancel) -> Result<OpenTarget, RunError> {
    let (kernels, mut notes) = kernels(&format!("opencl:{number}"), setup)?;
    let machine = OpenClMachine::open_with(number, kernels, cancel.flag())?;
    notes.extend(left_out());
    let software = software(machine.device());
    Ok(OpenTarget::of_runtime(Box::new(machine), Some(software), notes))
}

/// Opens `sycl:NUMBER`.
pub(crate) fn open_sycl(number: usize, setup: &Setup, cancel: &Cancel) -> Result<OpenTarget, RunError> {
    let (kernels, notes) = kernels(&format!("sycl:{number}"), setup)?;
    let machine = SyclMachine::open_with(number, kernels, cancel.flag())?;
    Ok(OpenTarget::of_runtime(Box::new(machine), None, notes))
}

/// Runtime devices of this machine.
pub struct Runtimes {
    /// Devices that were opened.
    pub targets: Vec<OpenTarget>,
    /// Reasons why other devices could not be opened, one sentence each.
    pub refused: Vec<String>,
}

/// Opens every runtime device of this machine.
#[must_use]
pub fn runtimes(cancel: &Cancel) -> Runtimes {
    let mut all = Runtimes { targets: Vec::new(), refused: Vec::new() };
    for number in 0.. {
        match OpenClMachine::open(number, cancel.flag()) {
            Ok(machine) => all.targets.push(OpenTarget::of_runtime(Box::new(machine), None, Vec::new())),
            Err(OpenClError::NoDevice { .. }) => break,
            // This error concerns one device; the next one may open.
            Err(error @ OpenClError::NotBuilt { .. }) => all.refused.push(format!("opencl:{number}: {error}")),
            Err(error @ (OpenClError::NotOpened { .. } | OpenClError::NoCompiler { .. })) => {
                all.refused.push(error.to_string());
            }
            Err(error) => {
                all.refused.push(error.to_string());
                break;
            }
        }
    }
    for number in 0.. {
        match SyclMachine::open(number, cancel.flag()) {
            Ok(machine) => all.targets.push(OpenTarget::of_runtime(Box::new(machine), None, Vec::new())),
            Err(SyclError::NoDevice { .. }) => break,
            Err(error) => {
                all.refused.push(error.to_string());
                break;
            }
        }
    }
    all
}

/// The user's kernels file, and a note for the record.
fn kernels(target: &str, setup: &Setup) -> Result<(Option<FinishedKernels>, Vec<String>), RunError> {
    let Some(path) = &setup.kernels else { return Ok((None, Vec::new())) };
    let bytes = read_file(path, LONGEST_KERNELS).map_err(|source| RunError::Kernels { path: path.clone(), source })?;
    let file = path.display().to_string();
    let note = format!("{target}: kernels from {file}");
    Ok((Some(FinishedKernels { file, bytes }), vec![note]))
}

/// Notes on installed runtimes that loaders skip silently; the user may have meant one of them.
fn left_out() -> Vec<String> {
    let broken = vendors().into_iter().filter(|vendor| vendor.problem.is_some());
    broken.map(|vendor| format!("an OpenCL runtime is skipped: {vendor}")).collect()
}

/// Version information of a runtime and its device.
fn software(device: &Device) -> Software {
    Software {
        platform_name: device.platform.clone(),
        platform_version: device.platform_version.clone(),
        device_name: device.name.clone(),
        device_version: device.version.clone(),
        driver_version: device.driver.clone(),
        loader_library: device.loader.clone(),
    }
}
