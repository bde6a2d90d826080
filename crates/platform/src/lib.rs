//! A machine as data: cores and their buffers, driver costs, root complex, links, endpoint.
//!
//! A [`Platform`] is read from TOML text by [`Platform::parse`]. Every value in it has an origin: a source, a stated
//! assumption, or the figures it was fitted to. The keys with their units, ranges and defaults are declared once, in
//! [`spec`]. The reader, the checks, the JSON Schema ([`schema`]) and the table in the guide ([`key_table`]) are
//! derived from them. This crate opens no files and computes no results.
//!
//! To add a section, see `sections.rs`; to add a key, add a line to its `section!` in [`spec`].

#![forbid(unsafe_code)]

mod check;
mod draft;
mod fifos;
mod iommu;
mod kernel;
mod loads;
mod mailbox;
pub mod memcpy;
pub mod memory_type;
mod msi_x;
mod param;
mod path;
mod port;
mod preset;
mod read;
mod registers;
mod retimer;
mod runtime;
mod schema;
#[macro_use]
mod sections;
pub mod spec;

pub use draft::{Draft, Unknown};
pub use loads::Loads;
pub use mailbox::{KernelDoorbell, Mailbox};
pub use msi_x::VectorTable;
pub use param::{Origin, Param};
pub use port::{CARD, LinkEnds, PeerRoute, upper_port};
pub use preset::{PRESETS, Preset, preset};
pub use read::{PlatformError, Problem};
pub use schema::{key_table, schema};
pub use spec::{
    ChunkTiming, FaultKind, FlushLine, Forwarding, NoFault, OrderingChoice, RegionKind, SectionRow, WcPartialFlush,
};

/// Name of the root complex as a value of `below`.
pub const ROOT: &str = "root";

/// Version of the platform format.
pub const SCHEMA: u32 = 2;

sections! {
    /// A whole machine: cores, a root complex, and endpoints of one kind, each below a root port or a switch.
    pub struct Platform {
        text {
            /// Name, as targets and records show it.
            name,
            /// Processor and card in one line.
            summary,
        }
        /// The cores.
        core: once Core,
        /// The kernel driver; `None` if unknown.
        driver: optional Driver,
        /// The runtime through which programs give the card work, with its costs; `None` without one.
        runtime: optional Runtime,
        /// The root complex.
        root_complex: once RootComplex,
        /// Host memory as seen by devices; `None` if no device accesses it.
        memory: optional Memory,
        /// The IOMMU that translates the addresses of devices; `None` without one.
        iommu: optional Iommu,
        /// Cost of sharing memory between cores and devices; `None` if unknown.
        coherence: optional Coherence,
        /// The link between an endpoint and the port above it.
        link: once Link,
        /// The endpoint.
        endpoint: once Endpoint,
        /// DMA engine of the endpoint; `None` without one.
        dma: optional Dma,
        /// Extra costs of reads by the DMA engine; `None` if `dma` covers them.
        dma_read: optional DmaRead,
        /// Extra costs of writes by the DMA engine; `None` if `dma` covers them.
        dma_write: optional DmaWrite,
        /// FIFOs between the DMA engine and the user logic; `None` if they never stall it.
        fifos: optional Fifos,
        /// Memory of the card, by ports; `None` if unknown.
        device_memory: optional DeviceMemory,
        /// Kernels that the card runs; `None` if it runs none.
        kernel: optional Kernel,
        /// MSI-X capability of the endpoint; `None` if it uses MSI.
        msi_x: optional MsiX,
        /// Layout of the register region: timers and user registers; `None` if unknown.
        registers: optional Registers,
        /// The switches, in any order.
        switches: any_number Switch,
        /// Positions of endpoints; empty for a single endpoint directly below the root.
        slots: any_number Slot,
        /// Retimers on links.
        retimers: any_number Retimer,
        /// Ports whose Device Control differs from that of the others.
        ports: any_number Port,
        /// Injected faults.
        faults: any_number Fault,
        /// Base address registers of the endpoint.
        bars: at_least_one Bar,
        /// Regions behind the BARs.
        regions: at_least_one Region,
    }
}

impl Platform {
    /// The region of this name.
    #[must_use]
    pub fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|region| region.name == name)
    }

    /// The BAR of this index.
    #[must_use]
    pub fn bar(&self, index: u8) -> Option<&Bar> {
        self.bars.iter().find(|bar| bar.index.value == u32::from(index))
    }

    /// The region that contains all of `len` bytes at `offset` in BAR `bar`.
    #[must_use]
    pub fn region_at(&self, bar: u8, offset: u64, len: u64) -> Option<&Region> {
        let end = offset.checked_add(len)?;
        self.regions.iter().find(|region| {
            region.bar.value == u32::from(bar)
                && offset >= region.offset_bytes.value
                && end <= region.offset_bytes.value + region.size_bytes.value
        })
    }

    /// Returns a copy with one number replaced. `key` is a path such as `link.width_lanes` or `region.sram.read_ns`.
    /// The value is checked as in a file.
    ///
    /// # Errors
    /// [`PlatformError`] if there is no such number, the value is out of range or inconsistent with other keys, or
    /// the origin is empty.
    pub fn with(&self, key: &str, value: f64, origin: Origin) -> Result<Platform, PlatformError> {
        path::with(self, key, value, origin)
    }

    /// Returns a copy with one value of any kind replaced, given as text: a number, a size with its unit, a word,
    /// `true` or `false`. A missing section is created if all its keys have defaults.
    ///
    /// ```
    /// use lanemark_platform::{Origin, preset};
    /// let card = preset("card-gen5-x16").unwrap().unwrap();
    /// let origin = Origin::Assumed("a trial".to_owned());
    /// let paused = card.with_text("dma_read.segment_ns", "50", origin.clone())?.with_text("link.skp", "true", origin.clone())?;
    /// assert_eq!(paused.value_text("dma_read.segment_bytes").as_deref(), Some("2097152"));
    /// assert_eq!(paused.value_text("link.skp").as_deref(), Some("true"));
    /// assert!(card.with_text("link.skp", "1", origin).is_err());
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Platform::with`].
    pub fn with_text(&self, key: &str, text: &str, origin: Origin) -> Result<Platform, PlatformError> {
        path::with_text(self, key, text, origin)
    }

    /// The value at a path as in [`Platform::with`], as text; `None` if there is none.
    #[must_use]
    pub fn value_text(&self, key: &str) -> Option<String> {
        path::value_at(self, key).map(|(value, _)| value.to_string())
    }

    /// Returns a copy in which this port has another `Max_Payload_Size` in its Device Control register.
    ///
    /// ```
    /// use lanemark_platform::{Origin, preset};
    /// let rosta = preset("rosta-virtex7").unwrap().unwrap();
    /// let set = rosta.with_mps_bytes("fpga0", 256, Origin::Given("setpci".to_owned()))?;
    /// assert_eq!((set.mps_bytes_of("fpga0"), set.mps_bytes_of("fpga1")), (256, 128));
    /// assert!(rosta.with_mps_bytes("fpga0", 512, Origin::Given("setpci".to_owned())).is_err());
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    ///
    /// # Errors
    /// [`PlatformError`] if there is no such port or the size exceeds what it supports.
    pub fn with_mps_bytes(&self, port: &str, bytes: u32, origin: Origin) -> Result<Platform, PlatformError> {
        path::with_mps(self, port, bytes, origin)
    }

    /// Returns a copy with one more injected fault.
    ///
    /// # Errors
    /// [`PlatformError`] if its port does not exist or the fault cannot occur there.
    pub fn with_fault(&self, fault: Fault) -> Result<Platform, PlatformError> {
        path::with_fault(self, fault)
    }

    /// Returns a copy with ACS P2P Request Redirect of this port enabled or disabled.
    ///
    /// ```
    /// use lanemark_platform::{Origin, preset};
    /// let rosta = preset("rosta-virtex7").unwrap().unwrap();
    /// let set = rosta.with_acs_redirect("rc47a/fpga0", true, Origin::Given("setpci".to_owned()))?;
    /// assert!(set.redirects("rc47a/fpga0") && !set.redirects("rc47a/fpga1"));
    /// assert!(rosta.with_acs_redirect("fpga0", true, Origin::Given("setpci".to_owned())).is_err());
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    ///
    /// # Errors
    /// [`PlatformError`] if there is no such port or it is not a downstream port of a switch.
    pub fn with_acs_redirect(&self, port: &str, redirects: bool, origin: Origin) -> Result<Platform, PlatformError> {
        path::with_redirect(self, port, redirects, origin)
    }

    /// The number at a path as in [`Platform::with`], and its origin.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<(f64, Origin)> {
        path::number_at(self, key)
    }

    /// Number of values that are given, assumed (including defaults) and fitted.
    #[must_use]
    pub fn origins(&self) -> [u32; 3] {
        let [given, assumed, fitted, _] = draft::origins(self);
        [given, assumed, fitted]
    }
}
