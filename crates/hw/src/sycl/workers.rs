//! SYCL compute kernels, each with a queue of its own.

#![allow(unsafe_code)]

use super::api::{Api, Handle, Message, WorkersHandle};
use super::error::SyclError;
use crate::opencl::context::Context;
use crate::opencl::program::Program;
use crate::runtime_common::workers::{Number, Workers, WorkersSpec};
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::{HostWait, Verb};
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;

/// Compute kernels of one work.
#[derive(Debug)]
pub(super) struct SyclWorkers {
    api: Api,
    handle: *mut WorkersHandle,
}

// SAFETY: SYCL objects may be used from any thread, and one thread at a time uses these.
unsafe impl Send for SyclWorkers {}

impl SyclWorkers {
    /// Builds the program and creates arrays and queues.
    ///
    /// # Errors
    /// Errors of SYCL or OpenCL, usually too little memory.
    ///
    /// # Safety
    /// `queue` is valid, and `context` is the OpenCL context below it.
    pub(super) unsafe fn new(
        api: Api,
        queue: *mut Handle,
        context: &Arc<Context>,
        spec: &WorkersSpec,
    ) -> Result<SyclWorkers, SyclError> {
        let bytes = spec.bytes();
        if bytes > context.device_bytes {
            let because = "the arrays of all kernels do not fit".to_owned();
            return Err(context.too_much(bytes, because).into());
        }
        let program = Program::of(context, &spec.source)?;
        let (mut said, mut workers) = (Message::EMPTY, SyclWorkers { api, handle: ptr::null_mut() });
        // SAFETY: the caller guarantees the queue; both output pointers are valid.
        let status = unsafe { (api.workers)(queue, &raw mut workers.handle, &raw mut said) };
        said.check("creating the queues of compute kernels", status)?;
        for spec in &spec.workers {
            let kernel = program.kernel()?;
            let lengths: Vec<usize> = spec.arrays.iter().map(|array| array.bytes).collect();
            let numbers: Vec<u64> = spec.numbers.iter().map(|number| number.value()).collect();
            let bytes: Vec<u8> = spec.numbers.iter().map(|number| number.bytes()).collect();
            // SAFETY: lengths, numbers and bytes have the counts passed; `kernel` lives until this call returns.
            let status = unsafe {
                let (count, numbers_count) = (lengths.len(), numbers.len());
                (api.worker)(
                    workers.handle,
                    kernel.handle(),
                    lengths.as_ptr(),
                    count,
                    numbers.as_ptr(),
                    bytes.as_ptr(),
                    numbers_count,
                    &raw mut said,
                )
            };
            said.check("setting the arguments of a compute kernel", status)?;
        }
        Ok(workers)
    }

    /// Times `passes` iterations: each launches all kernels and waits for the last.
    ///
    /// # Errors
    /// Errors of SYCL.
    pub(super) fn timed(
        &self,
        wait: HostWait,
        limits: &Limits<'_>,
        first: u64,
        passes: u64,
    ) -> Result<Stamps, SyclError> {
        let mut said = Message::EMPTY;
        let stamps = timed(limits, first, passes, |_| match self.compute(wait, &mut said) {
            0 => Ok(()),
            _ => Err(Errno::IO),
        });
        said.stamps(stamps, "computing")
    }

    #[inline]
    fn compute(&self, wait: HostWait, said: &mut Message) -> i32 {
        // SAFETY: the handle is valid.
        unsafe { (self.api.compute)(self.handle, u32::from(wait == HostWait::Event), said) }
    }
}

impl Workers for SyclWorkers {
    type Error = SyclError;

    fn launch_once(&self) -> Result<(), SyclError> {
        let mut said = Message::EMPTY;
        let status = self.compute(HostWait::Finish, &mut said);
        said.check("launching a compute kernel for the first time", status)
    }

    fn copy_and_wait(&self, worker: usize, array: usize, verb: Verb, own: &mut [u8]) -> Result<(), SyclError> {
        let (to_device, mut said) = (u32::from(verb == Verb::Store), Message::EMPTY);
        // SAFETY: the handle is valid; the shim rejects a copy longer than the array, and no copy is in flight when this returns.
        let status = unsafe {
            (self.api.bring)(self.handle, worker, array, to_device, own.as_mut_ptr(), own.len(), &raw mut said)
        };
        said.check("copying between the host and a kernel's array", status)
    }
}

impl Drop for SyclWorkers {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the kernels are released once.
            unsafe { (self.api.no_workers)(self.handle) };
        }
    }
}

impl Number {
    /// Value as the shim takes it.
    fn value(self) -> u64 {
        match self {
            Number::Uint(number) => u64::from(number),
            Number::Ulong(number) => number,
        }
    }

    /// Size of the kernel's parameter in bytes.
    fn bytes(self) -> u8 {
        match self {
            Number::Uint(_) => 4,
            Number::Ulong(_) => 8,
        }
    }
}
