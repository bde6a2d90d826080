//! One variant of a question, and the axes that variants are chosen along.

use crate::caller::{Caller, Cores};
use crate::computation::{Computation, Matrix};
use lanemark_compute::{StreamCopy, Work};
use lanemark_machine::{
    Access, Allocation, Arguments, BufferHandoff, Clock, Completion, Descriptors, Discipline, DmaCall, Facts, Fence,
    Flow, HostMemory, HostWait, KernelCall, Launch, LineSource, MapUnmap, Means, MovedByRuntime, Pattern, Peer, Region,
    Relay, Share, Socket as MemorySocket, Span, TimeBase, Transfer, Verb, Width, Window, Writer,
};
use lanemark_record::{CacheState, CorePair, Quantity, Reach, Socket, Way};
use lanemark_units::{BarOffset, MemoryType};

/// One variant of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Load or store.
    pub verb: Verb,
    /// By which instruction.
    pub access: Access,
    /// Effective memory type of the mapping.
    pub memory_type: MemoryType,
    /// The fence: after each pass for stores, after each access for latencies.
    pub fence: Option<Fence>,
    /// Bytes of one pass.
    pub size: u64,
    /// Distance of the first byte from a 64 B boundary.
    pub alignment: u64,
    /// Where the region starts that is touched.
    pub region: BarOffset,
    /// Who moves the bytes where, if it is no core; several at once are of one size each.
    pub flows: Vec<Flow>,
    /// Through a pointer or a driver.
    pub through: Through,
    /// Where devices move bytes: what somebody asked for.
    pub reach: Reach,
    /// What kernels compute; `None` where none do.
    pub computation: Option<Computation>,
    /// Where the thread runs that asks.
    pub caller: Caller,
}

/// Through whom bytes go, or what is done where none do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// A pointer of the program's own.
    User,
    /// Calls into a driver.
    Driver,
    /// Calls into a driver that read a flag until it is set, and then a value.
    Poll,
    /// A pointer that is made for the purpose and given back.
    Mmap,
    /// No bytes: the fence alone.
    Alone,
    /// No bytes: a reading of a clock.
    Clock(Clock),
    /// No bytes: a call of the kernel.
    Kernel(KernelCall),
    /// The queue of a runtime, which copies between a buffer of the program and one of its device.
    Runtime {
        /// By what it is known that the copy is over.
        told: HostWait,
        /// What the memory is.
        allocation: Allocation,
    },
    /// Kernels that compute, on memory of their device.
    Compute(HostWait),
    /// No bytes: kernels that do nothing, through a runtime.
    Launch(Launch),
    /// No bytes: what one more piece of memory adds to a launch that is given it.
    Argument {
        /// By what it is known that the launch is over.
        told: HostWait,
        /// What the memory is.
        allocation: Allocation,
    },
    /// No bytes move: memory is lent to a device and taken back.
    MapUnmap(Means),
    /// A buffer of ordinary memory that a core shares with a device.
    Shared(Discipline),
    /// No bytes: one core wakes a thread that sleeps on another.
    Wake(CorePair),
    /// A line from core to core and back, or one each way.
    Lines {
        /// Between whom.
        pair: CorePair,
        /// Whether there is a line for each way.
        is_two: bool,
    },
    /// A pointer, to a line that no cache has.
    Memory,
    /// A load of a line that somebody else is said to have.
    LoadFrom(LineSource),
    /// A copy to lines that are in a cache, or in none.
    Copy {
        /// In none.
        is_cold: bool,
    },
    /// As [`Through::Dma`], but of several flows the first has one transfer under way, and the others so many, of
    /// [`LOAD_BYTES`] each.
    Loaded {
        /// Bytes at the other end that each goes over.
        window: u64,
        /// Transfers under way at once.
        outstanding: u32,
    },
    /// Devices that move the bytes themselves.
    Dma {
        /// Bytes at the other end that each goes over.
        window: u64,
        /// Transfers under way at once; `None` for as many as it can.
        outstanding: Option<u32>,
    },
    /// As [`Through::Dma`], one transfer at a time, each of another of a few pages in turn.
    Pages {
        /// Bytes at the other end from the first page to behind the last.
        window: u64,
    },
    /// A device that moves the bytes because a core asks it to, and tells it when it is done.
    DmaCall {
        /// Bytes at the other end that it goes over.
        window: u64,
        /// How much of a driver call there is.
        share: Share,
        /// How the device comes to know where the bytes are.
        descriptors: Descriptors,
        /// How the core comes to know that they have been moved.
        completion: Completion,
    },
    /// Cards that hand on what the first of them reads, along the flows.
    Relay {
        /// Bytes at either end in host memory, and at each card.
        window: u64,
    },
    /// A core that loads the bytes itself, where a device could move them.
    Loads,
}

/// Bytes of one transfer of a flow that another goes beside: a page.
const LOAD_BYTES: u64 = 4096;

impl Case {
    /// The bytes this case touches.
    #[must_use]
    pub fn span(&self) -> Span {
        let at = BarOffset { offset: self.region.offset + self.alignment, ..self.region };
        Span { at, len: self.size, memory_type: self.memory_type }
    }

    /// What devices move, each `count` times a pass; none where a core does. Each has a window of its own in host memory.
    #[must_use]
    pub fn transfers(&self, count: u64) -> Vec<Transfer> {
        let (window, outstanding) = match self.through {
            Through::Dma { window, outstanding } => (window, outstanding),
            Through::Pages { window } => (window, Some(1)),
            Through::DmaCall { window, .. } => (window, None),
            Through::Loaded { window, outstanding } => (window, Some(outstanding)),
            _ => return Vec::new(),
        };
        let pattern = match self.reach.stride_bytes {
            Some(stride) => Pattern::Strided(stride),
            None if self.reach.is_random => Pattern::Random,
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
            let (card, verb, partner) = (flow.card, flow.verb, flow.partner(self.region.bar));
            Transfer { card, verb, partner, bytes, count, window, outstanding }
        };
        (0..).zip(&self.flows).map(transfer).collect()
    }

    /// What transfers find of host memory.
    #[must_use]
    pub fn memory(&self) -> HostMemory {
        HostMemory {
            written_by: match self.reach.cache_state {
                Some(CacheState::Cold) => Writer::Nobody,
                Some(CacheState::HostWarm) | None => Writer::Core,
                Some(CacheState::DeviceWarm) => Writer::Device,
            },
            socket: match self.reach.socket {
                Some(Socket::Remote) => MemorySocket::Remote,
                Some(Socket::Local) | None => MemorySocket::Local,
            },
        }
    }

    /// What cards hand on, `count` transfers a pass; `None` where they do not, or where the flows are no chain from host memory
    /// through cards and back.
    #[must_use]
    pub fn relay(&self, count: u64) -> Option<Relay> {
        let Through::Relay { window } = self.through else { return None };
        let ([first, hops @ ..], Some(last)) = (self.flows.as_slice(), self.flows.last()) else { return None };
        let mut cards = vec![first.card];
        for hop in hops.split_last()?.1 {
            let (Verb::Store, Peer::Card(next)) = (hop.verb, hop.peer) else { return None };
            if cards.last() != Some(&hop.card) || cards.contains(&next) {
                return None;
            }
            cards.push(next);
        }
        let is_end = |flow: &Flow, verb: Verb| flow.peer == Peer::Host && flow.verb == verb;
        if !is_end(first, Verb::Load) || !is_end(last, Verb::Store) || cards.last() != Some(&last.card) {
            return None;
        }
        let len = window.saturating_sub(self.alignment);
        let all = Window { offset: self.alignment, len, pattern: Pattern::Sequential };
        Some(Relay {
            cards,
            bar: self.region.bar,
            at_peers: Window { offset: self.region.offset + self.alignment, ..all },
            bytes: self.size,
            count,
            from: all,
            to: Window { offset: window + self.alignment, ..all },
            is_stored: false,
        })
    }

    /// The calls that let devices move bytes, `count` of each a pass; none where nobody is called. Each thread has a channel and a
    /// window of its own.
    #[must_use]
    pub fn calls(&self, count: u64) -> Vec<DmaCall> {
        let Through::DmaCall { window, share, descriptors, completion } = self.through else { return Vec::new() };
        let threads = self.threads();
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

    /// Threads that call the driver of each card at once, each on a channel of its own; one where nobody asked for more.
    pub(crate) fn threads(&self) -> u32 {
        self.reach.channels.unwrap_or(1).max(1)
    }

    /// How many pages it takes in turn; `None` where it does not.
    pub(crate) fn pages(&self) -> Option<u64> {
        let Through::Pages { window } = self.through else { return None };
        Some((window / self.reach.stride_bytes.unwrap_or(self.size).max(1)).max(1))
    }

    /// Whether its first flow is asked about and the others are what it goes beside.
    pub(crate) fn is_beside_others(&self) -> bool {
        self.flows.len() > 1 && matches!(self.through, Through::Loaded { .. })
    }

    /// The transfers whose bytes its delivered rate counts: all, but for one that others are only beside.
    #[must_use]
    pub fn counted_transfers(&self) -> Vec<Transfer> {
        self.transfers(1).split_off(usize::from(self.is_beside_others()))
    }

    /// Bytes from where it starts to the end of what it may touch.
    #[must_use]
    pub fn room(&self, facts: &Facts) -> u64 {
        let all = self.most_window(facts);
        self.reach.window_bytes.map_or(all, |window| window.min(all)).saturating_sub(self.alignment)
    }

    /// Bytes of the largest window that it could go over.
    #[must_use]
    pub fn most_window(&self, facts: &Facts) -> u64 {
        let region = facts.regions.iter().find(|region| region.at == self.region).map(|region| region.len);
        let is_with_host = |flow: &Flow| flow.peer == Peer::Host;
        let lent = facts.dma.map(|dma| dma.mapped_bytes / self.flows.len().max(1) as u64);
        let len = match self.through {
            Through::DmaCall { .. } => lent.map(|lent| lent / u64::from(self.threads())),
            Through::Pages { .. } => lent,
            Through::Dma { .. } | Through::Loaded { .. } if self.flows.iter().all(is_with_host) => lent,
            Through::Dma { .. } | Through::Loaded { .. } if self.flows.iter().any(is_with_host) => lent.min(region),
            Through::Relay { .. } => facts.dma.map(|dma| dma.mapped_bytes / 2).min(region),
            Through::MapUnmap(_) => Some(MapUnmap::MOST_BYTES),
            Through::Shared(_) => Some(BufferHandoff::MOST_BYTES),
            Through::Runtime { .. } => Some(MovedByRuntime::MOST_BYTES),
            Through::Compute(_) => match self.computation.as_ref().map(|asked| &asked.work) {
                Some(Work::StreamCopy(copy)) => {
                    let most = StreamCopy::most_bytes_per_port(copy.ports);
                    // What fills an array and reads it back is a copy of a runtime.
                    let is_filled = facts.time_base != TimeBase::Simulated;
                    Some(if is_filled { most.min(MovedByRuntime::MOST_BYTES) } else { most })
                }
                _ => Some(self.size),
            },
            _ => region,
        };
        len.unwrap_or(0)
    }

    /// What its figure is, where that is not what the question's others are.
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        matches!(self.through, Through::Memory | Through::LoadFrom(_)).then_some(Quantity::RoundTripLatency)
    }

    /// Between which cores, where it is between two.
    pub(crate) fn pair(&self) -> Option<CorePair> {
        match self.through {
            Through::Wake(pair) | Through::Lines { pair, .. } => Some(pair),
            _ => None,
        }
    }

    /// As records show it.
    #[must_use]
    pub fn way(&self) -> Way {
        let fence = self.fence.map(|fence| fence.name().to_owned());
        let of_nothing = |access: &str, through: &str| Way {
            memory_type: "none".to_owned(),
            access: access.to_owned(),
            fence: None,
            through: through.to_owned(),
            reach: self.reach,
        };
        let through = match self.through {
            Through::User => "user",
            Through::Driver => "driver",
            Through::Poll => "poll",
            Through::Mmap => "mmap",
            Through::Lines { is_two: false, .. } => "one_line",
            Through::Lines { is_two: true, .. } => "two_lines",
            Through::Memory => "memory",
            Through::LoadFrom(holder) => holder.name(),
            Through::Loads => "loads",
            Through::Copy { is_cold: false } => "hot",
            Through::Copy { is_cold: true } => "cold",
            Through::Dma { .. } => return of_nothing(&in_words(&self.flows), "dma"),
            Through::Pages { .. } => {
                let through = format!("dma_pages_{}", self.pages().unwrap_or(1));
                return of_nothing(&in_words(&self.flows), &through);
            }
            Through::Relay { .. } => return of_nothing(&chain_in_words(&self.flows), "dma_relay"),
            Through::DmaCall { share, descriptors, completion, .. } => {
                let through = format!("dma_{}_{completion}", asked_by(share, descriptors));
                return of_nothing(&in_words(&self.flows), &through);
            }
            Through::Loaded { outstanding, .. } => {
                let access = match self.flows.split_first() {
                    Some((asker, [_, ..])) => format!("{asker} beside {}", in_words(&self.flows[1..])),
                    _ => in_words(&self.flows),
                };
                return of_nothing(&access, &format!("dma_under_way_{outstanding}"));
            }
            Through::Alone => return of_nothing(fence.as_deref().unwrap_or("nothing"), "alone"),
            Through::Clock(clock) => return of_nothing(clock.name(), "clock"),
            Through::Kernel(call) => return of_nothing(call.name(), "kernel"),
            Through::Runtime { told, allocation } => {
                let direction = if self.verb == Verb::Store { "to_device" } else { "from_device" };
                let through = match allocation {
                    Allocation::Buffer => format!("runtime_{direction}"),
                    other => format!("runtime_{other}_{direction}"),
                };
                return of_nothing(told.name(), &through);
            }
            Through::Launch(launch) => {
                let given = match launch.arguments {
                    Arguments { count: 0, .. } => String::new(),
                    Arguments { count, allocation } => format!("_with_{count}_{allocation}"),
                };
                let unpinned = if self.caller == Caller::Unpinned { "_unpinned" } else { "" };
                return of_nothing(launch.told.name(), &format!("launch_{}{given}{unpinned}", launch.kernels));
            }
            Through::Argument { told, allocation } => {
                return of_nothing(told.name(), &format!("argument_{allocation}"));
            }
            Through::Compute(told) => {
                let through = self.computation.as_ref().map_or_else(|| "compute".to_owned(), Computation::through);
                return of_nothing(told.name(), &through);
            }
            Through::MapUnmap(means) => return of_nothing(means.name(), &format!("lend_{}", means.strategy_name())),
            Through::Shared(discipline) => {
                let through = if self.verb == Verb::Store { "shared_to_device" } else { "shared_from_device" };
                return of_nothing(discipline.name(), through);
            }
            Through::Wake(_) => return of_nothing("eventfd", "wake"),
        };
        Way {
            memory_type: self.memory_type.name().to_owned(),
            access: self.access.to_string(),
            fence,
            through: through.to_owned(),
            reach: self.reach,
        }
    }

    /// The case of a runtime, which has a queue and nothing that a core touches.
    pub(crate) fn of_runtime(verb: Verb, size: u64, through: Through) -> Case {
        Case {
            verb,
            access: Access::Plain(Width::B8),
            memory_type: MemoryType::Wb,
            fence: None,
            size,
            alignment: 0,
            region: BarOffset { bar: 0, offset: 0 },
            flows: Vec::new(),
            through,
            reach: Reach::default(),
            computation: None,
            caller: Caller::AsPlanned,
        }
    }

    /// The case that touches nothing, on a machine whose first region and memory type stand for none.
    pub(crate) fn of_nothing(facts: &Facts, through: Through) -> Option<Case> {
        Some(Case {
            verb: Verb::Store,
            access: Access::Plain(Width::B8),
            memory_type: *facts.memory_types.first()?,
            fence: None,
            size: 0,
            alignment: 0,
            region: facts.regions.first()?.at,
            flows: Vec::new(),
            through,
            reach: Reach::default(),
            computation: None,
            caller: Caller::AsPlanned,
        })
    }
}

/// How a device is asked, as one word of records.
fn asked_by(share: Share, descriptors: Descriptors) -> String {
    let list = match descriptors {
        Descriptors::Written(_) if share == Share::Doorbell => "",
        Descriptors::Written(memory_type) => &format!("{}_", memory_type.name()),
        Descriptors::Fetched => "fetched_",
    };
    let share = match share {
        Share::Call => "call",
        Share::List => "list",
        Share::Doorbell => "doorbell",
    };
    format!("{list}{share}")
}

/// Who moves bytes where: in words for one card and the host, else the flows, a few of the same kind in a row as one.
fn in_words(flows: &[Flow]) -> String {
    match flows {
        [Flow { card: 0, verb: Verb::Store, peer: Peer::Host }] => return "device_to_host".to_owned(),
        [Flow { card: 0, verb: Verb::Load, peer: Peer::Host }] => return "host_to_device".to_owned(),
        _ => {}
    }
    let mut words: Vec<String> = Vec::new();
    let follows = |one: &Flow, other: &Flow| {
        (other.verb, other.peer) == (one.verb, Peer::Host)
            && one.peer == Peer::Host
            && Some(other.card) == one.card.checked_add(1)
    };
    for row in flows.chunk_by(follows) {
        words.push(match row {
            [first, .., last] if first.verb == Verb::Store => format!("{}-{}:host", first.card, last.card),
            [first, .., last] => format!("host:{}-{}", first.card, last.card),
            [one] => one.to_string(),
            [] => String::new(),
        });
    }
    words.join(" ")
}

/// The cards that bytes pass between host memory and host memory; neighbours in a row as the first and the last.
fn chain_in_words(flows: &[Flow]) -> String {
    let cards: Vec<u32> = flows.iter().filter(|flow| flow.verb == Verb::Store).map(|flow| flow.card).collect();
    let rows = cards.chunk_by(|one, other| one.checked_add(1) == Some(*other)).map(|row| match row {
        [first, .., last] => format!("{first}-{last}"),
        row => row.iter().map(u32::to_string).collect(),
    });
    format!("host:{}:host", rows.collect::<Vec<_>>().join(":"))
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
    /// Who moves bytes where, all at once.
    pub flows: Option<Vec<Flow>>,
    /// How far and how densely devices move bytes.
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
                            cases.push(Case {
                                verb,
                                access,
                                memory_type,
                                fence,
                                size,
                                alignment,
                                region: region.at,
                                flows: Vec::new(),
                                through: Through::User,
                                reach: Reach::default(),
                                computation: None,
                                caller: Caller::AsPlanned,
                            });
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
