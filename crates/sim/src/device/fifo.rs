//! A FIFO between a DMA engine and the user circuit.
//!
//! One end holds TLP data, the other is the user circuit, which moves a beat at each tick of its own clock. Where the
//! circuit produces or consumes the bytes itself, it does so at full rate: then only its time counts
//! ([`Fifo::passes_at`], [`Fifo::pass`]) and the bytes are the engine's. Where it joins two FIFOs, the bytes are
//! stored here ([`Fifo::push`], [`Fifo::pop`]).

use lanemark_engine::Visitor;
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// Constants of the FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Bytes of a beat of the user circuit, a power of two.
    pub beat_bytes: u32,
    /// Time of a beat.
    pub beat: Ticks,
}

impl Spec {
    /// Returns the time that the user circuit needs for `bytes`.
    #[inline]
    #[must_use]
    pub fn beats(&self, bytes: u64) -> Ticks {
        self.beat * ((bytes + u64::from(self.beat_bytes) - 1) >> self.beat_bytes.trailing_zeros())
    }
}

/// State of the FIFO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fifo {
    spec: Spec,
    /// Time at which the user circuit has caught up: it has filled the FIFO again, or emptied it.
    caught_up_at: Ticks,
    bytes: VecDeque<u8>,
    /// Time at which the awaited number of bytes was reached.
    came_at: Ticks,
}

impl Fifo {
    /// Creates an empty FIFO.
    #[must_use]
    pub fn new(spec: Spec) -> Fifo {
        Fifo { spec, caught_up_at: Ticks::ZERO, bytes: VecDeque::new(), came_at: Ticks::ZERO }
    }

    /// Returns the constants.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns when `bytes` can pass between a TLP and the user circuit, which fills or empties the FIFO at full
    /// rate.
    #[inline]
    #[must_use]
    pub fn passes_at(&self, bytes: u64) -> Ticks {
        let ahead = self.spec.size_bytes.saturating_sub(bytes) >> self.spec.beat_bytes.trailing_zeros();
        Ticks(self.caught_up_at.0.saturating_sub((self.spec.beat * ahead).0))
    }

    /// Passes `bytes` at `now`.
    #[inline]
    pub fn pass(&mut self, now: Ticks, bytes: u64) {
        self.caught_up_at = self.caught_up_at.max(now) + self.spec.beats(bytes);
    }

    /// Returns the number of stored bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns whether no byte is stored.
    #[must_use]
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the free space in bytes.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.spec.size_bytes.saturating_sub(self.len())
    }

    /// Returns since when it holds `bytes`; [`Ticks::NEVER`] if it holds fewer.
    #[must_use]
    pub fn holds_since(&self, bytes: u64) -> Ticks {
        if self.len() >= bytes { self.came_at } else { Ticks::NEVER }
    }

    /// Stores bytes, for which there must be space; `few` is the number that a reader may wait for.
    pub fn push(&mut self, now: Ticks, data: &[u8], few: u64) {
        if self.len() < few {
            self.came_at = now;
        }
        self.bytes.extend(data);
    }

    /// Removes the oldest bytes into `into`; returns their number.
    pub fn pop(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.bytes.len());
        for (to, byte) in into.iter_mut().zip(self.bytes.drain(..count)) {
            *to = byte;
        }
        count
    }

    /// Visits the state. Where its bytes are stored here, no steady state is skipped.
    pub(crate) fn visit(&mut self, view: &mut impl Visitor) {
        let Fifo { spec: _, caught_up_at, bytes, came_at } = self;
        view.time(caught_up_at);
        view.count(bytes.len());
        view.time(came_at);
    }

    /// Drops its content.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.caught_up_at, self.came_at) = (Ticks::ZERO, Ticks::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fifo() -> Fifo {
        Fifo::new(Spec { size_bytes: 64, beat_bytes: 8, beat: Ticks(10) })
    }

    #[test]
    fn a_burst_up_to_the_capacity_passes_immediately_and_then_at_the_rate_of_the_circuit() {
        let mut fifo = fifo();
        assert_eq!(fifo.passes_at(64), Ticks::ZERO);
        fifo.pass(Ticks(100), 64);
        // The circuit is eight beats behind; a beat later there is space for one.
        assert_eq!([8, 9, 16, 64].map(|bytes| fifo.passes_at(bytes)), [110, 120, 120, 180].map(Ticks));
        fifo.pass(Ticks(110), 8);
        assert_eq!(fifo.passes_at(8), Ticks(120));
    }

    #[test]
    fn bytes_leave_in_order_and_space_is_limited() {
        let mut fifo = fifo();
        fifo.push(Ticks(5), &[1, 2, 3], 64);
        fifo.push(Ticks(6), &[4], 2);
        assert_eq!((fifo.len(), fifo.room()), (4, 60));
        assert_eq!([4, 5].map(|bytes| fifo.holds_since(bytes)), [Ticks(5), Ticks::NEVER]);
        let mut out = [0; 3];
        assert_eq!((fifo.pop(&mut out), out), (3, [1, 2, 3]));
        assert_eq!((fifo.pop(&mut out), out[0], fifo.is_empty()), (1, 4, true));
    }
}
