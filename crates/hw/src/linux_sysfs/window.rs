//! Mapping of a BAR range into this process, with one memory type, until dropped.

#![allow(unsafe_code)]

use super::access::{self, widest};
use super::attachment::Place;
use super::bar_files::{BarFile, BarFiles};
use super::effective::MappedType;
use super::sigbus::{Guard, PAGE};
use super::{CardError, Device};
use lanemark_units::{BarOffset, MemoryType};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::path::PathBuf;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

/// Mapped range. Whole pages are mapped; only the range is accessible.
#[derive(Debug)]
pub(crate) struct Window {
    device: Device,
    place: Place,
    /// First page.
    pages: NonNull<u8>,
    /// Length of all pages in bytes.
    pages_len: usize,
    /// Offset of the range within the pages.
    lead: usize,
    mapped: MappedType,
    /// Dropped before the pages are unmapped, see `drop`.
    guard: Option<Guard>,
    _held: Held,
}

// SAFETY: a window owns its mapping, and mappings belong to the process, not to a thread.
unsafe impl Send for Window {}

impl Window {
    /// Maps the range of `place` as `memory_type` and reads the type back if the system reports it.
    ///
    /// A range without store permission is mapped read-only.
    ///
    /// # Errors
    /// [`CardError`] for files, mappings and memory types.
    pub(crate) fn open(
        device: &Device,
        files: &dyn BarFiles,
        place: &Place,
        memory_type: MemoryType,
    ) -> Result<Window, CardError> {
        let (address, bar, range) = (device.address(), place.bar.number, place.range);
        let path = files.path(device, bar, memory_type).ok_or_else(|| CardError::Unsupported {
            device: address,
            because: format!("{}, not as {memory_type}", files.types()),
        })?;
        let held = Held::take(device, bar, memory_type)?;
        let protection = if place.kind.may_store() { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let bar_file = files.open(device, place, memory_type, &path)?;
        // A BAR shorter than a page may start within one; the kernel maps that page.
        let in_page = place.bar.start.0 % PAGE as u64;
        let first = range.from / PAGE as u64 * PAGE as u64;
        let lead = (in_page + range.from - first) as usize;
        let pages_len = (lead + range.len() as usize).next_multiple_of(PAGE);
        let offset = bar_file.start + first;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let pages = unsafe { mmap(ptr::null_mut(), pages_len, protection, MapFlags::SHARED, &bar_file.file, offset) };
        let pages = pages.map_err(|error| match error {
            Errno::PERM => CardError::LockedDown { device: address, bar },
            Errno::INVAL => CardError::Claimed { device: address, range },
            Errno::NODEV => CardError::NoResourceFile { device: address, path: path.clone() },
            other => device.os("mapping", path.clone(), other.into()),
        })?;
        let refused = |error: Errno| device.os("mapping", path.clone(), error.into());
        let pages = NonNull::new(pages.cast()).ok_or_else(|| refused(Errno::NOMEM))?;
        let not_yet = MappedType { found: None, because: String::new() };
        let (device, place) = (device.clone(), place.clone());
        let mut window = Window { device, place, pages, pages_len, lead, mapped: not_yet, guard: None, _held: held };
        window.guard = Some(Guard::over(pages.as_ptr(), pages_len).map_err(refused)?);
        window.mapped = window.read_back(files, &bar_file, memory_type)?;
        Ok(window)
    }

    /// Reads the memory type back; if the system reports it, it must be the requested one.
    fn read_back(&self, files: &dyn BarFiles, file: &BarFile, asked: MemoryType) -> Result<MappedType, CardError> {
        let range = self.place.range;
        let device = self.device.address();
        let other = |found: String, because: String| CardError::OtherType { device, range, asked, found, because };
        let first = self.pages.as_ptr() as usize;
        let pages = [first, first + self.pages_len - PAGE];
        let mapped = files
            .mapped_type(file, &self.device, &self.place, pages)
            .map_err(|because| other("of unknown type".to_owned(), because))?;
        match mapped.found {
            Some(found) if found != asked => {
                let hint = "another mapping of the same pages (by a driver or another program) or an MTRR overrides it";
                Err(other(found.to_string(), format!("{hint}; {}", mapped.because)))
            }
            _ => Ok(mapped),
        }
    }

    /// Memory type, and how it was determined.
    pub(super) const fn mapped(&self) -> &MappedType {
        &self.mapped
    }

    /// Mapped range.
    pub(super) const fn place(&self) -> &Place {
        &self.place
    }

    /// Device that owns the BAR.
    pub(super) const fn device(&self) -> &Device {
        &self.device
    }

    /// Pointer to `offset` of the BAR; `len` bytes from there must be within the range.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`].
    pub(crate) fn at(&self, offset: u64, len: u64) -> Result<*mut u8, CardError> {
        let range = self.place.range;
        let inside = offset >= range.from && offset <= range.to && len <= range.to - offset;
        if !inside {
            let at = BarOffset { bar: range.bar, offset };
            return Err(CardError::OutOfRange { device: self.device.address(), at, len, range });
        }
        let in_pages = self.lead + (offset - range.from) as usize;
        Ok(self.pages.as_ptr().wrapping_add(in_pages))
    }

    /// Fills `bytes` from `offset` of the BAR on, by aligned loads of 8 B and narrower ones at the ends, in ascending order
    /// and each byte once.
    ///
    /// # Errors
    /// [`CardError::OutOfRange`].
    pub(super) fn load(&self, offset: u64, bytes: &mut [u8]) -> Result<(), CardError> {
        let at = self.at(offset, bytes.len() as u64)?;
        let (mut done, len) = (0, bytes.len());
        while done < len {
            let width = widest(at as usize + done, len - done);
            // SAFETY: the bytes are within the mapped range and aligned to the width; `check` reports a BAR that vanished.
            let value = unsafe { access::load(at.add(done), width) };
            bytes[done..done + width].copy_from_slice(&value.to_le_bytes()[..width]);
            done += width;
        }
        Ok(())
    }

    /// Fails if a bus error occurred in this window.
    ///
    /// # Errors
    /// [`CardError::BusError`] with the first faulting address.
    pub(crate) fn check(&self) -> Result<(), CardError> {
        let Some(fault) = self.guard.as_ref().and_then(Guard::fault) else { return Ok(()) };
        let in_pages = fault - self.pages.as_ptr() as usize;
        let offset = (self.place.range.from + in_pages as u64).saturating_sub(self.lead as u64);
        let at = BarOffset { bar: self.place.range.bar, offset };
        Err(CardError::BusError { device: self.device.address(), at })
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // The guard first: the handler must not replace pages that no longer belong to this window.
        self.guard = None;
        // SAFETY: the pages are those mapped in `open`, and pointers into them are used only while the window is borrowed.
        let unmapped = unsafe { munmap(self.pages.as_ptr().cast(), self.pages_len) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
    }
}

/// BARs mapped by this process with their memory types: the kernel silently changes the type of a second mapping.
static HELD: Mutex<Vec<(PathBuf, u8, MemoryType)>> = Mutex::new(Vec::new());

/// Registration of a BAR as mapped with one memory type.
#[derive(Debug)]
struct Held(PathBuf, u8, MemoryType);

impl Held {
    fn take(device: &Device, bar: u8, asked: MemoryType) -> Result<Held, CardError> {
        let folder = device.path("");
        let mut all = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., held)) =
            all.iter().find(|(other, number, held)| (other, *number) == (&folder, bar) && *held != asked)
        {
            return Err(CardError::HeldOtherwise { device: device.address(), bar, held: *held, asked });
        }
        all.push((folder.clone(), bar, asked));
        Ok(Held(folder, bar, asked))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut all = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let this = |(folder, bar, kind): &(PathBuf, u8, MemoryType)| (folder, *bar, *kind) == (&self.0, self.1, self.2);
        if let Some(place) = all.iter().position(this) {
            all.swap_remove(place);
        }
    }
}
