//! Encodes configuration space by the same tables that decode it.

use super::capability::capability_row;
use super::header::HEADER;
use super::table::{Layout, Meaning, Reading, Region, Register, Spot};
use super::{CapabilityId, ConfigSpace};

/// Errors of encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The register does not exist in this function, or belongs to another structure.
    #[error("{structure} of this function has no register {register}")]
    NotThere {
        /// The structure.
        structure: &'static str,
        /// The register.
        register: &'static str,
    },
    /// No code of the field has the value.
    #[error("{structure}, {register}: no code of {field} means {value:#x}")]
    NoCode {
        /// The structure.
        structure: &'static str,
        /// The register.
        register: &'static str,
        /// The field.
        field: &'static str,
        /// The value; for a name, its length.
        value: u64,
    },
    /// No row describes the capability.
    #[error("no row of CAPABILITIES describes {0}")]
    Unnamed(CapabilityId),
    /// The standard or extended space is full.
    #[error("no space is left for {0}")]
    Full(CapabilityId),
}

/// Start and end of the space for standard capabilities.
const STANDARD: (u16, u16) = (0x40, 0x100);
/// Header length of a standard and of an extended capability, in bytes.
const HEADERS: (u16, u16) = (2, 4);

/// Encodes the 4096 bytes of a function, structure by structure.
///
/// A register whose offset depends on another one (the upper half of the MSI address, the registers of a root port) is
/// written after that one. [`Writer::finish`] returns the first error.
///
/// ```
/// use lanemark_wire::config::{CapabilityId, ConfigSpace, PortType, Spot, Writer, header::HEADER, pcie::PCI_EXPRESS};
/// let mut writer = Writer::new();
/// writer.header(|header| {
///     header.number(const { Spot::of(&HEADER, "Vendor ID", "Vendor ID") }, 0x1234);
/// });
/// writer.capability(CapabilityId::PCI_EXPRESS, |express| {
///     express.number(const { Spot::of(&PCI_EXPRESS, "Express", "Version") }, 2);
///     express.number(const { Spot::of(&PCI_EXPRESS, "DevCtl", "MaxPayload") }, 256);
/// });
/// let bytes = writer.finish()?;
/// let pcie = ConfigSpace::new(&bytes).pcie().unwrap();
/// assert_eq!((pcie.port_type(), pcie.max_payload()), (Ok(PortType::Endpoint), Ok(256)));
/// # Ok::<(), lanemark_wire::config::WriteError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    /// Offset of the pointer to the next standard capability.
    pointer: u16,
    /// Offset of the last extended capability.
    last: Option<u16>,
    /// First free offset of each list.
    free: (u16, u16),
    error: Option<WriteError>,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer::new()
    }
}

impl Writer {
    /// A function with all bytes zero.
    #[must_use]
    pub fn new() -> Writer {
        let free = (STANDARD.0, STANDARD.1);
        Writer { bytes: vec![0; ConfigSpace::BYTES], pointer: POINTER, last: None, free, error: None }
    }

    /// Writes fields of the header.
    pub fn header(&mut self, fill: impl FnOnce(&mut Structure<'_>)) {
        fill(&mut Structure { bytes: &mut self.bytes, offset: 0, layout: &HEADER, error: &mut self.error });
    }

    /// Appends a capability to its list and writes its fields; an extended one gets version 1.
    pub fn capability(&mut self, id: CapabilityId, fill: impl FnOnce(&mut Structure<'_>)) {
        self.capability_of(id, 1, fill);
    }

    /// As [`Writer::capability`], with the version of an extended capability.
    pub fn capability_of(&mut self, id: CapabilityId, version: u8, fill: impl FnOnce(&mut Structure<'_>)) {
        let Some(row) = capability_row(id) else { return self.note(WriteError::Unnamed(id)) };
        let (offset, end) = match id {
            CapabilityId::Standard(_) => (self.free.0, STANDARD.1),
            CapabilityId::Extended(_) => (self.free.1, ConfigSpace::BYTES as u16),
        };
        if offset + SHORTEST > end {
            return self.note(WriteError::Full(id));
        }
        fill(&mut Structure { bytes: &mut self.bytes, offset, layout: row.layout, error: &mut self.error });
        let header = if matches!(id, CapabilityId::Standard(_)) { HEADERS.0 } else { HEADERS.1 };
        let region = Region::new(ConfigSpace::new(&self.bytes), offset, row.layout);
        let behind = offset + region.needed_bytes().max(header).next_multiple_of(4);
        if behind > end {
            return self.note(WriteError::Full(id));
        }
        match id {
            CapabilityId::Standard(number) => {
                self.put(offset, &[number]);
                self.put(self.pointer, &[offset as u8]);
                self.pointer = offset + 1;
                self.free.0 = behind;
                self.header(|header| header.flag(const { Spot::of(&HEADER, "Status", "Cap") }, true));
            }
            CapabilityId::Extended(number) => {
                self.put(offset, &(u32::from(number) | u32::from(version & 0xf) << 16).to_le_bytes());
                if let Some(last) = self.last {
                    // Bits 15:4 hold the next pointer, the lowest four the version.
                    let version = self.bytes[usize::from(last) + 2] & 0xf;
                    self.put(last + 2, &(offset << 4 | u16::from(version)).to_le_bytes());
                }
                self.last = Some(offset);
                self.free.1 = behind;
            }
        }
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// The first [`WriteError`], if any.
    pub fn finish(self) -> Result<Vec<u8>, WriteError> {
        self.error.map_or(Ok(self.bytes), Err)
    }

    fn put(&mut self, offset: u16, bytes: &[u8]) {
        self.bytes[usize::from(offset)..][..bytes.len()].copy_from_slice(bytes);
    }

    fn note(&mut self, error: WriteError) {
        self.error.get_or_insert(error);
    }
}

/// Offset of the Capabilities Pointer.
const POINTER: u16 = 0x34;
/// Length of the shortest capability, in bytes.
const SHORTEST: u16 = 4;

/// A structure being written.
#[derive(Debug)]
pub struct Structure<'a> {
    bytes: &'a mut [u8],
    offset: u16,
    layout: &'static Layout,
    error: &'a mut Option<WriteError>,
}

impl Structure<'_> {
    /// Writes a flag.
    pub fn flag(&mut self, spot: Spot, on: bool) {
        self.write(spot, Reading::Flag(on), u64::from(on));
    }

    /// Writes a number: plain, in the unit of its row, or as a set of bits.
    pub fn number(&mut self, spot: Spot, number: u64) {
        let reading = match spot.field.meaning {
            Meaning::Hex => Reading::Hex(number, spot.field.width().div_ceil(4)),
            Meaning::Linear { unit, .. } | Meaning::Power { unit, .. } => Reading::Quantity(number, unit),
            Meaning::AnyOf(names) => Reading::Names(number, names),
            Meaning::Computed(read) => match read(0) {
                Reading::Quantity(_, unit) => Reading::Quantity(number, unit),
                _ => Reading::Number(number),
            },
            Meaning::Flag | Meaning::Number | Meaning::OneOf(_) => Reading::Number(number),
        };
        self.write(spot, reading, number);
    }

    /// Writes a code that is not reserved.
    pub fn code(&mut self, spot: Spot, raw: u64) {
        self.write(spot, spot.field.read(raw), raw);
    }

    /// Writes the code with this name.
    pub fn name(&mut self, spot: Spot, name: &'static str) {
        self.write(spot, Reading::Name(name), name.len() as u64);
    }

    fn write(&mut self, spot: Spot, reading: Reading, value: u64) {
        let (structure, register, field) = (self.layout.name, spot.register.name, spot.field.name);
        let region = Region::new(ConfigSpace::new(self.bytes), self.offset, self.layout);
        let is_meant = |other: &Register| {
            (other.name, other.offset, other.section) == (register, spot.register.offset, spot.register.section)
        };
        let is_of_it = self.layout.blocks.iter().flat_map(|block| block.registers).any(is_meant);
        let place = region.place_of(spot, 0).ok().filter(|_| is_of_it);
        let there = place.and_then(|place| Some((place, region.read(place, spot.register.bytes)?)));
        let Some((place, now)) = there else {
            self.error.get_or_insert(WriteError::NotThere { structure, register });
            return;
        };
        let Some(raw) = spot.field.raw_of(reading) else {
            self.error.get_or_insert(WriteError::NoCode { structure, register, field, value });
            return;
        };
        let at = usize::from(self.offset + place);
        let len = usize::from(spot.register.bytes);
        self.bytes[at..at + len].copy_from_slice(&spot.field.put(now, raw).to_le_bytes()[..len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::capability::CAPABILITIES;
    use crate::config::conventional::MSI;
    use crate::config::identity::SERIAL_NUMBER;
    use crate::config::pcie::PCI_EXPRESS;

    fn layouts() -> impl Iterator<Item = &'static Layout> {
        CAPABILITIES.iter().map(|row| row.layout).chain([&HEADER])
    }

    #[test]
    fn every_code_of_every_field_round_trips() {
        let mut codes = 0;
        for layout in layouts() {
            let registers = layout.blocks.iter().flat_map(|block| block.registers);
            for field in registers.flat_map(|register| register.fields) {
                let most = (1 << field.width().min(12)) - 1;
                for raw in 0..=most {
                    let reading = field.read(raw);
                    if matches!(reading, Reading::Reserved(_)) {
                        continue;
                    }
                    let written = field.raw_of(reading);
                    // Of two codes with the same meaning, the lower one is written.
                    let says = written.map(|written| field.read(written));
                    assert_eq!(says, Some(reading), "{}, {}: {raw:#x}", layout.name, field.name);
                    assert!(written <= Some(raw));
                    codes += 1;
                }
            }
        }
        assert!(codes > 10_000, "{codes}");
    }

    #[test]
    fn writing_a_field_preserves_the_other_bits() {
        let field = Spot::of(&PCI_EXPRESS, "DevCtl", "MaxPayload").field;
        assert_eq!(field.put(0xffff, 0), 0xff1f);
        assert_eq!(field.put(0, 7), 0x00e0);
        assert_eq!(field.of(field.put(0x5a5a, 3)), 3);
    }

    #[test]
    fn appended_capabilities_form_two_valid_lists() {
        let mut writer = Writer::new();
        writer.capability(CapabilityId::PCI_EXPRESS, |express| {
            express.number(const { Spot::of(&PCI_EXPRESS, "Express", "Version") }, 2);
        });
        writer.capability(CapabilityId::MSI, |msi| {
            msi.flag(const { Spot::of(&MSI, "Message Control", "64bit") }, true);
        });
        for number in [1, 2] {
            writer.capability_of(CapabilityId::SERIAL_NUMBER, 3, |serial| {
                serial.number(const { Spot::of(&SERIAL_NUMBER, "Serial Number", "Serial Number") }, number);
            });
        }
        let bytes = writer.finish().unwrap();
        let space = ConfigSpace::new(&bytes);
        assert_eq!(space.chain_faults().count(), 0);
        let met: Vec<_> = space.capabilities().map(|met| (met.id(), met.offset(), met.version())).collect();
        let wanted = [
            (CapabilityId::PCI_EXPRESS, 0x40, None),
            (CapabilityId::MSI, 0x74, None),
            (CapabilityId::SERIAL_NUMBER, 0x100, Some(3)),
            (CapabilityId::SERIAL_NUMBER, 0x10c, Some(3)),
        ];
        assert_eq!(met, wanted);
        assert_eq!(space.serial_number(), Ok(1));
    }

    #[test]
    fn a_value_without_a_code_is_refused() {
        let payload = |bytes| {
            let mut writer = Writer::new();
            writer.capability(CapabilityId::PCI_EXPRESS, |express| {
                express.number(const { Spot::of(&PCI_EXPRESS, "DevCtl", "MaxPayload") }, bytes);
            });
            writer.finish()
        };
        assert!(payload(4096).is_ok() && payload(128).is_ok());
        for wrong in [0, 64, 129, 8192] {
            let error = payload(wrong).unwrap_err();
            assert!(matches!(error, WriteError::NoCode { field: "MaxPayload", .. }), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_register_that_does_not_exist_in_this_function_is_refused() {
        let root = |port_type| {
            let mut writer = Writer::new();
            writer.capability(CapabilityId::PCI_EXPRESS, |express| {
                express.name(const { Spot::of(&PCI_EXPRESS, "Express", "Type") }, port_type);
                express.flag(const { Spot::of(&PCI_EXPRESS, "RootCtl", "ErrFatal") }, true);
            });
            writer.finish()
        };
        assert!(root("Root Port").is_ok());
        let error = WriteError::NotThere { structure: "PCI Express", register: "RootCtl" };
        assert_eq!(root("Endpoint"), Err(error));
        let mut writer = Writer::new();
        writer.header(|header| header.flag(const { Spot::of(&MSI, "Message Control", "64bit") }, true));
        assert!(matches!(writer.finish(), Err(WriteError::NotThere { structure: "Header", .. })));
    }

    #[test]
    fn capabilities_are_accepted_until_the_space_is_full() {
        // 192 bytes from 0x40 to 0x100; each capability has 14 bytes and starts at a DW.
        let mut writer = Writer::new();
        for _ in 0..12 {
            writer.capability(CapabilityId::MSI, |msi| {
                msi.flag(const { Spot::of(&MSI, "Message Control", "64bit") }, true);
            });
        }
        assert!(writer.clone().finish().is_ok());
        writer.capability(CapabilityId::MSI, |_| {});
        assert_eq!(writer.finish(), Err(WriteError::Full(CapabilityId::MSI)));
    }
}
