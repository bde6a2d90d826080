//! Holder of the cache line that a core loads.

use std::fmt;

/// Holder of a line of ordinary memory that misses in the core's own caches, when the core loads 8 B of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// use lanemark_machine::LineSource;
    /// assert!(LineSource::ALL.iter().all(|source| LineSource::named(source.name()) == Some(*source)));
    /// assert_eq!(LineSource::named("disk"), None);
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

    /// The source of this name in records; `None` if unknown.
    #[must_use]
    pub fn named(name: &str) -> Option<LineSource> {
        LineSource::ALL.into_iter().find(|source| source.name() == name)
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
