//! An address space of one or more devices: what of the host's memory they see, and where.

mod changes;
mod ending;

use crate::allocator::{AccessOrder, Align, AllocError, Ask, Device, IovaAllocator, IovaRange};
use crate::attributes::Attributes;
use crate::backend::{Abilities, Ability, Backend, BackendError, Stale};
use crate::buffer::{Buffer, HostAddress};
use crate::error::{DmaError, Trouble};
use crate::hints::{Hints, MapRequest, ragged};
use crate::invalidation::{Invalidation, Unmapped, Waiting, Windows};
use crate::ledger::{Entry, Ledger, NotLive};
use crate::mapping::{CallSite, Mapping, Ticket};
use lanemark_units::{Iova, Ticks};
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

/// So that a receipt of one domain is not taken by another; it is never shown.
static DOMAINS: AtomicU32 = AtomicU32::new(0);

/// Memory lent to devices that share an address space.
///
/// It owns a strategy, which knows which IOVAs are free, a backend, which makes translations true, and a ledger of who
/// was lent what. Times are told by its caller, as `now`, and only measured with: whoever does not want to know for
/// how long devices can reach what was unmapped passes [`Ticks::ZERO`].
///
/// See the [crate's page](crate) for examples.
#[derive(Debug)]
pub struct Domain<A, B> {
    name: Box<str>,
    number: u32,
    page_bits: u32,
    page_mask: u64,
    /// Of one mapping, in whole pages.
    longest_bytes: u64,
    line_bytes: u64,
    /// Bits of an address that are 0 where no line is shared; none, where nothing can be done about it.
    guarded_mask: u64,
    abilities: Abilities,
    policy: Invalidation,
    allocator: A,
    backend: B,
    devices: Vec<Box<str>>,
    is_here: Vec<bool>,
    ledger: Ledger,
    waiting: Waiting,
    windows: Windows,
}

impl<A: IovaAllocator, B: Backend> Domain<A, B> {
    /// The most mappings at a time, unless said otherwise.
    pub const MOST_MAPPINGS: u32 = 1 << 22;
    /// The most devices, those that were detached included.
    pub const MOST_DEVICES: usize = 1 << 16;

    /// A domain with nothing lent. `name` stands in messages.
    ///
    /// # Errors
    /// [`Trouble::Setting`] where the pages of the strategy's space are shorter than 4 KiB, lines no power of two up to
    /// a page, or the queue of deferred invalidations holds none or too many.
    pub fn new(name: &str, allocator: A, backend: B, policy: Invalidation) -> Result<Domain<A, B>, DmaError> {
        let (page_bytes, line_bytes) = (allocator.space().page_bytes(), backend.line_bytes());
        let setting = |what, wanted, least, most| {
            if wanted >= least && wanted <= most {
                return Ok(());
            }
            Err(DmaError::from(Trouble::Setting { domain: name.into(), what, wanted, least, most }))
        };
        setting("pages of bytes", page_bytes, 4096, 1 << 31)?;
        setting("lines of bytes", line_bytes.next_power_of_two(), 1, line_bytes.min(page_bytes))?;
        if let Invalidation::Deferred { entries, .. } = policy {
            setting("a queue of invalidations", entries.into(), 1, Invalidation::MOST_ENTRIES.into())?;
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
            is_here: Vec::new(),
            ledger: Ledger::new(Self::MOST_MAPPINGS),
            waiting: Waiting::new(policy),
            windows: Windows::default(),
        })
    }

    /// The same with room for `most` mappings at a time, up to 2^32 - 2. Nothing is reserved for them.
    #[must_use]
    pub fn most_mappings(self, most: u32) -> Domain<A, B> {
        Domain { ledger: Ledger::new(most), ..self }
    }

    /// A device sees this address space from now on. `name` stands in messages.
    ///
    /// # Errors
    /// [`Trouble::Setting`] beyond [`Domain::MOST_DEVICES`].
    pub fn attach(&mut self, name: &str) -> Result<Device, DmaError> {
        let wanted = self.devices.len() + 1;
        if wanted > Self::MOST_DEVICES {
            let (wanted, most) = (wanted as u64, Self::MOST_DEVICES as u64);
            return Err(DmaError::from(Trouble::Setting {
                domain: self.name.clone(),
                what: "devices",
                wanted,
                least: 0,
                most,
            }));
        }
        self.devices.push(name.into());
        self.is_here.push(true);
        Ok(Device(self.devices.len() as u32 - 1))
    }

    /// In which order a device will use what it is lent: what is mapped from now on is placed by that.
    ///
    /// # Errors
    /// [`Trouble::NoDevice`]; [`Trouble::NoIova`] where the strategy makes no difference.
    pub fn set_order(&mut self, device: Device, order: AccessOrder) -> Result<(), DmaError> {
        self.attached(device)?;
        self.allocator.set_order(device, order).map_err(|why| self.no_iova(device, why))
    }

    /// Maps as much from the front of `rest` as one call does, and takes that off it.
    ///
    /// It is called until nothing is left: `rest.len_bytes` says how far it has come, 0 when all is mapped. One call goes
    /// up to the end of the buffer, but no further than the strategy gives in a row; and the first and the last page
    /// of a buffer are pieces of their own, made safe, where the buffer does not fill its first or its last line (or is
    /// shorter than one), on platforms where half-line writes can be made safe. [`Hints::ANY_ALIGNMENT`] leaves the ends
    /// as they are, and [`Hints::ONE_PIECE`] wants all of it by one call.
    ///
    /// A device reaches whole pages: what else is in the first and the last one, too.
    ///
    /// # Errors
    /// [`DmaError`], and nothing of this call is mapped and `rest` is as it was. Earlier pieces stay;
    /// [`Domain::map_all`] takes them back.
    #[track_caller]
    #[inline]
    pub fn map(&mut self, rest: &mut Buffer<B::Memory>, lend: MapRequest, now: Ticks) -> Result<Mapping, DmaError> {
        let site = Location::caller();
        let (at, len_bytes) = (rest.at.value(), rest.len_bytes);
        let offset = at & self.page_mask;
        let (reach_bytes, attributes) = self.piece(at, len_bytes, lend)?;
        let memory = B::Memory::from_value(at - offset);
        let (pages, ticket) = self.lend(reach_bytes, lend, attributes, now, site, |backend, range| {
            backend.map(range, memory, attributes).map_err(|source| Unfinished { done_bytes: 0, attributes, source })
        })?;
        let range = IovaRange { at: Iova(pages.at.0 + offset), len_bytes: reach_bytes - offset };
        // One past the last address of all there is nothing left to lend.
        *rest = Buffer::new(B::Memory::from_value(at.wrapping_add(range.len_bytes)), len_bytes - range.len_bytes);
        Ok(Mapping { range, ticket, domain: self.number, attributes, mapped_at: site })
    }

    /// How far one call goes, in bytes from the start of the buffer's first page, and the attributes of that.
    #[inline]
    fn piece(&self, at: u64, len_bytes: u64, lend: MapRequest) -> Result<(u64, Attributes), DmaError> {
        let less = len_bytes.wrapping_sub(1);
        if less > !at {
            return Err(self.no_buffer(at, len_bytes));
        }
        self.check(lend)?;
        // The last byte, from the start of the first page; its end may be one more than a number can be.
        let last = (at & self.page_mask) + less;
        let shares_a_line = (at | at.wrapping_add(len_bytes)) & self.guarded_mask != 0;
        if shares_a_line || last >= self.longest_bytes {
            return self.piece_of(at & self.page_mask, last, shares_a_line, lend);
        }
        Ok((last + 1, lend.attributes()))
    }

    /// The same where the ends of the buffer may need care, or it is long.
    #[inline(never)]
    fn piece_of(
        &self,
        offset: u64,
        last: u64,
        shares_a_line: bool,
        lend: MapRequest,
    ) -> Result<(u64, Attributes), DmaError> {
        let (whole_bytes, attributes) = (last.saturating_add(1), lend.attributes());
        if shares_a_line && !lend.hints.intersects(Hints::SAFE | Hints::ANY_ALIGNMENT | Hints::ONE_PIECE) {
            let piece = ragged(offset, whole_bytes, self.longest_bytes, self.page_bytes(), self.guarded_mask + 1);
            return Ok((piece.reach_bytes, if piece.is_safe { attributes.and_safe() } else { attributes }));
        }
        if whole_bytes > self.longest_bytes && lend.hints.contains(Hints::ONE_PIECE) {
            let why = AllocError::TooLong { len_bytes: whole_bytes, longest_bytes: self.longest_bytes };
            return Err(self.no_iova(lend.device, why));
        }
        Ok((whole_bytes.min(self.longest_bytes), attributes))
    }

    /// Is there such a device, and can the backend promise all that is asked for?
    #[inline]
    fn check(&self, lend: MapRequest) -> Result<(), DmaError> {
        self.attached(lend.device)?;
        if !self.abilities.covers(lend.hints.promises()) {
            return Err(self.unsupported(lend.hints.promises()));
        }
        Ok(())
    }

    /// IOVAs for so many bytes, made true by `program`, and written down. Gives the pages that are mapped.
    #[inline]
    fn lend(
        &mut self,
        len_bytes: u64,
        lend: MapRequest,
        attributes: Attributes,
        now: Ticks,
        site: CallSite,
        program: impl FnOnce(&mut B, IovaRange) -> Result<(), Unfinished>,
    ) -> Result<(IovaRange, Ticket), DmaError> {
        let MapRequest { device, align, .. } = lend;
        let ask = Ask { device, len_bytes, align };
        let granted = match self.allocator.alloc(ask) {
            Ok(granted) => granted,
            Err(why) => self.alloc_again(device, len_bytes, align, why, now)?,
        };
        let range = IovaRange { at: granted.at, len_bytes: (len_bytes + self.page_mask) & !self.page_mask };
        // Held before anything is programmed, so that nothing has to be undone for want of it.
        let Some(vacant) = self.ledger.vacant() else { return Err(self.no_place(device, granted)) };
        if let Err(unfinished) = program(&mut self.backend, range) {
            return Err(self.not_mapped(device, granted, range, unfinished, now, site));
        }
        Ok((range, vacant.insert(granted.at, range.len_bytes, granted.len_bytes, (device, attributes), site)))
    }

    /// There is no room in the ledger: the IOVAs go back.
    #[cold]
    fn no_place(&mut self, device: Device, granted: IovaRange) -> DmaError {
        match self.allocator.take_back(device, granted) {
            Ok(()) => Trouble::TooManyMappings { domain: self.name.clone(), most: self.ledger.most() }.into(),
            Err(why) => self.no_iova(device, why),
        }
    }

    /// What waits for its invalidation may be what is missing.
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
            return self.allocator.alloc(Ask { device, len_bytes, align }).map_err(|why| self.no_iova(device, why));
        }
        Err(self.no_iova(device, why))
    }

    /// The backend did not map: what it did is undone, and the IOVAs go back. What cannot be undone stays in the ledger.
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
            if let Err(source) = self.backend.invalidate(Stale::Range { range: done, by: self.allocator.purge(device) })
            {
                return self.keep_back(Unmapped { granted, device, at: now }, source);
            }
        }
        match self.allocator.take_back(device, granted) {
            Ok(()) => self.backend_error("mapping", range, source),
            Err(why) => self.no_iova(device, why),
        }
    }

    /// Maps all of `buffer`, in as many pieces as it takes.
    ///
    /// # Errors
    /// As [`Domain::map`], and nothing of it stays mapped; where a piece cannot be unmapped, that is the error.
    #[track_caller]
    pub fn map_all(
        &mut self,
        buffer: Buffer<B::Memory>,
        lend: MapRequest,
        now: Ticks,
    ) -> Result<Vec<Mapping>, DmaError> {
        let (mut rest, mut pieces) = (buffer, Vec::new());
        loop {
            match self.map(&mut rest, lend, now) {
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

    /// Maps scattered pages as one range: the device sees them next to each other, in this order.
    ///
    /// # Errors
    /// As [`Domain::map`]; and [`Trouble::Buffer`] for a page that does not start at a page. Where pages that were mapped
    /// before the error cannot be unmapped, that is the error, and they are live until the domain is closed.
    #[track_caller]
    pub fn map_scattered(&mut self, pages: &[B::Memory], lend: MapRequest, now: Ticks) -> Result<Mapping, DmaError> {
        let site = Location::caller();
        let len_bytes = self.scattered_bytes(pages)?;
        self.check(lend)?;
        if len_bytes > self.longest_bytes {
            let why = AllocError::TooLong { len_bytes, longest_bytes: self.longest_bytes };
            return Err(self.no_iova(lend.device, why));
        }
        self.make_room(now)?;
        let (attributes, page_bytes) = (lend.attributes(), self.page_bytes());
        let (range, ticket) = self.lend(len_bytes, lend, attributes, now, site, |backend, range| {
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

    /// How many bytes so many pages are, each of which must start at a page.
    fn scattered_bytes(&self, pages: &[B::Memory]) -> Result<u64, DmaError> {
        let is_page = |page: &&B::Memory| page.value() & (self.page_bytes() - 1) == 0;
        let buffer = |at, because| {
            let (domain, len_bytes) = (self.name.clone(), self.page_bytes());
            DmaError::from(Trouble::Buffer { domain, at, len_bytes, because })
        };
        if let Some(page) = pages.iter().find(|page| !is_page(page)) {
            return Err(buffer(page.value(), "it does not start at a page; scattered memory is whole pages"));
        }
        if pages.is_empty() {
            return Err(buffer(0, "there is no page"));
        }
        (pages.len() as u64)
            .checked_mul(self.page_bytes())
            .ok_or_else(|| buffer(0, "there are more pages than addresses"))
    }

    /// Takes back what was lent. The device must be done with it.
    ///
    /// # Errors
    /// [`Trouble::UnmappedBefore`] and [`Trouble::NotMappedHere`], with both places of the program;
    /// [`Trouble::Backend`] where the backend did not unmap it, and it is still mapped; [`Trouble::NotInvalidated`]
    /// where it did, but an IOTLB may still have it.
    #[track_caller]
    #[inline]
    pub fn unmap(&mut self, mapping: Mapping, now: Ticks) -> Result<(), DmaError> {
        let site = Location::caller();
        self.make_room(now)?;
        let entry = *self.live(&mapping, site)?;
        self.unmap_entry(mapping.ticket, entry, now, site)
    }

    /// Unmaps what an entry says, all of it.
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
            return self.wait(Unmapped { granted, device, at: now });
        }
        match self.backend.invalidate(Stale::Range { range, by: self.allocator.purge(device) }) {
            Ok(took) => self.windows.add(took),
            Err(source) => return Err(self.keep_back(Unmapped { granted, device, at: now }, source)),
        }
        match self.allocator.take_back(device, granted) {
            Ok(()) => Ok(()),
            Err(why) => Err(self.no_iova(device, why)),
        }
    }

    /// The live mapping of a receipt.
    #[inline]
    fn live(&self, mapping: &Mapping, site: CallSite) -> Result<&Entry, DmaError> {
        if mapping.domain == self.number
            && let Some(entry) = self.ledger.get(mapping.ticket)
        {
            return Ok(entry);
        }
        Err(self.not_live(mapping, site))
    }

    /// Before anything is unmapped: room among what waits for its invalidation. With strict invalidation that is only
    /// what could not be invalidated, which is tried again first.
    #[inline]
    fn make_room(&mut self, now: Ticks) -> Result<(), DmaError> {
        if self.waiting.is_full() { self.flush(now) } else { Ok(()) }
    }

    /// Deferred: it waits, and goes with the others when it is time.
    #[inline(never)]
    fn wait(&mut self, unmapped: Unmapped) -> Result<(), DmaError> {
        self.waiting.push(unmapped);
        if self.waiting.is_due(unmapped.at) { self.flush(unmapped.at) } else { Ok(()) }
    }

    /// What could not be invalidated waits until it is.
    #[cold]
    fn keep_back(&mut self, unmapped: Unmapped, source: BackendError) -> DmaError {
        self.waiting.push(unmapped);
        self.not_invalidated(unmapped.granted, source)
    }

    /// What a domain is called in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The strategy, to look into.
    #[must_use]
    pub fn allocator(&self) -> &A {
        &self.allocator
    }

    /// The backend, to look into.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The backend, for what a platform does by itself. Whoever maps or unmaps there behind the domain's back is
    /// told of it by the backend's errors, if at all.
    pub fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    /// How many mappings are live. They are counted, which takes as long as there ever were at once.
    #[must_use]
    pub fn live_mappings(&self) -> usize {
        self.ledger.live()
    }

    /// How many IOVA ranges wait for their invalidation.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.entries().len()
    }

    /// For how long devices could reach what was unmapped.
    #[must_use]
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Bytes that the ledger takes, however many mappings are live.
    #[must_use]
    pub fn ledger_bytes(&self) -> usize {
        self.ledger.size_bytes()
    }

    /// Bytes of a page.
    #[inline]
    const fn page_bytes(&self) -> u64 {
        1 << self.page_bits
    }

    #[inline]
    fn attached(&self, device: Device) -> Result<(), DmaError> {
        if self.is_here.get(device.0 as usize) == Some(&true) { Ok(()) } else { Err(self.no_device(device)) }
    }

    #[cold]
    fn no_device(&self, device: Device) -> DmaError {
        Trouble::NoDevice { domain: self.name.clone(), device: device.0 }.into()
    }

    #[cold]
    fn no_buffer(&self, at: u64, len_bytes: u64) -> DmaError {
        let because = if len_bytes == 0 { "there is nothing in it" } else { "it ends beyond the last address" };
        DmaError::from(Trouble::Buffer { domain: self.name.clone(), at, len_bytes, because })
    }

    #[cold]
    fn no_iova(&self, device: Device, why: AllocError) -> DmaError {
        let device = self.devices.get(device.0 as usize).map_or_else(|| "nobody".into(), Clone::clone);
        DmaError::from(Trouble::NoIova { domain: self.name.clone(), device, strategy: self.allocator.name(), why })
    }

    /// The first of these abilities that the backend has not.
    #[cold]
    fn unsupported(&self, bits: u16) -> DmaError {
        let ability = self.abilities.lacks(bits).unwrap_or(Ability::SetAttributes);
        let (domain, backend) = (self.name.clone(), self.backend.name().into());
        DmaError::from(Trouble::Unsupported { domain, backend, ability })
    }

    #[cold]
    fn backend_error(&self, doing: &'static str, range: IovaRange, source: BackendError) -> DmaError {
        let (domain, backend) = (self.name.clone(), self.backend.name().into());
        DmaError::from(match source {
            BackendError::Unsupported(ability) => Trouble::Unsupported { domain, backend, ability },
            source => Trouble::Backend { domain, backend, doing, range, source },
        })
    }

    #[cold]
    fn not_invalidated(&self, range: IovaRange, source: BackendError) -> DmaError {
        let (domain, backend) = (self.name.clone(), self.backend.name().into());
        DmaError::from(Trouble::NotInvalidated { domain, backend, range, source })
    }

    #[cold]
    fn not_live(&self, mapping: &Mapping, again_at: CallSite) -> DmaError {
        let (domain, range, mapped_at) = (self.name.clone(), mapping.range, mapping.mapped_at);
        DmaError::from(match self.ledger.why_not(mapping.ticket) {
            NotLive::Before(before_at) if mapping.domain == self.number => {
                Trouble::UnmappedBefore { domain, range, mapped_at, before_at, again_at }
            }
            _ => Trouble::NotMappedHere { domain, range, mapped_at, again_at },
        })
    }
}

/// The backend mapped so much of what it was to map, and then failed.
struct Unfinished {
    done_bytes: u64,
    attributes: Attributes,
    source: BackendError,
}

/// Pages that lie next to each other, as memory and bytes.
fn runs<M: HostAddress>(pages: &[M], page_bytes: u64) -> impl Iterator<Item = (M, u64)> {
    pages
        .chunk_by(move |before, after| before.value().checked_add(page_bytes) == Some(after.value()))
        .map(move |run| (run[0], run.len() as u64 * page_bytes))
}
