//! Plans: the work of one measurement, as data.

use crate::{
    Access, BufferHandoff, Channel, Clock, Compute, DmaCall, Fence, HostMemory, KernelCall, Launch, LineSource,
    MapUnmap, MovedByRuntime, OnChannels, Placement, Relay, Transfer, Verb, Width, WriteRead,
};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// The work between two timestamps, and how often it is repeated.
///
/// One sample is: timestamp, `passes` iterations of the body of every lane, timestamp. After the second timestamp,
/// the machine waits until all stored data has been accepted at its destination. A sample therefore has an *issue*
/// time and a *delivered* time.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Work of each core. Lane 0 takes the timestamps.
    pub lanes: Vec<Lane>,
    /// Whether threads are pinned to their cores.
    pub placement: Placement,
    /// Untimed operations of lane 0 before the warm-up of each sample, for example to make the destination cold.
    pub before: Vec<Op>,
    /// Iterations of the body within one sample; at least 1.
    pub passes: u64,
    /// Untimed iterations before the first timestamp of each sample.
    pub warmup_passes: u64,
    /// Initial state of the host memory that DMA transfers access, restored at the start of each sample.
    pub memory: HostMemory,
    /// Maximum duration of one sample, on the machine's clock.
    pub timeout: Ticks,
}

impl Plan {
    /// A plan with one lane on core 0, `passes` iterations of `body` per sample, and a timeout of one second.
    #[must_use]
    pub fn on_one_core(body: Vec<Op>, passes: u64) -> Plan {
        Plan {
            lanes: vec![Lane { core: 0, body }],
            placement: Placement::Pinned,
            before: Vec::new(),
            passes,
            warmup_passes: 0,
            memory: HostMemory::default(),
            timeout: Ticks::whole_ns(1_000_000_000),
        }
    }

    /// Bytes moved by all lanes in one sample.
    #[must_use]
    pub fn bytes_per_sample(&self) -> u64 {
        let a_pass = self.lanes.iter().flat_map(|lane| &lane.body).map(Op::bytes).fold(0, u64::saturating_add);
        a_pass.saturating_mul(self.passes)
    }
}

/// Work of one core.
#[derive(Clone, PartialEq, Debug)]
pub struct Lane {
    /// Core, counted from 0.
    pub core: u32,
    /// Operations of one iteration.
    pub body: Vec<Op>,
}

/// One operation of a lane.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Op {
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
    /// Reads a clock and discards the time.
    Clock(Clock),
    /// Makes a system call that does almost nothing.
    Kernel(KernelCall),
    /// Maps memory for DMA and unmaps it.
    MapUnmap(MapUnmap),
    /// Launches empty kernels through a runtime, and waits.
    Launch(Launch),
    /// Copies between host and device through a runtime.
    MovedByRuntime(MovedByRuntime),
    /// Launches compute kernels through a runtime, and waits.
    Compute(Compute),
    /// Hands a buffer of ordinary memory over to a device, or takes one over.
    BufferHandoff(BufferHandoff),
    /// Loads from a line of ordinary memory held elsewhere, and waits for the data.
    LoadFrom(LineSource),
    /// Sends a message to the lane that receives on this channel.
    Send(Channel),
    /// Waits for the message with the same position in the sender's body and the same iteration.
    Receive(Channel),
    /// DMA transfers by a device.
    Transfer(Transfer),
    /// DMA writes by a device, each followed by a DMA read.
    WriteRead(WriteRead),
    /// DMA transfers by a device, distributed over several channels.
    OnChannels(OnChannels),
    /// Data read by one card and passed from card to card.
    Relay(Relay),
    /// DMA transfers requested through a driver, each followed by a wait for its completion.
    Dma(DmaCall),
}

impl Op {
    /// Bytes moved by this operation.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Op::Stream(stream) => stream.bytes(),
            Op::Driver(call) => call.span.len,
            Op::Copy(copy) => copy.zone.len,
            Op::Transfer(transfer) => transfer.bytes_of_pass(),
            Op::WriteRead(pairs) => pairs.bytes_of_pass(),
            Op::OnChannels(dealt) => dealt.transfer.bytes_of_pass(),
            Op::Relay(relay) => relay.bytes_of_pass(),
            Op::Dma(call) => call.transfer.bytes_of_pass(),
            Op::BufferHandoff(handover) => handover.bytes,
            Op::MovedByRuntime(moved) => moved.bytes,
            Op::Compute(compute) => compute.work.bytes(),
            Op::LoadFrom(_) => LineSource::LOAD_BYTES,
            Op::Fence(_)
            | Op::Map(_)
            | Op::FlushLines(_)
            | Op::Pause(_)
            | Op::Clock(_)
            | Op::Kernel(_)
            | Op::Launch(_)
            | Op::MapUnmap(_)
            | Op::Send(_)
            | Op::Receive(_) => 0,
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

    /// The reason why `access` cannot cover `span` in this order; `None` if it can.
    #[must_use]
    pub const fn nonsense(self, access: Access, span: &Span) -> Option<&'static str> {
        let Order::Interleaved { lines } = self else { return None };
        match access.width() {
            None | Some(Width::B64) => return Some("the access must be narrower than a line"),
            Some(_) => {}
        }
        if lines == 0 || !span.len.is_multiple_of(lines.saturating_mul(LINE_BYTES)) {
            return Some("the span must be whole blocks of at least one 64 B line");
        }
        if span.at.offset.is_multiple_of(LINE_BYTES) { None } else { Some("the span must start with a 64 B line") }
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
        assert_eq!(order.nonsense(eight, &span(64, 384)), None);
        for (access, span) in [
            (eight, span(64, 256)),
            (eight, span(64, 385)),
            (eight, span(32, 384)),
            (Access::NonTemporal(Width::B64), span(64, 384)),
            (Access::Memcpy, span(64, 384)),
        ] {
            assert!(order.nonsense(access, &span).is_some(), "{access} {span:?}");
        }
        assert!(Order::Interleaved { lines: 0 }.nonsense(eight, &span(0, 0)).is_some());
        assert!(Order::Interleaved { lines: u64::MAX }.nonsense(eight, &span(0, 64)).is_some());
        assert_eq!(Order::Ascending.nonsense(Access::Memcpy, &span(3, 5)), None);
    }
}
