//! Who has the line that a core loads.

use std::fmt;

/// Who has a line of ordinary memory that none of a core's own caches has, when it loads 8 B of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LineSource {
    /// Memory of the core's own socket, and no cache.
    Memory,
    /// Memory of the other socket, and no cache.
    RemoteMemory,
    /// A cache of another core of the same socket, which has changed it.
    Core,
    /// A cache of a core of the other socket, which has changed it.
    RemoteCore,
}

impl LineSource {
    /// Every one of them, in the order they are listed to users.
    pub const ALL: [LineSource; 4] =
        [LineSource::Memory, LineSource::RemoteMemory, LineSource::Core, LineSource::RemoteCore];
    /// Bytes of such a load.
    pub const LOAD_BYTES: u64 = 8;

    /// The name in records.
    ///
    /// ```
    /// use lanemark_method::LineSource;
    /// assert!(LineSource::ALL.iter().all(|holder| holder.name().parse() == Ok(*holder)));
    /// assert!("disk".parse::<LineSource>().is_err());
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LineSource::Memory => "memory",
            LineSource::RemoteMemory => "remote_memory",
            LineSource::Core => "core",
            LineSource::RemoteCore => "remote_core",
        }
    }
}

impl fmt::Display for LineSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LineSource::Memory => "memory",
            LineSource::RemoteMemory => "memory of the other socket",
            LineSource::Core => "another core",
            LineSource::RemoteCore => "a core of the other socket",
        })
    }
}

crate::name::from_name!(LineSource, "a line source");
