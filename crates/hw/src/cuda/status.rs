//! Status codes of the driver.

use std::fmt;

/// Status code of a failed call of the CUDA driver, displayed by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(pub i32);

/// Success.
pub(super) const SUCCESS: i32 = 0;
/// An asynchronous operation is still running.
pub(super) const NOT_READY: i32 = 600;
const OUT_OF_MEMORY: i32 = 2;
const NO_DEVICE: i32 = 100;

/// Names of the status codes that the calls used here may return. Source: CUDA Driver API 12.8, `CUresult`.
const NAMES: [(i32, &str); 39] = [
    (1, "CUDA_ERROR_INVALID_VALUE"),
    (OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"),
    (3, "CUDA_ERROR_NOT_INITIALIZED"),
    (4, "CUDA_ERROR_DEINITIALIZED"),
    (34, "CUDA_ERROR_STUB_LIBRARY"),
    (46, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
    (NO_DEVICE, "CUDA_ERROR_NO_DEVICE"),
    (101, "CUDA_ERROR_INVALID_DEVICE"),
    (102, "CUDA_ERROR_DEVICE_NOT_LICENSED"),
    (200, "CUDA_ERROR_INVALID_IMAGE"),
    (201, "CUDA_ERROR_INVALID_CONTEXT"),
    (209, "CUDA_ERROR_NO_BINARY_FOR_GPU"),
    (214, "CUDA_ERROR_ECC_UNCORRECTABLE"),
    (215, "CUDA_ERROR_UNSUPPORTED_LIMIT"),
    (218, "CUDA_ERROR_INVALID_PTX"),
    (220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"),
    (221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"),
    (222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    (223, "CUDA_ERROR_JIT_COMPILATION_DISABLED"),
    (304, "CUDA_ERROR_OPERATING_SYSTEM"),
    (400, "CUDA_ERROR_INVALID_HANDLE"),
    (401, "CUDA_ERROR_ILLEGAL_STATE"),
    (500, "CUDA_ERROR_NOT_FOUND"),
    (NOT_READY, "CUDA_ERROR_NOT_READY"),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    (701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT"),
    (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"),
    (712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
    (713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"),
    (714, "CUDA_ERROR_HARDWARE_STACK_ERROR"),
    (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
    (716, "CUDA_ERROR_MISALIGNED_ADDRESS"),
    (719, "CUDA_ERROR_LAUNCH_FAILED"),
    (800, "CUDA_ERROR_NOT_PERMITTED"),
    (801, "CUDA_ERROR_NOT_SUPPORTED"),
    (802, "CUDA_ERROR_SYSTEM_NOT_READY"),
    (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    (999, "CUDA_ERROR_UNKNOWN"),
];

impl Status {
    /// Whether host or device is short of memory.
    #[must_use]
    pub const fn is_short_of_memory(self) -> bool {
        self.0 == OUT_OF_MEMORY
    }

    /// Whether the machine has no device for this process: none at all, or none that its environment lists.
    #[must_use]
    pub const fn is_no_device(self) -> bool {
        self.0 == NO_DEVICE
    }

    /// Whether a device that worked before may return this status because it is lost: off the bus, or in need of a reset.
    #[must_use]
    pub const fn may_be_a_lost_device(self) -> bool {
        matches!(self.0, 4 | 46 | 201 | 214 | 220 | 700 | 702 | 709 | 714..=719 | 999)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(code, _)| *code == self.0) {
            Some((code, name)) => write!(f, "{name} ({code})"),
            None => write!(f, "status {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_shown_by_name_and_number_and_an_unknown_one_by_number() {
        assert_eq!(Status(2).to_string(), "CUDA_ERROR_OUT_OF_MEMORY (2)");
        assert_eq!(Status(12_345).to_string(), "status 12345");
        assert!(NAMES.is_sorted_by_key(|(code, _)| *code));
    }

    #[test]
    fn a_refused_request_is_no_sign_of_a_lost_device() {
        for status in [1, 2, 400, 600, 701, 712, 713] {
            assert!(!Status(status).may_be_a_lost_device(), "{status}");
        }
        for status in [700, 702, 714, 719, 999] {
            assert!(Status(status).may_be_a_lost_device(), "{status}");
        }
    }
}
