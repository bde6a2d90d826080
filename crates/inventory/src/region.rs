//! A range of addresses that a function answers to.

use crate::Seen;
use lanemark_units::HostPhys;
use lanemark_wire::config::BarKind;

/// A base address register's range, the expansion ROM, a window of a bridge, or a virtual function's.
#[derive(Clone, PartialEq, Debug)]
pub struct Region {
    /// Which.
    pub kind: RegionKind,
    /// What is decoded: ports or memory, and how wide its register is.
    pub space: BarKind,
    /// Where it begins; `Known(None)` where no address was assigned.
    pub base: Seen<Option<HostPhys>>,
    /// How long it is. A hex dump does not say: only a write to the register could tell.
    pub bytes: Seen<u64>,
    /// Whether reads have no side effects and writes may be merged.
    pub prefetchable: bool,
    /// Whether there is a `resourceN_wc`, so that a program may map it write-combining.
    pub write_combining_file: Seen<bool>,
}

impl Region {
    /// The BAR's number, if it is a BAR.
    #[must_use]
    pub const fn bar(&self) -> Option<u8> {
        match self.kind {
            RegionKind::Bar(number) => Some(number),
            _ => None,
        }
    }
}

/// Which of a function's ranges.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RegionKind {
    /// Base address register 0 to 5; a BAR of 64 bits has the number of its lower half.
    Bar(u8),
    /// The expansion ROM.
    Rom,
    /// Base address register 0 to 5 of the virtual functions: the range of all of them together.
    VirtualFunctionBar(u8),
    /// What a bridge passes on: 0 I/O, 1 memory, 2 prefetchable memory, 3 a second one of `CardBus`.
    Window(u8),
}
