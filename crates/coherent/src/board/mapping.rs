//! DMA mappings of the coherent board: a processor writes the I/O page directory.
//!
//! Processor 0 stores the entries, which stay in its cache; the adapter snoops them. Where the adapter is not
//! coherent, each store is followed by a flush.

use super::{CoherentBoard, NoAccess};
use crate::adapter_tlb::{PAGE_BYTES, PageEntry, TlbCommand};
use crate::bus::{Line, MOST_LINE_BYTES};
use crate::processor::Act;
use lanemark_dma::{
    Abilities, Attributes, Backend, BackendError, Buffer, CacheCare, Coherence, Invalidated, IovaRange, Purge,
};
use lanemark_units::{HostVirt, Iova, Ticks};

/// The processor that runs the operating system.
const SYSTEM: usize = 0;
const DIRECTORY: &str = "changing the I/O page directory";

impl CoherentBoard {
    /// Returns the directory entry for an address as a processor sees it, without taking time. `None` beyond the
    /// directory.
    #[must_use]
    pub fn directory_entry(&mut self, at: Iova) -> Option<PageEntry> {
        let place = self.spec.adapter.tlb.entry_at(at)?.0;
        let line = self.directory_line(place);
        let dirty = self.processors.iter().find_map(|processor| processor.cache().read(line)).copied();
        let data = dirty.unwrap_or_else(|| self.memory_line(line));
        Some(PageEntry::from_bytes(entry_in(&data, place - line.physical)))
    }

    /// Returns the number of valid directory entries, without taking time.
    #[must_use]
    pub fn directory_entries(&mut self) -> u64 {
        let tlb = self.spec.adapter.tlb.clone();
        let pages = (0..1_u64 << tlb.page_bits()).map(|page| Iova(page * PAGE_BYTES));
        pages.filter(|at| self.directory_entry(*at).is_some_and(PageEntry::is_valid)).count() as u64
    }

    fn directory_line(&self, place: u64) -> Line {
        let first = place & !(self.spec.adapter.line_bytes - 1);
        Line::new(first, first)
    }

    /// Executes a processor operation on the line of a directory entry.
    fn at_entry(&mut self, place: u64, act: Act) -> Result<[u8; 8], NoAccess> {
        let line = self.directory_line(place);
        let ticket = self.ask_processor(SYSTEM, line, act)?;
        Ok(entry_in(&self.wait(ticket)?.bytes, place - line.physical))
    }

    fn place_of(&self, at: Iova) -> Result<u64, BackendError> {
        self.spec.adapter.tlb.entry_at(at).map(|place| place.0).ok_or(BackendError::NotThere { at })
    }

    fn read_entry(&mut self, at: Iova) -> Result<PageEntry, BackendError> {
        let place = self.place_of(at)?;
        self.at_entry(place, Act::Load).map(PageEntry::from_bytes).map_err(refused(DIRECTORY))
    }

    fn write_entry(&mut self, at: Iova, entry: PageEntry) -> Result<(), BackendError> {
        let place = self.place_of(at)?;
        let first = (place - self.directory_line(place).physical) as usize;
        let mut data = [0; MOST_LINE_BYTES];
        data[first..first + 8].copy_from_slice(&entry.to_bytes());
        self.at_entry(place, Act::Store { at: first, len: 8, data }).map_err(refused(DIRECTORY))?;
        if !self.spec.adapter.coherent {
            self.at_entry(place, Act::Flush).map_err(refused(DIRECTORY))?;
        }
        Ok(())
    }

    /// Checks that every page of `range` is mapped, or that none is.
    fn all_are(&mut self, range: IovaRange, valid: bool) -> Result<(), BackendError> {
        for at in pages(range) {
            if self.read_entry(at)?.is_valid() != valid {
                return Err(if valid { BackendError::NotThere { at } } else { BackendError::Overlap { at } });
            }
        }
        Ok(())
    }

    fn write_entries(
        &mut self,
        range: IovaRange,
        memory: HostVirt,
        attributes: Attributes,
    ) -> Result<(), BackendError> {
        let pin = |at: HostVirt, error: NoAccess| BackendError::Pin { at: at.0, because: error.to_string() };
        let virts = pages(range).enumerate().map(|(page, at)| (at, memory.0.checked_add(page as u64 * PAGE_BYTES)));
        let mut entries = Vec::new();
        for (at, virt) in virts {
            let virt = virt.map(HostVirt).ok_or(BackendError::NotThere { at })?;
            let physical = self.physical(virt).map_err(|error| pin(virt, error))?;
            entries.push((at, PageEntry::new(physical, self.line_of(virt).index, attributes)));
        }
        for (at, entry) in entries {
            self.write_entry(at, entry)?;
        }
        Ok(())
    }
}

fn pages(range: IovaRange) -> impl Iterator<Item = Iova> {
    (0..range.len_bytes / PAGE_BYTES).map(move |page| Iova(range.at.0 + page * PAGE_BYTES))
}

fn entry_in(line: &[u8], first: u64) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&line[first as usize..first as usize + 8]);
    bytes
}

/// Converts a failure of the processor.
fn refused(doing: &'static str) -> impl Fn(NoAccess) -> BackendError {
    move |error| BackendError::Os { doing, source: std::io::Error::other(error) }
}

impl Backend for CoherentBoard {
    type Memory = HostVirt;

    fn name(&self) -> &'static str {
        "I/O page directory"
    }

    fn abilities(&self) -> Abilities {
        Abilities::ALL
    }

    fn coherence(&self) -> Coherence {
        if self.spec.adapter.coherent {
            Coherence::Coherent
        } else {
            Coherence::BySoftware { cpu_prefetches: self.spec.processor.prefetches }
        }
    }

    fn line_bytes(&self) -> u64 {
        self.spec.adapter.line_bytes
    }

    fn map(&mut self, range: IovaRange, memory: HostVirt, attributes: Attributes) -> Result<(), BackendError> {
        self.all_are(range, false)?;
        self.write_entries(range, memory, attributes)
    }

    fn unmap(&mut self, range: IovaRange) -> Result<(), BackendError> {
        self.all_are(range, true)?;
        pages(range).try_for_each(|at| self.write_entry(at, PageEntry::default()))
    }

    fn set_attributes(&mut self, range: IovaRange, attributes: Attributes) -> Result<(), BackendError> {
        self.all_are(range, true)?;
        for at in pages(range) {
            let old = self.read_entry(at)?;
            self.write_entry(at, PageEntry::new(old.physical(), old.index(), attributes))?;
        }
        Ok(())
    }

    fn remap(&mut self, range: IovaRange, memory: HostVirt, attributes: Attributes) -> Result<(), BackendError> {
        self.all_are(range, true)?;
        self.write_entries(range, memory, attributes)
    }

    fn invalidate(&mut self, stale: Invalidated) -> Result<Ticks, BackendError> {
        let before = self.now();
        let tlb = &self.spec.adapter.tlb;
        let commands: Vec<TlbCommand> = match stale {
            Invalidated::All => (0..tlb.entries).map(|chain_id| TlbCommand::Invalidate { chain_id }).collect(),
            Invalidated::Range { range, by: Purge::Matching } => {
                pages(range).map(|at| TlbCommand::Purge { at }).collect()
            }
            Invalidated::Range { range, by: Purge::Entries } => {
                // Pages of one range may share an entry, which is invalidated once.
                let mut chain_ids: Vec<u64> = pages(range).map(|at| tlb.chain_id(at)).collect();
                chain_ids.dedup();
                chain_ids.into_iter().map(|chain_id| TlbCommand::Invalidate { chain_id }).collect()
            }
        };
        for command in commands {
            self.command(SYSTEM, command).map_err(refused("sending a command to the I/O TLB"))?;
        }
        Ok(self.now().since(before))
    }

    fn care(&mut self, care: CacheCare, buffer: Buffer<HostVirt>) -> Result<(), BackendError> {
        let doing = "flushing or purging lines";
        let other = |error| BackendError::Os { doing, source: std::io::Error::other(error) };
        let len_bytes = usize::try_from(buffer.len_bytes).map_err(other)?;
        let cared = match care {
            CacheCare::Flush => self.flush(SYSTEM, buffer.at, len_bytes),
            CacheCare::Purge => self.purge(SYSTEM, buffer.at, len_bytes),
        };
        cared.map(|_| ()).map_err(refused(doing))
    }
}
