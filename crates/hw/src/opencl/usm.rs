//! Memory that has an address: unified shared memory, by the extension of Intel.

#![allow(unsafe_code)]

use super::api::{Api, Inner};
use super::device::Id;
use opencl_sys as cl;
use std::ffi::{CStr, c_void};
use std::fmt;

/// Its functions, which a loader does not export: the runtime is asked for them by name.
///
/// Source: extension `cl_intel_unified_shared_memory`, revision 1.0.
#[derive(Clone, Copy)]
pub(super) struct Usm {
    pub(super) on_device: <cl::clDeviceMemAllocINTEL_fn as Inner>::Function,
    pub(super) on_host: <cl::clHostMemAllocINTEL_fn as Inner>::Function,
    pub(super) free: <cl::clMemFreeINTEL_fn as Inner>::Function,
    pub(super) copy: <cl::clEnqueueMemcpyINTEL_fn as Inner>::Function,
    pub(super) kernel_argument: <cl::clSetKernelArgMemPointerINTEL_fn as Inner>::Function,
    /// Whether the runtime gives memory of the program's that devices reach, too.
    pub(super) has_host: bool,
}

impl fmt::Debug for Usm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Usm")
    }
}

impl Usm {
    /// What a device says that has it.
    pub(super) const EXTENSION: &str = "cl_intel_unified_shared_memory";

    /// The functions for a device that has the extension; `None` where one is missing, or the device has no memory of this kind.
    pub(super) fn of(api: &Api, id: Id) -> Option<Usm> {
        let has = |what| id.number(api, what).is_ok_and(|can| can != 0);
        if !has(cl::CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL) {
            return None;
        }
        // SAFETY: each type is that of the function of this name in the headers of the Khronos group; nothing is `None`.
        unsafe {
            Some(Usm {
                on_device: address::<cl::clDeviceMemAllocINTEL_fn>(api, id, c"clDeviceMemAllocINTEL")?,
                on_host: address::<cl::clHostMemAllocINTEL_fn>(api, id, c"clHostMemAllocINTEL")?,
                free: address::<cl::clMemFreeINTEL_fn>(api, id, c"clMemFreeINTEL")?,
                copy: address::<cl::clEnqueueMemcpyINTEL_fn>(api, id, c"clEnqueueMemcpyINTEL")?,
                kernel_argument: address::<cl::clSetKernelArgMemPointerINTEL_fn>(
                    api,
                    id,
                    c"clSetKernelArgMemPointerINTEL",
                )?,
                has_host: has(cl::CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL),
            })
        }
    }
}

/// A function of an extension, as `Option` of a function.
///
/// # Safety
/// `F` is an `Option` of the type that the function of this name has.
pub(super) unsafe fn address<F: Copy>(api: &Api, id: Id, name: &CStr) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "an option of a function is as long as a pointer") };
    // SAFETY: the platform is there. An `Option` of a function is a pointer that may be null, and the caller vouches for the type.
    unsafe {
        let found = (api.extension_function)(id.platform, name.as_ptr());
        std::mem::transmute_copy::<*mut c_void, F>(&found)
    }
}
