//! Address regions of a function.

use crate::Seen;
use lanemark_units::HostPhys;
use lanemark_wire::config::BarKind;

/// A BAR, the expansion ROM, a bridge window, or a BAR of virtual functions.
#[derive(Clone, PartialEq, Debug)]
pub struct Region {
    /// Kind of region.
    pub kind: RegionKind,
    /// I/O or memory space, and the width of the register.
    pub space: BarKind,
    /// Base address; `Known(None)` if none is assigned.
    pub base: Seen<Option<HostPhys>>,
    /// Length in bytes. A dump does not contain it, because sizing a BAR needs a write.
    pub bytes: Seen<u64>,
    /// Prefetchable: reads have no side effects, and writes may be merged.
    pub prefetchable: bool,
    /// Whether `resourceN_wc` exists, through which a program can map the region write-combining.
    pub write_combining_file: Seen<bool>,
}

impl Region {
    /// The BAR number, if it is a BAR.
    #[must_use]
    pub const fn bar(&self) -> Option<u8> {
        match self.kind {
            RegionKind::Bar(number) => Some(number),
            _ => None,
        }
    }
}

/// Kind of an address region.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RegionKind {
    /// BAR 0 to 5; a 64-bit BAR has the number of its lower half.
    Bar(u8),
    /// The expansion ROM.
    Rom,
    /// BAR 0 to 5 of the virtual functions: the range for all of them.
    VirtualFunctionBar(u8),
    /// Bridge window: 0 I/O, 1 memory, 2 prefetchable memory, 3 a second `CardBus` window.
    Window(u8),
}
