//! Virtual functions: single-root I/O virtualisation.

use super::region::Region;
use super::table::{Block, Layout, Presence, Spot, always, flag, hex, layout, linear, number, register};
use super::{CapabilityId, ConfigSpace, Unknown};

fn six(_: &Region<'_>) -> u16 {
    6
}

fn bars(_: &Region<'_>) -> u16 {
    0x24
}

/// Single-root I/O virtualisation.
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
            // Bit n stands for pages of 4 KiB << n.
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

/// How many virtual functions there are and could be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VirtualFunctions {
    /// They are switched on.
    pub enabled: bool,
    /// As many as the function can have.
    pub total: u16,
    /// As many as it has when it starts.
    pub initial: u16,
    /// As many as are set.
    pub number: u16,
    /// From this function's routing id to that of the first.
    pub first_offset: u16,
    /// From one to the next.
    pub stride: u16,
    /// Their Device ID.
    pub device_id: u16,
}

impl ConfigSpace<'_> {
    /// The virtual functions, from the SR-IOV capability.
    ///
    /// # Errors
    /// There is none, or it cannot be seen.
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
