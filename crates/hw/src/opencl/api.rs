//! The functions of OpenCL, found in the loader's library when they are first needed.
//!
//! Nothing is linked: a machine without OpenCL runs everything else. The library stays loaded, for runtimes have threads of their own.

#![allow(unsafe_code)]

use super::OpenClError;
use libloading::Library;
use opencl_sys::cl_function_types;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Names under which the loader is looked for.
const LOADERS: [&str; 2] = ["libOpenCL.so.1", "libOpenCL.so"];

macro_rules! functions {
    ($($(#[$doc:meta])* $field:ident: $name:ident, $kind:ident;)*) => {
        /// What is called, as the loader has it.
        #[derive(Clone, Copy)]
        #[cfg_attr(
            not(all(target_arch = "x86_64", target_os = "linux")),
            allow(dead_code, reason = "elsewhere devices are listed and not asked")
        )]
        pub(super) struct Api {
            $($(#[$doc])* pub(super) $field: functions!(@inner cl_function_types::$kind),)*
        }

        impl Api {
            fn of(library: &Library) -> Result<Api, OpenClError> {
                $(
                    // SAFETY: the type is that of the function of this name in the headers of the Khronos group.
                    let $field = unsafe { library.get::<cl_function_types::$kind>(concat!(stringify!($name), "\0").as_bytes()) };
                    let $field = $field.ok().and_then(|found| *found);
                )*
                Ok(Api { $($field: $field.ok_or(OpenClError::NoFunction(stringify!($name)))?,)* })
            }
        }
    };
    (@inner $kind:ty) => { <$kind as Inner>::Function };
}

/// What an `Option` of a function has inside.
pub(super) trait Inner {
    type Function;
}

impl<F> Inner for Option<F> {
    type Function = F;
}

functions! {
    platforms: clGetPlatformIDs, clGetPlatformIDs_t;
    platform_info: clGetPlatformInfo, clGetPlatformInfo_t;
    devices: clGetDeviceIDs, clGetDeviceIDs_t;
    device_info: clGetDeviceInfo, clGetDeviceInfo_t;
    create_context: clCreateContext, clCreateContext_t;
    release_context: clReleaseContext, clReleaseContext_t;
    // Of OpenCL 1: devices of 1.2 have no other, and newer ones still have it.
    create_queue: clCreateCommandQueue, clCreateCommandQueue_t;
    release_queue: clReleaseCommandQueue, clReleaseCommandQueue_t;
    create_program: clCreateProgramWithSource, clCreateProgramWithSource_t;
    create_program_of_binary: clCreateProgramWithBinary, clCreateProgramWithBinary_t;
    retain_program: clRetainProgram, clRetainProgram_t;
    build_program: clBuildProgram, clBuildProgram_t;
    build_info: clGetProgramBuildInfo, clGetProgramBuildInfo_t;
    release_program: clReleaseProgram, clReleaseProgram_t;
    create_kernel: clCreateKernel, clCreateKernel_t;
    release_kernel: clReleaseKernel, clReleaseKernel_t;
    enqueue_kernel: clEnqueueNDRangeKernel, clEnqueueNDRangeKernel_t;
    create_buffer: clCreateBuffer, clCreateBuffer_t;
    release_memory: clReleaseMemObject, clReleaseMemObject_t;
    write_buffer: clEnqueueWriteBuffer, clEnqueueWriteBuffer_t;
    read_buffer: clEnqueueReadBuffer, clEnqueueReadBuffer_t;
    map_buffer: clEnqueueMapBuffer, clEnqueueMapBuffer_t;
    unmap: clEnqueueUnmapMemObject, clEnqueueUnmapMemObject_t;
    kernel_argument: clSetKernelArg, clSetKernelArg_t;
    flush: clFlush, clFlush_t;
    finish: clFinish, clFinish_t;
    wait: clWaitForEvents, clWaitForEvents_t;
    release_event: clReleaseEvent, clReleaseEvent_t;
    extension_function: clGetExtensionFunctionAddressForPlatform, clGetExtensionFunctionAddressForPlatform_t;
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// The functions of this machine's loader.
    ///
    /// # Errors
    /// [`OpenClError::NoLoader`] with what the system said, and [`OpenClError::NoFunction`].
    pub(super) fn loaded() -> Result<Api, OpenClError> {
        static LOADED: OnceLock<Result<(Library, Api), OpenClError>> = OnceLock::new();
        let load = || {
            let mut said = String::new();
            for name in LOADERS {
                // SAFETY: what a library does when it is loaded is its own affair; this one is asked for by name.
                match unsafe { Library::new(name) } {
                    Ok(library) => {
                        let api = Api::of(&library)?;
                        return Ok((library, api));
                    }
                    Err(error) if said.is_empty() => said = super::said(&error),
                    Err(_) => {}
                }
            }
            Err(OpenClError::NoLoader(said))
        };
        match LOADED.get_or_init(load) {
            Ok((_, api)) => Ok(*api),
            Err(error) => Err(error.clone()),
        }
    }
}

impl Api {
    /// The path of the library that is the loader; `None` if the system does not tell.
    pub(super) fn loader(&self) -> Option<String> {
        let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
        let function = self.platforms as *const c_void;
        // SAFETY: it is asked about the address of a function, and fills all of what it is given if it gives anything but 0.
        let found = unsafe { (libc::dladdr(function, found.as_mut_ptr()) != 0).then(|| found.assume_init()) }?;
        if found.dli_fname.is_null() {
            return None;
        }
        // SAFETY: the name of a library that stays loaded.
        let name = unsafe { CStr::from_ptr(found.dli_fname) };
        Some(name.to_string_lossy().into_owned())
    }
}
