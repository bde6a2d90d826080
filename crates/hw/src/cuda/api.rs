//! Functions of the CUDA driver, loaded when first needed.
//!
//! Nothing is linked: everything else works on a machine without a driver. Every function is looked up before the first
//! call. The library is never unloaded, because drivers keep threads.
//!
//! The signatures are declared here: enumerations of the driver grow with each version, so a status or an attribute must
//! be a number. Source: NVIDIA, "CUDA Driver API", 12.8; the names with a version suffix are those of its header.

#![allow(unsafe_code)]

use super::error::CudaError;
use super::status::SUCCESS;
use crate::opencl::load_error;
use libloading::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ops::Deref;
use std::sync::OnceLock;
use std::{fmt, mem, ptr};

/// File name of the driver's library.
const LIBRARY: &str = "libcuda.so.1";

/// Symbol that a fake driver for tests exports: what is measured on it is marked as emulated.
const FAKE: &[u8] = b"lanemarkFakeDriver\0";

/// Address in the address space of a context.
pub(super) type DevicePointer = u64;
/// Handle of a context, stream, event, module or function.
pub(super) type Handle = *mut c_void;

macro_rules! functions {
    ($(#[$about:meta])* $set:ident; $($field:ident: $name:ident($($argument:ty),*);)*) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        #[cfg_attr(
            not(all(target_arch = "x86_64", target_os = "linux")),
            allow(dead_code, reason = "on other targets devices are listed but not measured")
        )]
        pub(super) struct $set {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl fmt::Debug for $set {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($set))
            }
        }

        impl $set {
            /// Looks up every function; the error is the name of the first one that the driver lacks.
            fn of(library: &Library) -> Result<$set, &'static str> {
                Ok($set {
                    $($field: {
                        let name = concat!(stringify!($name), "\0").as_bytes();
                        // SAFETY: the type is that of the function of this name in the driver's header.
                        let found = unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> c_int>(name) };
                        *found.map_err(|_| stringify!($name))?
                    },)*
                })
            }
        }
    };
}

functions! {
    /// Functions without which no device is opened; each returns a status.
    Required;
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

functions! {
    /// The function that looks up others by the version of their signature.
    Lookup;
    address: cuGetProcAddress_v2(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int);
}

functions! {
    /// Functions of graphs.
    Graphs;
    create: cuGraphCreate(*mut Handle, c_uint);
    add_kernel: cuGraphAddKernelNode_v2(*mut Handle, Handle, *const Handle, usize, *const NodeParameters);
    instantiate: cuGraphInstantiateWithFlags(*mut Handle, Handle, u64);
    launch: cuGraphLaunch(Handle, Handle);
    destroy_executable: cuGraphExecDestroy(Handle);
    destroy: cuGraphDestroy(Handle);
}

functions! {
    /// Functions by which a stream accesses words of memory.
    StreamMemory;
    wait: cuStreamWaitValue32_v2(Handle, DevicePointer, u32, c_uint);
}

/// `CUDA_KERNEL_NODE_PARAMS` of CUDA 12.0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeParameters {
    pub(super) function: Handle,
    pub(super) blocks: [c_uint; 3],
    pub(super) threads: [c_uint; 3],
    pub(super) shared_bytes: c_uint,
    pub(super) parameters: *mut *mut c_void,
    pub(super) extra: *mut *mut c_void,
    pub(super) kernel: Handle,
    pub(super) context: Handle,
}

/// `cuMemcpyBatchAsync` of CUDA 12.8: destinations, sources, lengths, their number; attributes, the first piece of each,
/// their number; the piece that failed; stream.
pub(super) type CopyBatch = unsafe extern "C" fn(
    *mut DevicePointer,
    *mut DevicePointer,
    *mut usize,
    usize,
    *mut BatchAttributes,
    *mut usize,
    usize,
    *mut usize,
    Handle,
) -> c_int;

/// `CUmemcpyAttributes` of CUDA 12.8: order of accesses to the source, hints of location (type and number), flags.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchAttributes {
    pub(super) source_order: c_int,
    pub(super) source_hint: [c_int; 2],
    pub(super) destination_hint: [c_int; 2],
    pub(super) flags: c_uint,
}

/// Version of the signature of [`CopyBatch`]; that of CUDA 13 has one argument less.
const BATCH_VERSION: c_int = 12_080;

fn copy_batch(library: &Library) -> Option<CopyBatch> {
    let Lookup { address } = Lookup::of(library).ok()?;
    let (mut function, mut found) = (ptr::null_mut(), 0);
    // SAFETY: the name ends with a zero, and both pointers are valid.
    let status =
        unsafe { address(c"cuMemcpyBatchAsync".as_ptr(), &raw mut function, BATCH_VERSION, 0, &raw mut found) };
    // The result of the search is 0 if the function exists in this version.
    if status != SUCCESS || found != 0 || function.is_null() {
        return None;
    }
    // SAFETY: the driver returned the function of this name and version, whose signature this is.
    Some(unsafe { mem::transmute::<*mut c_void, CopyBatch>(function) })
}

/// Functions of the loaded driver.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "on other targets devices are listed but not measured")
)]
pub(super) struct Api {
    required: Required,
    /// Whether the library is a fake driver for tests, without a GPU.
    pub(super) is_fake: bool,
    /// One call for many copies, which drivers have since CUDA 12.8.
    pub(super) copy_batch: Option<CopyBatch>,
    /// Graphs, or the name of the first function that is missing.
    pub(super) graphs: Result<Graphs, &'static str>,
    /// Words of memory in a stream, or the name of the missing function.
    pub(super) stream_memory: Result<StreamMemory, &'static str>,
}

impl Deref for Api {
    type Target = Required;

    fn deref(&self) -> &Required {
        &self.required
    }
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
            let required = Required::of(&library).map_err(CudaError::NoFunction)?;
            // SAFETY: only the presence of the symbol matters; it is not read.
            let is_fake = unsafe { library.get::<*const c_int>(FAKE) }.is_ok();
            // SAFETY: no other call comes before this one; it takes no pointer.
            CudaError::check("initialising the driver", unsafe { (required.init)(0) })?;
            let (graphs, stream_memory) = (Graphs::of(&library), StreamMemory::of(&library));
            let api = Api { required, is_fake, copy_batch: copy_batch(&library), graphs, stream_memory };
            Ok((library, api))
        };
        match LOADED.get_or_init(load) {
            Ok((_, api)) => Ok(*api),
            Err(error) => Err(error.clone()),
        }
    }
}
