//! A queue of a device, and what is launched through it.

#![allow(unsafe_code)]

use super::OpenClError;
use super::api::{Api, Status};
use super::copies::Copies;
use super::device::{Device, Id, good, text};
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::{Launch, MachineError, Told};
use opencl_sys as cl;
use rustix::io::Errno;
use std::ptr;

/// What is launched.
const SOURCE: &str = "__kernel void nothing(void) {}\n";
const NAME: &std::ffi::CStr = c"nothing";

/// An in-order queue with a kernel that does nothing.
#[derive(Debug)]
pub(super) struct Queue {
    api: Api,
    /// Handles, released in the opposite order.
    context: cl::cl_context,
    commands: cl::cl_command_queue,
    program: cl::cl_program,
    kernel: cl::cl_kernel,
    /// Made when a copy is first asked for, and again for another length.
    copies: Option<Copies>,
}

// SAFETY: handles may be used from any thread (OpenCL 3.0, section 2.1), and one thread at a time has a queue.
unsafe impl Send for Queue {}

impl Queue {
    /// Builds the kernel.
    ///
    /// # Errors
    /// What the runtime said, and [`OpenClError::NotBuilt`].
    pub(super) fn new(device: &Device) -> Result<Queue, OpenClError> {
        let (api, Id(id)) = (Api::loaded()?, device.id);
        // Released as far as it was made, whatever happens below.
        let mut queue = Queue {
            api,
            context: ptr::null_mut(),
            commands: ptr::null_mut(),
            program: ptr::null_mut(),
            kernel: ptr::null_mut(),
            copies: None,
        };
        let mut status = cl::CL_SUCCESS;
        // SAFETY: `id` is a device's, and every handle is that of a call that succeeded.
        unsafe {
            queue.context = (api.create_context)(ptr::null(), 1, &raw const id, None, ptr::null_mut(), &raw mut status);
            good("making a context", status)?;
            queue.commands = (api.create_queue)(queue.context, id, 0, &raw mut status);
            good("making a queue", status)?;
            let (mut source, len) = (SOURCE.as_ptr().cast(), SOURCE.len());
            queue.program = (api.create_program)(queue.context, 1, &raw mut source, &raw const len, &raw mut status);
            good("giving it a kernel", status)?;
            let built = (api.build_program)(queue.program, 1, &raw const id, ptr::null(), None, ptr::null_mut());
            if built != cl::CL_SUCCESS {
                return Err(queue.not_built(device, built));
            }
            queue.kernel = (api.create_kernel)(queue.program, NAME.as_ptr(), &raw mut status);
            good("finding the kernel", status)?;
        }
        Ok(queue)
    }

    fn not_built(&self, device: &Device, status: i32) -> OpenClError {
        let Id(id) = device.id;
        let log = text(|len, into, used| {
            // SAFETY: `text` gives room for `len` bytes, and a place for how many there are.
            unsafe { (self.api.build_info)(self.program, id, cl::CL_PROGRAM_BUILD_LOG, len, into, used) }
        });
        OpenClError::NotBuilt {
            device: device.to_string(),
            status: Status(status),
            log: log.unwrap_or_else(|error| format!("(no log: {error})")),
        }
    }

    /// Buffers of this length.
    ///
    /// # Errors
    /// What the runtime or the system said.
    pub(super) fn copies(&mut self, bytes: u64) -> Result<&mut Copies, OpenClError> {
        let bytes = bytes as usize;
        let kept = self.copies.take().filter(|copies| copies.are_of(bytes));
        let copies = match kept {
            Some(copies) => copies,
            None => Copies::new(self.api, self.context, self.commands, bytes)?,
        };
        Ok(self.copies.insert(copies))
    }

    /// Times `passes` passes.
    pub(super) fn timed(
        &self,
        machine: &str,
        launch: Launch,
        limits: &Limits<'_>,
        first: u64,
        passes: u64,
    ) -> Result<Stamps, MachineError> {
        let mut status = cl::CL_SUCCESS;
        let stamps = match launch.told {
            Told::Finish => timed(limits, first, passes, |_| {
                for _ in 0..launch.kernels {
                    status = self.enqueue(ptr::null_mut());
                    if status != cl::CL_SUCCESS {
                        return Err(Errno::IO);
                    }
                }
                // SAFETY: the queue is there as long as this is.
                status = unsafe { (self.api.finish)(self.commands) };
                if status == cl::CL_SUCCESS { Ok(()) } else { Err(Errno::IO) }
            }),
            Told::Event => timed(limits, first, passes, |_| {
                for _ in 1..launch.kernels {
                    status = self.enqueue(ptr::null_mut());
                    if status != cl::CL_SUCCESS {
                        return Err(Errno::IO);
                    }
                }
                let mut event: cl::cl_event = ptr::null_mut();
                status = self.enqueue(&raw mut event);
                if status == cl::CL_SUCCESS {
                    // SAFETY: the event is that of the launch, and is given back once.
                    status = unsafe {
                        let waited = (self.api.wait)(1, &raw const event);
                        let released = (self.api.release_event)(event);
                        if waited == cl::CL_SUCCESS { released } else { waited }
                    };
                }
                if status == cl::CL_SUCCESS { Ok(()) } else { Err(Errno::IO) }
            }),
        };
        if status == cl::CL_SUCCESS {
            return Ok(stamps);
        }
        let what = format!("{machine}: launching a kernel, told by {}: {}", launch.told, Status(status));
        Err(MachineError::Device { machine: machine.to_owned(), what })
    }

    /// Puts one launch of one work item into the queue.
    #[inline]
    fn enqueue(&self, event: *mut cl::cl_event) -> i32 {
        let one = 1_usize;
        // SAFETY: queue and kernel are there as long as this is, and the kernel has no argument.
        unsafe {
            (self.api.enqueue_kernel)(
                self.commands,
                self.kernel,
                1,
                ptr::null(),
                &raw const one,
                ptr::null(),
                0,
                ptr::null(),
                event,
            )
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.copies = None;
        // SAFETY: each handle is given back once, if it was made.
        unsafe {
            if !self.kernel.is_null() {
                (self.api.release_kernel)(self.kernel);
            }
            if !self.program.is_null() {
                (self.api.release_program)(self.program);
            }
            if !self.commands.is_null() {
                (self.api.release_queue)(self.commands);
            }
            if !self.context.is_null() {
                (self.api.release_context)(self.context);
            }
        }
    }
}
