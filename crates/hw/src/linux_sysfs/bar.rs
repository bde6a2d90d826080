//! The BARs of a device, as the kernel lists them.

use lanemark_units::{HostPhys, format_size};
use std::fmt;

/// One base address register with a window behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bar {
    /// Its number, 0 to 5; one of 64 bit takes the next number too.
    pub number: u8,
    /// Where its window starts.
    pub start: HostPhys,
    /// Length of the window in bytes.
    pub len: u64,
    /// Which address space it is in.
    pub space: Space,
    /// Whether loads have no side effects and stores may be merged; only such a BAR can be mapped write-combining.
    pub is_prefetchable: bool,
    /// Whether it has an address: a BAR for which there was no room has a size only.
    pub is_assigned: bool,
}

/// An address space of PCI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// Memory with addresses of 32 bit.
    Memory32,
    /// Memory with addresses of 64 bit.
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

/// Flags of a resource. Source: Linux, `include/linux/ioport.h`.
mod flag {
    pub(super) const IO: u64 = 0x100;
    pub(super) const MEMORY: u64 = 0x200;
    pub(super) const PREFETCH: u64 = 0x2000;
    pub(super) const MEMORY_64: u64 = 0x10_0000;
    pub(super) const UNSET: u64 = 0x2000_0000;
}

/// The BARs in the text of a device's `resource` file: a line each of first address, last address and flags; lines from
/// the seventh on are the ROM and windows of bridges. `None` if a line is something else.
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
    fn bars_are_read_with_their_numbers_and_empty_ones_left_out() {
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
    fn a_line_that_is_no_resource_is_refused() {
        for text in ["0x0 0x10", "1 2 3", "0x10 0x0f 0x200", "0x0 0xffffffffffffffff 0x200", "\n"] {
            assert!(parse(text).is_none(), "{text}");
        }
        assert_eq!(parse("").unwrap(), []);
    }
}
