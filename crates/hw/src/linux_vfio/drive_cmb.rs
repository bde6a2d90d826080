//! The controller memory buffer of a drive, mapped into this process.

use super::VfioDevice;
use super::facts::MAPPED;
use super::registers::Registers;
use crate::host_pages::HostPages;
use crate::linux_sysfs::{Attachment, Device, Kind, Range};
use crate::nvme::{Cmb, CmbData, CmbLimits, CmbUses, DataMemory, MappedCmb, NvmeError, PAGE};
use lanemark_dma::Region;
use lanemark_units::{Iova, format_size};
use rustix::io::Errno;
use std::sync::Arc;

/// The controller memory buffer of a drive, mapped into this process.
#[derive(Debug)]
pub(super) struct DriveCmb {
    pub(super) cmb: Cmb,
    memory: Registers,
    /// Address of its first byte, for the controller and on the bus.
    address: u64,
    uses: CmbUses,
}

impl DriveCmb {
    /// Finds the buffer, and maps it as far as it is used.
    pub(super) fn open(
        registers: &Registers,
        device: &Arc<VfioDevice>,
        sysfs: &Device,
        uses: CmbUses,
    ) -> Result<DriveCmb, String> {
        let cmb = Cmb::find(registers, uses).map_err(|error| error.to_string())?;
        let kind = Some(Kind::Registers { may_load: true, may_store: true });
        let (from, to) = (cmb.offset, cmb.offset.saturating_add(cmb.len.min(MAPPED)));
        let place = Attachment::place(sysfs, Range { bar: cmb.bar, from, to, kind });
        let start = place.map_err(|error| error.to_string())?.bar.start.0;
        let memory = Registers::open(device, sysfs, cmb.bar, from, to).map_err(|error| error.to_string())?;
        // As Linux does: the controller gets the bus address of the buffer, which no memory has.
        Ok(DriveCmb { cmb, memory, address: start.saturating_add(from), uses })
    }

    pub(super) const fn mapped(&self) -> MappedCmb<'_, Registers> {
        MappedCmb { cmb: self.cmb, memory: &self.memory, address: self.address, uses: self.uses }
    }

    /// Bytes that are used.
    const fn len(&self) -> u64 {
        if self.cmb.len < MAPPED { self.cmb.len } else { MAPPED }
    }

    /// Limits of queues in it; `None` if it holds none.
    pub(super) fn queues(&self) -> Option<CmbLimits> {
        let (holds_completions, pages) = (self.cmb.holds_completions(), self.len() / PAGE);
        self.uses.queues.then_some(CmbLimits { holds_completions, pages })
    }

    /// Limits of data in it; `None` if it holds none.
    pub(super) fn data(&self) -> Option<CmbData> {
        let (takes_reads, takes_writes) = (self.cmb.takes_reads(), self.cmb.takes_writes());
        self.uses.data.then_some(CmbData { bytes: self.len(), takes_reads, takes_writes })
    }

    /// Bytes for data, behind the queues of one pair.
    pub(super) fn data_bytes(&self) -> u64 {
        let queues = self.queues().map_or(0, |queues| if queues.holds_completions { 2 * PAGE } else { PAGE });
        self.len() - queues.min(self.len())
    }

    /// Its bytes from `start` on.
    pub(super) const fn window(&self, start: u64) -> CmbWindow<'_> {
        CmbWindow { memory: &self.memory, start: self.cmb.offset + start, address: self.address + start }
    }

    /// The addresses that the controller decodes: from the start of the BAR to the end of the buffer.
    pub(super) fn region(&self) -> Region {
        let Cmb { offset, len, .. } = self.cmb;
        let (first, last) = (self.address - offset, self.address.saturating_add(len - 1));
        Region { name: "the controller memory buffer", first: Iova(first), last: Iova(last) }
    }

    /// Places of queues and data, in words.
    pub(super) fn summary(&self) -> String {
        let Cmb { bar, offset, len, .. } = self.cmb;
        let access = if self.memory.is_called() { "accessed by system calls" } else { "mapped as UC" };
        let buffer = format!("the controller memory buffer of {} at BAR{bar}+{offset:#x}, {access}", format_size(len));
        let completions = if self.cmb.holds_completions() { "also completion queues" } else { "no completion queues" };
        match (self.uses.queues, self.uses.data) {
            (false, _) => format!("I/O queues in host memory, data in {buffer}: off the link in samples"),
            (true, false) => format!("I/O submission queue in {buffer}, which can hold {completions}"),
            (true, true) => format!(
                "I/O submission queue and data in {buffer}, which can hold {completions}: data off the link in samples"
            ),
        }
    }
}

/// A window of a controller memory buffer, for data.
#[derive(Clone, Copy, Debug)]
pub(super) struct CmbWindow<'a> {
    memory: &'a Registers,
    /// Offset in the BAR.
    start: u64,
    /// Address of its first byte for the controller.
    pub(super) address: u64,
}

impl CmbWindow<'_> {
    /// Stores the first `len` bytes of `pages`; `check` ends it with an error.
    pub(super) fn fill(
        &self,
        pages: &HostPages,
        len: u64,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        CmbWindow::each_word(len, check, |at| self.memory.store(self.start + at, 8, pages.load_word(at)))
    }

    /// Loads the first `len` bytes to `pages`; `check` ends it with an error.
    pub(super) fn copy_to(
        &self,
        pages: &HostPages,
        len: u64,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        CmbWindow::each_word(len, check, |at| {
            pages.store_word(at, self.memory.load(self.start + at, 8)?);
            Ok(())
        })
    }

    /// Calls `then` with the offset of each word, and `check` before each page.
    fn each_word(
        len: u64,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
        mut then: impl FnMut(u64) -> Result<(), Errno>,
    ) -> Result<(), NvmeError> {
        for at in (0..len).step_by(8) {
            if at % PAGE == 0 {
                check()?;
            }
            then(at)?;
        }
        Ok(())
    }
}

impl DataMemory for CmbWindow<'_> {
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        // Data may begin at a multiple of 4 B, and words at one of 8 B.
        let (first, end) = (at / 8 * 8, at + bytes.len() as u64);
        let words = (first..end).step_by(8).map(|word| self.memory.load(self.start + word, 8));
        let loaded = words.collect::<Result<Vec<u64>, _>>()?;
        let loaded = loaded.iter().flat_map(|word| word.to_le_bytes()).skip((at - first) as usize);
        bytes.iter_mut().zip(loaded).for_each(|(to, byte)| *to = byte);
        Ok(())
    }
}
