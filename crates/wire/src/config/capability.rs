//! The capabilities known by name.

use super::capability_id::CapabilityId;
use super::space::ConfigSpace;
use super::table::{Layout, PCIE_BASE, Region};
use super::{aer, conventional, exchange, flit, identity, isolation, low_power, pcie, physical};
use super::{resizable_bar, traffic, translation, virtual_function};
use std::fmt;

impl fmt::Display for CapabilityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(row) = capability_row(*self) {
            return f.write_str(row.layout.name);
        }
        match self {
            CapabilityId::Standard(id) => write!(f, "capability {id:#04x}"),
            CapabilityId::Extended(id) => write!(f, "extended capability {id:#06x}"),
        }
    }
}

/// A capability known by name: a row of [`CAPABILITIES`].
#[derive(Clone, Copy, Debug)]
pub struct CapabilityRow {
    /// The ID.
    pub id: CapabilityId,
    /// Name and registers.
    pub layout: &'static Layout,
}

/// A capability of a function.
#[derive(Clone, Copy, Debug)]
pub struct Capability<'a> {
    id: CapabilityId,
    version: Option<u8>,
    region: Region<'a>,
}

/// Layout of a capability without a row: no registers.
const UNNAMED: Layout = Layout { name: "unnamed capability", blocks: &[], source: PCIE_BASE };

impl<'a> Capability<'a> {
    pub(super) fn new(space: ConfigSpace<'a>, offset: u16, id: CapabilityId, version: Option<u8>) -> Capability<'a> {
        let layout = capability_row(id).map_or(&UNNAMED, |row| row.layout);
        Capability { id, version, region: Region::new(space, offset, layout) }
    }

    /// The ID.
    #[must_use]
    pub const fn id(&self) -> CapabilityId {
        self.id
    }

    /// Version from the header of an extended capability; `None` for a standard one.
    #[must_use]
    pub const fn version(&self) -> Option<u8> {
        self.version
    }

    /// Offset in configuration space.
    #[must_use]
    pub const fn offset(&self) -> u16 {
        self.region.offset()
    }

    /// Whether a table describes it; if not, only [`Capability::bytes`] is available.
    #[must_use]
    pub fn is_known(&self) -> bool {
        capability_row(self.id).is_some()
    }

    /// The registers of the capability.
    #[must_use]
    pub const fn region(&self) -> Region<'a> {
        self.region
    }

    /// Visible bytes including the header, up to the next capability or the end of the standard or extended space. They
    /// may include bytes that do not belong to the capability.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        let space = self.region.space();
        let end = match self.id {
            CapabilityId::Standard(_) => 0x100,
            CapabilityId::Extended(_) => ConfigSpace::BYTES as u16,
        };
        let end = space.capabilities().map(|other| other.offset()).filter(|at| *at > self.offset()).fold(end, u16::min);
        let end = usize::from(end).min(space.bytes().len());
        space.bytes().get(usize::from(self.offset())..end).unwrap_or_default()
    }
}

/// The row of a capability, if it is known by name.
#[must_use]
pub fn capability_row(id: CapabilityId) -> Option<&'static CapabilityRow> {
    CAPABILITIES.iter().find(|row| row.id == id)
}

const fn standard(id: u8, layout: &'static Layout) -> CapabilityRow {
    CapabilityRow { id: CapabilityId::Standard(id), layout }
}

const fn extended(id: u16, layout: &'static Layout) -> CapabilityRow {
    CapabilityRow { id: CapabilityId::Extended(id), layout }
}

/// An extended capability known by name only.
const fn named(name: &'static str) -> Layout {
    Layout { name, blocks: &[], source: PCIE_BASE }
}

/// Every capability known by name. Source of the IDs: PCI Code and ID Assignment Specification 1.15, sections 2 and 3.
pub const CAPABILITIES: &[CapabilityRow] = &[
    standard(0x00, &conventional::NULL),
    standard(0x01, &conventional::POWER_MANAGEMENT),
    standard(0x02, &conventional::AGP),
    standard(0x03, &conventional::VITAL_PRODUCT_DATA),
    standard(0x04, &conventional::SLOT_ID),
    standard(0x05, &conventional::MSI),
    standard(0x06, &conventional::HOT_SWAP),
    standard(0x07, &conventional::PCI_X),
    standard(0x08, &conventional::HYPERTRANSPORT),
    standard(0x09, &conventional::VENDOR_SPECIFIC),
    standard(0x0a, &conventional::DEBUG_PORT),
    standard(0x0b, &conventional::RESOURCE_CONTROL),
    standard(0x0c, &conventional::HOT_PLUG),
    standard(0x0d, &conventional::BRIDGE_SUBSYSTEM),
    standard(0x0e, &conventional::AGP_3),
    standard(0x0f, &conventional::SECURE),
    standard(0x10, &pcie::PCI_EXPRESS),
    standard(0x11, &conventional::MSI_X),
    standard(0x12, &conventional::SATA),
    standard(0x13, &conventional::ADVANCED_FEATURES),
    standard(0x14, &conventional::ENHANCED_ALLOCATION),
    extended(0x0000, &named("Null")),
    extended(0x0001, &aer::ADVANCED_ERROR_REPORTING),
    extended(0x0002, &traffic::VIRTUAL_CHANNEL),
    extended(0x0003, &identity::SERIAL_NUMBER),
    extended(0x0004, &low_power::POWER_BUDGETING),
    extended(0x0005, &exchange::ROOT_COMPLEX_LINK),
    extended(0x0006, &named("Root Complex Internal Link")),
    extended(0x0007, &exchange::EVENT_COLLECTOR),
    extended(0x0008, &named("Multi-Function Virtual Channel")),
    extended(0x0009, &traffic::VIRTUAL_CHANNEL),
    extended(0x000a, &named("Root Complex Register Block")),
    extended(0x000b, &identity::VENDOR_EXTENDED),
    extended(0x000d, &isolation::ACCESS_CONTROL),
    extended(0x000e, &isolation::ALTERNATIVE_ROUTING_ID),
    extended(0x000f, &translation::ADDRESS_TRANSLATION),
    extended(0x0010, &virtual_function::SINGLE_ROOT),
    extended(0x0011, &named("Multi-Root I/O Virtualization")),
    extended(0x0012, &traffic::MULTICAST),
    extended(0x0013, &translation::PAGE_REQUEST),
    extended(0x0015, &resizable_bar::RESIZABLE_BAR),
    extended(0x0016, &named("Dynamic Power Allocation")),
    extended(0x0017, &traffic::PROCESSING_HINTS),
    extended(0x0018, &low_power::LATENCY_TOLERANCE),
    extended(0x0019, &physical::SECONDARY),
    extended(0x001a, &named("Protocol Multiplexing")),
    extended(0x001b, &translation::PROCESS_ADDRESS_SPACE),
    extended(0x001c, &named("LN Requester")),
    extended(0x001d, &aer::DOWNSTREAM_PORT_CONTAINMENT),
    extended(0x001e, &low_power::L1_SUBSTATES),
    extended(0x001f, &traffic::PRECISION_TIME),
    extended(0x0020, &named("PCI Express over M_PHY")),
    extended(0x0021, &named("FRS Queueing")),
    extended(0x0022, &named("Readiness Time Reporting")),
    extended(0x0023, &identity::DESIGNATED_VENDOR),
    extended(0x0024, &resizable_bar::VIRTUAL_RESIZABLE_BAR),
    extended(0x0025, &physical::DATA_LINK_FEATURE),
    extended(0x0026, &physical::PHYSICAL_16),
    extended(0x0027, &physical::LANE_MARGINING),
    extended(0x0028, &named("Hierarchy ID")),
    extended(0x0029, &named("Native PCIe Enclosure Management")),
    extended(0x002a, &physical::PHYSICAL_32),
    extended(0x002b, &named("Alternate Protocol")),
    extended(0x002c, &named("System Firmware Intermediary")),
    extended(0x002d, &named("Shadow Functions")),
    extended(0x002e, &exchange::DATA_OBJECT_EXCHANGE),
    extended(0x002f, &flit::DEVICE_3),
    extended(0x0030, &exchange::ENCRYPTION),
    extended(0x0031, &physical::PHYSICAL_64),
    extended(0x0032, &flit::FLIT_LOGGING),
    extended(0x0033, &named("Flit Performance Measurement")),
    extended(0x0034, &named("Flit Error Injection")),
    extended(0x0035, &named("Streamlined Virtual Channel")),
    extended(0x0036, &named("MMIO Register Block Locator")),
];
