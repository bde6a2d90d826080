//! A FIFO of items with a constant latency.

use super::{Queue, Visitor};
use lanemark_units::Ticks;

/// A FIFO of items and their arrival times. Arrival times never decrease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire<T> {
    items: Queue<(Ticks, T)>,
}

impl<T> Default for Wire<T> {
    fn default() -> Wire<T> {
        Wire { items: Queue::default() }
    }
}

impl<T> Wire<T> {
    /// Adds an item at the end, with arrival time `at`.
    ///
    /// # Panics
    /// If an item on the wire arrives later than `at`, which is a defect of the caller.
    #[inline]
    pub fn send(&mut self, at: Ticks, item: T) {
        assert!(self.items.last().is_none_or(|last| last.0 <= at), "an item overtakes on a wire at {at:?}");
        self.items.push((at, item));
    }

    /// Inserts an item by its arrival time `at`, behind items of the same time. Used where two paths merge.
    #[inline]
    pub fn join(&mut self, at: Ticks, item: T) {
        let place = self.items.as_slice().iter().rposition(|(other, _)| *other <= at).map_or(0, |place| place + 1);
        self.items.insert(place, (at, item));
    }

    /// Returns the arrival time of the first item; [`Ticks::NEVER`] if the wire is empty.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        self.items.first().map_or(Ticks::NEVER, |first| first.0)
    }

    /// Removes the first item, if it has arrived by `now`.
    #[inline]
    pub fn take(&mut self, now: Ticks) -> Option<T>
    where
        T: Copy,
    {
        let (at, item) = *self.items.first()?;
        if at > now {
            return None;
        }
        self.items.drop_first();
        Some(item)
    }

    /// Returns item number `place`, counted from the first, whether it has arrived or not.
    #[inline]
    #[must_use]
    pub fn at(&self, place: usize) -> Option<&T> {
        self.items.as_slice().get(place).map(|(_, item)| item)
    }

    /// Removes item number `place`; the others keep their order.
    #[inline]
    pub fn remove(&mut self, place: usize) {
        self.items.remove(place);
    }

    /// Returns the first item, whether it has arrived or not.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.items.first().map(|(_, item)| item)
    }

    /// Returns the last item and its arrival time for writing.
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut (Ticks, T)> {
        self.items.last_mut()
    }

    /// Returns the arrival time of the last item; [`Ticks::ZERO`] if the wire is empty.
    #[inline]
    #[must_use]
    pub fn last_due(&self) -> Ticks {
        self.items.last().map_or(Ticks::ZERO, |last| last.0)
    }

    /// Iterates over the items and their arrival times, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &(Ticks, T)> {
        self.items.as_slice().iter()
    }

    /// Visits every arrival time; `item` visits the rest of each item.
    pub fn visit<V: Visitor>(&mut self, view: &mut V, mut item: impl FnMut(&mut V, &mut T)) {
        let Wire { items } = self;
        view.count(items.len());
        for (at, rest) in items.as_mut_slice() {
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
