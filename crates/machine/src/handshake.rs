//! Requests of a core to a device by stores, with a polled status register and a result that is loaded.

use crate::{Access, Span};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// A request to a device without DMA: the core pushes data, polls a status register, and fetches the result.
///
/// ```text
///  core:   stores --------> loads of the status ... -> loads of the result
///  device:        [busy] --> status
/// ```
///
/// The device starts when all data has arrived, works for `busy`, and then counts the request in its status register.
/// The result takes the place of the data.
///
/// ```
/// use lanemark_machine::{Access, Handshake, Plan, Span, Width};
/// use lanemark_units::{BarOffset, MemoryType, Ticks};
/// let status = BarOffset { bar: 0, offset: 8 };
/// let data = Span { at: BarOffset { bar: 0, offset: 64 }, len: 8, memory_type: MemoryType::Uc };
/// let request = Handshake { data, access: Access::Plain(Width::B8), status, busy: Ticks::ZERO };
/// assert_eq!(Plan::new(request, 1).bytes_per_sample(), 16);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handshake {
    /// Location of the data and of the result. `SFENCE` follows stores to WC memory.
    pub data: Span,
    /// Instruction of the stores and of the loads.
    pub access: Access,
    /// Status register: 8 B, loaded through a UC mapping.
    pub status: BarOffset,
    /// Time from the arrival of the last byte until the status register counts the request.
    pub busy: Ticks,
}

impl Handshake {
    /// Bytes of the status register.
    pub const STATUS_BYTES: u64 = 8;

    /// Checks the rules that hold on every machine.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check(&self) -> Result<(), &'static str> {
        let Handshake { data, access, status, .. } = self;
        if !matches!(data.memory_type, MemoryType::Uc | MemoryType::Wc) {
            return Err("data and result pass through a mapping that is UC or WC: a cache would keep the old result");
        }
        let Some(width) = access.width().filter(|_| matches!(access, Access::Plain(_) | Access::NonTemporal(_))) else {
            return Err("the instruction must load and store, with a fixed width");
        };
        if data.len == 0 || !data.len.is_multiple_of(width.bytes()) || !data.at.offset.is_multiple_of(width.bytes()) {
            return Err("the data must be one or more whole accesses, aligned to their width");
        }
        if !status.offset.is_multiple_of(Handshake::STATUS_BYTES) {
            return Err("the status register must be aligned to its 8 B");
        }
        let ends_before = |one: u64, len: u64, other: u64| one.checked_add(len).is_some_and(|end| end <= other);
        let is_apart = status.bar != data.at.bar
            || ends_before(status.offset, Handshake::STATUS_BYTES, data.at.offset)
            || ends_before(data.at.offset, data.len, status.offset);
        if is_apart { Ok(()) } else { Err("the status register must be outside the data") }
    }
}
