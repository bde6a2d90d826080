//! The clocks a program can read.

use std::fmt;

/// How a program reads the time. `CPUID` is not among them: in a virtual machine it leaves the guest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Clock {
    /// `RDTSC` alone, which waits for nothing.
    Rdtsc,
    /// `RDTSCP`, which waits for earlier instructions.
    Rdtscp,
    /// `RDTSC` between two `LFENCE`, which nothing crosses.
    FencedRdtsc,
    /// Both stamps around a sample: a fenced `RDTSC`, then `RDTSCP` and `LFENCE`.
    FencedPair,
    /// The system's monotonic clock (`clock_gettime`).
    ClockGettime,
}

impl Clock {
    /// Every clock, in the order they are listed to users.
    pub const ALL: [Clock; 5] =
        [Clock::Rdtsc, Clock::Rdtscp, Clock::FencedRdtsc, Clock::FencedPair, Clock::ClockGettime];

    /// The name in records.
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
