//! Addresses, one type per address space, so that they cannot be confused.

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
    /// A virtual address of a process.
    HostVirt
}
address! {
    /// A physical address, as decoded by the CPU's memory controller or root complex.
    HostPhys
}
address! {
    /// An I/O virtual address: the address in a device's request, before translation by the IOMMU.
    Iova
}

/// An offset in the window of a base address register.
///
/// ```
/// use lanemark_units::BarOffset;
/// assert_eq!(BarOffset { bar: 4, offset: 0x40 }.to_string(), "BAR4+0x40");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BarOffset {
    /// Number of the BAR, 0 to 5.
    pub bar: u8,
    /// Offset in bytes from the start of the window.
    pub offset: u64,
}

impl fmt::Display for BarOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BAR{}+{:#x}", self.bar, self.offset)
    }
}
