//! Kernels that compute, each with a queue of its own.

use super::OpenClError;
use super::commands::Commands;
use super::context::Context;
use super::device::good;
use super::memory::Memory;
use super::program::{Kernel, Program};
use crate::runtime_common::workers::{Given, Wanted, Workers};
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::{HostWait, Verb};
use opencl_sys as cl;
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;

/// Those of one work.
#[derive(Debug)]
pub(super) struct OpenClWorkers(Vec<Worker>);

/// A kernel of one work item, its queue, and its arrays.
#[derive(Debug)]
struct Worker {
    commands: Commands,
    kernel: Kernel,
    /// In the order of the kernel's parameters, of which they are the first.
    arrays: Vec<Memory>,
}

impl Worker {
    fn new(context: &Arc<Context>, kernel: Kernel, given: &Given) -> Result<Worker, OpenClError> {
        let array = |array: &crate::runtime_common::workers::Array| Memory::in_port(context, array.port, array.bytes);
        let arrays = given.arrays.iter().map(array).collect::<Result<Vec<_>, _>>()?;
        for (place, array) in (0..).zip(&arrays) {
            good("giving a kernel its memory", kernel.give(place, array.at()))?;
        }
        for (place, number) in (arrays.len() as u32..).zip(&given.numbers) {
            kernel.give_number(place, *number)?;
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

impl OpenClWorkers {
    /// Builds the program, and makes arrays and queues.
    ///
    /// # Errors
    /// What the runtime said, mostly that memory is short.
    pub(super) fn new(context: &Arc<Context>, wanted: &Wanted) -> Result<OpenClWorkers, OpenClError> {
        let bytes = wanted.bytes();
        if bytes > context.device_bytes {
            return Err(context.too_much(bytes, "the arrays of all kernels are more than there is".to_owned()));
        }
        let program = Program::of(context, &wanted.source)?;
        let worker = |given| Worker::new(context, program.kernel()?, given);
        Ok(OpenClWorkers(wanted.workers.iter().map(worker).collect::<Result<_, _>>()?))
    }

    /// Times `passes` passes: each launches all of them, and waits until the last is over. The status of the last call is beside the stamps.
    pub(super) fn timed(&self, told: HostWait, limits: &Limits<'_>, first: u64, passes: u64) -> (Stamps, i32) {
        let mut status = cl::CL_SUCCESS;
        let mut events: Vec<cl::cl_event> = Vec::with_capacity(self.0.len());
        let stamps = timed(limits, first, passes, |_| {
            status = pass(&self.0, told, &mut events);
            if status == cl::CL_SUCCESS { Ok(()) } else { Err(Errno::IO) }
        });
        (stamps, status)
    }
}

impl Workers for OpenClWorkers {
    type Error = OpenClError;

    fn begin(&self) -> Result<(), OpenClError> {
        for worker in &self.0 {
            let launched = worker.commands.launch(&worker.kernel, ptr::null_mut());
            let finished = worker.commands.finish();
            good("launching it for the first time", launched)?;
            good("launching it for the first time", finished)?;
        }
        Ok(())
    }

    fn bring(&self, worker: usize, array: usize, verb: Verb, own: &mut [u8]) -> Result<(), OpenClError> {
        let Worker { commands, arrays, .. } = &self.0[worker];
        commands.bring("copying between the program and a kernel's memory", verb, own, &arrays[array])
    }
}

#[inline]
fn pass(workers: &[Worker], told: HostWait, events: &mut Vec<cl::cl_event>) -> i32 {
    let mut status = cl::CL_SUCCESS;
    events.clear();
    for Worker { commands, kernel, .. } in workers {
        let mut event: cl::cl_event = ptr::null_mut();
        status = commands.launch(kernel, if told == HostWait::Event { &raw mut event } else { ptr::null_mut() });
        if status != cl::CL_SUCCESS {
            break;
        }
        if told == HostWait::Event {
            events.push(event);
        }
        // Without it nobody begins before he is waited for, and all would be one after the other.
        status = commands.flush();
        if status != cl::CL_SUCCESS {
            break;
        }
    }
    let waited = match (told, workers.first()) {
        (HostWait::Event, Some(any)) if !events.is_empty() => any.commands.wait(events),
        (HostWait::Event, _) => status,
        (HostWait::Finish, _) => {
            let all = workers.iter().map(|worker| worker.commands.finish());
            all.fold(cl::CL_SUCCESS, |first, status| if first == cl::CL_SUCCESS { status } else { first })
        }
    };
    if status == cl::CL_SUCCESS { waited } else { status }
}
