//! Single Root I/O Virtualization (SR-IOV).

use super::table::{Block, Layout, Presence, Region, Spot, always, flag, hex, layout, linear, number, register};
use super::{CapabilityId, ConfigSpace, Unknown};

fn six(_: &Region<'_>) -> u16 {
    6
}

fn bars(_: &Region<'_>) -> u16 {
    0x24
}

/// Single Root I/O Virtualization.
pub const SINGLE_ROOT: Layout = layout(
    "Single Root I/O Virtualization (SR-IOV)",
    &[
        always(&[
            register(
                "IOVCap",
                0x04,
                4,
                "9.3.3.2",
                &[
                    flag("Migration", 0),
                    flag("ARIPreserved", 1),
                    flag("10BitTagReq", 2),
                    flag("14BitTagReq", 3),
                    number("IntMsgNum", 31, 21),
                ],
            ),
            register(
                "IOVCtl",
                0x08,
                2,
                "9.3.3.3",
                &[
                    flag("Enable", 0),
                    flag("Migration", 1),
                    flag("Interrupt", 2),
                    flag("MSE", 3),
                    flag("ARIHierarchy", 4),
                    flag("10BitTagReq", 5),
                    flag("14BitTagReq", 6),
                ],
            ),
            register("IOVSta", 0x0a, 2, "9.3.3.4", &[flag("Migration", 0)]),
            register("Initial VFs", 0x0c, 2, "9.3.3.5", &[number("Initial VFs", 15, 0)]),
            register("Total VFs", 0x0e, 2, "9.3.3.6", &[number("Total VFs", 15, 0)]),
            register("Number of VFs", 0x10, 2, "9.3.3.7", &[number("Number of VFs", 15, 0)]),
            register("Function Dependency Link", 0x12, 1, "9.3.3.8", &[hex("Function Dependency Link", 7, 0)]),
            register("VF offset", 0x14, 2, "9.3.3.9", &[number("VF offset", 15, 0)]),
            register("stride", 0x16, 2, "9.3.3.10", &[number("stride", 15, 0)]),
            register("Device ID", 0x1a, 2, "9.3.3.11", &[hex("Device ID", 15, 0)]),
            // Bit n is a page size of 4 KiB << n.
            register("Supported Page Size", 0x1c, 4, "9.3.3.12", &[hex("Supported Page Size", 31, 0)]),
            register("System Page Size", 0x20, 4, "9.3.3.13", &[hex("System Page Size", 31, 0)]),
            register("VF Migration", 0x3c, 4, "9.3.3.15", &[hex("BIR", 2, 0), linear("offset", 31, 3, 0, 8, "bytes")]),
        ]),
        Block {
            presence: Presence::Times { count: six, first: bars, stride: 4, each: "VF BAR" },
            registers: &[register("VF BAR", 0, 4, "9.3.3.14", &[hex("VF BAR", 31, 0)])],
        },
    ],
);

/// SR-IOV settings of a physical function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VirtualFunctions {
    /// VF Enable.
    pub enabled: bool,
    /// `TotalVFs`.
    pub total: u16,
    /// `InitialVFs`.
    pub initial: u16,
    /// `NumVFs`.
    pub number: u16,
    /// First VF Offset: Routing ID distance from this function to the first VF.
    pub first_offset: u16,
    /// VF Stride: Routing ID distance between VFs.
    pub stride: u16,
    /// VF Device ID.
    pub device_id: u16,
}

impl ConfigSpace<'_> {
    /// SR-IOV settings, from the SR-IOV capability.
    ///
    /// # Errors
    /// The capability is absent or not visible.
    pub fn virtual_functions(&self) -> Result<VirtualFunctions, Unknown> {
        let region = self.capability(CapabilityId::SINGLE_ROOT)?.region();
        let get = |spot| region.bits(spot).map(|bits| bits as u16);
        Ok(VirtualFunctions {
            enabled: region.flag(const { Spot::of(&SINGLE_ROOT, "IOVCtl", "Enable") })?,
            total: get(const { Spot::of(&SINGLE_ROOT, "Total VFs", "Total VFs") })?,
            initial: get(const { Spot::of(&SINGLE_ROOT, "Initial VFs", "Initial VFs") })?,
            number: get(const { Spot::of(&SINGLE_ROOT, "Number of VFs", "Number of VFs") })?,
            first_offset: get(const { Spot::of(&SINGLE_ROOT, "VF offset", "VF offset") })?,
            stride: get(const { Spot::of(&SINGLE_ROOT, "stride", "stride") })?,
            device_id: get(const { Spot::of(&SINGLE_ROOT, "Device ID", "Device ID") })?,
        })
    }
}
