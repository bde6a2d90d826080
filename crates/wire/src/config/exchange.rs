//! Data Object Exchange, Integrity and Data Encryption, and root complex capabilities.

use super::table::{
    Block, Field, Layout, Presence, Region, always, flag, hex, layout, linear, number, one_of, register,
};

/// Data object exchange.
pub const DATA_OBJECT_EXCHANGE: Layout = layout(
    "Data Object Exchange",
    &[always(&[
        register("DOECap", 4, 4, "7.9.24.2", &[flag("IntSup", 0), number("IntMsgNum", 11, 1)]),
        register("DOECtl", 8, 4, "7.9.24.3", &[flag("Abort", 0), flag("IntEn", 1), flag("Go", 31)]),
        register(
            "DOESta",
            12,
            4,
            "7.9.24.4",
            &[flag("Busy", 0), flag("IntSta", 1), flag("Error", 2), flag("ObjectReady", 31)],
        ),
    ])],
);

const ALGORITHM: &[(u64, &str)] = &[(0, "AES-GCM-256-96b")];
const AGGREGATION: &[(u64, &str)] = &[(0, "-"), (1, "=2"), (2, "=4"), (3, "=8")];

const HEADER_ENCRYPTION: Field =
    one_of("HdrEnc", 13, 10, &[(0, "no"), (1, "17:2"), (2, "25:2"), (3, "33:2"), (4, "41:2")]);

fn link_streams(region: &Region<'_>) -> u16 {
    match region.read(4, 4) {
        Some(capability) if capability & 1 != 0 => (capability >> 13 & 7) as u16 + 1,
        _ => 0,
    }
}

fn first_stream(_: &Region<'_>) -> u16 {
    12
}

/// Integrity and Data Encryption. Selective streams, which have variable length, are not described.
pub const ENCRYPTION: Layout = layout(
    "Integrity & Data Encryption",
    &[
        always(&[
            register(
                "IDECap",
                4,
                4,
                "7.9.26.2",
                &[
                    flag("Lnk", 0),
                    flag("Sel", 1),
                    flag("FlowThru", 2),
                    flag("PartHdr", 3),
                    flag("Aggr", 4),
                    flag("PCPC", 5),
                    flag("IDE_KM", 6),
                    flag("SelCfg", 7),
                    one_of("Alg", 12, 8, ALGORITHM),
                    linear("TCs", 15, 13, 1, 1, "streams"),
                    linear("Sel streams", 23, 16, 1, 1, "streams"),
                    flag("TeeLim", 24),
                    flag("XT", 25),
                ],
            ),
            register("IDECtl", 8, 4, "7.9.26.3", &[flag("FTEn", 2)]),
        ]),
        Block {
            presence: Presence::Times { count: link_streams, first: first_stream, stride: 8, each: "link stream" },
            registers: &[
                register(
                    "LinkIDE Ctl",
                    0,
                    4,
                    "7.9.26.4.1",
                    &[
                        flag("En", 0),
                        flag("XT", 1),
                        one_of("NPR", 3, 2, AGGREGATION),
                        one_of("PR", 5, 4, AGGREGATION),
                        one_of("CPL", 7, 6, AGGREGATION),
                        flag("PCRC", 8),
                        HEADER_ENCRYPTION,
                        one_of("Alg", 18, 14, ALGORITHM),
                        number("TC", 21, 19),
                        number("ID", 31, 24),
                    ],
                ),
                register(
                    "LinkIDE Sta",
                    4,
                    4,
                    "7.9.26.4.2",
                    &[one_of("Status", 3, 0, &[(0, "insecure"), (2, "secure")]), flag("RecvChkFail", 31)],
                ),
            ],
        },
    ],
);

fn links(region: &Region<'_>) -> u16 {
    region.read(5, 1).unwrap_or(0) as u16
}

/// Links of a root complex element to other elements.
pub const ROOT_COMPLEX_LINK: Layout = layout(
    "Root Complex Link",
    &[
        always(&[register(
            "Desc",
            4,
            4,
            "7.9.8.2",
            &[
                one_of("EltType", 3, 0, &[(0, "Config"), (1, "Egress"), (2, "Internal")]),
                number("Links", 15, 8),
                hex("ComponentID", 23, 16),
                hex("PortNumber", 31, 24),
            ],
        )]),
        Block {
            presence: Presence::Times { count: links, first: first_link, stride: 16, each: "link" },
            registers: &[
                register(
                    "Link Desc",
                    0,
                    4,
                    "7.9.8.3.1",
                    &[
                        flag("LinkValid", 0),
                        one_of("LinkType", 1, 1, &[(0, "MemMapped"), (1, "Config")]),
                        flag("AssocRCRB", 2),
                        hex("TargetComponent", 23, 16),
                        hex("TargetPort", 31, 24),
                    ],
                ),
                register("Addr", 8, 8, "7.9.8.3.2", &[hex("Addr", 63, 0)]),
            ],
        },
    ],
);

fn first_link(_: &Region<'_>) -> u16 {
    0x10
}

/// Integrated endpoints that report their errors to this event collector.
pub const EVENT_COLLECTOR: Layout = layout(
    "Root Complex Event Collector Endpoint Association",
    &[always(&[register("RCiEPBitmap", 4, 4, "7.9.10.2", &[hex("RCiEPBitmap", 31, 0)])])],
);
