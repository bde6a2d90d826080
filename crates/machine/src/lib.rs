//! The promise: plans in, samples out.
//!
//! A question is asked as a [`Plan`], which is data: lanes of loads, stores, copies, fences, driver calls,
//! transfers by a device, memory lent to one or shared with it, and messages to other lanes. Whoever can run one is a [`Machine`]: the simulator interprets it, a real way in runs it from
//! a closed set of loops. Time belongs to the machine; the asker never reads a clock.
//!
//! Start with [`Machine`], then [`Plan`], then [`Samples`].

#![forbid(unsafe_code)]

mod buffer_handoff;
mod bus_error;
mod cause;
mod channel;
mod compute;
mod corrected;
mod dma_call;
mod error;
mod facts;
mod host_memory;
mod injected_fault;
mod launch;
mod link_use;
mod map_unmap;
mod moved_by_runtime;
mod on_channels;
mod placement;
mod plan;
mod relay;
mod samples;
mod steady;
mod trace;
mod transfer;

pub use buffer_handoff::BufferHandoff;
pub use bus_error::{Arrived, BusError};
pub use cause::Cause;
pub use channel::Channel;
pub use compute::Compute;
pub use corrected::Corrected;
pub use dma_call::DmaCall;
pub use error::{MachineError, Unsupported};
pub use facts::{CacheFacts, DeviceKind, DmaFacts, Facts, Region, RegionKind, RuntimeFacts, TimeBase};
pub use host_memory::{HostMemory, Writer};
pub use injected_fault::InjectedFault;
pub use lanemark_method::{
    Access, Allocation, Arguments, Clock, Completion, Descriptors, Discipline, Fence, Flow, Flush, HostWait,
    Invalidation, KernelCall, LineSource, Means, Peer, Share, Socket, Strategy, Table, UnknownName, Verb, Width,
};
pub use launch::Launch;
pub use link_use::LinkUse;
pub use map_unmap::MapUnmap;
pub use moved_by_runtime::MovedByRuntime;
pub use on_channels::OnChannels;
pub use placement::Placement;
pub use plan::{BlockCopy, DriverCall, Lane, Op, Order, Plan, Span, Stream};
pub use relay::Relay;
pub use samples::{BytesMoved, Concurrent, Confirmed, Delivery, Disturbance, Dropped, Sample, Samples, Traffic, Wait};
pub use steady::{Steady, Unsteady};
pub use trace::{Direction, Dllp, DllpKind, Frame, StallSite, Trace, TraceGap, Waited};
pub use transfer::{Partner, Pattern, Transfer, Window, WriteRead};

/// Something a question can be asked of: a simulated card, a real one, the memory of this machine.
///
/// # For implementers
/// `run` must fill the samples from start to end or return an error; a wait must end at the plan's
/// timeout; nothing may be allocated, printed or dispatched dynamically between the two timestamps of
/// one sample.
pub trait Machine {
    /// What was found when the machine was opened; never changes afterwards.
    fn facts(&self) -> &Facts;

    /// Whether [`run`](Machine::run) would try this plan, without touching anything.
    ///
    /// # Errors
    /// [`Unsupported`], with the reason, if it would not; a span outside every region too, for which `run`
    /// gives [`MachineError::OutOfRange`].
    fn supports(&self, plan: &Plan) -> Result<(), Unsupported>;

    /// Runs the plan once per wanted sample and fills `samples`.
    ///
    /// A machine whose time is real drops a sample that something else than the plan had a part in and counts it in
    /// [`Samples::dropped`]: the core was taken away, or two clocks disagree on how long it took. It replaces them while
    /// [`Samples::wants_more`] and then returns what it has, so that `taken` may hold fewer than were wanted, or none.
    /// Where time is virtual nothing is dropped.
    ///
    /// # Errors
    /// [`MachineError::Unsupported`] before anything is sent; [`MachineError::Timeout`] when the plan's
    /// time is over; others name what broke and where.
    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError>;

    /// What it was told to go wrong, and whether that has happened until now. Real machines are told nothing of the kind.
    fn injected_faults(&self) -> Vec<InjectedFault> {
        Vec::new()
    }
}
