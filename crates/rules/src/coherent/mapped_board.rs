//! A coherent board with a DMA domain for its memory and an attached device.

use crate::rule::as_text;
use lanemark_coherent::{CoherentBoard, Spec, TransactionKind};
use lanemark_dma::{
    Buffer, Device, Domain, Hints, Invalidation, MapRequest, Mapping, Owner, Permission, Ranges, Sequential, Space,
};
use lanemark_units::{HostVirt, Iova, Ticks};

/// The time passed to the DMA library; no result depends on it.
pub const NOW: Ticks = Ticks::ZERO;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes of a line.
pub const LINE: usize = 32;
/// A buffer whose lines conflict with no other data in the caches.
pub const AT: HostVirt = HostVirt(0x2_5000);
/// Initial content of memory.
pub const OLD: [u8; LINE] = [0x0d; LINE];
/// Content written by a test.
pub const NEW: [u8; LINE] = [0xe3; LINE];

/// A coherent board with a DMA domain.
pub struct MappedBoard {
    pub domain: Domain<Sequential, CoherentBoard>,
    pub device: Device,
}

impl MappedBoard {
    /// A board of `spec` with page numbers of 16 bits, 8 of them chain ID, which are fast to build. Memory at [`AT`] contains
    /// [`OLD`], and no cache contains it.
    pub fn of(mut spec: Spec) -> Result<MappedBoard, String> {
        spec.adapter.tlb.block_bits = 8;
        let space = Space::of_device(28).map_err(as_text)?;
        let ranges = Ranges::new(space).map_err(as_text)?.over_entries(256).map_err(as_text)?;
        let strategy = Sequential::new(ranges).map_err(as_text)?;
        let board = CoherentBoard::new(spec).map_err(as_text)?;
        let mut domain = Domain::new("machine", strategy, board, Invalidation::Strict).map_err(as_text)?;
        let device = domain.attach("device 0").map_err(as_text)?;
        let mut mapped = MappedBoard { domain, device };
        mapped.store(0, AT, &[OLD[0]; 2 * PAGE as usize])?;
        mapped.board().flush(0, AT, 2 * PAGE as usize).map_err(as_text)?;
        Ok(mapped)
    }

    /// A board with coherent I/O.
    pub fn coherent() -> Result<MappedBoard, String> {
        MappedBoard::of(Spec::coherent())
    }

    /// A board with coherent I/O whose first device writes half lines.
    pub fn half_lines() -> Result<MappedBoard, String> {
        let mut spec = Spec::coherent();
        spec.adapter.devices[0] = 16;
        MappedBoard::of(spec)
    }

    /// The board, for accesses without the DMA library.
    pub fn board(&mut self) -> &mut CoherentBoard {
        self.domain.backend_mut()
    }

    /// Maps `len_bytes` from `at` on, in one piece.
    pub fn map(&mut self, at: HostVirt, len_bytes: u64, hints: Hints) -> Result<Mapping, String> {
        let request = MapRequest::new(self.device, Permission::ReadWrite).hints(hints);
        self.domain.map(&mut Buffer::new(at, len_bytes), request, NOW).map_err(as_text)
    }

    /// Gives a buffer to the device or back to the processors, with the flushes and purges that the board needs.
    pub fn sync(&mut self, at: HostVirt, len_bytes: u64, permission: Permission, turn: Owner) -> Result<(), String> {
        self.domain.sync(Buffer::new(at, len_bytes), permission, turn).map_err(as_text)
    }

    /// Stores `data` by a processor.
    pub fn store(&mut self, processor: usize, at: HostVirt, data: &[u8]) -> Result<(), String> {
        self.board().store(processor, at, data).map(drop).map_err(as_text)
    }

    /// Loads a line by a processor.
    pub fn load(&mut self, processor: usize, at: HostVirt) -> Result<[u8; LINE], String> {
        let mut seen = [0; LINE];
        self.board().load(processor, at, &mut seen).map_err(as_text)?;
        Ok(seen)
    }

    /// Reads a line by the device.
    pub fn device_read(&mut self, at: Iova) -> Result<[u8; LINE], String> {
        let mut seen = [0; LINE];
        self.board().device_read(0, at, &mut seen).map_err(as_text)?;
        Ok(seen)
    }

    /// Writes `data` by the device.
    pub fn device_write(&mut self, at: Iova, data: &[u8]) -> Result<(), String> {
        self.board().device_write(0, at, data).map(drop).map_err(as_text)
    }

    /// Runs the board for one millisecond.
    pub fn arbitrate(&mut self) {
        let until = self.board().now() + Ticks::whole_ns(1_000_000);
        self.board().run_until(until);
    }

    /// Number of transactions of `kind` on the processors' bus.
    pub fn on_bus(&self, kind: TransactionKind) -> u64 {
        self.domain.backend().bus().count(kind)
    }

    /// Hits and misses of the I/O TLB.
    pub fn tlb(&self) -> (u64, u64) {
        let counts = self.domain.backend().adapter().counts();
        (counts.hits, counts.misses)
    }
}

/// The host address `bytes` after `at`.
pub const fn after(at: HostVirt, bytes: u64) -> HostVirt {
    HostVirt(at.0 + bytes)
}

/// The I/O virtual address `bytes` after `at`.
pub const fn behind(at: Iova, bytes: u64) -> Iova {
    Iova(at.0 + bytes)
}
