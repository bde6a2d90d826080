//! Interrupts of a device as eventfds.

// Other targets open no devices.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use super::VfioDevice;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

/// An interrupt of a device; it is disabled when this is dropped.
#[derive(Debug)]
pub struct VfioInterrupt {
    device: Arc<VfioDevice>,
    /// Index of its kind, such as MSI.
    index: u32,
    event: OwnedFd,
}

impl VfioInterrupt {
    /// Enables vector `vector` of the kind with this index.
    pub(super) fn enable(device: Arc<VfioDevice>, index: u32, vector: u32) -> io::Result<VfioInterrupt> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        device.set_interrupts(index, vector, std::slice::from_ref(&event))?;
        Ok(VfioInterrupt { device, index, event })
    }

    /// Whether the interrupt has arrived since the last call; does not wait.
    pub(super) fn take(&self) -> Result<bool, Errno> {
        taken(&self.event)
    }

    /// Waits for the interrupt, at most `longest_ms`; returns whether it arrived. A signal ends the wait.
    pub(super) fn wait(&self, longest_ms: u32) -> Result<bool, Errno> {
        let fd = self.event.as_fd();
        let longest =
            Timespec { tv_sec: i64::from(longest_ms / 1000), tv_nsec: i64::from(longest_ms % 1000) * 1_000_000 };
        poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&longest))?;
        self.take()
    }
}

/// The first vectors of one kind of interrupt, such as MSI-X; they are disabled when this is dropped.
#[derive(Debug)]
pub(super) struct VfioVectors {
    device: Arc<VfioDevice>,
    index: u32,
    events: Vec<OwnedFd>,
}

impl VfioVectors {
    /// Most vectors.
    const MOST: u32 = u64::BITS;

    /// Enables `count` vectors, from 0 on, at most [`MOST`](VfioVectors::MOST), of the kind with this index.
    pub(super) fn enable(device: Arc<VfioDevice>, index: u32, count: u32) -> io::Result<VfioVectors> {
        let event = |_| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let events = (0..count.min(VfioVectors::MOST)).map(event).collect::<Result<Vec<_>, _>>()?;
        // All at once: some kernels add no vector to those that are enabled.
        device.set_interrupts(index, 0, &events)?;
        Ok(VfioVectors { device, index, events })
    }

    /// Number of vectors.
    pub(super) const fn count(&self) -> u16 {
        self.events.len() as u16
    }

    /// Waits for an interrupt, at most `longest_ms`; returns the vectors that have arrived since the last call, a bit each. A
    /// signal ends the wait.
    pub(super) fn wait(&self, longest_ms: u32) -> Result<u64, Errno> {
        let longest =
            Timespec { tv_sec: i64::from(longest_ms / 1000), tv_nsec: i64::from(longest_ms % 1000) * 1_000_000 };
        let mut waiting: Vec<PollFd<'_>> =
            self.events.iter().map(|event| PollFd::from_borrowed_fd(event.as_fd(), PollFlags::IN)).collect();
        poll(&mut waiting, Some(&longest))?;
        let mut arrived = 0;
        for (vector, event) in self.events.iter().enumerate() {
            arrived |= u64::from(taken(event)?) << vector;
        }
        Ok(arrived)
    }
}

impl Drop for VfioVectors {
    fn drop(&mut self) {
        // As for one vector.
        let _ = self.device.disable_interrupts(self.index);
    }
}

/// Whether an event has arrived since the last call.
fn taken(event: &OwnedFd) -> Result<bool, Errno> {
    let mut count = [0; 8];
    match read(event, &mut count) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for VfioInterrupt {
    fn drop(&mut self) {
        // The kernel disables it at the latest when the device is closed.
        let _ = self.device.disable_interrupts(self.index);
    }
}
