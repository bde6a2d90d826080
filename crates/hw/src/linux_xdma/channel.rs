//! One call of the driver: a transfer by one channel.

#![allow(unsafe_code)]

use super::card::Direction;
use super::{XdmaCard, XdmaError};
use crate::host_pages::HostPages;
use lanemark_units::format_size;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use std::fmt;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// `ERESTARTSYS`, which the driver returns when it gives a transfer up, also without a signal. Source: Linux,
/// `include/linux/errno.h`; `xdma_xfer_submit` of the driver.
const RESTART: i32 = 512;

/// A channel of a card, opened.
#[derive(Debug)]
pub(super) struct Channel {
    file: OwnedFd,
    direction: Direction,
    path: PathBuf,
}

/// Host memory of transfers, which several threads may start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory<'a>(&'a HostPages);

// SAFETY: the only use is `Channel::transfer`, in which the kernel accesses the memory, and this process does not.
unsafe impl Send for Memory<'_> {}
// SAFETY: as above.
unsafe impl Sync for Memory<'_> {}

impl<'a> Memory<'a> {
    pub(super) const fn of(pages: &'a HostPages) -> Memory<'a> {
        Memory(pages)
    }
}

/// A transfer that has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CallError {
    why: Why,
    bytes: u64,
    on_card: u64,
}

/// Why a transfer has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    /// The call returned an error.
    Refused(Errno),
    /// The call moved fewer bytes than it was asked to: this many.
    Short(u64),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x} of the card: ", format_size(self.bytes), self.on_card)?;
        match self.why {
            Why::Refused(Errno::INVAL) => f.write_str(
                "the driver refuses the address or the length (invalid argument): the channel has a fixed (non-incremental) address, \
                 or needs whole beats of its data path; use --sizes of whole 64 B, or a design with incremental addresses",
            ),
            Why::Refused(Errno::NODEV | Errno::NXIO) => {
                f.write_str("the card is gone, or its driver was unbound; see dmesg")
            }
            Why::Refused(error) if error.raw_os_error() == RESTART => f.write_str(
                "the driver has given up the transfer after its time limit (h2c_timeout, c2h_timeout): nothing answers at this \
                 address, or the channel is a stream (AXI4-Stream); check --card-memory against the address map of the design, and \
                 see dmesg",
            ),
            Why::Refused(error) => write!(
                f,
                "the driver reports '{error}': check --card-memory against the address map of the design, and see dmesg"
            ),
            Why::Short(moved) => write!(
                f,
                "the driver has moved {moved} B only: the channel is probably a stream (AXI4-Stream), which has no addresses and \
                 cannot be measured; otherwise see dmesg"
            ),
        }
    }
}

impl Channel {
    /// Opens a channel of `card`, and locks it against other processes of Lanemark. The lock ends with the process.
    pub(super) fn open(card: &XdmaCard, direction: Direction, number: u32) -> Result<Channel, XdmaError> {
        let path = card.file(direction, number);
        let access = match direction {
            Direction::H2c => OFlags::WRONLY,
            Direction::C2h => OFlags::RDONLY,
        };
        let file = open(&path, access | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
            Errno::ACCESS | Errno::PERM => XdmaError::Permission { path: path.clone() },
            Errno::BUSY => XdmaError::Open { path: path.clone() },
            error => XdmaError::Os { path: path.clone(), doing: "opening it", source: error.into() },
        })?;
        card.check_number(&file, direction, number)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            Errno::WOULDBLOCK => XdmaError::InUse { path: path.clone() },
            error => XdmaError::Os { path: path.clone(), doing: "locking it", source: error.into() },
        })?;
        Ok(Channel { file, direction, path })
    }

    pub(super) const fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Moves `bytes` bytes between the byte `at` of `memory` and the address `on_card`.
    ///
    /// The driver ends a call after its own timeout (module parameters `h2c_timeout` and `c2h_timeout`, 10 s by default). A signal
    /// aborts the call, which is repeated unless `interrupted` is set; the sample includes both.
    #[inline]
    pub(super) fn transfer(
        &self,
        memory: Memory<'_>,
        at: u64,
        on_card: u64,
        bytes: u64,
        interrupted: &AtomicBool,
    ) -> Result<(), CallError> {
        loop {
            match self.once(memory, at, on_card, bytes) {
                Err(CallError { why: Why::Refused(Errno::INTR), .. }) if !interrupted.load(Ordering::Relaxed) => {}
                done => return done,
            }
        }
    }

    #[inline]
    fn once(&self, memory: Memory<'_>, at: u64, on_card: u64, bytes: u64) -> Result<(), CallError> {
        let (file, len, offset) = (self.file.as_raw_fd(), bytes as usize, on_card.cast_signed());
        let memory = memory.0.within(at, len).cast();
        // SAFETY: the memory is within the pages, which outlives the call, and no reference to it exists.
        let moved = match self.direction {
            Direction::H2c => unsafe { libc::pwrite(file, memory, len, offset) },
            Direction::C2h => unsafe { libc::pread(file, memory, len, offset) },
        };
        match u64::try_from(moved) {
            Ok(moved) if moved == bytes => Ok(()),
            Ok(moved) => Err(CallError { why: Why::Short(moved), bytes, on_card }),
            Err(_) => {
                let error = std::io::Error::last_os_error();
                let why = Why::Refused(Errno::from_io_error(&error).unwrap_or(Errno::IO));
                Err(CallError { why, bytes, on_card })
            }
        }
    }
}
