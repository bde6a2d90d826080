//! How a standard is written down: registers and their fields as rows.
//!
//! A [`Layout`] is one structure of configuration space (the header, a capability). Its [`Block`]s are runs of
//! registers that are there together, perhaps several times (one per BAR, per virtual channel, per lane). A
//! [`Field`] says where it stands and what its bits mean; bits in no row are
//! reserved, or not described here.

use super::region::Region;
use std::fmt;

/// The edition whose sections the rows of this module name.
pub const PCIE_BASE: &str = "PCI Express Base Specification 6.0";

/// One structure of configuration space: the header, or a capability.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Its name in the specification.
    pub name: &'static str,
    /// Runs of registers, in the order of their offsets where that is fixed.
    pub blocks: &'static [Block],
    /// The document that defines it; each [`Register::section`] is a section of this.
    pub source: &'static str,
}

/// Registers that are there together, once or several times.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// When they are there, how often, and where.
    pub presence: Presence,
    /// The registers; their offsets count from the block.
    pub registers: &'static [Register],
}

/// When the registers of a [`Block`] are there.
#[derive(Clone, Copy, Debug)]
pub enum Presence {
    /// In every such structure, at its start.
    Always,
    /// If a bit elsewhere says so.
    If {
        /// Asks that bit.
        test: fn(&Region<'_>) -> bool,
        /// What the test asks for, as the end of "it is there only ...".
        only: &'static str,
    },
    /// As often as a number elsewhere says.
    Times {
        /// Reads that number.
        count: fn(&Region<'_>) -> u16,
        /// Offset of the first from the start of the structure.
        first: fn(&Region<'_>) -> u16,
        /// Bytes from one to the next.
        stride: u16,
        /// What is counted, such as `BAR` or `lane`.
        each: &'static str,
    },
}

/// A register: 1 to 8 bytes, little endian.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// Its name, in `lspci`'s spelling where `lspci` has one.
    pub name: &'static str,
    /// Offset from the block.
    pub offset: u16,
    /// 1, 2, 3, 4 or 8.
    pub bytes: u8,
    /// The section that defines it.
    pub section: &'static str,
    /// Its fields. Bits in no field are reserved, or not described here.
    pub fields: &'static [Field],
}

/// Some bits of a register.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name, in `lspci`'s spelling where `lspci` has one.
    pub name: &'static str,
    /// Highest bit.
    pub high: u8,
    /// Lowest bit.
    pub low: u8,
    /// What the bits mean.
    pub meaning: Meaning,
}

/// What the bits of a [`Field`] mean.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// One bit: on or off.
    Flag,
    /// A number.
    Number,
    /// A number whose digits are bits, ids or addresses.
    Hex,
    /// `(raw + add) × scale`, in a unit.
    Linear {
        /// Added first.
        add: u64,
        /// Multiplied then.
        scale: u64,
        /// The unit of the result.
        unit: &'static str,
    },
    /// `base << raw`, in a unit; above `most` it is reserved.
    Power {
        /// What 0 means.
        base: u64,
        /// The unit of the result.
        unit: &'static str,
        /// Highest code that is not reserved.
        most: u8,
    },
    /// A code; what is not listed is reserved.
    OneOf(&'static [(u64, &'static str)]),
    /// A set of bits with a name each; a set bit that is not listed is reserved.
    AnyOf(&'static [(u64, &'static str)]),
    /// Something that none of the above writes down.
    Computed(fn(u64) -> Reading),
}

/// What a field says, for humans ([`fmt::Display`]) and for programs.
///
/// ```
/// use lanemark_wire::config::Reading;
/// assert_eq!(Reading::Quantity(256, "bytes").to_string(), "256 bytes");
/// assert_eq!(Reading::Flag(true).to_string(), "+");
/// assert_eq!(Reading::Reserved(7).to_string(), "reserved (0x7)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// On or off; printed `+` or `-`.
    Flag(bool),
    /// A number.
    Number(u64),
    /// A number printed in so many hexadecimal digits.
    Hex(u64, u8),
    /// A number with its unit.
    Quantity(u64, &'static str),
    /// What a code means.
    Name(&'static str),
    /// The named bits that are set.
    Names(u64, &'static [(u64, &'static str)]),
    /// A code that the specification does not define.
    Reserved(u64),
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Reading::Flag(on) => f.write_str(if on { "+" } else { "-" }),
            Reading::Number(number) => write!(f, "{number}"),
            Reading::Hex(number, digits) => write!(f, "{number:00$x}", usize::from(digits)),
            Reading::Quantity(number, unit) => write!(f, "{number} {unit}"),
            Reading::Name(name) => f.write_str(name),
            Reading::Names(raw, names) => {
                let mut left = raw;
                let mut separator = "";
                for (bits, name) in names.iter().filter(|(bits, _)| raw & bits == *bits) {
                    write!(f, "{separator}{name}")?;
                    separator = " ";
                    left &= !bits;
                }
                match (left, separator) {
                    (0, "") => f.write_str("none"),
                    (0, _) => Ok(()),
                    _ => write!(f, "{separator}reserved ({left:#x})"),
                }
            }
            Reading::Reserved(raw) => write!(f, "reserved ({raw:#x})"),
        }
    }
}

impl Field {
    /// How many bits.
    #[must_use]
    pub const fn width(&self) -> u8 {
        self.high - self.low + 1
    }

    /// Its bits of the register's value.
    #[must_use]
    pub const fn of(&self, register: u64) -> u64 {
        (register >> self.low) & (u64::MAX >> (64 - self.width() as u32))
    }

    /// The register's value with these bits in the place of its own.
    #[must_use]
    pub const fn put(&self, register: u64, raw: u64) -> u64 {
        let mask = u64::MAX >> (64 - self.width() as u32);
        register & !(mask << self.low) | (raw & mask) << self.low
    }

    /// The bits that say this, if there are such: what [`Field::read`] reads, the other way round.
    ///
    /// ```
    /// use lanemark_wire::config::{Reading, Spot, pcie::PCI_EXPRESS};
    /// let payload = Spot::of(&PCI_EXPRESS, "DevCtl", "MaxPayload").field;
    /// assert_eq!(payload.raw_of(Reading::Quantity(512, "bytes")), Some(2));
    /// assert_eq!(payload.raw_of(Reading::Quantity(500, "bytes")), None);
    /// ```
    #[must_use]
    pub fn raw_of(&self, reading: Reading) -> Option<u64> {
        let most = u64::MAX >> (64 - u32::from(self.width()));
        let raw = match (self.meaning, reading) {
            (Meaning::Flag, Reading::Flag(on)) => u64::from(on),
            (Meaning::Number, Reading::Number(raw))
            | (Meaning::Hex, Reading::Hex(raw, _))
            | (Meaning::AnyOf(_), Reading::Names(raw, _)) => raw,
            (Meaning::Linear { add, scale, .. }, Reading::Quantity(value, _)) => (value / scale).checked_sub(add)?,
            (Meaning::Power { base, .. }, Reading::Quantity(value, _)) => u64::from((value / base).checked_ilog2()?),
            (Meaning::OneOf(names), Reading::Name(name)) => names.iter().find(|(_, other)| *other == name)?.0,
            (Meaning::Computed(_), _) => (0..=most.min(MOST_CODES)).find(|raw| self.read(*raw) == reading)?,
            _ => return None,
        };
        (raw <= most && self.read(raw) == reading).then_some(raw)
    }

    /// What these bits (of [`Field::of`]) say.
    #[must_use]
    pub fn read(&self, raw: u64) -> Reading {
        match self.meaning {
            Meaning::Flag => Reading::Flag(raw != 0),
            Meaning::Number => Reading::Number(raw),
            Meaning::Hex => Reading::Hex(raw, self.width().div_ceil(4)),
            Meaning::Linear { add, scale, unit } => Reading::Quantity((raw + add) * scale, unit),
            Meaning::Power { base, unit, most } => match raw {
                raw if raw <= u64::from(most) => Reading::Quantity(base << raw, unit),
                raw => Reading::Reserved(raw),
            },
            Meaning::OneOf(names) => names
                .iter()
                .find(|(code, _)| *code == raw)
                .map_or(Reading::Reserved(raw), |(_, name)| Reading::Name(name)),
            Meaning::AnyOf(names) => Reading::Names(raw, names),
            Meaning::Computed(read) => read(raw),
        }
    }
}

/// Codes of a field that is computed; the widest has ten bits.
const MOST_CODES: u64 = 1 << 16;

// The words the tables are written in.

pub(in crate::config) const fn layout(name: &'static str, blocks: &'static [Block]) -> Layout {
    Layout { name, blocks, source: PCIE_BASE }
}

pub(in crate::config) const fn always(registers: &'static [Register]) -> Block {
    Block { presence: Presence::Always, registers }
}

pub(in crate::config) const fn only(
    only: &'static str,
    test: fn(&Region<'_>) -> bool,
    registers: &'static [Register],
) -> Block {
    Block { presence: Presence::If { test, only }, registers }
}

pub(in crate::config) const fn register(
    name: &'static str,
    offset: u16,
    bytes: u8,
    section: &'static str,
    fields: &'static [Field],
) -> Register {
    Register { name, offset, bytes, section, fields }
}

pub(in crate::config) const fn flag(name: &'static str, bit: u8) -> Field {
    Field { name, high: bit, low: bit, meaning: Meaning::Flag }
}

pub(in crate::config) const fn number(name: &'static str, high: u8, low: u8) -> Field {
    Field { name, high, low, meaning: Meaning::Number }
}

pub(in crate::config) const fn hex(name: &'static str, high: u8, low: u8) -> Field {
    Field { name, high, low, meaning: Meaning::Hex }
}

pub(in crate::config) const fn linear(
    name: &'static str,
    high: u8,
    low: u8,
    add: u64,
    scale: u64,
    unit: &'static str,
) -> Field {
    Field { name, high, low, meaning: Meaning::Linear { add, scale, unit } }
}

pub(in crate::config) const fn power(
    name: &'static str,
    high: u8,
    low: u8,
    base: u64,
    unit: &'static str,
    most: u8,
) -> Field {
    Field { name, high, low, meaning: Meaning::Power { base, unit, most } }
}

pub(in crate::config) const fn one_of(
    name: &'static str,
    high: u8,
    low: u8,
    names: &'static [(u64, &'static str)],
) -> Field {
    Field { name, high, low, meaning: Meaning::OneOf(names) }
}

pub(in crate::config) const fn any_of(
    name: &'static str,
    high: u8,
    low: u8,
    names: &'static [(u64, &'static str)],
) -> Field {
    Field { name, high, low, meaning: Meaning::AnyOf(names) }
}

pub(in crate::config) const fn computed(name: &'static str, high: u8, low: u8, read: fn(u64) -> Reading) -> Field {
    Field { name, high, low, meaning: Meaning::Computed(read) }
}

/// One field of one layout, looked up when the program is compiled: a name that no row has does not compile.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// The block.
    pub block: &'static Block,
    /// The register.
    pub register: &'static Register,
    /// The field.
    pub field: &'static Field,
}

impl Spot {
    /// The field of this name in the first register of that name.
    ///
    /// # Panics
    /// If no row has these names; in a constant that is an error of compilation.
    #[must_use]
    pub const fn of(layout: &'static Layout, register: &str, field: &str) -> Spot {
        let mut block = 0;
        while block < layout.blocks.len() {
            let registers = layout.blocks[block].registers;
            let mut at = 0;
            while at < registers.len() {
                if same(registers[at].name, register) {
                    let fields = registers[at].fields;
                    let mut index = 0;
                    while index < fields.len() {
                        if same(fields[index].name, field) {
                            return Spot {
                                block: &layout.blocks[block],
                                register: &registers[at],
                                field: &fields[index],
                            };
                        }
                        index += 1;
                    }
                }
                at += 1;
            }
            block += 1;
        }
        panic!("no row of this layout has this register and field")
    }
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}
