//! The header: the first 64 bytes of configuration space.

use super::ConfigSpace;
use super::table::{
    Field, Layout, Meaning, Reading, Region, Spot, always, computed, flag, hex, layout, linear, number, one_of,
};
use super::table::{only, register};
use super::unknown::Unknown;
use std::ops::RangeInclusive;

/// Header Type, bits 6:0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HeaderType {
    /// Type 0: a function that is not a bridge.
    Endpoint,
    /// Type 1: a PCI-to-PCI bridge, including root ports and switch ports.
    Bridge,
    /// Type 2: a `CardBus` bridge.
    CardBus,
}

/// Bus numbers of a bridge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BusNumbers {
    /// Bus above the bridge.
    pub primary: u8,
    /// Bus directly below the bridge.
    pub secondary: u8,
    /// Highest bus number below the bridge.
    pub subordinate: u8,
}

/// Address windows that a bridge forwards downstream; `None` for a disabled window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Windows {
    /// I/O space.
    pub io: Option<RangeInclusive<u64>>,
    /// Memory below 4 GiB.
    pub memory: Option<RangeInclusive<u64>>,
    /// Prefetchable memory.
    pub prefetchable: Option<RangeInclusive<u64>>,
}

fn is(region: &Region<'_>, kind: HeaderType) -> bool {
    region.space().header_type() == Ok(kind)
}

fn is_endpoint(region: &Region<'_>) -> bool {
    is(region, HeaderType::Endpoint)
}

fn is_bridge(region: &Region<'_>) -> bool {
    is(region, HeaderType::Bridge)
}

fn is_cardbus(region: &Region<'_>) -> bool {
    is(region, HeaderType::CardBus)
}

const DEVSEL: &[(u64, &str)] = &[(0, "fast"), (1, "medium"), (2, "slow")];

fn pin(raw: u64) -> Reading {
    match raw {
        0 => Reading::Name("none"),
        1 => Reading::Name("A"),
        2 => Reading::Name("B"),
        3 => Reading::Name("C"),
        4 => Reading::Name("D"),
        raw => Reading::Reserved(raw),
    }
}

const fn secondary_status() -> [Field; 9] {
    [
        flag("66MHz", 5),
        flag("FastB2B", 7),
        flag("ParErr", 8),
        Field { name: "DEVSEL", high: 10, low: 9, meaning: Meaning::OneOf(DEVSEL) },
        flag(">TAbort", 11),
        flag("<TAbort", 12),
        flag("<MAbort", 13),
        flag("<SERR", 14),
        flag("<PERR", 15),
    ]
}

const SECONDARY_STATUS: &[Field] = &secondary_status();

/// The header, of all types.
pub const HEADER: Layout = layout(
    "Header",
    &[
        always(&[
            register("Vendor ID", 0x00, 2, "7.5.1.1.1", &[hex("Vendor ID", 15, 0)]),
            register("Device ID", 0x02, 2, "7.5.1.1.2", &[hex("Device ID", 15, 0)]),
            register(
                "Control",
                0x04,
                2,
                "7.5.1.1.3",
                &[
                    flag("I/O", 0),
                    flag("Mem", 1),
                    flag("BusMaster", 2),
                    flag("SpecCycle", 3),
                    flag("MemWINV", 4),
                    flag("VGASnoop", 5),
                    flag("ParErr", 6),
                    flag("Stepping", 7),
                    flag("SERR", 8),
                    flag("FastB2B", 9),
                    flag("DisINTx", 10),
                ],
            ),
            register(
                "Status",
                0x06,
                2,
                "7.5.1.1.4",
                &[
                    flag("ImmReady", 0),
                    flag("INTx", 3),
                    flag("Cap", 4),
                    flag("66MHz", 5),
                    flag("UDF", 6),
                    flag("FastB2B", 7),
                    flag("ParErr", 8),
                    one_of("DEVSEL", 10, 9, DEVSEL),
                    flag(">TAbort", 11),
                    flag("<TAbort", 12),
                    flag("<MAbort", 13),
                    flag(">SERR", 14),
                    flag("<PERR", 15),
                ],
            ),
            register("Revision ID", 0x08, 1, "7.5.1.1.5", &[hex("Revision ID", 7, 0)]),
            register(
                "Class Code",
                0x09,
                3,
                "7.5.1.1.6",
                &[hex("Base Class", 23, 16), hex("Sub-Class", 15, 8), hex("Programming Interface", 7, 0)],
            ),
            register("Cache Line Size", 0x0c, 1, "7.5.1.1.7", &[linear("Cache Line Size", 7, 0, 0, 4, "bytes")]),
            register("Latency", 0x0d, 1, "7.5.1.1.8", &[number("Latency", 7, 0)]),
            register(
                "Header Type",
                0x0e,
                1,
                "7.5.1.1.9",
                &[
                    one_of("Layout", 6, 0, &[(0, "endpoint"), (1, "bridge"), (2, "CardBus bridge")]),
                    flag("Multi-Function", 7),
                ],
            ),
            register("BIST", 0x0f, 1, "7.5.1.1.10", &[flag("Capable", 7), flag("Running", 6), hex("Result", 3, 0)]),
            register("Interrupt Line", 0x3c, 1, "7.5.1.1.12", &[number("Interrupt Line", 7, 0)]),
            register("Interrupt Pin", 0x3d, 1, "7.5.1.1.13", &[computed("Interrupt Pin", 7, 0, pin)]),
        ]),
        only(
            "in a header of type 0",
            is_endpoint,
            &[
                register("BAR0", 0x10, 4, "7.5.1.2.1", &[hex("BAR0", 31, 0)]),
                register("BAR1", 0x14, 4, "7.5.1.2.1", &[hex("BAR1", 31, 0)]),
                register("BAR2", 0x18, 4, "7.5.1.2.1", &[hex("BAR2", 31, 0)]),
                register("BAR3", 0x1c, 4, "7.5.1.2.1", &[hex("BAR3", 31, 0)]),
                register("BAR4", 0x20, 4, "7.5.1.2.1", &[hex("BAR4", 31, 0)]),
                register("BAR5", 0x24, 4, "7.5.1.2.1", &[hex("BAR5", 31, 0)]),
                register("CardBus CIS Pointer", 0x28, 4, "7.5.1.2.2", &[hex("CardBus CIS Pointer", 31, 0)]),
                register("Subsystem", 0x2c, 4, "7.5.1.2.3", &[hex("Vendor ID", 15, 0), hex("Device ID", 31, 16)]),
                register(
                    "Expansion ROM",
                    0x30,
                    4,
                    "7.5.1.2.4",
                    &[flag("Enable", 0), linear("Address", 31, 11, 0, 2048, "address")],
                ),
                register("Capabilities Pointer", 0x34, 1, "7.5.1.1.11", &[hex("Capabilities Pointer", 7, 0)]),
                register("Min_Gnt", 0x3e, 1, "7.5.1.2.5", &[linear("Min_Gnt", 7, 0, 0, 250, "ns")]),
                register("Max_Lat", 0x3f, 1, "7.5.1.2.5", &[linear("Max_Lat", 7, 0, 0, 250, "ns")]),
            ],
        ),
        only(
            "in a header of type 1",
            is_bridge,
            &[
                register("BAR0", 0x10, 4, "7.5.1.2.1", &[hex("BAR0", 31, 0)]),
                register("BAR1", 0x14, 4, "7.5.1.2.1", &[hex("BAR1", 31, 0)]),
                register(
                    "Bus",
                    0x18,
                    4,
                    "7.5.1.3.2",
                    &[
                        hex("primary", 7, 0),
                        hex("secondary", 15, 8),
                        hex("subordinate", 23, 16),
                        number("sec-latency", 31, 24),
                    ],
                ),
                register(
                    "I/O behind bridge",
                    0x1c,
                    2,
                    "7.5.1.3.6",
                    &[
                        one_of("Base type", 3, 0, IO_TYPES),
                        hex("Base", 7, 4),
                        one_of("Limit type", 11, 8, IO_TYPES),
                        hex("Limit", 15, 12),
                    ],
                ),
                register("Secondary status", 0x1e, 2, "7.5.1.3.7", SECONDARY_STATUS),
                register(
                    "Memory behind bridge",
                    0x20,
                    4,
                    "7.5.1.3.8",
                    &[
                        one_of("Base type", 3, 0, ONLY_32),
                        hex("Base", 15, 4),
                        one_of("Limit type", 19, 16, ONLY_32),
                        hex("Limit", 31, 20),
                    ],
                ),
                register(
                    "Prefetchable memory behind bridge",
                    0x24,
                    4,
                    "7.5.1.3.9",
                    &[
                        one_of("Base type", 3, 0, MEMORY_TYPES),
                        hex("Base", 15, 4),
                        one_of("Limit type", 19, 16, MEMORY_TYPES),
                        hex("Limit", 31, 20),
                    ],
                ),
                register("Prefetchable Base Upper", 0x28, 4, "7.5.1.3.10", &[hex("Base", 31, 0)]),
                register("Prefetchable Limit Upper", 0x2c, 4, "7.5.1.3.10", &[hex("Limit", 31, 0)]),
                register("I/O Upper", 0x30, 4, "7.5.1.3.11", &[hex("Base", 15, 0), hex("Limit", 31, 16)]),
                register("Capabilities Pointer", 0x34, 1, "7.5.1.1.11", &[hex("Capabilities Pointer", 7, 0)]),
                register(
                    "Expansion ROM",
                    0x38,
                    4,
                    "7.5.1.3.12",
                    &[flag("Enable", 0), linear("Address", 31, 11, 0, 2048, "address")],
                ),
                register(
                    "BridgeCtl",
                    0x3e,
                    2,
                    "7.5.1.3.13",
                    &[
                        flag("Parity", 0),
                        flag("SERR", 1),
                        flag("NoISA", 2),
                        flag("VGA", 3),
                        flag("VGA16", 4),
                        flag("MAbort", 5),
                        flag(">Reset", 6),
                        flag("FastB2B", 7),
                        flag("PriDiscTmr", 8),
                        flag("SecDiscTmr", 9),
                        flag("DiscTmrStat", 10),
                        flag("DiscTmrSERREn", 11),
                    ],
                ),
            ],
        ),
        only(
            "in a header of type 2",
            is_cardbus,
            &[
                register("BAR0", 0x10, 4, "PC Card Standard 8.0, volume 7", &[hex("BAR0", 31, 0)]),
                register(
                    "Capabilities Pointer",
                    0x14,
                    1,
                    "PC Card Standard 8.0, volume 7",
                    &[hex("Capabilities Pointer", 7, 0)],
                ),
                register(
                    "Bus",
                    0x18,
                    4,
                    "PC Card Standard 8.0, volume 7",
                    &[
                        hex("primary", 7, 0),
                        hex("secondary", 15, 8),
                        hex("subordinate", 23, 16),
                        number("sec-latency", 31, 24),
                    ],
                ),
            ],
        ),
    ],
);

const IO_TYPES: &[(u64, &str)] = &[(0, "16-bit"), (1, "32-bit")];
const ONLY_32: &[(u64, &str)] = &[(0, "32-bit")];
const MEMORY_TYPES: &[(u64, &str)] = &[(0, "32-bit"), (1, "64-bit")];

const VENDOR: Spot = Spot::of(&HEADER, "Vendor ID", "Vendor ID");
const DEVICE: Spot = Spot::of(&HEADER, "Device ID", "Device ID");
const SUBSYSTEM_VENDOR: Spot = Spot::of(&HEADER, "Subsystem", "Vendor ID");
const SUBSYSTEM_DEVICE: Spot = Spot::of(&HEADER, "Subsystem", "Device ID");
const LAYOUT: Spot = Spot::of(&HEADER, "Header Type", "Layout");
const PIN: Spot = Spot::of(&HEADER, "Interrupt Pin", "Interrupt Pin");

/// Command register bits, for example `space.header().flag(header::MEMORY_ENABLED)`.
pub const IO_ENABLED: Spot = Spot::of(&HEADER, "Control", "I/O");
/// Memory Space Enable.
pub const MEMORY_ENABLED: Spot = Spot::of(&HEADER, "Control", "Mem");
/// Bus Master Enable.
pub const BUS_MASTER: Spot = Spot::of(&HEADER, "Control", "BusMaster");
/// Interrupt Disable (`INTx`).
pub const INTX_DISABLED: Spot = Spot::of(&HEADER, "Control", "DisINTx");

impl ConfigSpace<'_> {
    fn header_u16(self, spot: Spot) -> Result<u16, Unknown> {
        self.header().bits(spot).map(|bits| bits as u16)
    }

    /// Vendor ID.
    ///
    /// # Errors
    /// It is not visible.
    pub fn vendor_id(&self) -> Result<u16, Unknown> {
        self.header_u16(VENDOR)
    }

    /// Device ID.
    ///
    /// # Errors
    /// It is not visible.
    pub fn device_id(&self) -> Result<u16, Unknown> {
        self.header_u16(DEVICE)
    }

    /// Subsystem Vendor ID and Subsystem ID: from the header of an endpoint, or the capability of a bridge.
    ///
    /// # Errors
    /// They are absent or not visible.
    pub fn subsystem(&self) -> Result<(u16, u16), Unknown> {
        if self.header_type()? == HeaderType::Endpoint {
            return Ok((self.header_u16(SUBSYSTEM_VENDOR)?, self.header_u16(SUBSYSTEM_DEVICE)?));
        }
        super::conventional::bridge_subsystem(*self)
    }

    /// Class code: base class, sub-class and programming interface, 24 bits. `0x01_08_02` is an `NVMe` controller.
    ///
    /// # Errors
    /// It is not visible.
    pub fn class_code(&self) -> Result<u32, Unknown> {
        let base = self.header().bits(const { Spot::of(&HEADER, "Class Code", "Base Class") })?;
        let sub = self.header().bits(const { Spot::of(&HEADER, "Class Code", "Sub-Class") })?;
        let interface = self.header().bits(const { Spot::of(&HEADER, "Class Code", "Programming Interface") })?;
        Ok((base << 16 | sub << 8 | interface) as u32)
    }

    /// Revision ID.
    ///
    /// # Errors
    /// It is not visible.
    pub fn revision(&self) -> Result<u8, Unknown> {
        self.header().bits(const { Spot::of(&HEADER, "Revision ID", "Revision ID") }).map(|bits| bits as u8)
    }

    /// Type of the header.
    ///
    /// # Errors
    /// It is not visible, or reserved.
    pub fn header_type(&self) -> Result<HeaderType, Unknown> {
        match self.header().bits(LAYOUT)? {
            0 => Ok(HeaderType::Endpoint),
            1 => Ok(HeaderType::Bridge),
            2 => Ok(HeaderType::CardBus),
            raw => Err(self.header().reserved(LAYOUT, raw)),
        }
    }

    /// Bus numbers of a bridge (type 1 or `CardBus`).
    ///
    /// # Errors
    /// The function is not a bridge, or they are not visible.
    pub fn bus_numbers(&self) -> Result<BusNumbers, Unknown> {
        let primary = const { Spot::of(&HEADER, "Bus", "primary") };
        if self.header_type()? != HeaderType::CardBus {
            self.header().bits(primary)?;
        }
        match self.read(0x18, 3) {
            Some(raw) => {
                Ok(BusNumbers { primary: raw as u8, secondary: (raw >> 8) as u8, subordinate: (raw >> 16) as u8 })
            }
            None => self.header().bits(primary).map(|_| BusNumbers { primary: 0, secondary: 0, subordinate: 0 }),
        }
    }

    /// Windows of a bridge. A window with its limit below its base is disabled.
    ///
    /// # Errors
    /// The function is not a type 1 bridge, a register is not visible, or a type is reserved.
    pub fn windows(&self) -> Result<Windows, Unknown> {
        let header = self.header();
        let get = |register: Spot| header.bits(register);
        // Base and limit both encode the type, and must agree.
        let wide = |base: Spot, limit: Spot| match (base.field.read(get(base)?), get(base)?, get(limit)?) {
            (Reading::Reserved(raw), _, _) => Err(header.reserved(base, raw)),
            (_, base_type, limit_type) if base_type != limit_type => Err(header.reserved(limit, limit_type)),
            (_, base_type, _) => Ok(base_type == 1),
        };
        let io_wide = wide(
            const { Spot::of(&HEADER, "I/O behind bridge", "Base type") },
            const { Spot::of(&HEADER, "I/O behind bridge", "Limit type") },
        )?;
        wide(
            const { Spot::of(&HEADER, "Memory behind bridge", "Base type") },
            const { Spot::of(&HEADER, "Memory behind bridge", "Limit type") },
        )?;
        let prefetchable_wide = wide(
            const { Spot::of(&HEADER, "Prefetchable memory behind bridge", "Base type") },
            const { Spot::of(&HEADER, "Prefetchable memory behind bridge", "Limit type") },
        )?;
        let upper = |is_wide, spot| if is_wide { get(spot) } else { Ok(0) };
        let io = (
            upper(io_wide, const { Spot::of(&HEADER, "I/O Upper", "Base") })? << 16
                | get(const { Spot::of(&HEADER, "I/O behind bridge", "Base") })? << 12,
            upper(io_wide, const { Spot::of(&HEADER, "I/O Upper", "Limit") })? << 16
                | get(const { Spot::of(&HEADER, "I/O behind bridge", "Limit") })? << 12
                | 0xfff,
        );
        let memory = (
            get(const { Spot::of(&HEADER, "Memory behind bridge", "Base") })? << 20,
            get(const { Spot::of(&HEADER, "Memory behind bridge", "Limit") })? << 20 | 0xf_ffff,
        );
        let prefetchable = (
            upper(prefetchable_wide, const { Spot::of(&HEADER, "Prefetchable Base Upper", "Base") })? << 32
                | get(const { Spot::of(&HEADER, "Prefetchable memory behind bridge", "Base") })? << 20,
            upper(prefetchable_wide, const { Spot::of(&HEADER, "Prefetchable Limit Upper", "Limit") })? << 32
                | get(const { Spot::of(&HEADER, "Prefetchable memory behind bridge", "Limit") })? << 20
                | 0xf_ffff,
        );
        let open = |(base, limit): (u64, u64)| (base <= limit).then_some(base..=limit);
        Ok(Windows { io: open(io), memory: open(memory), prefetchable: open(prefetchable) })
    }

    /// The `INTx` pin, `A` to `D`; `None` if the function has none.
    ///
    /// # Errors
    /// It is not visible, or reserved.
    pub fn interrupt_pin(&self) -> Result<Option<char>, Unknown> {
        match self.header().bits(PIN)? {
            0 => Ok(None),
            raw @ 1..=4 => Ok(Some(char::from(b'A' + raw as u8 - 1))),
            raw => Err(self.header().reserved(PIN, raw)),
        }
    }

    /// Address and enable bit of the expansion ROM; `None` if the register is zero.
    ///
    /// # Errors
    /// It is not visible, or the header has no such register.
    pub fn expansion_rom(&self) -> Result<Option<(u32, bool)>, Unknown> {
        let spot = const { Spot::of(&HEADER, "Expansion ROM", "Address") };
        let offset = match self.header_type()? {
            HeaderType::Endpoint => 0x30,
            HeaderType::Bridge => 0x38,
            HeaderType::CardBus => return self.header().bits(spot).map(|_| None),
        };
        let not_visible = Unknown::NotVisible {
            structure: HEADER.name,
            register: "Expansion ROM",
            offset,
            visible: self.bytes().len(),
        };
        let raw = self.read(offset, 4).ok_or(not_visible)? as u32;
        Ok((raw != 0).then_some((raw & 0xffff_f800, raw & 1 != 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bridge(io: u16, memory: u32, prefetchable: u32) -> Result<Windows, Unknown> {
        let mut bytes = [0; 64];
        bytes[0x0e] = 1;
        bytes[0x1c..0x1e].copy_from_slice(&io.to_le_bytes());
        bytes[0x20..0x24].copy_from_slice(&memory.to_le_bytes());
        bytes[0x24..0x28].copy_from_slice(&prefetchable.to_le_bytes());
        bytes[0x28] = 0x20; // upper base
        bytes[0x2c] = 0x21; // upper limit
        bytes[0x30] = 0x01; // upper I/O base
        bytes[0x32] = 0x01;
        ConfigSpace::new(&bytes).windows()
    }

    #[test]
    fn a_window_starts_at_its_base_and_ends_at_its_limit() {
        let windows = bridge(0x2121, 0x1010_1010, 0x0011_0011).unwrap();
        assert_eq!(windows.io, Some(0x1_2000..=0x1_2fff));
        assert_eq!(windows.memory, Some(0x1010_0000..=0x101f_ffff));
        assert_eq!(windows.prefetchable, Some(0x20_0010_0000..=0x21_001f_ffff));
    }

    #[test]
    fn a_window_with_its_limit_below_its_base_is_disabled() {
        let windows = bridge(0x1020, 0x1010_1020, 0x0000_0010).unwrap();
        assert_eq!(windows, Windows { io: None, memory: None, prefetchable: None });
    }

    #[test]
    fn a_reserved_window_type_or_different_types_at_both_ends_are_reported() {
        assert!(matches!(bridge(0x0202, 0, 0), Err(Unknown::Reserved { field: "Base type", raw: 2, .. })));
        assert!(matches!(bridge(0x0001, 0, 0), Err(Unknown::Reserved { field: "Limit type", raw: 0, .. })));
        assert!(matches!(bridge(0, 0x0000_0001, 0), Err(Unknown::Reserved { field: "Base type", raw: 1, .. })));
        assert!(matches!(bridge(0, 0, 0x0002_0002), Err(Unknown::Reserved { field: "Base type", raw: 2, .. })));
    }

    #[test]
    fn an_endpoint_has_no_windows_and_no_bus_numbers() {
        let space = ConfigSpace::new(&[0; 64]);
        assert!(matches!(space.windows(), Err(Unknown::NotThere { .. })));
        assert!(matches!(space.bus_numbers(), Err(Unknown::NotThere { .. })));
    }

    #[test]
    fn interrupt_pins_above_d_and_header_types_above_2_are_reserved() {
        let mut bytes = [0; 64];
        bytes[0x3d] = 4;
        assert_eq!(ConfigSpace::new(&bytes).interrupt_pin(), Ok(Some('D')));
        bytes[0x3d] = 5;
        assert!(matches!(ConfigSpace::new(&bytes).interrupt_pin(), Err(Unknown::Reserved { raw: 5, .. })));
        bytes[0x0e] = 0x82;
        assert_eq!(ConfigSpace::new(&bytes).header_type(), Ok(HeaderType::CardBus));
        bytes[0x0e] = 3;
        assert!(matches!(ConfigSpace::new(&bytes).header_type(), Err(Unknown::Reserved { raw: 3, .. })));
    }

    #[test]
    fn the_expansion_rom_is_at_the_offset_of_its_header_type() {
        let mut bytes = [0; 64];
        bytes[0x30..0x34].copy_from_slice(&0xfff0_0001u32.to_le_bytes());
        assert_eq!(ConfigSpace::new(&bytes).expansion_rom(), Ok(Some((0xfff0_0000, true))));
        bytes[0x0e] = 1;
        assert_eq!(ConfigSpace::new(&bytes).expansion_rom(), Ok(None));
        bytes[0x38..0x3c].copy_from_slice(&0x0000_0800u32.to_le_bytes());
        assert_eq!(ConfigSpace::new(&bytes).expansion_rom(), Ok(Some((0x800, false))));
        bytes[0x0e] = 2;
        assert!(ConfigSpace::new(&bytes).expansion_rom().is_err());
    }

    #[test]
    fn a_register_that_is_not_visible_is_not_read_as_zero() {
        let bytes = [0; 64];
        let cut = |length| ConfigSpace::new(&bytes[..length]);
        assert_eq!(cut(2).vendor_id(), Ok(0));
        assert!(matches!(cut(1).vendor_id(), Err(Unknown::NotVisible { offset: 0, visible: 1, .. })));
        assert_eq!(cut(12).class_code(), Ok(0));
        assert!(matches!(cut(11).class_code(), Err(Unknown::NotVisible { offset: 9, visible: 11, .. })));
    }
}
