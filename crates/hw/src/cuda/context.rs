//! An open device: context and stream, and calls that work on them.

#![allow(unsafe_code)]

use super::api::{Api, DevicePointer, Handle};
use super::device::Device;
use super::error::CudaError;
use super::status::{NOT_READY, SUCCESS};
use crate::x86::sample::{pause, stamp_before};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Primary context of a device, with one stream; everything created in it holds a reference to it.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) api: Api,
    pub(super) device: Device,
    handle: Handle,
    pub(super) stream: Handle,
    /// The work that did not end in time. The driver waits for it in most calls, so nothing is called any more, and
    /// nothing is freed.
    stuck: OnceLock<&'static str>,
}

// SAFETY: handles of the driver may be used from any thread on which the context is current (CUDA Driver API, "Context
// Management"), and concurrently.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Flag of `cuStreamCreate`: no implicit synchronisation with the default stream.
const NON_BLOCKING: u32 = 1;
/// Flag of `cuEventCreate`: no time stamp, which makes waiting cheaper.
const DISABLE_TIMING: u32 = 2;
/// Longest duration of a kernel or a copy outside a sample.
pub(super) const LONGEST: Duration = Duration::from_secs(20);

impl Context {
    /// Opens a device. The context is current on the calling thread.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn new(device: Device) -> Result<Arc<Context>, CudaError> {
        let api = Api::loaded()?;
        let (mut handle, mut stream) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the device is valid; both handles are written before they are used.
        unsafe {
            CudaError::check("opening a context", (api.retain_context)(&raw mut handle, device.handle))?;
            let mut status = (api.set_context)(handle);
            if status == SUCCESS {
                status = (api.create_stream)(&raw mut stream, NON_BLOCKING);
            }
            if status != SUCCESS {
                (api.release_context)(device.handle);
            }
            CudaError::check("creating a stream", status)?;
        }
        Ok(Arc::new(Context { api, device, handle, stream, stuck: OnceLock::new() }))
    }

    /// Makes the context current on the calling thread.
    ///
    /// # Errors
    /// [`CudaError::StillStuck`], and errors of the driver.
    pub(super) fn enter(&self) -> Result<(), CudaError> {
        if let Some(doing) = self.stuck.get() {
            return Err(CudaError::StillStuck { doing });
        }
        // SAFETY: the context is valid.
        CudaError::check("selecting the context", unsafe { (self.api.set_context)(self.handle) })
    }

    /// Waits until all work of the stream, which is called `doing`, is done, or `limit` has passed.
    ///
    /// # Errors
    /// [`CudaError::Stuck`], after which the device cannot be used any more, and errors of the work.
    pub(super) fn finish(&self, doing: &'static str, limit: Duration) -> Result<(), CudaError> {
        let begun = Instant::now();
        loop {
            // SAFETY: the stream is valid.
            match unsafe { (self.api.query_stream)(self.stream) } {
                NOT_READY if begun.elapsed() > limit => {
                    return Err(self.give_up(doing, limit));
                }
                // A call of the driver takes a lock that its own threads need.
                NOT_READY => pause(500),
                status => return CudaError::check(doing, status),
            }
        }
    }

    /// Error for work that has not ended within `limit`; the device cannot be used any more.
    pub(super) fn give_up(&self, doing: &'static str, limit: Duration) -> CudaError {
        self.stuck.get_or_init(|| doing);
        CudaError::Stuck { kernel: doing, seconds: limit.as_secs() }
    }

    /// Creates an event, which its owner destroys.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn event(&self) -> Result<Handle, CudaError> {
        let mut event = ptr::null_mut();
        // SAFETY: the pointer is valid.
        let status = unsafe { (self.api.create_event)(&raw mut event, DISABLE_TIMING) };
        CudaError::check("creating an event", status)?;
        Ok(event)
    }

    /// Copies `bytes` to device memory, and waits.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn write(&self, at: DevicePointer, bytes: &[u8]) -> Result<(), CudaError> {
        // SAFETY: the source is valid for its length; the driver checks the destination.
        let status = unsafe { (self.api.to_device)(at, bytes.as_ptr().cast(), bytes.len()) };
        CudaError::check("writing device memory", status)?;
        // A copy from ordinary memory may return before its last part has arrived, and other streams do not wait for it.
        // SAFETY: the default stream always exists.
        CudaError::check("writing device memory", unsafe { (self.api.wait_stream)(ptr::null_mut()) })
    }

    /// Copies device memory to `bytes`, and waits.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn read(&self, at: DevicePointer, bytes: &mut [u8]) -> Result<(), CudaError> {
        // SAFETY: the destination is valid for its length; the driver checks the source.
        let status = unsafe { (self.api.from_device)(bytes.as_mut_ptr().cast::<c_void>(), at, bytes.len()) };
        CudaError::check("reading device memory", status)
    }

    /// Time-stamp counter around a call.
    pub(super) fn stamped<T>(call: impl FnOnce() -> T) -> (u64, T, u64) {
        let before = stamp_before();
        let value = call();
        (before, value, stamp_before())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.stuck.get().is_some() {
            return;
        }
        // SAFETY: each handle is released once, and nothing that was created in the context is left.
        unsafe {
            (self.api.set_context)(self.handle);
            (self.api.destroy_stream)(self.stream);
            (self.api.release_context)(self.device.handle);
        }
    }
}
