//! Plans built from a machine's facts: some must run, some must be refused, some may be either.

use lanemark_machine::{
    Access, Arguments, BlockCopy, BufferHandoff, Clock, CoreWork, Discipline, DriverCall, EngineJob, Exchange, Facts,
    Fence, Handshake, HostWait, KernelCall, Lane, Launch, LaunchBy, LineSource, MapUnmap, Means, Medium, OnChannels,
    Operation, Order, Partner, Pattern, Placement, Plan, QueueRequest, QueueWork, Region, RegionKind, Span, Step,
    Stream, Task, TimeBase, Transfer, Verb, Width, Window, WriteRead,
};
use lanemark_units::{BarOffset, MemoryType, Ticks};
use std::ops::Range;

/// The storage region, or any region.
pub fn ground(facts: &Facts) -> Option<&Region> {
    facts.storage().or_else(|| facts.regions.first())
}

/// `len` bytes from `offset` in the region.
pub fn span(region: &Region, offset: u64, len: u64, memory_type: MemoryType) -> Span {
    let at = BarOffset { bar: region.at.bar, offset: region.at.offset.saturating_add(offset) };
    Span { at, len, memory_type }
}

/// A plan of one stream.
pub fn stream(verb: Verb, access: Access, span: Span) -> Plan {
    Plan::new(Step::Stream(Stream::over(verb, access, span)), 2)
}

/// DMA writes to host memory, of which every device with DMA makes one: 4 KiB, or if its memory is smaller, 512 B, one at a time,
/// because such an engine may also be slow.
pub fn dma_writes(facts: &Facts) -> Vec<Plan> {
    let window = Window { len: 64 << 10, ..WRITE.window };
    let of = |(bytes, count)| Plan::new(Transfer { bytes, count, window, ..WRITE }, 2);
    facts.dma.iter().flat_map(|_| [(4096, 2), (512, 1)].map(of)).collect()
}

/// DMA in both directions, of several sizes, places and numbers of outstanding transfers; none without DMA.
///
/// A machine may refuse any of them, but `supports` must agree with `run`.
pub fn all_transfers(facts: &Facts) -> Vec<Plan> {
    let Some(dma) = facts.dma else { return Vec::new() };
    let mut plans = Vec::new();
    for verb in [Verb::Store, Verb::Load] {
        let window = Window { len: 64 << 10, ..WRITE.window };
        let usual = Transfer { verb, bytes: 512, count: 2, window, ..WRITE };
        let sizes = [1, 64, 100, 512, 2048, 4096, 12_288, 64 << 10].map(|bytes| Transfer { bytes, ..usual });
        let depths = [1, 2, 4096].map(|depth| Transfer { outstanding: Some(depth), ..usual });
        let patterns = [Pattern::Random, Pattern::Strided(1024), Pattern::RandomStrided(64)]
            .map(|pattern| Transfer { window: Window { pattern, ..window }, ..usual });
        let ends = [(4096, 8192), (4, 4096), (3, 4096), (dma.mapped_bytes - 512, 512), (dma.mapped_bytes, 512)];
        let places = ends.map(|(offset, len)| Transfer { window: Window { offset, len, ..window }, ..usual });
        let other = [Transfer { card: dma.cards, ..usual }];
        let all = sizes.iter().chain(&depths).chain(&patterns).chain(&places).chain(&other);
        plans.extend(all.map(|transfer| Plan::new(*transfer, 2)));
        plans.extend([1, 2].map(|channels| Plan::new(OnChannels { transfer: usual, channels }, 2)));
    }
    let write = Transfer { bytes: 512, count: 3, window: Window { len: 32 << 10, ..WRITE.window }, ..WRITE };
    let read = Window { offset: 32 << 10, ..write.window };
    plans.extend([false, true].map(|is_mixed| Plan::new(WriteRead { write, read, is_mixed }, 2)));
    plans
}

/// A plain store of 4 KiB that every machine with storage runs, by its widest integer register and its first memory
/// type.
pub fn plain_store(facts: &Facts) -> Option<Plan> {
    let region = facts.storage()?;
    Some(stream(Verb::Store, Access::Plain(Width::B8), span(region, 0, 4096, *facts.memory_types.first()?)))
}

/// A load of one word that every machine runs.
pub fn plain_load(facts: &Facts) -> Option<Plan> {
    let memory_type = *facts.memory_types.first()?;
    Some(stream(Verb::Load, Access::Plain(Width::B4), span(ground(facts)?, 0, 4, memory_type)))
}

/// Every access in both directions over every memory type, aligned and unaligned, short and long.
///
/// A machine may refuse any of them, but `supports` must agree with `run`.
pub fn all_accesses(facts: &Facts) -> Vec<Plan> {
    let Some(region) = ground(facts) else { return Vec::new() };
    let places = [(0, 64), (0, 4096), (4, 4), (64, 7), (1, 64), (8, 130)];
    let verbs: &[Verb] = if region.kind == RegionKind::Registers { &[Verb::Load] } else { &[Verb::Load, Verb::Store] };
    let mut plans = Vec::new();
    for verb in verbs {
        for access in Access::ALL {
            for memory_type in [MemoryType::Uc, MemoryType::Wc, MemoryType::Wt, MemoryType::Wp, MemoryType::Wb] {
                plans
                    .extend(places.iter().map(|(at, len)| stream(*verb, access, span(region, *at, *len, memory_type))));
            }
        }
    }
    plans
}

/// Steps other than one stream, which a machine may refuse.
pub fn all_steps(facts: &Facts) -> Vec<Plan> {
    let (Some(region), Some(memory_type)) = (facts.storage(), facts.memory_types.first()) else { return Vec::new() };
    let span = span(region, 0, 256, *memory_type);
    let store = Stream::over(Verb::Store, Access::Plain(Width::B8), span);
    let fenced = |fence| Step::Stream(Stream { fence_each: Some(fence), ..store.clone() });
    let again = Stream { order: Order::SameAddress { times: 5 }, span: Span { len: 8, ..span }, ..store.clone() };
    let driver = |verb, width| Step::Driver(DriverCall { verb, span, call_bytes: 64, width });
    let steps = vec![
        vec![Step::Map(span)],
        vec![Step::FlushLines(span), Step::Stream(store.clone())],
        vec![Step::Pause(Ticks::whole_ns(10)), Step::Stream(store.clone())],
        vec![Step::Stream(store.clone()), Step::Stream(store.clone())],
        vec![Step::Stream(again.clone())],
        vec![Step::Stream(Stream { order: Order::Interleaved { lines: 4 }, ..store.clone() })],
        vec![Step::Stream(Stream { order: Order::Interleaved { lines: 3 }, ..store.clone() })],
        // One access moves 8 B and the span has 256.
        vec![Step::Stream(Stream { span, ..again })],
    ];
    let mut bodies: Vec<Task> = steps.into_iter().map(Task::from).collect();
    bodies.extend(Fence::ALL.map(|fence| Task::from(fenced(fence))));
    bodies.extend(Fence::ALL.map(|fence| Task::from(vec![Step::Stream(store.clone()), Step::Fence(fence)])));
    bodies.extend(Fence::ALL.map(|fence| Task::from(Step::Fence(fence))));
    for width in Width::ALL {
        bodies.extend([Verb::Load, Verb::Store].map(|verb| Task::from(driver(verb, width))));
    }
    bodies.extend(Clock::ALL.map(|clock| Task::from(Operation::Clock(clock))));
    bodies.extend(KernelCall::ALL.map(|call| Task::from(Operation::KernelCall(call))));
    bodies.extend(LineSource::ALL.map(|holder| Task::from(Operation::LineLoad(holder))));
    // The third is no whole access, the fourth contains its status register, and the last one is cached.
    for (at, len, memory_type) in [
        (64, 8, MemoryType::Uc),
        (128, 64, MemoryType::Wc),
        (64, 12, MemoryType::Uc),
        (8, 8, MemoryType::Uc),
        (64, 8, MemoryType::Wt),
    ] {
        let data = Span { at: BarOffset { offset: span.at.offset + at, ..span.at }, len, memory_type };
        let status = BarOffset { offset: span.at.offset + 8, ..span.at };
        let accesses = [Access::Plain(Width::B8), Access::NonTemporal(Width::B16), Access::Memcpy];
        let request = |access| Task::from(Handshake { data, access, status, busy: Ticks::whole_ns(300) });
        bodies.extend(accesses.map(request));
    }
    // An odd size is not an object of a pool, and zero bytes cannot be mapped.
    for bytes in [0, 4096, 100_000] {
        bodies.extend(Means::all().map(|means| Task::from(MapUnmap { means, bytes, pairs: 2 })));
    }
    // An odd size is not whole lines; on real time, data of a device are read by one iteration per sample.
    for bytes in [0, 100, 4096] {
        for discipline in Discipline::ALL {
            let shared = |verb| Task::from(BufferHandoff { verb, discipline, bytes });
            bodies.extend([Verb::Store, Verb::Load].map(shared));
        }
    }
    for access in Access::ALL {
        bodies.push(Step::Copy(BlockCopy { access, block_bytes: 64, zone: span }).into());
    }
    let mut plans: Vec<Plan> = bodies.into_iter().map(|task| Plan::new(task, 2)).collect();
    let on = |core| Lane { core, task: Step::Stream(store.clone()).into() };
    plans.push(Plan::new(vec![on(0), on(1)], 2));
    let line = Span { len: 64, ..span };
    let lines = Medium::Lines { access: Access::Plain(Width::B8), message: line, answer: line };
    plans.extend([lines, Medium::Events].map(|medium| Plan::new(Exchange { cores: [0, 1], medium }, 2)));
    let before = vec![Step::FlushLines(span)];
    let flushed = vec![Step::FlushLines(span), Step::Stream(store.clone())];
    plans.push(Plan::new(CoreWork::after(before, flushed), 2));
    plans
}

/// A launch of one empty kernel.
const LAUNCH: Launch = Launch { kernels: 1, by: LaunchBy::Calls, wait: HostWait::Finish, arguments: Arguments::NONE };

/// Plans that break a rule of [`Plan::check`], by the rule.
fn impossible() -> Vec<(&'static str, Plan)> {
    let read = Transfer { verb: Verb::Load, ..WRITE };
    vec![
        ("two jobs of one card", Plan::new(vec![EngineJob::Transfer(WRITE); 2], 2)),
        ("a job on no channel", Plan::new(OnChannels { transfer: WRITE, channels: 0 }, 2)),
        ("a transfer of 0 B", Plan::new(Transfer { bytes: 0, ..WRITE }, 2)),
        ("a pair without a write", Plan::new(WriteRead { write: read, read: read.window, is_mixed: false }, 2)),
        ("a launch of no kernel", Plan::new(Launch { kernels: 0, ..LAUNCH }, 2)),
        ("a pool object of an odd size", Plan::new(MapUnmap { means: Means::Pool, bytes: 5000, pairs: 1 }, 2)),
    ]
}

/// A write of 64 B to host memory.
const WRITE: Transfer = Transfer {
    card: 0,
    verb: Verb::Store,
    partner: Partner::Host,
    bytes: 64,
    count: 1,
    window: Window { offset: 0, len: 64, pattern: Pattern::Sequential },
    outstanding: None,
};

/// Plans that every machine must refuse, with the reason.
pub fn refused(facts: &Facts) -> Vec<(&'static str, Plan)> {
    let Some(store) = plain_store(facts) else { return impossible() };
    let on = |cores: &[u32]| {
        let task = || store.work.lanes()[0].task.clone();
        Plan::new(cores.iter().map(|core| Lane { core: *core, task: task() }).collect::<Vec<Lane>>(), 2)
    };
    let (launch, placement) = (QueueRequest::Launch(LAUNCH), Placement::Unpinned);
    let mut plans = vec![
        ("no lane", on(&[])),
        ("no pass", Plan { passes: 0, ..store.clone() }),
        ("a core too many", on(&[facts.cores])),
        ("two lanes on one core", on(&[0, 0])),
    ];
    if facts.runtime.is_some() && facts.time_base == TimeBase::Simulated {
        plans.push(("an unpinned thread", Plan::new(QueueWork { core: 0, placement, request: launch }, 2)));
    }
    plans.extend(impossible());
    let Some(region) = facts.storage() else { return plans };
    let types = [MemoryType::Uc, MemoryType::Wc, MemoryType::Wt, MemoryType::Wp, MemoryType::Wb];
    for memory_type in types.into_iter().filter(|memory_type| !facts.memory_types.contains(memory_type)) {
        let span = span(region, 0, 64, memory_type);
        plans.push(("a memory type it has not", stream(Verb::Store, Access::Plain(Width::B8), span)));
    }
    for access in Access::ALL.into_iter().filter(|access| !facts.stores.contains(access)) {
        let span = span(region, 0, 64, facts.memory_types[0]);
        plans.push(("an unsupported instruction", stream(Verb::Store, access, span)));
    }
    plans
}

/// Plans whose span exceeds every region, by one byte or more.
pub fn outside(facts: &Facts) -> Vec<Plan> {
    let Some(memory_type) = facts.memory_types.first() else { return Vec::new() };
    let mut plans = Vec::new();
    for region in &facts.regions {
        let free = |at: u64| {
            let end = region.at.offset.saturating_add(at);
            !facts.regions.iter().any(|other| {
                other.at.bar == region.at.bar && other.at.offset <= end && end - other.at.offset < other.len
            })
        };
        let mut places = vec![(region.len - 4, 5), (region.len, 1), (region.len + (1 << 40), 4), (u64::MAX, 1)];
        places.extend([(0, region.len + 1), (4, u64::MAX - 3)]);
        // If another region follows, the span crosses into it, which is also invalid.
        places.retain(|(at, len)| *at < region.len || *len == 0 || free(*at));
        for (at, len) in places {
            let span = span(region, at, len, *memory_type);
            plans.push(stream(Verb::Load, Access::Plain(Width::B1), span));
            plans.push(stream(Verb::Store, Access::Plain(Width::B1), span));
        }
        let mut elsewhere = span(region, 0, 4, *memory_type);
        elsewhere.at.bar = (0..=u8::MAX).find(|bar| facts.regions.iter().all(|r| r.at.bar != *bar)).unwrap_or(u8::MAX);
        plans.push(stream(Verb::Load, Access::Plain(Width::B4), elsewhere));
    }
    plans
}

/// A load of the last byte of a region.
pub fn last_byte(region: &Region, facts: &Facts) -> Plan {
    let memory_type = facts.memory_types.first().copied().unwrap_or(MemoryType::Uc);
    stream(Verb::Load, Access::Plain(Width::B1), span(region, region.len - 1, 1, memory_type))
}

/// A store whose bytes can be checked afterwards.
pub struct Store {
    /// The plan.
    pub plan: Plan,
    /// Range of bytes in the storage region that the plan stores to.
    pub range: Range<usize>,
}

/// Stores with every instruction and memory type, at several offsets and lengths.
pub fn checkable_stores(facts: &Facts) -> Vec<Store> {
    let Some(region) = facts.storage() else { return Vec::new() };
    let mut stores = Vec::new();
    for access in &facts.stores {
        for memory_type in &facts.memory_types {
            for (at, len) in [(0, 64), (64, 4096), (128, 3), (1024, 4096 + 9)] {
                let plan = stream(Verb::Store, *access, span(region, at, len, *memory_type));
                stores.push(Store { plan, range: at as usize..(at + len) as usize });
            }
        }
    }
    stores
}
