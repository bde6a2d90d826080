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
    /// Buffer object of the runtime, mapped into the program; a core of the host copies the bytes.
    Mapped,
}

impl Allocation {
    /// All kinds, in the order shown to users.
    pub const ALL: [Allocation; 4] = [Allocation::Buffer, Allocation::Device, Allocation::Host, Allocation::Mapped];

    /// Name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Allocation::Buffer => "buffer",
            Allocation::Device => "usm",
            Allocation::Host => "host_usm",
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
