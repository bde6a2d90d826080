//! C interface: registers and memory of a card for C programs, with the checks of
//! [`lanemark_hw::linux_sysfs::Card`]; and the method for many small copies, from a table. `include/lanemark.h` is generated
//! from this folder.
//!
//! Every function returns a [`lanemark_status`]; [`lanemark_message`] returns the details. Panics are caught and returned as
//! [`lanemark_status::Internal`]. Handles are freed by [`lanemark_unmap`] and [`lanemark_detach`].
//!
//! This crate has `unsafe` of its own because pointers come from C
//! ([0011](../../../docs/decisions/0011-a-c-library-with-unsafe.md)).

#![allow(unsafe_code)]
#![allow(non_camel_case_types)] // Names follow C conventions.
#![allow(clippy::doc_markdown)] // Doc comments become those of the header.

mod copies;
mod message;
mod pointers;
mod status;

pub use copies::{
    lanemark_copy_method, lanemark_copy_plan, lanemark_copy_table, lanemark_copy_table_close, lanemark_copy_table_open,
};
use lanemark_hw::linux_sysfs::{BarMapping, Card, CardError, Consent, NotARange, NotAnAddress, Range, System};
use lanemark_machine::Width;
use lanemark_units::MemoryType;
pub use message::lanemark_message;
use message::{Failure, failed, guarded};
use pointers::{argument, null, set_null, slice_of, slice_of_mut, text};
pub use status::lanemark_status;
use std::ffi::{c_char, c_void};
use std::path::Path;
use std::time::Duration;

/// Memory type for `lanemark_map`: uncached, through `resourceN`.
pub const LANEMARK_UC: u32 = 0;
/// Memory type for `lanemark_map`: write-combining, through `resourceN_wc`; storage only.
pub const LANEMARK_WC: u32 = 1;

/// Flag for `lanemark_attach`: continue although a driver is bound to the device.
pub const LANEMARK_OWNS_DEVICE: u32 = 1;
/// Flag for `lanemark_attach`: enable memory decoding if it is off; it stays enabled.
pub const LANEMARK_ENABLE: u32 = 2;

/// An attached device.
#[derive(Debug)]
pub struct lanemark_card(Card);

/// A mapped range of a BAR.
#[derive(Debug)]
pub struct lanemark_mapping(BarMapping);

/// Attaches to the device at `address`, such as "0000:01:00.0". `ranges` lists the accessible ranges, separated by commas:
/// "2:0..4KiB:storage,0:0..64:registers:write". `flags` is 0 or a combination of LANEMARK_OWNS_DEVICE and
/// LANEMARK_ENABLE. Sets `card` to a handle for `lanemark_detach`, or to null on failure.
///
/// # Safety
/// `address` and `ranges` must be NUL-terminated; `card` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_attach(
    address: *const c_char,
    ranges: *const c_char,
    flags: u32,
    card: *mut *mut lanemark_card,
) -> lanemark_status {
    // SAFETY: guaranteed by the caller.
    guarded(|| unsafe { attach(&System::this(), address, ranges, flags, card) })
}

/// Like `lanemark_attach`, with the folder `root` instead of "/". For tests of programs: BARs are then plain files
/// `root/sys/bus/pci/devices/ADDRESS/resourceN`.
///
/// # Safety
/// Same as for `lanemark_attach`; `root` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_attach_in(
    root: *const c_char,
    address: *const c_char,
    ranges: *const c_char,
    flags: u32,
    card: *mut *mut lanemark_card,
) -> lanemark_status {
    // SAFETY: guaranteed by the caller.
    guarded(|| unsafe { attach(&System::at(Path::new(text(root, "root")?)), address, ranges, flags, card) })
}

/// Maps a range as LANEMARK_UC or LANEMARK_WC; `range` is its index in the order of naming. Sets `mapping` to a handle for
/// `lanemark_unmap`, or to null on failure. A BAR has one memory type at a time.
///
/// # Safety
/// `card` must come from `lanemark_attach` and not be detached; `mapping` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_map(
    card: *const lanemark_card,
    range: usize,
    memory_type: u32,
    mapping: *mut *mut lanemark_mapping,
) -> lanemark_status {
    guarded(|| {
        // SAFETY: guaranteed by the caller.
        let card = unsafe {
            set_null(mapping, "mapping")?;
            card.as_ref().ok_or(null("card"))?
        };
        let memory_type = match memory_type {
            LANEMARK_UC => MemoryType::Uc,
            LANEMARK_WC => MemoryType::Wc,
            other => return Err(argument(format!("invalid memory type {other}: use LANEMARK_UC or LANEMARK_WC"))),
        };
        let mapped = Box::into_raw(Box::new(lanemark_mapping(card.0.map(range, memory_type)?)));
        // SAFETY: it was written above.
        unsafe { mapping.write(mapped) };
        Ok(())
    })
}

/// Loads `width` bytes (1, 2, 4 or 8) at `offset` of the BAR, a multiple of the width, into `value`.
///
/// # Safety
/// `mapping` must come from `lanemark_map` and not be unmapped; `value` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_peek(
    mapping: *const lanemark_mapping,
    offset: u64,
    width: u32,
    value: *mut u64,
) -> lanemark_status {
    guarded(|| {
        // SAFETY: guaranteed by the caller.
        let mapping = unsafe { mapping.as_ref() }.ok_or(null("mapping"))?;
        if value.is_null() {
            return Err(null("value"));
        }
        let read = mapping.0.peek(offset, width_of(width)?)?;
        // SAFETY: guaranteed by the caller; the old value is not read.
        unsafe { value.write(read) };
        Ok(())
    })
}

/// Stores the low `width` bytes (1, 2, 4 or 8) of `value` at `offset` of the BAR, a multiple of the width. Stores are
/// posted: an error on the device is not reported.
///
/// # Safety
/// `mapping` must come from `lanemark_map` and not be unmapped; no other thread may use it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_poke(
    mapping: *mut lanemark_mapping,
    offset: u64,
    width: u32,
    value: u64,
) -> lanemark_status {
    // SAFETY: guaranteed by the caller.
    guarded(|| Ok(unsafe { mapped(mapping) }?.poke(offset, width_of(width)?, value)?))
}

/// Stores `count` words of 4 B in ascending order from `offset` of the BAR, a multiple of 4. In storage, words are stored
/// in pairs, so that write-combining buffers are flushed as whole 64 B lines.
///
/// # Safety
/// Same as for `lanemark_poke`; `words` must hold `count` words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_write_burst(
    mapping: *mut lanemark_mapping,
    offset: u64,
    words: *const u32,
    count: usize,
) -> lanemark_status {
    // SAFETY: guaranteed by the caller.
    guarded(|| Ok(unsafe { mapped(mapping) }?.write_burst(offset, unsafe { slice_of(words, count, "words") }?)?))
}

/// Measures for about `limit_ms` milliseconds which copy routine is fastest for each length to this mapping;
/// `lanemark_copy_to` then uses it. Overwrites up to 4 MiB of the range.
///
/// # Safety
/// Same as for `lanemark_poke`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_calibrate(mapping: *mut lanemark_mapping, limit_ms: u32) -> lanemark_status {
    // SAFETY: guaranteed by the caller.
    guarded(|| Ok(unsafe { mapped(mapping) }?.calibrate(Duration::from_millis(u64::from(limit_ms)))?))
}

/// Copies `len` bytes to storage at `offset` of the BAR. Order and width of the stores are unspecified.
///
/// # Safety
/// Same as for `lanemark_poke`; `bytes` must hold `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_copy_to(
    mapping: *mut lanemark_mapping,
    offset: u64,
    bytes: *const c_void,
    len: usize,
) -> lanemark_status {
    // SAFETY: guaranteed by the caller.
    guarded(|| Ok(unsafe { mapped(mapping) }?.copy_to(offset, unsafe { slice_of(bytes.cast(), len, "bytes") }?)?))
}

/// Copies `len` bytes from storage at `offset` of the BAR.
///
/// # Safety
/// `mapping` must come from `lanemark_map` and not be unmapped; `bytes` must hold `len` bytes without other users.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_copy_from(
    mapping: *const lanemark_mapping,
    offset: u64,
    bytes: *mut c_void,
    len: usize,
) -> lanemark_status {
    guarded(|| {
        // SAFETY: guaranteed by the caller.
        let mapping = unsafe { mapping.as_ref() }.ok_or(null("mapping"))?;
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { slice_of_mut(bytes.cast::<u8>(), len, "bytes") }?;
        Ok(mapping.0.copy_from(offset, bytes)?)
    })
}

/// Executes `SFENCE`: flushes write-combining buffers and orders all earlier stores. They have arrived when a later peek
/// returns.
///
/// # Safety
/// Same as for `lanemark_poke`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_fence(mapping: *mut lanemark_mapping) -> lanemark_status {
    // SAFETY: guaranteed by the caller.
    guarded(|| unsafe { mapped(mapping) }.map(BarMapping::fence))
}

/// Unmaps a mapping; null is ignored.
///
/// # Safety
/// `mapping` must come from `lanemark_map`, not be unmapped, and have no other users.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_unmap(mapping: *mut lanemark_mapping) -> lanemark_status {
    guarded(|| {
        if !mapping.is_null() {
            // SAFETY: it was made by `Box::into_raw`, and the caller guarantees that it is freed once.
            drop(unsafe { Box::from_raw(mapping) });
        }
        Ok(())
    })
}

/// Detaches from the device; null is ignored. Fails while one of its mappings exists.
///
/// # Safety
/// `card` must come from `lanemark_attach`, not be detached, and have no other users.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_detach(card: *mut lanemark_card) -> lanemark_status {
    guarded(|| {
        // SAFETY: guaranteed by the caller.
        match unsafe { card.as_ref() }.map_or(0, |card| card.0.mappings()) {
            0 => {}
            left => {
                return Err(failed(lanemark_status::StillMapped, format!("{left} mappings exist: unmap them first")));
            }
        }
        if !card.is_null() {
            // SAFETY: it was made by `Box::into_raw`, and the caller guarantees that it is freed once.
            drop(unsafe { Box::from_raw(card) });
        }
        Ok(())
    })
}

/// # Safety
/// Same as for [`lanemark_attach`].
unsafe fn attach(
    system: &System,
    address: *const c_char,
    ranges: *const c_char,
    flags: u32,
    card: *mut *mut lanemark_card,
) -> Result<(), Failure> {
    // SAFETY: guaranteed by the caller.
    let (address, ranges) = unsafe {
        set_null(card, "card")?;
        (text(address, "address")?, text(ranges, "ranges")?)
    };
    let address = address.parse().map_err(|error: NotAnAddress| argument(error.to_string()))?;
    let parts = ranges.split(',').map(str::trim).filter(|part| !part.is_empty());
    let ranges = parts.map(str::parse).collect::<Result<Vec<Range>, NotARange>>();
    let ranges = ranges.map_err(|error| argument(error.to_string()))?;
    let known = LANEMARK_OWNS_DEVICE | LANEMARK_ENABLE;
    if flags & !known != 0 {
        return Err(argument(format!("invalid flags {flags:#x}: use LANEMARK_OWNS_DEVICE and LANEMARK_ENABLE")));
    }
    let consent = Consent { owns_device: flags & LANEMARK_OWNS_DEVICE != 0, enable: flags & LANEMARK_ENABLE != 0 };
    let attached = Box::into_raw(Box::new(lanemark_card(Card::attach_in(system, address, &ranges, consent)?)));
    // SAFETY: it was written above.
    unsafe { card.write(attached) };
    Ok(())
}

/// # Safety
/// `mapping` must be null, or come from [`lanemark_map`], not be unmapped and have no other users meanwhile.
unsafe fn mapped<'a>(mapping: *mut lanemark_mapping) -> Result<&'a mut BarMapping, Failure> {
    // SAFETY: guaranteed by the caller.
    unsafe { mapping.as_mut() }.map(|mapping| &mut mapping.0).ok_or(null("mapping"))
}

fn width_of(bytes: u32) -> Result<Width, Failure> {
    let width = Width::ALL.into_iter().find(|width| width.bytes() == u64::from(bytes) && bytes <= 8);
    width.ok_or_else(|| argument(format!("invalid width {bytes} B: use 1, 2, 4 or 8")))
}

impl From<CardError> for Failure {
    fn from(error: CardError) -> Failure {
        failed(lanemark_status::from(&error), error.to_string())
    }
}
