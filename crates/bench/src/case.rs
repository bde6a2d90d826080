//! Variants of questions, and the axes along which they vary.

use crate::caller::{Caller, Cores};
use crate::computation::{Computation, Matrix};
use lanemark_compute::StreamCopy;
use lanemark_machine::{
    Access, BufferHandoff, DmaCall, Facts, Fence, Flow, HostMemory, MapUnmap, Partner, Pattern, Peer, Rated, Region,
    Relay, RuntimeCopy, SmallCopies, Span, TimeBase, Transfer, Verb, Width, Window, Writer,
};
use lanemark_method::{AccessPath, CacheState, ComputeWork, CoreAccess, Method, Reach};
use lanemark_record::Quantity;
use lanemark_units::{BarOffset, MemoryType};

/// One variant of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Method of moving bytes, or the operation if none are moved; the answer has the same.
    pub method: Method,
    /// Bytes per iteration.
    pub size: u64,
    /// Offset of the first byte from a 64 B boundary; for DMA, from a page.
    pub alignment: u64,
    /// Start of the accessed region.
    pub region: BarOffset,
    /// Bytes of the window of each DMA flow, or of a core's loads; 0 without a window.
    pub window: u64,
    /// Matrix and parameters of compute kernels; `None` without kernels.
    pub computation: Option<Computation>,
    /// The participating cores.
    pub caller: Caller,
}

/// Bytes per transfer of a flow that loads the links: a page.
const LOAD_BYTES: u64 = 4096;

impl Case {
    /// The bytes that this case accesses.
    #[must_use]
    pub fn span(&self) -> Span {
        let at = BarOffset { offset: self.region.offset + self.alignment, ..self.region };
        Span { at, len: self.size, memory_type: self.memory_type() }
    }

    /// The DMA transfers, each `count` times per iteration; empty if a core moves the bytes. Each
    /// has its own window in host memory.
    #[must_use]
    pub fn transfers(&self, count: u64) -> Vec<Transfer> {
        let outstanding = match &self.method {
            Method::Dma { outstanding, .. } => *outstanding,
            Method::DmaPages { .. } => Some(1),
            Method::DmaCall { .. } => None,
            Method::DmaUnderLoad { outstanding, .. } => Some(*outstanding),
            Method::Core(_)
            | Method::Fence { .. }
            | Method::Clock { .. }
            | Method::KernelCall { .. }
            | Method::Wake { .. }
            | Method::CacheLines { .. }
            | Method::LineLoad { .. }
            | Method::Relay { .. }
            | Method::RuntimeCopy { .. }
            | Method::SmallCopies { .. }
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => return Vec::new(),
        };
        let (reach, window) = (self.reach(), self.window);
        let pattern = match (reach.stride_bytes, reach.is_random) {
            (Some(stride), false) => Pattern::Strided(stride),
            (Some(stride), true) => Pattern::RandomStrided(stride),
            (None, true) => Pattern::Random,
            (None, false) => Pattern::Sequential,
        };
        let is_beside = self.is_beside_others();
        let is_asker = |place| place == 0 && is_beside;
        let transfer = |(place, flow): (u64, &Flow)| {
            let start = if flow.peer == Peer::Host { place * window } else { self.region.offset };
            let offset = start + self.alignment;
            let window = Window { offset, len: window - self.alignment, pattern };
            let outstanding = if is_asker(place) { Some(1) } else { outstanding };
            let bytes = if is_beside && place > 0 { LOAD_BYTES } else { self.size };
            let (card, verb, partner) = (flow.card, flow.verb, Partner::of(*flow, self.region.bar));
            Transfer { card, verb, partner, bytes, count, window, outstanding }
        };
        (0..).zip(self.flows()).map(transfer).collect()
    }

    /// The state of the host memory that transfers access.
    #[must_use]
    pub fn memory(&self) -> HostMemory {
        let Reach { cache_state, socket, .. } = self.reach();
        HostMemory {
            written_by: match cache_state {
                Some(CacheState::Cold) => Writer::Nobody,
                Some(CacheState::HostWarm) | None => Writer::Core,
                Some(CacheState::DeviceWarm) => Writer::Device,
            },
            socket: socket.unwrap_or_default(),
        }
    }

    /// The relay of the cards, with `count` transfers per iteration; `None` without a relay.
    #[must_use]
    pub fn relay(&self, count: u64) -> Option<Relay> {
        let Method::Relay { cards, .. } = &self.method else { return None };
        let len = self.window.saturating_sub(self.alignment);
        let all = Window { offset: self.alignment, len, pattern: Pattern::Sequential };
        Some(Relay {
            cards: cards.clone(),
            bar: self.region.bar,
            at_peers: Window { offset: self.region.offset + self.alignment, ..all },
            bytes: self.size,
            count,
            from: all,
            to: Window { offset: self.window + self.alignment, ..all },
            is_stored: false,
        })
    }

    /// The driver calls that start DMA, `count` of each per iteration; empty without a driver. Each
    /// thread has its own channel and window.
    #[must_use]
    pub fn calls(&self, count: u64) -> Vec<DmaCall> {
        let Method::DmaCall { share, descriptors, completion, .. } = self.method else { return Vec::new() };
        let (threads, window) = (self.threads(), self.window);
        let of_flow = |(place, transfer): (u64, Transfer)| {
            (0..threads).map(move |channel| {
                let windows = place * u64::from(threads - 1) + u64::from(channel);
                let offset = transfer.window.offset + windows * window;
                let transfer = Transfer { window: Window { offset, ..transfer.window }, ..transfer };
                DmaCall { transfer, channel, share, descriptors, completion }
            })
        };
        (0..).zip(self.transfers(count)).flat_map(of_flow).collect()
    }

    /// Load or store, of the core or of the first flow; for a copy of a runtime, as the program
    /// sees it.
    #[must_use]
    pub fn verb(&self) -> Verb {
        match &self.method {
            Method::Core(core) => core.verb,
            Method::Dma { flows, .. }
            | Method::DmaPages { flows, .. }
            | Method::DmaUnderLoad { flows, .. }
            | Method::DmaCall { flows, .. } => flows.first().map_or(Verb::Load, |flow| flow.verb),
            Method::RuntimeCopy { direction, .. }
            | Method::SmallCopies { direction, .. }
            | Method::SharedBuffer { direction, .. } => direction.verb(),
            Method::LineLoad { .. } | Method::Compute { .. } => Verb::Load,
            Method::Fence { .. }
            | Method::Clock { .. }
            | Method::KernelCall { .. }
            | Method::Wake { .. }
            | Method::CacheLines { .. }
            | Method::Relay { .. }
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::MapUnmap { .. } => Verb::Store,
        }
    }

    /// Memory type of a core's accesses; WB if no core moves the bytes.
    #[must_use]
    pub fn memory_type(&self) -> MemoryType {
        self.method.memory_type().unwrap_or(MemoryType::Wb)
    }

    /// Instruction of a core; plain 8 B if no core moves the bytes.
    #[must_use]
    pub fn access(&self) -> Access {
        self.method.access().unwrap_or(Access::Plain(Width::B8))
    }

    /// Fence of a core's accesses, or the fence that is timed alone.
    #[must_use]
    pub const fn fence(&self) -> Option<Fence> {
        match &self.method {
            Method::Core(core) => core.fence,
            Method::Fence { fence } => Some(*fence),
            Method::Clock { .. }
            | Method::KernelCall { .. }
            | Method::Wake { .. }
            | Method::CacheLines { .. }
            | Method::LineLoad { .. }
            | Method::Dma { .. }
            | Method::DmaPages { .. }
            | Method::DmaUnderLoad { .. }
            | Method::DmaCall { .. }
            | Method::Relay { .. }
            | Method::RuntimeCopy { .. }
            | Method::SmallCopies { .. }
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => None,
        }
    }

    /// Access path of a core; `None` if no core moves the bytes.
    #[must_use]
    pub const fn path(&self) -> Option<AccessPath> {
        if let Method::Core(core) = &self.method { Some(core.path) } else { None }
    }

    /// DMA flows; empty without DMA, or for a relay.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        match &self.method {
            Method::Dma { flows, .. }
            | Method::DmaPages { flows, .. }
            | Method::DmaUnderLoad { flows, .. }
            | Method::DmaCall { flows, .. } => flows,
            Method::Core(_)
            | Method::Fence { .. }
            | Method::Clock { .. }
            | Method::KernelCall { .. }
            | Method::Wake { .. }
            | Method::CacheLines { .. }
            | Method::LineLoad { .. }
            | Method::Relay { .. }
            | Method::RuntimeCopy { .. }
            | Method::SmallCopies { .. }
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => &[],
        }
    }

    /// Placement of DMA in memory, as requested.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.method.reach()
    }

    /// The first participating card; card 0 if none participates.
    #[must_use]
    pub fn first_card(&self) -> u32 {
        if let Method::Relay { cards, .. } = &self.method {
            return cards.first().copied().unwrap_or(0);
        }
        self.flows().first().map_or(0, |flow| flow.card)
    }

    /// Concurrent threads that call the driver of each card, each with its own channel; 1 by
    /// default.
    pub(crate) fn threads(&self) -> u32 {
        self.reach().channels.unwrap_or(1).max(1)
    }

    /// Whether the first flow is timed while the others load the links.
    pub(crate) fn is_beside_others(&self) -> bool {
        matches!(&self.method, Method::DmaUnderLoad { flows, .. } if flows.len() > 1)
    }

    /// Transfers whose bytes the delivered rate counts: all except one that is timed under load.
    #[must_use]
    pub fn counted_transfers(&self) -> Vec<Transfer> {
        self.transfers(1).split_off(usize::from(self.is_beside_others()))
    }

    /// The work that its delivered rate is of.
    #[must_use]
    pub fn rated(&self) -> Rated<'_> {
        if let Some(asked) = &self.computation {
            return Rated::Computation(&asked.work);
        }
        if matches!(self.method, Method::RuntimeCopy { .. } | Method::SmallCopies { .. }) {
            return Rated::Copies { verb: self.verb(), bytes: self.size };
        }
        if let Some(relay) = self.relay(1) {
            return Rated::Relay(relay);
        }
        match self.counted_transfers() {
            transfers if !transfers.is_empty() => Rated::Transfers(transfers),
            _ => Rated::Accesses { verb: self.verb(), at: self.span().at, bytes: self.size },
        }
    }

    /// Bytes from its start to the end of the memory that it may access.
    #[must_use]
    pub fn room(&self, facts: &Facts) -> u64 {
        let all = self.most_window(facts);
        self.reach().window_bytes.map_or(all, |window| window.min(all)).saturating_sub(self.alignment)
    }

    /// Bytes of its largest possible window.
    #[must_use]
    pub fn most_window(&self, facts: &Facts) -> u64 {
        let region = facts.regions.iter().find(|region| region.at == self.region).map(|region| region.len);
        let at_peer = facts.dma.and_then(|dma| dma.peer).map(|(_, len)| len).or(region);
        let is_with_host = |flow: &Flow| flow.peer == Peer::Host;
        let mapped = facts.dma.map(|dma| dma.mapped_bytes / self.flows().len().max(1) as u64);
        let len = match &self.method {
            Method::DmaCall { .. } => mapped.map(|mapped| mapped / u64::from(self.threads())),
            Method::DmaPages { .. } => mapped,
            Method::Dma { flows, .. } | Method::DmaUnderLoad { flows, .. } => {
                if flows.iter().all(is_with_host) {
                    mapped
                } else if flows.iter().any(is_with_host) {
                    mapped.min(at_peer)
                } else {
                    at_peer
                }
            }
            Method::Relay { .. } => facts.dma.map(|dma| dma.mapped_bytes / 2).min(region),
            Method::MapUnmap { .. } => Some(MapUnmap::MOST_BYTES),
            Method::SharedBuffer { .. } => Some(BufferHandoff::MOST_BYTES),
            Method::RuntimeCopy { .. } => Some(RuntimeCopy::MOST_BYTES),
            // Every piece has a gap behind it.
            Method::SmallCopies { copies, .. } => Some(SmallCopies::MOST_BYTES / 4 / u64::from((*copies).max(1))),
            Method::Compute { work: ComputeWork::StreamCopy { ports, .. }, .. } => {
                let most = StreamCopy::most_bytes_per_port(*ports);
                // A copy by the runtime fills an array and reads it back.
                let is_filled = facts.time_base != TimeBase::Simulated;
                Some(if is_filled { most.min(RuntimeCopy::MOST_BYTES) } else { most })
            }
            Method::Compute { work: ComputeWork::Spmv { .. }, .. } => Some(self.size),
            Method::Core(_)
            | Method::Fence { .. }
            | Method::Clock { .. }
            | Method::KernelCall { .. }
            | Method::Wake { .. }
            | Method::CacheLines { .. }
            | Method::LineLoad { .. }
            | Method::Launch { .. }
            | Method::Argument { .. } => region,
        };
        len.unwrap_or(0)
    }

    /// Quantity of this case, if it differs from the question's.
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        matches!(self.method, Method::LineLoad { .. }).then_some(Quantity::RoundTripLatency)
    }

    /// A case of a runtime, with a queue and without memory of a core.
    pub(crate) const fn of_runtime(size: u64, method: Method) -> Case {
        Case {
            method,
            size,
            alignment: 0,
            region: BarOffset { bar: 0, offset: 0 },
            window: 0,
            computation: None,
            caller: Caller::AsPlanned,
        }
    }

    /// A case of a core's accesses to a region.
    pub(crate) fn of_core(core: CoreAccess, region: BarOffset, size: u64) -> Case {
        Case { region, ..Case::of_runtime(size, Method::Core(core)) }
    }

    /// A case without memory accesses; the first region is a placeholder.
    pub(crate) fn of_nothing(facts: &Facts, method: Method) -> Option<Case> {
        Some(Case { region: facts.regions.first()?.at, ..Case::of_runtime(0, method) })
    }
}

/// Axes to vary; the question chooses an axis that is `None`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Axes {
    /// Sizes per iteration in bytes.
    pub sizes: Option<Vec<u64>>,
    /// Memory types.
    pub memory_types: Option<Vec<MemoryType>>,
    /// Instructions.
    pub accesses: Option<Vec<Access>>,
    /// Fences; a `None` in the list means no fence.
    pub fences: Option<Vec<Option<Fence>>>,
    /// Offsets from a 64 B boundary.
    pub alignments: Option<Vec<u64>>,
    /// The region to access, by name.
    pub region: Option<String>,
    /// The concurrent flows of devices.
    pub flows: Option<Vec<Flow>>,
    /// Placement of DMA in memory.
    pub reach: Reach,
    /// Matrices to multiply.
    pub matrices: Option<Vec<Matrix>>,
    /// Cores that launch kernels.
    pub cores: Option<Cores>,
}

/// 64 B to 4 MiB in steps of four.
const SIZES: [u64; 9] = [64, 256, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22];

/// Largest default size of serialized accesses.
const ONE_AT_A_TIME: u64 = 64 << 10;

impl Axes {
    /// The requested sizes, or the default sizes that fit into `region`; the size of `region` if
    /// none does.
    #[must_use]
    pub fn sizes_in(&self, region: &Region) -> Vec<u64> {
        let usual = || {
            let fitting: Vec<u64> = SIZES.into_iter().filter(|size| *size <= region.len).collect();
            if fitting.is_empty() { vec![region.len] } else { fitting }
        };
        self.sizes.clone().unwrap_or_else(usual)
    }

    /// As [`Axes::sizes_in`], but with default sizes up to 64 KiB: longer runs of serialized
    /// accesses repeat the same figure.
    pub(crate) fn sizes_one_at_a_time(&self, region: &Region) -> Vec<u64> {
        let sizes = self.sizes_in(region);
        if self.sizes.is_some() { sizes } else { sizes.into_iter().filter(|size| *size <= ONE_AT_A_TIME).collect() }
    }

    /// Every combination along the axes for one verb and region; axes without a request take
    /// everything the machine has. Default sizes that do not fit are left out; requested sizes are
    /// kept.
    pub(crate) fn cases(&self, facts: &Facts, verb: Verb, region: &Region, wanted: &Wanted) -> Vec<Case> {
        let memory_types = self.memory_types.clone().unwrap_or_else(|| facts.memory_types.clone());
        // Instructions of another question are excluded even if requested.
        let accesses = self.accesses.clone().unwrap_or_else(|| facts.accesses(verb).to_vec());
        let accesses: Vec<Access> = accesses.into_iter().filter(|access| (wanted.access)(*access)).collect();
        let fences = self.fences.clone().unwrap_or_else(|| vec![wanted.fence]);
        let alignments = self.alignments.clone().unwrap_or_else(|| vec![0]);
        let mut cases = Vec::new();
        for &memory_type in
            memory_types.iter().filter(|kind| self.memory_types.is_some() || (wanted.memory_type)(**kind))
        {
            for &access in &accesses {
                for &fence in &fences {
                    for &alignment in &alignments {
                        let sizes = (wanted.sizes)(self, region, access, memory_type);
                        let fits = |size: &u64| self.sizes.is_some() || size.saturating_add(alignment) <= region.len;
                        for size in sizes.into_iter().filter(fits) {
                            let path = AccessPath::Pointer;
                            let core = CoreAccess { path, verb, memory_type, access, fence };
                            cases.push(Case { alignment, ..Case::of_core(core, region.at, size) });
                        }
                    }
                }
            }
        }
        cases
    }

    /// The requested region, or else `usual`.
    pub(crate) fn region<'a>(&self, facts: &'a Facts, usual: Option<&'a Region>) -> Option<&'a Region> {
        match &self.region {
            Some(name) => facts.region(name),
            None => usual,
        }
    }
}

/// The choices of a question.
pub(crate) struct Wanted {
    /// Whether an access is included.
    pub(crate) access: fn(Access) -> bool,
    /// Whether a memory type is included.
    pub(crate) memory_type: fn(MemoryType) -> bool,
    /// The default fence.
    pub(crate) fence: Option<Fence>,
    /// The sizes of an access to a memory type.
    pub(crate) sizes: fn(&Axes, &Region, Access, MemoryType) -> Vec<u64>,
}

/// The width of one access.
pub(crate) fn own_width(axes: &Axes, _: &Region, access: Access, _: MemoryType) -> Vec<u64> {
    match (&axes.sizes, access.width()) {
        (Some(sizes), _) => sizes.clone(),
        (None, Some(width)) => vec![width.bytes()],
        (None, None) => vec![64],
    }
}
