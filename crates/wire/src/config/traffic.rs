//! Virtual channels, multicast, TLP processing hints and precision time measurement.

use super::table::{
    Block, Layout, Presence, Reading, Region, always, any_of, computed, flag, hex, layout, linear, number, one_of,
};
use super::table::{only, register};

/// Number of virtual channels, VC0 included.
fn channels(region: &Region<'_>) -> u16 {
    region.read(4, 1).map_or(0, |capability| (capability & 7) as u16 + 1)
}

fn first_channel(_: &Region<'_>) -> u16 {
    0x10
}

const VC_ARBITERS: &[(u64, &str)] = &[(1, "Fixed"), (2, "WRR32"), (4, "WRR64"), (8, "WRR128")];
const PORT_ARBITERS: &[(u64, &str)] =
    &[(1, "Fixed"), (2, "WRR32"), (4, "WRR64"), (8, "WRR128"), (16, "TWRR128"), (32, "WRR256")];

const CHANNEL_BLOCKS: &[Block] = &[
    always(&[
        register(
            "Caps",
            0x04,
            4,
            "7.9.1.2",
            &[
                number("VCs", 2, 0),
                number("LPEVC", 6, 4),
                one_of("RefClk", 9, 8, &[(0, "100ns")]),
                linear_power("PATEntryBits", 11, 10),
            ],
        ),
        register("Arb", 0x08, 4, "7.9.1.3", &[any_of("Arb", 7, 0, VC_ARBITERS), number("TableOffset", 31, 24)]),
        register(
            "Ctrl",
            0x0c,
            2,
            "7.9.1.4",
            &[flag("Load", 0), one_of("ArbSelect", 3, 1, &[(0, "Fixed"), (1, "WRR32"), (2, "WRR64"), (3, "WRR128")])],
        ),
        register("Status", 0x0e, 2, "7.9.1.5", &[flag("InProgress", 0)]),
    ]),
    Block {
        presence: Presence::Times { count: channels, first: first_channel, stride: 12, each: "VC" },
        registers: &[
            register(
                "VC Caps",
                0,
                4,
                "7.9.1.6",
                &[
                    any_of("Arb", 7, 0, PORT_ARBITERS),
                    flag("RejSnoopTrans", 15),
                    linear("MaxTimeSlots", 22, 16, 1, 1, "slots"),
                    hex("PATOffset", 31, 24),
                ],
            ),
            register(
                "VC Ctrl",
                4,
                4,
                "7.9.1.7",
                &[
                    hex("TC/VC", 7, 0),
                    flag("Load", 16),
                    one_of(
                        "ArbSelect",
                        19,
                        17,
                        &[(0, "Fixed"), (1, "WRR32"), (2, "WRR64"), (3, "WRR128"), (4, "TWRR128"), (5, "WRR256")],
                    ),
                    number("ID", 26, 24),
                    flag("Enable", 31),
                ],
            ),
            register("VC Status", 10, 2, "7.9.1.8", &[flag("InProgress", 0), flag("NegoPending", 1)]),
        ],
    },
];

const fn linear_power(name: &'static str, high: u8, low: u8) -> super::table::Field {
    super::table::power(name, high, low, 1, "bits", 3)
}

/// Virtual channels.
pub const VIRTUAL_CHANNEL: Layout = layout("Virtual Channel", CHANNEL_BLOCKS);

fn is_port(region: &Region<'_>) -> bool {
    let pcie = region.space().pcie();
    pcie.is_ok_and(|pcie| matches!(super::pcie::port_type_code(&pcie.region()), Some(4..=6)))
}

/// Multicast.
pub const MULTICAST: Layout = layout(
    "Multicast",
    &[
        always(&[
            register(
                "McastCap",
                4,
                2,
                "7.9.11.2",
                &[
                    linear("MaxGroups", 5, 0, 1, 1, "groups"),
                    // log2 of bytes; requested by endpoints only.
                    number("WindowSz", 13, 8),
                    flag("ECRCRegen", 15),
                ],
            ),
            register("McastCtl", 6, 2, "7.9.11.3", &[linear("NumGroups", 5, 0, 1, 1, "groups"), flag("Enable", 15)]),
            register(
                "McastBAR",
                8,
                8,
                "7.9.11.4",
                &[number("IndexPos", 5, 0), linear("BaseAddr", 63, 12, 0, 4096, "address")],
            ),
            register("McastReceiveVec", 0x10, 8, "7.9.11.5", &[hex("McastReceiveVec", 63, 0)]),
            register("McastBlockAllVec", 0x18, 8, "7.9.11.6", &[hex("McastBlockAllVec", 63, 0)]),
            register("McastBlockUntransVec", 0x20, 8, "7.9.11.7", &[hex("McastBlockUntransVec", 63, 0)]),
        ]),
        only(
            "in a port",
            is_port,
            &[register(
                "McastOverlayBAR",
                0x28,
                8,
                "7.9.11.8",
                &[number("OverlaySize", 5, 0), linear("BaseAddr", 63, 6, 0, 64, "address")],
            )],
        ),
    ],
);

/// Transaction processing hints.
pub const PROCESSING_HINTS: Layout = layout(
    "Transaction Processing Hints",
    &[always(&[
        register(
            "TPHCap",
            4,
            4,
            "7.9.13.2",
            &[
                flag("NoSTMode", 0),
                flag("Interrupt vector mode", 1),
                flag("Device specific mode", 2),
                flag("Extended requester", 8),
                one_of(
                    "Steering table",
                    10,
                    9,
                    &[(0, "none"), (1, "in TPH capability structure"), (2, "in MSI-X table")],
                ),
                linear("Steering table entries", 26, 16, 1, 1, "entries"),
            ],
        ),
        register(
            "TPHCtl",
            8,
            4,
            "7.9.13.3",
            &[
                one_of("Mode", 2, 0, &[(0, "no steering tags"), (1, "interrupt vector"), (2, "device specific")]),
                one_of("Requester", 9, 8, &[(0, "off"), (1, "TPH"), (3, "TPH and extended TPH")]),
            ],
        ),
    ])],
);

/// Decodes the local clock granularity: 0 is none, 255 is more than 254 ns.
fn granularity(raw: u64) -> Reading {
    match raw {
        0 => Reading::Name("Unimplemented"),
        255 => Reading::Name("Greater than 254ns"),
        ns => Reading::Quantity(ns, "ns"),
    }
}

/// Decodes the effective granularity: 0 is unknown, 255 is more than 254 ns.
fn effective_granularity(raw: u64) -> Reading {
    match raw {
        0 => Reading::Name("Unknown"),
        255 => Reading::Name("Greater than 254ns"),
        ns => Reading::Quantity(ns, "ns"),
    }
}

/// Precision time measurement.
pub const PRECISION_TIME: Layout = layout(
    "Precision Time Measurement",
    &[always(&[
        register(
            "PTMCap",
            4,
            4,
            "7.9.15.2",
            &[
                flag("Requester", 0),
                flag("Responder", 1),
                flag("Root", 2),
                computed("PTMClockGranularity", 15, 8, granularity),
            ],
        ),
        register(
            "PTMControl",
            8,
            4,
            "7.9.15.3",
            &[
                flag("Enabled", 0),
                flag("RootSelected", 1),
                computed("PTMEffectiveGranularity", 15, 8, effective_granularity),
            ],
        ),
    ])],
);
