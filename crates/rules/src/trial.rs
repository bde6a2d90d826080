//! A board with a memory region under test.

use lanemark_machine::{Access, Lane, Span, Step, Stream, Verb, Width};
use lanemark_platform::{Platform, RegionKind};
use lanemark_sim::{Board, TlpKind};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// A board with the region under test, and helpers.
pub(crate) struct Trial {
    pub(crate) board: Board,
    pub(crate) region: String,
    at: BarOffset,
    bus: u64,
}

impl Trial {
    /// A trial on the first storage region.
    pub(crate) fn new(platform: &Platform) -> Result<Trial, String> {
        Trial::on(platform, |kind| matches!(kind, RegionKind::Sram | RegionKind::Ddr))
    }

    /// A trial on the first region of a `wanted` kind.
    pub(crate) fn on(platform: &Platform, wanted: fn(RegionKind) -> bool) -> Result<Trial, String> {
        let region = platform
            .regions
            .iter()
            .find(|region| wanted(region.kind.value))
            .ok_or_else(|| "the platform has no region of the required kind".to_owned())?;
        let bar = region.bar.value as u8;
        let base = platform.bar(bar).map_or(0, |bar| bar.address_bytes.value);
        let mut board = Board::new(platform).map_err(|error| error.to_string())?;
        board.record_crossings();
        Ok(Trial {
            board,
            region: region.name.clone(),
            at: BarOffset { bar, offset: region.offset_bytes.value },
            bus: base + region.offset_bytes.value,
        })
    }

    /// Bytes of the region from `offset` on.
    pub(crate) fn span(&self, offset: u64, len: u64, memory_type: MemoryType) -> Span {
        Span { at: BarOffset { offset: self.at.offset + offset, ..self.at }, len, memory_type }
    }

    /// Stores to the region.
    pub(crate) fn store(&self, offset: u64, len: u64, width: Width, kind: MemoryType) -> Step {
        Step::Stream(Stream::over(Verb::Store, Access::Plain(width), self.span(offset, len, kind)))
    }

    /// A load from the region.
    pub(crate) fn load(&self, offset: u64, width: Width, kind: MemoryType) -> Step {
        let span = self.span(offset, width.bytes(), kind);
        Step::Stream(Stream::over(Verb::Load, Access::Plain(width), span))
    }

    /// Runs `steps` on `core` until the board is idle; lines in write-combining buffers stay there.
    pub(crate) fn run(&mut self, core: u32, steps: Vec<Step>) -> Result<Ticks, String> {
        let start = self.board.now();
        self.board.start(&Lane { core, task: steps.into() }, 1, 1);
        self.board.run_until(start + Ticks::whole_ns(1_000_000_000));
        if self.board.core(core as usize).is_done() {
            Ok(self.board.core(core as usize).issued_at().since(start))
        } else {
            Err("the core has not finished after one second".to_owned())
        }
    }

    /// Offsets and enabled bytes of the writes that crossed the link.
    pub(crate) fn writes(&self) -> Vec<(u64, u32)> {
        let crossings = self.board.crossings();
        crossings
            .iter()
            .filter(|crossing| crossing.tlp.kind == TlpKind::MWr)
            .map(|crossing| (crossing.tlp.address - self.bus, crossing.tlp.enabled_bytes()))
            .collect()
    }

    /// Content of the device's memory.
    pub(crate) fn device_bytes(&mut self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        if let Some(region) = self.board.region_mut(&self.region) {
            region.memory.read(offset, &mut bytes);
        }
        bytes
    }
}
