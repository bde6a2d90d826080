//! Capabilities for flit mode: Device 3 registers and flit error logging.

use super::table::{Block, Layout, Presence, Region, Spot, always, flag, hex, layout, number, one_of, register};
use super::{CapabilityId, ConfigSpace, TagBits, Unknown};

pub(super) const L0P_WIDTH: &[(u64, &str)] = &[(0, "x1"), (1, "x2"), (2, "x4"), (3, "x8"), (4, "x16"), (7, "Dynamic")];

const L0P_EXIT: &[(u64, &str)] = &[
    (0, "Less than 1us"),
    (1, "1us to less than 2us"),
    (2, "2us to less than 4us"),
    (3, "4us to less than 8us"),
    (4, "8us to less than 16us"),
    (5, "16us to less than 32us"),
    (6, "32us-64us"),
    (7, "More than 64us"),
];

/// Device 3: 14-bit tags, deferrable memory writes, L0p.
pub const DEVICE_3: Layout = layout(
    "Device 3",
    &[always(&[
        register(
            "DevCap3",
            4,
            4,
            "7.7.9.2",
            &[
                flag("DMWr Request Routing", 0),
                flag("14-Bit Tag Completer", 1),
                flag("14-Bit Tag Requester", 2),
                flag("L0p", 3),
                one_of("Port L0p Exit Latency", 6, 4, L0P_EXIT),
                one_of("Retimer L0p Exit Latency", 9, 7, L0P_EXIT),
                flag("UIO Mem RdWr Completer", 10),
                flag("UIO Mem RdWr Requester", 11),
            ],
        ),
        register(
            "DevCtl3",
            8,
            4,
            "7.7.9.3",
            &[
                flag("DMWr Requester", 0),
                flag("DMWr Egress Blocking", 1),
                flag("14-Bit Tag Requester", 2),
                flag("L0p", 3),
                one_of("Target Link Width", 6, 4, L0P_WIDTH),
                flag("UIO Mem RdWr Requester", 7),
                flag("UIO Request 256B Boundary Dis", 8),
            ],
        ),
        register(
            "DevSta3",
            12,
            4,
            "7.7.9.4",
            &[one_of("Initial Link Width", 2, 0, L0P_WIDTH), flag("Segment Captured", 3), flag("Remote L0p", 4)],
        ),
    ])],
);

fn sixteen(_: &Region<'_>) -> u16 {
    16
}

fn lane_counters(_: &Region<'_>) -> u16 {
    0x1c
}

/// Flit logging.
pub const FLIT_LOGGING: Layout = layout(
    "Flit Logging",
    &[
        always(&[
            register(
                "Log1",
                0x04,
                4,
                "7.7.8.2",
                &[
                    flag("Valid", 0),
                    one_of("Link Width", 3, 1, L0P_WIDTH),
                    flag("More entries", 13),
                    flag("Unrecognized flit", 14),
                    flag("FEC uncorrectable", 15),
                    hex("SyndParityGrp0", 23, 16),
                    hex("SyndCheckGrp0", 31, 24),
                ],
            ),
            register(
                "Log2",
                0x08,
                4,
                "7.7.8.3",
                &[
                    hex("SyndParityGrp1", 7, 0),
                    hex("SyndCheckGrp1", 15, 8),
                    hex("SyndParityGrp2", 23, 16),
                    hex("SyndCheckGrp2", 31, 24),
                ],
            ),
            register(
                "CntCtl",
                0x0c,
                2,
                "7.7.8.4",
                &[
                    flag("Flit Error Counter En", 0),
                    flag("Flit Error Counter Interrupt En", 1),
                    number("Events to count", 3, 2),
                    hex("Trigger Event on Error Count", 11, 4),
                ],
            ),
            register(
                "CntSts",
                0x0e,
                2,
                "7.7.8.5",
                &[
                    one_of("Link Width when Error Counter Started", 2, 0, L0P_WIDTH),
                    flag("Interrupt Generated based on Trigger Event Count", 3),
                    number("FlitErr", 15, 8),
                ],
            ),
            register(
                "MeasCtl",
                0x10,
                4,
                "7.7.8.6",
                &[flag("En", 0), one_of("Granularity", 3, 2, &[(0, "all"), (1, "even"), (2, "odd"), (3, "mismatch")])],
            ),
            register("MeasSts1", 0x14, 4, "7.7.8.7", &[number("Flit Counter", 31, 0)]),
            register("MeasSts2", 0x18, 4, "7.7.8.8", &[number("Invalid Flit Counter", 15, 0)]),
        ]),
        Block {
            presence: Presence::Times { count: sixteen, first: lane_counters, stride: 2, each: "lane" },
            registers: &[register("MeasSts", 0, 2, "7.7.8.9", &[number("Lane", 15, 0)])],
        },
    ],
);

/// Support and enable bits of 14-bit tags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FourteenBitTags {
    /// Supported as completer.
    pub completer: bool,
    /// Supported as requester.
    pub requester_supported: bool,
    /// Enabled as requester.
    pub requester: bool,
}

impl ConfigSpace<'_> {
    /// 14-bit tag support, from the Device 3 capability.
    ///
    /// # Errors
    /// The capability is absent or not visible.
    pub fn fourteen_bit_tags(&self) -> Result<FourteenBitTags, Unknown> {
        let region = self.capability(CapabilityId::DEVICE_3)?.region();
        Ok(FourteenBitTags {
            completer: region.flag(const { Spot::of(&DEVICE_3, "DevCap3", "14-Bit Tag Completer") })?,
            requester_supported: region.flag(const { Spot::of(&DEVICE_3, "DevCap3", "14-Bit Tag Requester") })?,
            requester: region.flag(const { Spot::of(&DEVICE_3, "DevCtl3", "14-Bit Tag Requester") })?,
        })
    }

    /// The longest tags enabled for requests. For 10 and 14 bits, the completers must support them too.
    ///
    /// # Errors
    /// The PCI Express capability is absent or not visible.
    pub fn tag_bits(&self) -> Result<TagBits, Unknown> {
        let pcie = self.pcie()?;
        if self.fourteen_bit_tags().is_ok_and(|tags| tags.requester) {
            return Ok(TagBits::Fourteen);
        }
        match pcie.ten_bit_tag_requester() {
            Ok(true) => return Ok(TagBits::Ten),
            Ok(false) | Err(Unknown::NotThere { .. }) => {}
            Err(unknown) => return Err(unknown),
        }
        Ok(if pcie.extended_tags()? { TagBits::Eight } else { TagBits::Five })
    }
}
