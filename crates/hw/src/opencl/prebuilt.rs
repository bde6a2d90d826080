//! Prebuilt programs.

use opencl_sys as cl;

/// Prebuilt program, accepted by a device.
#[derive(Debug)]
pub(super) struct Prebuilt {
    pub(super) handle: cl::cl_program,
    pub(super) file: String,
}
