//! In-order command queue.

#![allow(unsafe_code)]

use super::context::Context;
use super::devices::check;
use super::error::OpenClError;
use super::memory::Memory;
use super::memory_at::At;
use super::program::Kernel;
use lanemark_machine::Verb;
use opencl_sys as cl;
use std::ptr;
use std::sync::Arc;

/// In-order command queue; methods return the runtime's status codes.
#[derive(Debug)]
pub(super) struct Commands {
    pub(super) context: Arc<Context>,
    pub(super) handle: cl::cl_command_queue,
}

// SAFETY: handles may be used from any thread, and concurrently (OpenCL 3.0, section 2.1).
unsafe impl Send for Commands {}
// SAFETY: as above.
unsafe impl Sync for Commands {}

impl Commands {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn new(context: &Arc<Context>) -> Result<Commands, OpenClError> {
        let mut status = cl::CL_SUCCESS;
        // SAFETY: the device belongs to the context.
        let handle = unsafe { (context.api.create_queue)(context.handle, context.id.device, 0, &raw mut status) };
        check("creating a command queue", status)?;
        Ok(Commands { context: Arc::clone(context), handle })
    }

    /// Enqueues one launch of `items` work items.
    #[inline]
    pub(super) fn launch(&self, kernel: &Kernel, items: usize, event: *mut cl::cl_event) -> i32 {
        let launch = self.context.api.enqueue_kernel;
        // SAFETY: queue and kernel are valid, and so are the kernel's arguments: their owner keeps them until the queue is empty.
        unsafe {
            let (offset, local) = (ptr::null(), ptr::null());
            launch(self.handle, kernel.handle, 1, offset, &raw const items, local, 0, ptr::null(), event)
        }
    }

    /// Enqueues a copy of `bytes` bytes between `own` and device memory.
    ///
    /// # Safety
    /// Both ends have at least `bytes` bytes and stay valid until the queue is empty.
    #[inline]
    pub(super) unsafe fn copy(
        &self,
        verb: Verb,
        own: *mut u8,
        device: At,
        bytes: usize,
        blocks: cl::cl_bool,
        event: *mut cl::cl_event,
    ) -> i32 {
        let (api, queue, own) = (&self.context.api, self.handle, own.cast());
        // SAFETY: the caller guarantees both ends.
        unsafe {
            match (device, self.context.usm) {
                (At::Object(object), _) if verb == Verb::Store => {
                    (api.write_buffer)(queue, object, blocks, 0, bytes, own, 0, ptr::null(), event)
                }
                (At::Object(object), _) => {
                    (api.read_buffer)(queue, object, blocks, 0, bytes, own, 0, ptr::null(), event)
                }
                (At::Address(device), Some(usm)) => {
                    let (to, from) = if verb == Verb::Store { (device, own) } else { (own, device) };
                    (usm.copy)(queue, blocks, to, from.cast_const(), bytes, 0, ptr::null(), event)
                }
                (At::Address(_), None) => cl::CL_INVALID_OPERATION,
            }
        }
    }

    /// Copies between `own` and the start of device memory, and waits.
    ///
    /// # Errors
    /// Errors of the runtime; `CL_INVALID_VALUE` if the device memory is shorter than `own`.
    pub(super) fn copy_and_wait(
        &self,
        doing: &'static str,
        verb: Verb,
        own: &mut [u8],
        device: &Memory,
    ) -> Result<(), OpenClError> {
        if own.len() > device.len() {
            return check(doing, cl::CL_INVALID_VALUE);
        }
        // SAFETY: both ends have at least `own.len()` bytes, and the queue is empty when this returns.
        let status = unsafe { self.copy(verb, own.as_mut_ptr(), device.at(), own.len(), cl::CL_TRUE, ptr::null_mut()) };
        let finished = self.finish();
        check(doing, status)?;
        check(doing, finished)
    }

    /// Submits the queue to the device (`clFlush`).
    #[inline]
    pub(super) fn flush(&self) -> i32 {
        // SAFETY: the queue is valid.
        unsafe { (self.context.api.flush)(self.handle) }
    }

    /// Waits until the queue is empty.
    #[inline]
    pub(super) fn finish(&self) -> i32 {
        // SAFETY: the queue is valid.
        unsafe { (self.context.api.finish)(self.handle) }
    }

    /// Waits for events of commands of this context, and releases them.
    #[inline]
    pub(super) fn wait(&self, events: &[cl::cl_event]) -> i32 {
        // SAFETY: each event belongs to an accepted command and is released once.
        unsafe {
            let mut status = (self.context.api.wait)(events.len() as u32, events.as_ptr());
            for event in events {
                let released = (self.context.api.release_event)(*event);
                status = if status == cl::CL_SUCCESS { released } else { status };
            }
            status
        }
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        // SAFETY: the handle is released once.
        unsafe {
            (self.context.api.release_queue)(self.handle);
        }
    }
}
