//! Latency Tolerance Reporting, L1 PM Substates and Power Budgeting.

use super::table::{Layout, Reading, Spot, always, computed, flag, hex, layout, linear, number, one_of, register};
use super::{CapabilityId, ConfigSpace, Unknown};

/// Decodes a latency: value in bits 9:0, scale of 32^n ns in bits 12:10; scales 6 and 7 are reserved.
fn latency(raw: u64) -> Reading {
    match raw >> 10 {
        scale @ 0..=5 => Reading::Quantity((raw & 0x3ff) << (5 * scale), "ns"),
        _ => Reading::Reserved(raw),
    }
}

/// Decodes a power-on time: scale in bits 1:0, value in bits 7:3.
fn power_on(raw: u64) -> Reading {
    match raw & 3 {
        0 => Reading::Quantity((raw >> 3) * 2, "us"),
        1 => Reading::Quantity((raw >> 3) * 10, "us"),
        2 => Reading::Quantity((raw >> 3) * 100, "us"),
        _ => Reading::Reserved(raw),
    }
}

/// Decodes a threshold: value in bits 9:0, scale of 32^n ns in bits 15:13.
fn threshold(raw: u64) -> Reading {
    match raw >> 13 {
        scale @ 0..=5 => Reading::Quantity((raw & 0x3ff) << (5 * scale), "ns"),
        _ => Reading::Reserved(raw),
    }
}

/// Latency tolerance reporting.
pub const LATENCY_TOLERANCE: Layout = layout(
    "Latency Tolerance Reporting",
    &[always(&[
        register("Max snoop latency", 4, 2, "7.8.2.2", &[computed("Max snoop latency", 12, 0, latency)]),
        register("Max no snoop latency", 6, 2, "7.8.2.3", &[computed("Max no snoop latency", 12, 0, latency)]),
    ])],
);

/// L1 PM substates.
pub const L1_SUBSTATES: Layout = layout(
    "L1 PM Substates",
    &[always(&[
        register(
            "L1SubCap",
            4,
            4,
            "7.8.3.2",
            &[
                flag("PCI-PM_L1.2", 0),
                flag("PCI-PM_L1.1", 1),
                flag("ASPM_L1.2", 2),
                flag("ASPM_L1.1", 3),
                flag("L1_PM_Substates", 4),
                flag("LinkActivation", 5),
                linear("PortCommonModeRestoreTime", 15, 8, 0, 1, "us"),
                computed("PortTPowerOnTime", 23, 16, power_on),
            ],
        ),
        register(
            "L1SubCtl1",
            8,
            4,
            "7.8.3.3",
            &[
                flag("PCI-PM_L1.2", 0),
                flag("PCI-PM_L1.1", 1),
                flag("ASPM_L1.2", 2),
                flag("ASPM_L1.1", 3),
                flag("LinkActivationInt", 4),
                flag("LinkActivationCtl", 5),
                linear("T_CommonMode", 15, 8, 0, 1, "us"),
                computed("LTR1.2_Threshold", 31, 16, threshold),
            ],
        ),
        register("L1SubCtl2", 12, 4, "7.8.3.4", &[computed("T_PwrOn", 7, 0, power_on)]),
    ])],
);

/// Power Budgeting: one entry at a time, selected by writing the index.
pub const POWER_BUDGETING: Layout = layout(
    "Power Budgeting",
    &[always(&[
        register("PwrSelect", 4, 1, "7.8.1.2", &[number("Index", 7, 0)]),
        register(
            "PwrData",
            8,
            4,
            "7.8.1.3",
            &[
                number("Base Power", 7, 0),
                one_of("Data Scale", 9, 8, &[(0, "1.0x"), (1, "0.1x"), (2, "0.01x"), (3, "0.001x")]),
                number("PM Sub State", 12, 10),
                one_of("PM State", 14, 13, &[(0, "D0"), (1, "D1"), (2, "D2"), (3, "D3")]),
                one_of(
                    "Type",
                    17,
                    15,
                    &[
                        (0, "PME Aux"),
                        (1, "Auxiliary"),
                        (2, "Idle"),
                        (3, "Sustained"),
                        (4, "Sustained EPR"),
                        (5, "Maximum EPR"),
                        (7, "Maximum"),
                    ],
                ),
                hex("Power Rail", 20, 18),
            ],
        ),
        register("PwrCap", 12, 1, "7.8.1.4", &[flag("System Allocated", 0)]),
    ])],
);

/// L1 substates, as supported or as enabled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(clippy::struct_excessive_bools)] // four bits that the specification names
pub struct L1Substates {
    /// PCI-PM L1.2.
    pub pci_pm_l1_2: bool,
    /// PCI-PM L1.1.
    pub pci_pm_l1_1: bool,
    /// ASPM L1.2.
    pub aspm_l1_2: bool,
    /// ASPM L1.1.
    pub aspm_l1_1: bool,
}

impl L1Substates {
    const fn of(raw: u64) -> L1Substates {
        L1Substates {
            pci_pm_l1_2: raw & 1 != 0,
            pci_pm_l1_1: raw & 2 != 0,
            aspm_l1_2: raw & 4 != 0,
            aspm_l1_1: raw & 8 != 0,
        }
    }
}

#[allow(clippy::missing_errors_doc)]
impl ConfigSpace<'_> {
    /// Supported L1 substates.
    pub fn l1_substates_supported(&self) -> Result<L1Substates, Unknown> {
        let region = self.capability(CapabilityId::L1_SUBSTATES)?.region();
        region.register(const { Spot::of(&L1_SUBSTATES, "L1SubCap", "PCI-PM_L1.2") }).map(L1Substates::of)
    }

    /// Enabled L1 substates.
    pub fn l1_substates(&self) -> Result<L1Substates, Unknown> {
        let region = self.capability(CapabilityId::L1_SUBSTATES)?.region();
        region.register(const { Spot::of(&L1_SUBSTATES, "L1SubCtl1", "PCI-PM_L1.2") }).map(L1Substates::of)
    }

    /// Maximum snoop and no-snoop latency that the device may report, in ns.
    pub fn max_tolerated_latency_ns(&self) -> Result<(u64, u64), Unknown> {
        let region = self.capability(CapabilityId::LATENCY_TOLERANCE)?.region();
        let snoop = const { Spot::of(&LATENCY_TOLERANCE, "Max snoop latency", "Max snoop latency") };
        let no_snoop = const { Spot::of(&LATENCY_TOLERANCE, "Max no snoop latency", "Max no snoop latency") };
        Ok((region.quantity(snoop)?, region.quantity(no_snoop)?))
    }
}
