//! Header and capabilities of a function: found in its configuration space, described by their tables.

use super::capability::{Capability, capability_row};
use super::capability_id::CapabilityId;
use super::chain::{Chain, ChainFault};
use super::header::HEADER;
use super::pcie::Pcie;
use super::region::FieldValue;
use super::space::ConfigSpace;
use super::table::Region;
use super::unknown::Unknown;

impl<'a> ConfigSpace<'a> {
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
        let unseen = matches!(id, CapabilityId::Extended(_)) && self.bytes().len() <= 0x100 && self.may_be_express();
        if cut || unseen || self.bytes().len() < 64 {
            return Err(Unknown::ListCut { structure, visible: self.bytes().len() });
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
