//! The `Machine` trait: runs a plan and returns samples.
//!
//! A measurement is described by a [`Plan`], which is data: per core, the loads, stores, copies, fences and driver
//! calls; DMA transfers; DMA mappings; and messages between cores. A [`Machine`] runs it: the simulator interprets
//! the plan, a backend for real hardware runs it with a fixed set of loops. The machine takes the timestamps; callers
//! never read a clock.
//!
//! Start with [`Machine`], then [`Plan`], then [`Samples`].

#![forbid(unsafe_code)]

mod buffer_handoff;
mod bus_error;
mod cause;
mod check;
mod compute;
mod corrected;
mod dma_call;
mod error;
mod exchange;
mod facts;
mod handshake;
mod host_memory;
mod injected_fault;
mod launch;
mod link_use;
mod map_unmap;
mod on_channels;
mod operation;
mod placement;
mod plan;
mod queue;
mod rated;
mod relay;
mod resource_use;
mod runtime_copy;
mod samples;
mod small_copies;
mod steady;
mod step;
mod trace;
mod transfer;
mod work;

pub use buffer_handoff::BufferHandoff;
pub use bus_error::{Arrived, BusError};
pub use cause::Cause;
pub use check::Impossible;
pub use compute::Compute;
pub use corrected::Corrected;
pub use dma_call::DmaCall;
pub use error::{MachineError, Unsupported};
pub use exchange::{Exchange, Medium};
pub use facts::{CacheFacts, DeviceKind, DmaFacts, Facts, Region, RegionKind, RuntimeFacts, TimeBase};
pub use handshake::Handshake;
pub use host_memory::{HostMemory, Writer};
pub use injected_fault::InjectedFault;
pub use lanemark_method::{
    Access, Allocation, Arguments, Clock, Completion, CopyBy, Descriptors, Discipline, Fence, Flow, Flush, HostWait,
    Invalidation, KernelCall, KernelMemory, KernelPart, LaunchBy, LineSource, Means, Peer, Share, Socket, Strategy,
    Table, UnknownName, Verb, Width,
};
pub use launch::Launch;
pub use link_use::LinkUse;
pub use map_unmap::MapUnmap;
pub use on_channels::OnChannels;
pub use operation::Operation;
pub use placement::Placement;
pub use plan::Plan;
pub use queue::{QueueRequest, QueueWork};
pub use rated::Rated;
pub use relay::Relay;
pub use resource_use::ResourceUse;
pub use runtime_copy::RuntimeCopy;
pub use samples::{
    BounceBuffer, BytesMoved, Concurrent, Confirmed, Delivery, Disturbance, Dropped, PathShare, Sample, Samples,
    Traffic, Wait,
};
pub use small_copies::SmallCopies;
pub use steady::{Steady, Unsteady};
pub use step::{BlockCopy, DriverCall, Order, Span, Step, Stream};
pub use trace::{CreditsLeft, Direction, Dllp, DllpKind, Frame, StallSite, Trace, TraceGap, Waited};
pub use transfer::{Partner, Pattern, PlaceOrder, Transfer, Window, WriteRead};
pub use work::{CoreWork, EngineJob, EngineWork, Lane, Task, Work};

use lanemark_units::Ticks;

/// A simulated or real machine that runs plans: a card, a runtime's device, or the memory of this computer.
///
/// # For implementers
/// `run` fills all samples or returns an error. Every wait ends at the plan's timeout. Between the two timestamps of
/// a sample, nothing is allocated, printed or dispatched dynamically.
pub trait Machine {
    /// Properties of the machine, found when it was opened; they never change.
    fn facts(&self) -> &Facts;

    /// Checks whether [`run`](Machine::run) accepts this plan, without touching the hardware.
    ///
    /// # Errors
    /// [`Unsupported`] with the reason, also for a span outside every region, for which `run` returns
    /// [`MachineError::OutOfRange`].
    fn supports(&self, plan: &Plan) -> Result<(), Unsupported>;

    /// Runs the plan once per requested sample and fills `samples`.
    ///
    /// A machine with a real clock drops samples that were disturbed and counts them in [`Samples::dropped`]: the
    /// core was preempted, or two clocks disagree on the duration. It takes more samples while
    /// [`Samples::wants_more`], then returns. `taken` may therefore hold fewer samples than requested, or none. In
    /// virtual time no sample is dropped.
    ///
    /// # Errors
    /// [`MachineError::Unsupported`] before anything is sent; [`MachineError::Timeout`] when the plan's timeout
    /// expires. Other errors name what failed and where.
    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError>;

    /// Shortest sample of a plan in which the step of the clock and the start of the work are negligible; zero if there is no such
    /// minimum. Callers add iterations until a sample is that long.
    fn least_sample(&self, _plan: &Plan) -> Ticks {
        Ticks::ZERO
    }

    /// Longest time that a sample of a plan may take on a device that is slow by its own description; zero if the usual timeout
    /// suffices. Callers raise the timeout of the plan to it.
    fn slowest_sample(&self, _plan: &Plan) -> Ticks {
        Ticks::ZERO
    }

    /// The injected faults, and which of them have triggered. Real machines have none.
    fn injected_faults(&self) -> Vec<InjectedFault> {
        Vec::new()
    }
}
