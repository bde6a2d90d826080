//! Errors of SYCL devices, and of the search for one.

use super::device::Device;
use crate::NoHostMemory;
use crate::opencl::{OpenClError, Vendor};
use std::fmt;

/// Error of a SYCL device or of the search for one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyclError {
    /// The shim is missing or cannot be loaded.
    #[error("no SYCL on this machine: {0}; 'make runtimes' builds the shim and prints how to use it")]
    NoShim(String),
    /// The library is not the shim, or a shim of another version.
    #[error("the SYCL shim {place} {what}; 'make runtimes' builds the one for this program")]
    OtherShim {
        /// Path of the library.
        place: String,
        /// Mismatch, as a predicate: "has ...", "lacks ...".
        what: String,
    },
    /// SYCL finds no device.
    #[error("SYCL finds no device{}; it uses OpenCL runtimes, of which these are installed: {}", because(.said.as_deref()), all_of(.vendors))]
    Nothing {
        /// Error message of SYCL, if any.
        said: Option<String>,
        /// Installed OpenCL runtimes.
        vendors: Vec<Vendor>,
    },
    /// No device has this number.
    #[error("no device sycl:{number}; available: {}", all_of(.devices))]
    NoDevice {
        /// Requested number.
        number: usize,
        /// Available devices.
        devices: Vec<Device>,
    },
    /// The device is not behind OpenCL.
    #[error(
        "{0} does not use the OpenCL backend, through which kernels are built; choose another device, or list only OpenCL devices with ONEAPI_DEVICE_SELECTOR=opencl:*"
    )]
    OtherBackend(String),
    /// A call into the runtime did not return in time.
    #[error(
        "a call into the SYCL runtime has not returned for {seconds} s; to exclude a device, set ONEAPI_DEVICE_SELECTOR"
    )]
    Late {
        /// Time waited, in seconds.
        seconds: u64,
    },
    /// The user interrupted the program.
    #[error("interrupted")]
    Interrupted,
    /// A call into the runtime failed.
    #[error("{doing}: {said}")]
    Refused {
        /// Operation that failed.
        doing: &'static str,
        /// Message of the runtime.
        said: String,
    },
    /// The host has too little memory for the program's end of a copy.
    #[error(transparent)]
    NoHostMemory(#[from] NoHostMemory),
    /// An operating-system call failed.
    #[error("{0}")]
    System(String),
    /// OpenCL, through which kernels are built, failed.
    #[error(transparent)]
    OpenCl(#[from] OpenClError),
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl From<crate::watchdog::OpenFailure> for SyclError {
    fn from(given_up: crate::watchdog::OpenFailure) -> SyclError {
        use crate::watchdog::OpenFailure;
        match given_up {
            OpenFailure::Late { seconds } => SyclError::Late { seconds },
            OpenFailure::Interrupted => SyclError::Interrupted,
            OpenFailure::NoThread(why) => SyclError::System(why),
        }
    }
}

fn because(said: Option<&str>) -> String {
    said.map_or_else(String::new, |said| format!(" ({said})"))
}

fn all_of<T: fmt::Display>(all: &[T]) -> String {
    if all.is_empty() { "none".to_owned() } else { all.iter().map(T::to_string).collect::<Vec<_>>().join("; ") }
}
