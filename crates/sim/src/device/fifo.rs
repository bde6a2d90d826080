//! A queue of bytes between a DMA engine and what its user built.
//!
//! At one end are TLPs, at the other the user's circuit, which moves a beat at each tick of its own clock. Where the circuit
//! makes or takes the bytes itself, it does so whenever it can: then only its time counts ([`Fifo::passes_at`],
//! [`Fifo::pass`]), and the bytes are the engine's. Where it joins two queues, the bytes lie here ([`Fifo::push`],
//! [`Fifo::pop`]).

use lanemark_engine::Visitor;
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// What never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Bytes that it holds.
    pub size_bytes: u64,
    /// Bytes of a beat of the user's circuit, a power of two.
    pub beat_bytes: u32,
    /// Time between two of them.
    pub beat: Ticks,
}

impl Spec {
    /// What the user's circuit takes for so many bytes.
    #[inline]
    #[must_use]
    pub fn beats(&self, bytes: u64) -> Ticks {
        self.beat * ((bytes + u64::from(self.beat_bytes) - 1) >> self.beat_bytes.trailing_zeros())
    }
}

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fifo {
    spec: Spec,
    /// Until when the user's circuit makes up for what passed: then it has filled the queue again, or emptied it.
    caught_up_at: Ticks,
    bytes: VecDeque<u8>,
    /// When there came what there was too little of.
    came_at: Ticks,
}

impl Fifo {
    /// With nothing in it.
    #[must_use]
    pub fn new(spec: Spec) -> Fifo {
        Fifo { spec, caught_up_at: Ticks::ZERO, bytes: VecDeque::new(), came_at: Ticks::ZERO }
    }

    /// What never changes.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// When so many bytes can pass between a TLP and the user's circuit, which fills or empties the queue as fast as it can.
    #[inline]
    #[must_use]
    pub fn passes_at(&self, bytes: u64) -> Ticks {
        let ahead = self.spec.size_bytes.saturating_sub(bytes) >> self.spec.beat_bytes.trailing_zeros();
        Ticks(self.caught_up_at.0.saturating_sub((self.spec.beat * ahead).0))
    }

    /// So many do.
    #[inline]
    pub fn pass(&mut self, now: Ticks, bytes: u64) {
        self.caught_up_at = self.caught_up_at.max(now) + self.spec.beats(bytes);
    }

    /// Bytes that lie in it.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Whether none does.
    #[must_use]
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that it has room for.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.spec.size_bytes.saturating_sub(self.len())
    }

    /// Since when there are so many in it; never if there are not.
    #[must_use]
    pub fn holds_since(&self, bytes: u64) -> Ticks {
        if self.len() >= bytes { self.came_at } else { Ticks::NEVER }
    }

    /// Puts bytes in, for which there is room; `few` is what somebody may wait for.
    pub fn push(&mut self, now: Ticks, data: &[u8], few: u64) {
        if self.len() < few {
            self.came_at = now;
        }
        self.bytes.extend(data);
    }

    /// Takes the oldest out, as many as `into` has room for and there are; says how many.
    pub fn pop(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.bytes.len());
        for (to, byte) in into.iter_mut().zip(self.bytes.drain(..count)) {
            *to = byte;
        }
        count
    }

    /// Shows everything that changes; where its bytes lie here, nothing is skipped.
    pub(crate) fn visit(&mut self, view: &mut impl Visitor) {
        let Fifo { spec: _, caught_up_at, bytes, came_at } = self;
        view.time(caught_up_at);
        view.count(bytes.len());
        view.time(came_at);
    }

    /// Forgets what is in it.
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
    fn as_much_passes_at_once_as_it_holds_and_then_as_fast_as_the_circuit() {
        let mut fifo = fifo();
        assert_eq!(fifo.passes_at(64), Ticks::ZERO);
        fifo.pass(Ticks(100), 64);
        // Eight beats are behind; one of them later there is room for one.
        assert_eq!([8, 9, 16, 64].map(|bytes| fifo.passes_at(bytes)), [110, 120, 120, 180].map(Ticks));
        fifo.pass(Ticks(110), 8);
        assert_eq!(fifo.passes_at(8), Ticks(120));
    }

    #[test]
    fn bytes_come_out_as_they_went_in_and_no_more_go_in_than_there_is_room_for() {
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
