//! Kernels that compute, each with a queue of its own.

use super::OpenClError;
use super::commands::Commands;
use super::context::Context;
use super::device::good;
use super::memory::Memory;
use super::program::Kernel;
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::Told;
use opencl_sys as cl;
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;

/// A kernel of one work item, its queue, and its arrays.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) commands: Commands,
    kernel: Kernel,
    /// In the order of the kernel's parameters, of which they are the first.
    pub(super) arrays: Vec<Memory>,
}

impl Worker {
    /// Gives the kernel its arrays.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn new(context: &Arc<Context>, kernel: Kernel, arrays: Vec<Memory>) -> Result<Worker, OpenClError> {
        for (place, array) in arrays.iter().enumerate() {
            good("giving a kernel its memory", kernel.give(place as u32, array.at()))?;
        }
        Ok(Worker { commands: Commands::new(context)?, kernel, arrays })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A kernel may still be at work, if another one failed.
        let _ = self.commands.finish();
    }
}

/// Launches each of them once and waits: runtimes build at the first launch what no later one needs.
///
/// # Errors
/// What the runtime said.
pub(super) fn begin(workers: &[Worker]) -> Result<(), OpenClError> {
    for worker in workers {
        let launched = worker.commands.launch(&worker.kernel, ptr::null_mut());
        let finished = worker.commands.finish();
        good("launching it for the first time", launched)?;
        good("launching it for the first time", finished)?;
    }
    Ok(())
}

/// Times `passes` passes: each launches all of them, and waits until the last is over. The status of the last call is beside the stamps.
pub(super) fn time(workers: &[Worker], told: Told, limits: &Limits<'_>, first: u64, passes: u64) -> (Stamps, i32) {
    let mut status = cl::CL_SUCCESS;
    let mut events: Vec<cl::cl_event> = Vec::with_capacity(workers.len());
    let stamps = timed(limits, first, passes, |_| {
        status = pass(workers, told, &mut events);
        if status == cl::CL_SUCCESS { Ok(()) } else { Err(Errno::IO) }
    });
    (stamps, status)
}

#[inline]
fn pass(workers: &[Worker], told: Told, events: &mut Vec<cl::cl_event>) -> i32 {
    let mut status = cl::CL_SUCCESS;
    events.clear();
    for Worker { commands, kernel, .. } in workers {
        let mut event: cl::cl_event = ptr::null_mut();
        status = commands.launch(kernel, if told == Told::Event { &raw mut event } else { ptr::null_mut() });
        if status != cl::CL_SUCCESS {
            break;
        }
        if told == Told::Event {
            events.push(event);
        }
        // Without it nobody begins before he is waited for, and all would be one after the other.
        status = commands.flush();
        if status != cl::CL_SUCCESS {
            break;
        }
    }
    let waited = match (told, workers.first()) {
        (Told::Event, Some(any)) if !events.is_empty() => any.commands.wait(events),
        (Told::Event, _) => status,
        (Told::Finish, _) => {
            let all = workers.iter().map(|worker| worker.commands.finish());
            all.fold(cl::CL_SUCCESS, |first, status| if first == cl::CL_SUCCESS { status } else { first })
        }
    };
    if status == cl::CL_SUCCESS { waited } else { status }
}
