//! Copies between host memory and device memory.

#![allow(unsafe_code)]

use super::commands::Commands;
use super::error::OpenClError;
use super::memory::Memory;
use super::memory_at::At;
use crate::NoHostMemory;
use crate::x86::buffer::Buffer;
use crate::x86::pattern;
use crate::x86::sample::{Ending, Limits, Stamps, stamp_after, stamp_before};
use lanemark_machine::{Allocation, Confirmed, HostWait, RuntimeCopy, Verb};
use opencl_sys as cl;
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Host and device memory of one length, for copies between them.
#[derive(Debug)]
pub(super) struct Copies {
    commands: Arc<Commands>,
    /// The program's end of the copies.
    own: Own,
    /// Expected contents, for the comparison.
    other: Buffer,
    device: Memory,
    allocation: Allocation,
    bytes: usize,
}

/// Host memory at the program's end of a copy.
#[derive(Debug)]
enum Own {
    Ordinary(Buffer),
    /// Host memory that the runtime allocated, with its address.
    Runtime {
        start: *mut u8,
        bytes: usize,
        _memory: Memory,
    },
}

impl Own {
    fn at(&mut self) -> *mut u8 {
        match self {
            Own::Ordinary(buffer) => buffer.at(0),
            Own::Runtime { start, .. } => *start,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Own::Ordinary(buffer) => buffer.bytes(),
            // SAFETY: the memory is valid as long as `_memory`, was zeroed on creation, and no copy is in flight between two calls.
            Own::Runtime { start, bytes, .. } => unsafe { std::slice::from_raw_parts(*start, *bytes) },
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Own::Ordinary(buffer) => buffer.bytes_mut(),
            // SAFETY: as for `bytes`.
            Own::Runtime { start, bytes, .. } => unsafe { std::slice::from_raw_parts_mut(*start, *bytes) },
        }
    }
}

impl Copies {
    /// Allocates both ends, of `bytes` bytes each (at least 1).
    ///
    /// # Errors
    /// Errors of the runtime or the system, usually too little memory.
    pub(super) fn new(commands: &Arc<Commands>, allocation: Allocation, bytes: usize) -> Result<Copies, OpenClError> {
        let short = |error: Errno| NoHostMemory { bytes: bytes as u64, because: error.to_string() };
        let buffer = || Buffer::new(bytes).map_err(short);
        let context = &commands.context;
        let own = if allocation == Allocation::Host {
            let memory = Memory::new(context, Allocation::Host, bytes)?;
            let At::Address(start) = memory.at() else { return Err(OpenClError::NoFunction("clHostMemAllocINTEL")) };
            let start = start.cast::<u8>();
            // SAFETY: the runtime allocated `bytes` bytes; they are initialised here before the first read.
            unsafe { start.write_bytes(0, bytes) };
            Own::Runtime { start, bytes, _memory: memory }
        } else {
            Own::Ordinary(buffer()?)
        };
        let on_device = if allocation == Allocation::Host { Allocation::Device } else { allocation };
        let device = Memory::new(context, on_device, bytes)?;
        Ok(Copies { commands: Arc::clone(commands), own, other: buffer()?, device, allocation, bytes })
    }

    /// Whether these ends can be reused for such a copy.
    pub(super) fn matches(&self, allocation: Allocation, bytes: usize) -> bool {
        self.allocation == allocation && self.bytes == bytes
    }

    /// Fills the source of the copy and its destination with different values that depend on `seed`.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn prepare(&mut self, verb: Verb, seed: u64) -> Result<(), OpenClError> {
        let (source, stale) = (seed.wrapping_mul(2), seed.wrapping_mul(2).wrapping_add(1));
        let (on_device, own) = if verb == Verb::Store { (stale, source) } else { (source, stale) };
        pattern::fill(self.other.bytes_mut(), on_device);
        self.commands.copy_and_wait("filling device memory", Verb::Store, self.other.bytes_mut(), &self.device)?;
        pattern::fill(self.own.bytes_mut(), own);
        Ok(())
    }

    /// Number of bytes that the last copy moved correctly, after [`prepare`](Copies::prepare) with the same `seed`.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn confirmed(&mut self, verb: Verb, seed: u64) -> Result<Confirmed, OpenClError> {
        pattern::fill(self.other.bytes_mut(), seed.wrapping_mul(2));
        if verb == Verb::Store {
            // If the read-back moves nothing, the stale bytes differ from the expected ones.
            pattern::fill(self.own.bytes_mut(), seed.wrapping_mul(2).wrapping_add(1));
            let own = self.own.bytes_mut();
            self.commands.copy_and_wait("reading back device memory", Verb::Load, own, &self.device)?;
        }
        let confirmed_bytes = pattern::equal_bytes(self.own.bytes(), self.other.bytes());
        Ok(Confirmed { claimed_bytes: self.bytes as u64, confirmed_bytes })
    }

    /// Times `passes` copies; returns the stamps and the status of the last call.
    pub(super) fn timed(&mut self, moved: RuntimeCopy, limits: &Limits<'_>, passes: u64) -> (Stamps, i32) {
        let (at, is_mapped) = (self.own.at(), self.allocation == Allocation::Mapped);
        let (mut status, mut ending) = (cl::CL_SUCCESS, Ending::Done);
        let start = stamp_before();
        for pass in 0..passes {
            status = match moved.wait {
                _ if is_mapped => self.mapped(moved.verb, at, moved.wait),
                HostWait::Finish => self.copy(moved.verb, at, cl::CL_TRUE, ptr::null_mut()),
                HostWait::Event => self.by_event(moved.verb, at),
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
        if moved.wait == HostWait::Finish && status == cl::CL_SUCCESS {
            status = self.commands.finish();
            delivered = stamp_after();
        }
        (Stamps { start, issued, delivered, ending }, status)
    }

    #[inline]
    fn by_event(&self, verb: Verb, at: *mut u8) -> i32 {
        let mut event: cl::cl_event = ptr::null_mut();
        let status = self.copy(verb, at, cl::CL_FALSE, &raw mut event);
        if status == cl::CL_SUCCESS { self.commands.wait(&[event]) } else { status }
    }

    /// Enqueues a copy between `at` and the device.
    #[inline]
    fn copy(&self, verb: Verb, at: *mut u8, blocks: cl::cl_bool, event: *mut cl::cl_event) -> i32 {
        // SAFETY: `at` is the start of the program's end; both ends stay valid until `drop` has emptied the queue.
        unsafe { self.commands.copy(verb, at, self.device.at(), self.bytes, blocks, event) }
    }

    /// Maps the object, copies with this core, and unmaps it; `Event` waits for the unmap, `Finish` leaves that to the caller.
    #[inline]
    fn mapped(&self, verb: Verb, at: *mut u8, wait: HostWait) -> i32 {
        let (api, queue, bytes) = (&self.commands.context.api, self.commands.handle, self.bytes);
        let At::Object(object) = self.device.at() else { return cl::CL_INVALID_MEM_OBJECT };
        let flags = if verb == Verb::Store { cl::CL_MAP_WRITE_INVALIDATE_REGION } else { cl::CL_MAP_READ };
        let (mut status, mut event) = (cl::CL_SUCCESS, ptr::null_mut());
        // SAFETY: queue and object are valid. The mapping has as many bytes as the program's end, does not overlap it, and
        // is not used after the unmap.
        unsafe {
            let (none, blocks) = (ptr::null(), cl::CL_TRUE);
            let no_event = ptr::null_mut();
            let mapping = (api.map_buffer)(queue, object, blocks, flags, 0, bytes, 0, none, no_event, &raw mut status);
            if status != cl::CL_SUCCESS {
                return status;
            }
            match verb {
                Verb::Store => ptr::copy_nonoverlapping(at.cast_const(), mapping.cast(), bytes),
                Verb::Load => ptr::copy_nonoverlapping(mapping.cast_const().cast(), at, bytes),
            }
            let event = if wait == HostWait::Event { &raw mut event } else { no_event };
            status = (api.unmap)(queue, object, mapping, 0, none, event);
        }
        if wait == HostWait::Event && status == cl::CL_SUCCESS { self.commands.wait(&[event]) } else { status }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        // A failed copy may still be in flight.
        let _ = self.commands.finish();
    }
}
