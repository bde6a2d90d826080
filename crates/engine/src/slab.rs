//! Fixed slots of bytes, handed out and given back.

/// Bytes of one line; slots are whole lines.
const LINE_BYTES: usize = 64;

/// Which slot; valid until it is given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u32);

impl Slot {
    /// No bytes at all.
    pub const NONE: Slot = Slot(u32::MAX);

    /// What tells it from every other slot that is out.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Slots of one size. It grows while a run warms up and then no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slab {
    lines_per_slot: usize,
    lines: Vec<[u8; LINE_BYTES]>,
    free: Vec<u32>,
    /// What whoever filled a slot wrote on it.
    notes: Vec<u64>,
}

impl Slab {
    /// Slots of at least this many bytes, and of a line at the least.
    #[must_use]
    pub fn new(slot_bytes: usize) -> Slab {
        Slab {
            lines_per_slot: slot_bytes.div_ceil(LINE_BYTES).max(1),
            lines: Vec::new(),
            free: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A slot nobody else has; its bytes are whatever they were.
    #[inline]
    pub fn take(&mut self) -> Slot {
        if let Some(index) = self.free.pop() {
            return Slot(index);
        }
        let first = self.lines.len();
        self.lines.resize(first + self.lines_per_slot, [0; LINE_BYTES]);
        self.notes.push(0);
        Slot((first / self.lines_per_slot) as u32)
    }

    /// Gives a slot back; [`Slot::NONE`] is ignored.
    #[inline]
    pub fn give_back(&mut self, slot: Slot) {
        if slot != Slot::NONE {
            debug_assert!(!self.free.contains(&slot.0), "slot {} is given back twice", slot.0);
            self.free.push(slot.0);
        }
    }

    /// The first line of a slot.
    ///
    /// # Panics
    /// For [`Slot::NONE`].
    #[inline]
    #[must_use]
    pub fn line(&self, slot: Slot) -> &[u8; LINE_BYTES] {
        &self.lines[slot.0 as usize * self.lines_per_slot]
    }

    /// The first line of a slot, to be written.
    ///
    /// # Panics
    /// For [`Slot::NONE`].
    #[inline]
    pub fn line_mut(&mut self, slot: Slot) -> &mut [u8; LINE_BYTES] {
        &mut self.lines[slot.0 as usize * self.lines_per_slot]
    }

    /// All bytes of a slot.
    ///
    /// # Panics
    /// For [`Slot::NONE`].
    #[inline]
    #[must_use]
    pub fn bytes(&self, slot: Slot) -> &[u8] {
        let first = slot.0 as usize * self.lines_per_slot;
        self.lines[first..first + self.lines_per_slot].as_flattened()
    }

    /// All bytes of a slot, to be written.
    ///
    /// # Panics
    /// For [`Slot::NONE`].
    #[inline]
    pub fn bytes_mut(&mut self, slot: Slot) -> &mut [u8] {
        let first = slot.0 as usize * self.lines_per_slot;
        self.lines[first..first + self.lines_per_slot].as_flattened_mut()
    }

    /// A number that lies with the bytes of a slot, to tell later what they are; [`Slot::NONE`] has none.
    #[inline]
    pub fn note(&mut self, slot: Slot, number: u64) {
        if let Some(note) = self.notes.get_mut(slot.0 as usize) {
            *note = number;
        }
    }

    /// What was noted last of a slot; 0 if nothing ever was.
    #[must_use]
    pub fn note_of(&self, slot: Slot) -> u64 {
        self.notes.get(slot.0 as usize).copied().unwrap_or(0)
    }

    /// Slots that are out.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.lines.len() / self.lines_per_slot - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_given_back_is_handed_out_again_before_a_new_one() {
        let mut slab = Slab::new(64);
        let (first, second) = (slab.take(), slab.take());
        assert_ne!(first, second);
        slab.give_back(first);
        assert_eq!(slab.take(), first);
        assert_eq!(slab.in_use(), 2);
    }

    #[test]
    fn slots_are_as_long_as_was_asked_and_do_not_touch_each_other() {
        for (asked, length) in [(0, 64), (64, 64), (65, 128), (512, 512)] {
            let mut slab = Slab::new(asked);
            let slots = [slab.take(), slab.take(), slab.take()];
            for (value, slot) in (1..).zip(slots) {
                slab.bytes_mut(slot).fill(value);
            }
            for (value, slot) in (1..).zip(slots) {
                assert_eq!(slab.bytes(slot), vec![value; length], "{asked} B");
                assert_eq!(slab.line(slot), &[value; 64]);
            }
        }
    }
}
