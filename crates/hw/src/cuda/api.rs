//! Functions of the CUDA driver, loaded when first needed.
//!
//! Nothing is linked: everything else works on a machine without a driver. Every function is looked up before the first
//! call. The library is never unloaded, because drivers keep threads.
//!
//! The signatures are declared here: enumerations of the driver grow with each version, so a status or an attribute must
//! be a number. Source: NVIDIA, "CUDA Driver API", 12.8; the names with a version suffix are those of its header.

#![allow(unsafe_code)]

use super::error::CudaError;
use crate::opencl::load_error;
use libloading::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::fmt;
use std::sync::OnceLock;

/// File name of the driver's library.
const LIBRARY: &str = "libcuda.so.1";

/// Symbol that a fake driver for tests exports: what is measured on it is marked as emulated.
const FAKE: &[u8] = b"lanemarkFakeDriver\0";

/// Address in the address space of a context.
pub(super) type DevicePointer = u64;
/// Handle of a context, stream, event, module or function.
pub(super) type Handle = *mut c_void;

macro_rules! functions {
    ($($field:ident: $name:ident($($argument:ty),*);)*) => {
        /// Functions of the loaded driver; each returns a status.
        #[derive(Clone, Copy)]
        #[cfg_attr(
            not(all(target_arch = "x86_64", target_os = "linux")),
            allow(dead_code, reason = "on other targets devices are listed but not measured")
        )]
        pub(super) struct Api {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
            /// Whether the library is a fake driver for tests, without a GPU.
            pub(super) is_fake: bool,
        }

        impl Api {
            fn of(library: &Library) -> Result<Api, CudaError> {
                Ok(Api {
                    $($field: {
                        let name = concat!(stringify!($name), "\0").as_bytes();
                        // SAFETY: the type is that of the function of this name in the driver's header.
                        let found = unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> c_int>(name) };
                        *found.map_err(|_| CudaError::NoFunction(stringify!($name)))?
                    },)*
                    // SAFETY: only the presence of the symbol matters; it is not read.
                    is_fake: unsafe { library.get::<*const c_int>(FAKE) }.is_ok(),
                })
            }
        }
    };
}

functions! {
    init: cuInit(c_uint);
    driver_version: cuDriverGetVersion(*mut c_int);
    device_count: cuDeviceGetCount(*mut c_int);
    device: cuDeviceGet(*mut c_int, c_int);
    device_name: cuDeviceGetName(*mut c_char, c_int, c_int);
    device_bus_id: cuDeviceGetPCIBusId(*mut c_char, c_int, c_int);
    device_attribute: cuDeviceGetAttribute(*mut c_int, c_int, c_int);
    device_bytes: cuDeviceTotalMem_v2(*mut usize, c_int);
    retain_context: cuDevicePrimaryCtxRetain(*mut Handle, c_int);
    release_context: cuDevicePrimaryCtxRelease_v2(c_int);
    set_context: cuCtxSetCurrent(Handle);
    create_stream: cuStreamCreate(*mut Handle, c_uint);
    destroy_stream: cuStreamDestroy_v2(Handle);
    query_stream: cuStreamQuery(Handle);
    wait_stream: cuStreamSynchronize(Handle);
    create_event: cuEventCreate(*mut Handle, c_uint);
    destroy_event: cuEventDestroy_v2(Handle);
    record_event: cuEventRecord(Handle, Handle);
    wait_event: cuEventSynchronize(Handle);
    allocate: cuMemAlloc_v2(*mut DevicePointer, usize);
    free: cuMemFree_v2(DevicePointer);
    allocate_host: cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    free_host: cuMemFreeHost(*mut c_void);
    register_host: cuMemHostRegister_v2(*mut c_void, usize, c_uint);
    unregister_host: cuMemHostUnregister(*mut c_void);
    host_pointer: cuMemHostGetDevicePointer_v2(*mut DevicePointer, *mut c_void, c_uint);
    to_device: cuMemcpyHtoD_v2(DevicePointer, *const c_void, usize);
    from_device: cuMemcpyDtoH_v2(*mut c_void, DevicePointer, usize);
    start_to_device: cuMemcpyHtoDAsync_v2(DevicePointer, *const c_void, usize, Handle);
    start_from_device: cuMemcpyDtoHAsync_v2(*mut c_void, DevicePointer, usize, Handle);
    start_fill: cuMemsetD8Async(DevicePointer, u8, usize, Handle);
    load_module: cuModuleLoadDataEx(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    unload_module: cuModuleUnload(Handle);
    function: cuModuleGetFunction(*mut Handle, Handle, *const c_char);
    launch: cuLaunchKernel(
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// Functions of this machine's driver, which is loaded and initialised at the first call.
    ///
    /// # Errors
    /// [`CudaError::NoDriver`] with the message of the system, [`CudaError::NoFunction`], and the status of the
    /// initialisation.
    pub(super) fn loaded() -> Result<Api, CudaError> {
        static LOADED: OnceLock<Result<(Library, Api), CudaError>> = OnceLock::new();
        let load = || {
            // SAFETY: loading runs the library's initialisers; the library is loaded by its well-known name.
            let library = unsafe { Library::new(LIBRARY) };
            let library = library.map_err(|error| CudaError::NoDriver(load_error(&error)))?;
            let api = Api::of(&library)?;
            // SAFETY: no other call comes before this one; it takes no pointer.
            CudaError::check("initialising the driver", unsafe { (api.init)(0) })?;
            Ok((library, api))
        };
        match LOADED.get_or_init(load) {
            Ok((_, api)) => Ok(*api),
            Err(error) => Err(error.clone()),
        }
    }
}
