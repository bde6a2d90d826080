//! The largest of several lower bounds of a time, and its lead over the next one.

use crate::bound::Bound;
use crate::number::Number;

/// The largest of several terms, and the second largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Largest<N: Number = f64> {
    pub(crate) bound: N::Bounds,
    pub(crate) ns: N,
    pub(crate) next_ns: N,
}

impl<N: Number> Largest<N> {
    /// The largest of these terms, in nanoseconds; the first wins a tie.
    #[inline]
    pub(crate) fn of(terms: impl IntoIterator<Item = (Bound, N)>) -> Largest<N> {
        let none = Largest { bound: N::bounds(Bound::Issue), ns: N::all(0.0), next_ns: N::all(0.0) };
        none.and(terms)
    }

    /// The largest of these terms too.
    #[inline]
    pub(crate) fn and(self, terms: impl IntoIterator<Item = (Bound, N)>) -> Largest<N> {
        let mut most = self;
        for (bound, ns) in terms {
            most = most.and_one(N::bounds(bound), ns);
        }
        most
    }

    /// The larger of this and a term whose bounds may differ among the numbers of a block.
    #[inline]
    pub(crate) fn and_one(self, bound: N::Bounds, ns: N) -> Largest<N> {
        // Two terms of the same bound do not compete.
        let beside = ns.if_above(self.ns, self.ns, self.next_ns.max(ns));
        let next_ns = N::if_same(bound, self.bound, self.next_ns, beside);
        Largest { bound: ns.bound_if_above(self.ns, bound, self.bound), ns: ns.max(self.ns), next_ns }
    }

    /// Limits the lead to that of `part`, which is a part of this time.
    #[inline]
    pub(crate) fn no_clearer_than(self, part: &Largest<N>) -> Largest<N> {
        let zero = N::all(0.0);
        let share = part.next_ns.if_above(zero, self.ns / (part.ns / part.next_ns), zero);
        Largest { next_ns: self.next_ns.max(share), ..self }
    }

    /// Removes the lead, because an effect without a term may be as large.
    pub(crate) fn blurred(self) -> Largest<N> {
        Largest { next_ns: self.ns, ..self }
    }

    /// `times` repetitions, with `more` added to each.
    #[inline]
    pub(crate) fn times(&self, times: f64, more: N) -> Largest<N> {
        let times = N::all(times);
        Largest { ns: times * (self.ns + more), next_ns: times * (self.next_ns + more), ..*self }
    }
}

impl Largest {
    /// A time with a known lead.
    pub(crate) fn leading(bound: Bound, ns: f64, lead: f64) -> Largest {
        Largest { bound, ns, next_ns: if lead.is_finite() { ns / lead } else { 0.0 } }
    }

    /// The larger of this and of a time of several bounds together, which has no lead if it is more than rounding longer.
    pub(crate) fn at_least(self, ns: f64) -> Largest {
        const ROUNDING: f64 = 1e-3;
        let has_no_lead = ns > self.ns * (1.0 + ROUNDING);
        Largest { ns: self.ns.max(ns), next_ns: if has_no_lead { ns } else { self.next_ns }, ..self }
    }

    /// The same time with another name for its bound.
    pub(crate) fn named(self, bound: Bound) -> Largest {
        Largest { bound, ..self }
    }

    /// Limits the lead to that over `ns`, the time of another possible bound.
    pub(crate) fn beside(self, ns: f64) -> Largest {
        Largest { next_ns: self.next_ns.max(ns.min(self.ns)), ..self }
    }

    /// The lead that remains when `ns` is excluded from the time.
    pub(crate) fn without(self, ns: f64) -> Largest {
        let left = self.ns - ns;
        if left > 0.0 {
            Largest { next_ns: (self.next_ns * self.ns / left).min(self.ns), ..self }
        } else {
            self.blurred()
        }
    }

    /// The larger of both, with the other as the second largest.
    pub(crate) fn or(self, other: Largest) -> Largest {
        let (most, less) = if other.ns > self.ns { (other, self) } else { (self, other) };
        Largest { next_ns: most.next_ns.max(less.ns), ..most }
    }

    /// As [`or`](Largest::or), if terms of both have common parts: two of the same bound do not compete.
    pub(crate) fn or_again(self, other: Largest) -> Largest {
        let (most, less) = if other.ns > self.ns { (other, self) } else { (self, other) };
        let next_ns = if most.bound == less.bound { less.next_ns } else { less.ns };
        Largest { next_ns: most.next_ns.max(next_ns), ..most }
    }

    /// The sum of two consecutive times, with the bound of the longer one.
    pub(crate) fn then(self, other: &Largest) -> Largest {
        let bound = if other.ns > self.ns { other.bound } else { self.bound };
        Largest { bound, ns: self.ns + other.ns, next_ns: self.next_ns + other.next_ns }
    }

    /// Ratio of the largest term to the second largest; 1 if both are equal.
    pub(crate) fn lead(&self) -> f64 {
        if self.next_ns > 0.0 { self.ns / self.next_ns } else { f64::INFINITY }
    }
}

/// The largest of these times, in nanoseconds, whatever their bounds; 0 if there is none.
#[inline]
pub(crate) fn most<N: Number>(terms: impl IntoIterator<Item = (Bound, N)>) -> N {
    let mut most = N::all(0.0);
    for (_, ns) in terms {
        most = ns.max(most);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_is_relative_to_the_largest_term_of_another_bound() {
        let largest =
            Largest::of([(Bound::Link, 10.0), (Bound::Device, 20.0), (Bound::Device, 15.0), (Bound::Issue, 5.0)]);
        assert_eq!((largest.bound, largest.ns, largest.lead()), (Bound::Device, 20.0, 2.0));
        assert!(Largest::of([(Bound::Link, 1.0)]).lead().is_infinite());
        // A smaller term counts before the largest one and after it.
        for order in [[(Bound::Device, 20.0), (Bound::Issue, 5.0)], [(Bound::Issue, 5.0), (Bound::Device, 20.0)]] {
            assert_eq!(Largest::of(order).lead(), 4.0);
        }
    }
}
