//! Properties of a machine.

use crate::{Access, Allocation, CopyBy, Discipline, LaunchBy, LineSource, Table, Verb, Width};
use lanemark_units::{BarOffset, MemoryType, format_size};

/// Properties of a machine, found when it was opened.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    /// Name as given by the user: a preset, a file, or `host`.
    pub name: String,
    /// One line: processor and card, or processor and memory.
    pub summary: String,
    /// Clock of the samples.
    pub time_base: TimeBase,
    /// Number of cores that a plan may use.
    pub cores: u32,
    /// Regions that a plan may access.
    pub regions: Vec<Region>,
    /// Memory types that a span may have.
    pub memory_types: Vec<MemoryType>,
    /// Store instructions that the core supports.
    pub stores: Vec<Access>,
    /// Load instructions that the core supports.
    pub loads: Vec<Access>,
    /// Implementation of `memcpy` behind [`Access::Memcpy`].
    pub memcpy: String,
    /// DMA capabilities of the cards; `None` if they have no DMA engine or it cannot be controlled.
    pub dma: Option<DmaFacts>,
    /// Copy width of the kernel driver; `None` without a driver.
    pub driver_width: Option<Width>,
    /// Page tables that a DMA mapping can update.
    pub tables: Vec<Table>,
    /// Methods of sharing buffers with devices; empty if their cost is unknown.
    pub disciplines: Vec<Discipline>,
    /// Line sources whose load latency can be measured; empty if unknown or not controllable.
    pub line_sources: Vec<LineSource>,
    /// Properties of the runtime; `None` for a machine that is accessed by loads and stores.
    pub runtime: Option<RuntimeFacts>,
}

/// A device behind a runtime.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuntimeFacts {
    /// Kind of device, as reported by the runtime.
    pub kind: DeviceKind,
    /// Whether the runtime reports an emulated device. Its timings are not meaningful for a real one.
    pub is_emulated: bool,
    /// Supported kinds of memory.
    pub allocations: Vec<Allocation>,
    /// Methods of launching kernels.
    pub launches: Vec<LaunchBy>,
    /// Methods of copying many pieces.
    pub small_copies: Vec<CopyBy>,
    /// Memory ports among which a program can choose; 1 if it cannot.
    pub memory_ports: u32,
    /// Whether the device runs [compute](crate::Compute) kernels.
    pub computes: bool,
}

/// Kind of a runtime's device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// The host processor.
    Cpu,
    /// A GPU.
    Gpu,
    /// Another compute device, such as an FPGA.
    Accelerator,
    /// A kind that the runtime does not name.
    Other,
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            DeviceKind::Cpu => "CPU",
            DeviceKind::Gpu => "GPU",
            DeviceKind::Accelerator => "accelerator",
            DeviceKind::Other => "other device",
        })
    }
}

impl Facts {
    /// Whether every DMA transfer is a command whose completion the device reports, so that outstanding writes can be limited,
    /// too: a real device with command queues, such as a drive. Posted writes of other devices are complete when sent.
    #[must_use]
    pub fn has_command_queue(&self) -> bool {
        self.time_base != TimeBase::Simulated && self.dma.is_some_and(|dma| dma.has_flag && dma.tags > 1)
    }

    /// Supported instructions for this direction.
    #[must_use]
    pub fn accesses(&self, verb: Verb) -> &[Access] {
        match verb {
            Verb::Load => &self.loads,
            Verb::Store => &self.stores,
        }
    }

    /// The largest storage region, used for bandwidth.
    #[must_use]
    pub fn storage(&self) -> Option<&Region> {
        self.regions.iter().filter(|region| region.kind == RegionKind::Storage).max_by_key(|region| region.len)
    }

    /// The register region, used for the latency of single reads.
    #[must_use]
    pub fn registers(&self) -> Option<&Region> {
        self.regions.iter().find(|region| region.kind == RegionKind::Registers)
    }

    /// The region of this name.
    #[must_use]
    pub fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|region| region.name == name)
    }
}

/// DMA capabilities of the cards of a machine, which are all alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a fact of its own.
pub struct DmaFacts {
    /// Number of cards.
    pub cards: u32,
    /// Bytes of host memory that are mapped for them.
    pub mapped_bytes: u64,
    /// Page size of the IOMMU; `None` without one: devices use physical addresses.
    pub page_bytes: Option<u64>,
    /// Last-level cache as used by devices; `None` if it speeds up no read.
    pub cache: Option<CacheFacts>,
    /// Whether partial-line writes to host memory cost more than full-line writes.
    pub is_partial_dearer: bool,
    /// Whether there is memory of another socket with a higher latency.
    pub has_remote: bool,
    /// Maximum number of outstanding reads of a card.
    pub tags: u32,
    /// Number of DMA channels of a card.
    pub channels: u32,
    /// Memory of another card for transfers between both, where it is none of the regions: its first byte and its length;
    /// `None` if it is the storage region.
    pub peer: Option<(BarOffset, u64)>,
    /// Address in the BARs of a card to which other cards write data for a relay ([`Relay`](crate::Relay));
    /// `None` if unsupported.
    pub relays_at: Option<BarOffset>,
    /// Whether a driver can start transfers and wait for them ([`DmaCall`](crate::DmaCall)).
    pub has_driver: bool,
    /// Whether a device can show the end of a transfer by a flag in host memory ([`Completion::Flag`]); otherwise cores poll
    /// a register.
    ///
    /// [`Completion::Flag`]: crate::Completion::Flag
    pub has_flag: bool,
    /// Whether a device takes descriptors only from host memory, where it fetches them
    /// ([`Descriptors::Fetched`](crate::Descriptors::Fetched)).
    pub fetches_only: bool,
}

impl DmaFacts {
    /// A card behind an IOMMU with pages of `page_bytes`, whose engine makes one transfer at a time: a driver starts it by
    /// registers, and polls one of them.
    #[must_use]
    pub const fn of_register_engine(mapped_bytes: u64, page_bytes: u64) -> DmaFacts {
        DmaFacts {
            cards: 1,
            mapped_bytes,
            page_bytes: Some(page_bytes),
            cache: None,
            is_partial_dearer: false,
            has_remote: false,
            tags: 1,
            channels: 1,
            peer: None,
            relays_at: None,
            has_driver: true,
            has_flag: false,
            fetches_only: false,
        }
    }
}

/// Last-level cache as used by devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheFacts {
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes that writes of devices can allocate (DDIO).
    pub device_bytes: u64,
}

/// Clock in which samples are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeBase {
    /// Virtual time; every run of a plan gives the same samples.
    Simulated,
    /// Time-stamp counter of a real core.
    Real,
    /// Counter of an emulated core; its timings are not meaningful.
    Emulated,
}

/// A window a plan may touch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Its name in the platform file.
    pub name: String,
    /// Where it starts.
    pub at: BarOffset,
    /// Its length in bytes.
    pub len: u64,
    /// The kind of memory behind the window.
    pub kind: RegionKind,
}

impl std::fmt::Display for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} at {})", self.name, format_size(self.len), self.at)
    }
}

/// The kind of memory behind a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionKind {
    /// Registers; reading or writing may have side effects.
    Registers,
    /// Bytes that stay as they were written.
    Storage,
    /// A queue: every write is an entry.
    Fifo,
}
