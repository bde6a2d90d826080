//! One interrupt of a device as an eventfd.

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
        device.set_interrupt(index, vector, &event)?;
        Ok(VfioInterrupt { device, index, event })
    }

    /// Whether the interrupt has arrived since the last call; does not wait.
    pub(super) fn take(&self) -> Result<bool, Errno> {
        let mut count = [0; 8];
        match read(&self.event, &mut count) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error),
        }
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

impl Drop for VfioInterrupt {
    fn drop(&mut self) {
        // The kernel disables it at the latest when the device is closed.
        let _ = self.device.disable_interrupts(self.index);
    }
}
