//! Sharing of a buffer between a core and a device.

use std::fmt;

/// Method that gives a core and a device the same view of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Discipline {
    /// None: the device's accesses snoop the caches.
    Coherent,
    /// The core flushes every line of the buffer.
    Flushed(Flush),
    /// The core accesses the buffer through an uncached (UC) mapping.
    Uncached,
    /// The core accesses the buffer through a write-combining (WC) mapping.
    Combining,
    /// The core writes ordinary WB memory with non-temporal stores, which bypass the caches.
    Streaming,
    /// The core works on a private buffer and copies to or from a coherent bounce buffer.
    Bounced,
    /// The core works on a private buffer and copies to or from a bounce buffer that is mapped write-combining.
    BouncedCombining,
}

impl Discipline {
    /// All disciplines, in the order shown to users.
    pub const ALL: [Discipline; 9] = [
        Discipline::Coherent,
        Discipline::Flushed(Flush::Clflush),
        Discipline::Flushed(Flush::Clflushopt),
        Discipline::Flushed(Flush::Clwb),
        Discipline::Uncached,
        Discipline::Combining,
        Discipline::Streaming,
        Discipline::Bounced,
        Discipline::BouncedCombining,
    ];

    /// Name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Discipline::Coherent => "coherent",
            Discipline::Flushed(Flush::Clflush) => "flushed_by_clflush",
            Discipline::Flushed(Flush::Clflushopt) => "flushed_by_clflushopt",
            Discipline::Flushed(Flush::Clwb) => "flushed_by_clwb",
            Discipline::Uncached => "uncached",
            Discipline::Combining => "write_combining",
            Discipline::Streaming => "streaming_stores",
            Discipline::Bounced => "bounced",
            Discipline::BouncedCombining => "bounced_write_combining",
        }
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().replace('_', " "))
    }
}

crate::name::from_name!(Discipline, "a discipline");

/// Instruction that flushes a line. Source: Intel SDM volume 2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Flush {
    /// `CLFLUSH`: writes the line back and invalidates it in every cache; instructions execute one at a time.
    Clflush,
    /// `CLFLUSHOPT`: as `CLFLUSH`, but several execute concurrently. Arm: `DC CIVAC`.
    Clflushopt,
    /// `CLWB`: writes the line back and keeps it valid; several execute concurrently. Arm: `DC CVAC`.
    Clwb,
}

impl Flush {
    /// Whether the line stays valid in the cache.
    #[must_use]
    pub const fn keeps(self) -> bool {
        matches!(self, Flush::Clwb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disciplines_have_distinct_names() {
        for (place, discipline) in Discipline::ALL.into_iter().enumerate() {
            assert!(Discipline::ALL[..place].iter().all(|other| other.name() != discipline.name()));
        }
    }
}
