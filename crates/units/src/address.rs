//! Whose address is it? One type per address space, so that none is taken for another.

use std::fmt;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address! {
    /// An address in a process's virtual address space.
    HostVirt
}
address! {
    /// An address the CPU's memory controller or root complex decodes.
    HostPhys
}
address! {
    /// An address a device puts into its requests, before the IOMMU.
    Iova
}

/// A place inside one base address register's window.
///
/// ```
/// use lanemark_units::BarOffset;
/// assert_eq!(BarOffset { bar: 4, offset: 0x40 }.to_string(), "BAR4+0x40");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BarOffset {
    /// Which BAR, 0 to 5.
    pub bar: u8,
    /// Bytes from the start of its window.
    pub offset: u64,
}

impl fmt::Display for BarOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BAR{}+{:#x}", self.bar, self.offset)
    }
}
