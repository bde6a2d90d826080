//! What a core does so that a device and itself see the same bytes.

use std::fmt;

/// What a core does so that a device and itself see the same bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Discipline {
    /// Nothing: the device's accesses are looked up in caches.
    Coherent,
    /// It flushes every line of the buffer.
    Flushed(Flush),
    /// It writes or reads the buffer through an uncached mapping (UC).
    Uncached,
    /// It does so through a write-combining one (WC).
    Combining,
    /// It writes ordinary memory by non-temporal stores, which go past the caches. The mapping stays what it was.
    Streaming,
    /// It uses a buffer of its own, and copies to or from another one that the device sees, and that is coherent.
    Bounced,
    /// The same with one that is mapped write-combining.
    BouncedCombining,
}

impl Discipline {
    /// Every one of them, in the order they are listed to users.
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

    /// The name in records.
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

/// By which instruction a line is flushed. Source: Intel SDM volume 2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Flush {
    /// `CLFLUSH`: written to memory and dropped from every cache, one after the other.
    Clflush,
    /// `CLFLUSHOPT`: the same, several at once; as `DC CIVAC` of Arm.
    Clflushopt,
    /// `CLWB`: written to memory, several at once, and kept; as `DC CVAC` of Arm.
    Clwb,
}

impl Flush {
    /// Whether the line stays in the cache.
    #[must_use]
    pub const fn keeps(self) -> bool {
        matches!(self, Flush::Clwb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disciplines_are_told_apart_by_their_names() {
        for (place, discipline) in Discipline::ALL.into_iter().enumerate() {
            assert!(Discipline::ALL[..place].iter().all(|other| other.name() != discipline.name()));
        }
    }
}
