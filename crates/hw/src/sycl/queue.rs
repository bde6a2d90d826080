//! A queue of a device: what is launched and copied through it.

#![allow(unsafe_code)]

use super::SyclError;
use super::api::{Api, Handle, Said};
use super::device::Device;
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
use lanemark_compute::Work;
use lanemark_machine::{Allocation, Arguments, Confirmed, HostWait, Launch, MovedByRuntime, Verb};
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;

/// A program chooses no port: properties of accessors that name one are for kernels of a SYCL compiler.
pub(super) const MEMORY_PORTS: u32 = 1;

/// An in-order queue, and what it was given so far.
#[derive(Debug)]
pub(super) struct Queue {
    /// Those of one work; before the handle, which their queues do not need.
    computing: Option<Computing<SyclWorkers>>,
    api: Api,
    handle: *mut Handle,
    /// Of OpenCL, below it.
    context: Arc<Context>,
    /// By how many arguments they have.
    kernels: [Option<Kernel>; Arguments::MOST as usize + 1],
    copies: Option<Copies>,
}

// SAFETY: a queue of SYCL may be used from any thread, as handles of OpenCL may, and one thread at a time has it.
unsafe impl Send for Queue {}

/// Memory at both ends of a copy; that of the device is the handle's.
#[derive(Debug)]
struct Copies {
    bytes: usize,
    allocation: Allocation,
    own: Own,
}

/// What the program copies from or to.
#[derive(Debug)]
enum Own {
    /// Ordinary memory.
    Ordinary(Buffer),
    /// Memory that the runtime gave, and keeps as long as the copies are these.
    Given(*mut u8, usize),
}

impl Own {
    fn at(&mut self) -> *mut u8 {
        match self {
            Own::Ordinary(buffer) => buffer.at(0),
            Own::Given(start, _) => *start,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Own::Ordinary(buffer) => buffer.bytes_mut(),
            // SAFETY: the runtime gave so many bytes, which nobody else uses while no copy is under way, and none is between two calls.
            Own::Given(start, bytes) => unsafe { std::slice::from_raw_parts_mut(*start, *bytes) },
        }
    }
}

/// As the shim counts them.
const fn code(allocation: Allocation) -> i32 {
    match allocation {
        Allocation::Buffer | Allocation::Mapped => 0,
        Allocation::Device => 1,
        Allocation::Host => 2,
    }
}

impl Queue {
    /// Opens it.
    ///
    /// # Errors
    /// [`SyclError::OtherBackend`], and what SYCL said.
    pub(super) fn new(device: &Device, kernels: Option<FinishedKernels>) -> Result<Queue, SyclError> {
        if !device.is_opencl {
            return Err(SyclError::OtherBackend(device.to_string()));
        }
        let (api, mut said) = (Api::loaded()?, Said::NOTHING);
        let (mut handle, mut context, mut id) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: each is a place for one handle.
        let status =
            unsafe { (api.open)(device.number, &raw mut handle, &raw mut context, &raw mut id, &raw mut said) };
        said.good("making a queue", status)?;
        // SAFETY: the shim gave both, and a hold of the context with it.
        let context = unsafe { Context::lent(context, id, device.to_string(), kernels) };
        if context.is_err() {
            // SAFETY: it is given back once.
            unsafe { (api.close)(handle) };
        }
        let kernels = [const { None }; Arguments::MOST as usize + 1];
        Ok(Queue { computing: None, api, handle, context: context?, kernels, copies: None })
    }

    /// Whether its kernels may compute with numbers of 64 bits.
    pub(super) fn has_double(&self) -> bool {
        self.context.has_double
    }

    /// Kernels of this work, with their arrays.
    ///
    /// # Errors
    /// What SYCL, OpenCL or the system said.
    pub(super) fn computing(&mut self, work: &Work) -> Result<&mut Computing<SyclWorkers>, SyclError> {
        // What is kept for copies may be much memory.
        self.copies = None;
        let kept = self.computing.take().filter(|computing| computing.are_of(work));
        let computing = match kept {
            Some(computing) => computing,
            None => Computing::new(work, MEMORY_PORTS, |wanted| {
                // SAFETY: the handle is the queue's, and lives.
                unsafe { SyclWorkers::new(self.api, self.handle, &self.context, &wanted) }
            })?,
        };
        Ok(self.computing.insert(computing))
    }

    /// Makes what a launch takes, before the first of them.
    ///
    /// # Errors
    /// What SYCL or OpenCL said.
    pub(super) fn ready(&mut self, launch: Launch) -> Result<(), SyclError> {
        let Arguments { count, allocation } = launch.arguments;
        let mut said = Said::NOTHING;
        if let Some(place @ None) = self.kernels.get_mut(count as usize) {
            let kernel = Program::of(&self.context, &nothing(count))?.kernel()?;
            // SAFETY: the kernel is kept as long as the queue.
            let status = unsafe { (self.api.kernel)(self.handle, count, kernel.handle(), &raw mut said) };
            said.good("giving it a kernel", status)?;
            *place = Some(kernel);
        }
        // SAFETY: the queue is there.
        let status = unsafe { (self.api.arguments)(self.handle, count, code(allocation), &raw mut said) };
        said.good("making memory for a kernel's arguments", status)
    }

    /// Times `passes` passes of launches, for which it was made [`ready`](Queue::ready).
    ///
    /// # Errors
    /// What SYCL said.
    pub(super) fn launches(
        &mut self,
        launch: Launch,
        limits: &Limits<'_>,
        first: u64,
        passes: u64,
    ) -> Result<Stamps, SyclError> {
        let mut said = Said::NOTHING;
        let stamps = timed(limits, first, passes, |_| match self.launch(launch, &mut said) {
            0 => Ok(()),
            _ => Err(Errno::IO),
        });
        self.over(stamps, &said, "launching a kernel")
    }

    #[inline]
    fn launch(&self, launch: Launch, said: &mut Said) -> i32 {
        let Launch { kernels, told, arguments: Arguments { count, allocation } } = launch;
        // SAFETY: the queue is there, and `ready` has given it what this takes.
        unsafe {
            (self.api.launch)(self.handle, kernels, u32::from(told == HostWait::Event), count, code(allocation), said)
        }
    }

    /// Makes memory for a copy where there is none of its length and kind.
    ///
    /// # Errors
    /// What SYCL or the system said.
    pub(super) fn room(&mut self, moved: MovedByRuntime) -> Result<(), SyclError> {
        let (bytes, allocation) = (moved.bytes as usize, moved.allocation);
        let kept = self.copies.take().filter(|copies| (copies.bytes, copies.allocation) == (bytes, allocation));
        self.copies = Some(match kept {
            Some(copies) => copies,
            None => self.copies_of(bytes, allocation)?,
        });
        Ok(())
    }

    /// Puts bytes where a copy is to take them, which another `seed` makes others, and other ones where it is to put them; there is
    /// [`room`](Queue::room).
    ///
    /// # Errors
    /// What SYCL said.
    pub(super) fn prepare(&mut self, verb: Verb, seed: u64) -> Result<(), SyclError> {
        let (source, stale) = (seed.wrapping_mul(2), seed.wrapping_mul(2).wrapping_add(1));
        let (on_device, own) = if verb == Verb::Store { (stale, source) } else { (source, stale) };
        if let Some(copies) = &mut self.copies {
            pattern::fill(copies.own.bytes_mut(), on_device);
            let at = copies.own.at();
            self.once(Verb::Store, at, "filling memory of the device")?;
        }
        if let Some(copies) = &mut self.copies {
            pattern::fill(copies.own.bytes_mut(), own);
        }
        Ok(())
    }

    fn copies_of(&self, bytes: usize, allocation: Allocation) -> Result<Copies, SyclError> {
        let (mut said, mut given) = (Said::NOTHING, ptr::null_mut());
        // SAFETY: no copy is under way, and nobody keeps what the runtime gave for the ones before.
        let status = unsafe { (self.api.copies)(self.handle, bytes, code(allocation), &raw mut given, &raw mut said) };
        said.good("making memory on the device", status)?;
        let own = if allocation == Allocation::Host {
            Own::Given(given.cast(), bytes)
        } else {
            let short = |error: Errno| NoHostMemory { bytes: bytes as u64, because: error.to_string() };
            Own::Ordinary(Buffer::new(bytes).map_err(short)?)
        };
        Ok(Copies { bytes, allocation, own })
    }

    /// Times `passes` copies, for which it was [prepared](Queue::prepare).
    ///
    /// # Errors
    /// What SYCL said.
    pub(super) fn copies(
        &mut self,
        moved: MovedByRuntime,
        limits: &Limits<'_>,
        first: u64,
        passes: u64,
    ) -> Result<Stamps, SyclError> {
        let at = self.copies.as_mut().map_or(ptr::null_mut(), |copies| copies.own.at());
        let mut said = Said::NOTHING;
        let stamps = timed(limits, first, passes, |_| match self.copy(moved.verb, moved.told, at, &mut said) {
            0 => Ok(()),
            _ => Err(Errno::IO),
        });
        self.over(stamps, &said, "asking for it")
    }

    /// Asks for a copy between `at`, where there are as many bytes, and the device, and waits.
    #[inline]
    fn copy(&self, verb: Verb, told: HostWait, at: *mut u8, said: &mut Said) -> i32 {
        let (to_device, by_event) = (u32::from(verb == Verb::Store), u32::from(told == HostWait::Event));
        // SAFETY: the queue and its memory are there; `at` is the start of as much of the program's, and this returns when nobody uses it any more.
        unsafe { (self.api.copy)(self.handle, to_device, by_event, at, said) }
    }

    /// A copy that nobody times.
    fn once(&self, verb: Verb, at: *mut u8, doing: &'static str) -> Result<(), SyclError> {
        let mut said = Said::NOTHING;
        let status = self.copy(verb, HostWait::Finish, at, &mut said);
        said.good(doing, status)?;
        self.failed(doing)
    }

    /// How many bytes the last copy has brought where it was to bring them, since [`prepare`](Queue::prepare) with the same `seed`.
    ///
    /// # Errors
    /// What SYCL or the system said.
    pub(super) fn confirmed(&mut self, verb: Verb, seed: u64) -> Result<Confirmed, SyclError> {
        let Some(Copies { bytes, own, .. }) = &mut self.copies else {
            return Ok(Confirmed { claimed_bytes: 0, confirmed_bytes: 0 });
        };
        let (bytes, at) = (*bytes, own.at());
        if verb == Verb::Store {
            // What is read back is held against other memory, so that what is here before cannot pass for it.
            pattern::fill(own.bytes_mut(), seed.wrapping_mul(2).wrapping_add(1));
            self.once(Verb::Load, at, "reading memory of the device back")?;
        }
        let short = |error: Errno| NoHostMemory { bytes: bytes as u64, because: error.to_string() };
        let mut wanted = Buffer::new(bytes).map_err(short)?;
        pattern::fill(wanted.bytes_mut(), seed.wrapping_mul(2));
        let found =
            self.copies.as_mut().map_or(0, |copies| pattern::equal_bytes(copies.own.bytes_mut(), wanted.bytes()));
        Ok(Confirmed { claimed_bytes: bytes as u64, confirmed_bytes: found })
    }

    /// What went wrong while nobody waited.
    fn failed(&self, doing: &'static str) -> Result<(), SyclError> {
        let mut said = Said::NOTHING;
        // SAFETY: the queue is there.
        let status = unsafe { (self.api.failed)(self.handle, &raw mut said) };
        said.good(doing, status)
    }

    /// A sample that was taken, if nothing went wrong in it.
    fn over(&self, stamps: Stamps, said: &Said, doing: &'static str) -> Result<Stamps, SyclError> {
        let stamps = said.over(stamps, doing)?;
        self.failed(doing)?;
        Ok(stamps)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.computing = None;
        // SAFETY: it is given back once; kernels have a hold of their own there, and here.
        unsafe { (self.api.close)(self.handle) };
    }
}
