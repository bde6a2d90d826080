//! Which capability is this?

use super::region::Region;
use super::table::{Layout, PCIE_BASE};
use super::{ConfigSpace, conventional, pcie};
use std::fmt;

/// The id of a capability, and in which list it stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CapabilityId {
    /// In the standard list.
    Standard(u8),
    /// In the extended list.
    Extended(u16),
}

impl CapabilityId {
    /// Power management.
    pub const POWER_MANAGEMENT: CapabilityId = CapabilityId::Standard(0x01);
    /// MSI.
    pub const MSI: CapabilityId = CapabilityId::Standard(0x05);
    /// Subsystem ids of a bridge.
    pub const BRIDGE_SUBSYSTEM: CapabilityId = CapabilityId::Standard(0x0d);
    /// PCI Express.
    pub const PCI_EXPRESS: CapabilityId = CapabilityId::Standard(0x10);
    /// MSI-X.
    pub const MSI_X: CapabilityId = CapabilityId::Standard(0x11);
}

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

/// One capability that is known by name; a row of [`CAPABILITIES`].
#[derive(Clone, Copy, Debug)]
pub struct CapabilityRow {
    /// Its id.
    pub id: CapabilityId,
    /// Its name and registers.
    pub layout: &'static Layout,
}

/// One capability of a function.
#[derive(Clone, Copy, Debug)]
pub struct Capability<'a> {
    id: CapabilityId,
    version: Option<u8>,
    region: Region<'a>,
}

/// What a capability that no row describes is read by: nothing but its bytes.
const UNNAMED: Layout = Layout { name: "unnamed capability", blocks: &[], source: PCIE_BASE };

impl<'a> Capability<'a> {
    pub(super) fn new(space: ConfigSpace<'a>, offset: u16, id: CapabilityId, version: Option<u8>) -> Capability<'a> {
        let layout = capability_row(id).map_or(&UNNAMED, |row| row.layout);
        Capability { id, version, region: Region::new(space, offset, layout) }
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> CapabilityId {
        self.id
    }

    /// The version in the header of an extended capability; a standard one has none there.
    #[must_use]
    pub const fn version(&self) -> Option<u8> {
        self.version
    }

    /// Where it begins.
    #[must_use]
    pub const fn offset(&self) -> u16 {
        self.region.offset()
    }

    /// Whether a table describes it; if not, [`Capability::bytes`] is all there is to say.
    #[must_use]
    pub fn is_known(&self) -> bool {
        capability_row(self.id).is_some()
    }

    /// Its registers.
    #[must_use]
    pub const fn region(&self) -> Region<'a> {
        self.region
    }

    /// Its visible bytes with its header, up to the next capability or the end of its kind of space. Only the
    /// capability itself knows whether all of them are its own.
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

/// Every capability known by name.
pub const CAPABILITIES: &[CapabilityRow] =
    &[standard(0x0d, &conventional::BRIDGE_SUBSYSTEM), standard(0x10, &pcie::PCI_EXPRESS)];
