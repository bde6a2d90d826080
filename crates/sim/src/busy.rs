//! Time for which resources are occupied.

use lanemark_engine::Visitor;
use lanemark_units::Ticks;

/// Time for which a resource that does one thing at a time was occupied, since construction. No event depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Busy {
    spent: Ticks,
    /// Time until which it is occupied.
    until: Ticks,
}

impl Busy {
    /// Records that it is occupied for `span`, until `until`.
    #[inline]
    pub fn occupy(&mut self, span: Ticks, until: Ticks) {
        (self.spent, self.until) = (self.spent + span, until);
    }

    /// Returns the time for which it was occupied up to `now`, without reservations after it.
    #[must_use]
    pub fn up_to(&self, now: Ticks) -> Ticks {
        self.spent.since(self.until.since(now))
    }

    /// Visits the record.
    pub(crate) fn visit(&mut self, view: &mut impl Visitor) {
        let Busy { spent, until } = self;
        view.counter(&mut spent.0);
        view.mark(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_counts_up_to_the_present_only() {
        let mut busy = Busy::default();
        busy.occupy(Ticks(10), Ticks(30));
        assert_eq!([29, 30, 99].map(|now| busy.up_to(Ticks(now))), [9, 10, 10].map(Ticks));
        busy.occupy(Ticks(5), Ticks(50));
        assert_eq!([45, 46, 50].map(|now| busy.up_to(Ticks(now))), [10, 11, 15].map(Ticks));
    }
}
