//! A device that is open.

#![allow(unsafe_code)]

use super::OpenClError;
use super::api::Api;
use super::device::{Device, Id, good};
use super::ports::Ports;
use super::status::Status;
use super::usm::Usm;
use opencl_sys as cl;
use std::ptr;
use std::sync::Arc;

/// A context with one device. Whatever is made in it has a share of it.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) api: Api,
    pub(super) handle: cl::cl_context,
    pub(super) id: Id,
    /// The device, for messages.
    pub(super) device: String,
    /// All memory that the device says it has, in bytes.
    pub(super) device_bytes: u64,
    /// The longest piece of it.
    pub(super) piece_bytes: u64,
    /// Whether kernels may compute with numbers of 64 bits.
    pub(super) has_double: bool,
    /// Memory that has an address, where there is any.
    pub(super) usm: Option<Usm>,
    /// Ports of its memory that a program can choose among.
    pub(super) ports: Ports,
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
    pub(super) fn new(device: &Device) -> Result<Arc<Context>, OpenClError> {
        let (api, id) = (Api::loaded()?, device.id);
        let extensions = id.text(&api, cl::CL_DEVICE_EXTENSIONS)?;
        let has = |name: &str| extensions.split(' ').any(|extension| extension == name);
        let mut context = Context {
            api,
            handle: ptr::null_mut(),
            id,
            device: device.to_string(),
            device_bytes: id.number(&api, cl::CL_DEVICE_GLOBAL_MEM_SIZE)?,
            piece_bytes: id.number(&api, cl::CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
            has_double: has("cl_khr_fp64"),
            usm: if has(Usm::EXTENSION) { Usm::of(&api, id) } else { None },
            ports: Ports::One,
        };
        let mut status = cl::CL_SUCCESS;
        // SAFETY: `id` is a device's.
        context.handle = unsafe {
            (api.create_context)(ptr::null(), 1, &raw const id.device, None, ptr::null_mut(), &raw mut status)
        };
        good("making a context", status)?;
        context.ports = Ports::of(&context);
        Ok(Arc::new(context))
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
    pub(super) fn too_much(&self, bytes: u64, because: String) -> OpenClError {
        let Context { device_bytes, piece_bytes, .. } = *self;
        OpenClError::NoMemory { bytes, because, device_bytes, piece_bytes }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it is given back once, and nothing that was made in it is left.
            unsafe {
                (self.api.release_context)(self.handle);
            }
        }
    }
}
