//! The data path of a DMA engine: it transfers the beats of one TLP at a time.
//!
//! Ports: [`DataPath::reserve`] reserves the beats of a TLP. A later reservation may use an earlier gap, so a channel
//! that processes a descriptor does not block the others.

use lanemark_engine::Visitor;
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// Reserved spans in time order, without those in the past.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DataPath {
    taken: VecDeque<(Ticks, Ticks)>,
}

impl DataPath {
    /// Reserves a contiguous span of length `span`, from `from` on; returns its end. Reservations before `now` are
    /// dropped.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    pub fn reserve(&mut self, now: Ticks, from: Ticks, span: Ticks) -> Ticks {
        if let (1, Some(only)) = (self.taken.len(), self.taken.back_mut())
            && only.1 <= now
        {
            *only = (from, from + span);
            return from + span;
        }
        self.reserve_beside(now, from, span)
    }

    /// Reserves a span beside others, as [`DataPath::reserve`].
    #[inline(never)]
    fn reserve_beside(&mut self, now: Ticks, from: Ticks, span: Ticks) -> Ticks {
        while self.taken.front().is_some_and(|(_, end)| *end <= now) {
            self.taken.pop_front();
        }
        if self.taken.back().is_none_or(|(_, end)| *end <= from) {
            self.taken.push_back((from, from + span));
            return from + span;
        }
        let mut start = from;
        let mut place = self.taken.len();
        for (number, (other, end)) in self.taken.iter().enumerate() {
            if start + span <= *other {
                place = number;
                break;
            }
            start = start.max(*end);
        }
        self.taken.insert(place, (start, start + span));
        start + span
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Visitor) {
        let DataPath { taken } = self;
        view.count(taken.len());
        for (start, end) in taken {
            view.time(start);
            view.time(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_reservation_uses_an_earlier_gap_only_if_it_fits() {
        let mut path = DataPath::default();
        assert_eq!(path.reserve(Ticks(0), Ticks(100), Ticks(10)), Ticks(110));
        assert_eq!(path.reserve(Ticks(0), Ticks(0), Ticks(50)), Ticks(50));
        assert_eq!(path.clone().reserve(Ticks(0), Ticks(0), Ticks(50)), Ticks(100));
        assert_eq!(path.clone().reserve(Ticks(0), Ticks(0), Ticks(51)), Ticks(161));
        assert_eq!(path.reserve(Ticks(0), Ticks(105), Ticks(1)), Ticks(111));
    }

    #[test]
    fn past_reservations_are_dropped() {
        let mut path = DataPath::default();
        for nth in 0..1000 {
            path.reserve(Ticks(10 * nth), Ticks(10 * nth), Ticks(10));
        }
        assert_eq!(path.taken.len(), 1);
    }
}
