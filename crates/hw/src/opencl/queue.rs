//! Queue of an open device, with everything allocated for its plans.

#![allow(unsafe_code)]

use super::commands::Commands;
use super::context::Context;
use super::copies::Copies;
use super::device::Device;
use super::error::OpenClError;
use super::finished::FinishedKernels;
use super::launches::Launches;
use super::reads::Reads;
use super::workers::OpenClWorkers;
use crate::runtime_common::computing::Computing;
use lanemark_compute::Workload;
use lanemark_machine::{Allocation, Arguments};
use std::sync::Arc;

/// Command queue of a device, and what was allocated for plans; kept as far as the next plan can reuse it.
#[derive(Debug)]
pub(super) struct Queue {
    /// Empty kernels, one per set of arguments; each takes a few pages.
    launches: Vec<Launches>,
    /// Copies of the last kind and length.
    copies: Option<Copies>,
    /// Compute kernels of the last work.
    computing: Option<Computing<OpenClWorkers>>,
    /// Reads of host memory by a kernel.
    pub(super) reads: Reads,
    pub(super) commands: Arc<Commands>,
}

// SAFETY: handles and USM addresses may be used from any thread (OpenCL 3.0, section 2.1), and one thread at a time uses a queue.
unsafe impl Send for Queue {}

impl Queue {
    /// Opens the device and builds the empty kernel.
    ///
    /// # Errors
    /// [`OpenClError::NotOpened`] with the status of the runtime, and [`OpenClError::NotBuilt`].
    pub(super) fn new(device: &Device, kernels: Option<FinishedKernels>) -> Result<Queue, OpenClError> {
        Queue::of(device, kernels).map_err(|error| match error {
            OpenClError::Refused { doing, status } => {
                OpenClError::NotOpened { device: device.to_string(), doing, status }
            }
            error => error,
        })
    }

    fn of(device: &Device, kernels: Option<FinishedKernels>) -> Result<Queue, OpenClError> {
        let context = Context::new(device, kernels)?;
        let commands = Arc::new(Commands::new(&context)?);
        // Test the compiler on opening; a prebuilt file may lack the empty kernel.
        let launches = match &context.prebuilt {
            Some(_) => Vec::new(),
            None => vec![Launches::new(&context, Arguments::NONE)?],
        };
        let reads = Reads::new(&commands);
        Ok(Queue { launches, copies: None, computing: None, reads, commands })
    }

    /// Returns the empty kernel with these arguments.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn launches(&mut self, arguments: Arguments) -> Result<&Launches, OpenClError> {
        let found = self.launches.iter().position(|launches| launches.has_arguments(arguments));
        let place = if let Some(place) = found {
            place
        } else {
            let made = Launches::new(&self.commands.context, arguments)?;
            made.launch_once(&self.commands)?;
            self.launches.push(made);
            self.launches.len() - 1
        };
        Ok(&self.launches[place])
    }

    /// Returns host and device memory of this kind and length.
    ///
    /// # Errors
    /// Errors of the runtime or the system.
    pub(super) fn copies(&mut self, allocation: Allocation, bytes: u64) -> Result<&mut Copies, OpenClError> {
        let bytes = bytes as usize;
        let kept = self.copies.take().filter(|copies| copies.matches(allocation, bytes));
        let copies = match kept {
            Some(copies) => copies,
            None => Copies::new(&self.commands, allocation, bytes)?,
        };
        Ok(self.copies.insert(copies))
    }

    /// Returns the compute kernels of `work`, with their arrays.
    ///
    /// # Errors
    /// Errors of the runtime or the system.
    pub(super) fn computing(&mut self, work: &Workload) -> Result<&mut Computing<OpenClWorkers>, OpenClError> {
        // Free the memory of the last copies, which may be large.
        self.copies = None;
        let kept = self.computing.take().filter(|computing| computing.matches(work));
        let context = &self.commands.context;
        let computing = match kept {
            Some(computing) => computing,
            None => Computing::new(work, context.ports.count(), |spec| OpenClWorkers::new(context, &spec))?,
        };
        Ok(self.computing.insert(computing))
    }
}
