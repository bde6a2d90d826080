//! Cost of `map` and `unmap`: instructions, where valgrind is available, and allocation strategies compared with a B-tree.

use super::{ROUNDS, instructions, row};
use lanemark_dma::{
    AccessOrder, AllocError, AllocRequest, Buffer, Device, DmaError, Domain, FreeList, Invalidation, IovaAllocator,
    IovaRange, MSI_WINDOW, Magazine, MapRequest, Mapping, NullBackend, Permission, Ranges, Sequential, Space,
    SpaceError,
};
use lanemark_units::{HostPhys, HostVirt, Ticks};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

/// First argument of the process that only runs pairs; a kind and a count follow.
pub const PAIRS: &str = "map-pairs";
const PAGE: u64 = 4096;
/// Concurrently live mappings.
const MANY: u64 = 1_000_000;
/// Steps of the mixed trace.
const STEPS: usize = 1 << 18;
/// Most live ranges of that trace.
const HELD: usize = 512;

/// Prints all rows about `map` and `unmap`.
pub fn map_unmap() {
    all_instructions();
    if let Err(error) = times().and_then(|()| many()) {
        eprintln!("map: {error}");
    }
}

fn all_instructions() {
    for (what, pairs) in [
        ("map: Domain::map + unmap of a page, ranges, inlined, instructions (target: 145)", "inlined"),
        ("  the same called", "called"),
        ("  the same, invalidation deferred", "deferred"),
        ("  ranges alone, alloc + release", "ranges"),
        ("  sequential alone", "sequential"),
        ("map: magazine, alloc + release from the core's own (target: 100)", "magazine"),
        ("  baseline: free list in a B-tree", "free list"),
        ("  baseline: the loop alone", "loop"),
    ] {
        match instructions::of(&[PAIRS, pairs], FEW) {
            Some(instructions) => row(what, vec![instructions]),
            None => {
                return println!("map: {}", instructions::NOT_COUNTED);
            }
        }
    }
}

/// Pairs of the shorter run.
const FEW: u64 = 50_000;

/// Runs `count` pairs of one kind, in a separate process.
///
/// # Errors
/// If the kind is unknown, or a pair fails.
pub fn pairs(kind: &str, count: u64) -> Result<(), Box<dyn Error>> {
    let ask = AllocRequest::bytes(Device(0), PAGE);
    match kind {
        "inlined" => {
            // This type has one call site for each, so both are inlined.
            let mut domain =
                Domain::new("pairs", Ranges::new(space()?)?, NullBackend::<HostPhys>::new(), Invalidation::Strict)?;
            let request = MapRequest::new(domain.attach("card")?, Permission::ReadWrite);
            for _ in 0..count {
                let mut buffer = black_box(Buffer::new(HostPhys(0x1000), PAGE));
                let mapping = domain.map(&mut buffer, request, Ticks::ZERO)?;
                black_box(mapping.iova());
                domain.unmap(mapping, Ticks::ZERO)?;
            }
        }
        "called" => called(Invalidation::Strict, count)?,
        "deferred" => called(Invalidation::DEFERRED, count)?,
        "ranges" => alone(Ranges::new(space()?)?, ask, count)?,
        "sequential" => {
            let mut strategy = Sequential::new(Ranges::new(space()?)?)?;
            strategy.set_order(Device(0), AccessOrder::Sequential)?;
            alone(strategy, ask, count)?;
        }
        "magazine" => alone(Magazine::new(space()?, 1)?.core(0)?, ask, count)?,
        "free list" => alone(FreeList::new(space()?), ask, count)?,
        "loop" => (0..count).for_each(|_| {
            black_box(Buffer::new(HostPhys(0x1000), PAGE));
            black_box(0_u64);
        }),
        kind => return Err(format!("unknown kind of pairs: {kind}").into()),
    }
    Ok(())
}

/// A domain with another address kind, which is a separate type, so that calls of the other type stay inlined.
type CalledDomain = Domain<Ranges, NullBackend<HostVirt>>;

#[inline(never)]
fn map(domain: &mut CalledDomain, page: u64, request: MapRequest) -> Result<Mapping, DmaError> {
    domain.map(&mut Buffer::new(HostVirt(page), PAGE), request, Ticks::ZERO)
}

#[inline(never)]
fn unmap(domain: &mut CalledDomain, mapping: Mapping) -> Result<(), DmaError> {
    domain.unmap(mapping, Ticks::ZERO)
}

fn called(policy: Invalidation, count: u64) -> Result<(), Box<dyn Error>> {
    let mut domain = Domain::new("pairs", Ranges::new(space()?)?, NullBackend::new(), policy)?;
    let request = MapRequest::new(domain.attach("card")?, Permission::ReadWrite);
    for _ in 0..count {
        let mapping = map(&mut domain, black_box(0x1000), request)?;
        unmap(&mut domain, mapping)?;
    }
    Ok(())
}

fn alone(mut strategy: impl IovaAllocator, ask: AllocRequest, count: u64) -> Result<(), Box<dyn Error>> {
    for _ in 0..count {
        let range = strategy.alloc(AllocRequest { len_bytes: black_box(PAGE), ..ask })?;
        black_box(range.at);
        strategy.release(Device(0), range)?;
    }
    Ok(())
}

/// A mixed trace: allocation and release of ranges of 1 to 32 pages, at most 512 live.
fn times() -> Result<(), Box<dyn Error>> {
    let trace = trace();
    let (mut magazines, mut twins, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let (mut two, mut scaling) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let magazine = Magazine::new(space()?, 2)?;
        let one = turns(&mut magazine.core(0)?, &trace)?;
        let twin = turns(&mut FreeList::new(space()?), &trace)?;
        let mut cores = [magazine.core(0)?, magazine.core(1)?];
        let [first, second] = std::thread::scope(|scope| {
            let [first, second] = &mut cores;
            let other = scope.spawn(|| turns(second, &trace));
            [turns(first, &trace), other.join().unwrap_or(Err(AllocError::Empty))]
        });
        let both = first? + second?;
        magazines.push(one);
        twins.push(twin);
        ratios.push(one / twin);
        two.push(both);
        scaling.push(both / one);
    }
    row("map: magazine, mixed trace of 1 to 32 pages, M steps per second on core", magazines);
    row("  baseline: free list in a B-tree", twins);
    row("  magazine relative to the free list, times (target: 3)", ratios);
    row("  two cores concurrently, M steps per second on core, sum", two);
    row("  two cores relative to one, times", scaling);
    Ok(())
}

/// A million live mappings: memory, and the time of a map.
fn many() -> Result<(), Box<dyn Error>> {
    let mut pair_ns = Vec::new();
    let mut grown = Vec::new();
    for _ in 0..ROUNDS {
        let before = resident_bytes();
        let ranges = Ranges::new(Space::of_device(36)?)?;
        let mut domain = Domain::new("many", ranges, NullBackend::new(), Invalidation::DEFERRED)?;
        let request = MapRequest::new(domain.attach("card")?, Permission::Read);
        let start = Instant::now();
        for page in 0..MANY {
            let _ = black_box(map(&mut domain, page * PAGE, request)?);
        }
        pair_ns.push(start.elapsed().as_secs_f64() * 1e9 / MANY as f64);
        if let (Some(before), Some(after)) = (before, resident_bytes()) {
            grown.push(after.saturating_sub(before) as f64 / 1e6);
        }
    }
    row("map: a million live mappings, ranges, additional MB of memory (target: 100)", grown);
    row("  one map, ns", pair_ns);
    Ok(())
}

fn space() -> Result<Space, SpaceError> {
    Space::of_device(32)?.without(MSI_WINDOW)
}

/// Steps of the trace: index and bytes; a step frees the range at the index, or allocates one.
fn trace() -> Vec<(usize, u64)> {
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    (0..STEPS).map(|_| (next(HELD as u64) as usize, PAGE << next(6))).collect()
}

/// Replays the trace; returns million steps per second of the time that this thread was on a core.
fn turns(strategy: &mut impl IovaAllocator, trace: &[(usize, u64)]) -> Result<f64, AllocError> {
    const TURNS: usize = 8;
    let (start, on_core) = (Instant::now(), on_core_ns());
    for _ in 0..TURNS {
        play(strategy, trace)?;
    }
    let elapsed_ns = start.elapsed().as_nanos() as f64;
    let ns = on_core_ns().zip(on_core).map_or(elapsed_ns, |(after, before)| after - before);
    Ok((TURNS * STEPS) as f64 / ns * 1e3)
}

/// Time that this thread was on a core, by Linux accounting, in ns.
fn on_core_ns() -> Option<f64> {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    counts.split_whitespace().next()?.parse().ok()
}

fn play(strategy: &mut impl IovaAllocator, trace: &[(usize, u64)]) -> Result<(), AllocError> {
    let mut held: Vec<Option<IovaRange>> = vec![None; HELD];
    for (place, len_bytes) in trace {
        match held[*place].take() {
            Some(range) => strategy.release(Device(0), range)?,
            None => held[*place] = Some(strategy.alloc(AllocRequest::bytes(Device(0), *len_bytes))?),
        }
    }
    held.into_iter().flatten().try_for_each(|range| strategy.release(Device(0), range))
}

/// Resident memory of this process.
fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    pages.split_whitespace().nth(1)?.parse::<u64>().ok().map(|pages| pages * 4096)
}
