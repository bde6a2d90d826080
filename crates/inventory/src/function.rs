//! Facts about one function of a device.

use crate::{Acs, Address, Aer, Class, CpuSet, Express, Interrupt, Region, Seen, Why};
use lanemark_wire::config::{BusNumbers, ResizableBar};

/// One function of a device, with the facts that the source provides.
///
/// A fact that configuration space, a listing and sysfs can all provide is stored once. Configuration space takes
/// precedence; the other sources fill the gaps.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// PCI address.
    pub address: Address,
    /// Vendor ID.
    pub vendor: Seen<u16>,
    /// Device ID.
    pub device: Seen<u16>,
    /// Subsystem Vendor ID and Subsystem ID; `Known(None)` for a bridge without the capability.
    pub subsystem: Seen<Option<(u16, u16)>>,
    /// Revision ID.
    pub revision: Seen<u8>,
    /// Class code: base class, subclass and programming interface.
    pub class: Seen<Class>,
    /// Vendor and device name, from the listing or the system's `pci.ids`. For display only.
    pub name: Seen<String>,
    /// Configuration space as far as it was read: 64, 256 or 4096 B, or less in a truncated dump.
    pub config: Seen<Vec<u8>>,
    /// Command register; bit 1 is Memory Space Enable, bit 2 Bus Master Enable.
    pub command: Seen<u16>,
    /// Bus numbers of a bridge.
    pub buses: Seen<Option<BusNumbers>>,
    /// Implemented BARs, expansion ROM and bridge windows.
    pub regions: Seen<Vec<Region>>,
    /// Resizable BARs; `Known` and empty without the capability.
    pub resizable_bars: Seen<Vec<ResizableBar>>,
    /// PCI Express capability; `Known(None)` for conventional PCI.
    pub express: Seen<Option<Express>>,
    /// Access Control Services.
    pub acs: Seen<Option<Acs>>,
    /// Advanced Error Reporting.
    pub aer: Seen<Option<Aer>>,
    /// Whether Downstream Port Containment has triggered, which disables the link below; `Known(None)` without the
    /// capability.
    pub containment: Seen<Option<bool>>,
    /// Single Root I/O Virtualization.
    pub sriov: Seen<Option<Sriov>>,
    /// Name of the bound driver.
    pub driver: Seen<Option<String>>,
    /// NUMA node; `Known(None)` if the firmware does not report one.
    pub numa_node: Seen<Option<u32>>,
    /// CPUs local to the function.
    pub local_cpus: Seen<CpuSet>,
    /// IOMMU group.
    pub iommu_group: Seen<Option<u32>>,
    /// Domain type of the IOMMU group, by the kernel: `identity`, `DMA`, `DMA-FQ`, ...
    pub iommu_domain: Seen<Option<String>>,
    /// Power state, by the kernel: `D0`, `D3hot`, `D3cold`, ...
    pub power_state: Seen<String>,
    /// Whether the kernel may put the function into D3cold.
    pub d3cold_allowed: Seen<bool>,
    /// Enable count (`enable` in sysfs).
    pub enable_count: Seen<u32>,
    /// Interrupts; empty if it has none.
    pub interrupts: Seen<Vec<Interrupt>>,
    /// Bridge above the function; `Known(None)` on a root bus.
    pub parent: Seen<Option<Address>>,
}

impl Function {
    /// A function with every fact unseen, for `why`.
    #[must_use]
    pub fn unseen(address: Address, why: &Why) -> Function {
        Function {
            address,
            vendor: Seen::Unseen(why.clone()),
            device: Seen::Unseen(why.clone()),
            subsystem: Seen::Unseen(why.clone()),
            revision: Seen::Unseen(why.clone()),
            class: Seen::Unseen(why.clone()),
            name: Seen::Unseen(why.clone()),
            config: Seen::Unseen(why.clone()),
            command: Seen::Unseen(why.clone()),
            buses: Seen::Unseen(why.clone()),
            regions: Seen::Unseen(why.clone()),
            resizable_bars: Seen::Unseen(why.clone()),
            express: Seen::Unseen(why.clone()),
            acs: Seen::Unseen(why.clone()),
            aer: Seen::Unseen(why.clone()),
            containment: Seen::Unseen(why.clone()),
            sriov: Seen::Unseen(why.clone()),
            driver: Seen::Unseen(why.clone()),
            numa_node: Seen::Unseen(why.clone()),
            local_cpus: Seen::Unseen(why.clone()),
            iommu_group: Seen::Unseen(why.clone()),
            iommu_domain: Seen::Unseen(why.clone()),
            power_state: Seen::Unseen(why.clone()),
            d3cold_allowed: Seen::Unseen(why.clone()),
            enable_count: Seen::Unseen(why.clone()),
            interrupts: Seen::Unseen(why.clone()),
            parent: Seen::Unseen(why.clone()),
        }
    }

    /// The PCI Express capability, if it is known to exist.
    #[must_use]
    pub const fn pcie(&self) -> Option<&Express> {
        self.express.present()
    }

    /// The link of this port, if it is known to exist.
    #[must_use]
    pub fn link(&self) -> Option<&crate::Link> {
        self.pcie()?.link.present()
    }

    /// BAR `number`, if it is known to be implemented.
    #[must_use]
    pub fn bar(&self, number: u8) -> Option<&Region> {
        self.regions.known()?.iter().find(|region| region.bar() == Some(number))
    }

    /// Whether it is known to be a virtual function: Vendor ID and Device ID read as all ones.
    ///
    /// Source: PCI Express Base Specification 6.0, section 9.3.4.1.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.config.known().is_some_and(|bytes| bytes.starts_with(&[0xff; 4]) && bytes.iter().any(|byte| *byte != 0xff))
    }

    /// Whether it is known to be a bridge.
    #[must_use]
    pub const fn is_bridge(&self) -> bool {
        self.buses.present().is_some()
    }
}

/// Single Root I/O Virtualization.
#[derive(Clone, PartialEq, Debug)]
pub struct Sriov {
    /// `TotalVFs`: number of supported virtual functions.
    pub total: Seen<u16>,
    /// Number of enabled virtual functions.
    pub enabled: Seen<u16>,
}
