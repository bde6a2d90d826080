//! A pool of byte slots of one size.

/// Bytes of a line; a slot is a whole number of lines.
const LINE_BYTES: usize = 64;

/// Index of an allocated slot, valid until the slot is given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u32);

impl Slot {
    /// The absent slot, without bytes.
    pub const NONE: Slot = Slot(u32::MAX);

    /// Returns the index, which is unique among allocated slots.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A pool of slots of one size. It grows during warm-up and is constant afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slab {
    lines_per_slot: usize,
    lines: Vec<[u8; LINE_BYTES]>,
    free: Vec<u32>,
    /// The note of each slot, set by [`Slab::note`].
    notes: Vec<u64>,
}

impl Slab {
    /// Creates a pool of slots of at least `slot_bytes` bytes, rounded up to whole lines, and of at least one line.
    #[must_use]
    pub fn new(slot_bytes: usize) -> Slab {
        Slab {
            lines_per_slot: slot_bytes.div_ceil(LINE_BYTES).max(1),
            lines: Vec::new(),
            free: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the size of a slot in bytes.
    #[must_use]
    pub const fn slot_bytes(&self) -> usize {
        self.lines_per_slot * LINE_BYTES
    }

    /// Allocates a slot. Its bytes are not initialised.
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

    /// Frees a slot; [`Slot::NONE`] is ignored.
    #[inline]
    pub fn give_back(&mut self, slot: Slot) {
        if slot != Slot::NONE {
            debug_assert!(!self.free.contains(&slot.0), "slot {} is freed twice", slot.0);
            self.free.push(slot.0);
        }
    }

    /// Returns the first line of a slot.
    ///
    /// # Panics
    /// For [`Slot::NONE`].
    #[inline]
    #[must_use]
    pub fn line(&self, slot: Slot) -> &[u8; LINE_BYTES] {
        &self.lines[slot.0 as usize * self.lines_per_slot]
    }

    /// Returns the first line of a slot for writing.
    ///
    /// # Panics
    /// For [`Slot::NONE`].
    #[inline]
    pub fn line_mut(&mut self, slot: Slot) -> &mut [u8; LINE_BYTES] {
        &mut self.lines[slot.0 as usize * self.lines_per_slot]
    }

    /// Returns all bytes of a slot.
    ///
    /// # Panics
    /// For [`Slot::NONE`].
    #[inline]
    #[must_use]
    pub fn bytes(&self, slot: Slot) -> &[u8] {
        let first = slot.0 as usize * self.lines_per_slot;
        self.lines[first..first + self.lines_per_slot].as_flattened()
    }

    /// Returns all bytes of a slot for writing.
    ///
    /// # Panics
    /// For [`Slot::NONE`].
    #[inline]
    pub fn bytes_mut(&mut self, slot: Slot) -> &mut [u8] {
        let first = slot.0 as usize * self.lines_per_slot;
        self.lines[first..first + self.lines_per_slot].as_flattened_mut()
    }

    /// Attaches a number to a slot, which identifies its content later; [`Slot::NONE`] is ignored.
    #[inline]
    pub fn note(&mut self, slot: Slot, number: u64) {
        if let Some(note) = self.notes.get_mut(slot.0 as usize) {
            *note = number;
        }
    }

    /// Returns the last number attached to a slot by [`Slab::note`]; 0 if there is none.
    #[must_use]
    pub fn note_of(&self, slot: Slot) -> u64 {
        self.notes.get(slot.0 as usize).copied().unwrap_or(0)
    }

    /// Returns the number of allocated slots.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.lines.len() / self.lines_per_slot - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_slot_is_reused_before_a_new_one_is_added() {
        let mut slab = Slab::new(64);
        let (first, second) = (slab.take(), slab.take());
        assert_ne!(first, second);
        slab.give_back(first);
        assert_eq!(slab.take(), first);
        assert_eq!(slab.in_use(), 2);
    }

    #[test]
    fn slots_have_the_requested_length_rounded_to_lines_and_do_not_overlap() {
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
