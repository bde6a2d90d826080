//! DMA memory: the bytes of host memory that devices access, and the last-level cache in front of them.
//!
//! The memory is at one bus address. Transfers and runtimes find their buffers in it as the last writer left them.

use crate::host::last_level_cache::LastLevelCache;
use crate::host::runtime::Copied;
use crate::host::stored_data::stored_bytes;
use lanemark_engine::Memory;
use lanemark_machine::{Partner, Transfer, Writer};
use lanemark_platform::Platform;

/// Bytes copied or filled at a time.
const PIECE: usize = 4096;

/// State of the DMA memory.
#[derive(Debug)]
pub(crate) struct DmaMemory {
    /// The bytes, by their offset from `address`.
    pub(crate) bytes: Memory,
    pub(crate) cache: LastLevelCache,
    /// Bus address of the first byte.
    pub(crate) address: u64,
    /// The last writer of the buffers that transfers use.
    pub(crate) written_by: Writer,
}

impl DmaMemory {
    /// Creates the DMA memory of a platform, filled with zeros, and an empty cache.
    pub(crate) fn new(platform: &Platform) -> DmaMemory {
        DmaMemory {
            bytes: Memory::default(),
            cache: LastLevelCache::of(platform),
            address: platform.memory.as_ref().map_or(0, |memory| memory.address_bytes.value),
            written_by: Writer::default(),
        }
    }

    /// Puts the host buffer of a transfer in the last-level cache, as left by its writer.
    pub(crate) fn fill_cache(&mut self, transfer: &Transfer) {
        if !self.cache.is_there() || transfer.partner != Partner::Host {
            return;
        }
        let bytes = transfer.window.places(transfer.bytes).saturating_mul(transfer.window.step(transfer.bytes));
        let start = self.address.saturating_add(transfer.window.offset);
        match self.written_by {
            Writer::Nobody => self.cache.invalidate(start, bytes),
            Writer::Core => self.cache.write_by_core(start, bytes),
            Writer::Device => self.cache.fill_by_device(start, bytes),
        }
    }

    /// Fills `bytes` bytes of a program, at `own_at`, before a runtime copies them.
    pub(crate) fn fill(&mut self, own_at: u64, bytes: u64, pass: u64) {
        let mut piece = [0; PIECE];
        for done in (0..bytes).step_by(PIECE) {
            let piece = &mut piece[..(bytes - done).min(PIECE as u64) as usize];
            stored_bytes(self.address + own_at + done, pass, piece);
            self.bytes.write(own_at + done, piece);
        }
    }

    /// Performs a copy by a core within this memory.
    #[cold]
    pub(crate) fn copy(&mut self, Copied { from, to, bytes }: Copied) {
        let (from, at) = (from - self.address, to - self.address);
        let mut piece = [0; PIECE];
        for done in (0..bytes).step_by(PIECE) {
            let piece = &mut piece[..(bytes - done).min(PIECE as u64) as usize];
            self.bytes.read(from + done, piece);
            self.bytes.write(at + done, piece);
        }
        self.cache.write_by_core(to, bytes);
    }
}
