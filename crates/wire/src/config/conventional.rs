//! Standard capabilities other than PCI Express: power management, MSI, MSI-X and small ones.

use super::table::{Block, Region, any_of, only, power, register};
use super::table::{Layout, Reading, Spot, always, computed, flag, hex, layout, linear, number, one_of};
use super::{CapabilityId, ConfigSpace, Unknown};

/// A layout defined by a document other than the PCI Express Base Specification.
const fn by(source: &'static str, name: &'static str, blocks: &'static [Block]) -> Layout {
    Layout { name, blocks, source }
}

const PME: &[(u64, &str)] = &[(1, "D0"), (2, "D1"), (4, "D2"), (8, "D3hot"), (16, "D3cold")];

/// Power management.
pub const POWER_MANAGEMENT: Layout = layout(
    "Power Management",
    &[always(&[
        register(
            "PMC",
            2,
            2,
            "7.5.2.1",
            &[
                number("version", 2, 0),
                flag("PMEClk", 3),
                flag("ImmReadyD0", 4),
                flag("DSI", 5),
                one_of(
                    "AuxCurrent",
                    8,
                    6,
                    &[
                        (0, "0mA"),
                        (1, "55mA"),
                        (2, "100mA"),
                        (3, "160mA"),
                        (4, "220mA"),
                        (5, "270mA"),
                        (6, "320mA"),
                        (7, "375mA"),
                    ],
                ),
                flag("D1", 9),
                flag("D2", 10),
                any_of("PME", 15, 11, PME),
            ],
        ),
        register(
            "PMCSR",
            4,
            2,
            "7.5.2.2",
            &[
                one_of("PowerState", 1, 0, &[(0, "D0"), (1, "D1"), (2, "D2"), (3, "D3")]),
                flag("NoSoftRst", 3),
                flag("PME-Enable", 8),
                number("DSel", 12, 9),
                number("DScale", 14, 13),
                flag("PME", 15),
            ],
        ),
        // Bits of PCI-PM 1.2, which PCI Express reserves.
        register("PMCSR_BSE", 6, 1, "7.5.2.2", &[flag("B3", 6), flag("BPCC_En", 7)]),
        register("PM Data", 7, 1, "7.5.2.3", &[number("PM Data", 7, 0)]),
    ])],
);

/// Vital Product Data. Software reads the data through these two registers, one DW at a time.
pub const VITAL_PRODUCT_DATA: Layout = layout(
    "Vital Product Data",
    &[always(&[
        register("VPD Address", 2, 2, "7.9.18.1", &[hex("Address", 14, 0), flag("F", 15)]),
        register("VPD Data", 4, 4, "7.9.18.2", &[hex("Data", 31, 0)]),
    ])],
);

/// Slot identification.
pub const SLOT_ID: Layout = by(
    "PCI-to-PCI Bridge Architecture Specification 1.2",
    "Slot ID",
    &[always(&[
        register("Expansion Slot", 2, 1, "13.2.1", &[number("slots", 4, 0), flag("First", 5)]),
        register("Chassis Number", 3, 1, "13.2.2", &[hex("chassis", 7, 0)]),
    ])],
);

fn wide(region: &Region<'_>) -> bool {
    region.read(2, 2).is_some_and(|control| control & 0x80 != 0)
}

fn narrow(region: &Region<'_>) -> bool {
    region.read(2, 2).is_some_and(|control| control & 0x80 == 0)
}

fn wide_masked(region: &Region<'_>) -> bool {
    region.read(2, 2).is_some_and(|control| control & 0x180 == 0x180)
}

fn narrow_masked(region: &Region<'_>) -> bool {
    region.read(2, 2).is_some_and(|control| control & 0x180 == 0x100)
}

/// MSI: register offsets depend on 64-bit addresses and per-vector masking.
pub const MSI: Layout = layout(
    "MSI",
    &[
        always(&[register(
            "Message Control",
            2,
            2,
            "7.7.1.2",
            &[
                flag("Enable", 0),
                power("Capable", 3, 1, 1, "vectors", 5),
                power("Count", 6, 4, 1, "vectors", 5),
                flag("64bit", 7),
                flag("Maskable", 8),
                flag("ExtDataCap", 9),
                flag("ExtDataEn", 10),
            ],
        )]),
        only(
            "with 32-bit addresses",
            narrow,
            &[
                register("Address", 4, 4, "7.7.1.3", &[hex("Address", 31, 0)]),
                register("Data", 8, 2, "7.7.1.5", &[hex("Data", 15, 0)]),
            ],
        ),
        only(
            "with 64-bit addresses",
            wide,
            &[
                register("Address", 4, 8, "7.7.1.4", &[hex("Address", 63, 0)]),
                register("Data", 12, 2, "7.7.1.5", &[hex("Data", 15, 0)]),
            ],
        ),
        only(
            "with masks, 32-bit addresses",
            narrow_masked,
            &[
                register("Masking", 12, 4, "7.7.1.7", &[hex("Masking", 31, 0)]),
                register("Pending", 16, 4, "7.7.1.8", &[hex("Pending", 31, 0)]),
            ],
        ),
        only(
            "with masks, 64-bit addresses",
            wide_masked,
            &[
                register("Masking", 16, 4, "7.7.1.7", &[hex("Masking", 31, 0)]),
                register("Pending", 20, 4, "7.7.1.8", &[hex("Pending", 31, 0)]),
            ],
        ),
    ],
);

/// BAR Indicator Register values.
const BIR: &[(u64, &str)] = &[(0, "0"), (1, "1"), (2, "2"), (3, "3"), (4, "4"), (5, "5")];

/// MSI-X: tables in BARs.
pub const MSI_X: Layout = layout(
    "MSI-X",
    &[always(&[
        register(
            "Message Control",
            2,
            2,
            "7.7.2.2",
            &[linear("Count", 10, 0, 1, 1, "vectors"), flag("Masked", 14), flag("Enable", 15)],
        ),
        register("Vector table", 4, 4, "7.7.2.3", &[one_of("BAR", 2, 0, BIR), linear("offset", 31, 3, 0, 8, "bytes")]),
        register("PBA", 8, 4, "7.7.2.4", &[one_of("BAR", 2, 0, BIR), linear("offset", 31, 3, 0, 8, "bytes")]),
    ])],
);

/// Vendor-specific capability: its length only.
pub const VENDOR_SPECIFIC: Layout =
    layout("Vendor Specific Information", &[always(&[register("Length", 2, 1, "7.9.4", &[number("Len", 7, 0)])])]);

/// Debug port of an EHCI controller.
pub const DEBUG_PORT: Layout = by(
    "EHCI Specification for USB 1.0, appendix C",
    "Debug port",
    &[always(&[register("Debug port", 2, 2, "C.2", &[number("BAR", 15, 13), hex("offset", 12, 0)])])],
);

fn sata_bar(raw: u64) -> Reading {
    match raw {
        4..=9 => Reading::Number(raw - 4),
        15 => Reading::Name("InCfgSpace"),
        raw => Reading::Reserved(raw),
    }
}

/// SATA index and data registers.
pub const SATA: Layout = by(
    "Serial ATA AHCI 1.3.1",
    "SATA HBA",
    &[always(&[
        register("SATACR0", 2, 2, "2.4.1", &[number("minor", 3, 0), number("major", 7, 4)]),
        register("SATACR1", 4, 4, "2.4.2", &[computed("BAR", 3, 0, sata_bar), linear("Offset", 23, 4, 0, 4, "bytes")]),
    ])],
);

/// Advanced features of conventional PCI: function level reset.
pub const ADVANCED_FEATURES: Layout = layout(
    "PCI Advanced Features",
    &[always(&[
        register("AFCap", 3, 1, "7.9.21", &[flag("TP", 0), flag("FLR", 1)]),
        register("AFCtrl", 4, 1, "7.9.21", &[flag("FLR", 0)]),
        register("AFStatus", 5, 1, "7.9.21", &[flag("TP", 0)]),
    ])],
);

/// Subsystem ID and Subsystem Vendor ID of a bridge.
pub const BRIDGE_SUBSYSTEM: Layout = layout(
    "Subsystem",
    &[always(&[register("Subsystem", 4, 4, "7.9.23", &[hex("Vendor ID", 15, 0), hex("Device ID", 31, 16)])])],
);

const fn named(name: &'static str) -> Layout {
    layout(name, &[])
}

/// AGP, by name only.
pub const AGP: Layout = named("AGP");
/// `CompactPCI` hot swap, by name only.
pub const HOT_SWAP: Layout = named("CompactPCI hot-swap");
/// PCI-X, by name only.
pub const PCI_X: Layout = named("PCI-X");
/// `HyperTransport`, by name only.
pub const HYPERTRANSPORT: Layout = named("HyperTransport");
/// `CompactPCI` resource control, by name only.
pub const RESOURCE_CONTROL: Layout = named("CompactPCI central resource control");
/// Hot plug of conventional PCI, by name only.
pub const HOT_PLUG: Layout = named("Hot-plug capable");
/// AGP 8x, by name only.
pub const AGP_3: Layout = named("AGP3");
/// Secure device, by name only.
pub const SECURE: Layout = named("Secure device");
/// Enhanced allocation, by name only.
pub const ENHANCED_ALLOCATION: Layout = named("Enhanced Allocation (EA)");
/// Null capability.
pub const NULL: Layout = named("Null");

pub(super) fn bridge_subsystem(space: ConfigSpace<'_>) -> Result<(u16, u16), Unknown> {
    let region = space.capability(CapabilityId::BRIDGE_SUBSYSTEM)?.region();
    let get = |spot| region.bits(spot).map(|bits| bits as u16);
    let vendor = get(const { Spot::of(&BRIDGE_SUBSYSTEM, "Subsystem", "Vendor ID") })?;
    Ok((vendor, get(const { Spot::of(&BRIDGE_SUBSYSTEM, "Subsystem", "Device ID") })?))
}
