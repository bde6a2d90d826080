//! Where a card's table of vectors and its pending bits lie, and whether there is room for them.

use crate::mailbox::drivers_registers;
use crate::read::Notes;
use crate::{MsiX, Platform, Region, RegionKind, Registers};
use std::ops::Range;

/// The MSI-X table and the pending bits of one card, by bus address.
///
/// An entry has the lower and the upper half of an address, the data of the message, and a DW whose lowest bit masks the
/// vector, 4 B each; pending bits lie in QWs, the lowest vector lowest.
///
/// Source: PCI Express Base Specification 6.0, sections 7.7.2.5 to 7.7.2.9.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VectorTable {
    /// Where the first entry starts.
    pub table: u64,
    /// Where the first QW of pending bits starts.
    pub pending: u64,
    /// How many vectors there are.
    pub vectors: u32,
}

impl VectorTable {
    /// Bytes of an entry.
    pub const ENTRY_BYTES: u64 = 16;

    /// Bytes of so many vectors' pending bits: whole QWs.
    #[must_use]
    pub const fn pending_bytes(vectors: u32) -> u64 {
        vectors.div_ceil(64) as u64 * 8
    }
}

impl Platform {
    /// Where the vectors of a card lie; `None` if it has no MSI-X, or is not there.
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

/// Both lie whole in a region of registers, apart from each other and from what the driver writes to.
pub(crate) fn check_msi_x(platform: &Platform, notes: &mut Notes<'_>) {
    let Some(msi_x) = &platform.msi_x else { return };
    let (path, vectors) = (MsiX::PATH, msi_x.vectors.value);
    if platform.dma.is_none() {
        let message = "needs a section [dma]: nothing else of a card interrupts".to_owned();
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
            let message = format!("is {start:#x}; the capability has room for offsets below 4 GiB");
            notes.at_line(offset.line, key, message);
        } else if region.is_none() {
            let message =
                format!("is {start:#x}; {len} B from there in BAR{bar} are not all in one region of registers");
            notes.at_line(offset.line, key, message);
        } else if let Some((other, what)) = taken.iter().find(|(other, _)| meet(other, &span)) {
            let message = format!("is {start:#x}; {len} B from there meet {what}, from {:#x} on", other.start);
            notes.at_line(offset.line, key, message);
        }
        taken.push((span, "the table"));
    }
}

/// Offsets have 32 bits.
const FOUR_GIB: u64 = 1 << 32;

/// Bytes of a QW.
const QW: u64 = 8;

fn meet(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// What of a BAR is somebody else's, by its offset there: the driver's, timers, and the user's registers.
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

    /// The default card, whose registers are 64 KiB in BAR0 with the list in their upper half, with these vectors.
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
    fn table_and_pending_bits_lie_side_by_side_and_not_a_byte_closer() {
        // 65 vectors are 1040 B, and two QWs of pending bits.
        let at = |table, pending| read(65, 0, table, pending);
        let table = at(16, 16 + 1040).unwrap().vector_table(0).unwrap();
        assert_eq!((table.table, table.pending, table.vectors), (0x200_1000_0010, 0x200_1000_0420, 65));
        assert!(at(32, 16).is_ok());
        refused(at(16, 16 + 1032), "pending_offset_bytes", "is 0x418; 16 B from there meet the table");
        refused(at(24, 16), "pending_offset_bytes", "is 0x10; 16 B from there meet the table, from 0x18 on");
    }

    #[test]
    fn what_the_driver_writes_to_is_kept_free() {
        assert!(read(1, 0, 16, 0x8000 - 8).is_ok());
        refused(read(1, 0, 8, 0x100), "table_offset_bytes", "is 0x8; 16 B from there meet doorbells");
        refused(read(1, 0, 16, 0x8000), "pending_offset_bytes", "is 0x8000; 8 B from there meet lists of desc");
    }

    #[test]
    fn timers_and_the_users_registers_are_kept_free_too() {
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
        refused(with(0x1008), "table_offset_bytes", "is 0x1000; 16 B from there meet timers, from 0x1008 on");
    }

    #[test]
    fn both_are_whole_in_one_region_of_registers_from_a_qw_on() {
        refused(read(1, 0, 20, 0x100), "table_offset_bytes", "is 0x14; must be a multiple of 8 B, a QW");
        refused(
            read(1, 2, 16, 0x100),
            "table_offset_bytes",
            "is 0x10; 16 B from there in BAR2 are not all in one region",
        );
        refused(read(1, 0, 16, 0x10000), "pending_offset_bytes", "is 0x10000; 8 B from there in BAR0 are not all in");
        refused(read(1, 3, 16, 0x100), "bar", "is 3; there is no such BAR in this file");
        // Half of the registers is the list.
        assert!(read(2047, 0, 16, 0x8000 - 8).is_err() && read(2031, 0, 16, 0x8000 - 256).is_ok());
    }

    #[test]
    fn only_what_moves_bytes_interrupts() {
        let text = include_str!("../tests/card.toml");
        let section = "[msi_x]\nvectors = { value = 1, source = \"a test\" }\nbar = { value = 0, source = \"a test\" }\n\
                       table_offset_bytes = { value = 16, source = \"a test\" }\n\
                       pending_offset_bytes = { value = 64, source = \"a test\" }\n";
        let error = Platform::parse("card.toml", &format!("{text}\n{section}")).unwrap_err().to_string();
        assert!(error.contains("msi_x: needs a section [dma]"), "{error}");
    }
}
