//! Transfers and requests with the same sums and parameters, which are computed once.

use super::way::Way;
use lanemark_machine::{Partner, Transfer};
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

/// What transfers with the same sum have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Alike {
    /// Requests and completions are split at page boundaries, or at smaller ones.
    offset_in_page: u64,
    is_cached: bool,
}

/// What requests with the same parameters have in common, all from or to host memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AlikePiece {
    bytes: u32,
    offset_in_page: u64,
    is_cached: bool,
}

/// Bytes of a page.
const PAGE: u64 = 4096;

impl Way<'_> {
    /// Everything that distinguishes the sum of transfer number `nth` from those of others; `None` if its address
    /// itself may matter.
    pub(super) fn alike(&self, nth: u64) -> Option<Alike> {
        let is_of_host = self.transfer.partner == Partner::Host;
        // Chunks of the engine are parts of a page, and its segments begin with the transfer.
        if !is_of_host || self.partial_line() > Ticks::ZERO {
            return None;
        }
        let Transfer { bytes, window, .. } = self.transfer;
        let start = self.base.checked_add(window.place(nth, *bytes))?;
        let end = start.checked_add(*bytes)?;
        // The engine reads a descriptor at each boundary behind the start.
        let block = u64::from(self.dma.descriptor_bytes.value);
        let has_boundary = (end - 1) / block > start / block;
        if has_boundary && !PAGE.is_multiple_of(block) {
            return None;
        }
        let is_cached = self.cached.contains(&start) && end <= self.cached.end;
        if !is_cached && start < self.cached.end && self.cached.start < end {
            return None;
        }
        Some(Alike { offset_in_page: start % PAGE, is_cached })
    }

    /// Everything that distinguishes the parameters of this request from those of others; `None` if its address itself
    /// may matter.
    pub(super) fn alike_piece(&self, chunk: Chunk) -> Option<AlikePiece> {
        let is_of_host = self.transfer.partner == Partner::Host;
        let is_alike = is_of_host && !self.pauses_on_link();
        is_alike.then(|| AlikePiece {
            bytes: chunk.bytes,
            offset_in_page: chunk.address % PAGE,
            is_cached: self.is_cached(chunk),
        })
    }
}
