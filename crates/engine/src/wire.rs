//! What travels with a constant latency, in order.

use super::Visitor;
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// A first-in first-out line with the time each item arrives. Arrivals never run backwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire<T> {
    items: VecDeque<(Ticks, T)>,
}

impl<T> Default for Wire<T> {
    fn default() -> Wire<T> {
        Wire { items: VecDeque::new() }
    }
}

impl<T> Wire<T> {
    /// Lets `item` arrive at `at`.
    ///
    /// # Panics
    /// If something already on the wire arrives later: then it is not a wire, and the caller has a defect.
    #[inline]
    pub fn send(&mut self, at: Ticks, item: T) {
        assert!(self.items.back().is_none_or(|last| last.0 <= at), "an item overtakes on a wire at {at:?}");
        self.items.push_back((at, item));
    }

    /// Lets `item` arrive at `at`, before those that arrive later: it came another way, of which this is the end.
    #[inline]
    pub fn join(&mut self, at: Ticks, item: T) {
        let place = self.items.iter().rposition(|(other, _)| *other <= at).map_or(0, |place| place + 1);
        self.items.insert(place, (at, item));
    }

    /// When the first item arrives; [`Ticks::NEVER`] if there is none.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        self.items.front().map_or(Ticks::NEVER, |first| first.0)
    }

    /// The first item, if it has arrived by `now`.
    #[inline]
    pub fn take(&mut self, now: Ticks) -> Option<T> {
        if self.due() <= now { self.items.pop_front().map(|(_, item)| item) } else { None }
    }

    /// Item number `place` from the first, arrived or not.
    #[inline]
    #[must_use]
    pub fn at(&self, place: usize) -> Option<&T> {
        self.items.get(place).map(|(_, item)| item)
    }

    /// Takes item number `place` from the wire; the others keep their order.
    #[inline]
    pub fn remove(&mut self, place: usize) {
        if place == 0 {
            self.items.pop_front();
        } else {
            self.items.remove(place);
        }
    }

    /// The first item, arrived or not.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.items.front().map(|(_, item)| item)
    }

    /// The last item and when it arrives.
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut (Ticks, T)> {
        self.items.back_mut()
    }

    /// When the last item arrives; [`Ticks::ZERO`] if there is none.
    #[inline]
    #[must_use]
    pub fn last_due(&self) -> Ticks {
        self.items.back().map_or(Ticks::ZERO, |last| last.0)
    }

    /// Every item with the time it arrives, the first first.
    pub fn iter(&self) -> impl Iterator<Item = &(Ticks, T)> {
        self.items.iter()
    }

    /// Shows every item and when it arrives; `item` shows the rest of it.
    pub fn visit<V: Visitor>(&mut self, view: &mut V, mut item: impl FnMut(&mut V, &mut T)) {
        let Wire { items } = self;
        view.count(items.len());
        for (at, rest) in items {
            view.time(at);
            item(view, rest);
        }
    }

    /// How many items are on the wire.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing is on the wire.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_arrives_at_its_time_and_not_a_tick_before() {
        let mut wire = Wire::default();
        wire.send(Ticks(5), 'a');
        assert_eq!(wire.take(Ticks(4)), None);
        assert_eq!(wire.take(Ticks(5)), Some('a'));
        assert_eq!(wire.due(), Ticks::NEVER);
    }

    #[test]
    #[should_panic(expected = "overtakes")]
    fn overtaking_is_a_defect() {
        let mut wire = Wire::default();
        wire.send(Ticks(5), ());
        wire.send(Ticks(4), ());
    }
}
