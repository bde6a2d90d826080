//! What is to be done, as data.

use crate::{Access, Fence, Width};
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
    /// Times the body runs within one sample; at least 1.
    pub passes: u64,
    /// Passes before the first timestamp of each sample, not counted.
    pub warmup_passes: u64,
    /// The longest one sample may take, in the machine's own time.
    pub timeout: Ticks,
}

impl Plan {
    /// One lane on core 0 that runs `body` `passes` times a sample, and may take a second.
    #[must_use]
    pub fn on_one_core(body: Vec<Op>, passes: u64) -> Plan {
        Plan { lanes: vec![Lane { core: 0, body }], passes, warmup_passes: 0, timeout: Ticks::whole_ns(1_000_000_000) }
    }

    /// Bytes that the streams and driver calls of all lanes move in one sample.
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
}

impl Op {
    /// Bytes this step moves.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Op::Stream(stream) => stream.bytes(),
            Op::Driver(call) => call.span.len,
            Op::Fence(_) | Op::Map(_) | Op::FlushLines(_) | Op::Pause(_) => 0,
        }
    }
}

/// Which way the bytes go, as the core sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verb {
    /// From the device (or memory) into a register or ordinary memory.
    Load,
    /// To the device (or memory).
    Store,
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
            Order::Ascending => self.span.len,
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
}

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
