//! Work of a plan, by who does it.

use crate::{
    BufferHandoff, Compute, DmaCall, Exchange, Handshake, HostMemory, Launch, MapUnmap, OnChannels, Operation,
    Placement, QueueRequest, QueueWork, Relay, RuntimeCopy, SmallCopies, Step, Transfer, WriteRead,
};

/// The work of one iteration, by who does it.
///
/// Each variant holds only what can be combined: the steps of cores have no DMA by an engine between them, the initial
/// state of DMA memory is that of [`EngineWork`], and an unpinned thread is one that calls a runtime.
///
/// ```
/// use lanemark_machine::{Fence, Step, Work};
/// let work = Work::from(vec![Step::Fence(Fence::Mfence)]);
/// assert!(matches!(work, Work::Cores(_)));
/// assert_eq!(work.bytes(), 0);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// Instructions and driver calls of cores.
    Cores(CoreWork),
    /// Messages between two cores.
    Exchange(Exchange),
    /// DMA that devices make without a driver.
    Engines(EngineWork),
    /// Data read by one card and passed from card to card.
    Relay(Relay),
    /// A request to the queue of a runtime.
    Queue(QueueWork),
}

/// Work of one or more cores.
#[derive(Clone, PartialEq, Debug)]
pub struct CoreWork {
    /// Work of each core. Lane 0 takes the timestamps.
    pub lanes: Vec<Lane>,
    /// Untimed steps of lane 0 before the warm-up of each sample, for example to make the destination cold.
    pub before: Vec<Step>,
}

impl CoreWork {
    /// A task of core 0, after untimed steps before the warm-up of each sample.
    #[must_use]
    pub fn after(before: Vec<Step>, task: impl Into<Task>) -> CoreWork {
        CoreWork { lanes: vec![Lane { core: 0, task: task.into() }], before }
    }
}

/// Work of one core.
#[derive(Clone, PartialEq, Debug)]
pub struct Lane {
    /// Core, counted from 0.
    pub core: u32,
    /// Task of one iteration.
    pub task: Task,
}

/// Task of a core in one iteration.
#[derive(Clone, PartialEq, Debug)]
pub enum Task {
    /// Steps in sequence.
    Steps(Vec<Step>),
    /// An operation that is timed alone.
    Operation(Operation),
    /// DMA transfers requested through a driver, each followed by a wait for its completion.
    DmaCall(DmaCall),
}

impl Task {
    /// Bytes moved in one iteration.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Task::Steps(steps) => steps.iter().map(Step::bytes).fold(0, u64::saturating_add),
            Task::Operation(operation) => operation.bytes(),
            Task::DmaCall(call) => call.transfer.bytes_per_pass(),
        }
    }

    /// The steps; empty for another task.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        match self {
            Task::Steps(steps) => steps,
            Task::Operation(_) | Task::DmaCall(_) => &[],
        }
    }
}

/// DMA that devices make without a driver.
#[derive(Clone, PartialEq, Debug)]
pub struct EngineWork {
    /// Concurrent jobs, each of another card. The card of the first job takes the times.
    pub jobs: Vec<EngineJob>,
    /// Initial state of the host memory that the jobs access, restored at the start of each sample.
    pub memory: HostMemory,
}

/// A job of a device's DMA engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineJob {
    /// Transfers on one channel.
    Transfer(Transfer),
    /// Writes, each followed by a read.
    WriteRead(WriteRead),
    /// Transfers distributed over several channels.
    OnChannels(OnChannels),
}

impl EngineJob {
    /// The transfers; of writes that are followed by reads, the writes.
    #[must_use]
    pub const fn transfer(&self) -> &Transfer {
        match self {
            EngineJob::Transfer(transfer) => transfer,
            EngineJob::WriteRead(pairs) => &pairs.write,
            EngineJob::OnChannels(dealt) => &dealt.transfer,
        }
    }

    /// The transfers of each direction.
    pub fn directions(&self) -> impl Iterator<Item = Transfer> + use<> {
        let read = if let EngineJob::WriteRead(pairs) = self { Some(pairs.read()) } else { None };
        std::iter::once(*self.transfer()).chain(read)
    }

    /// Bytes moved in one iteration.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.directions().map(|transfer| transfer.bytes_per_pass()).fold(0, u64::saturating_add)
    }
}

impl Work {
    /// Bytes moved in one iteration.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Work::Cores(cores) => cores.lanes.iter().map(|lane| lane.task.bytes()).fold(0, u64::saturating_add),
            Work::Exchange(_) => 0,
            Work::Engines(engines) => engines.jobs.iter().map(EngineJob::bytes).fold(0, u64::saturating_add),
            Work::Relay(relay) => relay.bytes_per_pass(),
            Work::Queue(queue) => queue.request.bytes(),
        }
    }

    /// Cores that take part, in the order of the lanes; empty if devices work alone.
    #[must_use]
    pub fn cores(&self) -> Vec<u32> {
        match self {
            Work::Cores(cores) => cores.lanes.iter().map(|lane| lane.core).collect(),
            Work::Exchange(exchange) => exchange.cores.to_vec(),
            Work::Engines(_) | Work::Relay(_) => Vec::new(),
            Work::Queue(queue) => vec![queue.core],
        }
    }

    /// Placement of its threads: pinned, unless it says otherwise.
    #[must_use]
    pub const fn placement(&self) -> Placement {
        match self {
            Work::Queue(queue) => queue.placement,
            Work::Cores(_) | Work::Exchange(_) | Work::Engines(_) | Work::Relay(_) => Placement::Pinned,
        }
    }

    /// Initial state of the host memory that devices access.
    #[must_use]
    pub fn memory(&self) -> HostMemory {
        match self {
            Work::Engines(engines) => engines.memory,
            Work::Cores(_) | Work::Exchange(_) | Work::Relay(_) | Work::Queue(_) => HostMemory::default(),
        }
    }

    /// Untimed steps before each sample; empty without any.
    #[must_use]
    pub fn before(&self) -> &[Step] {
        match self {
            Work::Cores(cores) => &cores.before,
            Work::Exchange(_) | Work::Engines(_) | Work::Relay(_) | Work::Queue(_) => &[],
        }
    }

    /// Lanes of cores; empty for other work.
    #[must_use]
    pub fn lanes(&self) -> &[Lane] {
        match self {
            Work::Cores(cores) => &cores.lanes,
            Work::Exchange(_) | Work::Engines(_) | Work::Relay(_) | Work::Queue(_) => &[],
        }
    }

    /// Jobs of devices; empty for other work.
    #[must_use]
    pub fn jobs(&self) -> &[EngineJob] {
        match self {
            Work::Engines(engines) => &engines.jobs,
            Work::Cores(_) | Work::Exchange(_) | Work::Relay(_) | Work::Queue(_) => &[],
        }
    }

    /// Steps of all lanes, without those before a sample.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.lanes().iter().flat_map(|lane| lane.task.steps())
    }

    /// Driver calls of all lanes.
    pub fn dma_calls(&self) -> impl Iterator<Item = &DmaCall> {
        self.lanes().iter().filter_map(|lane| match &lane.task {
            Task::DmaCall(call) => Some(call),
            Task::Steps(_) | Task::Operation(_) => None,
        })
    }

    /// The request to a runtime's queue; `None` for other work.
    #[must_use]
    pub const fn request(&self) -> Option<&QueueRequest> {
        match self {
            Work::Queue(queue) => Some(&queue.request),
            Work::Cores(_) | Work::Exchange(_) | Work::Engines(_) | Work::Relay(_) => None,
        }
    }
}

/// The lanes, with no steps before a sample.
impl From<Vec<Lane>> for Work {
    fn from(lanes: Vec<Lane>) -> Work {
        Work::Cores(CoreWork { lanes, before: Vec::new() })
    }
}

/// The task on core 0.
impl From<Task> for Work {
    fn from(task: Task) -> Work {
        Work::from(vec![Lane { core: 0, task }])
    }
}

/// The jobs, with default host memory.
impl From<Vec<EngineJob>> for Work {
    fn from(jobs: Vec<EngineJob>) -> Work {
        Work::Engines(EngineWork { jobs, memory: HostMemory::default() })
    }
}

/// The request of a thread pinned to core 0.
impl From<QueueRequest> for Work {
    fn from(request: QueueRequest) -> Work {
        Work::Queue(QueueWork { core: 0, placement: Placement::Pinned, request })
    }
}

/// Conversions to the type on the right, wrapped by the function at the end.
macro_rules! conversions {
    ($($from:ty => $into:ty, $by:expr;)*) => {$(
        impl From<$from> for $into {
            fn from(value: $from) -> $into {
                <$into>::from($by(value))
            }
        }
    )*};
}

conversions! {
    Vec<Step> => Task, Task::Steps;
    Step => Task, |step| vec![step];
    Operation => Task, Task::Operation;
    MapUnmap => Task, Operation::MapUnmap;
    BufferHandoff => Task, Operation::BufferHandoff;
    Handshake => Task, Operation::Handshake;
    DmaCall => Task, Task::DmaCall;
    Vec<Step> => Work, Task::from;
    Step => Work, Task::from;
    Operation => Work, Task::from;
    MapUnmap => Work, Task::from;
    BufferHandoff => Work, Task::from;
    Handshake => Work, Task::from;
    DmaCall => Work, Task::from;
    CoreWork => Work, Work::Cores;
    EngineWork => Work, Work::Engines;
    QueueWork => Work, Work::Queue;
    Exchange => Work, Work::Exchange;
    Transfer => Work, EngineJob::Transfer;
    WriteRead => Work, EngineJob::WriteRead;
    OnChannels => Work, EngineJob::OnChannels;
    EngineJob => Work, |job| vec![job];
    Relay => Work, Work::Relay;
    Launch => Work, QueueRequest::Launch;
    RuntimeCopy => Work, QueueRequest::Copy;
    SmallCopies => Work, QueueRequest::SmallCopies;
    Compute => Work, QueueRequest::Compute;
}
