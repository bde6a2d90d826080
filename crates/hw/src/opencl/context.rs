//! A device that is open.

#![allow(unsafe_code)]

use super::OpenClError;
use super::api::Api;
use super::device::{Device, Id, good};
use super::finished::FinishedKernels;
use super::ports::Ports;
use super::program::Given;
use super::status::Status;
use super::usm::Usm;
use opencl_sys as cl;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// A context with one device. Whatever is made in it has a share of it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(super) api: Api,
    pub(super) handle: cl::cl_context,
    pub(super) id: Id,
    /// The device, for messages.
    pub(super) device: String,
    /// All memory that the device says it has, in bytes.
    pub(crate) device_bytes: u64,
    /// The longest piece of it.
    pub(super) piece_bytes: u64,
    /// Whether kernels may compute with numbers of 64 bits.
    pub(crate) has_double: bool,
    /// Memory that has an address, where there is any.
    pub(super) usm: Option<Usm>,
    /// Ports of its memory that a program can choose among.
    pub(super) ports: Ports,
    /// Whether its runtime says that it can build kernels.
    pub(super) has_compiler: bool,
    /// Kernels that somebody else has built, instead.
    pub(super) given: Option<Given>,
}

// SAFETY: handles may be used from any thread, by several at once (OpenCL 3.0, section 2.1; kernels' arguments alone may not).
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Opens the device, and asks it what it has.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn new(device: &Device, kernels: Option<FinishedKernels>) -> Result<Arc<Context>, OpenClError> {
        let mut context = Context::unopened(device.id, device.to_string())?;
        let mut status = cl::CL_SUCCESS;
        // SAFETY: `id` is a device's.
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
        good("making a context", status)?;
        if device.id.has(&context.api, Usm::EXTENSION)? {
            context.usm = Usm::of(&context.api, device.id);
        }
        context.ports = Ports::of(&context);
        context.given = kernels.map(|kernels| Given::new(&context, kernels)).transpose()?;
        Ok(Arc::new(context))
    }

    /// The context with this device, called `name` in messages, that another library made; a program chooses no port there.
    ///
    /// # Safety
    /// Both are handles of OpenCL that live, the device is of the context, and one hold of the context is ours.
    ///
    /// # Errors
    /// What the runtime said.
    pub(crate) unsafe fn lent(
        context: *mut c_void,
        device: *mut c_void,
        name: String,
        kernels: Option<FinishedKernels>,
    ) -> Result<Arc<Context>, OpenClError> {
        // Whoever names no platform asks for no extension.
        let id = Id { device: device.cast(), platform: ptr::null_mut() };
        let unopened = Context::unopened(id, name);
        if let (Err(_), Ok(api)) = (&unopened, Api::loaded()) {
            // SAFETY: the hold that is ours.
            unsafe { (api.release_context)(context.cast()) };
        }
        let mut unopened = unopened?;
        unopened.handle = context.cast();
        unopened.given = kernels.map(|kernels| Given::new(&unopened, kernels)).transpose()?;
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
            has_double: id.has(&api, "cl_khr_fp64")?,
            usm: None,
            ports: Ports::One,
            has_compiler: id.number(&api, cl::CL_DEVICE_COMPILER_AVAILABLE)? != 0,
            given: None,
        })
    }

    /// Why there is no piece of so many bytes.
    pub(super) fn no_memory(&self, bytes: u64, status: i32) -> OpenClError {
        let status = Status(status);
        if !status.is_short_of_memory() {
            return OpenClError::Refused { doing: "making memory on the device", status };
        }
        self.too_much(bytes, status.to_string())
    }

    /// That there is not so much, for this reason.
    pub(crate) fn too_much(&self, bytes: u64, because: String) -> OpenClError {
        let Context { device_bytes, piece_bytes, .. } = *self;
        OpenClError::NoMemory { bytes, because, device_bytes, piece_bytes }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it is given back once, and nothing that was made in it is left.
            unsafe {
                if let Some(given) = &self.given {
                    (self.api.release_program)(given.handle);
                }
                (self.api.release_context)(self.handle);
            }
        }
    }
}
