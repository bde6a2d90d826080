//! OpenCL compute kernels, each with a queue of its own.

use super::commands::Commands;
use super::context::Context;
use super::devices::check;
use super::error::OpenClError;
use super::memory::Memory;
use super::program::{Kernel, Program};
use crate::runtime_common::workers::{WorkerSpec, Workers, WorkersSpec};
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::{HostWait, Verb};
use opencl_sys as cl;
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;

/// Compute kernels of one work.
#[derive(Debug)]
pub(super) struct OpenClWorkers(Vec<Worker>);

/// Kernel of one work item, with its queue and arrays.
#[derive(Debug)]
struct Worker {
    commands: Commands,
    kernel: Kernel,
    /// Arrays in the order of the kernel's first parameters.
    arrays: Vec<Memory>,
}

impl Worker {
    fn new(context: &Arc<Context>, kernel: Kernel, spec: &WorkerSpec) -> Result<Worker, OpenClError> {
        let array = |array: &crate::runtime_common::workers::Array| Memory::in_port(context, array.port, array.bytes);
        let arrays = spec.arrays.iter().map(array).collect::<Result<Vec<_>, _>>()?;
        for (place, array) in (0..).zip(&arrays) {
            check("setting an array argument of a kernel", kernel.set_argument(place, array.at()))?;
        }
        for (place, number) in (arrays.len() as u32..).zip(&spec.numbers) {
            kernel.set_number(place, *number)?;
        }
        Ok(Worker { commands: Commands::new(context)?, kernel, arrays })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // After a failure, other kernels may still be running.
        let _ = self.commands.finish();
    }
}

impl OpenClWorkers {
    /// Builds the program and creates arrays and queues.
    ///
    /// # Errors
    /// Errors of the runtime, usually too little memory.
    pub(super) fn new(context: &Arc<Context>, spec: &WorkersSpec) -> Result<OpenClWorkers, OpenClError> {
        let bytes = spec.bytes();
        if bytes > context.device_bytes {
            return Err(context.too_much(bytes, "the arrays of all kernels do not fit".to_owned()));
        }
        let program = Program::of(context, &spec.source)?;
        let worker = |spec| Worker::new(context, program.kernel()?, spec);
        Ok(OpenClWorkers(spec.workers.iter().map(worker).collect::<Result<_, _>>()?))
    }

    /// Times `passes` iterations: each launches all kernels and waits for the last. Returns the stamps and the status of the last call.
    pub(super) fn timed(&self, wait: HostWait, limits: &Limits<'_>, first: u64, passes: u64) -> (Stamps, i32) {
        let mut status = cl::CL_SUCCESS;
        let mut events: Vec<cl::cl_event> = Vec::with_capacity(self.0.len());
        let stamps = timed(limits, first, passes, |_| {
            status = pass(&self.0, wait, &mut events);
            if status == cl::CL_SUCCESS { Ok(()) } else { Err(Errno::IO) }
        });
        (stamps, status)
    }
}

impl Workers for OpenClWorkers {
    type Error = OpenClError;

    fn launch_once(&self) -> Result<(), OpenClError> {
        for worker in &self.0 {
            let launched = worker.commands.launch(&worker.kernel, 1, ptr::null_mut());
            let finished = worker.commands.finish();
            check("launching a compute kernel for the first time", launched)?;
            check("launching a compute kernel for the first time", finished)?;
        }
        Ok(())
    }

    fn copy_and_wait(&self, worker: usize, array: usize, verb: Verb, own: &mut [u8]) -> Result<(), OpenClError> {
        let Worker { commands, arrays, .. } = &self.0[worker];
        commands.copy_and_wait("copying between the host and a kernel's array", verb, own, &arrays[array])
    }
}

#[inline]
fn pass(workers: &[Worker], wait: HostWait, events: &mut Vec<cl::cl_event>) -> i32 {
    let mut status = cl::CL_SUCCESS;
    events.clear();
    for Worker { commands, kernel, .. } in workers {
        let mut event: cl::cl_event = ptr::null_mut();
        status = commands.launch(kernel, 1, if wait == HostWait::Event { &raw mut event } else { ptr::null_mut() });
        if status != cl::CL_SUCCESS {
            break;
        }
        if wait == HostWait::Event {
            events.push(event);
        }
        // Without a flush a runtime may start a kernel only at the wait, which would serialise the kernels.
        status = commands.flush();
        if status != cl::CL_SUCCESS {
            break;
        }
    }
    let waited = match (wait, workers.first()) {
        (HostWait::Event, Some(any)) if !events.is_empty() => any.commands.wait(events),
        (HostWait::Event, _) => status,
        (HostWait::Finish, _) => {
            let all = workers.iter().map(|worker| worker.commands.finish());
            all.fold(cl::CL_SUCCESS, |first, status| if first == cl::CL_SUCCESS { status } else { first })
        }
    };
    if status == cl::CL_SUCCESS { waited } else { status }
}
