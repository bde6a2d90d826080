//! Mappings of host memory for the card by the kernel's DMA API, through the module.
//!
//! The program times both system calls together. The module times their parts by the kernel's clock, which has steps of a
//! nanosecond and is read in some tens of them: a short part of one mapping is no more exact than that. These times contain
//! no timestamps of the program, so the cost of those is not subtracted.

use super::ioctl::{Direction, DmaTimes, Mapped, bounced_pages, map_and_unmap, map_sync_and_unmap};
use crate::host_pages::HostPages;
use crate::map_unmap::{LibraryError, Mapper, pairs_timed};
use crate::x86::run::Clock;
use crate::x86::sample::{Ending, Limits, Stamps};
use crate::x86::timer::Timer;
use lanemark_machine::{BounceBuffer, KernelMemory, KernelPart, MapUnmap, Means};
use lanemark_units::{Ticks, format_size};
use rustix::fd::AsFd as _;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Error of a mapping.
#[derive(Debug)]
struct Refused {
    memory: KernelMemory,
    bytes: u64,
    error: io::Error,
}

impl std::error::Error for Refused {}

impl Refused {
    /// Whether the error suggests a module with an earlier interface: version 1 counts no bounced pages, version 2 does not
    /// synchronise.
    fn may_be_of_an_earlier_module(&self) -> bool {
        self.error.kind() == io::ErrorKind::InvalidInput || self.error.raw_os_error() == Some(libc::ENOTTY)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = format_size(self.bytes);
        match (self.error.kind(), self.memory) {
            (io::ErrorKind::OutOfMemory, KernelMemory::Coherent) => write!(
                f,
                "the kernel has no {size} of coherent memory for the device: use a smaller --sizes; without an IOMMU it must be \
                 contiguous"
            ),
            (io::ErrorKind::OutOfMemory, _) => write!(
                f,
                "the kernel cannot pin and map {size} for the device: use a smaller --sizes, or raise the limit of locked memory \
                 (ulimit -l), which counts without CAP_IPC_LOCK"
            ),
            _ if self.may_be_of_an_earlier_module() => write!(
                f,
                "the module refuses a mapping of {size} for the device: {}; if the version of its interface is below 3, build \
                 kmod/ and load it again",
                self.error
            ),
            _ => write!(f, "the kernel does not map {size} for the device: {}", self.error),
        }
    }
}

/// Maps a buffer and unmaps it, by two system calls, or by three if it is synchronised.
#[derive(Debug)]
pub(super) struct KernelMapper {
    file: OwnedFd,
    memory: KernelMemory,
    mapped: Mapped,
    /// Keeps the pages of the program.
    _pages: Option<HostPages>,
    part: KernelPart,
    bounce_buffer: BounceBuffer,
    asked: MapUnmap,
    timer: Timer,
}

impl KernelMapper {
    /// Allocates the buffer, if it is one of the program, and maps it once to count its bounced pages.
    pub(super) fn new(file: OwnedFd, asked: MapUnmap, timer: Timer) -> Result<KernelMapper, LibraryError> {
        let Means::Kernel { memory, part } = asked.means else {
            return Err("the module maps by the kernel's own strategy only".into());
        };
        let direction = match memory {
            KernelMemory::Streaming => Some(Direction::Both),
            KernelMemory::ToDevice => Some(Direction::ToDevice),
            KernelMemory::FromDevice => Some(Direction::FromDevice),
            KernelMemory::Coherent => None,
        };
        let (mapped, pages) = match direction {
            Some(direction) => {
                let pages = HostPages::new(asked.bytes)?;
                (Mapped::Pages(pages.address(), direction), Some(pages))
            }
            None => (Mapped::Coherent, None),
        };
        let refused = |error| Refused { memory, bytes: asked.bytes, error };
        let bounced_pages = bounced_pages(file.as_fd(), mapped, asked.bytes).map_err(refused)?;
        let bounce_buffer = BounceBuffer { mapped_pages: asked.bytes / PAGE, bounced_pages };
        Ok(KernelMapper { file, memory, mapped, _pages: pages, part, bounce_buffer, asked, timer })
    }
}

/// Clock of a part: that of the kernel, except for both calls.
const fn clock(part: KernelPart) -> Clock {
    match part {
        KernelPart::Calls => Clock::Program,
        KernelPart::Pin
        | KernelPart::Map
        | KernelPart::SyncForCpu
        | KernelPart::SyncForDevice
        | KernelPart::Unmap
        | KernelPart::Unpin => Clock::Other,
    }
}

/// Time of a part; `None` for both calls, which the program times.
const fn of_part(part: KernelPart, times: DmaTimes) -> Option<Ticks> {
    match part {
        KernelPart::Calls => None,
        KernelPart::Pin => Some(times.pin),
        KernelPart::Map => Some(times.map),
        KernelPart::SyncForCpu => Some(times.sync_for_cpu),
        KernelPart::SyncForDevice => Some(times.sync_for_device),
        KernelPart::Unmap => Some(times.unmap),
        KernelPart::Unpin => Some(times.unpin),
    }
}

impl Mapper for KernelMapper {
    fn timed(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, LibraryError> {
        let MapUnmap { bytes, pairs, .. } = self.asked;
        let mut sum: Option<Ticks> = None;
        let calls = match self.part {
            KernelPart::SyncForCpu | KernelPart::SyncForDevice => map_sync_and_unmap,
            _ => map_and_unmap,
        };
        let stamps = pairs_timed(limits, first, passes, pairs, || {
            let memory = self.memory;
            let times = calls(self.file.as_fd(), self.mapped, bytes);
            let times = times.map_err(|error| Refused { memory, bytes, error })?;
            if let Some(time) = of_part(self.part, times) {
                sum = Some(sum.unwrap_or_default() + time);
            }
            Ok::<(), Refused>(())
        })?;
        // A sample that was stopped has lasted as long as the program says.
        let Some(sum) = sum.filter(|_| stamps.ending == Ending::Done) else { return Ok(stamps) };
        let end = self.timer.cycles(sum);
        Ok(Stamps { start: 0, issued: end, delivered: end, ..stamps })
    }

    fn clock(&self) -> Clock {
        clock(self.part)
    }

    fn bounce_buffer(&self) -> Option<BounceBuffer> {
        Some(self.bounce_buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_own_time_and_both_calls_that_of_the_program() {
        let [pin, map, sync_for_cpu, sync_for_device, unmap, unpin] = [1, 2, 3, 4, 5, 6].map(Ticks);
        let times = DmaTimes { pin, map, sync_for_cpu, sync_for_device, unmap, unpin };
        let parts = KernelMemory::Streaming.parts();
        let of_parts: Vec<Option<Ticks>> = parts.iter().map(|part| of_part(*part, times)).collect();
        assert_eq!(
            of_parts,
            [None, Some(pin), Some(map), Some(sync_for_cpu), Some(sync_for_device), Some(unmap), Some(unpin)]
        );
        for (part, time) in parts.iter().zip(of_parts) {
            assert_eq!(clock(*part) == Clock::Program, time.is_none(), "{part:?}");
        }
    }

    #[test]
    fn memory_that_is_missing_has_a_remedy_by_its_kind() {
        let text = |memory, errno: i32| {
            Refused { memory, bytes: 8192, error: io::Error::from_raw_os_error(errno) }.to_string()
        };
        let pinned = text(KernelMemory::Streaming, libc::ENOMEM);
        assert!(pinned.contains("8KiB") && pinned.contains("ulimit -l"), "{pinned}");
        let coherent = text(KernelMemory::Coherent, libc::ENOMEM);
        assert!(coherent.contains("smaller --sizes") && !coherent.contains("ulimit"), "{coherent}");
        assert!(!text(KernelMemory::Streaming, libc::ENODEV).contains("ulimit"));
        for earlier in [libc::EINVAL, libc::ENOTTY] {
            assert!(text(KernelMemory::ToDevice, earlier).contains("build kmod/ and load it again"));
        }
    }
}
