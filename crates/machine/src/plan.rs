//! What is to be done, as data.

use crate::{
    Access, BufferHandoff, Channel, Clock, Compute, DmaCall, Fence, HostMemory, KernelCall, Launch, LineSource,
    MapUnmap, MovedByRuntime, OnChannels, Placement, Relay, Transfer, Verb, Width, WriteRead,
};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// What to run and how often between two timestamps.
///
/// One sample is: timestamp, `passes` times the body of every lane, timestamp. A machine adds, after the
/// second timestamp, the wait until everything stored was accepted where it was meant to go, so that a
/// sample has an *issue* time and a *delivered* time.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// What each core does. Lane 0 is the one whose timestamps count.
    pub lanes: Vec<Lane>,
    /// Whether they are held on their cores.
    pub placement: Placement,
    /// What lane 0 does before the first timestamp of each sample and before its warm-up; not timed. A
    /// destination is made cold here.
    pub before: Vec<Op>,
    /// Times the body runs within one sample; at least 1.
    pub passes: u64,
    /// Passes before the first timestamp of each sample, not counted.
    pub warmup_passes: u64,
    /// What transfers that devices make by themselves find of host memory; every run of passes begins with it.
    pub memory: HostMemory,
    /// The longest one sample may take, in the machine's own time.
    pub timeout: Ticks,
}

impl Plan {
    /// One lane on core 0 that runs `body` `passes` times a sample, and may take a second.
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

    /// Bytes that all lanes move in one sample.
    #[must_use]
    pub fn bytes_per_sample(&self) -> u64 {
        let a_pass = self.lanes.iter().flat_map(|lane| &lane.body).map(Op::bytes).fold(0, u64::saturating_add);
        a_pass.saturating_mul(self.passes)
    }
}

/// What one core does.
#[derive(Clone, PartialEq, Debug)]
pub struct Lane {
    /// Which core, counted from 0.
    pub core: u32,
    /// What it does in one pass.
    pub body: Vec<Op>,
}

/// One step of a lane.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Op {
    /// Loads or stores, one after the other, over a span.
    Stream(Stream),
    /// An ordering instruction.
    Fence(Fence),
    /// Calls into a driver that copies for us.
    Driver(DriverCall),
    /// Maps the span into the process anew and gives the mapping back (`mmap`, `munmap`).
    Map(Span),
    /// Drops the cached lines of the span (`CLFLUSH`), without writing anything.
    FlushLines(Span),
    /// Does nothing for a while.
    Pause(Ticks),
    /// Copies ordinary memory to a span, block by block.
    Copy(BlockCopy),
    /// Reads a clock and does nothing with the time.
    Clock(Clock),
    /// Enters the kernel, which has nothing to do.
    Kernel(KernelCall),
    /// Lends memory to a device, and takes it back.
    MapUnmap(MapUnmap),
    /// Launches kernels that do nothing through a runtime, and waits.
    Launch(Launch),
    /// Lets a runtime copy between a buffer of the program and one of its device.
    MovedByRuntime(MovedByRuntime),
    /// Lets a runtime launch kernels that compute, and waits.
    Compute(Compute),
    /// Hands a buffer of ordinary memory to a device, or takes one over.
    BufferHandoff(BufferHandoff),
    /// Loads from a line of ordinary memory that somebody else has, and waits for the bytes.
    LoadFrom(LineSource),
    /// Sends a message to the lane that receives on this channel.
    Send(Channel),
    /// Waits for the message of the same place in the sender's body and pass.
    Receive(Channel),
    /// Lets a device move bytes by itself.
    Transfer(Transfer),
    /// Lets a device write and read by itself.
    WriteRead(WriteRead),
    /// Lets a device move bytes by itself, on several of its channels.
    OnChannels(OnChannels),
    /// Lets cards hand on what the first of them reads.
    Relay(Relay),
    /// Asks a driver for a device's transfers, and waits for the end of each.
    Dma(DmaCall),
}

impl Op {
    /// Bytes this step moves.
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
    /// By which instruction.
    pub access: Access,
    /// Where.
    pub span: Span,
    /// In which order.
    pub order: Order,
    /// A fence after every single access, as those who time reads put it there.
    pub fence_each: Option<Fence>,
}

impl Stream {
    /// Ascending accesses over `span`, nothing between them.
    #[must_use]
    pub const fn over(verb: Verb, access: Access, span: Span) -> Stream {
        Stream { verb, access, span, order: Order::Ascending, fence_each: None }
    }

    /// Bytes moved: the span's, times how often it is gone over.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        match self.order {
            Order::Ascending | Order::Interleaved { .. } => self.span.len,
            Order::SameAddress { times } => self.span.len.saturating_mul(times),
        }
    }
}

/// In which order the accesses of a stream touch its span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// From the first byte to the last; a rest shorter than the width is moved with narrower accesses.
    Ascending,
    /// The whole span by one access, this often at the same address.
    SameAddress {
        /// How often.
        times: u64,
    },
    /// In blocks of this many 64 B lines: the first access of each line of a block, then the second of each,
    /// and so on. So many lines are being written at once. The span starts with a line and is whole blocks
    /// long; the access is narrower than a line.
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
    /// Where in the span access number `nth` of this width lies, in bytes.
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

    /// Why no machine can go over `span` by `access` in this order; `None` if it makes sense.
    #[must_use]
    pub const fn nonsense(self, access: Access, span: &Span) -> Option<&'static str> {
        let Order::Interleaved { lines } = self else { return None };
        match access.width() {
            None | Some(Width::B64) => return Some("only accesses narrower than a line leave lines open"),
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

/// Bytes of a device (or of the stand-in memory) under one mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Where it starts.
    pub at: BarOffset,
    /// Length in bytes.
    pub len: u64,
    /// The effective memory type of the mapping.
    pub memory_type: MemoryType,
}

impl Span {
    /// The offset just behind the last byte.
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
    /// The range that is moved in all; `memory_type` is the kernel mapping's.
    pub span: Span,
    /// Bytes moved by one call; the span is covered by as many calls as that takes.
    pub call_bytes: u64,
    /// By which instruction width the driver copies.
    pub width: Width,
}

/// Copies of one block of ordinary memory to place after place of a zone, until the zone is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockCopy {
    /// By which instruction the bytes are stored.
    pub access: Access,
    /// Where they go; whole blocks long.
    pub zone: Span,
    /// Bytes of one copy; the source is one block and stays where the copies before left it, in a cache.
    pub block_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u64, len: u64) -> Span {
        Span { at: BarOffset { bar: 0, offset }, len, memory_type: MemoryType::Wb }
    }

    #[test]
    fn interleaved_accesses_touch_every_place_of_the_span_once() {
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
    fn lines_are_interleaved_in_whole_blocks_from_a_line_on_and_by_narrow_accesses() {
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
