//! The physical layer at 8 GT/s and above: equalization, lane errors, lane margining.

use super::table::{
    Block, Field, Layout, Presence, Region, Register, Spot, always, flag, hex, layout, number, one_of, register,
};
use super::{CapabilityId, ConfigSpace, LinkSpeed, Unknown};

/// Maximum Link Width: the number of per-lane registers.
fn lanes(region: &Region<'_>) -> u16 {
    let width = const { Spot::of(&super::pcie::PCI_EXPRESS, "LnkCap", "Width") };
    region.space().pcie().and_then(|pcie| pcie.region().bits(width)).map_or(0, |width| width.min(32) as u16)
}

fn at_8(_: &Region<'_>) -> u16 {
    8
}

fn at_12(_: &Region<'_>) -> u16 {
    12
}

fn at_16(_: &Region<'_>) -> u16 {
    0x10
}

fn at_32(_: &Region<'_>) -> u16 {
    0x20
}

const fn per_lane(first: fn(&Region<'_>) -> u16, stride: u16, registers: &'static [Register]) -> Block {
    Block { presence: Presence::Times { count: lanes, first, stride, each: "lane" }, registers }
}

/// Secondary PCI Express: equalization at 8 GT/s.
pub const SECONDARY: Layout = layout(
    "Secondary PCI Express",
    &[
        always(&[
            register(
                "LnkCtl3",
                4,
                4,
                "7.7.3.2",
                &[flag("PerformEqu", 0), flag("LnkEquIntrruptEn", 1), hex("LowerSKPGenEn", 15, 9)],
            ),
            register("LaneErrStat", 8, 4, "7.7.3.3", &[hex("LaneErrStat", 31, 0)]),
        ]),
        per_lane(
            at_12,
            2,
            &[register(
                "LaneEqCtl",
                0,
                2,
                "7.7.3.4",
                &[
                    hex("DownstreamTxPreset", 3, 0),
                    hex("DownstreamRxHint", 6, 4),
                    hex("UpstreamTxPreset", 11, 8),
                    hex("UpstreamRxHint", 14, 12),
                ],
            )],
        ),
    ],
);

const EQUALIZATION: &[Field] = &[
    flag("EquComplete", 0),
    flag("EquPhase1", 1),
    flag("EquPhase2", 2),
    flag("EquPhase3", 3),
    flag("LinkEquRequest", 4),
];

/// Downstream and upstream transmitter preset of a lane.
const PRESETS: &[Field] = &[hex("DownstreamTxPreset", 3, 0), hex("UpstreamTxPreset", 7, 4)];

/// Physical layer 16 GT/s.
pub const PHYSICAL_16: Layout = layout(
    "Physical Layer 16.0 GT/s",
    &[
        always(&[
            register("Phy16Sta", 0x0c, 4, "7.7.5.4", EQUALIZATION),
            register("LocalParity", 0x10, 4, "7.7.5.5", &[hex("LocalParity", 31, 0)]),
            register("FirstRetimerParity", 0x14, 4, "7.7.5.6", &[hex("FirstRetimerParity", 31, 0)]),
            register("SecondRetimerParity", 0x18, 4, "7.7.5.7", &[hex("SecondRetimerParity", 31, 0)]),
        ]),
        per_lane(at_32, 1, &[register("LaneEqCtl", 0, 1, "7.7.5.8", PRESETS)]),
    ],
);

/// Physical layer 32 GT/s.
pub const PHYSICAL_32: Layout = layout(
    "Physical Layer 32.0 GT/s",
    &[
        always(&[
            register(
                "Phy32Cap",
                0x04,
                4,
                "7.7.6.2",
                &[
                    flag("EqualizationBypass", 0),
                    flag("NoEqualizationNeeded", 1),
                    flag("ModTsMode0", 8),
                    flag("ModTsMode1", 9),
                    flag("ModTsMode2", 10),
                ],
            ),
            register(
                "Phy32Ctl",
                0x08,
                4,
                "7.7.6.3",
                &[
                    flag("EqualizationBypassDis", 0),
                    flag("NoEqualizationNeededDis", 1),
                    one_of(
                        "Modified TS Usage Mode",
                        10,
                        8,
                        &[(0, "PCI Express"), (1, "Training Set Messages"), (2, "Alternate Protocol Negotiation")],
                    ),
                ],
            ),
            register(
                "Phy32Sta",
                0x0c,
                4,
                "7.7.6.4",
                &[
                    flag("EquComplete", 0),
                    flag("EquPhase1", 1),
                    flag("EquPhase2", 2),
                    flag("EquPhase3", 3),
                    flag("LinkEquRequest", 4),
                    flag("ModTsRecv", 5),
                    one_of(
                        "Received Enhanced Link Behavior Control",
                        7,
                        6,
                        &[
                            (0, "Full Equalization required"),
                            (1, "Equalization bypass to highest rate support"),
                            (2, "No Equalization Needed"),
                            (3, "Modified TS1/TS2 Ordered Sets supported"),
                        ],
                    ),
                    flag("TxPrecodeOn", 8),
                    flag("TxPrecodeReq", 9),
                    flag("NoEqualizationNeededRecv", 10),
                ],
            ),
        ]),
        per_lane(at_32, 1, &[register("LaneEqCtl", 0, 1, "7.7.6.9", PRESETS)]),
    ],
);

/// Physical layer 64 GT/s.
pub const PHYSICAL_64: Layout = layout(
    "Physical Layer 64.0 GT/s",
    &[
        always(&[register(
            "Phy64Sta",
            0x0c,
            4,
            "7.7.7.4",
            &[
                flag("EquComplete", 0),
                flag("EquPhase1", 1),
                flag("EquPhase2", 2),
                flag("EquPhase3", 3),
                flag("LinkEquRequest", 4),
                flag("TxPrecodeOn", 5),
                flag("TxPrecodeReq", 6),
                flag("NoEqualizationNeededRecv", 7),
            ],
        )]),
        per_lane(at_16, 1, &[register("LaneEqCtl", 0, 1, "7.7.7.5", PRESETS)]),
    ],
);

const MARGIN: &[Field] =
    &[number("Receiver", 2, 0), number("Type", 5, 3), flag("UsageModel", 6), hex("Payload", 15, 8)];

/// Lane margining at the receiver.
pub const LANE_MARGINING: Layout = layout(
    "Lane Margining at the Receiver",
    &[
        always(&[
            register("PortCap", 4, 2, "7.7.10.2", &[flag("Uses Driver", 0)]),
            register("PortSta", 6, 2, "7.7.10.3", &[flag("MargReady", 0), flag("MargSoftReady", 1)]),
        ]),
        per_lane(
            at_8,
            4,
            &[register("LaneMargCtl", 0, 2, "7.7.10.4", MARGIN), register("LaneMargSta", 2, 2, "7.7.10.5", MARGIN)],
        ),
    ],
);

/// Data Link Feature: features exchanged during link initialization.
pub const DATA_LINK_FEATURE: Layout = layout(
    "Data Link Feature",
    &[always(&[
        register(
            "DLFCap",
            4,
            4,
            "7.7.4.2",
            &[flag("ScaledFlowControl", 0), hex("LocalFeatures", 22, 0), flag("Exchange", 31)],
        ),
        register(
            "DLFSta",
            8,
            4,
            "7.7.4.3",
            &[flag("RemoteScaledFlowControl", 0), hex("RemoteFeatures", 22, 0), flag("RemoteValid", 31)],
        ),
    ])],
);

/// Equalization status at one speed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Equalization {
    /// Equalization was completed at least once.
    pub complete: bool,
    /// Phases 1, 2 and 3 were successful.
    pub phases: [bool; 3],
    /// The port requests another equalization.
    pub requested: bool,
}

impl Equalization {
    /// Decodes five bits, lowest first.
    const fn of(raw: u64) -> Equalization {
        Equalization {
            complete: raw & 1 != 0,
            phases: [raw & 2 != 0, raw & 4 != 0, raw & 8 != 0],
            requested: raw & 16 != 0,
        }
    }
}

#[allow(clippy::missing_errors_doc)]
impl ConfigSpace<'_> {
    /// Equalization status at a speed. None exists below 8 GT/s, and 128 GT/s is not described.
    pub fn equalization(&self, speed: LinkSpeed) -> Result<Equalization, Unknown> {
        let (id, spot) = match speed {
            LinkSpeed::Gt2_5 | LinkSpeed::Gt5 | LinkSpeed::Gt128 => {
                return Err(Unknown::NotThere {
                    structure: "Link",
                    register: "equalization status",
                    only: "at 8 to 64 GT/s",
                });
            }
            LinkSpeed::Gt8 => {
                let status = const { Spot::of(&super::pcie::PCI_EXPRESS, "LnkSta2", "EqualizationComplete") };
                return self.pcie()?.region().register(status).map(|raw| Equalization::of(raw >> 1));
            }
            LinkSpeed::Gt16 => (CapabilityId::PHYSICAL_16, const { Spot::of(&PHYSICAL_16, "Phy16Sta", "EquComplete") }),
            LinkSpeed::Gt32 => (CapabilityId::PHYSICAL_32, const { Spot::of(&PHYSICAL_32, "Phy32Sta", "EquComplete") }),
            LinkSpeed::Gt64 => (CapabilityId::PHYSICAL_64, const { Spot::of(&PHYSICAL_64, "Phy64Sta", "EquComplete") }),
        };
        self.capability(id)?.region().register(spot).map(Equalization::of)
    }

    /// Lane Error Status: one bit per lane.
    pub fn lane_errors(&self) -> Result<u32, Unknown> {
        let region = self.capability(CapabilityId::SECONDARY)?.region();
        region.bits(const { Spot::of(&SECONDARY, "LaneErrStat", "LaneErrStat") }).map(|bits| bits as u32)
    }

    /// Scaled Flow Control: supported by this port, and by the link partner (`None` if its features were not received).
    pub fn scaled_flow_control(&self) -> Result<(bool, Option<bool>), Unknown> {
        let region = self.capability(CapabilityId::DATA_LINK_FEATURE)?.region();
        let local = region.flag(const { Spot::of(&DATA_LINK_FEATURE, "DLFCap", "ScaledFlowControl") })?;
        let valid = region.flag(const { Spot::of(&DATA_LINK_FEATURE, "DLFSta", "RemoteValid") })?;
        let remote = region.flag(const { Spot::of(&DATA_LINK_FEATURE, "DLFSta", "RemoteScaledFlowControl") })?;
        Ok((local, valid.then_some(remote)))
    }
}
