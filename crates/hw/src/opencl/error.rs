//! Errors of OpenCL devices, and of the search for one.

use super::device::Device;
use super::status::Status;
use super::vendors::{FOLDER, Vendor, place, vendors};
use crate::NoHostMemory;
use lanemark_units::format_size;
use std::path::{Path, PathBuf};

/// Error of an OpenCL device or of the search for one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenClError {
    /// No OpenCL loader library.
    #[error(
        "no OpenCL on this machine: {0}; to install a free one: apt-get install ocl-icd-libopencl1 pocl-opencl-icd"
    )]
    NoLoader(String),
    /// The loader lacks a mandatory function.
    #[error("the OpenCL loader of this machine does not export {0}")]
    NoFunction(&'static str),
    /// No runtime has a device.
    #[error("no OpenCL runtime has a device; installed runtimes: {}{}", installed(.vendors, .folder), and(.refused))]
    Nothing {
        /// Folder that was searched for runtimes.
        folder: PathBuf,
        /// Installed runtimes.
        vendors: Vec<Vendor>,
        /// Errors of runtimes that do not respond.
        refused: Vec<String>,
    },
    /// No device has this number.
    #[error("no device opencl:{number}; available: {}{}", list(.devices), and(.refused))]
    NoDevice {
        /// Requested number.
        number: usize,
        /// Available devices.
        devices: Vec<Device>,
        /// Errors of runtimes that do not respond.
        refused: Vec<String>,
    },
    /// A call into a runtime did not return in time.
    #[error(
        "a call into an OpenCL runtime has not returned for {seconds} s; to exclude a runtime, list the others in OCL_ICD_VENDORS"
    )]
    Late {
        /// Time waited, in seconds.
        seconds: u64,
    },
    /// The user interrupted the program.
    #[error("interrupted")]
    Interrupted,
    /// A call into the runtime failed.
    #[error("{doing}: {status}")]
    Refused {
        /// Operation that failed.
        doing: &'static str,
        /// Status of the call.
        status: Status,
    },
    /// The device has too little memory.
    #[error(
        "cannot allocate {} on the device: {because}; it has {} in total and allows at most {} per allocation: use a smaller size",
        format_size(*.bytes), format_size(*.device_bytes), format_size(*.piece_bytes)
    )]
    NoMemory {
        /// Requested size in bytes.
        bytes: u64,
        /// Status of the runtime, or the limit that was exceeded.
        because: String,
        /// Total device memory in bytes (`CL_DEVICE_GLOBAL_MEM_SIZE`).
        device_bytes: u64,
        /// Largest single allocation in bytes (`CL_DEVICE_MAX_MEM_ALLOC_SIZE`).
        piece_bytes: u64,
    },
    /// The host has too little memory for the program's end of a copy.
    #[error(transparent)]
    NoHostMemory(#[from] NoHostMemory),
    /// A listed device cannot be opened.
    #[error(
        "cannot open {device}: {doing}: {status}; check whether another program uses it, or whether it needs a reset or another bitstream"
    )]
    NotOpened {
        /// Device, by number and name.
        device: String,
        /// Operation that failed.
        doing: &'static str,
        /// Status of the call.
        status: Status,
    },
    /// An operating-system call failed.
    #[error("{0}")]
    System(String),
    /// The device has no compiler, and no prebuilt kernels were given.
    #[error(
        "{device} cannot compile kernels ({status}), as is usual for FPGA boards: build the output of 'lanemark kernels' with the vendor's compiler and pass the file: lanemark bench --kernels FILE"
    )]
    NoCompiler {
        /// Device, by number and name.
        device: String,
        /// Status of the call.
        status: Status,
    },
    /// The device rejects the prebuilt kernels.
    #[error(
        "{device} rejects the kernels in {file}: {status}; the file must be built by the vendor's compiler, for this device, from the output of 'lanemark kernels'{log}"
    )]
    NotTaken {
        /// Device, by number and name.
        device: String,
        /// File of the kernels.
        file: String,
        /// Status of the call.
        status: Status,
        /// Build log on lines of its own; may be empty.
        log: String,
    },
    /// A needed kernel is missing from the prebuilt ones.
    #[error(
        "{file} has no kernel {name}: rebuild it from the output of 'lanemark kernels', or ask a question that does not need this kernel"
    )]
    NoKernel {
        /// File of the kernels.
        file: String,
        /// Name of the missing kernel.
        name: String,
    },
    /// A kernel does not compile.
    #[error("the kernel does not compile for {device}: {status}\n{log}")]
    NotBuilt {
        /// Device, by number and name.
        device: String,
        /// Status of the call.
        status: Status,
        /// Log of the compiler.
        log: String,
    },
}

impl OpenClError {
    pub(super) fn nothing(refused: Vec<String>) -> OpenClError {
        OpenClError::Nothing { folder: place(), vendors: vendors(), refused }
    }

    /// Error for a missing device number; also lists installed runtimes that cannot be loaded, since one may own the device.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn no_device(number: usize, devices: Vec<Device>, mut refused: Vec<String>) -> OpenClError {
        refused.extend(vendors().iter().filter(|vendor| vendor.problem.is_some()).map(ToString::to_string));
        OpenClError::NoDevice { number, devices, refused }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl From<crate::watchdog::OpenFailure> for OpenClError {
    fn from(given_up: crate::watchdog::OpenFailure) -> OpenClError {
        use crate::watchdog::OpenFailure;
        match given_up {
            OpenFailure::Late { seconds } => OpenClError::Late { seconds },
            OpenFailure::Interrupted => OpenClError::Interrupted,
            OpenFailure::NoThread(why) => OpenClError::System(why),
        }
    }
}

/// List of installed runtimes; if empty, where they were searched for and how to install one.
fn installed(vendors: &[Vendor], folder: &Path) -> String {
    if !vendors.is_empty() {
        return list(vendors);
    }
    let folder = folder.display();
    format!(
        "none: {folder} lists none (the folder is OCL_ICD_VENDORS, default {FOLDER}); to install a free one: apt-get install pocl-opencl-icd"
    )
}

/// Suffix that lists runtimes which do not respond.
fn and(refused: &[String]) -> String {
    if refused.is_empty() { String::new() } else { format!("; not responding: {}", refused.join("; ")) }
}

fn list<T: std::fmt::Display>(all: &[T]) -> String {
    if all.is_empty() { "none".to_owned() } else { all.iter().map(T::to_string).collect::<Vec<_>>().join("; ") }
}
