//! Unified shared memory (USM): device and host memory with addresses, by Intel's extension.

#![allow(unsafe_code)]

use super::api::{Api, Inner};
use super::device::Id;
use opencl_sys as cl;
use std::ffi::{CStr, c_void};
use std::fmt;

/// Functions of the extension. Loaders do not export them; the runtime returns them by name.
///
/// Source: extension `cl_intel_unified_shared_memory`, revision 1.0.
#[derive(Clone, Copy)]
pub(super) struct Usm {
    pub(super) on_device: <cl::clDeviceMemAllocINTEL_fn as Inner>::Function,
    pub(super) on_host: <cl::clHostMemAllocINTEL_fn as Inner>::Function,
    pub(super) free: <cl::clMemFreeINTEL_fn as Inner>::Function,
    pub(super) copy: <cl::clEnqueueMemcpyINTEL_fn as Inner>::Function,
    pub(super) kernel_argument: <cl::clSetKernelArgMemPointerINTEL_fn as Inner>::Function,
    /// Whether the runtime allocates host memory that devices can access.
    pub(super) has_host: bool,
}

impl fmt::Debug for Usm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Usm")
    }
}

impl Usm {
    /// Name of the extension in a device's list.
    pub(super) const EXTENSION: &str = "cl_intel_unified_shared_memory";

    /// Returns the functions for a device with the extension; `None` if one is missing or the device supports no device memory.
    pub(super) fn of(api: &Api, id: Id) -> Option<Usm> {
        let has = |what| id.number(api, what).is_ok_and(|can| can != 0);
        if !has(cl::CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL) {
            return None;
        }
        // SAFETY: each type is that of the function of this name in the Khronos headers; `None` ends the function.
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

/// Returns a function of an extension; `F` is an `Option` of the function type.
///
/// # Safety
/// `F` must be an `Option` of the type that the function of this name has.
pub(super) unsafe fn address<F: Copy>(api: &Api, id: Id, name: &CStr) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "`F` must be an `Option` of a function pointer") };
    // SAFETY: the platform is valid. An `Option` of a function is a nullable pointer, and the caller guarantees the type.
    unsafe {
        let found = (api.extension_function)(id.platform, name.as_ptr());
        std::mem::transmute_copy::<*mut c_void, F>(&found)
    }
}
