//! One direction of a DMA job, and the addresses of its transfers.

use crate::index::CardIndex;
use crate::tlp::Tlp;
use lanemark_engine::Slab;
use lanemark_machine::{Pattern, Verb, Window};
use std::num::NonZeroU64;

/// Requests are split at multiples of this; no request of the specification is longer.
pub(crate) const PAGE: u64 = 4096;
/// Unit of TLP addresses, in bytes.
const DW: u64 = 4;

/// Writes or reads of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    /// Requester ID.
    pub(crate) owner: u16,
    pub(crate) verb: Verb,
    /// Bus address of offset 0 of the window.
    pub(crate) base: u64,
    /// Places of the transfers.
    pub(crate) window: Window,
    /// Bytes of a transfer.
    pub(crate) bytes: u64,
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
    /// Transfer of the read that has each tag, for outstanding ones.
    pub(crate) by_tag: Vec<u64>,
    /// Distance of two transfers that no part can distinguish; `None` if no distance is known, at random places.
    pub(crate) step: Option<NonZeroU64>,
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

    /// Returns the number of places.
    pub(crate) fn places(&self) -> u64 {
        self.window.places(self.bytes)
    }

    /// Returns whether each transfer is at a random place.
    pub(crate) fn is_random(&self) -> bool {
        matches!(self.window.pattern, Pattern::Random | Pattern::RandomStrided(_))
    }

    /// Returns the bus address of the first place.
    pub(crate) fn start(&self) -> u64 {
        self.base + self.window.offset
    }

    /// Returns the end of the last place.
    pub(crate) fn end(&self) -> u64 {
        let last = self.window.step(self.bytes).saturating_mul(self.places() - 1);
        self.start().saturating_add(last).saturating_add(self.bytes)
    }

    /// Returns the bus address of a transfer.
    pub(crate) fn address_of(&self, number: u64) -> u64 {
        self.base + self.window.place(number, self.bytes)
    }

    /// Returns the offset of an address in transfer `number`, if that contains it.
    pub(crate) fn within(&self, number: u64, address: u64) -> Option<u64> {
        address.checked_sub(self.address_of(number)).filter(|within| *within < self.bytes)
    }

    /// Returns the transfer of a write's payload, which has its number as a note, or of a read's tag.
    pub(crate) fn number_of(&self, tlp: &Tlp, slab: &Slab) -> Option<u64> {
        match self.verb {
            Verb::Store => Some(slab.note_of(tlp.payload)),
            Verb::Load => self.by_tag.get(usize::from(tlp.tag)).copied(),
        }
    }

    /// Sets the step, if parts depend on addresses only modulo `modulus` and on the side of `border`. In a naturally
    /// aligned block of a power of two bytes, from a DW to a page, they depend on addresses only modulo the block
    /// size, or modulo `least_block` if that is larger.
    pub(crate) fn set_step(&mut self, modulus: u64, least_block: u64, border: u64) {
        let (distance, places) = (self.window.step(self.bytes), self.places());
        let is_block = self.bytes.is_power_of_two() && (DW..=PAGE).contains(&self.bytes);
        let is_aligned = self.start().is_multiple_of(self.bytes) && distance.is_multiple_of(self.bytes);
        let is_regular = is_block && is_aligned && modulus.is_power_of_two();
        let modulus = if is_regular { self.bytes.max(least_block) } else { modulus };
        let is_even = distance.saturating_mul(places).is_multiple_of(modulus);
        let is_on_one_side = self.start() >= border || self.end() <= border;
        let step = modulus / greatest_common_divisor(modulus, distance);
        let step = if is_even && is_on_one_side { step.min(places) } else { places };
        self.step = NonZeroU64::new(step).filter(|step| !self.is_random() || step.get() == 1);
    }
}

/// Returns the greatest common divisor by Euclid's algorithm.
pub(crate) fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}
