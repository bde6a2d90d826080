//! Location of a card's MSI-X table and pending bits, and its checks.

use crate::mailbox::drivers_registers;
use crate::notes::Notes;
use crate::{MsiX, Platform, Region, RegionKind, Registers};
use std::ops::Range;

/// The MSI-X table and the pending bits of one card, by bus address.
///
/// A table entry has four DWs: lower and upper half of the message address, message data, and vector control, whose
/// lowest bit masks the vector. Pending bits are in QWs, the lowest vector in the lowest bit.
///
/// Source: PCI Express Base Specification 6.0, sections 7.7.2.5 to 7.7.2.9.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VectorTable {
    /// Address of the first entry.
    pub table: u64,
    /// Address of the first QW of pending bits.
    pub pending: u64,
    /// Number of vectors.
    pub vectors: u32,
}

impl VectorTable {
    /// Bytes of an entry.
    pub const ENTRY_BYTES: u64 = 16;

    /// Bytes of the pending bits of this many vectors, in whole QWs.
    #[must_use]
    pub const fn pending_bytes(vectors: u32) -> u64 {
        vectors.div_ceil(64) as u64 * 8
    }
}

impl Platform {
    /// Location of the vectors of a card; `None` if it has no MSI-X or does not exist.
    ///
    /// ```
    /// let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    /// assert_eq!(card.vector_table(0), None, "it interrupts by MSI");
    /// ```
    #[must_use]
    pub fn vector_table(&self, card: u32) -> Option<VectorTable> {
        let msi_x = self.msi_x.as_ref().filter(|_| card < self.cards())?;
        let shift = self.slots.get(card as usize).map_or(0, |slot| slot.bar_shift_bytes.value);
        let bar = self.bar(u8::try_from(msi_x.bar.value).ok()?)?.address_bytes.value + shift;
        let (table, pending) = (bar + msi_x.table_offset_bytes.value, bar + msi_x.pending_offset_bytes.value);
        Some(VectorTable { table, pending, vectors: msi_x.vectors.value })
    }
}

/// Both are within one register region, and overlap neither each other nor other registers in use.
pub(crate) fn check_msi_x(platform: &Platform, notes: &mut Notes<'_>) {
    let Some(msi_x) = &platform.msi_x else { return };
    let (path, vectors) = (MsiX::PATH, msi_x.vectors.value);
    if platform.dma.is_none() {
        let message = "needs a section [dma], which sends the interrupts".to_owned();
        notes.at_line(msi_x.vectors.line, path.to_owned(), message);
    }
    let Some(bar) = u8::try_from(msi_x.bar.value).ok().filter(|bar| platform.bar(*bar).is_some()) else {
        let message = format!("is {}; there is no such BAR in this file", msi_x.bar.value);
        return notes.at_line(msi_x.bar.line, format!("{path}.bar"), message);
    };
    let parts = [
        ("table_offset_bytes", &msi_x.table_offset_bytes, u64::from(vectors) * VectorTable::ENTRY_BYTES),
        ("pending_offset_bytes", &msi_x.pending_offset_bytes, VectorTable::pending_bytes(vectors)),
    ];
    let mut taken = taken(platform, bar);
    for (key, offset, len) in parts {
        let (start, key) = (offset.value, format!("{path}.{key}"));
        let region = platform.region_at(bar, start, len).filter(|region| region.kind.value == RegionKind::Registers);
        let span = start..start.saturating_add(len);
        if !start.is_multiple_of(QW) {
            notes.at_line(offset.line, key, format!("is {start:#x}; must be a multiple of {QW} B, a QW"));
        } else if start.checked_add(len).is_none_or(|end| end > FOUR_GIB) {
            let message = format!("is {start:#x}; offsets in the capability must be below 4 GiB");
            notes.at_line(offset.line, key, message);
        } else if region.is_none() {
            let message =
                format!("is {start:#x}; {len} B from there in BAR{bar} are not all in one region of registers");
            notes.at_line(offset.line, key, message);
        } else if let Some((other, what)) = taken.iter().find(|(other, _)| meet(other, &span)) {
            let message = format!("is {start:#x}; {len} B from there overlap {what}, from {:#x} on", other.start);
            notes.at_line(offset.line, key, message);
        }
        taken.push((span, "the table"));
    }
}

/// Limit of the 32-bit offsets of the capability.
const FOUR_GIB: u64 = 1 << 32;

/// Bytes of a QW.
const QW: u64 = 8;

fn meet(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Ranges of a BAR that are already in use: by the driver, timers, and user registers.
fn taken(platform: &Platform, bar: u8) -> Vec<(Range<u64>, &'static str)> {
    let is_here = |region: &&Region| region.kind.value == RegionKind::Registers && region.bar.value == u32::from(bar);
    let mut taken = Vec::new();
    let first = platform.regions.iter().find(|region| region.kind.value == RegionKind::Registers);
    if let Some(first) = first.filter(is_here) {
        let from = first.offset_bytes.value;
        taken.extend(drivers_registers(platform).map(|(span, what)| (from + span.start..from + span.end, what)));
    }
    if let Some(registers) = &platform.registers
        && let Some(region) = platform.regions.iter().filter(is_here).find(|region| region.name == registers.region)
    {
        let from = |offset: u64| region.offset_bytes.value.saturating_add(offset);
        let parts = [
            (registers.timer_offset_bytes.value, Registers::timer_bytes(platform.channels()), "timers"),
            (registers.user_offset_bytes.value, registers.user_bytes.value, "the user's registers"),
        ];
        taken.extend(parts.map(|(start, len, what)| (from(start)..from(start).saturating_add(len), what)));
    }
    taken
}

#[cfg(test)]
mod tests {
    use crate::{PRESETS, Platform};

    /// The default card with these vectors. Its registers are 64 KiB in BAR0, with the descriptor list in the upper
    /// half.
    fn read(vectors: u32, bar: u32, table: u64, pending: u64) -> Result<Platform, String> {
        let text = PRESETS.iter().find(|preset| preset.name == "card-gen5-x16").unwrap().text;
        let number = |key: &str, value: u64| format!("{key} = {{ value = {value}, source = \"a test\" }}\n");
        let section = [
            number("vectors", vectors.into()),
            number("bar", bar.into()),
            number("table_offset_bytes", table),
            number("pending_offset_bytes", pending),
        ];
        Platform::parse("vectors.toml", &format!("{text}\n[msi_x]\n{}", section.concat()))
            .map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(read: Result<Platform, String>, key: &str, message: &str) {
        let error = read.unwrap_err();
        assert!(error.contains(&format!("msi_x.{key}: {message}")), "{error}");
    }

    #[test]
    fn table_and_pending_bits_may_be_adjacent_but_not_overlap() {
        // 65 vectors take 1040 B, and their pending bits two QWs.
        let at = |table, pending| read(65, 0, table, pending);
        let table = at(16, 16 + 1040).unwrap().vector_table(0).unwrap();
        assert_eq!((table.table, table.pending, table.vectors), (0x200_1000_0010, 0x200_1000_0420, 65));
        assert!(at(32, 16).is_ok());
        refused(at(16, 16 + 1032), "pending_offset_bytes", "is 0x418; 16 B from there overlap the table");
        refused(at(24, 16), "pending_offset_bytes", "is 0x10; 16 B from there overlap the table, from 0x18 on");
    }

    #[test]
    fn the_table_must_not_overlap_the_driver_registers() {
        assert!(read(1, 0, 16, 0x8000 - 8).is_ok());
        refused(read(1, 0, 8, 0x100), "table_offset_bytes", "is 0x8; 16 B from there overlap doorbells");
        refused(read(1, 0, 16, 0x8000), "pending_offset_bytes", "is 0x8000; 8 B from there overlap lists of desc");
    }

    #[test]
    fn the_table_must_not_overlap_timers_or_user_registers() {
        let with = |timers: u64| {
            let text = PRESETS.iter().find(|preset| preset.name == "card-gen5-x16").unwrap().text;
            let number = |key: &str, value: &str| format!("{key} = {{ value = {value}, source = \"a test\" }}\n");
            let timers = format!("{timers}");
            let sections = [
                "\n[registers]\nregion = \"registers\"\n".to_owned(),
                number("clock_ghz", "0.25"),
                number("timer_offset_bytes", &timers),
                number("user_offset_bytes", "0x6000"),
                number("user_bytes", "64"),
                "\n[msi_x]\n".to_owned(),
                number("vectors", "1"),
                number("bar", "0"),
                number("table_offset_bytes", "0x1000"),
                number("pending_offset_bytes", "0x2000"),
            ];
            Platform::parse("both.toml", &format!("{text}{}", sections.concat())).map_err(|error| error.to_string())
        };
        assert!(with(0x1010).is_ok());
        refused(with(0x1008), "table_offset_bytes", "is 0x1000; 16 B from there overlap timers, from 0x1008 on");
    }

    #[test]
    fn both_are_qw_aligned_within_one_register_region() {
        refused(read(1, 0, 20, 0x100), "table_offset_bytes", "is 0x14; must be a multiple of 8 B, a QW");
        refused(
            read(1, 2, 16, 0x100),
            "table_offset_bytes",
            "is 0x10; 16 B from there in BAR2 are not all in one region",
        );
        refused(read(1, 0, 16, 0x10000), "pending_offset_bytes", "is 0x10000; 8 B from there in BAR0 are not all in");
        refused(read(1, 3, 16, 0x100), "bar", "is 3; there is no such BAR in this file");
        // The upper half of the registers is the descriptor list.
        assert!(read(2047, 0, 16, 0x8000 - 8).is_err() && read(2031, 0, 16, 0x8000 - 256).is_ok());
    }

    #[test]
    fn msi_x_needs_a_dma_engine() {
        let text = include_str!("../tests/card.toml");
        let section = "[msi_x]\nvectors = { value = 1, source = \"a test\" }\nbar = { value = 0, source = \"a test\" }\n\
                       table_offset_bytes = { value = 16, source = \"a test\" }\n\
                       pending_offset_bytes = { value = 64, source = \"a test\" }\n";
        let error = Platform::parse("card.toml", &format!("{text}\n{section}")).unwrap_err().to_string();
        assert!(error.contains("msi_x: needs a section [dma]"), "{error}");
    }
}
