//! What can be done with a mapping that is alive, beside ending it.

use super::{Domain, runs};
use crate::allocator::{Device, IovaAllocator, IovaRange};
use crate::attributes::Permission;
use crate::backend::{Ability, Backend, CacheCare, Stale};
use crate::buffer::{Buffer, HostAddress};
use crate::error::{DmaError, Trouble};
use crate::hints::{Hints, MapRequest};
use crate::invalidation::Unmapped;
use crate::ledger::Entry;
use crate::mapping::Mapping;
use crate::sync::{Turn, cares};
use lanemark_units::{Iova, Ticks};
use std::panic::Location;

impl<A: IovaAllocator, B: Backend> Domain<A, B> {
    /// Points pages of a mapping elsewhere: those from `first_page` on, one for each of `pages`. The device sees the old
    /// or the new memory while this lasts and the new afterwards, at the same addresses: scattered pages become one
    /// range that it knows already. The attributes stay.
    ///
    /// # Errors
    /// [`Trouble::Unsupported`] without [`Ability::Remap`]; [`Trouble::Outside`] for more pages than the mapping has;
    /// [`Trouble::Backend`], where pages before the one it names may have been changed; else as [`Domain::unmap`].
    #[track_caller]
    pub fn remap(
        &mut self,
        mapping: Mapping,
        first_page: u64,
        pages: &[B::Memory],
        now: Ticks,
    ) -> Result<(), DmaError> {
        let site = Location::caller();
        self.need(Ability::Remap)?;
        let entry = *self.live(&mapping, site)?;
        let len_bytes = self.scattered_bytes(pages)?;
        let end = first_page.checked_add(pages.len() as u64);
        if end.is_none_or(|end| end > entry.len_bytes >> self.page_bits) {
            return Err(self.outside(mapping, "the pages to change are not all in it"));
        }
        self.make_room(now)?;
        let range = IovaRange { at: Iova(entry.first.0 + (first_page << self.page_bits)), len_bytes };
        let (mut done_bytes, mut result) = (0, Ok(()));
        for (memory, run_bytes) in runs(pages, self.page_bytes()) {
            let part = IovaRange { at: Iova(range.at.0 + done_bytes), len_bytes: run_bytes };
            if let Err(source) = self.backend.remap(part, memory, entry.attributes) {
                result = Err(self.backend_error("changing the memory of", part, source));
                break;
            }
            done_bytes += run_bytes;
        }
        // What has changed is out of reach, whether all has or not.
        self.invalidate_now(range, entry.device(), now)?;
        result
    }

    /// Gives a mapping other attributes, while the device may use it; what it no longer may do is out of its reach when
    /// this returns. Its receipts stay good; the one that is given back has the new attributes.
    ///
    /// # Errors
    /// [`Trouble::Unsupported`] without [`Ability::SetAttributes`] or what a hint needs; [`Trouble::Backend`], with all
    /// as before; else as [`Domain::unmap`].
    #[track_caller]
    pub fn set_attributes(
        &mut self,
        mapping: Mapping,
        permission: Permission,
        hints: Hints,
        now: Ticks,
    ) -> Result<Mapping, DmaError> {
        let site = Location::caller();
        self.need(Ability::SetAttributes)?;
        let entry = *self.live(&mapping, site)?;
        let lend = MapRequest::new(entry.device(), permission).hints(hints);
        self.check(lend)?;
        self.make_room(now)?;
        let (range, attributes) = (Self::mapped(&entry), lend.attributes());
        if let Err(source) = self.backend.set_attributes(range, attributes) {
            return Err(self.backend_error("changing the attributes of", range, source));
        }
        if let Some(entry) = self.ledger.get_mut(mapping.ticket) {
            entry.attributes = attributes;
        }
        self.invalidate_now(range, entry.device(), now)?;
        Ok(Mapping { attributes, ..mapping })
    }

    /// Takes the end of a mapping back: whole pages that none of its first `keep_bytes` bytes are in. Its IOVAs stay with
    /// the mapping until that ends. Gives the receipt of what stays; older ones stay good.
    ///
    /// # Errors
    /// [`Trouble::Unsupported`] without [`Ability::PartialUnmap`]; [`Trouble::Outside`] where nothing is to stay, or
    /// more than there is; [`Trouble::Backend`], with all of it still mapped; else as [`Domain::unmap`].
    #[track_caller]
    pub fn unmap_tail(&mut self, mapping: Mapping, keep_bytes: u64, now: Ticks) -> Result<Mapping, DmaError> {
        let site = Location::caller();
        self.need(Ability::PartialUnmap)?;
        let entry = *self.live(&mapping, site)?;
        if keep_bytes == 0 || keep_bytes > mapping.len_bytes() {
            return Err(self.outside(mapping, "what is to stay is nothing, or more than it has"));
        }
        self.make_room(now)?;
        let keep = (mapping.iova().0 - entry.first.0 + keep_bytes).div_ceil(self.page_bytes());
        let kept = Mapping { range: IovaRange { len_bytes: keep_bytes, ..mapping.range }, ..mapping };
        // Pages that an earlier call took are gone already.
        let keep = keep << self.page_bits;
        let Some(gone) = entry.len_bytes.checked_sub(keep).filter(|gone| *gone > 0) else { return Ok(kept) };
        let tail = IovaRange { at: Iova(entry.first.0 + keep), len_bytes: gone };
        if let Err(source) = self.backend.unmap(tail) {
            return Err(self.backend_error("unmapping", tail, source));
        }
        if let Some(entry) = self.ledger.get_mut(mapping.ticket) {
            entry.len_bytes = keep;
        }
        self.invalidate_now(tail, entry.device(), now)?;
        Ok(kept)
    }

    /// Hands memory over, to the device or to the CPU: before a transfer and after it. `permission` says what the device
    /// does with it. A coherent platform needs nothing; elsewhere caches are flushed or purged, as the table at
    /// [`Turn`] says.
    ///
    /// # Errors
    /// [`Trouble::Unsupported`] where the platform needs care and the backend has none; [`Trouble::Backend`].
    #[inline]
    pub fn sync(&mut self, buffer: Buffer<B::Memory>, permission: Permission, turn: Turn) -> Result<(), DmaError> {
        for (care, part) in cares(self.backend.coherence(), self.line_bytes, buffer, permission, turn) {
            self.care(care, part)?;
        }
        Ok(())
    }

    /// Flushes what the CPU has of `buffer`, on coherent platforms too: for a shared structure that the CPU writes
    /// seldom and the device updates by fast half-line writes, which purge its line.
    ///
    /// # Errors
    /// [`Trouble::Unsupported`] without [`Ability::CacheCare`]; [`Trouble::Backend`].
    pub fn flush_lines(&mut self, buffer: Buffer<B::Memory>) -> Result<(), DmaError> {
        self.need(Ability::CacheCare)?;
        self.care(CacheCare::Flush, buffer)
    }

    fn care(&mut self, care: CacheCare, part: Buffer<B::Memory>) -> Result<(), DmaError> {
        self.backend.care(care, part).map_err(|source| {
            let memory = IovaRange { at: Iova(part.at.value()), len_bytes: part.len_bytes };
            let doing = match care {
                CacheCare::Flush => "flushing the host's",
                CacheCare::Purge => "purging the host's",
            };
            self.backend_error(doing, memory, source)
        })
    }

    /// What changed is out of reach at once, under either policy: the device goes on using the address.
    fn invalidate_now(&mut self, range: IovaRange, device: Device, now: Ticks) -> Result<(), DmaError> {
        match self.backend.invalidate(Stale::Range { range, by: self.allocator.purge(device) }) {
            Ok(took) => {
                self.windows.add(took);
                Ok(())
            }
            Err(source) => {
                // No IOVA waits with it: they are the mapping's.
                let granted = IovaRange { len_bytes: 0, ..range };
                let error = self.not_invalidated(range, source);
                self.waiting.push(Unmapped { granted, device, at: now });
                Err(error)
            }
        }
    }

    /// The pages that are mapped.
    fn mapped(entry: &Entry) -> IovaRange {
        IovaRange { at: entry.first, len_bytes: entry.len_bytes }
    }

    fn need(&self, ability: Ability) -> Result<(), DmaError> {
        let bit = ability as u16;
        if self.abilities.covers(bit) { Ok(()) } else { Err(self.unsupported(bit)) }
    }

    fn outside(&self, mapping: Mapping, because: &'static str) -> DmaError {
        let Mapping { range, mapped_at, .. } = mapping;
        DmaError::from(Trouble::Outside { domain: self.name.clone(), range, mapped_at, because })
    }
}
