//! OpenCL functions, loaded from the loader library when first needed.
//!
//! Nothing is linked: everything else works on a machine without OpenCL. The library is never unloaded, because runtimes keep threads.

#![allow(unsafe_code)]

use super::error::OpenClError;
use libloading::Library;
use opencl_sys::cl_function_types;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// File names of the loader library.
const LOADERS: [&str; 2] = ["libOpenCL.so.1", "libOpenCL.so"];

macro_rules! functions {
    ($($(#[$doc:meta])* $field:ident: $name:ident, $kind:ident;)*) => {
        /// OpenCL functions of the loaded library.
        #[derive(Clone, Copy)]
        #[cfg_attr(
            not(all(target_arch = "x86_64", target_os = "linux")),
            allow(dead_code, reason = "on other targets devices are listed but not measured")
        )]
        pub(super) struct Api {
            $($(#[$doc])* pub(super) $field: functions!(@inner cl_function_types::$kind),)*
        }

        impl Api {
            fn of(library: &Library) -> Result<Api, OpenClError> {
                $(
                    // SAFETY: the type is that of the function of this name in the Khronos headers.
                    let $field = unsafe { library.get::<cl_function_types::$kind>(concat!(stringify!($name), "\0").as_bytes()) };
                    let $field = $field.ok().and_then(|found| *found);
                )*
                Ok(Api { $($field: $field.ok_or(OpenClError::NoFunction(stringify!($name)))?,)* })
            }
        }
    };
    (@inner $kind:ty) => { <$kind as Inner>::Function };
}

/// Type of the function inside an `Option`.
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
    // The OpenCL 1 call: devices of version 1.2 have no other, and newer ones still support it.
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
    /// Returns the functions of this machine's loader, loading it at the first call.
    ///
    /// # Errors
    /// [`OpenClError::NoLoader`] with the message of the system, and [`OpenClError::NoFunction`].
    pub(super) fn loaded() -> Result<Api, OpenClError> {
        static LOADED: OnceLock<Result<(Library, Api), OpenClError>> = OnceLock::new();
        let load = || {
            let mut said = String::new();
            for name in LOADERS {
                // SAFETY: loading runs the library's initialisers; the library is loaded by its well-known name.
                match unsafe { Library::new(name) } {
                    Ok(library) => {
                        let api = Api::of(&library)?;
                        return Ok((library, api));
                    }
                    Err(error) if said.is_empty() => said = super::load_error::load_error(&error),
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
    /// Path of the loader library; `None` if the system does not report it.
    pub(super) fn loader(&self) -> Option<String> {
        let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
        let function = self.platforms as *const c_void;
        // SAFETY: the argument is the address of a function; `dladdr` fills the structure unless it returns 0.
        let found = unsafe { (libc::dladdr(function, found.as_mut_ptr()) != 0).then(|| found.assume_init()) }?;
        if found.dli_fname.is_null() {
            return None;
        }
        // SAFETY: the string belongs to a library that is never unloaded.
        let name = unsafe { CStr::from_ptr(found.dli_fname) };
        Some(name.to_string_lossy().into_owned())
    }
}
