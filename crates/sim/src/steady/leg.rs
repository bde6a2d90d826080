//! One direction of a DMA job, and the addresses of its transfers.

use crate::index::CardIndex;
use lanemark_machine::Verb;

/// Requests are split at multiples of this; no request of the specification is longer.
pub(crate) const PAGE: u64 = 4096;
/// Unit of TLP addresses, in bytes.
const DW: u64 = 4;

/// Writes or reads of one device. Transfer `n` lies at place `n` of its window; the first place follows the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    /// Requester ID.
    pub(crate) owner: u16,
    pub(crate) verb: Verb,
    /// Bus address of offset 0 of the window.
    pub(crate) base: u64,
    /// Bus address of the first place.
    pub(crate) start: u64,
    /// Bytes of a place.
    pub(crate) bytes: u64,
    pub(crate) places: u64,
    /// Transfers of an iteration, number of the first iteration, and transfers of the job.
    pub(crate) count: u64,
    pub(crate) first_pass: u64,
    pub(crate) transfers: u64,
    /// Whether every transfer has completed.
    pub(crate) is_over: bool,
    /// Number of transfers begun.
    pub(crate) next: u64,
    /// Number of outstanding reads.
    pub(crate) open: u64,
    /// Bytes of the current transfer that have not been requested.
    pub(crate) unasked: u64,
    /// Whether its requests have Relaxed or ID-Based Ordering.
    pub(crate) are_free: bool,
    pub(crate) is_random: bool,
    /// Distance of two transfers that no part can distinguish.
    pub(crate) step: u64,
}

impl Leg {
    /// Returns its card.
    pub(crate) fn card(&self) -> CardIndex {
        CardIndex::of_requester(self.owner)
    }

    /// Returns the number of transfers that have not begun.
    pub(crate) fn left(&self) -> u64 {
        self.transfers - self.next
    }

    /// Returns the end of the last place.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.saturating_mul(self.places))
    }

    /// Returns the bus address of a transfer.
    pub(crate) fn address_of(&self, number: u64) -> u64 {
        self.start + number % self.places * self.bytes
    }

    /// Returns the place of an address, and the offset in it.
    pub(crate) fn place_of(&self, address: u64) -> Option<(u64, u64)> {
        let offset = address.checked_sub(self.start).filter(|_| address < self.end())?;
        Some((offset / self.bytes, offset % self.bytes))
    }

    /// Sets the step, if parts depend on addresses only modulo `modulus` and on the side of `border`. In a naturally
    /// aligned block of a power of two bytes, from a DW to a page, they depend on addresses only modulo the block
    /// size, or modulo `least_block` if that is larger.
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

/// Returns the greatest common divisor by Euclid's algorithm.
pub(crate) fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}
