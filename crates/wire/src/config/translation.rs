//! Address Translation Services, Page Request Interface and Process Address Space IDs.

use super::table::{Layout, Spot, always, flag, hex, layout, register};
use super::{CapabilityId, ConfigSpace, Unknown};

/// Address translation service.
pub const ADDRESS_TRANSLATION: Layout = layout(
    "Address Translation Service (ATS)",
    &[always(&[
        register(
            "ATSCap",
            4,
            2,
            "10.5.1.2",
            &[
                hex("Invalidate Queue Depth", 4, 0),
                flag("PageAligned", 5),
                flag("GlobalInvalidate", 6),
                flag("RelaxedOrdering", 7),
            ],
        ),
        register("ATSCtl", 6, 2, "10.5.1.3", &[hex("Smallest Translation Unit", 4, 0), flag("Enable", 15)]),
    ])],
);

/// Page request interface.
pub const PAGE_REQUEST: Layout = layout(
    "Page Request Interface (PRI)",
    &[always(&[
        register("PRICtl", 4, 2, "10.5.2.2", &[flag("Enable", 0), flag("Reset", 1)]),
        register("PRISta", 6, 2, "10.5.2.3", &[flag("RF", 0), flag("UPRGI", 1), flag("Stopped", 8), flag("PASID", 15)]),
        register("Page Request Capacity", 8, 4, "10.5.2.4", &[hex("Page Request Capacity", 31, 0)]),
        register("Page Request Allocation", 12, 4, "10.5.2.5", &[hex("Page Request Allocation", 31, 0)]),
    ])],
);

/// Process Address Space IDs.
pub const PROCESS_ADDRESS_SPACE: Layout = layout(
    "Process Address Space ID (PASID)",
    &[always(&[
        register("PASIDCap", 4, 2, "7.8.9.2", &[flag("Exec", 1), flag("Priv", 2), hex("Max PASID Width", 12, 8)]),
        register("PASIDCtl", 6, 2, "7.8.9.3", &[flag("Enable", 0), flag("Exec", 1), flag("Priv", 2)]),
    ])],
);

#[allow(clippy::missing_errors_doc)]
impl ConfigSpace<'_> {
    /// ATS enable: the device requests translations from the IOMMU and caches them.
    pub fn address_translation(&self) -> Result<bool, Unknown> {
        let region = self.capability(CapabilityId::ADDRESS_TRANSLATION)?.region();
        region.flag(const { Spot::of(&ADDRESS_TRANSLATION, "ATSCtl", "Enable") })
    }

    /// PRI enable: the device may request pages that are not resident.
    pub fn page_requests(&self) -> Result<bool, Unknown> {
        let region = self.capability(CapabilityId::PAGE_REQUEST)?.region();
        region.flag(const { Spot::of(&PAGE_REQUEST, "PRICtl", "Enable") })
    }

    /// PASID enable: requests carry a process address space ID.
    pub fn process_address_spaces(&self) -> Result<bool, Unknown> {
        let region = self.capability(CapabilityId::PROCESS_ADDRESS_SPACE)?.region();
        region.flag(const { Spot::of(&PROCESS_ADDRESS_SPACE, "PASIDCtl", "Enable") })
    }
}
