//! The DMA address space of one or more devices.

mod changes;
mod ending;

use crate::allocator::{AccessOrder, Align, AllocError, AllocRequest, Device, IovaAllocator, IovaRange};
use crate::attributes::Attributes;
use crate::backend::{Abilities, Ability, Backend, BackendError, Invalidated};
use crate::buffer::{Buffer, HostAddress};
use crate::error::{DmaError, DmaErrorKind};
use crate::hints::{Hints, MapRequest, piece_with_shared_lines};
use crate::invalidation::{Invalidation, Unmapped, Waiting, Windows};
use crate::ledger::{Entry, Ledger, NotLive};
use crate::mapping::{CallSite, Mapping, Ticket};
use lanemark_units::{Iova, Ticks};
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

/// Source of domain numbers, which tell the handles of domains apart.
static DOMAINS: AtomicU32 = AtomicU32::new(0);

/// An address space shared by devices, and the memory mapped in it.
///
/// A domain owns a strategy, which allocates IOVAs; a backend, which programs translations; and a ledger of live
/// mappings. Times are passed by the caller as `now` and used only to measure how long devices can access unmapped
/// memory. A caller without need of that passes [`Ticks::ZERO`].
///
/// See the [crate's page](crate) for examples.
#[derive(Debug)]
pub struct Domain<A, B> {
    name: Box<str>,
    number: u32,
    page_bits: u32,
    page_mask: u64,
    /// Longest mapping, in whole pages.
    longest_bytes: u64,
    line_bytes: u64,
    /// Address bits below the line size if half-line writes can be made safe, else 0.
    guarded_mask: u64,
    abilities: Abilities,
    policy: Invalidation,
    allocator: A,
    backend: B,
    devices: Vec<Box<str>>,
    is_attached: Vec<bool>,
    ledger: Ledger,
    waiting: Waiting,
    windows: Windows,
}

impl<A: IovaAllocator, B: Backend> Domain<A, B> {
    /// Default for the maximum number of live mappings.
    pub const MOST_MAPPINGS: u32 = 1 << 22;
    /// Maximum number of devices, detached ones included.
    pub const MOST_DEVICES: usize = 1 << 16;

    /// A domain without mappings. `name` appears in messages.
    ///
    /// # Errors
    /// [`DmaErrorKind::Setting`] if the page size of the space is below 4 KiB, the line size is no power of two up to a
    /// page, or the length of the invalidation queue is out of range.
    pub fn new(name: &str, allocator: A, backend: B, policy: Invalidation) -> Result<Domain<A, B>, DmaError> {
        let (page_bytes, line_bytes) = (allocator.space().page_bytes(), backend.line_bytes());
        let setting = |what, wanted, least, most| {
            if wanted >= least && wanted <= most {
                return Ok(());
            }
            Err(DmaError::from(DmaErrorKind::Setting { domain: name.into(), what, wanted, least, most }))
        };
        setting("page size in bytes", page_bytes, 4096, 1 << 31)?;
        setting("line size in bytes", line_bytes.next_power_of_two(), 1, line_bytes.min(page_bytes))?;
        if let Invalidation::Deferred { entries, .. } = policy {
            setting("length of the invalidation queue", entries.into(), 1, Invalidation::MOST_ENTRIES.into())?;
        }
        let page_bits = allocator.space().page_bits();
        Ok(Domain {
            name: name.into(),
            number: DOMAINS.fetch_add(1, Ordering::Relaxed),
            page_bits,
            page_mask: page_bytes - 1,
            longest_bytes: allocator.longest_bytes().min(1 << 62),
            line_bytes,
            guarded_mask: if backend.abilities().has(Ability::HalfLine) { line_bytes - 1 } else { 0 },
            abilities: backend.abilities(),
            policy,
            allocator,
            backend,
            devices: Vec::new(),
            is_attached: Vec::new(),
            ledger: Ledger::new(Self::MOST_MAPPINGS),
            waiting: Waiting::new(policy),
            windows: Windows::default(),
        })
    }

    /// Sets the maximum number of live mappings, up to 2^32 - 2. No memory is reserved for them.
    #[must_use]
    pub fn most_mappings(self, most: u32) -> Domain<A, B> {
        Domain { ledger: Ledger::new(most), ..self }
    }

    /// Attaches a device to this address space. `name` appears in messages.
    ///
    /// # Errors
    /// [`DmaErrorKind::Setting`] beyond [`Domain::MOST_DEVICES`].
    pub fn attach(&mut self, name: &str) -> Result<Device, DmaError> {
        let wanted = self.devices.len() + 1;
        if wanted > Self::MOST_DEVICES {
            let (wanted, most) = (wanted as u64, Self::MOST_DEVICES as u64);
            return Err(DmaError::from(DmaErrorKind::Setting {
                domain: self.name.clone(),
                what: "devices",
                wanted,
                least: 0,
                most,
            }));
        }
        self.devices.push(name.into());
        self.is_attached.push(true);
        Ok(Device(self.devices.len() as u32 - 1))
    }

    /// Sets the order in which a device uses its buffers; applies to later mappings.
    ///
    /// # Errors
    /// [`DmaErrorKind::NoDevice`]; [`DmaErrorKind::NoIova`] if the strategy treats all devices alike.
    pub fn set_order(&mut self, device: Device, order: AccessOrder) -> Result<(), DmaError> {
        self.attached(device)?;
        self.allocator.set_order(device, order).map_err(|why| self.no_iova(device, why))
    }

    /// Maps as much of the front of `rest` as one call can, and removes that part from `rest`.
    ///
    /// Call it until `rest` is empty. One call maps up to the end of the buffer, but no more than the longest range of
    /// the strategy. If the first or last cache line of the buffer holds other data too and the backend has
    /// [`Ability::HalfLine`], the first or last page becomes a separate piece with safe half-line writes.
    /// [`Hints::ANY_ALIGNMENT`] disables that, and [`Hints::ONE_PIECE`] maps the whole buffer by one call or fails.
    ///
    /// A device can access whole pages, including other data in the first and the last page.
    ///
    /// # Errors
    /// [`DmaError`]; nothing of this call is mapped then, and `rest` is unchanged. Earlier pieces stay mapped;
    /// [`Domain::map_all`] unmaps them.
    #[track_caller]
    #[inline]
    pub fn map(&mut self, rest: &mut Buffer<B::Memory>, request: MapRequest, now: Ticks) -> Result<Mapping, DmaError> {
        let site = Location::caller();
        let (at, len_bytes) = (rest.at.value(), rest.len_bytes);
        let offset = at & self.page_mask;
        let (reach_bytes, attributes) = self.piece(at, len_bytes, request)?;
        let memory = B::Memory::from_value(at - offset);
        let (pages, ticket) = self.map_pages(reach_bytes, request, attributes, now, site, |backend, range| {
            backend.map(range, memory, attributes).map_err(|source| Unfinished { done_bytes: 0, attributes, source })
        })?;
        let range = IovaRange { at: Iova(pages.at.0 + offset), len_bytes: reach_bytes - offset };
        // The start may wrap to 0 after the last address; the length is 0 then.
        *rest = Buffer::new(B::Memory::from_value(at.wrapping_add(range.len_bytes)), len_bytes - range.len_bytes);
        Ok(Mapping { range, ticket, domain: self.number, attributes, mapped_at: site })
    }

    /// The length of the next piece, in bytes from the start of the buffer's first page, and its attributes.
    #[inline]
    fn piece(&self, at: u64, len_bytes: u64, request: MapRequest) -> Result<(u64, Attributes), DmaError> {
        let less = len_bytes.wrapping_sub(1);
        if less > !at {
            return Err(self.no_buffer(at, len_bytes));
        }
        self.check(request)?;
        // Offset of the last byte from the start of the first page; the offset of the end may overflow.
        let last = (at & self.page_mask) + less;
        let shares_a_line = (at | at.wrapping_add(len_bytes)) & self.guarded_mask != 0;
        if shares_a_line || last >= self.longest_bytes {
            return self.piece_of(at & self.page_mask, last, shares_a_line, request);
        }
        Ok((last + 1, request.attributes()))
    }

    /// [`Self::piece`] for a buffer that is long or whose ends may need safe writes.
    #[inline(never)]
    fn piece_of(
        &self,
        offset: u64,
        last: u64,
        shares_a_line: bool,
        request: MapRequest,
    ) -> Result<(u64, Attributes), DmaError> {
        let (whole_bytes, attributes) = (last.saturating_add(1), request.attributes());
        if shares_a_line && !request.hints.intersects(Hints::SAFE | Hints::ANY_ALIGNMENT | Hints::ONE_PIECE) {
            let piece = piece_with_shared_lines(
                offset,
                whole_bytes,
                self.longest_bytes,
                self.page_bytes(),
                self.guarded_mask + 1,
            );
            return Ok((piece.reach_bytes, if piece.is_safe { attributes.and_safe() } else { attributes }));
        }
        if whole_bytes > self.longest_bytes && request.hints.contains(Hints::ONE_PIECE) {
            let why = AllocError::TooLong { len_bytes: whole_bytes, longest_bytes: self.longest_bytes };
            return Err(self.no_iova(request.device, why));
        }
        Ok((whole_bytes.min(self.longest_bytes), attributes))
    }

    /// Checks that the device is attached and that the backend supports the hints.
    #[inline]
    fn check(&self, request: MapRequest) -> Result<(), DmaError> {
        self.attached(request.device)?;
        if !self.abilities.covers(request.hints.promises()) {
            return Err(self.unsupported(request.hints.promises()));
        }
        Ok(())
    }

    /// Allocates IOVAs, programs them by `program` and records the mapping. Returns the mapped pages.
    #[inline]
    fn map_pages(
        &mut self,
        len_bytes: u64,
        request: MapRequest,
        attributes: Attributes,
        now: Ticks,
        site: CallSite,
        program: impl FnOnce(&mut B, IovaRange) -> Result<(), Unfinished>,
    ) -> Result<(IovaRange, Ticket), DmaError> {
        let MapRequest { device, align, .. } = request;
        let ask = AllocRequest { device, len_bytes, align };
        let granted = match self.allocator.alloc(ask) {
            Ok(granted) => granted,
            Err(why) => self.alloc_again(device, len_bytes, align, why, now)?,
        };
        let range = IovaRange { at: granted.at, len_bytes: (len_bytes + self.page_mask) & !self.page_mask };
        // Reserved before anything is programmed, so that a full ledger needs no rollback.
        let Some(vacant) = self.ledger.vacant() else { return Err(self.ledger_full(device, granted)) };
        if let Err(unfinished) = program(&mut self.backend, range) {
            return Err(self.not_mapped(device, granted, range, unfinished, now, site));
        }
        Ok((range, vacant.insert(granted.at, range.len_bytes, granted.len_bytes, (device, attributes), site)))
    }

    /// The error for a full ledger, after the IOVAs are freed.
    #[cold]
    fn ledger_full(&mut self, device: Device, granted: IovaRange) -> DmaError {
        match self.allocator.release(device, granted) {
            Ok(()) => DmaErrorKind::TooManyMappings { domain: self.name.clone(), most: self.ledger.most() }.into(),
            Err(why) => self.no_iova(device, why),
        }
    }

    /// Retries an allocation after a flush: pending invalidations may hold the missing IOVAs.
    #[cold]
    fn alloc_again(
        &mut self,
        device: Device,
        len_bytes: u64,
        align: Align,
        why: AllocError,
        now: Ticks,
    ) -> Result<IovaRange, DmaError> {
        if matches!(why, AllocError::Exhausted { .. }) && self.waiting() > 0 {
            self.flush(now)?;
            return self
                .allocator
                .alloc(AllocRequest { device, len_bytes, align })
                .map_err(|why| self.no_iova(device, why));
        }
        Err(self.no_iova(device, why))
    }

    /// Rolls back after a failure of the backend and frees the IOVAs. Pages that cannot be unmapped stay in the ledger.
    #[cold]
    fn not_mapped(
        &mut self,
        device: Device,
        granted: IovaRange,
        range: IovaRange,
        unfinished: Unfinished,
        now: Ticks,
        site: CallSite,
    ) -> DmaError {
        let Unfinished { done_bytes, attributes, source } = unfinished;
        if done_bytes > 0 {
            let done = IovaRange { len_bytes: done_bytes, ..range };
            if let Err(source) = self.backend.unmap(done) {
                if let Some(vacant) = self.ledger.vacant() {
                    vacant.insert(done.at, done.len_bytes, granted.len_bytes, (device, attributes), site);
                }
                return self.backend_error("unmapping", done, source);
            }
            if let Err(source) =
                self.backend.invalidate(Invalidated::Range { range: done, by: self.allocator.purge(device) })
            {
                return self.queue_failed(Unmapped { granted, device, at: now }, source);
            }
        }
        match self.allocator.release(device, granted) {
            Ok(()) => self.backend_error("mapping", range, source),
            Err(why) => self.no_iova(device, why),
        }
    }

    /// Maps all of `buffer`, in as many pieces as needed.
    ///
    /// # Errors
    /// As [`Domain::map`], with nothing left mapped; if a piece cannot be unmapped, the error of that unmap.
    #[track_caller]
    pub fn map_all(
        &mut self,
        buffer: Buffer<B::Memory>,
        request: MapRequest,
        now: Ticks,
    ) -> Result<Vec<Mapping>, DmaError> {
        let (mut rest, mut pieces) = (buffer, Vec::new());
        loop {
            match self.map(&mut rest, request, now) {
                Ok(piece) => pieces.push(piece),
                Err(error) => {
                    for piece in pieces {
                        self.unmap(piece, now)?;
                    }
                    return Err(error);
                }
            }
            if rest.is_empty() {
                return Ok(pieces);
            }
        }
    }

    /// Maps scattered pages as one contiguous IOVA range, in this order.
    ///
    /// # Errors
    /// As [`Domain::map`]; [`DmaErrorKind::Buffer`] for an address that is not page-aligned. If pages mapped before the error
    /// cannot be unmapped, that is the error, and they stay live until the domain is closed.
    #[track_caller]
    pub fn map_scattered(&mut self, pages: &[B::Memory], request: MapRequest, now: Ticks) -> Result<Mapping, DmaError> {
        let site = Location::caller();
        let len_bytes = self.scattered_bytes(pages)?;
        self.check(request)?;
        if len_bytes > self.longest_bytes {
            let why = AllocError::TooLong { len_bytes, longest_bytes: self.longest_bytes };
            return Err(self.no_iova(request.device, why));
        }
        self.flush_if_full(now)?;
        let (attributes, page_bytes) = (request.attributes(), self.page_bytes());
        let (range, ticket) = self.map_pages(len_bytes, request, attributes, now, site, |backend, range| {
            let mut done_bytes = 0;
            for (memory, run_bytes) in runs(pages, page_bytes) {
                let part = IovaRange { at: Iova(range.at.0 + done_bytes), len_bytes: run_bytes };
                backend.map(part, memory, attributes).map_err(|source| Unfinished {
                    done_bytes,
                    attributes,
                    source,
                })?;
                done_bytes += run_bytes;
            }
            Ok(())
        })?;
        Ok(Mapping { range, ticket, domain: self.number, attributes, mapped_at: site })
    }

    /// Total length of `pages`, each of which must be page-aligned.
    fn scattered_bytes(&self, pages: &[B::Memory]) -> Result<u64, DmaError> {
        let is_page = |page: &&B::Memory| page.value() & (self.page_bytes() - 1) == 0;
        let buffer = |at, because| {
            let (domain, len_bytes) = (self.name.clone(), self.page_bytes());
            DmaError::from(DmaErrorKind::Buffer { domain, at, len_bytes, because })
        };
        if let Some(page) = pages.iter().find(|page| !is_page(page)) {
            return Err(buffer(
                page.value(),
                "the address is not page-aligned; scattered memory consists of whole pages",
            ));
        }
        if pages.is_empty() {
            return Err(buffer(0, "the list of pages is empty"));
        }
        (pages.len() as u64)
            .checked_mul(self.page_bytes())
            .ok_or_else(|| buffer(0, "the pages exceed the address space"))
    }

    /// Unmaps a mapping. The device must have finished with it.
    ///
    /// # Errors
    /// [`DmaErrorKind::UnmappedBefore`] and [`DmaErrorKind::NotMappedHere`], with both call sites; [`DmaErrorKind::Backend`] if the
    /// backend did not unmap it, and it stays mapped; [`DmaErrorKind::NotInvalidated`] if it is unmapped but may still be in
    /// an IOTLB.
    #[track_caller]
    #[inline]
    pub fn unmap(&mut self, mapping: Mapping, now: Ticks) -> Result<(), DmaError> {
        let site = Location::caller();
        self.flush_if_full(now)?;
        let entry = *self.live(&mapping, site)?;
        self.unmap_entry(mapping.ticket, entry, now, site)
    }

    /// Unmaps all pages of a ledger entry.
    #[inline]
    fn unmap_entry(&mut self, ticket: Ticket, entry: Entry, now: Ticks, site: CallSite) -> Result<(), DmaError> {
        let range = IovaRange { at: entry.first, len_bytes: entry.len_bytes };
        let granted = IovaRange { at: entry.first, len_bytes: entry.granted_bytes };
        let device = entry.device();
        if let Err(source) = self.backend.unmap(range) {
            return Err(self.backend_error("unmapping", range, source));
        }
        self.ledger.remove(ticket, site);
        if self.policy != Invalidation::Strict {
            return self.queue(Unmapped { granted, device, at: now });
        }
        match self.backend.invalidate(Invalidated::Range { range, by: self.allocator.purge(device) }) {
            Ok(took) => self.windows.add(took),
            Err(source) => return Err(self.queue_failed(Unmapped { granted, device, at: now }, source)),
        }
        match self.allocator.release(device, granted) {
            Ok(()) => Ok(()),
            Err(why) => Err(self.no_iova(device, why)),
        }
    }

    /// The live mapping of a handle.
    #[inline]
    fn live(&self, mapping: &Mapping, site: CallSite) -> Result<&Entry, DmaError> {
        if mapping.domain == self.number
            && let Some(entry) = self.ledger.get(mapping.ticket)
        {
            return Ok(entry);
        }
        Err(self.not_live(mapping, site))
    }

    /// Flushes a full queue of invalidations before an unmap. With strict invalidation the queue holds only a failed
    /// invalidation, which is retried.
    #[inline]
    fn flush_if_full(&mut self, now: Ticks) -> Result<(), DmaError> {
        if self.waiting.is_full() { self.flush(now) } else { Ok(()) }
    }

    /// Queues an invalidation, and flushes the queue if it is due.
    #[inline(never)]
    fn queue(&mut self, unmapped: Unmapped) -> Result<(), DmaError> {
        self.waiting.push(unmapped);
        if self.waiting.is_due(unmapped.at) { self.flush(unmapped.at) } else { Ok(()) }
    }

    /// Queues a failed invalidation and returns its error.
    #[cold]
    fn queue_failed(&mut self, unmapped: Unmapped, source: BackendError) -> DmaError {
        self.waiting.push(unmapped);
        self.not_invalidated(unmapped.granted, source)
    }

    /// Name of the domain in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The strategy, for inspection.
    #[must_use]
    pub fn allocator(&self) -> &A {
        &self.allocator
    }

    /// The backend, for inspection.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The backend, for operations of the platform itself. Mapping or unmapping through it bypasses the ledger, and
    /// is noticed only by errors of the backend.
    pub fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    /// Number of live mappings, by counting: takes time proportional to the largest number ever live.
    #[must_use]
    pub fn live_mappings(&self) -> usize {
        self.ledger.live()
    }

    /// Number of IOVA ranges with a pending invalidation.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.entries().len()
    }

    /// How long devices could access unmapped memory.
    #[must_use]
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Size of the ledger in bytes, which depends on the largest number of mappings ever live.
    #[must_use]
    pub fn ledger_bytes(&self) -> usize {
        self.ledger.size_bytes()
    }

    /// Page size in bytes.
    #[inline]
    const fn page_bytes(&self) -> u64 {
        1 << self.page_bits
    }

    #[inline]
    fn attached(&self, device: Device) -> Result<(), DmaError> {
        if self.is_attached.get(device.0 as usize) == Some(&true) { Ok(()) } else { Err(self.no_device(device)) }
    }

    #[cold]
    fn no_device(&self, device: Device) -> DmaError {
        DmaErrorKind::NoDevice { domain: self.name.clone(), device: device.0 }.into()
    }

    #[cold]
    fn no_buffer(&self, at: u64, len_bytes: u64) -> DmaError {
        let because = if len_bytes == 0 { "it is empty" } else { "it ends beyond the last address" };
        DmaError::from(DmaErrorKind::Buffer { domain: self.name.clone(), at, len_bytes, because })
    }

    #[cold]
    fn no_iova(&self, device: Device, why: AllocError) -> DmaError {
        let device = self.devices.get(device.0 as usize).map_or_else(|| "an unknown device".into(), Clone::clone);
        DmaError::from(DmaErrorKind::NoIova { domain: self.name.clone(), device, strategy: self.allocator.name(), why })
    }

    /// The error for the first of these abilities that the backend lacks.
    #[cold]
    fn unsupported(&self, bits: u16) -> DmaError {
        let ability = self.abilities.lacks(bits).unwrap_or(Ability::SetAttributes);
        let (domain, backend) = (self.name.clone(), self.backend.name().into());
        DmaError::from(DmaErrorKind::Unsupported { domain, backend, ability })
    }

    #[cold]
    fn backend_error(&self, doing: &'static str, range: IovaRange, source: BackendError) -> DmaError {
        let (domain, backend) = (self.name.clone(), self.backend.name().into());
        DmaError::from(match source {
            BackendError::Unsupported(ability) => DmaErrorKind::Unsupported { domain, backend, ability },
            source => DmaErrorKind::Backend { domain, backend, doing, range, source },
        })
    }

    #[cold]
    fn not_invalidated(&self, range: IovaRange, source: BackendError) -> DmaError {
        let (domain, backend) = (self.name.clone(), self.backend.name().into());
        DmaError::from(DmaErrorKind::NotInvalidated { domain, backend, range, source })
    }

    #[cold]
    fn not_live(&self, mapping: &Mapping, again_at: CallSite) -> DmaError {
        let (domain, range, mapped_at) = (self.name.clone(), mapping.range, mapping.mapped_at);
        DmaError::from(match self.ledger.why_not(mapping.ticket) {
            NotLive::Unmapped(before_at) if mapping.domain == self.number => {
                DmaErrorKind::UnmappedBefore { domain, range, mapped_at, before_at, again_at }
            }
            _ => DmaErrorKind::NotMappedHere { domain, range, mapped_at, again_at },
        })
    }
}

/// A mapping that the backend programmed only in part, with the error.
struct Unfinished {
    done_bytes: u64,
    attributes: Attributes,
    source: BackendError,
}

/// Runs of adjacent pages: address and length in bytes.
fn runs<M: HostAddress>(pages: &[M], page_bytes: u64) -> impl Iterator<Item = (M, u64)> {
    pages
        .chunk_by(move |before, after| before.value().checked_add(page_bytes) == Some(after.value()))
        .map(move |run| (run[0], run.len() as u64 * page_bytes))
}
