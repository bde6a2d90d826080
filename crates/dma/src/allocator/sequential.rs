//! Ranges that a device keeps, with their pages granted in turn: for devices that use buffers in order.

use super::{AccessOrder, AllocError, AllocRequest, Device, IovaAllocator, IovaRange, Pages, Purge, Ranges};
use crate::space::Space;
use lanemark_units::Iova;
use std::collections::VecDeque;

/// [`Ranges`], plus management of single pages for each device with sequential access order.
///
/// A device is [`AccessOrder::Any`] until [`IovaAllocator::set_order`] changes it, and is served by [`Ranges`]. A
/// device that is [`AccessOrder::Sequential`] gets another range only if none of its own has enough free pages, and
/// keeps it until it is detached. A ring of 104 buffers of a page takes 13 ranges, not 104, and neighbours in the ring
/// are neighbours in the IOTLB.
///
/// ```
/// use lanemark_dma::{AccessOrder, AllocRequest, Device, IovaAllocator, Ranges, Sequential, Space};
/// let mut allocator = Sequential::new(Ranges::new(Space::of_device(32)?)?)?;
/// allocator.set_order(Device(0), AccessOrder::Sequential)?;
/// let mut page = |device| allocator.alloc(AllocRequest::bytes(Device(device), 4096)).map(|range| range.at.0);
/// assert_eq!((page(0)?, page(0)?), (0x0000, 0x1000), "pages of one range");
/// assert_eq!((page(1)?, page(1)?), (0x8000, 0x1_0000), "a range each");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sequential {
    ranges: Ranges,
    /// Mask of all pages of a range.
    all_free: u64,
    /// Ranges kept by devices; a slot is reused after its device is detached.
    kept: Vec<Kept>,
    unused: Vec<u32>,
    /// Slot of each kept range, by the number of the range; as long as the highest number kept.
    slots: Vec<u32>,
    devices: Vec<Owner>,
}

/// A range kept by a device.
#[derive(Debug, Clone)]
struct Kept {
    range: IovaRange,
    owner: Device,
    /// One bit per free page.
    free: u64,
    /// One bit per page where an allocation starts: identifies an allocation when it is freed.
    starts: u64,
}

#[derive(Debug, Clone, Default)]
struct Owner {
    order: AccessOrder,
    /// Its slots with free pages, the one longest in the queue first.
    open: VecDeque<u32>,
    owned: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Sequential {
    /// Maximum number of devices.
    pub const MOST_DEVICES: u64 = 1 << 16;

    /// A strategy that takes its ranges from `ranges`.
    ///
    /// # Errors
    /// [`AllocError::TooMany`] for ranges of more than 64 pages.
    pub fn new(ranges: Ranges) -> Result<Sequential, AllocError> {
        let pages = ranges.range_bytes() / ranges.space().page_bytes();
        if pages > 64 {
            return Err(AllocError::TooMany { what: "pages of a range", wanted: pages, most: 64 });
        }
        let all_free = u64::MAX >> (64 - pages);
        Ok(Sequential {
            ranges,
            all_free,
            kept: Vec::new(),
            unused: Vec::new(),
            slots: Vec::new(),
            devices: Vec::new(),
        })
    }

    /// Number of ranges that `device` keeps.
    #[must_use]
    pub fn kept_by(&self, device: Device) -> usize {
        self.owner(device).map_or(0, |owner| owner.owned.len())
    }

    fn owner(&self, device: Device) -> Option<&Owner> {
        self.devices.get(device.0 as usize)
    }

    /// The slot of the range that contains `at`.
    fn slot(&self, at: Iova) -> Option<usize> {
        let slot = *self.slots.get(self.ranges.number(at)).filter(|slot| **slot != NONE)? as usize;
        let offset = at.0.wrapping_sub(self.kept[slot].range.at.0);
        (offset < self.ranges.range_bytes()).then_some(slot)
    }

    /// The error if no range is left: free pages are those in the device's own ranges.
    #[cold]
    fn exhausted(&self, ask: AllocRequest) -> AllocError {
        let open = self.owner(ask.device).map(|owner| owner.open.iter()).into_iter().flatten();
        let masks = open.map(|slot| self.kept[*slot as usize].free);
        let run =
            |free: u64| (1..=64).rev().find(|count| Sequential::run(free, Pages { count: *count, align: 1 }).is_some());
        let (mut free, mut longest) = (0, 0);
        for mask in masks {
            free += u64::from(mask.count_ones());
            longest = longest.max(run(mask).unwrap_or(0));
        }
        ask.exhausted(self.space().page_bytes(), free, longest)
    }

    /// Allocates another range for the device of `ask`.
    fn add_range(&mut self, ask: AllocRequest) -> Result<u32, AllocError> {
        let device = ask.device;
        let whole = AllocRequest::bytes(device, self.ranges.range_bytes());
        let range = self.ranges.alloc(whole).map_err(|_| self.exhausted(ask))?;
        let kept = Kept { range, owner: device, free: self.all_free, starts: 0 };
        let slot = if let Some(slot) = self.unused.pop() {
            self.kept[slot as usize] = kept;
            slot
        } else {
            self.kept.push(kept);
            (self.kept.len() - 1) as u32
        };
        let number = self.ranges.number(range.at);
        if self.slots.len() <= number {
            self.slots.resize(number + 1, NONE);
        }
        self.slots[number] = slot;
        let owner = &mut self.devices[device.0 as usize];
        owner.owned.push(slot);
        owner.open.push_back(slot);
        Ok(slot)
    }

    /// First page of the lowest run of `wanted` pages in `free`.
    fn run(free: u64, wanted: Pages) -> Option<u32> {
        let mut starts = free;
        // A bit stays set where all following pages of the run are free too.
        for more in 1..wanted.count {
            starts &= free >> more;
        }
        (0..64).step_by(usize::try_from(wanted.align.min(64)).unwrap_or(64)).find(|page| starts >> page & 1 != 0)
    }

    fn mask(first: u32, pages: u64) -> u64 {
        (u64::MAX >> (64 - pages)) << first
    }
}

impl IovaAllocator for Sequential {
    fn name(&self) -> &'static str {
        "sequential"
    }

    fn space(&self) -> &Space {
        self.ranges.space()
    }

    fn longest_bytes(&self) -> u64 {
        self.ranges.longest_bytes()
    }

    fn alloc(&mut self, ask: AllocRequest) -> Result<IovaRange, AllocError> {
        if self.owner(ask.device).is_none_or(|owner| owner.order == AccessOrder::Any) {
            return self.ranges.alloc(ask);
        }
        let (bits, range_bytes) = (self.space().page_bits(), self.ranges.range_bytes());
        if ask.align.bytes() > range_bytes {
            return Err(AllocError::Align { align_bytes: ask.align.bytes(), most_bytes: range_bytes });
        }
        let wanted = Pages::of(ask, bits, range_bytes)?;
        let owner = &self.devices[ask.device.0 as usize];
        let fits = |slot: &u32| Sequential::run(self.kept[*slot as usize].free, wanted);
        let found = owner.open.iter().enumerate().find_map(|(at, slot)| Some((at, *slot, fits(slot)?)));
        let (at, slot, first) = if let Some(found) = found {
            found
        } else {
            let slot = self.add_range(ask)?;
            (self.devices[ask.device.0 as usize].open.len() - 1, slot, 0)
        };
        let kept = &mut self.kept[slot as usize];
        kept.free &= !Sequential::mask(first, wanted.count);
        kept.starts |= 1 << first;
        if kept.free == 0 {
            self.devices[ask.device.0 as usize].open.remove(at);
        }
        Ok(IovaRange { at: Iova(kept.range.at.0 + (u64::from(first) << bits)), len_bytes: wanted.count << bits })
    }

    fn free(&mut self, device: Device, range: IovaRange) -> Result<(), AllocError> {
        let Some(slot) = self.slot(range.at) else { return self.ranges.free(device, range) };
        let (bits, all_free) = (self.space().page_bits(), self.all_free);
        let kept = &mut self.kept[slot];
        let offset = range.at.0 - kept.range.at.0;
        let (first, pages) = ((offset >> bits) as u32, range.len_bytes >> bits);
        let is_whole = (offset | range.len_bytes) & ((1 << bits) - 1) == 0 && pages > 0;
        if kept.owner != device || !is_whole || u64::from(first) + pages > u64::from(all_free.count_ones()) {
            return Err(AllocError::NotOut { range });
        }
        let mask = Sequential::mask(first, pages);
        // It starts at an allocation, contains no other start, and a start, a free page or the end follows.
        let after = if u64::from(first) + pages < 64 { 1 << (u64::from(first) + pages) } else { 0 };
        let ends_there = after & all_free == 0 || after & (kept.free | kept.starts) != 0;
        if kept.free & mask != 0 || kept.starts & mask != 1 << first || !ends_there {
            return Err(AllocError::NotOut { range });
        }
        kept.starts &= !mask;
        let was_full = kept.free == 0;
        kept.free |= mask;
        if was_full && let Some(owner) = self.devices.get_mut(device.0 as usize) {
            owner.open.push_back(slot as u32);
        }
        Ok(())
    }

    fn purge(&self, device: Device) -> Purge {
        match self.owner(device) {
            // Its pages share an IOTLB entry with pages of the same range that stay in use.
            Some(owner) if owner.order == AccessOrder::Sequential => Purge::Matching,
            _ => Purge::Entries,
        }
    }

    fn set_order(&mut self, device: Device, order: AccessOrder) -> Result<(), AllocError> {
        let at = device.0 as usize;
        if u64::from(device.0) >= Sequential::MOST_DEVICES {
            return Err(AllocError::TooMany {
                what: "devices",
                wanted: u64::from(device.0) + 1,
                most: Sequential::MOST_DEVICES,
            });
        }
        if self.devices.len() <= at {
            self.devices.resize_with(at + 1, Owner::default);
        }
        self.devices[at].order = order;
        Ok(())
    }

    fn invalidate(&mut self, device: Device) {
        let Some(owner) = self.devices.get_mut(device.0 as usize).map(std::mem::take) else { return };
        for slot in owner.owned {
            let range = self.kept[slot as usize].range;
            self.slots[self.ranges.number(range.at)] = NONE;
            self.unused.push(slot);
            // Freeing cannot fail: the device kept this range.
            let given_back = self.ranges.free(device, range);
            debug_assert!(given_back.is_ok(), "{given_back:?}");
        }
    }
}
