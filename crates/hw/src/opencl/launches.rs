//! A kernel that does nothing, and what it is given.

use super::OpenClError;
use super::commands::Commands;
use super::context::Context;
use super::device::good;
use super::memory::Memory;
use super::program::{Kernel, Program};
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::{Arguments, Launch, Told};
use opencl_sys as cl;
use rustix::io::Errno;
use std::fmt::Write as _;
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
        let kernel = Program::built(context, &source(arguments.count))?.kernel(c"nothing")?;
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
            Told::Finish => timed(limits, first, passes, |_| {
                for _ in 0..launch.kernels {
                    status = self.enqueue(commands, ptr::null_mut());
                    if status != cl::CL_SUCCESS {
                        return Err(Errno::IO);
                    }
                }
                status = commands.finish();
                if status == cl::CL_SUCCESS { Ok(()) } else { Err(Errno::IO) }
            }),
            Told::Event => timed(limits, first, passes, |_| {
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

/// A kernel that takes so many pieces of memory.
fn source(count: u32) -> String {
    let mut parameters = String::new();
    for place in 0..count {
        let comma = if place == 0 { "" } else { ", " };
        // Writing to a string succeeds.
        let _ = write!(parameters, "{comma}__global ulong *a{place}");
    }
    format!("__kernel void nothing({}) {{}}\n", if count == 0 { "void" } else { &parameters })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_takes_as_many_pieces_of_memory_as_it_is_given() {
        assert_eq!(source(0), "__kernel void nothing(void) {}\n");
        assert_eq!(source(2), "__kernel void nothing(__global ulong *a0, __global ulong *a1) {}\n");
    }
}
