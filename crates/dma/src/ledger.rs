//! What is lent to whom, since which line of the program.

use crate::allocator::Device;
use crate::attributes::Attributes;
use crate::mapping::{CallSite, Ticket};
use lanemark_units::Iova;
use std::panic::Location;

/// A place of the ledger: a live mapping, or what is left of the last one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// Its first page.
    pub first: Iova,
    pub mapped_at: CallSite,
    /// Who unmapped what was here before.
    unmapped_at: Option<CallSite>,
    /// Whole pages that are mapped, in bytes; while it is free, the next free place.
    pub len_bytes: u64,
    /// What the strategy granted, in bytes; 0 while it is free.
    pub granted_bytes: u64,
    /// One more each time a mapping ends, so an old receipt is known.
    generation: u32,
    /// Its number; there are no more than 2^16.
    device: u16,
    /// As they are by now: a receipt may be older.
    pub attributes: Attributes,
}

impl Entry {
    #[inline]
    pub fn device(&self) -> Device {
        Device(self.device.into())
    }
}

/// Mappings in an array of places; a mapping comes and goes without a look-up.
#[derive(Debug)]
pub(crate) struct Ledger {
    places: Vec<Entry>,
    /// The place that was freed last.
    free: u32,
    most: u32,
}

/// A place for a mapping that is about to begin: nothing happens before it does.
pub(crate) struct Vacant<'a> {
    entry: &'a mut Entry,
    free: &'a mut u32,
}

impl Vacant<'_> {
    /// A mapping begins.
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
        // Field by field: who unmapped the last one stays known.
        entry.first = first;
        entry.mapped_at = site;
        entry.len_bytes = len_bytes;
        entry.granted_bytes = granted_bytes;
        entry.device = to.0.0 as u16;
        entry.attributes = to.1;
        ticket
    }
}

/// Why a receipt is no good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotLive {
    /// It was unmapped, here if that is known still.
    Before(Option<CallSite>),
    /// It is not of this ledger.
    Never,
}

const NONE: u32 = u32::MAX;

impl Ledger {
    /// For at most `most` mappings at a time.
    pub fn new(most: u32) -> Ledger {
        Ledger { places: Vec::new(), free: NONE, most: most.min(NONE - 1) }
    }

    /// How many are live, counted.
    pub fn live(&self) -> usize {
        self.iter().count()
    }

    pub fn most(&self) -> u32 {
        self.most
    }

    /// Bytes that it takes of the host.
    pub fn size_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Entry>()
    }

    /// The place of the next mapping; `None` where there are as many as may be.
    #[inline]
    pub fn vacant(&mut self) -> Option<Vacant<'_>> {
        if self.free as usize >= self.places.len() {
            self.grow()?;
        }
        let entry = self.places.get_mut(self.free as usize)?;
        Some(Vacant { entry, free: &mut self.free })
    }

    /// One more place, which is free.
    #[cold]
    fn grow(&mut self) -> Option<()> {
        // None is free: all of them are live, but for those that are used up.
        if self.places.len() >= self.most as usize {
            return None;
        }
        self.free = self.places.len() as u32;
        self.places.push(Entry {
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

    /// The live mapping of a receipt.
    #[inline]
    pub fn get(&self, ticket: Ticket) -> Option<&Entry> {
        // Nobody has a receipt with the generation of a place that is free.
        self.places.get(ticket.slot as usize).filter(|entry| entry.generation == ticket.generation)
    }

    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Entry> {
        self.places.get_mut(ticket.slot as usize).filter(|entry| entry.generation == ticket.generation)
    }

    /// A mapping ends; its place is free.
    #[inline]
    pub fn remove(&mut self, ticket: Ticket, site: CallSite) {
        let free = self.free;
        let Some(entry) = self.get_mut(ticket) else { return };
        entry.unmapped_at = Some(site);
        entry.granted_bytes = 0;
        entry.generation = entry.generation.wrapping_add(1);
        // A place whose generations are used up is not used again: no receipt is mistaken for another.
        if entry.generation != u32::MAX {
            entry.len_bytes = free.into();
            self.free = ticket.slot;
        }
    }

    /// What is wrong with a receipt that has no live mapping.
    pub fn why_not(&self, ticket: Ticket) -> NotLive {
        match self.places.get(ticket.slot as usize) {
            Some(entry) if ticket.generation < entry.generation => {
                let is_last = ticket.generation + 1 == entry.generation;
                NotLive::Before(entry.unmapped_at.filter(|_| is_last))
            }
            _ => NotLive::Never,
        }
    }

    /// Live mappings, by place.
    pub fn iter(&self) -> impl Iterator<Item = (Ticket, &Entry)> {
        let of = |(slot, entry): (usize, &Entry)| Ticket { slot: slot as u32, generation: entry.generation };
        self.places
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
    fn a_receipt_is_good_once_and_its_end_is_known_until_the_next_of_its_place_ends() {
        let mut ledger = Ledger::new(2);
        let site = Location::caller();
        let lend = |ledger: &mut Ledger| ledger.vacant().unwrap().insert(Iova(0x1000), 4096, 32768, TO, site);
        let first = lend(&mut ledger);
        assert!(ledger.get(first).is_some() && ledger.vacant().is_some());
        let other = lend(&mut ledger);
        assert!(ledger.vacant().is_none());
        ledger.remove(first, site);
        assert!(ledger.get(first).is_none() && ledger.get(other).is_some());
        assert_eq!(ledger.why_not(first), NotLive::Before(Some(site)));
        let second = lend(&mut ledger);
        assert_eq!((second.slot, ledger.live()), (first.slot, 2));
        assert_eq!(ledger.why_not(first), NotLive::Before(Some(site)), "its place is in use again");
        ledger.remove(second, site);
        assert_eq!(ledger.why_not(first), NotLive::Before(None), "the last end is another's");
        assert_eq!(ledger.why_not(Ticket { slot: 7, generation: 0 }), NotLive::Never);
        assert_eq!(ledger.iter().map(|(ticket, _)| ticket).collect::<Vec<_>>(), [other]);
    }

    #[test]
    fn a_place_is_used_until_its_generations_are() {
        let mut ledger = Ledger::new(2);
        let site = Location::caller();
        let ticket = ledger.vacant().unwrap().insert(Iova(0), 4096, 4096, TO, site);
        ledger.places[0].generation = u32::MAX - 2;
        ledger.remove(Ticket { generation: u32::MAX - 2, ..ticket }, site);
        let last = ledger.vacant().unwrap().insert(Iova(0), 4096, 4096, TO, site);
        assert_eq!(last, Ticket { slot: 0, generation: u32::MAX - 1 });
        ledger.remove(last, site);
        assert_eq!(ledger.vacant().unwrap().insert(Iova(0), 4096, 4096, TO, site), Ticket { slot: 1, generation: 0 });
    }
}
