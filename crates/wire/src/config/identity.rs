//! Serial number and vendor-specific capabilities.

use super::table::{Layout, Region, Spot, always, flag, hex, layout, number, one_of, only, register};
use super::{CapabilityId, ConfigSpace, Unknown};

/// Device serial number, 64 bits.
pub const SERIAL_NUMBER: Layout = layout(
    "Device Serial Number",
    &[always(&[register("Serial Number", 4, 8, "7.9.3.2", &[hex("Serial Number", 63, 0)])])],
);

/// Vendor-Specific Extended Capability (VSEC).
pub const VENDOR_EXTENDED: Layout = layout(
    "Vendor Specific Information",
    &[always(&[register("VSEC", 4, 4, "7.9.5.2", &[hex("ID", 15, 0), number("Rev", 19, 16), hex("Len", 31, 20)])])],
);

/// Vendor ID of the CXL Consortium.
pub const CXL_VENDOR: u16 = 0x1e98;

/// DVSECs of CXL by id: Compute Express Link Specification 3.1, table 8-2.
const CXL_IDS: &[(u64, &str)] = &[
    (0, "PCIe DVSEC for CXL Devices"),
    (2, "Non-CXL Function Map DVSEC"),
    (3, "CXL Extensions DVSEC for Ports"),
    (4, "GPF DVSEC for CXL Ports"),
    (5, "GPF DVSEC for CXL Devices"),
    (7, "PCIe DVSEC for Flex Bus Port"),
    (8, "Register Locator DVSEC"),
    (9, "MLD DVSEC"),
    (10, "PCIe DVSEC for Test Capability"),
];

fn is_cxl(region: &Region<'_>) -> bool {
    region.read(4, 2) == Some(CXL_VENDOR.into())
}

/// Whether it is the CXL DVSEC `id` with at least revision `least`.
fn cxl(region: &Region<'_>, id: u64, least: u64) -> bool {
    let revision = region.read(6, 1).map(|byte| byte & 0xf);
    is_cxl(region) && region.read(8, 2) == Some(id) && revision.is_some_and(|revision| revision >= least)
}

fn cxl_device(region: &Region<'_>) -> bool {
    cxl(region, 0, 1)
}

fn cxl_device_3(region: &Region<'_>) -> bool {
    cxl(region, 0, 2)
}

/// Designated Vendor-Specific Extended Capability (DVSEC), defined by a vendor other than the device's, such as CXL.
pub const DESIGNATED_VENDOR: Layout = layout(
    "Designated Vendor-Specific",
    &[
        always(&[
            register("DVSEC1", 4, 4, "7.9.6.2", &[hex("Vendor", 15, 0), number("Rev", 19, 16), number("Len", 31, 20)]),
            register("DVSEC2", 8, 2, "7.9.6.3", &[hex("ID", 15, 0)]),
        ]),
        only("of CXL", is_cxl, &[register("CXL", 8, 2, "CXL 3.1, table 8-2", &[one_of("CXL", 15, 0, CXL_IDS)])]),
        only(
            "of CXL devices, from revision 1 on",
            cxl_device,
            &[
                register(
                    "CXLCap",
                    0x0a,
                    2,
                    "CXL 3.1, 8.1.3.1",
                    &[
                        flag("Cache", 0),
                        flag("IO", 1),
                        flag("Mem", 2),
                        flag("MemHWInit", 3),
                        number("HDMCount", 5, 4),
                        flag("Viral", 14),
                    ],
                ),
                register(
                    "CXLCtl",
                    0x0c,
                    2,
                    "CXL 3.1, 8.1.3.2",
                    &[
                        flag("Cache", 0),
                        flag("IO", 1),
                        flag("Mem", 2),
                        number("CacheSFCov", 7, 3),
                        number("CacheSFGran", 10, 8),
                        flag("CacheClean", 11),
                        flag("Viral", 14),
                    ],
                ),
                register("CXLSta", 0x0e, 2, "CXL 3.1, 8.1.3.3", &[flag("Viral", 14)]),
                register(
                    "CXLCtl2",
                    0x10,
                    2,
                    "CXL 3.1, 8.1.3.4",
                    &[
                        flag("DisableCaching", 0),
                        flag("InitCacheWB&Inval", 1),
                        flag("InitRst", 2),
                        flag("RstMemClrEn", 3),
                    ],
                ),
                register(
                    "CXLSta2",
                    0x12,
                    2,
                    "CXL 3.1, 8.1.3.5",
                    &[flag("ResetComplete", 1), flag("ResetError", 2), flag("PMComplete", 15)],
                ),
            ],
        ),
        only(
            "of CXL devices, from revision 2 on",
            cxl_device_3,
            &[
                register(
                    "CXLCtl2 more",
                    0x10,
                    2,
                    "CXL 3.1, 8.1.3.4",
                    &[flag("DesiredVolatileHDMStateAfterHotReset", 4)],
                ),
                register(
                    "CXLCap3",
                    0x38,
                    2,
                    "CXL 3.1, 8.1.3.14",
                    &[
                        flag("ColdReset", 0),
                        flag("WarmReset", 1),
                        flag("HotReset", 2),
                        flag("HotResetConfigurability", 3),
                    ],
                ),
            ],
        ),
    ],
);

impl ConfigSpace<'_> {
    /// Device serial number, an EUI-64.
    ///
    /// # Errors
    /// It is absent or not visible.
    pub fn serial_number(&self) -> Result<u64, Unknown> {
        let region = self.capability(CapabilityId::SERIAL_NUMBER)?.region();
        region.bits(const { Spot::of(&SERIAL_NUMBER, "Serial Number", "Serial Number") })
    }

    /// IDs of the CXL DVSECs; empty if the function is not a CXL device or port.
    pub fn cxl_ids(&self) -> impl Iterator<Item = u16> {
        let id = const { Spot::of(&DESIGNATED_VENDOR, "CXL", "CXL") };
        self.capabilities()
            .filter(|capability| capability.id() == CapabilityId::DESIGNATED_VENDOR)
            .filter_map(move |capability| capability.region().bits(id).ok().map(|id| id as u16))
    }
}
