//! The configuration space of one function.

use super::capability::{Capability, CapabilityId, capability_row};
use super::chain::{Chain, ChainFault};
use super::header::HEADER;
use super::pcie::Pcie;
use super::region::{FieldValue, Region};
use super::unknown::Unknown;

/// The configuration space of one function, as far as it could be read.
///
/// Linux exposes 64 bytes without root; with root 256, or 4096 of a PCIe function. Any other length is accepted. Bytes
/// beyond 4096 are ignored.
///
/// ```
/// use lanemark_wire::config::ConfigSpace;
/// assert!(ConfigSpace::new(&[0xff; 64]).is_absent());
/// assert!(ConfigSpace::new(&[]).vendor_id().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfigSpace<'a> {
    bytes: &'a [u8],
}

impl<'a> ConfigSpace<'a> {
    /// Size of the configuration space of a PCIe function, in bytes.
    pub const BYTES: usize = 4096;

    /// A view over `bytes`, starting at offset 0.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> ConfigSpace<'a> {
        ConfigSpace { bytes: &bytes[..bytes.len().min(Self::BYTES)] }
    }

    /// The visible bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads `bytes` (1 to 8) little-endian bytes at `offset`; `None` if they are not all visible.
    ///
    /// ```
    /// use lanemark_wire::config::ConfigSpace;
    /// let space = ConfigSpace::new(&[0x86, 0x80, 0x34]);
    /// assert_eq!(space.read(0, 2), Some(0x8086));
    /// assert_eq!(space.read(2, 2), None);
    /// ```
    #[must_use]
    pub fn read(&self, offset: u16, bytes: u8) -> Option<u64> {
        let at = usize::from(offset);
        let part = self.bytes.get(at..at + usize::from(bytes)).filter(|part| part.len() <= 8)?;
        Some(part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Whether every visible byte is 0xff, as read from a missing or dead function.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        !self.bytes.is_empty() && self.bytes.iter().all(|byte| *byte == 0xff)
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> Region<'a> {
        Region::new(*self, 0, &HEADER)
    }

    /// Iterates over the capabilities of both lists and the faults of the lists. Terminates on every input: a loop in a
    /// list is a [`ChainFault`].
    #[must_use]
    pub fn walk(&self) -> Chain<'a> {
        Chain::new(*self, true)
    }

    /// As [`ConfigSpace::walk`], without checks of capability bodies.
    fn links(self) -> Chain<'a> {
        Chain::new(self, false)
    }

    /// The reachable capabilities: standard list, then extended list.
    pub fn capabilities(&self) -> impl Iterator<Item = Capability<'a>> + use<'a> {
        self.links().filter_map(Result::ok)
    }

    /// The faults of both lists.
    pub fn chain_faults(&self) -> impl Iterator<Item = ChainFault> + use<'a> {
        self.walk().filter_map(Result::err)
    }

    /// The first capability with this ID.
    ///
    /// # Errors
    /// The capability is absent, or the list could not be read to its end.
    pub fn capability(&self, id: CapabilityId) -> Result<Capability<'a>, Unknown> {
        let mut cut = false;
        for met in self.links() {
            match met {
                Ok(capability) if capability.id() == id => return Ok(capability),
                Ok(_) => {}
                Err(fault) => cut |= fault.ends_list(),
            }
        }
        let structure = capability_row(id).map_or("unnamed capability", |row| row.layout.name);
        // An extended list that was not read at all is cut as well.
        let unseen = matches!(id, CapabilityId::Extended(_)) && self.bytes.len() <= 0x100 && self.may_be_express();
        if cut || unseen || self.bytes.len() < 64 {
            return Err(Unknown::ListCut { structure, visible: self.bytes.len() });
        }
        Err(Unknown::NoCapability { structure })
    }

    /// Whether an extended list may exist: the PCI Express capability is present, or the standard list is cut.
    fn may_be_express(&self) -> bool {
        self.links().any(|met| match met {
            Ok(capability) => capability.id() == CapabilityId::PCI_EXPRESS,
            Err(fault) => fault.ends_list(),
        })
    }

    /// The PCI Express capability.
    ///
    /// # Errors
    /// It is absent or not visible.
    pub fn pcie(&self) -> Result<Pcie<'a>, Unknown> {
        self.capability(CapabilityId::PCI_EXPRESS).map(|capability| Pcie::new(capability.region()))
    }

    /// Every visible field of the header and of all capabilities, in order.
    pub fn fields(&self) -> impl Iterator<Item = FieldValue> + use<'a> {
        self.header().fields().chain(self.capabilities().flat_map(|capability| capability.region().fields()))
    }
}
