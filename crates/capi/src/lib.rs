//! The C face: a card's registers and memory for C programs, by the rules of
//! [`lanemark_hw::linux_sysfs::Card`]. `include/lanemark.h` is made from this file.
//!
//! Every function returns a [`lanemark_status`]; [`lanemark_message`] says the rest. No panic crosses: one is caught and
//! becomes [`lanemark_status::Internal`]. Handles are freed by [`lanemark_unmap`] and [`lanemark_detach`].
//!
//! The second room with `unsafe` of its own, because pointers come from C
//! ([0011](../../../docs/decisions/0011-a-c-library-with-unsafe.md)).

#![allow(unsafe_code)]
#![allow(non_camel_case_types)] // The names are those C programs write.
#![allow(clippy::doc_markdown)] // Doc comments become those of the header.

mod message;
mod status;

use lanemark_hw::linux_sysfs::{BarMapping, Card, CardError, Consent, NotARange, NotAnAddress, Range, System};
use lanemark_machine::Width;
use lanemark_units::MemoryType;
pub use message::lanemark_message;
use message::{Failure, answered, failed};
pub use status::lanemark_status;
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::slice;
use std::time::Duration;

/// For `lanemark_map`: uncached, through `resourceN`.
pub const LANEMARK_UC: u32 = 0;
/// For `lanemark_map`: write-combining, through `resourceN_wc`; storage only.
pub const LANEMARK_WC: u32 = 1;

/// For `lanemark_attach`: go on although a driver is bound to the device.
pub const LANEMARK_OWNS_DEVICE: u32 = 1;
/// For `lanemark_attach`: turn memory decoding on where it is off; it stays on.
pub const LANEMARK_ENABLE: u32 = 2;

/// An attached device.
#[derive(Debug)]
pub struct lanemark_card(Card);

/// A mapped range of a BAR.
#[derive(Debug)]
pub struct lanemark_mapping(BarMapping);

/// Attaches to the device at `address`, such as "0000:01:00.0". `ranges` names what may be touched, separated by commas:
/// "2:0..4KiB:storage,0:0..64:registers:write". `flags` is 0 or LANEMARK_OWNS_DEVICE, LANEMARK_ENABLE or both. Fills
/// `card`, to be given to `lanemark_detach`; with null if it fails.
///
/// # Safety
/// `address` and `ranges` end in zero; `card` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_attach(
    address: *const c_char,
    ranges: *const c_char,
    flags: u32,
    card: *mut *mut lanemark_card,
) -> lanemark_status {
    // SAFETY: handed on to the caller.
    answered(|| unsafe { attach(&System::this(), address, ranges, flags, card) })
}

/// As `lanemark_attach`, with the folder `root` in place of "/": for tests of programs, whose BARs are then plain files
/// `root/sys/bus/pci/devices/ADDRESS/resourceN`.
///
/// # Safety
/// As for `lanemark_attach`; `root` ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_attach_in(
    root: *const c_char,
    address: *const c_char,
    ranges: *const c_char,
    flags: u32,
    card: *mut *mut lanemark_card,
) -> lanemark_status {
    // SAFETY: handed on to the caller.
    answered(|| unsafe { attach(&System::at(Path::new(text(root, "root")?)), address, ranges, flags, card) })
}

/// Maps the range of this number, counted from 0 in the order they were named, as LANEMARK_UC or LANEMARK_WC. Fills
/// `mapping`, to be given to `lanemark_unmap`; with null if it fails. One BAR has one memory type at a time.
///
/// # Safety
/// `card` comes from `lanemark_attach` and is not detached; `mapping` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_map(
    card: *const lanemark_card,
    range: usize,
    memory_type: u32,
    mapping: *mut *mut lanemark_mapping,
) -> lanemark_status {
    answered(|| {
        // SAFETY: handed on to the caller.
        let card = unsafe {
            emptied(mapping, "mapping")?;
            card.as_ref().ok_or(null("card"))?
        };
        let memory_type = match memory_type {
            LANEMARK_UC => MemoryType::Uc,
            LANEMARK_WC => MemoryType::Wc,
            other => return Err(argument(format!("memory type {other}: use LANEMARK_UC or LANEMARK_WC"))),
        };
        let mapped = Box::into_raw(Box::new(lanemark_mapping(card.0.map(range, memory_type)?)));
        // SAFETY: it was written to above.
        unsafe { mapping.write(mapped) };
        Ok(())
    })
}

/// Loads `width` bytes, 1, 2, 4 or 8, at `offset` of the BAR, a multiple of the width, into `value`.
///
/// # Safety
/// `mapping` comes from `lanemark_map` and is not unmapped; `value` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_peek(
    mapping: *const lanemark_mapping,
    offset: u64,
    width: u32,
    value: *mut u64,
) -> lanemark_status {
    answered(|| {
        // SAFETY: handed on to the caller.
        let mapping = unsafe { mapping.as_ref() }.ok_or(null("mapping"))?;
        if value.is_null() {
            return Err(null("value"));
        }
        let read = mapping.0.peek(offset, width_of(width)?)?;
        // SAFETY: likewise; it may hold anything before.
        unsafe { value.write(read) };
        Ok(())
    })
}

/// Stores the low `width` bytes of `value`, 1, 2, 4 or 8, at `offset` of the BAR, a multiple of the width. A store is
/// posted: an error of the device's does not come back.
///
/// # Safety
/// `mapping` comes from `lanemark_map` and is not unmapped; no other thread uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_poke(
    mapping: *mut lanemark_mapping,
    offset: u64,
    width: u32,
    value: u64,
) -> lanemark_status {
    // SAFETY: handed on to the caller.
    answered(|| Ok(unsafe { mapped(mapping) }?.poke(offset, width_of(width)?, value)?))
}

/// Stores `count` words of 4 B from `offset` of the BAR on, a multiple of 4, in ascending order; in storage two at a time,
/// so that lines of 64 B leave write-combining buffers whole.
///
/// # Safety
/// As for `lanemark_poke`; `words` holds `count` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_write_burst(
    mapping: *mut lanemark_mapping,
    offset: u64,
    words: *const u32,
    count: usize,
) -> lanemark_status {
    // SAFETY: handed on to the caller.
    answered(|| Ok(unsafe { mapped(mapping) }?.write_burst(offset, unsafe { slice_of(words, count, "words") }?)?))
}

/// Measures, for about `limit_ms` milliseconds, which copy is the fastest for each length to this very mapping; from then on
/// `lanemark_copy_to` uses it. Overwrites the range, up to 4 MiB of it.
///
/// # Safety
/// As for `lanemark_poke`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_calibrate(mapping: *mut lanemark_mapping, limit_ms: u32) -> lanemark_status {
    // SAFETY: handed on to the caller.
    answered(|| Ok(unsafe { mapped(mapping) }?.calibrate(Duration::from_millis(u64::from(limit_ms)))?))
}

/// Copies `len` bytes to storage from `offset` of the BAR on. In which order and how wide is the copy's own affair.
///
/// # Safety
/// As for `lanemark_poke`; `bytes` holds `len` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_copy_to(
    mapping: *mut lanemark_mapping,
    offset: u64,
    bytes: *const c_void,
    len: usize,
) -> lanemark_status {
    // SAFETY: handed on to the caller.
    answered(|| Ok(unsafe { mapped(mapping) }?.copy_to(offset, unsafe { slice_of(bytes.cast(), len, "bytes") }?)?))
}

/// Copies `len` bytes from storage, from `offset` of the BAR on.
///
/// # Safety
/// `mapping` comes from `lanemark_map` and is not unmapped; `bytes` has room for `len` and nobody else uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_copy_from(
    mapping: *const lanemark_mapping,
    offset: u64,
    bytes: *mut c_void,
    len: usize,
) -> lanemark_status {
    answered(|| {
        // SAFETY: handed on to the caller.
        let mapping = unsafe { mapping.as_ref() }.ok_or(null("mapping"))?;
        // SAFETY: likewise; nothing of no length is written to.
        let bytes = match len {
            0 => &mut [][..],
            _ if bytes.is_null() => return Err(null("bytes")),
            _ => unsafe { slice::from_raw_parts_mut(bytes.cast::<u8>(), len) },
        };
        Ok(mapping.0.copy_from(offset, bytes)?)
    })
}

/// Sends all earlier stores on their way, those in write-combining buffers too. They have arrived once a later peek has
/// come back.
///
/// # Safety
/// As for `lanemark_poke`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_fence(mapping: *mut lanemark_mapping) -> lanemark_status {
    // SAFETY: handed on to the caller.
    answered(|| unsafe { mapped(mapping) }.map(BarMapping::fence))
}

/// Gives a mapping back; null is nothing to give back.
///
/// # Safety
/// `mapping` comes from `lanemark_map`, is not unmapped yet, and is used by nobody any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_unmap(mapping: *mut lanemark_mapping) -> lanemark_status {
    answered(|| {
        if !mapping.is_null() {
            // SAFETY: it was made by `Box::into_raw`, and the caller vouches that it is given back once.
            drop(unsafe { Box::from_raw(mapping) });
        }
        Ok(())
    })
}

/// Leaves the device; null is nothing to leave. Refused while a mapping of it is there.
///
/// # Safety
/// `card` comes from `lanemark_attach`, is not detached yet, and is used by nobody any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lanemark_detach(card: *mut lanemark_card) -> lanemark_status {
    answered(|| {
        // SAFETY: handed on to the caller.
        match unsafe { card.as_ref() }.map_or(0, |card| card.0.mappings()) {
            0 => {}
            left => return Err(failed(lanemark_status::StillMapped, format!("{left} mappings are still there"))),
        }
        if !card.is_null() {
            // SAFETY: it was made by `Box::into_raw`, and the caller vouches that it is given back once.
            drop(unsafe { Box::from_raw(card) });
        }
        Ok(())
    })
}

/// # Safety
/// As for [`lanemark_attach`].
unsafe fn attach(
    system: &System,
    address: *const c_char,
    ranges: *const c_char,
    flags: u32,
    card: *mut *mut lanemark_card,
) -> Result<(), Failure> {
    // SAFETY: handed on to the caller.
    let (address, ranges) = unsafe {
        emptied(card, "card")?;
        (text(address, "address")?, text(ranges, "ranges")?)
    };
    let address = address.parse().map_err(|error: NotAnAddress| argument(error.to_string()))?;
    let parts = ranges.split(',').map(str::trim).filter(|part| !part.is_empty());
    let ranges = parts.map(str::parse).collect::<Result<Vec<Range>, NotARange>>();
    let ranges = ranges.map_err(|error| argument(error.to_string()))?;
    let known = LANEMARK_OWNS_DEVICE | LANEMARK_ENABLE;
    if flags & !known != 0 {
        return Err(argument(format!("flags {flags:#x}: use LANEMARK_OWNS_DEVICE and LANEMARK_ENABLE")));
    }
    let consent = Consent { owns_device: flags & LANEMARK_OWNS_DEVICE != 0, enable: flags & LANEMARK_ENABLE != 0 };
    let attached = Box::into_raw(Box::new(lanemark_card(Card::attach_in(system, address, &ranges, consent)?)));
    // SAFETY: it was written to above.
    unsafe { card.write(attached) };
    Ok(())
}

/// Writes null, which programs may give back, so that after a failure there is nothing else in it.
///
/// # Safety
/// `handle` is null or can be written.
unsafe fn emptied<T>(handle: *mut *mut T, what: &str) -> Result<(), Failure> {
    if handle.is_null() {
        return Err(null(what));
    }
    // SAFETY: handed on to the caller.
    unsafe { handle.write(std::ptr::null_mut()) };
    Ok(())
}

/// # Safety
/// `text` is null or ends in zero, and stays as long as it is used.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: handed on to the caller.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| argument(format!("{what} is not UTF-8")))
}

/// # Safety
/// `mapping` is null or comes from [`lanemark_map`], is not unmapped, and is used by nobody else meanwhile.
unsafe fn mapped<'a>(mapping: *mut lanemark_mapping) -> Result<&'a mut BarMapping, Failure> {
    // SAFETY: handed on to the caller.
    unsafe { mapping.as_mut() }.map(|mapping| &mut mapping.0).ok_or(null("mapping"))
}

/// # Safety
/// `start` is null or holds `count` values that nobody changes meanwhile.
unsafe fn slice_of<'a, T>(start: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    match count {
        0 => Ok(&[]),
        _ if start.is_null() => Err(null(what)),
        // SAFETY: handed on to the caller.
        _ => Ok(unsafe { slice::from_raw_parts(start, count) }),
    }
}

fn width_of(bytes: u32) -> Result<Width, Failure> {
    let width = Width::ALL.into_iter().find(|width| width.bytes() == u64::from(bytes) && bytes <= 8);
    width.ok_or_else(|| argument(format!("a width of {bytes} B: use 1, 2, 4 or 8")))
}

fn null(what: &str) -> Failure {
    failed(lanemark_status::BadArgument, format!("{what} is null"))
}

fn argument(what: impl Into<String>) -> Failure {
    failed(lanemark_status::BadArgument, what.into())
}

impl From<CardError> for Failure {
    fn from(error: CardError) -> Failure {
        failed(lanemark_status::from(&error), error.to_string())
    }
}
