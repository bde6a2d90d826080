//! Kernels that compute, each with a queue of its own.

#![allow(unsafe_code)]

use super::SyclError;
use super::api::{Api, Handle, Said, Workers as Them};
use crate::opencl::context::Context;
use crate::opencl::program::Program;
use crate::runtime_common::workers::{Number, Wanted, Workers};
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::{HostWait, Verb};
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;

/// Those of one work.
#[derive(Debug)]
pub(super) struct SyclWorkers {
    api: Api,
    them: *mut Them,
}

// SAFETY: objects of SYCL may be used from any thread, and one thread at a time has these.
unsafe impl Send for SyclWorkers {}

impl SyclWorkers {
    /// Builds the program, and makes arrays and queues.
    ///
    /// # Errors
    /// What SYCL or OpenCL said, mostly that memory is short.
    ///
    /// # Safety
    /// `queue` lives, and `context` is the one below it.
    pub(super) unsafe fn new(
        api: Api,
        queue: *mut Handle,
        context: &Arc<Context>,
        wanted: &Wanted,
    ) -> Result<SyclWorkers, SyclError> {
        let bytes = wanted.bytes();
        if bytes > context.device_bytes {
            let because = "the arrays of all kernels are more than there is".to_owned();
            return Err(context.too_much(bytes, because).into());
        }
        let program = Program::of(context, &wanted.source)?;
        let (mut said, mut workers) = (Said::NOTHING, SyclWorkers { api, them: ptr::null_mut() });
        // SAFETY: whoever calls vouches for the queue; there is a place for what is made.
        let status = unsafe { (api.workers)(queue, &raw mut workers.them, &raw mut said) };
        said.good("making kernels' queues", status)?;
        for given in &wanted.workers {
            let kernel = program.kernel()?;
            let lengths: Vec<usize> = given.arrays.iter().map(|array| array.bytes).collect();
            let numbers: Vec<u64> = given.numbers.iter().map(|number| number.value()).collect();
            let bytes: Vec<u8> = given.numbers.iter().map(|number| number.bytes()).collect();
            // SAFETY: there are as many lengths, numbers and bytes as is said; the kernel's other hold of itself is there until this returns.
            let status = unsafe {
                let (count, numbers_count) = (lengths.len(), numbers.len());
                (api.worker)(
                    workers.them,
                    kernel.handle(),
                    lengths.as_ptr(),
                    count,
                    numbers.as_ptr(),
                    bytes.as_ptr(),
                    numbers_count,
                    &raw mut said,
                )
            };
            said.good("giving a kernel its memory", status)?;
        }
        Ok(workers)
    }

    /// Times `passes` passes: each launches all of them, and waits until the last is over.
    ///
    /// # Errors
    /// What SYCL said.
    pub(super) fn timed(
        &self,
        told: HostWait,
        limits: &Limits<'_>,
        first: u64,
        passes: u64,
    ) -> Result<Stamps, SyclError> {
        let mut said = Said::NOTHING;
        let stamps = timed(limits, first, passes, |_| match self.compute(told, &mut said) {
            0 => Ok(()),
            _ => Err(Errno::IO),
        });
        said.over(stamps, "computing")
    }

    #[inline]
    fn compute(&self, told: HostWait, said: &mut Said) -> i32 {
        // SAFETY: they are there.
        unsafe { (self.api.compute)(self.them, u32::from(told == HostWait::Event), said) }
    }
}

impl Workers for SyclWorkers {
    type Error = SyclError;

    fn begin(&self) -> Result<(), SyclError> {
        let mut said = Said::NOTHING;
        let status = self.compute(HostWait::Finish, &mut said);
        said.good("launching it for the first time", status)
    }

    fn bring(&self, worker: usize, array: usize, verb: Verb, own: &mut [u8]) -> Result<(), SyclError> {
        let (to_device, mut said) = (u32::from(verb == Verb::Store), Said::NOTHING);
        // SAFETY: they are there; a copy of more bytes than the array has is refused, and none is under way when this returns.
        let status = unsafe {
            (self.api.bring)(self.them, worker, array, to_device, own.as_mut_ptr(), own.len(), &raw mut said)
        };
        said.good("copying between the program and a kernel's memory", status)
    }
}

impl Drop for SyclWorkers {
    fn drop(&mut self) {
        if !self.them.is_null() {
            // SAFETY: they are given back once.
            unsafe { (self.api.no_workers)(self.them) };
        }
    }
}

impl Number {
    /// As the shim takes it.
    fn value(self) -> u64 {
        match self {
            Number::Uint(number) => u64::from(number),
            Number::Ulong(number) => number,
        }
    }

    /// Of which the kernel takes so many bytes.
    fn bytes(self) -> u8 {
        match self {
            Number::Uint(_) => 4,
            Number::Ulong(_) => 8,
        }
    }
}
