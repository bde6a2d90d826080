//! Empty kernels and their arguments.

use super::commands::Commands;
use super::context::Context;
use super::devices::check;
use super::error::OpenClError;
use super::memory::Memory;
use super::program::{Kernel, Program};
use crate::kernel_source::nothing;
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::{Arguments, HostWait, Launch};
use opencl_sys as cl;
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;

/// Length of each kernel argument in bytes.
const GIVEN_BYTES: usize = 4096;

/// Empty kernel with its arguments.
#[derive(Debug)]
pub(super) struct Launches {
    arguments: Arguments,
    kernel: Kernel,
    given: Vec<Memory>,
}

impl Launches {
    /// Builds the kernel and allocates its arguments.
    ///
    /// # Errors
    /// Errors of the runtime, and [`OpenClError::NotBuilt`].
    pub(super) fn new(context: &Arc<Context>, arguments: Arguments) -> Result<Launches, OpenClError> {
        let kernel = Program::of(context, &nothing(arguments.count))?.kernel()?;
        let given = (0..arguments.count).map(|_| Memory::new(context, arguments.allocation, GIVEN_BYTES));
        Ok(Launches { arguments, kernel, given: given.collect::<Result<_, _>>()? })
    }

    /// Whether the kernel has these arguments.
    pub(super) fn has_arguments(&self, arguments: Arguments) -> bool {
        self.arguments == arguments
    }

    /// Launches the kernel once and waits: runtimes do one-time work at the first launch.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn launch_once(&self, commands: &Commands) -> Result<(), OpenClError> {
        let launched = self.enqueue(commands, ptr::null_mut());
        let finished = commands.finish();
        check("launching the kernel for the first time", launched)?;
        check("launching the kernel for the first time", finished)
    }

    /// Times `passes` iterations; returns the stamps and the status of the last call.
    pub(super) fn timed(
        &self,
        commands: &Commands,
        launch: Launch,
        limits: &Limits<'_>,
        first: u64,
        passes: u64,
    ) -> (Stamps, i32) {
        let mut status = cl::CL_SUCCESS;
        let stamps = match launch.wait {
            HostWait::Finish => timed(limits, first, passes, |_| {
                for _ in 0..launch.kernels {
                    status = self.enqueue(commands, ptr::null_mut());
                    if status != cl::CL_SUCCESS {
                        return Err(Errno::IO);
                    }
                }
                status = commands.finish();
                if status == cl::CL_SUCCESS { Ok(()) } else { Err(Errno::IO) }
            }),
            HostWait::Event => timed(limits, first, passes, |_| {
                for _ in 1..launch.kernels {
                    status = self.enqueue(commands, ptr::null_mut());
                    if status != cl::CL_SUCCESS {
                        return Err(Errno::IO);
                    }
                }
                let mut event: cl::cl_event = ptr::null_mut();
                status = self.enqueue(commands, &raw mut event);
                if status == cl::CL_SUCCESS {
                    status = commands.wait(&[event]);
                }
                if status == cl::CL_SUCCESS { Ok(()) } else { Err(Errno::IO) }
            }),
        };
        (stamps, status)
    }

    /// Sets the kernel's arguments, as a program does before each launch, and enqueues it.
    #[inline]
    fn enqueue(&self, commands: &Commands, event: *mut cl::cl_event) -> i32 {
        for (place, memory) in self.given.iter().enumerate() {
            let status = self.kernel.set_argument(place as u32, memory.at());
            if status != cl::CL_SUCCESS {
                return status;
            }
        }
        commands.launch(&self.kernel, 1, event)
    }
}
