//! Magazines: per-core caches of freed pages; cores synchronise only if a magazine is full or empty.
//!
//! Source: Bonwick and Adams, "Magazines and Vmem", USENIX 2001; Linux `drivers/iommu/iova.c` uses the same sizes.

use super::{AllocError, AllocRequest, Buddy, Device, IovaAllocator, IovaRange};
use crate::space::Space;
use lanemark_units::Iova;
#[cfg(test)]
use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
#[cfg(test)]
use loom::sync::{Mutex, MutexGuard};
#[cfg(test)]
use loom::thread::yield_now;
#[cfg(not(test))]
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, PoisonError, atomic::Ordering};
#[cfg(not(test))]
use std::sync::{Mutex, MutexGuard};
#[cfg(not(test))]
use std::thread::yield_now;

/// Number of cached sizes: 1, 2, 4 to 32 pages.
const SIZES: usize = 6;

/// State shared by all cores: a depot of free pages for each size, and a [`Buddy`] allocator behind it.
///
/// Grants are naturally aligned blocks of 2^n pages. A freed block of up to 32 pages goes into a magazine of the core
/// that frees it, and the next request for that size on that core is served from there: the cost is one uncontended
/// flag and one counter. Half of a full magazine moves to the depot; an empty one is refilled by half from it.
///
/// Cached blocks are never lost: before a request is refused, all magazines of all cores are emptied into the buddy
/// allocator.
///
/// ```
/// use lanemark_dma::{AllocRequest, Device, IovaAllocator, Magazine, Space};
/// use std::thread;
/// let magazine = Magazine::new(Space::of_device(32)?, 2)?;
/// let mut cores = [magazine.core(0)?, magazine.core(1)?];
/// thread::scope(|scope| {
///     for core in &mut cores {
///         scope.spawn(|| {
///             for _ in 0..1000 {
///                 let range = core.alloc(AllocRequest::bytes(Device(0), 4096)).expect("a page is free");
///                 core.free(Device(0), range).expect("it is allocated");
///             }
///         });
///     }
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Magazine {
    space: Space,
    page_bits: u32,
    longest_bytes: u64,
    /// Half the capacity of a magazine: the number of blocks moved to or from the depot in one step.
    half: usize,
    cores: Vec<Lane>,
    depot: Mutex<Depot>,
}

/// A core's magazines, on separate cache lines. `is_held` is a spin lock that wakes no thread: the magazines are
/// accessed by relaxed loads and stores while it is held, and one store releases it.
#[derive(Debug)]
#[repr(align(128))]
struct Lane {
    is_held: AtomicBool,
    magazines: [Rounds; SIZES],
}

/// A magazine: a stack of first pages.
#[derive(Debug)]
struct Rounds {
    len: AtomicUsize,
    firsts: Box<[AtomicU64]>,
}

/// Exclusive access to a lane's magazines.
struct Held<'a>(&'a Lane);

impl Lane {
    fn new(half: usize) -> Lane {
        let firsts = || (0..2 * half).map(|_| AtomicU64::new(0)).collect();
        let magazines = std::array::from_fn(|_| Rounds { len: AtomicUsize::new(0), firsts: firsts() });
        Lane { is_held: AtomicBool::new(false), magazines }
    }

    #[inline]
    fn hold(&self) -> Held<'_> {
        if !self.try_hold() {
            self.wait();
        }
        Held(self)
    }

    #[inline]
    fn try_hold(&self) -> bool {
        self.is_held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Yields until the lane is free: another core empties all magazines, or a preempted thread of this core holds it.
    #[cold]
    #[inline(never)]
    fn wait(&self) {
        while !self.try_hold() {
            yield_now();
        }
    }
}

impl Held<'_> {
    #[inline]
    fn magazine(&self, order: u32) -> Option<&Rounds> {
        self.0.magazines.get(order as usize)
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.is_held.store(false, Ordering::Release);
    }
}

impl Rounds {
    /// Pushes a block; false if the magazine is full.
    #[inline]
    fn push(&self, first: u64) -> bool {
        let len = self.len.load(Ordering::Relaxed);
        let Some(place) = self.firsts.get(len) else { return false };
        place.store(first, Ordering::Relaxed);
        self.len.store(len + 1, Ordering::Relaxed);
        true
    }

    /// Pops the block pushed last.
    #[inline]
    fn pop(&self) -> Option<u64> {
        let top = self.len.load(Ordering::Relaxed).wrapping_sub(1);
        let first = self.firsts.get(top)?.load(Ordering::Relaxed);
        self.len.store(top, Ordering::Relaxed);
        Some(first)
    }
}

#[derive(Debug)]
struct Depot {
    /// First pages of surplus blocks, by size.
    spare: [Vec<u64>; SIZES],
    buddy: Buddy,
}

/// Locks `mutex`, also if it is poisoned: no panic can leave the data under it inconsistent.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Magazine {
    /// Default for half the capacity of a magazine.
    pub const HALF: usize = 128;
    /// Capacity of the depot for each size, in half magazines.
    pub const DEPOT_HALVES: usize = 32;
    /// Maximum number of cores.
    pub const MOST_CORES: usize = 4096;

    /// Magazines for `cores` cores over `space`, all of it free.
    ///
    /// # Errors
    /// [`AllocError::TooMany`] if `cores` is 0 or above [`Magazine::MOST_CORES`].
    pub fn new(space: Space, cores: usize) -> Result<Arc<Magazine>, AllocError> {
        Magazine::of_halves(space, cores, Magazine::HALF)
    }

    /// As [`Magazine::new`], with a magazine capacity of twice `half`.
    ///
    /// # Errors
    /// As [`Magazine::new`]; also if `half` is 0 or above 4096.
    pub fn of_halves(space: Space, cores: usize, half: usize) -> Result<Arc<Magazine>, AllocError> {
        for (what, wanted, most) in [("cores", cores, Magazine::MOST_CORES), ("halves", half, 4096)] {
            if wanted == 0 || wanted > most {
                return Err(AllocError::TooMany { what, wanted: wanted as u64, most: most as u64 });
            }
        }
        let buddy = Buddy::new(space.clone());
        Ok(Arc::new(Magazine {
            page_bits: space.page_bits(),
            longest_bytes: buddy.longest_bytes(),
            space,
            half,
            cores: (0..cores).map(|_| Lane::new(half)).collect(),
            depot: Mutex::new(Depot { spare: Default::default(), buddy }),
        }))
    }

    /// The allocator of core `core`. Several allocators of one core share its magazines.
    ///
    /// # Errors
    /// [`AllocError::TooMany`] if `core` is not below the number of cores.
    pub fn core(self: &Arc<Magazine>, core: usize) -> Result<MagazineCore, AllocError> {
        if core >= self.cores.len() {
            let (wanted, most) = (core as u64 + 1, self.cores.len() as u64);
            return Err(AllocError::TooMany { what: "cores", wanted, most });
        }
        Ok(MagazineCore { magazine: Arc::clone(self), core })
    }

    #[inline]
    fn alloc(&self, core: usize, ask: AllocRequest) -> Result<IovaRange, AllocError> {
        let last = ask.len_bytes.wrapping_sub(1);
        // The order that fits both the length and the alignment, in pages.
        let order = u64::BITS - (last >> self.page_bits).leading_zeros();
        let order = order.max(ask.align.bits().saturating_sub(self.page_bits));
        // A separate statement, so that the lane is released before `alloc_shared` locks it. Length 0 has no order.
        let cached = self.cores[core].hold().magazine(order).and_then(Rounds::pop);
        match cached {
            Some(first) => Ok(self.range(first, order)),
            None => self.alloc_shared(core, ask),
        }
    }

    #[inline]
    fn range(&self, first: u64, order: u32) -> IovaRange {
        IovaRange { at: Iova(first << self.page_bits), len_bytes: 1 << (order + self.page_bits) }
    }

    /// Allocates from the depot, else from the buddy allocator, else after emptying all magazines.
    #[cold]
    #[inline(never)]
    fn alloc_shared(&self, core: usize, ask: AllocRequest) -> Result<IovaRange, AllocError> {
        let order = locked(&self.depot).buddy.order(ask)?;
        if let Some(magazine) = self.cores[core].hold().magazine(order) {
            let mut depot = locked(&self.depot);
            let spare = &mut depot.spare[order as usize];
            let rest = spare.len().saturating_sub(self.half);
            // Another thread of this core may have refilled it meanwhile; the rest stays in the depot.
            while spare.len() > rest && spare.last().is_some_and(|first| magazine.push(*first)) {
                spare.pop();
            }
            if let Some(first) = magazine.pop() {
                return Ok(self.range(first, order));
            }
        }
        let mut first = locked(&self.depot).buddy.take(order);
        if first.is_none() {
            self.empty();
            first = locked(&self.depot).buddy.take(order);
        }
        // Blocks that other cores freed into their magazines meanwhile are counted by the next request.
        first.map(|first| self.range(first, order)).ok_or_else(|| locked(&self.depot).buddy.exhausted(ask))
    }

    /// Moves all cached blocks to the buddy allocator. Locks one core at a time, each for a short time.
    pub fn empty(&self) {
        for lane in &self.cores {
            let held = lane.hold();
            let mut depot = locked(&self.depot);
            for (order, magazine) in (0..).zip(&held.0.magazines) {
                while let Some(first) = magazine.pop() {
                    depot.put(first, order);
                }
            }
        }
        let mut depot = locked(&self.depot);
        for order in 0..SIZES {
            for first in std::mem::take(&mut depot.spare[order]) {
                depot.put(first, order as u32);
            }
        }
    }

    #[inline]
    fn release(&self, core: usize, range: IovaRange) -> Result<(), AllocError> {
        let order = range.len_bytes.trailing_zeros().wrapping_sub(self.page_bits);
        let first = range.at.0 >> self.page_bits;
        if self.cores[core].hold().magazine(order).is_some_and(|magazine| magazine.push(first)) {
            return Ok(());
        }
        self.free_shared(core, range)
    }

    /// Frees a block without a free place in a magazine: half of the magazine moves to the depot, or to the buddy
    /// allocator if the depot is full. A block of an uncached size goes to the buddy allocator.
    #[cold]
    #[inline(never)]
    fn free_shared(&self, core: usize, range: IovaRange) -> Result<(), AllocError> {
        let (first, order) = locked(&self.depot).buddy.block(range)?;
        let held = self.cores[core].hold();
        let mut depot = locked(&self.depot);
        if let Some(magazine) = held.magazine(order) {
            for _ in 0..self.half {
                let Some(first) = magazine.pop() else { break };
                let spare = &mut depot.spare[order as usize];
                if spare.len() < Magazine::DEPOT_HALVES * self.half {
                    spare.push(first);
                } else {
                    depot.put(first, order);
                }
            }
            // It has free places: this thread holds the lane.
            magazine.push(first);
            return Ok(());
        }
        if depot.buddy.put(first, order) { Ok(()) } else { Err(AllocError::NotOut { range }) }
    }
}

impl Depot {
    /// Returns a cached block to the buddy allocator.
    fn put(&mut self, first: u64, order: u32) {
        let was_out = self.buddy.put(first, order);
        debug_assert!(was_out, "page {first:#x} was in two magazines: it was freed twice");
    }
}

/// The allocator of one core of a [`Magazine`]. It may move to another thread.
///
/// It does not detect a double free of a cached size, because allocated blocks are not recorded. A
/// [`Domain`](crate::Domain) never frees a range twice.
#[derive(Debug, Clone)]
pub struct MagazineCore {
    magazine: Arc<Magazine>,
    core: usize,
}

impl IovaAllocator for MagazineCore {
    fn name(&self) -> &'static str {
        "magazine"
    }

    fn space(&self) -> &Space {
        &self.magazine.space
    }

    fn longest_bytes(&self) -> u64 {
        self.magazine.longest_bytes
    }

    #[inline]
    fn alloc(&mut self, ask: AllocRequest) -> Result<IovaRange, AllocError> {
        self.magazine.alloc(self.core, ask)
    }

    fn free(&mut self, _: Device, range: IovaRange) -> Result<(), AllocError> {
        locked(&self.magazine.depot).buddy.block(range)?;
        self.magazine.release(self.core, range)
    }

    #[inline]
    fn release(&mut self, _: Device, range: IovaRange) -> Result<(), AllocError> {
        self.magazine.release(self.core, range)
    }
}

#[cfg(test)]
mod tests {
    //! Tests under `loom`, which explores every interleaving of the lane flag and the depot lock. `tests/strategies.rs`
    //! compares the granted ranges with the reference allocator.

    use super::*;
    use loom::thread;

    /// A space of `pages` pages.
    fn space(pages: u64) -> Space {
        Space::between(Iova(0), Iova(pages * 4096 - 1), 4096).unwrap()
    }

    fn page(core: &mut MagazineCore) -> Option<IovaRange> {
        core.alloc(AllocRequest::bytes(Device(0), 4096)).ok()
    }

    /// Runs `model` under `loom` with at most two preemptions, which covers every pair of steps.
    fn every_order(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(model);
    }

    #[test]
    fn two_cores_never_get_the_same_page() {
        every_order(|| {
            let magazine = Magazine::of_halves(space(2), 2, 1).unwrap();
            let mut cores = [0, 1].map(|core| magazine.core(core).unwrap());
            let mut other = cores[1].clone();
            let thread = thread::spawn(move || {
                let first = page(&mut other).unwrap();
                other.release(Device(0), first).unwrap();
                page(&mut other).unwrap()
            });
            let here = page(&mut cores[0]).unwrap();
            assert_ne!(here.at, thread.join().unwrap().at);
            assert_eq!(page(&mut cores[0]), None);
        });
    }

    #[test]
    fn threads_that_share_a_core_never_get_the_same_page() {
        every_order(|| {
            let magazine = Magazine::of_halves(space(2), 1, 1).unwrap();
            let mut here = magazine.core(0).unwrap();
            let mut other = here.clone();
            let first = page(&mut here).unwrap();
            here.release(Device(0), first).unwrap();
            let thread = thread::spawn(move || page(&mut other).unwrap());
            let mine = page(&mut here).unwrap();
            assert_ne!(mine.at, thread.join().unwrap().at);
        });
    }

    #[test]
    fn a_page_in_another_cores_magazine_is_found_before_a_request_is_refused() {
        every_order(|| {
            let magazine = Magazine::of_halves(space(2), 2, 1).unwrap();
            let (mut here, mut there) = (magazine.core(0).unwrap(), magazine.core(1).unwrap());
            let kept = page(&mut there).unwrap();
            there.release(Device(0), kept).unwrap();
            let thread = thread::spawn(move || {
                let page = page(&mut there).unwrap();
                there.release(Device(0), page).unwrap();
            });
            let mine = page(&mut here).unwrap();
            thread.join().unwrap();
            let other = page(&mut here).expect("it is in the other core's magazine");
            assert_ne!(mine.at, other.at);
        });
    }

    #[test]
    fn a_page_can_be_freed_on_another_core() {
        every_order(|| {
            let magazine = Magazine::of_halves(space(4), 2, 1).unwrap();
            let (mut here, mut there) = (magazine.core(0).unwrap(), magazine.core(1).unwrap());
            let pages: Vec<_> = (0..4).map(|_| page(&mut here).unwrap()).collect();
            let thread = thread::spawn(move || {
                for range in &pages[..3] {
                    there.release(Device(0), *range).unwrap();
                }
                pages[3]
            });
            let got = page(&mut here);
            let last = thread.join().unwrap();
            here.release(Device(0), last).unwrap();
            let more = (0..4).map_while(|_| page(&mut here)).count();
            assert_eq!(usize::from(got.is_some()) + more, 4, "all pages are present, none twice");
        });
    }
}
