//! An open device, with everything allocated for its plans.

use super::clock::Clock;
use super::context::Context;
use super::copies::Copies;
use super::device::Device;
use super::error::CudaError;
use super::launches::Launches;
use super::transfers::Transfers;
use crate::x86::timer::Timer;
use lanemark_machine::{Allocation, Arguments};
use std::sync::Arc;

/// Context of a device, and what was allocated for plans; kept as far as the next plan can reuse it.
#[derive(Debug)]
pub(super) struct Queue {
    /// Empty kernels, one per set of arguments.
    launches: Vec<Launches>,
    /// Copies of the last kind and length.
    copies: Option<Copies>,
    pub(super) transfers: Transfers,
    pub(super) clock: Clock,
    pub(super) context: Arc<Context>,
}

impl Queue {
    /// Opens the device and measures its clock.
    ///
    /// # Errors
    /// [`CudaError::NotOpened`] with the status of the driver, and [`CudaError::Clock`].
    pub(super) fn new(device: Device, timer: Timer) -> Result<Queue, CudaError> {
        let name = device.to_string();
        let open = || {
            let context = Context::new(device)?;
            let clock = Clock::checked(&context, timer)?;
            let transfers = Transfers::new(&context)?;
            Ok(Queue { launches: Vec::new(), copies: None, transfers, clock, context })
        };
        open().map_err(|error| match error {
            CudaError::Refused { doing, status } => CudaError::NotOpened { device: name, doing, status },
            error => error,
        })
    }

    /// The empty kernel with these arguments.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn launches(&mut self, arguments: Arguments) -> Result<&mut Launches, CudaError> {
        let place = match self.launches.iter().position(|launches| launches.has_arguments(arguments)) {
            Some(place) => place,
            None => {
                self.launches.push(Launches::new(&self.context, arguments)?);
                self.launches.len() - 1
            }
        };
        Ok(&mut self.launches[place])
    }

    /// Copies of this kind and length.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn copies(&mut self, allocation: Allocation, bytes: u64) -> Result<&mut Copies, CudaError> {
        let bytes = bytes as usize;
        let kept = self.copies.take().filter(|copies| copies.matches(allocation, bytes));
        let copies = match kept {
            Some(copies) => copies,
            None => Copies::new(&self.context, allocation, bytes)?,
        };
        Ok(self.copies.insert(copies))
    }
}
