//! One way of a device's job: where its transfers go, one behind the other.

use crate::index::CardIndex;
use lanemark_machine::Verb;

/// Requests are split at multiples of this; nothing that the standard cuts is longer.
pub(crate) const PAGE: u64 = 4096;
/// Bytes of what addresses of TLPs count in.
const DW: u64 = 4;

/// Writes or reads by one device: transfer number `n` lies at place `n` of its window, and behind the last place comes the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    /// Who, as a requester.
    pub(crate) owner: u16,
    pub(crate) verb: Verb,
    /// Bus address of what the window's offsets count from.
    pub(crate) base: u64,
    /// Bus address of its first place.
    pub(crate) start: u64,
    /// Bytes of a place.
    pub(crate) bytes: u64,
    pub(crate) places: u64,
    /// Transfers of a pass, the number of the first pass, and transfers in all.
    pub(crate) count: u64,
    pub(crate) first_pass: u64,
    pub(crate) transfers: u64,
    /// Whether all of them have come to their end.
    pub(crate) is_over: bool,
    /// Transfers begun.
    pub(crate) next: u64,
    /// Reads of them that have not come.
    pub(crate) open: u64,
    /// Bytes that the one begun last has not asked for.
    pub(crate) unasked: u64,
    /// Whether its requests have relaxed or ID-based ordering.
    pub(crate) are_free: bool,
    pub(crate) is_random: bool,
    /// Two transfers that are this many apart look the same to every part.
    pub(crate) step: u64,
}

impl Leg {
    /// Which card it is of.
    pub(crate) fn card(&self) -> CardIndex {
        CardIndex::of_requester(self.owner)
    }

    /// Transfers that have not begun.
    pub(crate) fn left(&self) -> u64 {
        self.transfers - self.next
    }

    /// Behind its last place.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.saturating_mul(self.places))
    }

    /// The bus address of a transfer.
    pub(crate) fn address_of(&self, number: u64) -> u64 {
        self.start + number % self.places * self.bytes
    }

    /// Which place an address is in, and how far from its start.
    pub(crate) fn place_of(&self, address: u64) -> Option<(u64, u64)> {
        let offset = address.checked_sub(self.start).filter(|_| address < self.end())?;
        Some((offset / self.bytes, offset % self.bytes))
    }

    /// Sets the step, where no part looks at more of an address than its rest by `modulus`, nor at which side of
    /// `border` it is; and in a block of a power of two bytes, from a DW to a page, at no more than its rest by that, or
    /// by `least_block` if that is more.
    pub(crate) fn set_step(&mut self, modulus: u64, least_block: u64, border: u64) {
        let is_block = self.bytes.is_power_of_two() && (DW..=PAGE).contains(&self.bytes);
        let is_aligned = self.start.is_multiple_of(self.bytes);
        let is_regular = is_block && is_aligned && modulus.is_power_of_two();
        let modulus = if is_regular { self.bytes.max(least_block) } else { modulus };
        let is_even = self.bytes.saturating_mul(self.places).is_multiple_of(modulus);
        let is_on_one_side = self.start >= border || self.end() <= border;
        let step = modulus / greatest_common_divisor(modulus, self.bytes);
        self.step = if is_even && is_on_one_side { step.min(self.places) } else { self.places };
    }
}

/// Euclid's.
pub(crate) fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}
