//! Devices behind runtimes of this machine.

use crate::cancel::Cancel;
use crate::error::RunError;
use crate::input::read_file;
use crate::open_target::OpenTarget;
use crate::setup::Setup;
use lanemark_hw::opencl::{Device, FinishedKernels, OpenClError, OpenClMachine, vendors};
use lanemark_hw::sycl::{SyclError, SyclMachine};
use lanemark_record::Software;

/// The longest file of kernels: a bitstream of a large FPGA has 100 MiB.
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

/// The devices behind runtimes of this machine.
pub struct Runtimes {
    /// The devices that could be opened.
    pub targets: Vec<OpenTarget>,
    /// Why others could not, a sentence each.
    pub refused: Vec<String>,
}

/// Opens every device behind a runtime of this machine.
#[must_use]
pub fn runtimes(cancel: &Cancel) -> Runtimes {
    let mut all = Runtimes { targets: Vec::new(), refused: Vec::new() };
    for number in 0.. {
        match OpenClMachine::open(number, cancel.flag()) {
            Ok(machine) => all.targets.push(OpenTarget::of_runtime(Box::new(machine), None, Vec::new())),
            Err(OpenClError::NoDevice { .. }) => break,
            // This device's own trouble; the next may have none.
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

/// The kernels that the user names, and a sentence that the target was given them.
fn kernels(target: &str, setup: &Setup) -> Result<(Option<FinishedKernels>, Vec<String>), RunError> {
    let Some(path) = &setup.kernels else { return Ok((None, Vec::new())) };
    let bytes = read_file(path, LONGEST_KERNELS).map_err(|source| RunError::Kernels { path: path.clone(), source })?;
    let file = path.display().to_string();
    let note = format!("{target}: its kernels are those of {file}");
    Ok((Some(FinishedKernels { file, bytes }), vec![note]))
}

/// Runtimes that are installed and that loaders skip without a message: one of them may be the one that was meant.
fn left_out() -> Vec<String> {
    let broken = vendors().into_iter().filter(|vendor| vendor.problem.is_some());
    broken.map(|vendor| format!("a runtime of OpenCL is left out: {vendor}")).collect()
}

/// What a runtime reports of itself and of its device.
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
