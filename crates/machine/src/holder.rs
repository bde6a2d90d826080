//! Who has the line that a core loads.

use std::fmt;

/// Who has a line of ordinary memory that none of a core's own caches has, when it loads 8 B of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// Memory of the core's own socket, and no cache.
    Memory,
    /// Memory of the other socket, and no cache.
    RemoteMemory,
    /// A cache of another core of the same socket, which has changed it.
    Core,
    /// A cache of a core of the other socket, which has changed it.
    RemoteCore,
}

impl Holder {
    /// Every one of them, in the order they are listed to users.
    pub const ALL: [Holder; 4] = [Holder::Memory, Holder::RemoteMemory, Holder::Core, Holder::RemoteCore];
    /// Bytes of such a load.
    pub const LOAD_BYTES: u64 = 8;

    /// The name in records.
    ///
    /// ```
    /// use lanemark_machine::Holder;
    /// assert!(Holder::ALL.iter().all(|holder| Holder::named(holder.name()) == Some(*holder)));
    /// assert_eq!(Holder::named("disk"), None);
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Holder::Memory => "memory",
            Holder::RemoteMemory => "remote_memory",
            Holder::Core => "core",
            Holder::RemoteCore => "remote_core",
        }
    }

    /// By its name in records.
    #[must_use]
    pub fn named(name: &str) -> Option<Holder> {
        Holder::ALL.into_iter().find(|holder| holder.name() == name)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Holder::Memory => "memory",
            Holder::RemoteMemory => "memory of the other socket",
            Holder::Core => "another core",
            Holder::RemoteCore => "a core of the other socket",
        })
    }
}
