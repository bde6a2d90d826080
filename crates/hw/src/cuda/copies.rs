//! Copies between host memory and device memory by the driver.

#![allow(unsafe_code)]

use super::api::Handle;
use super::context::Context;
use super::error::CudaError;
use super::memory::{DeviceMemory, HostMemory, Pinned};
use super::status::SUCCESS;
use crate::NoHostMemory;
use crate::x86::buffer::Buffer;
use crate::x86::pattern;
use crate::x86::sample::{Ending, Limits, Stamps, stamp_after, stamp_before};
use lanemark_machine::{Allocation, Confirmed, HostWait, RuntimeCopy, Verb};
use rustix::io::Errno;
use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Host and device memory of one length, for copies between them.
#[derive(Debug)]
pub(super) struct Copies {
    context: Arc<Context>,
    event: Handle,
    /// The program's end of the copies.
    own: Own,
    /// Expected contents, for the comparison.
    other: Buffer,
    device: DeviceMemory,
    allocation: Allocation,
    bytes: usize,
}

// SAFETY: handles of the driver may be used from any thread on which the context is current.
unsafe impl Send for Copies {}

/// Host memory at the program's end of a copy.
#[derive(Debug)]
enum Own {
    /// Ordinary memory, which the driver copies through buffers of its own.
    Ordinary(Buffer),
    /// Ordinary memory that the driver has locked.
    Registered(Registered),
    /// Memory that the driver allocated.
    Driver(HostMemory),
}

/// Ordinary memory, page-locked and mapped for the device until it is dropped.
#[derive(Debug)]
struct Registered {
    context: Arc<Context>,
    buffer: Buffer,
}

/// Flags of `cuMemHostRegister`: portable 1, mapped for the device 2.
const REGISTERED: u32 = 1 | 2;

impl Registered {
    fn new(context: &Arc<Context>, mut buffer: Buffer, len: usize) -> Result<Registered, CudaError> {
        // SAFETY: the memory is mapped for `len` bytes, and unregistered before it is unmapped.
        let status = unsafe { (context.api.register_host)(buffer.at(0).cast(), len, REGISTERED) };
        CudaError::check("registering host memory", status)?;
        Ok(Registered { context: Arc::clone(context), buffer })
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the memory was registered once, and no copy is in flight: its owner waits for the stream.
            unsafe { (self.context.api.unregister_host)(self.buffer.at(0).cast()) };
        }
    }
}

impl Own {
    fn at(&mut self) -> *mut u8 {
        match self {
            Own::Ordinary(buffer) | Own::Registered(Registered { buffer, .. }) => buffer.at(0),
            Own::Driver(memory) => memory.start,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Own::Ordinary(buffer) | Own::Registered(Registered { buffer, .. }) => buffer.bytes(),
            Own::Driver(memory) => memory.bytes(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Own::Ordinary(buffer) | Own::Registered(Registered { buffer, .. }) => buffer.bytes_mut(),
            Own::Driver(memory) => memory.bytes_mut(),
        }
    }
}

impl Copies {
    /// Allocates both ends, of `bytes` bytes each (at least 1).
    ///
    /// # Errors
    /// Errors of the driver or the system, usually too little memory.
    pub(super) fn new(context: &Arc<Context>, allocation: Allocation, bytes: usize) -> Result<Copies, CudaError> {
        let short = |error: Errno| NoHostMemory { bytes: bytes as u64, because: error.to_string() };
        let buffer = || Buffer::new(bytes).map_err(short);
        let own = match allocation {
            Allocation::Host => Own::Driver(HostMemory::new(context, bytes, Pinned::Plain)?),
            Allocation::Combining => Own::Driver(HostMemory::new(context, bytes, Pinned::Combining)?),
            Allocation::Registered => Own::Registered(Registered::new(context, buffer()?, bytes)?),
            Allocation::Device | Allocation::Buffer | Allocation::Mapped => Own::Ordinary(buffer()?),
        };
        let device = DeviceMemory::new(context, bytes)?;
        let other = buffer()?;
        let event = context.event()?;
        Ok(Copies { context: Arc::clone(context), event, own, other, device, allocation, bytes })
    }

    /// Whether these ends can be reused for such a copy.
    pub(super) fn matches(&self, allocation: Allocation, bytes: usize) -> bool {
        self.allocation == allocation && self.bytes == bytes
    }

    /// Fills the source of the copy and its destination with different values that depend on `seed`.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn fill(&mut self, verb: Verb, seed: u64) -> Result<(), CudaError> {
        let (source, stale) = (seed.wrapping_mul(2), seed.wrapping_mul(2).wrapping_add(1));
        let (on_device, own) = if verb == Verb::Store { (stale, source) } else { (source, stale) };
        pattern::fill(self.other.bytes_mut(), on_device);
        self.context.write(self.device.at, self.other.bytes())?;
        pattern::fill(self.own.bytes_mut(), own);
        Ok(())
    }

    /// Number of bytes that the last copy moved correctly, after [`fill`](Copies::fill) with the same `seed`.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn confirmed(&mut self, verb: Verb, seed: u64) -> Result<Confirmed, CudaError> {
        pattern::fill(self.other.bytes_mut(), seed.wrapping_mul(2));
        if verb == Verb::Store {
            // If the read-back moves nothing, the stale bytes differ from the expected ones.
            pattern::fill(self.own.bytes_mut(), seed.wrapping_mul(2).wrapping_add(1));
            self.context.read(self.device.at, self.own.bytes_mut())?;
        }
        let confirmed_bytes = pattern::equal_bytes(self.own.bytes(), self.other.bytes());
        Ok(Confirmed { claimed_bytes: self.bytes as u64, confirmed_bytes })
    }

    /// Starts `count` copies to the device, which the caller waits for.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn start(&mut self, count: u32) -> Result<(), CudaError> {
        let (at, stream) = (self.own.at().cast_const().cast(), self.context.stream);
        for _ in 0..count {
            // SAFETY: both ends have `bytes` bytes and stay valid: `drop` waits for the stream.
            let status = unsafe { (self.context.api.start_to_device)(self.device.at, at, self.bytes, stream) };
            CudaError::check("copying between host and device", status)?;
        }
        Ok(())
    }

    /// Times `passes` copies; returns the stamps and the status of the last call.
    pub(super) fn timed(&mut self, moved: RuntimeCopy, limits: &Limits<'_>, passes: u64) -> (Stamps, c_int) {
        let at = self.own.at();
        let (mut status, mut ending) = (SUCCESS, Ending::Done);
        let start = stamp_before();
        for pass in 0..passes {
            status = match moved.wait {
                HostWait::Finish => self.blocking(moved.verb, at),
                HostWait::Event => self.by_event(moved.verb, at),
            };
            if status != SUCCESS {
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
        if moved.wait == HostWait::Finish && status == SUCCESS {
            // A blocking copy works in the default stream.
            // SAFETY: the default stream always exists.
            status = unsafe { (self.context.api.wait_stream)(ptr::null_mut()) };
            delivered = stamp_after();
        }
        (Stamps { start, issued, delivered, ending }, status)
    }

    #[inline]
    fn blocking(&self, verb: Verb, at: *mut u8) -> c_int {
        let (api, device) = (&self.context.api, self.device.at);
        // SAFETY: both ends have `bytes` bytes.
        unsafe {
            match verb {
                Verb::Store => (api.to_device)(device, at.cast_const().cast(), self.bytes),
                Verb::Load => (api.from_device)(at.cast(), device, self.bytes),
            }
        }
    }

    /// Starts a copy, and waits for an event after it.
    #[inline]
    fn by_event(&self, verb: Verb, at: *mut u8) -> c_int {
        let (api, device, stream) = (&self.context.api, self.device.at, self.context.stream);
        // SAFETY: both ends have `bytes` bytes and stay valid: `drop` waits for the stream.
        unsafe {
            let mut status = match verb {
                Verb::Store => (api.start_to_device)(device, at.cast_const().cast(), self.bytes, stream),
                Verb::Load => (api.start_from_device)(at.cast(), device, self.bytes, stream),
            };
            if status == SUCCESS {
                status = (api.record_event)(self.event, stream);
            }
            if status == SUCCESS { (api.wait_event)(self.event) } else { status }
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // A failed copy may still be in flight.
            // SAFETY: stream and event are valid, and the event is destroyed once.
            unsafe {
                (self.context.api.wait_stream)(self.context.stream);
                (self.context.api.destroy_event)(self.event);
            }
        }
    }
}
