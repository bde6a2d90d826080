//! An in-order queue of commands.

#![allow(unsafe_code)]

use super::OpenClError;
use super::context::Context;
use super::device::good;
use super::memory::{At, Memory};
use super::program::Kernel;
use lanemark_machine::Verb;
use opencl_sys as cl;
use std::ptr;
use std::sync::Arc;

/// A queue; statuses are the runtime's.
#[derive(Debug)]
pub(super) struct Commands {
    pub(super) context: Arc<Context>,
    pub(super) handle: cl::cl_command_queue,
}

// SAFETY: handles may be used from any thread, by several at once (OpenCL 3.0, section 2.1).
unsafe impl Send for Commands {}
// SAFETY: as above.
unsafe impl Sync for Commands {}

impl Commands {
    /// An empty one.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn new(context: &Arc<Context>) -> Result<Commands, OpenClError> {
        let mut status = cl::CL_SUCCESS;
        // SAFETY: the device is that of the context.
        let handle = unsafe { (context.api.create_queue)(context.handle, context.id.device, 0, &raw mut status) };
        good("making a queue", status)?;
        Ok(Commands { context: Arc::clone(context), handle })
    }

    /// Puts one launch of one work item into the queue.
    #[inline]
    pub(super) fn launch(&self, kernel: &Kernel, event: *mut cl::cl_event) -> i32 {
        let (one, launch) = (1_usize, self.context.api.enqueue_kernel);
        // SAFETY: queue and kernel are there, and so is what the kernel is given: whoever made it keeps it until the queue is empty.
        unsafe {
            let (offset, local) = (ptr::null(), ptr::null());
            launch(self.handle, kernel.handle, 1, offset, &raw const one, local, 0, ptr::null(), event)
        }
    }

    /// Asks for a copy between `own`, where there are as many bytes, and memory of the device.
    ///
    /// # Safety
    /// Both are there, of so many bytes, until the queue has been seen empty.
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
        // SAFETY: the caller vouches for both ends.
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

    /// Copies between `own` and the start of memory of the device, which has at least as many bytes, and waits until that is over.
    ///
    /// # Errors
    /// What the runtime said, and that the memory is shorter.
    pub(super) fn bring(
        &self,
        doing: &'static str,
        verb: Verb,
        own: &mut [u8],
        device: &Memory,
    ) -> Result<(), OpenClError> {
        if own.len() > device.len() {
            return good(doing, cl::CL_INVALID_VALUE);
        }
        // SAFETY: both ends have as many bytes, and the queue is seen empty before this returns.
        let status = unsafe { self.copy(verb, own.as_mut_ptr(), device.at(), own.len(), cl::CL_TRUE, ptr::null_mut()) };
        let finished = self.finish();
        good(doing, status)?;
        good(doing, finished)
    }

    /// Has the device begin with what is in the queue.
    #[inline]
    pub(super) fn flush(&self) -> i32 {
        // SAFETY: the queue is there.
        unsafe { (self.context.api.flush)(self.handle) }
    }

    /// Waits until the queue is empty.
    #[inline]
    pub(super) fn finish(&self) -> i32 {
        // SAFETY: the queue is there.
        unsafe { (self.context.api.finish)(self.handle) }
    }

    /// Waits for events of commands of this context, and gives them back.
    #[inline]
    pub(super) fn wait(&self, events: &[cl::cl_event]) -> i32 {
        // SAFETY: the events are those of commands that were taken, and each is given back once.
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
        // SAFETY: it is given back once.
        unsafe {
            (self.context.api.release_queue)(self.handle);
        }
    }
}
