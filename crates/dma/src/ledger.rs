//! The ledger of a domain: live mappings, and the call sites that mapped and unmapped them.

use crate::allocator::Device;
use crate::attributes::Attributes;
use crate::mapping::{CallSite, Ticket};
use lanemark_units::Iova;
use std::panic::Location;

/// A slot of the ledger: a live mapping, or the remains of the last one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// First page of the mapping.
    pub first: Iova,
    pub mapped_at: CallSite,
    /// Call site of the unmap that ended the previous mapping of this slot.
    unmapped_at: Option<CallSite>,
    /// Length of the mapped pages, in bytes; in a free slot, the index of the next free slot.
    pub len_bytes: u64,
    /// Bytes that the strategy granted; 0 in a free slot.
    pub granted_bytes: u64,
    /// Incremented each time a mapping ends, so that outdated handles are detected.
    generation: u32,
    /// Number of the device, below 2^16.
    device: u16,
    /// Current attributes; an older handle may hold older ones.
    pub attributes: Attributes,
}

impl Entry {
    #[inline]
    pub fn device(&self) -> Device {
        Device(self.device.into())
    }
}

/// An array of slots with a free list: insertion and removal need no search.
#[derive(Debug)]
pub(crate) struct Ledger {
    slots: Vec<Entry>,
    /// The slot freed last: head of the free list.
    free: u32,
    most: u32,
}

/// A free slot, reserved before the mapping is programmed and filled afterwards.
pub(crate) struct Vacant<'a> {
    entry: &'a mut Entry,
    free: &'a mut u32,
}

impl Vacant<'_> {
    /// Starts a mapping in this slot.
    #[inline]
    pub fn insert(
        self,
        first: Iova,
        len_bytes: u64,
        granted_bytes: u64,
        to: (Device, Attributes),
        site: CallSite,
    ) -> Ticket {
        let Vacant { entry, free } = self;
        let ticket = Ticket { slot: *free, generation: entry.generation };
        *free = entry.len_bytes as u32;
        // Field by field, to keep `unmapped_at` of the previous mapping.
        entry.first = first;
        entry.mapped_at = site;
        entry.len_bytes = len_bytes;
        entry.granted_bytes = granted_bytes;
        entry.device = to.0.0 as u16;
        entry.attributes = to.1;
        ticket
    }
}

/// The reason why a handle has no live mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotLive {
    /// Unmapped before, at this call site if it is still recorded.
    Unmapped(Option<CallSite>),
    /// Never mapped by this ledger.
    Unknown,
}

const NONE: u32 = u32::MAX;

impl Ledger {
    /// An empty ledger for at most `most` live mappings.
    pub fn new(most: u32) -> Ledger {
        Ledger { slots: Vec::new(), free: NONE, most: most.min(NONE - 1) }
    }

    /// Number of live mappings, by counting.
    pub fn live(&self) -> usize {
        self.iter().count()
    }

    pub fn most(&self) -> u32 {
        self.most
    }

    /// Memory used by the ledger, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Entry>()
    }

    /// A slot for the next mapping; `None` if the maximum number of mappings is live.
    #[inline]
    pub fn vacant(&mut self) -> Option<Vacant<'_>> {
        if self.free as usize >= self.slots.len() {
            self.grow()?;
        }
        let entry = self.slots.get_mut(self.free as usize)?;
        Some(Vacant { entry, free: &mut self.free })
    }

    /// Appends a free slot.
    #[cold]
    fn grow(&mut self) -> Option<()> {
        // No slot is free: all are live or have exhausted their generations.
        if self.slots.len() >= self.most as usize {
            return None;
        }
        self.free = self.slots.len() as u32;
        self.slots.push(Entry {
            first: Iova(0),
            mapped_at: Location::caller(),
            unmapped_at: None,
            len_bytes: NONE.into(),
            granted_bytes: 0,
            generation: 0,
            device: 0,
            attributes: Attributes::from_bits(0),
        });
        Some(())
    }

    /// The live mapping of a handle.
    #[inline]
    pub fn get(&self, ticket: Ticket) -> Option<&Entry> {
        // No handle has the generation of a free slot.
        self.slots.get(ticket.slot as usize).filter(|entry| entry.generation == ticket.generation)
    }

    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Entry> {
        self.slots.get_mut(ticket.slot as usize).filter(|entry| entry.generation == ticket.generation)
    }

    /// Ends a mapping and frees its slot.
    #[inline]
    pub fn remove(&mut self, ticket: Ticket, site: CallSite) {
        let free = self.free;
        let Some(entry) = self.get_mut(ticket) else { return };
        entry.unmapped_at = Some(site);
        entry.granted_bytes = 0;
        entry.generation = entry.generation.wrapping_add(1);
        // A slot with exhausted generations is not reused, so that no two handles are equal.
        if entry.generation != u32::MAX {
            entry.len_bytes = free.into();
            self.free = ticket.slot;
        }
    }

    /// Why a handle has no live mapping.
    pub fn why_not(&self, ticket: Ticket) -> NotLive {
        match self.slots.get(ticket.slot as usize) {
            Some(entry) if ticket.generation < entry.generation => {
                let is_last = ticket.generation + 1 == entry.generation;
                NotLive::Unmapped(entry.unmapped_at.filter(|_| is_last))
            }
            _ => NotLive::Unknown,
        }
    }

    /// Live mappings in order of slots.
    pub fn iter(&self) -> impl Iterator<Item = (Ticket, &Entry)> {
        let of = |(slot, entry): (usize, &Entry)| Ticket { slot: slot as u32, generation: entry.generation };
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.granted_bytes > 0)
            .map(move |(slot, entry)| (of((slot, entry)), entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: (Device, Attributes) = (Device(0), Attributes::from_bits(1));

    #[test]
    fn an_entry_takes_48_bytes() {
        // A million of them are 48 MB, and 72 MB while the array doubles.
        assert_eq!(size_of::<Entry>(), 48);
    }

    #[test]
    fn a_handle_is_valid_once_and_its_unmap_site_is_kept_until_the_slot_is_freed_again() {
        let mut ledger = Ledger::new(2);
        let site = Location::caller();
        let insert = |ledger: &mut Ledger| ledger.vacant().unwrap().insert(Iova(0x1000), 4096, 32768, TO, site);
        let first = insert(&mut ledger);
        assert!(ledger.get(first).is_some() && ledger.vacant().is_some());
        let other = insert(&mut ledger);
        assert!(ledger.vacant().is_none());
        ledger.remove(first, site);
        assert!(ledger.get(first).is_none() && ledger.get(other).is_some());
        assert_eq!(ledger.why_not(first), NotLive::Unmapped(Some(site)));
        let second = insert(&mut ledger);
        assert_eq!((second.slot, ledger.live()), (first.slot, 2));
        assert_eq!(ledger.why_not(first), NotLive::Unmapped(Some(site)), "the slot is in use again");
        ledger.remove(second, site);
        assert_eq!(ledger.why_not(first), NotLive::Unmapped(None), "the recorded unmap is of another mapping");
        assert_eq!(ledger.why_not(Ticket { slot: 7, generation: 0 }), NotLive::Unknown);
        assert_eq!(ledger.iter().map(|(ticket, _)| ticket).collect::<Vec<_>>(), [other]);
    }

    #[test]
    fn a_slot_is_reused_until_its_generations_are_exhausted() {
        let mut ledger = Ledger::new(2);
        let site = Location::caller();
        let ticket = ledger.vacant().unwrap().insert(Iova(0), 4096, 4096, TO, site);
        ledger.slots[0].generation = u32::MAX - 2;
        ledger.remove(Ticket { generation: u32::MAX - 2, ..ticket }, site);
        let last = ledger.vacant().unwrap().insert(Iova(0), 4096, 4096, TO, site);
        assert_eq!(last, Ticket { slot: 0, generation: u32::MAX - 1 });
        ledger.remove(last, site);
        assert_eq!(ledger.vacant().unwrap().insert(Iova(0), 4096, 4096, TO, site), Ticket { slot: 1, generation: 0 });
    }
}
