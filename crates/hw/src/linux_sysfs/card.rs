//! Library for programs: registers and memory of a card, with the checks that measurements use.

#![allow(unsafe_code)]

use super::access::{self, widest};
use super::attachment::{Attachment, Consent, Place};
use super::bar_files::Resources;
use super::effective::MappedType;
use super::opened::Opened;
use super::window::Window;
use super::{Address, CardError, Kind, Range, System};
use crate::destination::Destination;
use crate::x86::buffer::Buffer;
use crate::x86::copy_table::CopyTable;
use lanemark_machine::Width;
use lanemark_units::{BarOffset, MemoryType};
use std::sync::Arc;
use std::time::Duration;

/// Device whose named ranges a program may load and store.
///
/// The operations are those of `fpga_pci_attach`, `fpga_pci_peek`, `fpga_pci_poke` and `fpga_pci_write_burst`: attach,
/// map, peek, poke, write a burst, copy, fence, and detach (by dropping). `lanemark.h` offers the same to C.
///
/// ```no_run
/// use lanemark_hw::linux_sysfs::{Card, Consent};
/// use lanemark_machine::Width;
/// use lanemark_units::MemoryType;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let card = Card::attach("0000:01:00.0".parse()?, &["2:0..4KiB:storage".parse()?], Consent::default())?;
/// let mut memory = card.map(0, MemoryType::Wc)?;
/// memory.write_burst(0, &[1, 2, 3, 4])?;
/// memory.fence();
/// assert_eq!(memory.peek(8, Width::B4)?, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Card {
    attachment: Attachment,
    /// Reference count of the mappings.
    mappings: Arc<()>,
    opened: Opened,
}

impl Card {
    /// Attaches to the device at `address`, of which `ranges` may be accessed. Nothing is mapped yet.
    ///
    /// # Errors
    /// [`CardError`]: the device is missing, asleep, used by another process, bound to a driver or not decoding memory, or a range is not within
    /// one of its memory BARs.
    pub fn attach(address: Address, ranges: &[Range], consent: Consent) -> Result<Card, CardError> {
        Card::attach_in(&System::this(), address, ranges, consent)
    }

    /// Like [`attach`](Card::attach), in another system root.
    #[doc(hidden)]
    pub fn attach_in(system: &System, address: Address, ranges: &[Range], consent: Consent) -> Result<Card, CardError> {
        let attachment = Attachment::new(system, address, ranges, consent)?;
        let opened = Opened::new(&attachment.device)?;
        Ok(Card { attachment, mappings: Arc::default(), opened })
    }

    /// Device and ranges.
    #[must_use]
    pub const fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Maps a range until the mapping is dropped; `range` is its index in the order of naming.
    ///
    /// A BAR has one memory type at a time: the kernel would silently give a second mapping the type of the first.
    ///
    /// # Errors
    /// [`CardError::Changed`], [`CardError::HeldOtherwise`], errors of opening and mapping, [`CardError::OtherType`] if the mapping has another
    /// type, and [`CardError::Unsupported`] for an invalid index, or for registers with a type other than UC.
    pub fn map(&self, range: usize, memory_type: MemoryType) -> Result<BarMapping, CardError> {
        let Attachment { device, places, .. } = &self.attachment;
        let unsupported = |because| CardError::Unsupported { device: device.address(), because };
        let place = places.get(range).ok_or_else(|| {
            unsupported(format!("there is no range number {range}: {} ranges were named, counted from 0", places.len()))
        })?;
        if matches!(place.kind, Kind::Registers { .. }) && memory_type != MemoryType::Uc {
            let why = "stores would be merged and loads might be speculative";
            return Err(unsupported(format!(
                "{} is {}, which can be mapped as UC only: {why}",
                place.range, place.kind
            )));
        }
        self.opened.check(device)?;
        Ok(BarMapping {
            window: Window::open(device, &Resources, place, memory_type)?,
            copies: None,
            _count: Arc::clone(&self.mappings),
            _opened: self.opened.clone(),
        })
    }

    /// Number of existing mappings.
    #[must_use]
    pub fn mappings(&self) -> usize {
        Arc::strong_count(&self.mappings) - 1
    }
}

/// Mapped range of a BAR. Offsets are relative to the BAR.
///
/// Every access outside the range, or forbidden by its kind, fails. An access also fails if the BAR vanished before or
/// during it.
#[derive(Debug)]
pub struct BarMapping {
    window: Window,
    /// Copy routines by length, after calibration on this mapping.
    copies: Option<CopyTable>,
    _count: Arc<()>,
    _opened: Opened,
}

impl BarMapping {
    /// Memory type of the mapping, and how it was determined.
    #[must_use]
    pub const fn mapped_type(&self) -> &MappedType {
        self.window.mapped()
    }

    /// Mapped range.
    #[must_use]
    pub const fn place(&self) -> &Place {
        self.window.place()
    }

    /// Loads `width` bytes at `offset`, a multiple of the width.
    ///
    /// # Errors
    /// [`CardError::Unaligned`], [`CardError::OutOfRange`], [`CardError::NotAllowed`]; if all bits are ones,
    /// [`CardError::Gone`] if the configuration space of the device also reads all ones, and [`CardError::DecodingOff`].
    pub fn peek(&self, offset: u64, width: Width) -> Result<u64, CardError> {
        self.check_kind("load", offset)?;
        let at = self.aligned(offset, width)?;
        // SAFETY: the bytes are within the mapped range and aligned to their width.
        let value = unsafe { access::load(at, width.bytes() as usize) };
        self.window.check()?;
        if value == u64::MAX >> (64 - 8 * width.bytes()) {
            self.window.device().check_decoding()?;
        }
        Ok(value)
    }

    /// Stores the low `width` bytes of `value` at `offset`, a multiple of the width. Stores are posted: an error on the
    /// device is not reported.
    ///
    /// # Errors
    /// [`CardError::Unaligned`], [`CardError::OutOfRange`], [`CardError::NotAllowed`], [`CardError::BusError`].
    pub fn poke(&mut self, offset: u64, width: Width, value: u64) -> Result<(), CardError> {
        self.check_kind("store", offset)?;
        let at = self.aligned(offset, width)?;
        // SAFETY: as for `peek`; a range with store permission is mapped writable.
        unsafe { access::store(at, width.bytes() as usize, value) };
        self.window.check()
    }

    /// Stores `words` in ascending order from `offset`, a multiple of 4. Storage is written by 8 B, so that a 64 B line of
    /// write-combining memory leaves as one TLP unless interrupted; registers are written by 4 B.
    ///
    /// # Errors
    /// The errors of [`poke`](BarMapping::poke).
    pub fn write_burst(&mut self, offset: u64, words: &[u32]) -> Result<(), CardError> {
        self.check_kind("store", offset)?;
        if !offset.is_multiple_of(4) {
            return Err(self.unaligned(offset, 4));
        }
        let at = self.window.at(offset, 4 * words.len() as u64)?;
        let is_storage = self.window.place().kind == Kind::Storage;
        let mut done = 0;
        while let Some(word) = words.get(done) {
            let next = words.get(done + 1).filter(|_| is_storage && (offset as usize + 4 * done).is_multiple_of(8));
            // SAFETY: the words are within the mapped, writable range and aligned to their width.
            unsafe {
                let to = at.add(4 * done);
                match next {
                    Some(next) => access::store(to, 8, u64::from(*next) << 32 | u64::from(*word)),
                    None => access::store(to, 4, u64::from(*word)),
                }
            }
            done += 1 + usize::from(next.is_some());
        }
        self.window.check()
    }

    /// Measures for about `limit` which copy routine is fastest for each length to this mapping;
    /// [`copy_to`](BarMapping::copy_to) then uses it. **Overwrites up to 4 MiB of the range.**
    ///
    /// # Errors
    /// [`CardError::NotAllowed`], [`CardError::BusError`]; [`CardError::Os`] if memory cannot be allocated.
    pub fn calibrate(&mut self, limit: Duration) -> Result<(), CardError> {
        /// Longest measured copy in bytes.
        const MOST: u64 = 4 << 20;
        let range = self.window.place().range;
        self.check_storage("copy to", range.from)?;
        let most = range.len().min(MOST);
        let to = self.window.at(range.from, most)?;
        let mut from = Buffer::new(most as usize).map_err(|error| {
            self.window.device().os(
                "allocating the source for the copy calibration of",
                self.window.device().path(""),
                error.into(),
            )
        })?;
        // SAFETY: `most` bytes of the range are mapped and writable, `from` is a separate allocation of the same length, and
        // neither is borrowed elsewhere.
        let table = unsafe { CopyTable::measured_on(to, from.at(0), most as usize, Destination::Hot, limit) };
        self.copies = Some(table);
        self.window.check()
    }

    /// Copies `bytes` to storage at `offset`, by the C library's `memcpy` or the routine found by
    /// [`calibrate`](Self::calibrate). Order and width of the stores are unspecified, so registers are refused.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`], [`CardError::NotAllowed`], [`CardError::BusError`].
    pub fn copy_to(&mut self, offset: u64, bytes: &[u8]) -> Result<(), CardError> {
        self.check_storage("copy to", offset)?;
        let at = self.window.at(offset, bytes.len() as u64)?;
        // SAFETY: the bytes are within the mapped, writable range; no reference into it exists, so the two do not overlap.
        unsafe {
            match &self.copies {
                Some(table) => table.copy(at, bytes.as_ptr(), bytes.len()),
                None => std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()),
            }
        }
        self.window.check()
    }

    /// Fills `bytes` from storage at `offset`, by aligned loads of 8 B and narrower ones at the ends.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`], [`CardError::NotAllowed`], [`CardError::BusError`]; [`CardError::Gone`] and
    /// [`CardError::DecodingOff`] as for [`peek`](BarMapping::peek).
    pub fn copy_from(&self, offset: u64, bytes: &mut [u8]) -> Result<(), CardError> {
        self.check_storage("copy from", offset)?;
        self.window.load(offset, bytes)?;
        self.window.check()?;
        if !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0xff) {
            self.window.device().check_decoding()?;
        }
        Ok(())
    }

    /// Executes `SFENCE`: flushes write-combining buffers and orders all earlier stores. To know that they have arrived, wait
    /// for a later [`peek`](BarMapping::peek).
    pub fn fence(&mut self) {
        // SAFETY: every x86-64 processor supports SSE.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }

    fn check_kind(&self, what: &'static str, offset: u64) -> Result<(), CardError> {
        let kind = self.window.place().kind;
        self.allowed_if(if what == "load" { kind.may_load() } else { kind.may_store() }, what, offset)
    }

    fn check_storage(&self, what: &'static str, offset: u64) -> Result<(), CardError> {
        self.allowed_if(self.window.place().kind == Kind::Storage, what, offset)
    }

    fn allowed_if(&self, is_allowed: bool, what: &'static str, offset: u64) -> Result<(), CardError> {
        let Place { range, kind, .. } = *self.window.place();
        let (device, at) = (self.window.device().address(), BarOffset { bar: range.bar, offset });
        if is_allowed { Ok(()) } else { Err(CardError::NotAllowed { device, what, at, range, kind }) }
    }

    fn aligned(&self, offset: u64, width: Width) -> Result<*mut u8, CardError> {
        let bytes = width.bytes();
        if bytes > 8 || widest(offset as usize, 8) < bytes as usize {
            return Err(self.unaligned(offset, bytes));
        }
        self.window.at(offset, bytes)
    }

    fn unaligned(&self, offset: u64, width: u64) -> CardError {
        let at = BarOffset { bar: self.window.place().range.bar, offset };
        CardError::Unaligned { device: self.window.device().address(), at, width }
    }
}
