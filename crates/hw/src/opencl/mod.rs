//! Devices behind an OpenCL runtime: what a launch costs there, and what it is to move bytes.
//!
//! Such a device is no function of PCIe: it offers a queue, and no BARs. What it is asked for is a [`Launch`](lanemark_machine::Launch), a copy
//! ([`MovedByRuntime`](lanemark_machine::MovedByRuntime)) or kernels that [`Compute`](lanemark_machine::Compute); every other plan is refused by name.
//!
//! | file | holds |
//! | --- | --- |
//! | `api` | the functions, found in the loader's library when they are first needed |
//! | `vendors` | which runtimes are installed, and why one of them is not listed |
//! | `device` | [`Device`]: what there is |
//! | `finished` | [`FinishedKernels`]: what boards are given that have no compiler |
//! | `status` | what calls say that fail, by name |
//! | `context` | a device that is open: how much memory, which extensions |
//! | `usm`, `ports` | two of those extensions: memory with an address, and memory behind a port that a program chooses |
//! | `memory`, `program`, `commands` | what everything below is made of: pieces of memory, kernels, queues |
//! | `launches` | a kernel that does nothing, and what it is given |
//! | `copies` | memory of the program, memory of the device, and copies between them |
//! | `workers` | kernels that compute, each with a queue of its own |
//! | `queue` | all that is made on one device |
//! | `machine` | [`OpenClMachine`]: opening one, running a plan |
//!
//! Verified on: PoCL 3.1 (Debian 12) behind ocl-icd 2.3.1; Intel's runtime for its processors and its emulation of an FPGA, 2025.0.5.

mod api;
mod device;
mod finished;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[path = "unsupported.rs"]
mod machine;
mod status;
mod vendors;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod commands;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod context;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod copies;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod launches;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod memory;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod ports;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod program;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod queue;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod usm;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod workers;

pub use device::Device;
pub use finished::FinishedKernels;
pub use machine::OpenClMachine;
pub use status::Status;
pub use vendors::{Vendor, vendors};

use crate::NoHostMemory;
use lanemark_units::format_size;
use std::path::{Path, PathBuf};

/// Why there is no device to ask, or why it does not do what it is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenClError {
    /// No library that finds runtimes.
    #[error("there is no OpenCL on this machine: {0}; a free one: apt-get install ocl-icd-libopencl1 pocl-opencl-icd")]
    NoLoader(String),
    /// The loader has not got a function that every OpenCL has.
    #[error("the OpenCL loader of this machine has no function {0}")]
    NoFunction(&'static str),
    /// No runtime has a device.
    #[error("no OpenCL runtime has a device; installed: {}{}", installed(.vendors, .folder), and(.refused))]
    Nothing {
        /// Where runtimes were looked for.
        folder: PathBuf,
        /// Runtimes that are installed.
        vendors: Vec<Vendor>,
        /// What runtimes said that would not answer.
        refused: Vec<String>,
    },
    /// No device has this number.
    #[error("there is no opencl:{number}; there are {}{}", list(.devices), and(.refused))]
    NoDevice {
        /// The number.
        number: usize,
        /// What there is.
        devices: Vec<Device>,
        /// What runtimes said that would not answer.
        refused: Vec<String>,
    },
    /// A call into a runtime has not come back.
    #[error(
        "a call into an OpenCL runtime has not come back for {seconds} s; to leave one out, name the others with OCL_ICD_VENDORS"
    )]
    Late {
        /// How long it was waited for.
        seconds: u64,
    },
    /// Somebody asked for an end.
    #[error("interrupted")]
    Interrupted,
    /// The runtime would not.
    #[error("{doing}: {status}")]
    Refused {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        status: Status,
    },
    /// There is not so much memory.
    #[error(
        "no memory for {}: {because}; the device says that it has {}, and at most {} in one piece: ask for less",
        format_size(*.bytes), format_size(*.device_bytes), format_size(*.piece_bytes)
    )]
    NoMemory {
        /// What was asked for.
        bytes: u64,
        /// What the runtime said, or why it was not asked.
        because: String,
        /// All that the device has (`CL_DEVICE_GLOBAL_MEM_SIZE`).
        device_bytes: u64,
        /// The longest piece (`CL_DEVICE_MAX_MEM_ALLOC_SIZE`).
        piece_bytes: u64,
    },
    /// The machine has not so much memory for the program.
    #[error(transparent)]
    NoHostMemory(#[from] NoHostMemory),
    /// A device that is listed cannot be opened.
    #[error(
        "{device} cannot be opened: {doing}: {status}; look whether another program has it, or whether it wants a reset or another bitstream"
    )]
    NotOpened {
        /// Which.
        device: String,
        /// What was being done.
        doing: &'static str,
        /// What the runtime said.
        status: Status,
    },
    /// The system would not.
    #[error("{0}")]
    System(String),
    /// A device has no compiler, and was given no kernels.
    #[error(
        "{device} builds no kernels ({status}), as boards do whose vendor has a compiler of its own: build what 'lanemark kernels' prints with that, and name the file: lanemark bench --kernels FILE"
    )]
    NoCompiler {
        /// Which.
        device: String,
        /// What the runtime said.
        status: Status,
    },
    /// A device does not take the kernels that it was given.
    #[error(
        "{device} does not take the kernels of {file}: {status}; they are to be what its vendor's compiler made for this device of what 'lanemark kernels' prints{log}"
    )]
    NotTaken {
        /// Which device.
        device: String,
        /// Where they come from.
        file: String,
        /// What the runtime said.
        status: Status,
        /// What it said besides, in lines of its own; empty where that is nothing.
        log: String,
    },
    /// The kernels that a device was given lack one.
    #[error(
        "{file} has no kernel {name}: build it again with what 'lanemark kernels' prints, or ask what needs none of it"
    )]
    NoKernel {
        /// Where they come from.
        file: String,
        /// Which is wanted.
        name: String,
    },
    /// A kernel does not build.
    #[error("the kernel does not build for {device}: {status}\n{log}")]
    NotBuilt {
        /// For which device.
        device: String,
        /// What the call said.
        status: Status,
        /// What the compiler said.
        log: String,
    },
}

impl OpenClError {
    fn nothing(refused: Vec<String>) -> OpenClError {
        OpenClError::Nothing { folder: vendors::place(), vendors: vendors(), refused }
    }

    /// Beside what there is, what is installed and cannot be loaded: it may be what was meant.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn no_device(number: usize, devices: Vec<Device>, mut refused: Vec<String>) -> OpenClError {
        refused.extend(vendors().iter().filter(|vendor| vendor.problem.is_some()).map(ToString::to_string));
        OpenClError::NoDevice { number, devices, refused }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl From<crate::watchdog::GivenUp> for OpenClError {
    fn from(given_up: crate::watchdog::GivenUp) -> OpenClError {
        use crate::watchdog::GivenUp;
        match given_up {
            GivenUp::Late { seconds } => OpenClError::Late { seconds },
            GivenUp::Interrupted => OpenClError::Interrupted,
            GivenUp::NoThread(why) => OpenClError::System(why),
        }
    }
}

/// What the system said about a library: that is below what the error says of itself.
pub(crate) fn said(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Runtimes that are installed; where there is none, where it was looked and what to do.
fn installed(vendors: &[Vendor], folder: &Path) -> String {
    if !vendors.is_empty() {
        return list(vendors);
    }
    let folder = folder.display();
    format!(
        "none, for {folder} names none (OCL_ICD_VENDORS says where to look, otherwise it is {}); a free one: apt-get install pocl-opencl-icd",
        vendors::FOLDER
    )
}

/// What goes behind a list of what there is.
fn and(refused: &[String]) -> String {
    if refused.is_empty() { String::new() } else { format!("; not answering: {}", refused.join("; ")) }
}

fn list<T: std::fmt::Display>(all: &[T]) -> String {
    if all.is_empty() { "none".to_owned() } else { all.iter().map(T::to_string).collect::<Vec<_>>().join("; ") }
}
