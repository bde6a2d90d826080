//! Empty kernels and their arguments.

#![allow(unsafe_code)]

use super::api::{DevicePointer, Handle};
use super::context::{Context, LONGEST};
use super::error::CudaError;
use super::kernel::Kernel;
use super::memory::{DeviceMemory, HostMemory, Pinned};
use super::ptx;
use super::status::SUCCESS;
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::{Allocation, Arguments, HostWait, Launch};
use rustix::io::Errno;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

/// Length of each kernel argument in bytes.
const GIVEN_BYTES: usize = 4096;

/// Empty kernel with its arguments.
#[derive(Debug)]
pub(super) struct Launches {
    context: Arc<Context>,
    arguments: Arguments,
    kernel: Kernel,
    addresses: Vec<DevicePointer>,
    event: Handle,
    _given: Vec<Given>,
}

// SAFETY: handles of the driver may be used from any thread on which the context is current.
unsafe impl Send for Launches {}

/// Memory of an argument.
#[derive(Debug)]
enum Given {
    Device(DeviceMemory),
    Host(HostMemory),
}

impl Launches {
    /// Builds the kernel, allocates its arguments, and launches it once: drivers do one-time work at the first launch.
    ///
    /// # Errors
    /// Errors of the driver, and [`CudaError::NotBuilt`].
    pub(super) fn new(context: &Arc<Context>, arguments: Arguments) -> Result<Launches, CudaError> {
        let kernel = Kernel::new(context, "nothing", &ptx::nothing(arguments.count))?;
        let given = (0..arguments.count).map(|_| match arguments.allocation {
            Allocation::Host => HostMemory::new(context, GIVEN_BYTES, Pinned::Plain).map(Given::Host),
            Allocation::Combining => HostMemory::new(context, GIVEN_BYTES, Pinned::Combining).map(Given::Host),
            _ => DeviceMemory::new(context, GIVEN_BYTES).map(Given::Device),
        });
        let given: Vec<Given> = given.collect::<Result<_, _>>()?;
        let addresses = given.iter().map(|given| match given {
            Given::Device(memory) => memory.at,
            Given::Host(memory) => memory.at,
        });
        let addresses = addresses.collect();
        let event = context.event()?;
        let context = Arc::clone(context);
        let mut launches = Launches { context, arguments, kernel, addresses, event, _given: given };
        CudaError::check("launching the kernel for the first time", launches.launch())?;
        launches.context.finish(launches.kernel.name(), LONGEST)?;
        Ok(launches)
    }

    /// Whether the kernel has these arguments.
    pub(super) fn has_arguments(&self, arguments: Arguments) -> bool {
        self.arguments == arguments
    }

    /// Times `passes` iterations; returns the stamps and the status of the last call.
    pub(super) fn timed(&mut self, launch: Launch, limits: &Limits<'_>, first: u64, passes: u64) -> (Stamps, c_int) {
        let mut status = SUCCESS;
        let stamps = timed(limits, first, passes, |_| {
            for _ in 0..launch.kernels {
                status = self.launch();
                if status != SUCCESS {
                    return Err(Errno::IO);
                }
            }
            status = self.wait(launch.wait);
            if status == SUCCESS { Ok(()) } else { Err(Errno::IO) }
        });
        (stamps, status)
    }

    #[inline]
    fn launch(&mut self) -> c_int {
        let mut pointers = [ptr::null_mut::<c_void>(); Arguments::MOST as usize];
        for (pointer, address) in pointers.iter_mut().zip(&mut self.addresses) {
            *pointer = ptr::from_mut(address).cast();
        }
        // SAFETY: the kernel has one parameter per address and accesses nothing.
        unsafe { self.kernel.launch([1, 1], 1, &mut pointers) }
    }

    #[inline]
    fn wait(&self, wait: HostWait) -> c_int {
        let (api, stream) = (&self.context.api, self.context.stream);
        // SAFETY: stream and event are valid.
        unsafe {
            match wait {
                HostWait::Finish => (api.wait_stream)(stream),
                HostWait::Event => match (api.record_event)(self.event, stream) {
                    SUCCESS => (api.wait_event)(self.event),
                    status => status,
                },
            }
        }
    }
}

impl Drop for Launches {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: stream and event are valid, and the event is destroyed once.
            unsafe {
                (self.context.api.wait_stream)(self.context.stream);
                (self.context.api.destroy_event)(self.event);
            }
        }
    }
}
