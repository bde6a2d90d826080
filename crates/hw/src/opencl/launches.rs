//! A kernel that does nothing, and what it is given.

use super::OpenClError;
use super::commands::Commands;
use super::context::Context;
use super::device::good;
use super::memory::Memory;
use super::program::{Kernel, Program};
use crate::kernel_source::nothing;
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::{Arguments, HostWait, Launch};
use opencl_sys as cl;
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;

/// Bytes of each piece of memory that a kernel is given.
const GIVEN_BYTES: usize = 4096;

/// A kernel with its arguments.
#[derive(Debug)]
pub(super) struct Launches {
    arguments: Arguments,
    kernel: Kernel,
    given: Vec<Memory>,
}

impl Launches {
    /// Builds the kernel and makes what it is given.
    ///
    /// # Errors
    /// What the runtime said, and [`OpenClError::NotBuilt`].
    pub(super) fn new(context: &Arc<Context>, arguments: Arguments) -> Result<Launches, OpenClError> {
        let kernel = Program::of(context, &nothing(arguments.count))?.kernel()?;
        let given = (0..arguments.count).map(|_| Memory::new(context, arguments.allocation, GIVEN_BYTES));
        Ok(Launches { arguments, kernel, given: given.collect::<Result<_, _>>()? })
    }

    /// Whether they are these.
    pub(super) fn have(&self, arguments: Arguments) -> bool {
        self.arguments == arguments
    }

    /// Launches it once and waits: runtimes build at the first launch what no later one needs.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn begin(&self, commands: &Commands) -> Result<(), OpenClError> {
        let launched = self.enqueue(commands, ptr::null_mut());
        let finished = commands.finish();
        good("launching it for the first time", launched)?;
        good("launching it for the first time", finished)
    }

    /// Times `passes` passes; the status of the last call is beside the stamps.
    pub(super) fn timed(
        &self,
        commands: &Commands,
        launch: Launch,
        limits: &Limits<'_>,
        first: u64,
        passes: u64,
    ) -> (Stamps, i32) {
        let mut status = cl::CL_SUCCESS;
        let stamps = match launch.told {
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

    /// Gives the kernel its arguments, as a program does before each launch, and launches it.
    #[inline]
    fn enqueue(&self, commands: &Commands, event: *mut cl::cl_event) -> i32 {
        for (place, memory) in self.given.iter().enumerate() {
            let status = self.kernel.give(place as u32, memory.at());
            if status != cl::CL_SUCCESS {
                return status;
            }
        }
        commands.launch(&self.kernel, event)
    }
}
