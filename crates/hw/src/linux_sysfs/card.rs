//! The library face: a card's registers and memory for programs, by the rules that measurements keep too.

#![allow(unsafe_code)]

use super::access::{self, widest};
use super::attachment::{Attachment, Consent, Place};
use super::effective::MappedType;
use super::window::Window;
use super::{Address, CardError, Kind, Range, System};
use crate::Destination;
use crate::x86::buffer::Buffer;
use crate::x86::copy_table::CopyTable;
use lanemark_machine::Width;
use lanemark_units::{BarOffset, MemoryType};
use std::sync::Arc;
use std::time::Duration;

/// A device that this program loads and stores, in the ranges it named and nowhere else.
///
/// The calls are those that users of `fpga_pci_attach`, `fpga_pci_peek`, `fpga_pci_poke` and `fpga_pci_write_burst` know:
/// attach, map, peek, poke, write a burst, copy, fence, detach (by dropping it). `lanemark.h` has the same for C.
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
    /// Counts the mappings.
    lent: Arc<()>,
}

impl Card {
    /// Attaches to the device at `address`, of which `ranges` may be touched. Nothing is mapped yet.
    ///
    /// # Errors
    /// [`CardError`]: the device is not there, sleeps, is driven by a driver, does not decode memory; or a range is not
    /// in a memory BAR of it.
    pub fn attach(address: Address, ranges: &[Range], consent: Consent) -> Result<Card, CardError> {
        Card::attach_in(&System::this(), address, ranges, consent)
    }

    /// As [`attach`](Card::attach), in another system.
    #[doc(hidden)]
    pub fn attach_in(system: &System, address: Address, ranges: &[Range], consent: Consent) -> Result<Card, CardError> {
        Ok(Card { attachment: Attachment::new(system, address, ranges, consent)?, lent: Arc::default() })
    }

    /// The device and what was found out about it.
    #[must_use]
    pub const fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Maps the range of this number, counted from 0 as they were named, until the mapping is dropped.
    ///
    /// One BAR has one memory type at a time: the kernel would silently give a second mapping the type of the first.
    ///
    /// # Errors
    /// [`CardError::HeldOtherwise`], those of opening and mapping, [`CardError::OtherType`] where another type came of
    /// it, and [`CardError::Unsupported`] for a range that was not named or registers as anything but UC.
    pub fn map(&self, range: usize, memory_type: MemoryType) -> Result<BarMapping, CardError> {
        let Attachment { device, places, .. } = &self.attachment;
        let unsupported = |because| CardError::Unsupported { device: device.address(), because };
        let place = places.get(range).ok_or_else(|| {
            unsupported(format!("there is no range number {range}: {} were named, counted from 0", places.len()))
        })?;
        if matches!(place.kind, Kind::Registers { .. }) && memory_type != MemoryType::Uc {
            let why = "stores would be merged and loads might be speculative";
            return Err(unsupported(format!("{} is {}, which is mapped as UC only: {why}", place.range, place.kind)));
        }
        Ok(BarMapping {
            window: Window::open(device, place, memory_type)?,
            copies: None,
            _lent: Arc::clone(&self.lent),
        })
    }

    /// How many mappings of it there are.
    #[must_use]
    pub fn mappings(&self) -> usize {
        Arc::strong_count(&self.lent) - 1
    }
}

/// A range of a BAR in this program's memory. Offsets are those of the BAR.
///
/// Every access is refused where it leaves the range or its kind forbids it, and an error after it says that the BAR
/// vanished meanwhile.
#[derive(Debug)]
pub struct BarMapping {
    window: Window,
    /// Which copy for which length, once it was measured here.
    copies: Option<CopyTable>,
    _lent: Arc<()>,
}

impl BarMapping {
    /// The memory type that came of it, and how that is known.
    #[must_use]
    pub const fn mapped_type(&self) -> &MappedType {
        self.window.mapped()
    }

    /// What is mapped.
    #[must_use]
    pub const fn place(&self) -> &Place {
        self.window.place()
    }

    /// Loads `width` bytes at `offset`, a multiple of the width.
    ///
    /// # Errors
    /// [`CardError::Unaligned`], [`CardError::OutOfRange`], [`CardError::NotAllowed`]; [`CardError::Gone`] for all ones
    /// from a device whose configuration space reads all ones too.
    pub fn peek(&self, offset: u64, width: Width) -> Result<u64, CardError> {
        self.check_kind("load", offset)?;
        let at = self.aligned(offset, width)?;
        // SAFETY: the bytes lie in the mapped range, at a multiple of their width.
        let value = unsafe { access::load(at, width.bytes() as usize) };
        self.window.check()?;
        if value == u64::MAX >> (64 - 8 * width.bytes()) {
            self.window.device().check_present()?;
        }
        Ok(value)
    }

    /// Stores the low `width` bytes of `value` at `offset`, a multiple of the width. Stores are posted: an error of the
    /// device's does not come back.
    ///
    /// # Errors
    /// [`CardError::Unaligned`], [`CardError::OutOfRange`], [`CardError::NotAllowed`], [`CardError::BusError`].
    pub fn poke(&mut self, offset: u64, width: Width, value: u64) -> Result<(), CardError> {
        self.check_kind("store", offset)?;
        let at = self.aligned(offset, width)?;
        // SAFETY: as for `peek`, and the window of a range that may be stored to is writable.
        unsafe { access::store(at, width.bytes() as usize, value) };
        self.window.check()
    }

    /// Stores `words` from `offset` on, a multiple of 4, in ascending order: by 8 B in storage, so that a line of 64 B in
    /// write-combining memory leaves as one packet where nothing interrupts it, and by 4 B in registers.
    ///
    /// # Errors
    /// As for [`poke`](BarMapping::poke).
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
            // SAFETY: the words lie in the mapped, writable range, at multiples of their width.
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

    /// Measures, for about `limit`, which copy is the fastest for each length to this very mapping; from then on
    /// [`copy_to`](BarMapping::copy_to) uses it. **Overwrites the range**, up to 4 MiB of it.
    ///
    /// # Errors
    /// [`CardError::NotAllowed`], [`CardError::BusError`]; [`CardError::Os`] if memory is short.
    pub fn calibrate(&mut self, limit: Duration) -> Result<(), CardError> {
        /// The longest copy that is measured.
        const MOST: u64 = 4 << 20;
        let range = self.window.place().range;
        self.check_storage("copy to", range.from)?;
        let most = range.len().min(MOST);
        let to = self.window.at(range.from, most)?;
        let mut from = Buffer::new(most as usize).map_err(|error| {
            self.window.device().os("allocating the source of copies to", self.window.device().path(""), error.into())
        })?;
        // SAFETY: `most` bytes of the range are mapped and writable, `from` is memory of its own and as long, and both are
        // borrowed by nobody else.
        let table = unsafe { CopyTable::measured_on(to, from.at(0), most as usize, Destination::Hot, limit) };
        self.copies = Some(table);
        self.window.check()
    }

    /// Copies `bytes` to storage from `offset` on, by the machine's `memcpy`, or by what [`calibrate`](Self::calibrate)
    /// found: in which order and how wide it stores is its own affair, which is why registers are refused.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`], [`CardError::NotAllowed`], [`CardError::BusError`].
    pub fn copy_to(&mut self, offset: u64, bytes: &[u8]) -> Result<(), CardError> {
        self.check_storage("copy to", offset)?;
        let at = self.window.at(offset, bytes.len() as u64)?;
        // SAFETY: the bytes lie in the mapped, writable range; no reference into it exists, so nothing overlaps.
        unsafe {
            match &self.copies {
                Some(table) => table.copy(at, bytes.as_ptr(), bytes.len()),
                None => std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()),
            }
        }
        self.window.check()
    }

    /// Fills `bytes` from storage, from `offset` on, by loads of 8 B and narrower ones at the ends.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`], [`CardError::NotAllowed`], [`CardError::BusError`]; [`CardError::Gone`] as for
    /// [`peek`](BarMapping::peek).
    pub fn copy_from(&self, offset: u64, bytes: &mut [u8]) -> Result<(), CardError> {
        self.check_storage("copy from", offset)?;
        self.window.load(offset, bytes)?;
        self.window.check()?;
        if !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0xff) {
            self.window.device().check_present()?;
        }
        Ok(())
    }

    /// Sends all earlier stores on their way, those in write-combining buffers too (`SFENCE`). That they have arrived
    /// is known only once a later [`peek`](BarMapping::peek) has come back.
    pub fn fence(&mut self) {
        // SAFETY: every x86-64 processor has SSE.
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
