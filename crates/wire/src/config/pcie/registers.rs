//! The registers of the PCI Express capability.

use crate::config::table::{
    Block, Layout, Reading, Region, Register, always, any_of, computed, flag, hex, layout, number,
};
use crate::config::table::{one_of, only, power, register};

pub(in crate::config) fn port_type_code(region: &Region<'_>) -> Option<u64> {
    region.read(2, 2).map(|bits| bits >> 4 & 0xf)
}

fn has_link(region: &Region<'_>) -> bool {
    port_type_code(region).is_some_and(|code| code != 9 && code != 10)
}

fn has_slot(region: &Region<'_>) -> bool {
    matches!(port_type_code(region), Some(4 | 6 | 8)) && region.read(2, 2).is_some_and(|bits| bits & 0x100 != 0)
}

fn is_root(region: &Region<'_>) -> bool {
    matches!(port_type_code(region), Some(4 | 10))
}

fn second(region: &Region<'_>) -> bool {
    region.read(2, 1).is_some_and(|bits| bits & 0xf >= 2)
}

fn second_link(region: &Region<'_>) -> bool {
    second(region) && has_link(region)
}

fn second_slot(region: &Region<'_>) -> bool {
    second(region) && has_slot(region)
}

const SPEEDS: &[(u64, &str)] =
    &[(1, "2.5GT/s"), (2, "5GT/s"), (3, "8GT/s"), (4, "16GT/s"), (5, "32GT/s"), (6, "64GT/s"), (7, "128GT/s")];

/// Supported link speeds vector; bit 0 is 2.5 GT/s.
const SPEED_VECTOR: &[(u64, &str)] =
    &[(1, "2.5GT/s"), (2, "5GT/s"), (4, "8GT/s"), (8, "16GT/s"), (16, "32GT/s"), (32, "64GT/s"), (64, "128GT/s")];

const L0S_LATENCY: &[(u64, &str)] = &[
    (0, "<64ns"),
    (1, "<128ns"),
    (2, "<256ns"),
    (3, "<512ns"),
    (4, "<1us"),
    (5, "<2us"),
    (6, "<4us"),
    (7, "unlimited"),
];

const L1_LATENCY: &[(u64, &str)] =
    &[(0, "<1us"), (1, "<2us"), (2, "<4us"), (3, "<8us"), (4, "<16us"), (5, "<32us"), (6, "<64us"), (7, "unlimited")];

const TIMEOUTS: &[(u64, &str)] = &[
    (0, "50us to 50ms"),
    (1, "50us to 100us"),
    (2, "1ms to 10ms"),
    (5, "16ms to 55ms"),
    (6, "65ms to 210ms"),
    (9, "260ms to 900ms"),
    (10, "1s to 3.5s"),
    (13, "4s to 13s"),
    (14, "17s to 64s"),
];

const TIMEOUT_RANGES: &[(u64, &str)] = &[
    (0, "Not Supported"),
    (1, "Range A"),
    (2, "Range B"),
    (3, "Range AB"),
    (6, "Range BC"),
    (7, "Range ABC"),
    (14, "Range BCD"),
    (15, "Range ABCD"),
];

const INDICATOR: &[(u64, &str)] = &[(1, "On"), (2, "Blink"), (3, "Off")];

/// Decodes slot power in milliwatts: value in bits 7:0, scale in bits 9:8.
fn slot_power(raw: u64) -> Reading {
    let (value, scale) = (raw & 0xff, raw >> 8);
    let milliwatts = match (value, scale) {
        // With scale 1.0, values above 239 encode 250 W and more, in steps of 25 W.
        (0xf0..=0xfe, 0) => 250_000 + 25_000 * (value - 0xf0),
        (0xff, 0) => return Reading::Reserved(raw),
        (_, 0) => value * 1000,
        (_, 1) => value * 100,
        (_, 2) => value * 10,
        _ => value,
    };
    Reading::Quantity(milliwatts, "mW")
}

const CAPABILITY: Register = register(
    "Express",
    0x02,
    2,
    "7.5.3.2",
    &[
        number("Version", 3, 0),
        one_of(
            "Type",
            7,
            4,
            &[
                (0, "Endpoint"),
                (1, "Legacy Endpoint"),
                (4, "Root Port"),
                (5, "Upstream Port"),
                (6, "Downstream Port"),
                (7, "PCI-Express to PCI/PCI-X Bridge"),
                (8, "PCI/PCI-X to PCI-Express Bridge"),
                (9, "Root Complex Integrated Endpoint"),
                (10, "Root Complex Event Collector"),
            ],
        ),
        flag("Slot", 8),
        number("IntMsgNum", 13, 9),
        flag("FLIT Mode Supported", 15),
    ],
);

const DEVICE: &[Register] = &[
    CAPABILITY,
    register(
        "DevCap",
        0x04,
        4,
        "7.5.3.3",
        &[
            power("MaxPayload", 2, 0, 128, "bytes", 5),
            number("PhantFunc", 4, 3),
            flag("ExtTag", 5),
            one_of("Latency L0s", 8, 6, L0S_LATENCY),
            one_of("L1", 11, 9, L1_LATENCY),
            flag("AttnBtn", 12),
            flag("AttnInd", 13),
            flag("PwrInd", 14),
            flag("RBE", 15),
            flag("ErrCorSubclass", 16),
            flag("RxMaxPayloadFixed", 17),
            computed("SlotPowerLimit", 27, 18, slot_power),
            flag("FLReset", 28),
            flag("MixedMaxPayload", 29),
            flag("TEE-IO", 30),
        ],
    ),
    register(
        "DevCtl",
        0x08,
        2,
        "7.5.3.4",
        &[
            flag("CorrErr", 0),
            flag("NonFatalErr", 1),
            flag("FatalErr", 2),
            flag("UnsupReq", 3),
            flag("RlxdOrd", 4),
            power("MaxPayload", 7, 5, 128, "bytes", 5),
            flag("ExtTag", 8),
            flag("PhantFunc", 9),
            flag("AuxPwr", 10),
            flag("NoSnoop", 11),
            power("MaxReadReq", 14, 12, 128, "bytes", 5),
            // Bridge Configuration Retry Enable of bridges to PCI; Initiate Function Level Reset of endpoints.
            flag("BrConfRtry/FLReset", 15),
        ],
    ),
    register(
        "DevSta",
        0x0a,
        2,
        "7.5.3.5",
        &[
            flag("CorrErr", 0),
            flag("NonFatalErr", 1),
            flag("FatalErr", 2),
            flag("UnsupReq", 3),
            flag("AuxPwr", 4),
            flag("TransPend", 5),
            flag("EmergencyPowerReductionDetected", 6),
        ],
    ),
];

const LINK: &[Register] = &[
    register(
        "LnkCap",
        0x0c,
        4,
        "7.5.3.6",
        &[
            one_of("Speed", 3, 0, SPEEDS),
            number("Width", 9, 4),
            one_of("ASPM", 11, 10, &[(0, "not supported"), (1, "L0s"), (2, "L1"), (3, "L0s L1")]),
            one_of("Exit Latency L0s", 14, 12, L0S_LATENCY),
            one_of("Exit Latency L1", 17, 15, L1_LATENCY),
            flag("ClockPM", 18),
            flag("Surprise", 19),
            flag("LLActRep", 20),
            flag("BwNot", 21),
            flag("ASPMOptComp", 22),
            number("Port #", 31, 24),
        ],
    ),
    register(
        "LnkCtl",
        0x10,
        2,
        "7.5.3.7",
        &[
            one_of("ASPM", 1, 0, &[(0, "Disabled"), (1, "L0s Enabled"), (2, "L1 Enabled"), (3, "L0s L1 Enabled")]),
            flag("PtmPropDelayAdaptB", 2),
            power("RCB", 3, 3, 64, "bytes", 1),
            flag("LnkDisable", 4),
            flag("Retrain", 5),
            flag("CommClk", 6),
            flag("ExtSynch", 7),
            flag("ClockPM", 8),
            flag("AutWidDis", 9),
            flag("BWInt", 10),
            flag("AutBWInt", 11),
            flag("SRISClocking", 12),
            flag("FltModeDis", 13),
            one_of("DRSSignaling", 15, 14, &[(0, "not reported"), (1, "interrupt"), (2, "DRS to FRS")]),
        ],
    ),
    register(
        "LnkSta",
        0x12,
        2,
        "7.5.3.8",
        &[
            one_of("Speed", 3, 0, SPEEDS),
            number("Width", 9, 4),
            flag("TrErr", 10),
            flag("Train", 11),
            flag("SlotClk", 12),
            flag("DLActive", 13),
            flag("BWMgmt", 14),
            flag("ABWMgmt", 15),
        ],
    ),
];

const SLOT: &[Register] = &[
    register(
        "SltCap",
        0x14,
        4,
        "7.5.3.9",
        &[
            flag("AttnBtn", 0),
            flag("PwrCtrl", 1),
            flag("MRL", 2),
            flag("AttnInd", 3),
            flag("PwrInd", 4),
            flag("Surprise", 5),
            flag("HotPlug", 6),
            computed("PowerLimit", 16, 7, slot_power),
            flag("Interlock", 17),
            flag("NoCompl", 18),
            number("Slot #", 31, 19),
        ],
    ),
    register(
        "SltCtl",
        0x18,
        2,
        "7.5.3.10",
        &[
            flag("AttnBtn", 0),
            flag("PwrFlt", 1),
            flag("MRL", 2),
            flag("PresDet", 3),
            flag("CmdCplt", 4),
            flag("HPIrq", 5),
            one_of("AttnInd", 7, 6, INDICATOR),
            one_of("PwrInd", 9, 8, INDICATOR),
            flag("Power", 10),
            flag("Interlock", 11),
            flag("LinkChg", 12),
            flag("AutoPowerLimitDis", 13),
            flag("InBandPresDetDis", 14),
        ],
    ),
    register(
        "SltSta",
        0x1a,
        2,
        "7.5.3.11",
        &[
            flag("Status AttnBtn", 0),
            flag("Status PowerFlt", 1),
            flag("Changed MRL", 2),
            flag("Changed PresDet", 3),
            flag("Status CmdCplt", 4),
            flag("Status MRL", 5),
            flag("Status PresDet", 6),
            flag("Status Interlock", 7),
            flag("Changed LinkState", 8),
        ],
    ),
];

const ROOT: &[Register] = &[
    register(
        "RootCtl",
        0x1c,
        2,
        "7.5.3.12",
        &[
            flag("ErrCorrectable", 0),
            flag("ErrNon-Fatal", 1),
            flag("ErrFatal", 2),
            flag("PMEIntEna", 3),
            flag("CRSVisible", 4),
            flag("NoNFMSubtreeBelow", 5),
        ],
    ),
    register("RootCap", 0x1e, 2, "7.5.3.13", &[flag("CRSVisible", 0)]),
    register("RootSta", 0x20, 4, "7.5.3.14", &[hex("PME ReqID", 15, 0), flag("PMEStatus", 16), flag("PMEPending", 17)]),
];

const DEVICE_2: &[Register] = &[
    register(
        "DevCap2",
        0x24,
        4,
        "7.5.3.15",
        &[
            one_of("Completion Timeout", 3, 0, TIMEOUT_RANGES),
            flag("TimeoutDis", 4),
            flag("ARIFwd", 5),
            flag("Routing", 6),
            flag("32bit", 7),
            flag("64bit", 8),
            flag("128bitCAS", 9),
            flag("NROPrPrP", 10),
            flag("LTR", 11),
            any_of("TPHComp", 13, 12, &[(1, "TPHComp"), (2, "ExtTPHComp")]),
            one_of(
                "LN System CLS",
                15,
                14,
                &[(0, "Not Supported"), (1, "64byte cachelines"), (2, "128byte cachelines")],
            ),
            flag("10BitTagComp", 16),
            flag("10BitTagReq", 17),
            one_of(
                "OBFF",
                19,
                18,
                &[(0, "Not Supported"), (1, "Via message"), (2, "Via WAKE#"), (3, "Via message/WAKE#")],
            ),
            flag("ExtFmt", 20),
            flag("EETLPPrefix", 21),
            // 0 encodes 4; valid only with EETLPPrefix.
            one_of("MaxEETLPPrefixes", 23, 22, &[(0, "4"), (1, "1"), (2, "2"), (3, "3")]),
            one_of(
                "EmergencyPowerReduction",
                25,
                24,
                &[(0, "Not Supported"), (1, "Dev Specific"), (2, "Form Factor Dev Specific")],
            ),
            flag("EmergencyPowerReductionInit", 26),
            flag("DMWrComp", 28),
            one_of("DMWrLength", 30, 29, &[(0, "64 bytes"), (1, "128 bytes")]),
            flag("FRS", 31),
        ],
    ),
    register(
        "DevCtl2",
        0x28,
        2,
        "7.5.3.16",
        &[
            one_of("Completion Timeout", 3, 0, TIMEOUTS),
            flag("TimeoutDis", 4),
            flag("ARIFwd", 5),
            flag("ReqEn", 6),
            flag("EgressBlck", 7),
            flag("IDOReq", 8),
            flag("IDOCompl", 9),
            flag("LTR", 10),
            flag("EmergencyPowerReductionReq", 11),
            flag("10BitTagReq", 12),
            one_of("OBFF", 14, 13, &[(0, "Disabled"), (1, "Via message A"), (2, "Via message B"), (3, "Via WAKE#")]),
            flag("EETLPPrefixBlk", 15),
        ],
    ),
];

const PRESETS: &[(u64, &str)] = &[
    (0, "-6dB de-emphasis, 0dB preshoot"),
    (1, "-3.5dB de-emphasis, 0dB preshoot"),
    (2, "-4.4dB de-emphasis, 0dB preshoot"),
    (3, "-2.5dB de-emphasis, 0dB preshoot"),
    (4, "0dB de-emphasis, 0dB preshoot"),
    (5, "0dB de-emphasis, 1.9dB preshoot"),
    (6, "0dB de-emphasis, 2.5dB preshoot"),
    (7, "-6.0dB de-emphasis, 3.5dB preshoot"),
    (8, "-3.5dB de-emphasis, 3.5dB preshoot"),
    (9, "0dB de-emphasis, 3.5dB preshoot"),
];

const LINK_2: &[Register] = &[
    register(
        "LnkCap2",
        0x2c,
        4,
        "7.5.3.18",
        &[
            any_of("Supported Link Speeds", 7, 1, SPEED_VECTOR),
            flag("Crosslink", 8),
            any_of("LowerSKPGen", 15, 9, SPEED_VECTOR),
            any_of("LowerSKPRcv", 22, 16, SPEED_VECTOR),
            flag("Retimer", 23),
            flag("2Retimers", 24),
            flag("DRS", 31),
        ],
    ),
    register(
        "LnkCtl2",
        0x30,
        2,
        "7.5.3.19",
        &[
            one_of("Target Link Speed", 3, 0, SPEEDS),
            flag("EnterCompliance", 4),
            flag("SpeedDis", 5),
            one_of("Selectable De-emphasis", 6, 6, &[(0, "-6dB"), (1, "-3.5dB")]),
            one_of(
                "Transmit Margin",
                9,
                7,
                &[
                    (0, "Normal Operating Range"),
                    (1, "800-1200mV(full-swing)/400-700mV(half-swing)"),
                    // The number of steps depends on the device.
                    (2, "step 2"),
                    (3, "step 3"),
                    (4, "step 4"),
                    (5, "step 5"),
                    (6, "step 6"),
                    (7, "step 7"),
                ],
            ),
            flag("EnterModifiedCompliance", 10),
            flag("ComplianceSOS", 11),
            one_of("Compliance Preset/De-emphasis", 15, 12, PRESETS),
        ],
    ),
    register(
        "LnkSta2",
        0x32,
        2,
        "7.5.3.20",
        &[
            one_of("Current De-emphasis Level", 0, 0, &[(0, "-6dB"), (1, "-3.5dB")]),
            flag("EqualizationComplete", 1),
            flag("EqualizationPhase1", 2),
            flag("EqualizationPhase2", 3),
            flag("EqualizationPhase3", 4),
            flag("LinkEqualizationRequest", 5),
            flag("Retimer", 6),
            flag("2Retimers", 7),
            one_of(
                "CrosslinkRes",
                9,
                8,
                &[(0, "unsupported"), (1, "Upstream Port"), (2, "Downstream Port"), (3, "incomplete")],
            ),
            flag("FltMode", 10),
            one_of(
                "DownstreamComp",
                14,
                12,
                &[
                    (0, "Link Down - Not Determined"),
                    (1, "Link Down - Not Present"),
                    (2, "Link Down - Present"),
                    (4, "Link Up - Present"),
                    (5, "Link Up - Present and DRS Received"),
                ],
            ),
            flag("DRS", 15),
        ],
    ),
];

const BLOCKS: &[Block] = &[
    always(DEVICE),
    only("in a function with a link", has_link, LINK),
    only("in a port with a slot", has_slot, SLOT),
    only("in a root port or event collector", is_root, ROOT),
    only("in version 2 of the capability", second, DEVICE_2),
    only("in version 2 of the capability, with a link", second_link, LINK_2),
    only(
        "in version 2 of the capability, with a slot",
        second_slot,
        &[register("SltCap2", 0x34, 4, "7.5.3.21", &[flag("InBandPresDetDis", 0)])],
    ),
];

/// The PCI Express capability.
pub const PCI_EXPRESS: Layout = layout("PCI Express", BLOCKS);
