//! A FIFO of copied items in one block of memory.

/// Items for which there is space at first: few enough for the first-level cache.
const FEWEST: usize = 16;

/// A FIFO for the few items that wait at a part. Items lie side by side, so an access needs no wrap-around.
///
/// ```
/// use lanemark_engine::Queue;
/// let mut queue = Queue::default();
/// queue.push(1);
/// queue.push(2);
/// assert_eq!((queue.pop(), queue.first(), queue.len()), (Some(1), Some(&2), 1));
/// ```
#[derive(Clone, Debug)]
pub struct Queue<T> {
    /// The items, behind those that were removed.
    items: Vec<T>,
    /// Number of removed items before the first one.
    gone: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { items: Vec::new(), gone: 0 }
    }
}

impl<T: PartialEq> PartialEq for Queue<T> {
    fn eq(&self, other: &Queue<T>) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Eq> Eq for Queue<T> {}

impl<T> Queue<T> {
    /// Adds an item at the end.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.items.len() == self.items.capacity() {
            self.make_space();
        }
        self.items.push(item);
    }

    /// Drops the removed items, if they are at least half of all: each item is then moved once on average.
    #[cold]
    fn make_space(&mut self) {
        if self.items.capacity() < FEWEST {
            self.items.reserve(FEWEST);
        } else if self.gone >= self.items.len() / 2 {
            self.items.drain(..self.gone);
            self.gone = 0;
        }
    }

    /// Inserts an item at position `place`, counted from the first.
    pub fn insert(&mut self, place: usize, item: T) {
        if self.items.len() == self.items.capacity() {
            self.make_space();
        }
        self.items.insert(self.gone + place, item);
    }

    /// Returns the first item.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.items.get(self.gone)
    }

    /// Returns the last item.
    #[inline]
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        // Without items, none of the removed ones is kept.
        self.items.last()
    }

    /// Returns the last item for writing.
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.items.last_mut()
    }

    /// Removes the item at position `place`; the others keep their order.
    #[inline]
    pub fn remove(&mut self, place: usize) {
        if place == 0 {
            self.drop_first();
        } else if place < self.len() {
            self.items.remove(self.gone + place);
        }
    }

    /// Removes the first item.
    #[inline]
    pub fn drop_first(&mut self) {
        self.gone += 1;
        if self.gone >= self.items.len() {
            self.clear();
        }
    }

    /// Removes every item.
    #[inline]
    pub fn clear(&mut self) {
        self.items.clear();
        self.gone = 0;
    }

    /// Returns the items, the first one first.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        self.items.get(self.gone..).unwrap_or_default()
    }

    /// Returns the items for writing.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.items.get_mut(self.gone..).unwrap_or_default()
    }

    /// Returns the number of items.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len() - self.gone
    }

    /// Returns whether there is no item.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<T: Copy> Queue<T> {
    /// Removes and returns the first item.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let first = *self.first()?;
        self.drop_first();
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn a_queue_agrees_with_a_plain_one_over_random_operations() {
        let (mut queue, mut plain, mut state) = (Queue::default(), VecDeque::new(), 1_u64);
        for turn in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let place = (state >> 40) as usize % (plain.len() + 1);
            // Phases in which it grows and in which it is emptied.
            match (state >> 33) % if turn / 500 % 2 == 0 { 5 } else { 9 } {
                0..=2 => {
                    queue.push(turn);
                    plain.push_back(turn);
                }
                3 => {
                    queue.insert(place, turn);
                    plain.insert(place, turn);
                }
                4 => {
                    queue.remove(place);
                    plain.remove(place);
                }
                _ => assert_eq!(queue.pop(), plain.pop_front()),
            }
            assert_eq!((queue.first(), queue.last(), queue.len()), (plain.front(), plain.back(), plain.len()));
            assert_eq!(queue.as_slice(), plain.make_contiguous());
            assert_eq!(queue.is_empty(), plain.is_empty());
        }
    }

    #[test]
    fn a_queue_that_never_empties_keeps_its_memory() {
        let mut queue = Queue::default();
        (0..10).for_each(|item| queue.push(item));
        let most = queue.items.capacity().max(32);
        for item in 10..10_000 {
            if item % 2 == 0 {
                queue.push(item);
            } else {
                queue.insert(10, item);
            }
            assert_eq!(queue.pop(), Some(item - 10));
            assert!(queue.items.capacity() <= most);
        }
    }
}
