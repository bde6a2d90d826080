//! Steps of a core: loads, stores, fences, and driver calls, in sequence.

use crate::{Access, Fence, Verb, Width};
use lanemark_units::{BarOffset, MemoryType, Ticks};
use std::fmt;

/// One step of a core's instruction sequence.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Loads or stores over a span, in sequence.
    Stream(Stream),
    /// Fence.
    Fence(Fence),
    /// Driver calls that copy to or from the device.
    Driver(DriverCall),
    /// Maps the span into the process and unmaps it (`mmap`, `munmap`).
    Map(Span),
    /// Flushes the cache lines of the span (`CLFLUSH`), without writing new data.
    FlushLines(Span),
    /// Pauses for this time.
    Pause(Ticks),
    /// Copies ordinary memory to a span, block by block.
    Copy(BlockCopy),
}

impl Step {
    /// Bytes moved by this step.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        match self {
            Step::Stream(stream) => stream.bytes(),
            Step::Driver(call) => call.span.len,
            Step::Copy(copy) => copy.zone.len,
            Step::Fence(_) | Step::Map(_) | Step::FlushLines(_) | Step::Pause(_) => 0,
        }
    }

    /// Device memory that this step accesses; `None` if it accesses none.
    #[must_use]
    pub const fn span(&self) -> Option<&Span> {
        match self {
            Step::Stream(stream) => Some(&stream.span),
            Step::Driver(call) => Some(&call.span),
            Step::Map(span) | Step::FlushLines(span) => Some(span),
            Step::Copy(copy) => Some(&copy.zone),
            Step::Fence(_) | Step::Pause(_) => None,
        }
    }

    /// Whether this step stores to the device.
    #[must_use]
    pub const fn stores(&self) -> bool {
        match self {
            Step::Stream(Stream { verb, .. }) | Step::Driver(DriverCall { verb, .. }) => matches!(verb, Verb::Store),
            Step::Copy(_) => true,
            Step::Map(_) | Step::FlushLines(_) | Step::Fence(_) | Step::Pause(_) => false,
        }
    }
}

/// Loads or stores over a span.
#[derive(Clone, PartialEq, Debug)]
pub struct Stream {
    /// Load or store.
    pub verb: Verb,
    /// Instruction.
    pub access: Access,
    /// Memory range.
    pub span: Span,
    /// Order of the accesses.
    pub order: Order,
    /// Fence after every access, as used to time single reads.
    pub fence_each: Option<Fence>,
}

impl Stream {
    /// Ascending accesses over `span`, without fences.
    #[must_use]
    pub const fn over(verb: Verb, access: Access, span: Span) -> Stream {
        Stream { verb, access, span, order: Order::Ascending, fence_each: None }
    }

    /// Bytes moved, counting repeated accesses.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        match self.order {
            Order::Ascending | Order::Interleaved { .. } => self.span.len,
            Order::SameAddress { times } => self.span.len.saturating_mul(times),
        }
    }
}

/// Order in which the accesses of a stream touch its span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// From the first byte to the last. A remainder shorter than the width is moved with narrower accesses.
    Ascending,
    /// One access covers the whole span and is repeated at the same address.
    SameAddress {
        /// Number of accesses.
        times: u64,
    },
    /// In blocks of `lines` 64 B lines: the first access of each line of a block, then the second of each, and so on.
    ///
    /// `lines` lines are therefore partially written at the same time. The span is line-aligned and a whole number of
    /// blocks; the access is narrower than a line.
    ///
    /// ```
    /// use lanemark_machine::{Order, Width};
    /// let two_lines = Order::Interleaved { lines: 2 };
    /// let places: Vec<u64> = (0..6).map(|nth| two_lines.place(nth, Width::B32)).collect();
    /// assert_eq!(places, [0, 64, 32, 96, 128, 192]);
    /// ```
    Interleaved {
        /// Lines of a block; at least 1.
        lines: u64,
    },
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Ascending => f.write_str("in ascending order"),
            Order::SameAddress { times } => write!(f, "{times} times at one address"),
            Order::Interleaved { lines } => write!(f, "interleaved over {lines} lines"),
        }
    }
}

impl Order {
    /// Offset in the span of access number `nth` of this width, in bytes.
    #[must_use]
    pub const fn place(self, nth: u64, width: Width) -> u64 {
        let width = width.bytes();
        match self {
            Order::Ascending => nth * width,
            Order::SameAddress { .. } => 0,
            Order::Interleaved { lines } => {
                let a_line = LINE_BYTES / width;
                let (block, within) = (nth / (lines * a_line), nth % (lines * a_line));
                let (place, line) = (within / lines, within % lines);
                (block * lines + line) * LINE_BYTES + place * width
            }
        }
    }

    /// Checks whether `access` can cover `span` in this order.
    ///
    /// # Errors
    /// The rule that is broken.
    pub const fn check(self, access: Access, span: &Span) -> Result<(), &'static str> {
        let lines = match (self, access.width()) {
            (Order::SameAddress { .. }, Some(width)) if width.bytes() != span.len => {
                return Err("one access at one address must cover the whole span");
            }
            (Order::Ascending | Order::SameAddress { .. }, _) => return Ok(()),
            (Order::Interleaved { lines }, _) => lines,
        };
        match access.width() {
            None | Some(Width::B64) => return Err("the access must be narrower than a line"),
            Some(_) => {}
        }
        if lines == 0 || !span.len.is_multiple_of(lines.saturating_mul(LINE_BYTES)) {
            return Err("the span must be whole blocks of at least one 64 B line");
        }
        if span.at.offset.is_multiple_of(LINE_BYTES) { Ok(()) } else { Err("the span must start with a 64 B line") }
    }
}

/// Bytes of a cache line and of a write-combining buffer.
const LINE_BYTES: u64 = 64;

/// A range of device memory (or of host memory instead) under one mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Start.
    pub at: BarOffset,
    /// Length in bytes.
    pub len: u64,
    /// Effective memory type of the mapping.
    pub memory_type: MemoryType,
}

impl Span {
    /// Offset of the first byte after the span.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.at.offset.saturating_add(self.len)
    }
}

/// Calls into a device driver that copies between user memory and the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverCall {
    /// Read from the device or write to it.
    pub verb: Verb,
    /// The whole range; `memory_type` is that of the kernel's mapping.
    pub span: Span,
    /// Bytes moved by one call; the span takes as many calls as needed.
    pub call_bytes: u64,
    /// Width of the driver's loads and stores.
    pub width: Width,
}

/// Copies of one block of ordinary memory to consecutive places of a zone, until the zone is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockCopy {
    /// Instruction that stores the bytes.
    pub access: Access,
    /// Destination: a whole number of blocks.
    pub zone: Span,
    /// Bytes of one copy. The source is one block, which previous copies have left in a cache.
    pub block_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u64, len: u64) -> Span {
        Span { at: BarOffset { bar: 0, offset }, len, memory_type: MemoryType::Wb }
    }

    #[test]
    fn interleaved_accesses_cover_the_span_exactly_once() {
        for (lines, width) in [(1, Width::B8), (3, Width::B16), (40, Width::B4), (7, Width::B32)] {
            let order = Order::Interleaved { lines };
            let count = 2 * lines * 64 / width.bytes();
            let mut places: Vec<u64> = (0..count).map(|nth| order.place(nth, width)).collect();
            assert!(lines == 1 || places[1] == 64, "the second access goes to the second line");
            places.sort_unstable();
            assert_eq!(places, (0..count).map(|nth| nth * width.bytes()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn interleaving_needs_aligned_whole_blocks_and_narrow_accesses() {
        let order = Order::Interleaved { lines: 3 };
        let eight = Access::NonTemporal(Width::B8);
        assert_eq!(order.check(eight, &span(64, 384)), Ok(()));
        for (access, span) in [
            (eight, span(64, 256)),
            (eight, span(64, 385)),
            (eight, span(32, 384)),
            (Access::NonTemporal(Width::B64), span(64, 384)),
            (Access::Memcpy, span(64, 384)),
        ] {
            assert!(order.check(access, &span).is_err(), "{access} {span:?}");
        }
        assert!(Order::Interleaved { lines: 0 }.check(eight, &span(0, 0)).is_err());
        assert!(Order::Interleaved { lines: u64::MAX }.check(eight, &span(0, 64)).is_err());
        assert_eq!(Order::Ascending.check(Access::Memcpy, &span(3, 5)), Ok(()));
    }
}
