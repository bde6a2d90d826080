//! All that is made on one device.

#![allow(unsafe_code)]

use super::OpenClError;
use super::commands::Commands;
use super::context::Context;
use super::copies::Copies;
use super::device::Device;
use super::finished::FinishedKernels;
use super::launches::Launches;
use super::workers::OpenClWorkers;
use crate::runtime_common::computing::Computing;
use lanemark_compute::Work;
use lanemark_machine::{Allocation, Arguments};
use std::sync::Arc;

/// A queue, and what was made for plans; what a plan before needed is kept as far as the next may need it too.
#[derive(Debug)]
pub(super) struct Queue {
    /// By arguments; a kernel and a few pages each.
    launches: Vec<Launches>,
    /// Those of one kind and length.
    copies: Option<Copies>,
    /// Those of one work.
    computing: Option<Computing<OpenClWorkers>>,
    pub(super) commands: Arc<Commands>,
}

// SAFETY: handles may be used from any thread (OpenCL 3.0, section 2.1), addresses of its memory too, and one thread at a time has a queue.
unsafe impl Send for Queue {}

impl Queue {
    /// Opens the device and builds the kernel that does nothing.
    ///
    /// # Errors
    /// [`OpenClError::NotOpened`] with what the runtime said, and [`OpenClError::NotBuilt`].
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
        // Who builds kernels is tried at once; of those that are given any may be left out.
        let launches = match &context.given {
            Some(_) => Vec::new(),
            None => vec![Launches::new(&context, Arguments::NONE)?],
        };
        Ok(Queue { launches, copies: None, computing: None, commands })
    }

    /// A kernel with these arguments.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn launches(&mut self, arguments: Arguments) -> Result<&Launches, OpenClError> {
        let found = self.launches.iter().position(|launches| launches.have(arguments));
        let place = if let Some(place) = found {
            place
        } else {
            let made = Launches::new(&self.commands.context, arguments)?;
            made.begin(&self.commands)?;
            self.launches.push(made);
            self.launches.len() - 1
        };
        Ok(&self.launches[place])
    }

    /// Memory at both ends, of this kind and length.
    ///
    /// # Errors
    /// What the runtime or the system said.
    pub(super) fn copies(&mut self, allocation: Allocation, bytes: u64) -> Result<&mut Copies, OpenClError> {
        let bytes = bytes as usize;
        let kept = self.copies.take().filter(|copies| copies.are_of(allocation, bytes));
        let copies = match kept {
            Some(copies) => copies,
            None => Copies::new(&self.commands, allocation, bytes)?,
        };
        Ok(self.copies.insert(copies))
    }

    /// Kernels of this work, with their arrays.
    ///
    /// # Errors
    /// What the runtime or the system said.
    pub(super) fn computing(&mut self, work: &Work) -> Result<&mut Computing<OpenClWorkers>, OpenClError> {
        // What is kept for copies may be much memory.
        self.copies = None;
        let kept = self.computing.take().filter(|computing| computing.are_of(work));
        let context = &self.commands.context;
        let computing = match kept {
            Some(computing) => computing,
            None => Computing::new(work, context.ports.count(), |wanted| OpenClWorkers::new(context, &wanted))?,
        };
        Ok(self.computing.insert(computing))
    }
}
