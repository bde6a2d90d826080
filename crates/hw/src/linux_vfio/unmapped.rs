//! A read of a drive to memory that was unmapped just before: does the IOMMU block it?

use lanemark_units::Iova;

/// Outcome of a read to memory that was unmapped just before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnmappedRead {
    /// Address of the memory for the drive.
    pub iova: Iova,
    /// How the drive completed the read: successfully, or with this error.
    pub completed: Result<(), String>,
    /// Whether every byte of the memory is as before.
    pub is_unchanged: bool,
    /// The kernel's reports of blocked requests of the drive, if its log can be read.
    pub faults: Vec<String>,
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod run {
    #![allow(unsafe_code)]

    use super::super::device::BusMaster;
    use super::super::drive::DriveBench;
    use super::super::faults::FaultLog;
    use super::super::host_window::HostWindow;
    use super::super::own_queue::Layout;
    use super::super::transfers::REPORT;
    use super::UnmappedRead;
    use crate::host_pages::HostPages;
    use crate::nvme::{Command, DataPointer};
    use lanemark_machine::MachineError;
    use lanemark_units::Iova;
    use std::io;
    use std::sync::Arc;

    /// The bytes of the memory before the second read.
    const KEPT: u64 = 0x5afe_5afe_5afe_5afe;

    impl DriveBench<'_> {
        /// Maps a page, reads the first block to it, unmaps the page, and reads the block to the same address once more.
        ///
        /// # Errors
        /// [`MachineError`] of the mappings and of the first read, which must change the page.
        pub(in super::super) fn read_unmapped(self) -> Result<UnmappedRead, MachineError> {
            self.check_stopped()?;
            let (layout, namespace) = (self.layout(), self.work.namespace);
            let mut pages = self.allocated(layout.len)?;
            let page = self.allocated(namespace.block_bytes)?;
            let window = self.mapped(&mut pages, layout)?;
            let iova = window.unused(page.len());
            let iova = iova.map_err(|error| self.os("finding an unused address", io::Error::other(error)))?;
            let device = Arc::clone(self.address_space.device());
            let done = self.read_twice(layout, &window, &page, iova);
            if device.can_reset() {
                // A drive may count the blocked read as outstanding.
                device.reset().map_err(|error| self.device_error(error.to_string()))?;
            }
            done
        }

        /// Reads the first block to the page before and after it is unmapped; bus mastering is on meanwhile.
        fn read_twice(
            &self,
            layout: Layout,
            window: &HostWindow,
            page: &HostPages,
            iova: Iova,
        ) -> Result<UnmappedRead, MachineError> {
            let device = Arc::clone(self.address_space.device());
            let master = BusMaster::enable(Arc::clone(&device));
            let _master = master.map_err(|error| self.os("enabling bus mastering", error))?;
            let mut queue = self.queue(layout, window, None)?;
            let namespace = self.work.namespace;
            let read = Command::read(namespace.id, 0, 1, DataPointer::prp([iova.0, 0]));
            let words = || (0..namespace.block_bytes).step_by(8);
            let is_kept = || words().all(|at| page.load_word(at) == KEPT);
            words().for_each(|at| page.store_word(at, KEPT));
            // SAFETY: the page lives longer than its mapping, and is accessed by volatile loads and stores only.
            let mapped = unsafe { self.address_space.map(iova, page.address(), page.len(), [true, true]) };
            mapped.map_err(|error| self.os("mapping memory for DMA", error))?;
            let first = self.work.once(&mut queue, read);
            let has_arrived = !is_kept();
            let unmapped = self.address_space.unmap(iova, page.len());
            check_unmapped(unmapped, page.len()).map_err(|error| self.os("unmapping memory", error))?;
            first?;
            if !has_arrived {
                return Err(self.device_error(format!("{}: the first read has not changed the memory", self.work.name)));
            }
            words().for_each(|at| page.store_word(at, KEPT));
            let log = FaultLog::from_now(self.log);
            let completed = self.work.once(&mut queue, read).map_err(|error| error.to_string());
            // The kernel reports a fault after the request.
            std::thread::sleep(REPORT);
            let faults = log.faults_of(device.address());
            Ok(UnmappedRead { iova, completed, is_unchanged: is_kept(), faults })
        }
    }

    /// Fails unless all of `len` bytes were unmapped.
    fn check_unmapped(unmapped: io::Result<u64>, len: u64) -> io::Result<()> {
        match unmapped? {
            all if all == len => Ok(()),
            part => Err(io::Error::other(format!("the kernel has unmapped {part} of {len} B"))),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn memory_of_which_a_part_is_still_mapped_is_not_read_to() {
            assert!(check_unmapped(Ok(4096), 4096).is_ok());
            let part = check_unmapped(Ok(0), 4096).unwrap_err().to_string();
            assert_eq!(part, "the kernel has unmapped 0 of 4096 B");
            assert!(check_unmapped(Err(io::ErrorKind::InvalidInput.into()), 4096).is_err());
        }
    }
}
