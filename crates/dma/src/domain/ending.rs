//! Flush of pending invalidations; detach of devices; close of the domain.

use super::Domain;
use crate::allocator::{Device, IovaAllocator};
use crate::backend::{Backend, Invalidated};
use crate::error::{DmaError, DmaErrorKind, Leak, Leaks};
use crate::mapping::CallSite;
use lanemark_units::Ticks;
use std::collections::BTreeMap;
use std::panic::Location;

impl<A: IovaAllocator, B: Backend> Domain<A, B> {
    /// Completes all pending invalidations and frees their IOVAs.
    ///
    /// # Errors
    /// [`DmaErrorKind::NotInvalidated`]: all stay pending. [`DmaErrorKind::NoIova`] if the strategy refused to free a range.
    pub fn flush(&mut self, now: Ticks) -> Result<(), DmaError> {
        let Some(first) = self.waiting.entries().first() else { return Ok(()) };
        let granted = first.granted;
        let took = match self.backend.invalidate(Invalidated::All) {
            Ok(took) => took,
            Err(source) => return Err(self.not_invalidated(granted, source)),
        };
        let mut result = Ok(());
        while let Some(unmapped) = self.waiting.pop() {
            self.windows.add(Ticks(now.since(unmapped.at).0.saturating_add(took.0)));
            if unmapped.granted.len_bytes > 0
                && let Err(why) = self.allocator.release(unmapped.device, unmapped.granted)
            {
                result = Err(self.no_iova(unmapped.device, why));
            }
        }
        result
    }

    /// Flushes if it is due: the queue is full, or its oldest entry has reached the maximum time.
    ///
    /// # Errors
    /// As [`Domain::flush`].
    pub fn flush_due(&mut self, now: Ticks) -> Result<(), DmaError> {
        if self.waiting.is_due(now) { self.flush(now) } else { Ok(()) }
    }

    /// Detaches a device and unmaps all its mappings.
    ///
    /// # Errors
    /// [`DmaErrorKind::StillMapped`] if mappings were left: the device is detached, and the call sites that mapped them are
    /// named. [`DmaErrorKind::NoDevice`]. Any other error leaves the device attached, with the mappings that could not be
    /// unmapped; `detach` may be called again.
    #[track_caller]
    pub fn detach(&mut self, device: Device, now: Ticks) -> Result<(), DmaError> {
        let site = Location::caller();
        self.attached(device)?;
        let leaks = self.end(Some(device), now, site)?;
        self.mark_detached(device);
        self.report_leaks(leaks)
    }

    /// Detaches all devices, as by [`Domain::detach`].
    ///
    /// # Errors
    /// As [`Domain::detach`], with the mappings of all devices.
    #[track_caller]
    pub fn close(&mut self, now: Ticks) -> Result<(), DmaError> {
        let leaks = self.end(None, now, Location::caller())?;
        for device in 0..self.devices.len() as u32 {
            self.mark_detached(Device(device));
        }
        self.report_leaks(leaks)
    }

    /// Unmaps all mappings of a device, or of all devices, and returns them grouped by call site.
    fn end(&mut self, device: Option<Device>, now: Ticks, site: CallSite) -> Result<Vec<Leak>, DmaError> {
        let is_of_device = |of: Device| device.is_none_or(|device| device == of);
        let alive: Vec<_> =
            self.ledger.iter().filter(|(_, entry)| is_of_device(entry.device())).map(|(t, e)| (t, *e)).collect();
        let mut leaks = BTreeMap::<(Device, CallSite), (u32, u64)>::new();
        for (ticket, entry) in alive {
            self.flush_if_full(now)?;
            self.unmap_entry(ticket, entry, now, site)?;
            let (mappings, pages) = leaks.entry((entry.device(), entry.mapped_at)).or_default();
            *mappings += 1;
            *pages += entry.len_bytes >> self.page_bits;
        }
        self.flush(now)?;
        let name = |device: Device| self.devices.get(device.0 as usize).cloned().unwrap_or_default();
        let leak = |((device, mapped_at), (mappings, pages))| Leak { device: name(device), mapped_at, mappings, pages };
        Ok(leaks.into_iter().map(leak).collect())
    }

    fn mark_detached(&mut self, device: Device) {
        self.allocator.invalidate(device);
        if let Some(is_attached) = self.is_attached.get_mut(device.0 as usize) {
            *is_attached = false;
        }
    }

    fn report_leaks(&self, leaks: Vec<Leak>) -> Result<(), DmaError> {
        if leaks.is_empty() {
            return Ok(());
        }
        Err(DmaError::from(DmaErrorKind::StillMapped { domain: self.name.clone(), leaks: Leaks(leaks) }))
    }
}
