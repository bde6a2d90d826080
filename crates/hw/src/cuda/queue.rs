//! An open device, with everything allocated for its plans.

use super::clock::Clock;
use super::context::{Context, LONGEST};
use super::copies::Copies;
use super::device::Device;
use super::error::CudaError;
use super::launches::Launches;
use super::pieces::Pieces;
use super::ping::Ping;
use super::transfers::Transfers;
use crate::x86::timer::Timer;
use lanemark_machine::{Allocation, Launch};
use std::sync::Arc;

/// Context of a device, and what was allocated for plans; kept as far as the next plan can reuse it.
#[derive(Debug)]
pub(super) struct Queue {
    /// Empty kernels, one per set of arguments, and graphs of them.
    launches: Vec<Launches>,
    /// Copies of the last kind and length.
    copies: Option<Copies>,
    pub(super) pieces: Pieces,
    pub(super) transfers: Transfers,
    /// Doorbells, with memory for the largest window so far.
    ping: Option<Ping>,
    pub(super) clock: Clock,
    pub(super) context: Arc<Context>,
}

/// Length and number of copies while the state of the device is read: 1 GiB in all.
const TRAFFIC_BYTES: u64 = 16 << 20;
const TRAFFIC_COPIES: u32 = 64;

impl Queue {
    /// Opens the device and measures its clock.
    ///
    /// # Errors
    /// [`CudaError::NotOpened`] with the status of the driver, and [`CudaError::Clock`].
    pub(super) fn new(device: &Device, timer: Timer) -> Result<Queue, CudaError> {
        let open = || {
            let context = Context::new(device.clone())?;
            let clock = Clock::checked(&context, timer)?;
            let (transfers, pieces) = (Transfers::new(&context)?, Pieces::new(&context));
            Ok(Queue { launches: Vec::new(), copies: None, pieces, transfers, ping: None, clock, context })
        };
        open().map_err(|error: CudaError| error.while_opening(device))
    }

    /// The empty kernel with the arguments of this launch, or the graph.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn launches(&mut self, launch: Launch) -> Result<&mut Launches, CudaError> {
        let kept = self.launches.iter().position(|launches| launches.matches(launch));
        let place = if let Some(place) = kept {
            place
        } else {
            self.launches.push(Launches::new(&self.context, launch)?);
            self.launches.len() - 1
        };
        Ok(&mut self.launches[place])
    }

    /// Doorbells with memory for a window of this length.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn ping(&mut self, window_bytes: u64) -> Result<&mut Ping, CudaError> {
        let kept = self.ping.take().filter(|ping| ping.fits(window_bytes));
        let ping = match kept {
            Some(ping) => ping,
            None => Ping::new(&self.context, window_bytes)?,
        };
        Ok(self.ping.insert(ping))
    }

    /// Calls `look` while the device copies from host memory.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn under_traffic<T>(&mut self, look: impl FnOnce() -> T) -> Result<T, CudaError> {
        self.context.enter()?;
        let copies = self.copies(Allocation::Host, TRAFFIC_BYTES)?;
        // The link and the clocks need some time to rise.
        copies.start(TRAFFIC_COPIES)?;
        let context = Arc::clone(&self.context);
        context.finish("copying between host and device", LONGEST)?;
        self.copies(Allocation::Host, TRAFFIC_BYTES)?.start(TRAFFIC_COPIES)?;
        let seen = look();
        context.finish("copying between host and device", LONGEST)?;
        self.copies = None;
        Ok(seen)
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
