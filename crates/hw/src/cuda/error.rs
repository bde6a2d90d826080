//! Errors of CUDA devices, and of the search for one.

use super::status::{SUCCESS, Status};
use crate::NoHostMemory;
use lanemark_units::format_size;

/// Error of a CUDA device or of the search for one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// The driver's library is not installed, or cannot be loaded.
    #[error("no CUDA driver on this machine: {0}: install the NVIDIA driver, which contains libcuda.so.1")]
    NoDriver(String),
    /// The driver lacks a function.
    #[error(
        "the CUDA driver of this machine does not export {0}: install a driver of version 520 or later, which compiles PTX 7.8"
    )]
    NoFunction(&'static str),
    /// The driver lacks a function that only some plans need.
    #[error("the CUDA driver of this machine does not export {function}, which a launch by {by} needs")]
    NotThere {
        /// Name of the function.
        function: &'static str,
        /// Name of the method.
        by: &'static str,
    },
    /// The driver has no device.
    #[error(
        "the CUDA driver has no device ({0}): check nvidia-smi, the permissions of /dev/nvidia*, and CUDA_VISIBLE_DEVICES"
    )]
    Nothing(String),
    /// The driver fails before a device is opened.
    #[error(
        "the CUDA driver cannot list its devices: {doing}: {status}; check nvidia-smi and dmesg for messages of the driver (Xid)"
    )]
    NotListed {
        /// Operation that failed.
        doing: &'static str,
        /// Status of the call.
        status: Status,
    },
    /// No device has this number.
    #[error("no device cuda:{number}; available: {}", devices.join("; "))]
    NoDevice {
        /// Requested number.
        number: usize,
        /// Available devices, by number and name.
        devices: Vec<String>,
    },
    /// A call into the driver did not return in time.
    #[error(
        "a call into the CUDA driver has not returned for {seconds} s; check dmesg for messages of the driver (Xid)"
    )]
    Late {
        /// Time waited, in seconds.
        seconds: u64,
    },
    /// The user interrupted the program.
    #[error("interrupted")]
    Interrupted,
    /// A call into the driver failed.
    #[error("{doing}: {status}")]
    Refused {
        /// Operation that failed.
        doing: &'static str,
        /// Status of the call.
        status: Status,
    },
    /// A listed device cannot be opened.
    #[error(
        "cannot open {device}: {doing}: {status}; check whether another program uses it exclusively (nvidia-smi -q -d COMPUTE), and dmesg for messages of the driver (Xid)"
    )]
    NotOpened {
        /// Device, by number and name.
        device: String,
        /// Operation that failed.
        doing: &'static str,
        /// Status of the call.
        status: Status,
    },
    /// Another error while a listed device is opened.
    #[error("{device}: {source}")]
    Opening {
        /// Device, by number and name.
        device: String,
        /// The error.
        source: Box<CudaError>,
    },
    /// The device or the host has too little memory.
    #[error("cannot allocate {} {place}: {status}; use a smaller size or window", format_size(*.bytes))]
    NoMemory {
        /// Requested size in bytes.
        bytes: u64,
        /// Place of the memory, as a phrase: `on the device`.
        place: &'static str,
        /// Status of the call.
        status: Status,
    },
    /// The host has too little memory for the program's end of a copy.
    #[error(transparent)]
    NoHostMemory(#[from] NoHostMemory),
    /// A kernel does not compile.
    #[error(
        "the kernel {kernel} does not compile: {status}; it needs compute capability 7.5 and a driver of version 520 or later{log}"
    )]
    NotBuilt {
        /// Name of the kernel.
        kernel: &'static str,
        /// Status of the call.
        status: Status,
        /// Log of the compiler, on lines of its own; may be empty.
        log: String,
    },
    /// The clock of the device cannot be used.
    #[error("the clock of the device cannot be used for timing: {0}")]
    Clock(String),
    /// A kernel or a copy did not end in time.
    #[error("the CUDA device: {kernel} has not ended for {seconds} s; check dmesg for messages of the driver (Xid)")]
    Stuck {
        /// The operation, as a phrase: `running the kernel clock`.
        kernel: &'static str,
        /// Time waited, in seconds.
        seconds: u64,
    },
    /// Work of an earlier call has not ended.
    #[error("{doing} has not ended since an earlier measurement; restart the program")]
    StillStuck {
        /// The operation, as a phrase.
        doing: &'static str,
    },
    /// An operating-system call failed.
    #[error("{0}")]
    System(String),
}

impl CudaError {
    /// The error of a call while the device of this number and name is opened.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn while_opening(self, device: &impl ToString) -> CudaError {
        match self {
            CudaError::Refused { doing, status } => CudaError::NotOpened { device: device.to_string(), doing, status },
            error => CudaError::Opening { device: device.to_string(), source: Box::new(error) },
        }
    }

    /// Converts the status of a call to a result.
    ///
    /// # Errors
    /// [`CudaError::Refused`] unless the call succeeded.
    pub(super) fn check(doing: &'static str, status: i32) -> Result<(), CudaError> {
        if status == SUCCESS { Ok(()) } else { Err(CudaError::Refused { doing, status: Status(status) }) }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl From<crate::watchdog::OpenFailure> for CudaError {
    fn from(given_up: crate::watchdog::OpenFailure) -> CudaError {
        use crate::watchdog::OpenFailure;
        match given_up {
            OpenFailure::Late { seconds } => CudaError::Late { seconds },
            OpenFailure::Interrupted => CudaError::Interrupted,
            OpenFailure::NoThread(why) => CudaError::System(why),
        }
    }
}
