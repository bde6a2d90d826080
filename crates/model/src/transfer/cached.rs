//! Addresses that the last-level cache holds.

use lanemark_machine::{Partner, Pattern, Transfer, Writer};
use lanemark_platform::{Memory, Platform};
use std::ops::Range;

/// Bus addresses of lines in the last-level cache at the start of transfers; reads do not change them.
///
/// The window was written before, from start to end. The last lines of it are cached, as many as fit: a line is
/// evicted by a later write to the same set. Lines written by a device are restricted to the DDIO ways.
pub(super) fn cached(platform: &Platform, transfer: &Transfer, base: u64, written_by: Writer) -> Range<u64> {
    let lines = platform.memory.as_ref().map_or(0, |memory| match written_by {
        Writer::Nobody => 0,
        Writer::Core => memory.cached_lines(),
        Writer::Device => memory.device_lines(),
    });
    if transfer.partner != Partner::Host || lines == 0 {
        return 0..0;
    }
    let Range { start, end } = touched(transfer, base, u64::MAX);
    let end = end.next_multiple_of(Memory::LINE_BYTES);
    start.max(end.saturating_sub(lines * Memory::LINE_BYTES))..end
}

/// Addresses of the first transfers.
pub(super) fn touched(transfer: &Transfer, base: u64, transfers: u64) -> Range<u64> {
    let places = transfer.window.places(transfer.bytes);
    let met = match transfer.window.pattern {
        Pattern::Sequential | Pattern::Strided(_) => transfers.min(places),
        Pattern::Random | Pattern::RandomStrided(_) => places,
    };
    let start = base.saturating_add(transfer.window.offset);
    start..start.saturating_add(met.saturating_mul(transfer.window.step(transfer.bytes)))
}
