//! Tables that describe registers and their fields.
//!
//! A [`Layout`] is one structure of configuration space (the header, a capability). Its [`Block`]s are groups of
//! registers that exist together, possibly repeated (per BAR, per virtual channel, per lane). A [`Field`] gives the
//! position and meaning of some bits; bits in no field are reserved, or not described here. A [`Region`] is a layout at
//! an offset of a configuration space.

use super::space::ConfigSpace;
use std::fmt;

/// The edition of the specification whose sections the rows cite.
pub const PCIE_BASE: &str = "PCI Express Base Specification 6.0";

/// A structure of configuration space and the table that describes it.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    pub(super) space: ConfigSpace<'a>,
    pub(super) offset: u16,
    pub(super) layout: &'static Layout,
}

impl<'a> Region<'a> {
    pub(super) const fn new(space: ConfigSpace<'a>, offset: u16, layout: &'static Layout) -> Region<'a> {
        Region { space, offset, layout }
    }

    /// The configuration space that contains it.
    #[must_use]
    pub const fn space(&self) -> ConfigSpace<'a> {
        self.space
    }

    /// Offset in configuration space.
    #[must_use]
    pub const fn offset(&self) -> u16 {
        self.offset
    }

    /// Its table.
    #[must_use]
    pub const fn layout(&self) -> &'static Layout {
        self.layout
    }
}

/// One structure of configuration space: the header, or a capability.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Name in the specification.
    pub name: &'static str,
    /// Groups of registers, in order of offsets where those are fixed.
    pub blocks: &'static [Block],
    /// Document that defines it; every [`Register::section`] is a section of this document.
    pub source: &'static str,
}

/// Registers that exist together, once or repeated.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Condition, count and position.
    pub presence: Presence,
    /// The registers, with offsets from the start of the block.
    pub registers: &'static [Register],
}

/// When the registers of a [`Block`] exist.
#[derive(Clone, Copy, Debug)]
pub enum Presence {
    /// Always, at the start of the structure.
    Always,
    /// Only if a condition holds.
    If {
        /// The condition.
        test: fn(&Region<'_>) -> bool,
        /// Description of the condition, as the end of "it exists only ...".
        only: &'static str,
    },
    /// Repeated a number of times.
    Times {
        /// Number of instances.
        count: fn(&Region<'_>) -> u16,
        /// Offset of the first instance from the start of the structure.
        first: fn(&Region<'_>) -> u16,
        /// Distance between instances, in bytes.
        stride: u16,
        /// Name of an instance, such as `BAR` or `lane`.
        each: &'static str,
    },
}

/// A register: 1 to 8 bytes, little endian.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// Name, spelled as in `lspci` where it has one.
    pub name: &'static str,
    /// Offset from the start of the block.
    pub offset: u16,
    /// Size: 1, 2, 3, 4 or 8.
    pub bytes: u8,
    /// Section that defines it.
    pub section: &'static str,
    /// Fields. Bits in no field are reserved, or not described here.
    pub fields: &'static [Field],
}

/// A field: some bits of a register.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name, spelled as in `lspci` where it has one.
    pub name: &'static str,
    /// Highest bit.
    pub high: u8,
    /// Lowest bit.
    pub low: u8,
    /// Meaning of the bits.
    pub meaning: Meaning,
}

/// Encoding of a [`Field`].
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// One bit: on or off.
    Flag,
    /// A number.
    Number,
    /// A number printed in hexadecimal: bits, IDs or addresses.
    Hex,
    /// `(raw + add) × scale`, in a unit.
    Linear {
        /// Offset, added first.
        add: u64,
        /// Factor, applied second.
        scale: u64,
        /// Unit of the result.
        unit: &'static str,
    },
    /// `base << raw`, in a unit; codes above `most` are reserved.
    Power {
        /// Value of code 0.
        base: u64,
        /// Unit of the result.
        unit: &'static str,
        /// Highest code that is not reserved.
        most: u8,
    },
    /// A code with a name; codes not listed are reserved.
    OneOf(&'static [(u64, &'static str)]),
    /// A set of named bits; set bits not listed are reserved.
    AnyOf(&'static [(u64, &'static str)]),
    /// Any other encoding.
    Computed(fn(u64) -> Reading),
}

/// The decoded value of a field, for programs and for display ([`fmt::Display`]).
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
    /// A number printed with this many hexadecimal digits.
    Hex(u64, u8),
    /// A number with its unit.
    Quantity(u64, &'static str),
    /// Name of a code.
    Name(&'static str),
    /// The set bits, with their names.
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
    /// Number of bits.
    #[must_use]
    pub const fn width(&self) -> u8 {
        self.high - self.low + 1
    }

    /// Extracts the field from the value of the register.
    #[must_use]
    pub const fn of(&self, register: u64) -> u64 {
        (register >> self.low) & (u64::MAX >> (64 - self.width() as u32))
    }

    /// Replaces the field in the value of the register.
    #[must_use]
    pub const fn put(&self, register: u64, raw: u64) -> u64 {
        let mask = u64::MAX >> (64 - self.width() as u32);
        register & !(mask << self.low) | (raw & mask) << self.low
    }

    /// Encodes a decoded value: the inverse of [`Field::read`]. `None` if no code has this meaning.
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

    /// Decodes raw bits, as returned by [`Field::of`].
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

/// Limit of the search for a code of a computed field; the widest has ten bits.
const MOST_CODES: u64 = 1 << 16;

// Constructors of table rows.

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

/// A field of a layout, looked up at compile time: an unknown name does not compile.
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
    /// The field `field` of the first register named `register`.
    ///
    /// # Panics
    /// If no row has these names; in a constant this is a compile error.
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
