//! The largest of several lower bounds of a time, and its lead over the next one.

use crate::bound::Bound;

/// The largest of several terms, and the second largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Largest {
    pub(crate) bound: Bound,
    pub(crate) ns: f64,
    next_ns: f64,
}

impl Largest {
    /// The largest of these terms, in nanoseconds; the first wins a tie.
    pub(crate) fn of(terms: impl IntoIterator<Item = (Bound, f64)>) -> Largest {
        let none = Largest { bound: Bound::Issue, ns: 0.0, next_ns: 0.0 };
        terms.into_iter().fold(none, |most, (bound, ns)| {
            if ns > most.ns {
                // Two terms of the same bound do not compete.
                let next_ns = if bound == most.bound { most.next_ns } else { most.ns };
                Largest { bound, ns, next_ns }
            } else {
                let next_ns = if bound == most.bound { most.next_ns } else { most.next_ns.max(ns) };
                Largest { next_ns, ..most }
            }
        })
    }

    /// A time with a known lead.
    pub(crate) fn leading(bound: Bound, ns: f64, lead: f64) -> Largest {
        Largest { bound, ns, next_ns: if lead.is_finite() { ns / lead } else { 0.0 } }
    }

    /// The same time with another name for its bound.
    pub(crate) fn named(self, bound: Bound) -> Largest {
        Largest { bound, ..self }
    }

    /// Limits the lead to that of `part`, which is a part of this time.
    pub(crate) fn no_clearer_than(self, part: &Largest) -> Largest {
        let share = if part.lead().is_finite() { self.ns / part.lead() } else { 0.0 };
        Largest { next_ns: self.next_ns.max(share), ..self }
    }

    /// Limits the lead to that over `ns`, the time of another possible bound.
    pub(crate) fn beside(self, ns: f64) -> Largest {
        Largest { next_ns: self.next_ns.max(ns.min(self.ns)), ..self }
    }

    /// Removes the lead, because an effect without a term may be as large.
    pub(crate) fn blurred(self) -> Largest {
        Largest { next_ns: self.ns, ..self }
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

    /// `times` repetitions, with `more` added to each.
    pub(crate) fn times(&self, times: f64, more: f64) -> Largest {
        Largest { ns: times * (self.ns + more), next_ns: times * (self.next_ns + more), ..*self }
    }

    /// Ratio of the largest term to the second largest; 1 if both are equal.
    pub(crate) fn lead(&self) -> f64 {
        if self.next_ns > 0.0 { self.ns / self.next_ns } else { f64::INFINITY }
    }
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
