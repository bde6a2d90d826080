//! A FIFO of items with a constant latency.

use super::Visitor;
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// A FIFO of items and their arrival times. Arrival times never decrease.
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
    /// Adds an item at the end, with arrival time `at`.
    ///
    /// # Panics
    /// If an item on the wire arrives later than `at`, which is a defect of the caller.
    #[inline]
    pub fn send(&mut self, at: Ticks, item: T) {
        assert!(self.items.back().is_none_or(|last| last.0 <= at), "an item overtakes on a wire at {at:?}");
        self.items.push_back((at, item));
    }

    /// Inserts an item by its arrival time `at`, behind items of the same time. Used where two paths merge.
    #[inline]
    pub fn join(&mut self, at: Ticks, item: T) {
        let place = self.items.iter().rposition(|(other, _)| *other <= at).map_or(0, |place| place + 1);
        self.items.insert(place, (at, item));
    }

    /// Returns the arrival time of the first item; [`Ticks::NEVER`] if the wire is empty.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        self.items.front().map_or(Ticks::NEVER, |first| first.0)
    }

    /// Removes the first item, if it has arrived by `now`.
    #[inline]
    pub fn take(&mut self, now: Ticks) -> Option<T> {
        if self.due() <= now { self.items.pop_front().map(|(_, item)| item) } else { None }
    }

    /// Returns item number `place`, counted from the first, whether it has arrived or not.
    #[inline]
    #[must_use]
    pub fn at(&self, place: usize) -> Option<&T> {
        self.items.get(place).map(|(_, item)| item)
    }

    /// Removes item number `place`; the others keep their order.
    #[inline]
    pub fn remove(&mut self, place: usize) {
        if place == 0 {
            self.items.pop_front();
        } else {
            self.items.remove(place);
        }
    }

    /// Returns the first item, whether it has arrived or not.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.items.front().map(|(_, item)| item)
    }

    /// Returns the last item and its arrival time for writing.
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut (Ticks, T)> {
        self.items.back_mut()
    }

    /// Returns the arrival time of the last item; [`Ticks::ZERO`] if the wire is empty.
    #[inline]
    #[must_use]
    pub fn last_due(&self) -> Ticks {
        self.items.back().map_or(Ticks::ZERO, |last| last.0)
    }

    /// Iterates over the items and their arrival times, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &(Ticks, T)> {
        self.items.iter()
    }

    /// Visits every arrival time; `item` visits the rest of each item.
    pub fn visit<V: Visitor>(&mut self, view: &mut V, mut item: impl FnMut(&mut V, &mut T)) {
        let Wire { items } = self;
        view.count(items.len());
        for (at, rest) in items {
            view.time(at);
            item(view, rest);
        }
    }

    /// Returns the number of items on the wire.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether the wire is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_arrives_exactly_at_its_time() {
        let mut wire = Wire::default();
        wire.send(Ticks(5), 'a');
        assert_eq!(wire.take(Ticks(4)), None);
        assert_eq!(wire.take(Ticks(5)), Some('a'));
        assert_eq!(wire.due(), Ticks::NEVER);
    }

    #[test]
    #[should_panic(expected = "overtakes")]
    fn an_earlier_arrival_behind_a_later_one_panics() {
        let mut wire = Wire::default();
        wire.send(Ticks(5), ());
        wire.send(Ticks(4), ());
    }
}
