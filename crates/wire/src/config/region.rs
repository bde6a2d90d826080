//! Reads a structure of configuration space by its table.

use super::table::{Block, Presence, Reading, Region, Register, Spot};
use super::unknown::Unknown;

/// The value of one field of one register.
///
/// `Display` prints it in the style of `lspci`: `LnkSta: Speed 8GT/s`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldValue {
    /// Name of the structure: `PCI Express`, `Advanced Error Reporting`.
    pub structure: &'static str,
    /// Offset of the structure in configuration space; 0 is the header.
    pub structure_offset: u16,
    /// Index and name of the instance in a repeated block: `(2, "BAR")`.
    pub instance: Option<(u16, &'static str)>,
    /// Name of the register: `LnkSta`.
    pub register: &'static str,
    /// Offset of the register in configuration space.
    pub register_offset: u16,
    /// Name of the field: `Speed`.
    pub field: &'static str,
    /// Highest bit in the register.
    pub high: u8,
    /// Lowest bit in the register.
    pub low: u8,
    /// Raw bits.
    pub raw: u64,
    /// Decoded value.
    pub reading: Reading,
    /// Document that defines the field.
    pub source: &'static str,
    /// Section in that document.
    pub section: &'static str,
}

impl std::fmt::Display for FieldValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.register, self.field)?;
        match self.reading {
            Reading::Flag(_) => write!(f, "{}", self.reading),
            _ => write!(f, " {}", self.reading),
        }
    }
}

impl Region<'_> {
    /// Reads `bytes` (1 to 8) little-endian bytes at `offset` from its start. `None` if they are not visible, or extend
    /// from the standard into the extended space.
    #[must_use]
    pub fn read(&self, offset: u16, bytes: u8) -> Option<u64> {
        let at = self.offset.checked_add(offset)?;
        if self.offset < 0x100 && at + u16::from(bytes) > 0x100 {
            return None;
        }
        self.space.read(at, bytes)
    }

    /// The bits of a field; of the first instance in a repeated block. See [`Region::bits_at`].
    ///
    /// # Errors
    /// The register is not in this structure, or is not visible.
    pub fn bits(&self, spot: Spot) -> Result<u64, Unknown> {
        self.bits_at(spot, 0)
    }

    /// The value of the register that contains a field.
    ///
    /// # Errors
    /// The register is not in this structure, or is not visible.
    pub fn register(&self, spot: Spot) -> Result<u64, Unknown> {
        self.register_at(spot, 0)
    }

    /// The bits of a field in instance `index` of a repeated block.
    ///
    /// # Errors
    /// The register is not in this structure, or is not visible.
    pub fn bits_at(&self, spot: Spot, index: u16) -> Result<u64, Unknown> {
        Ok(spot.field.of(self.register_at(spot, index)?))
    }

    fn register_at(&self, spot: Spot, index: u16) -> Result<u64, Unknown> {
        let offset = self.place_of(spot, index)?;
        self.read(offset, spot.register.bytes).ok_or(Unknown::NotVisible {
            structure: self.layout.name,
            register: spot.register.name,
            offset: self.offset.saturating_add(offset),
            visible: self.space.bytes().len(),
        })
    }

    /// Offset of the register of a field from the start of the structure, in instance `index` of a repeated block.
    pub(super) fn place_of(&self, spot: Spot, index: u16) -> Result<u16, Unknown> {
        let absent = |only| Unknown::NotThere { structure: self.layout.name, register: spot.register.name, only };
        let base = match spot.block.presence {
            Presence::Always => 0,
            Presence::If { test, only } => {
                if !test(self) {
                    return Err(absent(only));
                }
                0
            }
            Presence::Times { count, first, stride, each } => {
                if index >= count(self) {
                    return Err(absent(each));
                }
                instance_offset(first(self), stride, index)
            }
        };
        Ok(base.saturating_add(spot.register.offset))
    }

    /// The value of a one-bit field.
    ///
    /// # Errors
    /// The register is not in this structure, or is not visible.
    pub fn flag(&self, spot: Spot) -> Result<bool, Unknown> {
        Ok(self.bits(spot)? != 0)
    }

    /// The decoded value of a field.
    ///
    /// # Errors
    /// The register is not in this structure, or is not visible. A reserved code is a [`Reading`].
    pub fn reading(&self, spot: Spot) -> Result<Reading, Unknown> {
        self.reading_at(spot, 0)
    }

    /// The decoded value of a field in instance `index` of a repeated block.
    ///
    /// # Errors
    /// The register is not in this structure, or is not visible. A reserved code is a [`Reading`].
    pub fn reading_at(&self, spot: Spot, index: u16) -> Result<Reading, Unknown> {
        Ok(spot.field.read(self.bits_at(spot, index)?))
    }

    /// The numeric value of a field, in the unit of its row.
    ///
    /// # Errors
    /// The register is not in this structure or not visible, or the code is reserved.
    pub fn quantity(&self, spot: Spot) -> Result<u64, Unknown> {
        self.quantity_at(spot, 0)
    }

    /// The numeric value of a field in instance `index` of a repeated block.
    ///
    /// # Errors
    /// The register is not in this structure or not visible, or the code is reserved.
    pub fn quantity_at(&self, spot: Spot, index: u16) -> Result<u64, Unknown> {
        let raw = self.bits_at(spot, index)?;
        match spot.field.read(raw) {
            Reading::Quantity(value, _) | Reading::Number(value) | Reading::Hex(value, _) => Ok(value),
            _ => Err(self.reserved(spot, raw)),
        }
    }

    pub(super) fn reserved(&self, spot: Spot, raw: u64) -> Unknown {
        Unknown::Reserved { structure: self.layout.name, register: spot.register.name, field: spot.field.name, raw }
    }

    /// Every register that exists: instance, offset from the start, row.
    pub fn registers(self) -> impl Iterator<Item = (Option<(u16, &'static str)>, u16, &'static Register)> {
        self.layout.blocks.iter().flat_map(move |block| {
            instances(&self, block).flat_map(move |(instance, base)| {
                block.registers.iter().map(move |register| (instance, base.saturating_add(register.offset), register))
            })
        })
    }

    /// Every visible field, in table order.
    pub fn fields(self) -> impl Iterator<Item = FieldValue> {
        self.registers().flat_map(move |(instance, offset, register)| {
            let value = self.read(offset, register.bytes);
            value.into_iter().flat_map(move |value| {
                register.fields.iter().map(move |field| {
                    let raw = field.of(value);
                    FieldValue {
                        structure: self.layout.name,
                        structure_offset: self.offset,
                        instance,
                        register: register.name,
                        register_offset: self.offset + offset,
                        field: field.name,
                        high: field.high,
                        low: field.low,
                        raw,
                        reading: field.read(raw),
                        source: self.layout.source,
                        section: register.section,
                    }
                })
            })
        })
    }

    /// Bytes from its start to the end of its last existing register, visible or not.
    #[must_use]
    pub fn needed_bytes(&self) -> u16 {
        self.registers().map(|(_, offset, register)| offset.saturating_add(register.bytes.into())).max().unwrap_or(0)
    }
}

fn instance_offset(first: u16, stride: u16, index: u16) -> u16 {
    first.saturating_add(stride.saturating_mul(index))
}

type Instance = (Option<(u16, &'static str)>, u16);

fn instances(region: &Region<'_>, block: &Block) -> impl Iterator<Item = Instance> + use<> {
    let (times, first, stride, each) = match block.presence {
        Presence::Always => (1, 0, 0, None),
        Presence::If { test, .. } => (u16::from(test(region)), 0, 0, None),
        Presence::Times { count, first, stride, each } => (count(region), first(region), stride, Some(each)),
    };
    (0..times).map(move |index| (each.map(|each| (index, each)), instance_offset(first, stride, index)))
}
