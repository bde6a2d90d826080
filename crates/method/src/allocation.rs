//! What memory of a device is to a program with a runtime.

use std::fmt;

/// What memory of a device is to a program with a runtime, and so how bytes get there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Allocation {
    /// An object of the runtime (`cl_mem`, `sycl::buffer`); bytes are copied by commands that read and write it.
    Buffer,
    /// An address on the device (explicit unified shared memory); bytes are copied between it and ordinary memory of the program.
    Device,
    /// As [`Allocation::Device`], but the program's side is memory that the runtime gave it for the purpose (host unified shared memory).
    Host,
    /// An object of the runtime that is mapped into the program for a while; the program's own core copies.
    Mapped,
}

impl Allocation {
    /// All, in the order they are listed to users.
    pub const ALL: [Allocation; 4] = [Allocation::Buffer, Allocation::Device, Allocation::Host, Allocation::Mapped];

    /// The name in records.
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
