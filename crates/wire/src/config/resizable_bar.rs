//! Resizable BARs: supported sizes and current size.

use super::table::{Block, Field, Layout, Meaning, Presence, Region, Spot, hex, layout, number, register};
use super::unknown::Unknown;
use super::{CapabilityId, ConfigSpace};

/// Number of Resizable BARs, from the first control register; 1 to 6 are legal.
fn count(region: &Region<'_>) -> u16 {
    match region.read(8, 4) {
        Some(control) => match control >> 5 & 7 {
            count @ 1..=6 => count as u16,
            _ => 0,
        },
        None => 0,
    }
}

fn first(_: &Region<'_>) -> u16 {
    4
}

/// Encoding of sizes: 1 MiB << code; section 7.8.6.3 defines codes up to 8 EiB.
const SIZE: Meaning = Meaning::Power { base: 1, unit: "MiB", most: 43 };

const BLOCKS: &[Block] = &[
    super::table::always(&[register("Number", 8, 4, "7.8.6.3", &[number("Number of BARs", 7, 5)])]),
    Block {
        presence: Presence::Times { count, first, stride: 8, each: "resizable BAR" },
        registers: &[
            // Bit 4 is 1 MiB.
            register("ReBARCap", 0, 4, "7.8.6.2", &[hex("supported", 31, 4)]),
            register(
                "ReBARCtl",
                4,
                4,
                "7.8.6.3",
                &[
                    number("BAR", 2, 0),
                    Field { name: "current size", high: 13, low: 8, meaning: SIZE },
                    // Bit 16 is 256 TiB.
                    hex("supported above 128TB", 31, 16),
                ],
            ),
        ],
    },
];

/// Resizable BARs of the function.
pub const RESIZABLE_BAR: Layout = layout("Physical Resizable BAR", BLOCKS);
/// Resizable BARs of the virtual functions.
pub const VIRTUAL_RESIZABLE_BAR: Layout = layout("Virtual Resizable BAR", BLOCKS);

/// A resizable BAR.
///
/// ```
/// use lanemark_wire::config::{CapabilityId, ConfigSpace};
/// let mut bytes = vec![0u8; 4096];
/// bytes[0x100..0x104].copy_from_slice(&0x0001_0015u32.to_le_bytes());
/// bytes[0x104..0x108].copy_from_slice(&0x0003_f000u32.to_le_bytes()); // 256 MiB to 8 GiB
/// bytes[0x108..0x10c].copy_from_slice(&0x0000_0820u32.to_le_bytes()); // one, BAR 0, 256 MiB
/// let bars: Vec<_> = ConfigSpace::new(&bytes).resizable_bars()?.collect();
/// let bar = bars[0]?;
/// assert_eq!((bar.bar, bar.size_bytes(), bar.largest_bytes()), (0, Some(256 << 20), Some(8 << 30)));
/// assert_eq!(bar.sizes_bytes().count(), 6);
/// # Ok::<(), lanemark_wire::config::Unknown>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResizableBar {
    /// Index of the BAR.
    pub bar: u8,
    /// Supported sizes: bit n is 1 MiB << n.
    pub possible: u64,
    /// Code of the current size, which is 1 MiB << code; codes above 43 are reserved.
    pub size_code: u8,
}

impl ResizableBar {
    /// Current size in bytes; `None` if its code is reserved.
    #[must_use]
    pub const fn size_bytes(&self) -> Option<u64> {
        if self.size_code <= 43 { Some(1 << (20 + self.size_code)) } else { None }
    }

    /// Supported sizes in bytes, smallest first.
    pub fn sizes_bytes(&self) -> impl Iterator<Item = u64> + use<> {
        let possible = self.possible;
        (0..=43).filter(move |code| possible >> code & 1 != 0).map(|code| 1 << (20 + code))
    }

    /// Largest supported size in bytes.
    #[must_use]
    pub fn largest_bytes(&self) -> Option<u64> {
        self.sizes_bytes().last()
    }
}

/// The entries of a resizable BAR capability.
fn entries(region: Region<'_>) -> Result<impl Iterator<Item = Result<ResizableBar, Unknown>> + use<'_>, Unknown> {
    let number = const { Spot::of(&RESIZABLE_BAR, "Number", "Number of BARs") };
    let raw = region.bits(number)?;
    if count(&region) == 0 {
        return Err(region.reserved(number, raw));
    }
    Ok((0..count(&region)).map(move |index| {
        let get = |spot| region.bits_at(spot, index);
        let low = get(const { Spot::of(&RESIZABLE_BAR, "ReBARCap", "supported") })?;
        let high = get(const { Spot::of(&RESIZABLE_BAR, "ReBARCtl", "supported above 128TB") })?;
        Ok(ResizableBar {
            bar: get(const { Spot::of(&RESIZABLE_BAR, "ReBARCtl", "BAR") })? as u8,
            possible: low | high << 28,
            size_code: get(const { Spot::of(&RESIZABLE_BAR, "ReBARCtl", "current size") })? as u8,
        })
    }))
}

#[allow(clippy::missing_errors_doc)]
impl<'a> ConfigSpace<'a> {
    /// The resizable BARs of the function.
    pub fn resizable_bars(&self) -> Result<impl Iterator<Item = Result<ResizableBar, Unknown>> + use<'a>, Unknown> {
        entries(self.capability(CapabilityId::RESIZABLE_BAR)?.region())
    }

    /// The resizable BARs of the virtual functions.
    pub fn virtual_resizable_bars(
        &self,
    ) -> Result<impl Iterator<Item = Result<ResizableBar, Unknown>> + use<'a>, Unknown> {
        entries(self.capability(CapabilityId::VIRTUAL_RESIZABLE_BAR)?.region())
    }
}
