//! Changes of a live mapping: remap, attributes, partial unmap, cache maintenance.

use super::{Domain, runs};
use crate::allocator::{Device, IovaAllocator, IovaRange};
use crate::attributes::Permission;
use crate::backend::{Ability, Backend, CacheCare, Invalidated};
use crate::buffer::{Buffer, HostAddress};
use crate::error::{DmaError, DmaErrorKind};
use crate::hints::{Hints, MapRequest};
use crate::invalidation::Unmapped;
use crate::ledger::Entry;
use crate::mapping::Mapping;
use crate::sync::{Owner, maintenance_ops};
use lanemark_units::{Iova, Ticks};
use std::panic::Location;

impl<A: IovaAllocator, B: Backend> Domain<A, B> {
    /// Changes the memory behind pages of a mapping: `pages` replaces the pages from `first_page` on. Until this
    /// returns, the device accesses the old or the new memory; afterwards only the new, at the same IOVAs. The
    /// attributes stay.
    ///
    /// # Errors
    /// [`DmaErrorKind::Unsupported`] without [`Ability::Remap`]; [`DmaErrorKind::Outside`] for pages beyond the mapping;
    /// [`DmaErrorKind::Backend`], where pages before the named one may have been changed; else as [`Domain::unmap`].
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
            return Err(self.outside(mapping, "the pages to remap are not all in it"));
        }
        self.flush_if_full(now)?;
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
        // Changed pages are invalidated even if only some were changed.
        self.invalidate_now(range, entry.device(), now)?;
        result
    }

    /// Changes the attributes of a mapping while the device may use it. A permission that was removed is no longer
    /// effective when this returns. Older handles stay valid; the returned one has the new attributes.
    ///
    /// # Errors
    /// [`DmaErrorKind::Unsupported`] without [`Ability::SetAttributes`] or the ability of a hint; [`DmaErrorKind::Backend`], with
    /// nothing changed; else as [`Domain::unmap`].
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
        let request = MapRequest::new(entry.device(), permission).hints(hints);
        self.check(request)?;
        self.flush_if_full(now)?;
        let (range, attributes) = (Self::mapped(&entry), request.attributes());
        if let Err(source) = self.backend.set_attributes(range, attributes) {
            return Err(self.backend_error("changing the attributes of", range, source));
        }
        if let Some(entry) = self.ledger.get_mut(mapping.ticket) {
            entry.attributes = attributes;
        }
        self.invalidate_now(range, entry.device(), now)?;
        Ok(Mapping { attributes, ..mapping })
    }

    /// Unmaps the end of a mapping: the whole pages after its first `keep_bytes` bytes. Their IOVAs stay allocated
    /// until the mapping ends. Returns the handle of the rest; older handles stay valid.
    ///
    /// # Errors
    /// [`DmaErrorKind::Unsupported`] without [`Ability::PartialUnmap`]; [`DmaErrorKind::Outside`] if `keep_bytes` is 0 or above
    /// the length; [`DmaErrorKind::Backend`], with all of it still mapped; else as [`Domain::unmap`].
    #[track_caller]
    pub fn unmap_tail(&mut self, mapping: Mapping, keep_bytes: u64, now: Ticks) -> Result<Mapping, DmaError> {
        let site = Location::caller();
        self.need(Ability::PartialUnmap)?;
        let entry = *self.live(&mapping, site)?;
        if keep_bytes == 0 || keep_bytes > mapping.len_bytes() {
            return Err(self.outside(mapping, "the length to keep is 0 or longer than the mapping"));
        }
        self.flush_if_full(now)?;
        let keep = (mapping.iova().0 - entry.first.0 + keep_bytes).div_ceil(self.page_bytes());
        let kept = Mapping { range: IovaRange { len_bytes: keep_bytes, ..mapping.range }, ..mapping };
        // An earlier call may have unmapped more pages.
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

    /// Transfers the ownership of memory to the device or to the CPU, before and after a DMA transfer. `permission` is
    /// the device's access. A coherent platform needs no maintenance; on others caches are flushed or purged, as listed
    /// at
    /// [`Owner`].
    ///
    /// # Errors
    /// [`DmaErrorKind::Unsupported`] if the platform needs cache maintenance and the backend has none; [`DmaErrorKind::Backend`].
    #[inline]
    pub fn sync(&mut self, buffer: Buffer<B::Memory>, permission: Permission, owner: Owner) -> Result<(), DmaError> {
        for (care, part) in maintenance_ops(self.backend.coherence(), self.line_bytes, buffer, permission, owner) {
            self.care(care, part)?;
        }
        Ok(())
    }

    /// Flushes the cache lines of `buffer`, on coherent platforms too. For a shared structure that the CPU writes
    /// rarely and the device updates by fast half-line writes, which purge the line.
    ///
    /// # Errors
    /// [`DmaErrorKind::Unsupported`] without [`Ability::CacheCare`]; [`DmaErrorKind::Backend`].
    pub fn flush_lines(&mut self, buffer: Buffer<B::Memory>) -> Result<(), DmaError> {
        self.need(Ability::CacheCare)?;
        self.care(CacheCare::Flush, buffer)
    }

    fn care(&mut self, care: CacheCare, part: Buffer<B::Memory>) -> Result<(), DmaError> {
        self.backend.care(care, part).map_err(|source| {
            let memory = IovaRange { at: Iova(part.at.value()), len_bytes: part.len_bytes };
            let doing = match care {
                CacheCare::Flush => "flushing cache lines of",
                CacheCare::Purge => "purging cache lines of",
            };
            self.backend_error(doing, memory, source)
        })
    }

    /// Invalidates at once under either policy, because the device goes on using the IOVAs.
    fn invalidate_now(&mut self, range: IovaRange, device: Device, now: Ticks) -> Result<(), DmaError> {
        match self.backend.invalidate(Invalidated::Range { range, by: self.allocator.purge(device) }) {
            Ok(took) => {
                self.windows.add(took);
                Ok(())
            }
            Err(source) => {
                // Length 0: the IOVAs still belong to the mapping, and are not freed by the flush.
                let granted = IovaRange { len_bytes: 0, ..range };
                let error = self.not_invalidated(range, source);
                self.waiting.push(Unmapped { granted, device, at: now });
                Err(error)
            }
        }
    }

    /// The mapped pages of an entry.
    fn mapped(entry: &Entry) -> IovaRange {
        IovaRange { at: entry.first, len_bytes: entry.len_bytes }
    }

    fn need(&self, ability: Ability) -> Result<(), DmaError> {
        let bit = ability as u16;
        if self.abilities.covers(bit) { Ok(()) } else { Err(self.unsupported(bit)) }
    }

    fn outside(&self, mapping: Mapping, because: &'static str) -> DmaError {
        let Mapping { range, mapped_at, .. } = mapping;
        DmaError::from(DmaErrorKind::Outside { domain: self.name.clone(), range, mapped_at, because })
    }
}
