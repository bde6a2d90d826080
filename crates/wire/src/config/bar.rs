//! Base address registers (BARs). Sizes are not decoded: a size is read after writing all ones, which a view over bytes
//! cannot do (Linux exports sizes in the sysfs file `resource`).

use super::ConfigSpace;
use super::header::HeaderType;

/// Address space and width of a BAR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BarKind {
    /// I/O space.
    Io,
    /// Memory below 4 GiB.
    Memory32,
    /// Memory below 1 MiB (type 01, of PCI 2.x).
    MemoryBelow1Mib,
    /// Memory at any address; two registers.
    Memory64,
    /// 64-bit memory in the last register, where no register is left for the upper half.
    Memory64WithoutUpperHalf,
    /// Memory of the reserved type 11.
    MemoryReserved,
}

/// A base address register, or a pair of them for 64 bits.
///
/// ```
/// use lanemark_wire::config::{BarKind, ConfigSpace};
/// let mut bytes = [0u8; 64];
/// bytes[0x10..0x18].copy_from_slice(&[0x0c, 0, 0, 0xf0, 0x38, 0, 0, 0]);
/// bytes[0x18..0x1c].copy_from_slice(&[0x01, 0xe0, 0, 0]);
/// let bars: Vec<_> = ConfigSpace::new(&bytes).bars().collect();
/// assert_eq!((bars[0].index, bars[0].kind, bars[0].prefetchable), (0, BarKind::Memory64, true));
/// assert_eq!(bars[0].address(), 0x38_f000_0000);
/// assert_eq!((bars[1].index, bars[1].kind, bars[1].address()), (2, BarKind::Io, 0xe000));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bar {
    /// Index: 0 to 5 in an endpoint, 0 or 1 in a bridge.
    pub index: u8,
    /// Address space and width.
    pub kind: BarKind,
    /// Prefetchable: reads have no side effects, and writes may be merged.
    pub prefetchable: bool,
    /// Value of the register, or of both registers of a pair, including the type bits.
    pub raw: u64,
}

impl Bar {
    /// Base address on the bus; 0 if none is assigned.
    #[must_use]
    pub const fn address(&self) -> u64 {
        match self.kind {
            BarKind::Io => self.raw & !0x3,
            _ => self.raw & !0xf,
        }
    }
}

impl<'a> ConfigSpace<'a> {
    /// The visible nonzero BARs. A BAR of zero is either unimplemented or a 32-bit BAR without an address; only its
    /// size would tell.
    pub fn bars(&self) -> impl Iterator<Item = Bar> + use<'a> {
        let space = *self;
        let count = match space.header_type() {
            Ok(HeaderType::Endpoint) => 6,
            Ok(HeaderType::Bridge) => 2,
            Ok(HeaderType::CardBus) => 1,
            _ => 0,
        };
        let mut index = 0;
        std::iter::from_fn(move || {
            while index < count {
                let at = index;
                let bar = bar(space, at, count);
                index += if bar.is_some_and(|bar| bar.kind == BarKind::Memory64) { 2 } else { 1 };
                if bar.is_some_and(|bar| bar.raw != 0) {
                    return bar;
                }
            }
            None
        })
    }
}

/// Decodes one BAR. Source: PCI Express Base Specification 6.0, section 7.5.1.2.1.
fn bar(space: ConfigSpace<'_>, index: u8, count: u8) -> Option<Bar> {
    let offset = 0x10 + 4 * u16::from(index);
    let raw = space.read(offset, 4)?;
    if raw & 1 != 0 {
        return Some(Bar { index, kind: BarKind::Io, prefetchable: false, raw });
    }
    let (kind, raw) = match raw >> 1 & 3 {
        0 => (BarKind::Memory32, raw),
        1 => (BarKind::MemoryBelow1Mib, raw),
        2 if index + 1 == count => (BarKind::Memory64WithoutUpperHalf, raw),
        2 => (BarKind::Memory64, raw | space.read(offset + 4, 4)? << 32),
        _ => (BarKind::MemoryReserved, raw),
    };
    Some(Bar { index, kind, prefetchable: raw & 8 != 0, raw })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(kind: u8, registers: [u32; 6]) -> Vec<(u8, BarKind, u64)> {
        let mut bytes = [0; 64];
        bytes[0x0e] = kind;
        for (index, register) in registers.iter().enumerate() {
            bytes[0x10 + 4 * index..][..4].copy_from_slice(&register.to_le_bytes());
        }
        ConfigSpace::new(&bytes).bars().map(|bar| (bar.index, bar.kind, bar.address())).collect()
    }

    #[test]
    fn the_upper_half_of_a_64_bit_bar_is_not_a_separate_bar() {
        let found = bars(0, [0xf000_0004, 1, 0xe001, 0, 0x1000_0002, 0x2000_0006]);
        let expected = [
            (0, BarKind::Memory64, 0x1_f000_0000),
            (2, BarKind::Io, 0xe000),
            (4, BarKind::MemoryBelow1Mib, 0x1000_0000),
            (5, BarKind::MemoryReserved, 0x2000_0000),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_64_bit_bar_in_the_last_register_has_no_upper_half() {
        assert_eq!(bars(0, [0, 0, 0, 0, 4, 5]), [(4, BarKind::Memory64, 0x5_0000_0000)]);
        assert_eq!(bars(0, [0, 0, 0, 0, 0, 4]), [(5, BarKind::Memory64WithoutUpperHalf, 0)]);
    }

    #[test]
    fn a_bridge_has_two_bars_and_a_reserved_header_type_none() {
        let registers = [0x1000; 6];
        assert_eq!([0, 1, 2, 3, 0x80, 0x81].map(|kind| bars(kind, registers).len()), [6, 2, 1, 0, 6, 2]);
    }

    #[test]
    fn a_partly_visible_bar_is_left_out() {
        let mut bytes = [0; 64];
        bytes[0x10] = 0x04;
        bytes[0x14] = 0x01;
        assert_eq!(ConfigSpace::new(&bytes[..0x17]).bars().count(), 0);
        assert_eq!(ConfigSpace::new(&bytes[..0x18]).bars().count(), 1);
    }
}
