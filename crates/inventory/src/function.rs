//! One function of a device, as data.

use crate::{Acs, Address, Aer, Class, CpuSet, Express, Region, Seen, Why};
use lanemark_wire::config::{BusNumbers, ResizableBar};

/// One function of a device: what the source says about it.
///
/// Facts that config space, a listing and sysfs all may tell stand here once, whoever told them; where
/// config space was seen, its bytes decide and the others fill what bytes do not say.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Where it sits.
    pub address: Address,
    /// Vendor ID.
    pub vendor: Seen<u16>,
    /// Device ID.
    pub device: Seen<u16>,
    /// Subsystem vendor ID and subsystem ID; `Known(None)` for a bridge without such a capability.
    pub subsystem: Seen<Option<(u16, u16)>>,
    /// Revision ID.
    pub revision: Seen<u8>,
    /// Class, subclass and programming interface.
    pub class: Seen<Class>,
    /// Vendor and device in words, from the listing or the system's `pci.ids`. Nothing depends on it.
    pub name: Seen<String>,
    /// Config space as far as it was seen: 64, 256 or 4096 B, or what a cut dump has.
    pub config: Seen<Vec<u8>>,
    /// The command register; bit 1 decodes memory, bit 2 is bus master.
    pub command: Seen<u16>,
    /// Bus numbers, of a bridge.
    pub buses: Seen<Option<BusNumbers>>,
    /// BARs, ROM, windows; only those that are there.
    pub regions: Seen<Vec<Region>>,
    /// Resizable BARs; `Known` and empty where there are none.
    pub resizable_bars: Seen<Vec<ResizableBar>>,
    /// The PCI Express capability; `Known(None)` for conventional PCI.
    pub express: Seen<Option<Express>>,
    /// Access control services.
    pub acs: Seen<Option<Acs>>,
    /// Advanced error reporting.
    pub aer: Seen<Option<Aer>>,
    /// Virtual functions.
    pub sriov: Seen<Option<Sriov>>,
    /// The driver that is bound.
    pub driver: Seen<Option<String>>,
    /// The NUMA node it hangs on; `Known(None)` where the firmware names none.
    pub numa_node: Seen<Option<u32>>,
    /// The processors near it.
    pub local_cpus: Seen<CpuSet>,
    /// The IOMMU group.
    pub iommu_group: Seen<Option<u32>>,
    /// How the group's addresses are translated, as the kernel says it: `identity`, `DMA`, `DMA-FQ`, ...
    pub iommu_domain: Seen<Option<String>>,
    /// The power state as the kernel says it: `D0`, `D3hot`, `D3cold`, ...
    pub power_state: Seen<String>,
    /// Whether the kernel may switch it off wholly.
    pub d3cold_allowed: Seen<bool>,
    /// How many have enabled it (`enable` of sysfs).
    pub enable_count: Seen<u32>,
    /// The bridge above it; `Known(None)` on a root bus.
    pub parent: Seen<Option<Address>>,
}

impl Function {
    /// A function of which nothing is seen yet, for `why`.
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
            sriov: Seen::Unseen(why.clone()),
            driver: Seen::Unseen(why.clone()),
            numa_node: Seen::Unseen(why.clone()),
            local_cpus: Seen::Unseen(why.clone()),
            iommu_group: Seen::Unseen(why.clone()),
            iommu_domain: Seen::Unseen(why.clone()),
            power_state: Seen::Unseen(why.clone()),
            d3cold_allowed: Seen::Unseen(why.clone()),
            enable_count: Seen::Unseen(why.clone()),
            parent: Seen::Unseen(why.clone()),
        }
    }

    /// Its PCI Express capability, if it is known to have one.
    #[must_use]
    pub const fn pcie(&self) -> Option<&Express> {
        self.express.present()
    }

    /// The link at this port, if it is known to have one.
    #[must_use]
    pub fn link(&self) -> Option<&crate::Link> {
        self.pcie()?.link.present()
    }

    /// BAR `number`, if it is known to be there.
    #[must_use]
    pub fn bar(&self, number: u8) -> Option<&Region> {
        self.regions.known()?.iter().find(|region| region.bar() == Some(number))
    }

    /// Whether it is known to be a virtual function: its Vendor ID and Device ID read as all ones.
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

/// Single root I/O virtualisation.
#[derive(Clone, PartialEq, Debug)]
pub struct Sriov {
    /// How many virtual functions there could be.
    pub total: Seen<u16>,
    /// How many are on.
    pub enabled: Seen<u16>,
}
