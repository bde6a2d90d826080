//! SYCL queue of a device: launches and copies.

#![allow(unsafe_code)]

use super::api::{Api, Handle, Message};
use super::device::Device;
use super::error::SyclError;
use super::workers::SyclWorkers;
use crate::NoHostMemory;
use crate::kernel_source::nothing;
use crate::opencl::FinishedKernels;
use crate::opencl::context::Context;
use crate::opencl::program::{Kernel, Program};
use crate::runtime_common::computing::Computing;
use crate::x86::buffer::Buffer;
use crate::x86::pattern;
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_compute::Workload;
use lanemark_machine::{Allocation, Arguments, Confirmed, HostWait, Launch, RuntimeCopy, Verb};
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;

/// Number of memory ports: not selectable, because the accessor properties that name a port need a SYCL compiler.
pub(super) const MEMORY_PORTS: u32 = 1;

/// In-order queue, and what was allocated for plans.
#[derive(Debug)]
pub(super) struct Queue {
    /// Compute kernels of the last work; they have queues of their own and are dropped before the handle.
    computing: Option<Computing<SyclWorkers>>,
    api: Api,
    handle: *mut Handle,
    /// OpenCL context below the queue.
    context: Arc<Context>,
    /// Empty kernels, by number of arguments.
    kernels: [Option<Kernel>; Arguments::MOST as usize + 1],
    copies: Option<Copies>,
}

// SAFETY: SYCL queues and OpenCL handles may be used from any thread, and one thread at a time uses this value.
unsafe impl Send for Queue {}

/// Memory of the last copies; the device's end belongs to the shim's queue.
#[derive(Debug)]
struct Copies {
    bytes: usize,
    allocation: Allocation,
    own: Own,
}

/// Host memory at the program's end of a copy.
#[derive(Debug)]
enum Own {
    /// Ordinary memory.
    Ordinary(Buffer),
    /// Memory that the runtime allocated and keeps until the copies are replaced.
    Runtime(*mut u8, usize),
}

impl Own {
    fn at(&mut self) -> *mut u8 {
        match self {
            Own::Ordinary(buffer) => buffer.at(0),
            Own::Runtime(start, _) => *start,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Own::Ordinary(buffer) => buffer.bytes_mut(),
            // SAFETY: the runtime allocated `bytes` bytes, which only a copy in flight uses, and no copy is in flight between calls.
            Own::Runtime(start, bytes) => unsafe { std::slice::from_raw_parts_mut(*start, *bytes) },
        }
    }
}

/// Allocation code of the shim.
const fn code(allocation: Allocation) -> i32 {
    match allocation {
        Allocation::Buffer | Allocation::Mapped => 0,
        Allocation::Device => 1,
        // The check of a plan refuses the others.
        Allocation::Host | Allocation::Registered | Allocation::Combining => 2,
    }
}

impl Queue {
    /// Opens a queue on `device`.
    ///
    /// # Errors
    /// [`SyclError::OtherBackend`], and errors of SYCL.
    pub(super) fn new(device: &Device, kernels: Option<FinishedKernels>) -> Result<Queue, SyclError> {
        if !device.is_opencl {
            return Err(SyclError::OtherBackend(device.to_string()));
        }
        let (api, mut said) = (Api::loaded()?, Message::EMPTY);
        let (mut handle, mut context, mut id) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: each pointer is valid for one handle.
        let status =
            unsafe { (api.open)(device.number, &raw mut handle, &raw mut context, &raw mut id, &raw mut said) };
        said.check("creating a queue", status)?;
        // SAFETY: the shim returned both handles, and a reference to the context with them.
        let context = unsafe { Context::adopt(context, id, device.to_string(), kernels) };
        if context.is_err() {
            // SAFETY: the queue is closed once.
            unsafe { (api.close)(handle) };
        }
        let kernels = [const { None }; Arguments::MOST as usize + 1];
        Ok(Queue { computing: None, api, handle, context: context?, kernels, copies: None })
    }

    /// Whether kernels may use double precision.
    pub(super) fn has_double(&self) -> bool {
        self.context.has_double
    }

    /// Returns the compute kernels of `work`, with their arrays.
    ///
    /// # Errors
    /// Errors of SYCL, OpenCL or the system.
    pub(super) fn computing(&mut self, work: &Workload) -> Result<&mut Computing<SyclWorkers>, SyclError> {
        // Free the memory of the last copies, which may be large.
        self.copies = None;
        let kept = self.computing.take().filter(|computing| computing.matches(work));
        let computing = match kept {
            Some(computing) => computing,
            None => Computing::new(work, MEMORY_PORTS, |spec| {
                // SAFETY: the handle is that of this queue.
                unsafe { SyclWorkers::new(self.api, self.handle, &self.context, &spec) }
            })?,
        };
        Ok(self.computing.insert(computing))
    }

    /// Builds the kernel and allocates the arguments of a launch.
    ///
    /// # Errors
    /// Errors of SYCL or OpenCL.
    pub(super) fn prepare_launch(&mut self, launch: Launch) -> Result<(), SyclError> {
        let Arguments { count, allocation } = launch.arguments;
        let mut said = Message::EMPTY;
        if let Some(place @ None) = self.kernels.get_mut(count as usize) {
            let kernel = Program::of(&self.context, &nothing(count))?.kernel()?;
            // SAFETY: the kernel lives as long as the queue.
            let status = unsafe { (self.api.kernel)(self.handle, count, kernel.handle(), &raw mut said) };
            said.check("creating a SYCL kernel", status)?;
            *place = Some(kernel);
        }
        // SAFETY: the queue is valid.
        let status = unsafe { (self.api.arguments)(self.handle, count, code(allocation), &raw mut said) };
        said.check("allocating kernel arguments", status)
    }

    /// Times `passes` iterations of launches, after [`prepare_launch`](Queue::prepare_launch).
    ///
    /// # Errors
    /// Errors of SYCL.
    pub(super) fn launches(
        &mut self,
        launch: Launch,
        limits: &Limits<'_>,
        first: u64,
        passes: u64,
    ) -> Result<Stamps, SyclError> {
        let mut said = Message::EMPTY;
        let stamps = timed(limits, first, passes, |_| match self.launch(launch, &mut said) {
            0 => Ok(()),
            _ => Err(Errno::IO),
        });
        self.over(stamps, &said, "launching a kernel")
    }

    #[inline]
    fn launch(&self, launch: Launch, said: &mut Message) -> i32 {
        let Launch { kernels, wait, arguments: Arguments { count, allocation }, .. } = launch;
        // SAFETY: the queue is valid, and `prepare_launch` has built the kernel and its arguments.
        unsafe {
            (self.api.launch)(self.handle, kernels, u32::from(wait == HostWait::Event), count, code(allocation), said)
        }
    }

    /// Allocates both ends of a copy, unless those of the last copy have the same length and kind.
    ///
    /// # Errors
    /// Errors of SYCL or the system.
    pub(super) fn allocate_copies(&mut self, moved: RuntimeCopy) -> Result<(), SyclError> {
        let (bytes, allocation) = (moved.bytes as usize, moved.allocation);
        let kept = self.copies.take().filter(|copies| (copies.bytes, copies.allocation) == (bytes, allocation));
        self.copies = Some(match kept {
            Some(copies) => copies,
            None => self.copies_of(bytes, allocation)?,
        });
        Ok(())
    }

    /// Fills the source of the copy and its destination with different values that depend on `seed`, after
    /// [`allocate_copies`](Queue::allocate_copies).
    ///
    /// # Errors
    /// Errors of SYCL.
    pub(super) fn prepare(&mut self, verb: Verb, seed: u64) -> Result<(), SyclError> {
        let (source, stale) = (seed.wrapping_mul(2), seed.wrapping_mul(2).wrapping_add(1));
        let (on_device, own) = if verb == Verb::Store { (stale, source) } else { (source, stale) };
        if let Some(copies) = &mut self.copies {
            pattern::fill(copies.own.bytes_mut(), on_device);
            let at = copies.own.at();
            self.copy_untimed(Verb::Store, at, "filling device memory")?;
        }
        if let Some(copies) = &mut self.copies {
            pattern::fill(copies.own.bytes_mut(), own);
        }
        Ok(())
    }

    fn copies_of(&self, bytes: usize, allocation: Allocation) -> Result<Copies, SyclError> {
        let (mut said, mut given) = (Message::EMPTY, ptr::null_mut());
        // SAFETY: no copy is in flight, and `self.copies`, which held the runtime's earlier memory, is empty.
        let status = unsafe { (self.api.copies)(self.handle, bytes, code(allocation), &raw mut given, &raw mut said) };
        said.check("allocating device memory", status)?;
        let own = if allocation == Allocation::Host {
            Own::Runtime(given.cast(), bytes)
        } else {
            let short = |error: Errno| NoHostMemory { bytes: bytes as u64, because: error.to_string() };
            Own::Ordinary(Buffer::new(bytes).map_err(short)?)
        };
        Ok(Copies { bytes, allocation, own })
    }

    /// Times `passes` copies, after [`prepare`](Queue::prepare).
    ///
    /// # Errors
    /// Errors of SYCL.
    pub(super) fn copies(
        &mut self,
        moved: RuntimeCopy,
        limits: &Limits<'_>,
        first: u64,
        passes: u64,
    ) -> Result<Stamps, SyclError> {
        let at = self.copies.as_mut().map_or(ptr::null_mut(), |copies| copies.own.at());
        let mut said = Message::EMPTY;
        let stamps = timed(limits, first, passes, |_| match self.copy(moved.verb, moved.wait, at, &mut said) {
            0 => Ok(()),
            _ => Err(Errno::IO),
        });
        self.over(stamps, &said, "copying between host and device")
    }

    /// Copies between `at`, of the allocated length, and the device, and waits.
    #[inline]
    fn copy(&self, verb: Verb, wait: HostWait, at: *mut u8, said: &mut Message) -> i32 {
        let (to_device, by_event) = (u32::from(verb == Verb::Store), u32::from(wait == HostWait::Event));
        // SAFETY: queue and memory are valid; `at` is the start of the program's end, which is not used after this returns.
        unsafe { (self.api.copy)(self.handle, to_device, by_event, at, said) }
    }

    /// Copies once, without timing.
    fn copy_untimed(&self, verb: Verb, at: *mut u8, doing: &'static str) -> Result<(), SyclError> {
        let mut said = Message::EMPTY;
        let status = self.copy(verb, HostWait::Finish, at, &mut said);
        said.check(doing, status)?;
        self.failed(doing)
    }

    /// Number of bytes that the last copy moved correctly, after [`prepare`](Queue::prepare) with the same `seed`.
    ///
    /// # Errors
    /// Errors of SYCL or the system.
    pub(super) fn confirmed(&mut self, verb: Verb, seed: u64) -> Result<Confirmed, SyclError> {
        let Some(Copies { bytes, own, .. }) = &mut self.copies else {
            return Ok(Confirmed { claimed_bytes: 0, confirmed_bytes: 0 });
        };
        let (bytes, at) = (*bytes, own.at());
        if verb == Verb::Store {
            // The expected contents are in another buffer: if the read-back moves nothing, the stale bytes differ.
            pattern::fill(own.bytes_mut(), seed.wrapping_mul(2).wrapping_add(1));
            self.copy_untimed(Verb::Load, at, "reading back device memory")?;
        }
        let short = |error: Errno| NoHostMemory { bytes: bytes as u64, because: error.to_string() };
        let mut expected = Buffer::new(bytes).map_err(short)?;
        pattern::fill(expected.bytes_mut(), seed.wrapping_mul(2));
        let found =
            self.copies.as_mut().map_or(0, |copies| pattern::equal_bytes(copies.own.bytes_mut(), expected.bytes()));
        Ok(Confirmed { claimed_bytes: bytes as u64, confirmed_bytes: found })
    }

    /// Asynchronous errors since the last call.
    fn failed(&self, doing: &'static str) -> Result<(), SyclError> {
        let mut said = Message::EMPTY;
        // SAFETY: the queue is valid.
        let status = unsafe { (self.api.failed)(self.handle, &raw mut said) };
        said.check(doing, status)
    }

    /// Returns the stamps of a sample, or its synchronous or asynchronous error.
    fn over(&self, stamps: Stamps, said: &Message, doing: &'static str) -> Result<Stamps, SyclError> {
        let stamps = said.stamps(stamps, doing)?;
        self.failed(doing)?;
        Ok(stamps)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.computing = None;
        // SAFETY: the queue is closed once; the shim and this value hold references to the kernels.
        unsafe { (self.api.close)(self.handle) };
    }
}
