//! A buffer of the program, one of the device, and the copies between them.

#![allow(unsafe_code)]

use super::OpenClError;
use super::api::Api;
use super::device::good;
use crate::x86::buffer::Buffer;
use crate::x86::pattern;
use crate::x86::sample::{Ending, Limits, Stamps, stamp_after, stamp_before};
use lanemark_machine::{Confirmed, MovedByRuntime, Told, Verb};
use opencl_sys as cl;
use std::ptr;
use std::sync::atomic::Ordering;

/// Both buffers, of one length.
#[derive(Debug)]
pub(super) struct Copies {
    api: Api,
    commands: cl::cl_command_queue,
    /// What the program copies from or to.
    own: Buffer,
    /// What is held against it.
    other: Buffer,
    device: cl::cl_mem,
    bytes: usize,
}

impl Copies {
    /// Of so many bytes each, at least 1; `commands` is a queue of `context` and outlives this.
    ///
    /// # Errors
    /// What the runtime or the system said, mostly that memory is short.
    pub(super) fn new(
        api: Api,
        context: cl::cl_context,
        commands: cl::cl_command_queue,
        bytes: usize,
    ) -> Result<Copies, OpenClError> {
        let short = |error| OpenClError::System(format!("memory for copies of {bytes} B: {error}"));
        let (own, other) = (Buffer::new(bytes).map_err(short)?, Buffer::new(bytes).map_err(short)?);
        let mut status = cl::CL_SUCCESS;
        // SAFETY: the context is there, and no memory of the program's is handed over.
        let device =
            unsafe { (api.create_buffer)(context, cl::CL_MEM_READ_WRITE, bytes, ptr::null_mut(), &raw mut status) };
        good("making a buffer on the device", status)?;
        Ok(Copies { api, commands, own, other, device, bytes })
    }

    /// Whether they are of this length.
    pub(super) fn are_of(&self, bytes: usize) -> bool {
        self.bytes == bytes
    }

    /// Puts bytes where a copy is to take them, which another `seed` makes others, and other ones where it is to put them.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn prepare(&mut self, verb: Verb, seed: u64) -> Result<(), OpenClError> {
        let (source, stale) = (seed.wrapping_mul(2), seed.wrapping_mul(2).wrapping_add(1));
        let (on_device, own) = if verb == Verb::Store { (stale, source) } else { (source, stale) };
        pattern::fill(self.own.bytes_mut(), on_device);
        let (at, to) = (self.own.at(0), Verb::Store);
        good("filling a buffer of the device", self.blocking(to, at))?;
        good("filling a buffer of the device", self.finish())?;
        pattern::fill(self.own.bytes_mut(), own);
        Ok(())
    }

    /// How many bytes a copy has brought where it was to bring them, since [`prepare`](Copies::prepare) with the same `seed`.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn confirmed(&mut self, verb: Verb, seed: u64) -> Result<Confirmed, OpenClError> {
        let at = self.other.at(0);
        pattern::fill(self.other.bytes_mut(), seed.wrapping_mul(2));
        if verb == Verb::Store {
            good("reading a buffer of the device back", self.blocking(Verb::Load, at))?;
            good("reading a buffer of the device back", self.finish())?;
        }
        let confirmed_bytes = pattern::equal_bytes(self.own.bytes(), self.other.bytes());
        Ok(Confirmed { claimed_bytes: self.bytes as u64, confirmed_bytes })
    }

    /// Times `passes` copies; the status of the last call is beside the stamps.
    pub(super) fn timed(&mut self, moved: MovedByRuntime, limits: &Limits<'_>, passes: u64) -> (Stamps, i32) {
        let at = self.own.at(0);
        let (mut status, mut ending) = (cl::CL_SUCCESS, Ending::Done);
        let start = stamp_before();
        for pass in 0..passes {
            status = match moved.told {
                Told::Finish => self.blocking(moved.verb, at),
                Told::Event => self.by_event(moved.verb, at),
            };
            if status != cl::CL_SUCCESS {
                break;
            }
            let is_late = || stamp_before().saturating_sub(start) > limits.timeout_cycles;
            if pass + 1 < passes && (is_late() || limits.interrupted.load(Ordering::Relaxed)) {
                ending = Ending::Stopped(pass + 1);
                break;
            }
        }
        let issued = stamp_after();
        let mut delivered = issued;
        if moved.told == Told::Finish && status == cl::CL_SUCCESS {
            status = self.finish();
            delivered = stamp_after();
        }
        (Stamps { start, issued, delivered, ending }, status)
    }

    #[inline]
    fn blocking(&self, verb: Verb, at: *mut u8) -> i32 {
        self.copy(verb, at, cl::CL_TRUE, ptr::null_mut())
    }

    #[inline]
    fn by_event(&self, verb: Verb, at: *mut u8) -> i32 {
        let mut event: cl::cl_event = ptr::null_mut();
        let status = self.copy(verb, at, cl::CL_FALSE, &raw mut event);
        if status != cl::CL_SUCCESS {
            return status;
        }
        // SAFETY: the event is that of the copy, and is given back once; it is waited for, so that nobody uses `at` afterwards.
        unsafe {
            let waited = (self.api.wait)(1, &raw const event);
            let released = (self.api.release_event)(event);
            if waited == cl::CL_SUCCESS { released } else { waited }
        }
    }

    /// Asks for a copy between `at`, where there are as many bytes, and the device.
    #[inline]
    fn copy(&self, verb: Verb, at: *mut u8, blocks: cl::cl_bool, event: *mut cl::cl_event) -> i32 {
        let (commands, device, bytes) = (self.commands, self.device, self.bytes);
        // SAFETY: the queue and the buffer are there; `at` is the start of one of this one's buffers, which live until `drop` has seen the queue
        // empty.
        unsafe {
            match verb {
                Verb::Store => {
                    (self.api.write_buffer)(commands, device, blocks, 0, bytes, at.cast(), 0, ptr::null(), event)
                }
                Verb::Load => {
                    (self.api.read_buffer)(commands, device, blocks, 0, bytes, at.cast(), 0, ptr::null(), event)
                }
            }
        }
    }

    #[inline]
    fn finish(&self) -> i32 {
        // SAFETY: the queue is there.
        unsafe { (self.api.finish)(self.commands) }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        // A copy that failed half way may still be under way.
        let _ = self.finish();
        // SAFETY: the buffer is given back once.
        unsafe {
            (self.api.release_memory)(self.device);
        }
    }
}
