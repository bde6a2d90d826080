//! Fields that lspci confirms, and reasons for the others.

use crate::decoded::Name;
use lanemark_wire::config::capability::CAPABILITIES;
use lanemark_wire::config::header::HEADER;
use std::collections::BTreeSet;

/// Fields that `lspci -vvv` never prints: structure, register and field (`*` matches any), reason.
const NOT_PRINTED: &[(&str, &str, &str, &str)] = &[
    ("Access Control Services", "ACSCap", "Enhanced", NEWER),
    ("Access Control Services", "ACSCap", "EgressVectorBits", NEWER),
    ("Access Control Services", "ACSCtl", "IOReqBlk", NEWER),
    ("Access Control Services", "ACSCtl", "DSPMemTarget", NEWER),
    ("Access Control Services", "ACSCtl", "USPMemTarget", NEWER),
    ("Access Control Services", "ACSCtl", "UnclaimedRedir", NEWER),
    ("Address Translation Service (ATS)", "ATSCap", "PageAligned", NEWER),
    ("Address Translation Service (ATS)", "ATSCap", "GlobalInvalidate", NEWER),
    ("Address Translation Service (ATS)", "ATSCap", "RelaxedOrdering", NEWER),
    ("Advanced Error Reporting", "AERCap", "HdrLogSize", NEWER),
    ("Advanced Error Reporting", "AERCap", "LoggedFlit", NEWER),
    ("Advanced Error Reporting", "AERCap", "LoggedSize", NEWER),
    ("Advanced Error Reporting", "PrefixLog 0", "*", NO_LINE),
    ("Advanced Error Reporting", "PrefixLog 1", "*", NO_LINE),
    ("Advanced Error Reporting", "PrefixLog 2", "*", NO_LINE),
    ("Advanced Error Reporting", "PrefixLog 3", "*", NO_LINE),
    ("Advanced Error Reporting", "RootSta", "ErrCorSubclass", NEWER),
    ("Data Link Feature", "*", "*", "lspci knows this capability by name only"),
    ("Power Budgeting", "*", "*", "lspci knows this capability by name only"),
    ("Vital Product Data", "*", "*", "lspci prints what is read through it, which a file cannot give"),
    ("Data Object Exchange", "DOECtl", "Abort", "reads as zero"),
    ("Data Object Exchange", "DOECtl", "Go", "reads as zero"),
    ("Designated Vendor-Specific", "CXLCap3", "HotReset", "lspci 3.15.0 prints other bits under this name"),
    (
        "Designated Vendor-Specific",
        "CXLCap3",
        "HotResetConfigurability",
        "lspci 3.15.0 prints other bits under this name",
    ),
    ("Designated Vendor-Specific", "CXLCtl2", "InitRst", "lspci 3.15.0 prints other bits under this name"),
    ("Designated Vendor-Specific", "CXLCtl2", "RstMemClrEn", "lspci 3.15.0 prints other bits under this name"),
    ("Designated Vendor-Specific", "CXLCtl2 more", "*", "lspci 3.15.0 prints other bits under this name"),
    ("Downstream Port Containment", "DpcCtl", "SIG_SFW", NEWER),
    ("Downstream Port Containment", "DpcSta", "SIG_SFW", NEWER),
    ("Downstream Port Containment", "RP PIO Status", "*", NO_LINE),
    ("Downstream Port Containment", "RP PIO Mask", "*", NO_LINE),
    ("Downstream Port Containment", "RP PIO Severity", "*", NO_LINE),
    ("Downstream Port Containment", "RP PIO SysError", "*", NO_LINE),
    ("Downstream Port Containment", "RP PIO Exception", "*", NO_LINE),
    (
        "Flit Logging",
        "CntSts",
        "Interrupt Generated based on Trigger Event Count",
        "lspci 3.15.0 prints another bit under this name",
    ),
    ("Header", "Capabilities Pointer", "*", "shown by where the first capability stands"),
    ("Header", "CardBus CIS Pointer", "*", NO_LINE),
    ("Header", "Header Type", "*", "shown by which lines there are"),
    ("Header", "Status", "ImmReady", NEWER),
    (
        "Integrity & Data Encryption",
        "IDECap",
        "Sel streams",
        "no space here has selective streams, which we do not decode",
    ),
    ("Integrity & Data Encryption", "LinkIDE Ctl", "PCRC", "lspci 3.15.0 prints another bit under this name"),
    ("L1 PM Substates", "L1SubCap", "LinkActivation", NEWER),
    ("L1 PM Substates", "L1SubCtl1", "LinkActivationInt", NEWER),
    ("L1 PM Substates", "L1SubCtl1", "LinkActivationCtl", NEWER),
    ("Lane Margining at the Receiver", "LaneMargCtl", "*", NO_LINE),
    ("Lane Margining at the Receiver", "LaneMargSta", "*", NO_LINE),
    ("MSI", "Message Control", "ExtDataCap", NEWER),
    ("MSI", "Message Control", "ExtDataEn", NEWER),
    ("PCI Express", "DevCap", "ErrCorSubclass", NEWER),
    ("PCI Express", "DevCap", "RxMaxPayloadFixed", NEWER),
    ("PCI Express", "DevCap", "MixedMaxPayload", NEWER),
    ("PCI Express", "DevSta", "EmergencyPowerReductionDetected", NEWER),
    ("PCI Express", "DevCap2", "DMWrComp", NEWER),
    ("PCI Express", "DevCap2", "DMWrLength", NEWER),
    ("PCI Express", "LnkCap2", "LowerSKPGen", NEWER),
    ("PCI Express", "LnkCap2", "LowerSKPRcv", NEWER),
    ("PCI Express", "LnkCtl", "DRSSignaling", NEWER),
    ("PCI Express", "LnkCtl", "PtmPropDelayAdaptB", NEWER),
    ("PCI Express", "LnkCtl", "SRISClocking", NEWER),
    ("PCI Express", "LnkCtl", "Retrain", "reads as zero"),
    ("PCI Express", "RootCtl", "NoNFMSubtreeBelow", NEWER),
    ("PCI Express", "SltCtl", "AutoPowerLimitDis", NEWER),
    ("PCI Express", "SltCtl", "InBandPresDetDis", NEWER),
    ("PCI Express", "SltCap2", "*", NO_LINE),
    ("Physical Layer 16.0 GT/s", "LocalParity", "*", NO_LINE),
    ("Physical Layer 16.0 GT/s", "FirstRetimerParity", "*", NO_LINE),
    ("Physical Layer 16.0 GT/s", "SecondRetimerParity", "*", NO_LINE),
    ("Physical Layer 16.0 GT/s", "LaneEqCtl", "*", NO_LINE),
    ("Physical Layer 32.0 GT/s", "LaneEqCtl", "*", NO_LINE),
    ("Physical Layer 64.0 GT/s", "LaneEqCtl", "*", NO_LINE),
    ("Power Management", "PM Data", "*", NO_LINE),
    ("Power Management", "PMC", "ImmReadyD0", NEWER),
    ("Root Complex Event Collector Endpoint Association", "*", "*", "no device here has it"),
    ("Secondary PCI Express", "LaneEqCtl", "*", NO_LINE),
    ("Secondary PCI Express", "LnkCtl3", "LowerSKPGenEn", NEWER),
    ("Single Root I/O Virtualization (SR-IOV)", "IOVCap", "ARIPreserved", NEWER),
    ("Single Root I/O Virtualization (SR-IOV)", "IOVCap", "14BitTagReq", NEWER),
    ("Single Root I/O Virtualization (SR-IOV)", "IOVCtl", "14BitTagReq", NEWER),
    ("Transaction Processing Hints", "TPHCap", "NoSTMode", "section 7.9.13.2 has it always set"),
    ("Transaction Processing Hints", "TPHCap", "Steering table entries", "lspci does not print the size of the table"),
    ("Transaction Processing Hints", "TPHCtl", "*", NO_LINE),
    ("Virtual Channel", "Caps", "VCs", "shown by how many lines there are"),
    ("Virtual Channel", "Ctrl", "Load", "reads as zero"),
    ("Virtual Channel", "VC Ctrl", "Load", "reads as zero"),
];

const NEWER: &str = "younger than what lspci 3.15.0 prints of this register";
const NO_LINE: &str = "lspci does not print this register";

/// Checks that every field of every table was compared or is listed, and that every listed field exists and was not compared.
pub fn check(seen: &BTreeSet<Name>) {
    let layouts = CAPABILITIES.iter().map(|row| row.layout).chain([&HEADER]);
    let mut all = BTreeSet::new();
    for layout in layouts {
        for register in layout.blocks.iter().flat_map(|block| block.registers) {
            all.extend(register.fields.iter().map(|field| (layout.name, register.name, field.name)));
        }
    }
    let row_of = |name: &Name| {
        NOT_PRINTED
            .iter()
            .position(|row| row.0 == name.0 && (row.1 == "*" || row.1 == name.1) && (row.2 == "*" || row.2 == name.2))
    };
    let missing: Vec<&Name> = all.iter().filter(|name| !seen.contains(*name) && row_of(name).is_none()).collect();
    assert!(missing.is_empty(), "{} fields that nothing confirms: {missing:#?}", missing.len());
    let printed: Vec<&Name> = seen.iter().filter(|name| row_of(name).is_some()).collect();
    assert!(printed.is_empty(), "said not to be printed, but it is: {printed:#?}");
    assert!(NOT_PRINTED.iter().all(|row| !row.3.is_empty()));
    let used: BTreeSet<usize> = all.iter().filter_map(row_of).collect();
    assert_eq!(used.len(), NOT_PRINTED.len(), "a row of NOT_PRINTED names no field");
}
