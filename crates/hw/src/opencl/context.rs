//! OpenCL context of an open device.

#![allow(unsafe_code)]

use super::api::Api;
use super::device::{Device, Id};
use super::devices::check;
use super::error::OpenClError;
use super::finished::FinishedKernels;
use super::ports::Ports;
use super::prebuilt::Prebuilt;
use super::status::Status;
use super::usm::Usm;
use opencl_sys as cl;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// Context with one device; everything created in it holds a reference to it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(super) api: Api,
    pub(super) handle: cl::cl_context,
    pub(super) id: Id,
    /// Device name, for messages.
    pub(super) device: String,
    /// Total device memory in bytes.
    pub(crate) device_bytes: u64,
    /// Largest single allocation in bytes.
    pub(super) piece_bytes: u64,
    /// Number of compute units.
    pub(super) compute_units: u32,
    /// Whether kernels may use double precision.
    pub(crate) has_double: bool,
    /// Unified shared memory, if supported.
    pub(super) usm: Option<Usm>,
    /// Selectable memory ports.
    pub(super) ports: Ports,
    /// Whether the runtime reports a compiler.
    pub(super) has_compiler: bool,
    /// Prebuilt kernels, used instead of the compiler.
    pub(super) prebuilt: Option<Prebuilt>,
}

// SAFETY: handles may be used from any thread, and concurrently (OpenCL 3.0, section 2.1; except for kernel arguments).
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Opens a device and queries its properties.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn new(device: &Device, kernels: Option<FinishedKernels>) -> Result<Arc<Context>, OpenClError> {
        let mut context = Context::unopened(device.id, device.to_string())?;
        let mut status = cl::CL_SUCCESS;
        // SAFETY: `device.id` is a valid device.
        context.handle = unsafe {
            (context.api.create_context)(
                ptr::null(),
                1,
                &raw const device.id.device,
                None,
                ptr::null_mut(),
                &raw mut status,
            )
        };
        check("creating a context", status)?;
        if device.id.has(&context.api, Usm::EXTENSION)? {
            context.usm = Usm::of(&context.api, device.id);
        }
        context.ports = Ports::of(&context);
        context.prebuilt = kernels.map(|kernels| Prebuilt::new(&context, kernels)).transpose()?;
        Ok(Arc::new(context))
    }

    /// Wraps a context with one device that another library created; `name` is the device in messages. Memory ports
    /// are not selectable.
    ///
    /// # Safety
    /// Both are valid OpenCL handles, the device belongs to the context, and one reference to the context is ours.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(crate) unsafe fn adopt(
        context: *mut c_void,
        device: *mut c_void,
        name: String,
        kernels: Option<FinishedKernels>,
    ) -> Result<Arc<Context>, OpenClError> {
        // The platform is used for extension functions only, which this context does not use.
        let id = Id { device: device.cast(), platform: ptr::null_mut() };
        let unopened = Context::unopened(id, name);
        if let (Err(_), Ok(api)) = (&unopened, Api::loaded()) {
            // SAFETY: this reference is ours.
            unsafe { (api.release_context)(context.cast()) };
        }
        let mut unopened = unopened?;
        unopened.handle = context.cast();
        unopened.prebuilt = kernels.map(|kernels| Prebuilt::new(&unopened, kernels)).transpose()?;
        Ok(Arc::new(unopened))
    }

    fn unopened(id: Id, device: String) -> Result<Context, OpenClError> {
        let api = Api::loaded()?;
        Ok(Context {
            api,
            handle: ptr::null_mut(),
            id,
            device,
            device_bytes: id.number(&api, cl::CL_DEVICE_GLOBAL_MEM_SIZE)?,
            piece_bytes: id.number(&api, cl::CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
            compute_units: id.number(&api, cl::CL_DEVICE_MAX_COMPUTE_UNITS)?.try_into().unwrap_or(u32::MAX),
            has_double: id.has(&api, "cl_khr_fp64")?,
            usm: None,
            ports: Ports::One,
            has_compiler: id.number(&api, cl::CL_DEVICE_COMPILER_AVAILABLE)? != 0,
            prebuilt: None,
        })
    }

    /// Error for a failed allocation of `bytes` bytes.
    pub(super) fn no_memory(&self, bytes: u64, status: i32) -> OpenClError {
        let status = Status(status);
        if !status.is_short_of_memory() {
            return OpenClError::Refused { doing: "allocating device memory", status };
        }
        self.too_much(bytes, status.to_string())
    }

    /// Error for an allocation of `bytes` bytes that is too large, with the reason.
    pub(crate) fn too_much(&self, bytes: u64, because: String) -> OpenClError {
        let Context { device_bytes, piece_bytes, .. } = *self;
        OpenClError::NoMemory { bytes, because, device_bytes, piece_bytes }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: each handle is released once, and nothing that was created in the context is left.
            unsafe {
                if let Some(prebuilt) = &self.prebuilt {
                    (self.api.release_program)(prebuilt.handle);
                }
                (self.api.release_context)(self.handle);
            }
        }
    }
}
