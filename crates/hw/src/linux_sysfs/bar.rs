//! BARs of a device, as listed by the kernel.

use lanemark_units::{HostPhys, format_size};
use std::fmt;

/// Base address register (BAR) with its window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bar {
    /// Number, 0 to 5; a 64-bit BAR also occupies the next number.
    pub number: u8,
    /// Start of its window.
    pub start: HostPhys,
    /// Length of its window in bytes.
    pub len: u64,
    /// Address space of the BAR.
    pub space: Space,
    /// Whether loads have no side effects and stores may be merged; only such a BAR can be mapped write-combining.
    pub is_prefetchable: bool,
    /// Whether the BAR has an address; without enough address space it has only a size.
    pub is_assigned: bool,
}

/// PCI address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// Memory with 32-bit addresses.
    Memory32,
    /// Memory with 64-bit addresses.
    Memory64,
    /// I/O ports.
    Io,
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = match self.space {
            Space::Memory32 => "32-bit memory",
            Space::Memory64 => "64-bit memory",
            Space::Io => "I/O ports",
        };
        write!(f, "BAR{} {} {space}", self.number, format_size(self.len))?;
        match self.space {
            Space::Io => Ok(()),
            _ if self.is_prefetchable => f.write_str(", prefetchable"),
            _ => f.write_str(", not prefetchable"),
        }?;
        f.write_str(if self.is_assigned { "" } else { ", without an address" })
    }
}

/// Resource flags. Source: Linux, `include/linux/ioport.h`.
mod flag {
    pub(super) const IO: u64 = 0x100;
    pub(super) const MEMORY: u64 = 0x200;
    pub(super) const PREFETCH: u64 = 0x2000;
    pub(super) const MEMORY_64: u64 = 0x10_0000;
    pub(super) const UNSET: u64 = 0x2000_0000;
}

/// Parses the BARs in a `resource` file: one line of first address, last address and flags per BAR. Lines from the seventh
/// on are the ROM and bridge windows. Returns `None` for a malformed line.
pub(super) fn parse(text: &str) -> Option<Vec<Bar>> {
    let mut bars = Vec::new();
    for (number, line) in text.lines().take(6).enumerate() {
        let mut fields = line.split_whitespace().map(|field| u64::from_str_radix(field.strip_prefix("0x")?, 16).ok());
        let (start, end, flags) = (fields.next()??, fields.next()??, fields.next()??);
        let space = match flags {
            flags if flags & flag::IO != 0 => Space::Io,
            flags if flags & flag::MEMORY == 0 => continue,
            flags if flags & flag::MEMORY_64 != 0 => Space::Memory64,
            _ => Space::Memory32,
        };
        bars.push(Bar {
            number: number as u8,
            start: HostPhys(start),
            len: end.checked_sub(start)?.checked_add(1)?,
            space,
            is_prefetchable: flags & flag::PREFETCH != 0,
            is_assigned: flags & flag::UNSET == 0,
        });
    }
    Some(bars)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IVSHMEM: &str = "\
0x00000000fe800000 0x00000000fe8000ff 0x0000000000040200
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x000000c000000000 0x000000c0003fffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x000000000000c000 0x000000000000c01f 0x0000000000040101
0x0000000000000000 0x0000000000000fff 0x0000000020040200
0x0000000000000000 0x0000000000000000 0x0000000000000000
";

    #[test]
    fn bars_are_parsed_with_their_numbers_without_empty_ones() {
        let bars = parse(IVSHMEM).unwrap();
        let shown: Vec<String> = bars.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "BAR0 256B 32-bit memory, not prefetchable",
                "BAR2 4MiB 64-bit memory, prefetchable",
                "BAR4 32B I/O ports",
                "BAR5 4KiB 32-bit memory, not prefetchable, without an address",
            ]
        );
        assert_eq!(bars[1].start, HostPhys(0xc0_0000_0000));
    }

    #[test]
    fn malformed_resource_lines_are_rejected() {
        for text in ["0x0 0x10", "1 2 3", "0x10 0x0f 0x200", "0x0 0xffffffffffffffff 0x200", "\n"] {
            assert!(parse(text).is_none(), "{text}");
        }
        assert_eq!(parse("").unwrap(), []);
    }
}
