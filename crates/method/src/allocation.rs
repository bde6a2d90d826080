//! Kinds of memory in the API of a runtime.

use std::fmt;

/// Kind of memory that a program allocates through a runtime. It determines how bytes get to the device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Allocation {
    /// Buffer object of the runtime (`cl_mem`, `sycl::buffer`), copied by read and write commands.
    Buffer,
    /// Device memory by address (device USM), copied to and from ordinary memory of the program.
    Device,
    /// As [`Allocation::Device`], with the program's side in memory that the runtime allocated (host USM).
    Host,
    /// As [`Allocation::Device`], with the program's side in ordinary memory that the runtime page-locked
    /// (`cuMemHostRegister`).
    Registered,
    /// As [`Allocation::Host`], mapped write-combining for the processor.
    Combining,
    /// Buffer object of the runtime, mapped into the program; a core of the host copies the bytes.
    Mapped,
}

impl Allocation {
    /// All kinds, in the order shown to users.
    pub const ALL: [Allocation; 6] = [
        Allocation::Buffer,
        Allocation::Device,
        Allocation::Host,
        Allocation::Registered,
        Allocation::Combining,
        Allocation::Mapped,
    ];

    /// Whether the device accesses the program's page-locked memory directly.
    #[must_use]
    pub const fn is_in_place(self) -> bool {
        matches!(self, Allocation::Host | Allocation::Registered | Allocation::Combining)
    }

    /// Name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Allocation::Buffer => "buffer",
            Allocation::Device => "usm",
            Allocation::Host => "host_usm",
            Allocation::Registered => "registered",
            Allocation::Combining => "host_wc",
            Allocation::Mapped => "mapped",
        }
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

crate::name::from_name!(Allocation, "an allocation");
