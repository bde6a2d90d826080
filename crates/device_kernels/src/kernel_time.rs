//! Instants of running kernels: plain times, or times with the critical path that led to them.
//!
//! The time of a kernel is a recurrence of two operations: a span after an instant, and the later of two instants.
//! [`Traced`] carries along how much of an instant was spent on each [`Part`], so the path needs no log. Kernels are
//! generic over [`KernelTime`]; with [`Ticks`] the parts cost nothing.
//!
//! The rules are those of the critical path in `sim`. Work belongs to its resource. Latency belongs to the limit of
//! concurrency by which the path came to it: a full load unit ([`KernelTime::released`]).

use lanemark_units::Ticks;
use std::fmt::Debug;

/// A use of time on the critical path of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Words and bus turnarounds that occupy a memory port.
    Port,
    /// Initiation intervals.
    Interval,
    /// Additions of one sum, if they take longer than the initiation interval.
    Additions,
    /// Latency of reads and of the pipeline.
    Latency,
}

/// An instant since the start of the kernels.
pub trait KernelTime: Copy + Debug + PartialEq + Eq {
    /// The start.
    const ZERO: Self;
    /// An instant later than any other.
    const NEVER: Self;

    /// Returns the time since the start.
    fn ticks(self) -> Ticks;

    /// Returns the instant `span` later; the span is spent on `part`.
    #[must_use]
    fn plus(self, span: Ticks, part: Part) -> Self;

    /// Returns the later of two instants; `self` if they are equal.
    #[must_use]
    fn later(self, other: Self) -> Self;

    /// Returns the same instant as the end of a wait for a full unit: all latency before it belongs to the unit.
    #[must_use]
    fn released(self) -> Self;

    /// Returns the critical path to this instant; `None` for plain times.
    fn path(self) -> Option<KernelPath>;
}

impl KernelTime for Ticks {
    const ZERO: Ticks = Ticks::ZERO;
    const NEVER: Ticks = Ticks::NEVER;

    #[inline]
    fn ticks(self) -> Ticks {
        self
    }

    #[inline]
    fn plus(self, span: Ticks, _: Part) -> Ticks {
        self + span
    }

    #[inline]
    fn later(self, other: Ticks) -> Ticks {
        self.max(other)
    }

    #[inline]
    fn released(self) -> Ticks {
        self
    }

    fn path(self) -> Option<KernelPath> {
        None
    }
}

/// An instant with the critical path that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    at: Ticks,
    port: Ticks,
    interval: Ticks,
    additions: Ticks,
    /// Latency since the last wait for a full unit. The rest of the time is latency before it.
    latency: Ticks,
}

/// The critical path of kernels, by use of the time. The fields add up to the time of the last stored word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelPath {
    /// Time in which words and bus turnarounds occupied a memory port.
    pub port: Ticks,
    /// Initiation intervals.
    pub interval: Ticks,
    /// Additions of one sum.
    pub additions: Ticks,
    /// Latency that overlapped with no more requests because a load unit was full.
    pub unit_words: Ticks,
    /// Other latency of reads and of the pipeline.
    pub latency: Ticks,
}

impl KernelTime for Traced {
    const ZERO: Traced = Traced {
        at: Ticks::ZERO,
        port: Ticks::ZERO,
        interval: Ticks::ZERO,
        additions: Ticks::ZERO,
        latency: Ticks::ZERO,
    };
    const NEVER: Traced = Traced { at: Ticks::NEVER, ..Traced::ZERO };

    #[inline]
    fn ticks(self) -> Ticks {
        self.at
    }

    #[inline]
    fn plus(mut self, span: Ticks, part: Part) -> Traced {
        self.at += span;
        let spent = match part {
            Part::Port => &mut self.port,
            Part::Interval => &mut self.interval,
            Part::Additions => &mut self.additions,
            Part::Latency => &mut self.latency,
        };
        *spent += span;
        self
    }

    #[inline]
    fn later(self, other: Traced) -> Traced {
        if other.at > self.at { other } else { self }
    }

    #[inline]
    fn released(self) -> Traced {
        Traced { latency: Ticks::ZERO, ..self }
    }

    fn path(self) -> Option<KernelPath> {
        let Traced { at, port, interval, additions, latency } = self;
        Some(KernelPath { port, interval, additions, unit_words: at - port - interval - additions - latency, latency })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(ns: u64) -> Ticks {
        Ticks::whole_ns(ns)
    }

    #[test]
    fn a_span_is_added_to_its_part_and_latency_before_a_release_belongs_to_the_unit() {
        let read = Traced::ZERO.plus(ns(1), Part::Interval).plus(ns(2), Part::Port).plus(ns(10), Part::Latency);
        let added = read.released().plus(ns(4), Part::Additions).plus(ns(20), Part::Latency);
        assert_eq!(added.ticks(), ns(37));
        let expected =
            KernelPath { port: ns(2), interval: ns(1), additions: ns(4), unit_words: ns(10), latency: ns(20) };
        assert_eq!(added.path(), Some(expected));
        assert_eq!(added.ticks().path(), None);
    }

    #[test]
    fn the_later_instant_is_taken_whole_and_the_first_of_two_equal_ones() {
        let (port, latency) = (Traced::ZERO.plus(ns(3), Part::Port), Traced::ZERO.plus(ns(3), Part::Latency));
        assert_eq!(port.later(latency), port);
        assert_eq!(latency.later(port), latency);
        let one_later = latency.plus(Ticks(1), Part::Interval);
        assert_eq!(port.later(one_later), one_later);
        assert_eq!(one_later.later(port), one_later);
    }
}
