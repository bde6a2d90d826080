//! One variant of a question, and the axes that variants are chosen along.

use crate::caller::{Caller, Cores};
use crate::computation::{Computation, Matrix};
use lanemark_compute::StreamCopy;
use lanemark_machine::{
    Access, BufferHandoff, DmaCall, Facts, Fence, Flow, HostMemory, MapUnmap, MovedByRuntime, Partner, Pattern, Peer,
    Region, Relay, Span, TimeBase, Transfer, Verb, Width, Window, Writer,
};
use lanemark_method::{AccessPath, CacheState, ComputeWork, CoreAccess, Method, Reach};
use lanemark_record::Quantity;
use lanemark_units::{BarOffset, MemoryType};

/// One variant of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// How bytes are moved, or what is done where none are; as the answer says it.
    pub method: Method,
    /// Bytes of one pass.
    pub size: u64,
    /// Distance of the first byte from a 64 B boundary; for DMA, from a page.
    pub alignment: u64,
    /// Start of the region that is touched.
    pub region: BarOffset,
    /// Bytes of the window that each flow of a device goes over, or that a core loads from; 0 where there is no window.
    pub window: u64,
    /// The matrix and the parameters that kernels compute with; `None` where there are no kernels.
    pub computation: Option<Computation>,
    /// The cores that take part.
    pub caller: Caller,
}

/// Bytes of one transfer of a flow that loads the links: a page.
const LOAD_BYTES: u64 = 4096;

impl Case {
    /// The bytes this case touches.
    #[must_use]
    pub fn span(&self) -> Span {
        let at = BarOffset { offset: self.region.offset + self.alignment, ..self.region };
        Span { at, len: self.size, memory_type: self.memory_type() }
    }

    /// The transfers of devices, each `count` times a pass; none where a core moves the bytes. Each has a window of its own
    /// in host memory.
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
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => return Vec::new(),
        };
        let (reach, window) = (self.reach(), self.window);
        let pattern = match reach.stride_bytes {
            Some(stride) => Pattern::Strided(stride),
            None if reach.is_random => Pattern::Random,
            None => Pattern::Sequential,
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

    /// The state of the host memory that transfers use.
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

    /// What cards relay, `count` transfers a pass; `None` where they relay nothing.
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

    /// The calls that let devices move bytes, `count` of each a pass; none where no driver is called. Each thread has a channel
    /// and a window of its own.
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

    /// Load or store: of the core or of the first flow; as the program sees it where a runtime copies.
    #[must_use]
    pub fn verb(&self) -> Verb {
        match &self.method {
            Method::Core(core) => core.verb,
            Method::Dma { flows, .. }
            | Method::DmaPages { flows, .. }
            | Method::DmaUnderLoad { flows, .. }
            | Method::DmaCall { flows, .. } => flows.first().map_or(Verb::Load, |flow| flow.verb),
            Method::RuntimeCopy { direction, .. } | Method::SharedBuffer { direction, .. } => direction.verb(),
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

    /// The memory type that a core's accesses go through; WB where no core moves the bytes.
    #[must_use]
    pub fn memory_type(&self) -> MemoryType {
        self.method.memory_type().unwrap_or(MemoryType::Wb)
    }

    /// The instruction of a core; an 8 B one where no core moves the bytes.
    #[must_use]
    pub fn access(&self) -> Access {
        self.method.access().unwrap_or(Access::Plain(Width::B8))
    }

    /// The fence of a core's accesses, or the one that is timed alone.
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
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => None,
        }
    }

    /// How a core reaches the memory; `None` where no core moves the bytes.
    #[must_use]
    pub const fn path(&self) -> Option<AccessPath> {
        if let Method::Core(core) = &self.method { Some(core.path) } else { None }
    }

    /// The flows of devices; none where they move nothing, or relay.
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
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => &[],
        }
    }

    /// Where in memory devices move bytes, as far as it was asked for.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.method.reach()
    }

    /// The first card that takes part; the first of all where none does.
    #[must_use]
    pub fn first_card(&self) -> u32 {
        if let Method::Relay { cards, .. } = &self.method {
            return cards.first().copied().unwrap_or(0);
        }
        self.flows().first().map_or(0, |flow| flow.card)
    }

    /// Threads that call the driver of each card at once, each on a channel of its own; one where nobody asked for more.
    pub(crate) fn threads(&self) -> u32 {
        self.reach().channels.unwrap_or(1).max(1)
    }

    /// Whether its first flow is timed and the others load the links.
    pub(crate) fn is_beside_others(&self) -> bool {
        matches!(&self.method, Method::DmaUnderLoad { flows, .. } if flows.len() > 1)
    }

    /// The transfers whose bytes its delivered rate counts: all but one that is timed beside others.
    #[must_use]
    pub fn counted_transfers(&self) -> Vec<Transfer> {
        self.transfers(1).split_off(usize::from(self.is_beside_others()))
    }

    /// Bytes from where it starts to the end of what it may touch.
    #[must_use]
    pub fn room(&self, facts: &Facts) -> u64 {
        let all = self.most_window(facts);
        self.reach().window_bytes.map_or(all, |window| window.min(all)).saturating_sub(self.alignment)
    }

    /// Bytes of the largest window that it could go over.
    #[must_use]
    pub fn most_window(&self, facts: &Facts) -> u64 {
        let region = facts.regions.iter().find(|region| region.at == self.region).map(|region| region.len);
        let is_with_host = |flow: &Flow| flow.peer == Peer::Host;
        let mapped = facts.dma.map(|dma| dma.mapped_bytes / self.flows().len().max(1) as u64);
        let len = match &self.method {
            Method::DmaCall { .. } => mapped.map(|mapped| mapped / u64::from(self.threads())),
            Method::DmaPages { .. } => mapped,
            Method::Dma { flows, .. } | Method::DmaUnderLoad { flows, .. } => {
                if flows.iter().all(is_with_host) {
                    mapped
                } else if flows.iter().any(is_with_host) {
                    mapped.min(region)
                } else {
                    region
                }
            }
            Method::Relay { .. } => facts.dma.map(|dma| dma.mapped_bytes / 2).min(region),
            Method::MapUnmap { .. } => Some(MapUnmap::MOST_BYTES),
            Method::SharedBuffer { .. } => Some(BufferHandoff::MOST_BYTES),
            Method::RuntimeCopy { .. } => Some(MovedByRuntime::MOST_BYTES),
            Method::Compute { work: ComputeWork::StreamCopy { ports, .. }, .. } => {
                let most = StreamCopy::most_bytes_per_port(*ports);
                // What fills an array and reads it back is a copy of a runtime.
                let is_filled = facts.time_base != TimeBase::Simulated;
                Some(if is_filled { most.min(MovedByRuntime::MOST_BYTES) } else { most })
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

    /// What its figure is, where that is not what the question's others are.
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        matches!(self.method, Method::LineLoad { .. }).then_some(Quantity::RoundTripLatency)
    }

    /// A case of a runtime, which has a queue and touches no memory of a core.
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

    /// The case that touches nothing, on a machine whose first region stands for none.
    pub(crate) fn of_nothing(facts: &Facts, method: Method) -> Option<Case> {
        Some(Case { region: facts.regions.first()?.at, ..Case::of_runtime(0, method) })
    }
}

/// What to vary; what is `None` is chosen by the question.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Axes {
    /// Sizes of one pass in bytes.
    pub sizes: Option<Vec<u64>>,
    /// Memory types.
    pub memory_types: Option<Vec<MemoryType>>,
    /// Instructions.
    pub accesses: Option<Vec<Access>>,
    /// Fences; `Some(None)` in the list means without one.
    pub fences: Option<Vec<Option<Fence>>>,
    /// Distances from a 64 B boundary.
    pub alignments: Option<Vec<u64>>,
    /// The region to touch, by name.
    pub region: Option<String>,
    /// The concurrent flows of devices.
    pub flows: Option<Vec<Flow>>,
    /// Where in memory devices move bytes.
    pub reach: Reach,
    /// Matrices that are multiplied.
    pub matrices: Option<Vec<Matrix>>,
    /// The cores from which kernels are launched.
    pub cores: Option<Cores>,
}

/// 64 B to 4 MiB in steps of four.
const SIZES: [u64; 9] = [64, 256, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22];

/// Largest usual size of accesses that go one at a time.
const ONE_AT_A_TIME: u64 = 64 << 10;

impl Axes {
    /// The sizes asked for, or those of the usual ones that fit into `region`; all of it if none does.
    #[must_use]
    pub fn sizes_in(&self, region: &Region) -> Vec<u64> {
        let usual = || {
            let fitting: Vec<u64> = SIZES.into_iter().filter(|size| *size <= region.len).collect();
            if fitting.is_empty() { vec![region.len] } else { fitting }
        };
        self.sizes.clone().unwrap_or_else(usual)
    }

    /// As [`Axes::sizes_in`]; accesses that go one at a time are usually asked up to 64 KiB only, because
    /// more of them repeat the same figure.
    pub(crate) fn sizes_one_at_a_time(&self, region: &Region) -> Vec<u64> {
        let sizes = self.sizes_in(region);
        if self.sizes.is_some() { sizes } else { sizes.into_iter().filter(|size| *size <= ONE_AT_A_TIME).collect() }
    }

    /// Every combination along the axes for one verb: the region, and what the machine has where nothing
    /// else is asked for. Usual sizes that do not fit are left out; those asked for are not.
    pub(crate) fn cases(&self, facts: &Facts, verb: Verb, region: &Region, wanted: &Wanted) -> Vec<Case> {
        let memory_types = self.memory_types.clone().unwrap_or_else(|| facts.memory_types.clone());
        // An instruction that is another question's affair is not asked here, named or not.
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

    /// The region asked for, or else `usual`.
    pub(crate) fn region<'a>(&self, facts: &'a Facts, usual: Option<&'a Region>) -> Option<&'a Region> {
        match &self.region {
            Some(name) => facts.region(name),
            None => usual,
        }
    }
}

/// What a question varies by itself.
pub(crate) struct Wanted {
    /// Which accesses.
    pub(crate) access: fn(Access) -> bool,
    /// Which memory types.
    pub(crate) memory_type: fn(MemoryType) -> bool,
    /// The usual fence.
    pub(crate) fence: Option<Fence>,
    /// Which sizes for an access to a memory type.
    pub(crate) sizes: fn(&Axes, &Region, Access, MemoryType) -> Vec<u64>,
}

/// One access: as many bytes as it moves.
pub(crate) fn own_width(axes: &Axes, _: &Region, access: Access, _: MemoryType) -> Vec<u64> {
    match (&axes.sizes, access.width()) {
        (Some(sizes), _) => sizes.clone(),
        (None, Some(width)) => vec![width.bytes()],
        (None, None) => vec![64],
    }
}
