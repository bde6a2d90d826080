//! Status codes of the runtime.

use opencl_sys as cl;
use std::fmt;

/// Status code of a failed call, displayed by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(pub i32);

/// Status of a loader that finds no platform (extension `cl_khr_icd`).
pub(super) const NO_PLATFORM: i32 = -1001;

/// Names of the status codes that the calls used here may return (OpenCL 3.0, error list of each call).
const NAMES: [(i32, &str); 31] = [
    (cl::CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"),
    (cl::CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"),
    (cl::CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"),
    (cl::CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"),
    (cl::CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"),
    (cl::CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"),
    (cl::CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"),
    (cl::CL_MAP_FAILURE, "CL_MAP_FAILURE"),
    (cl::CL_MISALIGNED_SUB_BUFFER_OFFSET, "CL_MISALIGNED_SUB_BUFFER_OFFSET"),
    (cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"),
    (cl::CL_INVALID_VALUE, "CL_INVALID_VALUE"),
    (cl::CL_INVALID_PLATFORM, "CL_INVALID_PLATFORM"),
    (cl::CL_INVALID_DEVICE, "CL_INVALID_DEVICE"),
    (cl::CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT"),
    (cl::CL_INVALID_QUEUE_PROPERTIES, "CL_INVALID_QUEUE_PROPERTIES"),
    (cl::CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE"),
    (cl::CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT"),
    (cl::CL_INVALID_BINARY, "CL_INVALID_BINARY"),
    (cl::CL_INVALID_BUILD_OPTIONS, "CL_INVALID_BUILD_OPTIONS"),
    (cl::CL_INVALID_PROGRAM, "CL_INVALID_PROGRAM"),
    (cl::CL_INVALID_PROGRAM_EXECUTABLE, "CL_INVALID_PROGRAM_EXECUTABLE"),
    (cl::CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"),
    (cl::CL_INVALID_KERNEL, "CL_INVALID_KERNEL"),
    (cl::CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX"),
    (cl::CL_INVALID_ARG_VALUE, "CL_INVALID_ARG_VALUE"),
    (cl::CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"),
    (cl::CL_INVALID_EVENT, "CL_INVALID_EVENT"),
    (cl::CL_INVALID_OPERATION, "CL_INVALID_OPERATION"),
    (cl::CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"),
    (cl::CL_INVALID_PROPERTY, "CL_INVALID_PROPERTY"),
    (NO_PLATFORM, "CL_PLATFORM_NOT_FOUND_KHR"),
];

impl Status {
    /// Whether a device that worked before may return this status because it is lost: removed, reprogrammed, or in need of a reset.
    #[must_use]
    pub const fn may_be_a_lost_device(self) -> bool {
        matches!(
            self.0,
            cl::CL_DEVICE_NOT_AVAILABLE
                | cl::CL_OUT_OF_RESOURCES
                | cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                | cl::CL_INVALID_DEVICE
                | cl::CL_INVALID_CONTEXT
                | cl::CL_INVALID_COMMAND_QUEUE
        )
    }

    /// Whether any call may return this status for lack of memory: some runtimes allocate at first use.
    #[must_use]
    pub const fn says_short_of_memory(self) -> bool {
        matches!(self.0, cl::CL_MEM_OBJECT_ALLOCATION_FAILURE | cl::CL_OUT_OF_HOST_MEMORY)
    }

    /// Whether an allocating call returns this status for lack of memory.
    #[must_use]
    pub const fn is_short_of_memory(self) -> bool {
        matches!(
            self.0,
            cl::CL_MEM_OBJECT_ALLOCATION_FAILURE
                | cl::CL_OUT_OF_RESOURCES
                | cl::CL_OUT_OF_HOST_MEMORY
                | cl::CL_INVALID_BUFFER_SIZE
        )
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(status, _)| *status == self.0) {
            Some((_, name)) => write!(f, "{name} ({})", self.0),
            None => write!(f, "status {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_displayed_by_name_or_else_by_number() {
        assert_eq!(Status(-5).to_string(), "CL_OUT_OF_RESOURCES (-5)");
        assert_eq!(Status(-1001).to_string(), "CL_PLATFORM_NOT_FOUND_KHR (-1001)");
        assert_eq!(Status(-9999).to_string(), "status -9999");
        for (place, (status, _)) in NAMES.iter().enumerate() {
            assert!(NAMES[..place].iter().all(|(other, _)| other != status), "{status}");
        }
    }
}
