//! Sources of a cache line that a core loads.

use std::fmt;

/// Source of a line of ordinary memory that misses in the core's own caches, for a load of 8 B.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LineSource {
    /// Memory of the core's own socket; no cache holds the line.
    Memory,
    /// Memory of the other socket; no cache holds the line.
    RemoteMemory,
    /// Another core of the same socket, which holds the line modified.
    Core,
    /// A core of the other socket, which holds the line modified.
    RemoteCore,
}

impl LineSource {
    /// All sources, in the order shown to users.
    pub const ALL: [LineSource; 4] =
        [LineSource::Memory, LineSource::RemoteMemory, LineSource::Core, LineSource::RemoteCore];
    /// Bytes of such a load.
    pub const LOAD_BYTES: u64 = 8;

    /// Name in records.
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
