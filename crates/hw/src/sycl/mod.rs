//! Devices behind a SYCL runtime: the same questions as behind an OpenCL one, by the calls of a C++ program.
//!
//! SYCL is a library of C++, and has no names that C or Rust could call. Between it and us is a shim of one file (`shim.cpp`), which `make
//! runtimes` compiles; it is looked for when a device is first asked for, and nothing is linked. Kernels are built through OpenCL, from the same
//! source as behind it, for there is no SYCL compiler in packages: so devices of other backends are listed and not asked.
//!
//! | file | holds |
//! | --- | --- |
//! | `shim.cpp` | the calls of SYCL, as functions of C |
//! | `api` | those functions, found in the shim when they are first needed |
//! | `device` | [`Device`]: what there is |
//! | `queue` | its queue: what is launched and copied through it |
//! | `workers` | kernels that compute, each with a queue of its own |
//! | `machine` | [`SyclMachine`]: opening one, running a plan |
//!
//! Verified on: libsycl 8.0 of oneAPI 2025.0.5, on PoCL 3.1 (Debian 12) and on Intel's OpenCL for processors and its FPGA emulation, 2025.0.5.

mod api;
mod device;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[path = "unsupported.rs"]
mod machine;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod queue;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod workers;

use crate::NoHostMemory;
use crate::opencl::{OpenClError, Vendor};
pub use device::Device;
pub use machine::SyclMachine;
use std::fmt;

/// Why there is no device to ask.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyclError {
    /// No shim, or one that cannot be loaded.
    #[error("there is no SYCL on this machine: {0}; make runtimes makes what it takes, and prints how to name it")]
    NoShim(String),
    /// The shim is not of this program's making.
    #[error("the shim to SYCL at {place} {what}; make runtimes makes the one that this program wants")]
    OtherShim {
        /// Where it was found.
        place: String,
        /// What is wrong with it.
        what: String,
    },
    /// SYCL has no device.
    #[error("SYCL has no device here{}; it finds runtimes of OpenCL, and installed are {}", because(.said.as_deref()), all_of(.vendors))]
    Nothing {
        /// What it said, if it said anything.
        said: Option<String>,
        /// Runtimes of OpenCL that are installed.
        vendors: Vec<Vendor>,
    },
    /// No device has this number.
    #[error("there is no sycl:{number}; there are {}", all_of(.devices))]
    NoDevice {
        /// The number.
        number: usize,
        /// What there is.
        devices: Vec<Device>,
    },
    /// It is not behind OpenCL.
    #[error(
        "{0} is not behind OpenCL, and what is launched is built there; ask another one, or leave it out with ONEAPI_DEVICE_SELECTOR=opencl:*"
    )]
    OtherBackend(String),
    /// A call into the runtime has not come back.
    #[error(
        "a call into the SYCL runtime has not come back for {seconds} s; to leave a device out, see ONEAPI_DEVICE_SELECTOR"
    )]
    Late {
        /// How long it was waited for.
        seconds: u64,
    },
    /// Somebody asked for an end.
    #[error("interrupted")]
    Interrupted,
    /// The runtime would not.
    #[error("{doing}: {said}")]
    Refused {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        said: String,
    },
    /// The machine has not so much memory for the program.
    #[error(transparent)]
    NoHostMemory(#[from] NoHostMemory),
    /// The system would not.
    #[error("{0}")]
    System(String),
    /// OpenCL, through which kernels are built, would not.
    #[error(transparent)]
    OpenCl(#[from] OpenClError),
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl From<crate::watchdog::GivenUp> for SyclError {
    fn from(given_up: crate::watchdog::GivenUp) -> SyclError {
        use crate::watchdog::GivenUp;
        match given_up {
            GivenUp::Late { seconds } => SyclError::Late { seconds },
            GivenUp::Interrupted => SyclError::Interrupted,
            GivenUp::NoThread(why) => SyclError::System(why),
        }
    }
}

fn because(said: Option<&str>) -> String {
    said.map_or_else(String::new, |said| format!(" ({said})"))
}

fn all_of<T: fmt::Display>(all: &[T]) -> String {
    if all.is_empty() { "none".to_owned() } else { all.iter().map(T::to_string).collect::<Vec<_>>().join("; ") }
}
