//! Clocks that a program can read.

use std::fmt;

/// Method of reading the time. `CPUID` is not used as a barrier, because it exits to the hypervisor in a virtual
/// machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Clock {
    /// `RDTSC` alone, without ordering.
    Rdtsc,
    /// `RDTSCP`, which waits for earlier instructions.
    Rdtscp,
    /// `RDTSC` between two `LFENCE` instructions, which order it against earlier and later ones.
    FencedRdtsc,
    /// Both timestamps of a sample: `LFENCE`, `RDTSC`, `LFENCE` before it, `RDTSCP`, `LFENCE` after it.
    FencedPair,
    /// The monotonic clock of the operating system (`clock_gettime`).
    ClockGettime,
}

impl Clock {
    /// All clocks, in the order shown to users.
    pub const ALL: [Clock; 5] =
        [Clock::Rdtsc, Clock::Rdtscp, Clock::FencedRdtsc, Clock::FencedPair, Clock::ClockGettime];

    /// Name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Rdtsc => "rdtsc",
            Clock::Rdtscp => "rdtscp",
            Clock::FencedRdtsc => "fenced_rdtsc",
            Clock::FencedPair => "fenced_pair",
            Clock::ClockGettime => "clock_gettime",
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

crate::name::from_name!(Clock, "a clock");
