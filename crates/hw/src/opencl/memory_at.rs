//! References to device memory.

use opencl_sys as cl;
use std::ffi::c_void;

/// Reference to device memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// Memory object of the runtime.
    Object(cl::cl_mem),
    /// Address (unified shared memory).
    Address(*mut c_void),
}
