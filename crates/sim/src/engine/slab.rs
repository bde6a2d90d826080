//! Fixed slots of bytes, handed out and given back.

/// Bytes of one slot.
pub const SLOT_BYTES: usize = 64;

/// Which slot; valid until it is given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u32);

impl Slot {
    /// No bytes at all.
    pub const NONE: Slot = Slot(u32::MAX);
}

/// Slots of 64 B. It grows while a run warms up and then no more.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Slab {
    slots: Vec<[u8; SLOT_BYTES]>,
    free: Vec<u32>,
}

impl Slab {
    /// A slot nobody else has; its bytes are whatever they were.
    #[inline]
    pub fn take(&mut self) -> Slot {
        if let Some(index) = self.free.pop() {
            return Slot(index);
        }
        self.slots.push([0; SLOT_BYTES]);
        Slot(self.slots.len() as u32 - 1)
    }

    /// Gives a slot back; [`Slot::NONE`] is ignored.
    #[inline]
    pub fn give_back(&mut self, slot: Slot) {
        if slot != Slot::NONE {
            debug_assert!(!self.free.contains(&slot.0), "slot {} is given back twice", slot.0);
            self.free.push(slot.0);
        }
    }

    /// The bytes of a slot.
    ///
    /// # Panics
    /// For [`Slot::NONE`].
    #[inline]
    #[must_use]
    pub fn bytes(&self, slot: Slot) -> &[u8; SLOT_BYTES] {
        &self.slots[slot.0 as usize]
    }

    /// The bytes of a slot, to be written.
    ///
    /// # Panics
    /// For [`Slot::NONE`].
    #[inline]
    pub fn bytes_mut(&mut self, slot: Slot) -> &mut [u8; SLOT_BYTES] {
        &mut self.slots[slot.0 as usize]
    }

    /// Slots that are out.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_given_back_is_handed_out_again_before_a_new_one() {
        let mut slab = Slab::default();
        let (first, second) = (slab.take(), slab.take());
        assert_ne!(first, second);
        slab.give_back(first);
        assert_eq!(slab.take(), first);
        assert_eq!(slab.in_use(), 2);
    }
}
