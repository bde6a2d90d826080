//! Every strategy against a simple model of its pages: which are allocated, which are free, and what would fit.

use lanemark_dma::{
    AccessOrder, Align, AllocError, AllocRequest, Buddy, Device, FreeList, IovaAllocator, IovaRange, MSI_WINDOW,
    Magazine, Pool, Purge, Ranges, Region, Sequential, Space,
};
use lanemark_units::Iova;
use proptest::prelude::*;

const PAGE: u64 = 4096;

/// The allocated pages of a space.
struct Model {
    space: Space,
    first: u64,
    is_out: Vec<bool>,
}

impl Model {
    fn new(space: &Space, first: u64, last: u64) -> Model {
        Model {
            space: space.clone(),
            first: first / PAGE,
            is_out: vec![false; (last / PAGE - first / PAGE + 1) as usize],
        }
    }

    fn is_free(&self, page: u64) -> bool {
        let at = page.checked_sub(self.first).and_then(|at| self.is_out.get(at as usize));
        at == Some(&false) && self.space.contains(Iova(page * PAGE), PAGE)
    }

    /// The lowest run of `pages` free pages at a multiple of `align` pages.
    fn lowest(&self, pages: u64, align: u64) -> Option<u64> {
        let end = self.first + self.is_out.len() as u64;
        (self.first.next_multiple_of(align)..end)
            .step_by(align as usize)
            .find(|at| (*at..at + pages).all(|page| self.is_free(page)))
    }

    fn free_pages(&self) -> u64 {
        (self.first..self.first + self.is_out.len() as u64).filter(|page| self.is_free(*page)).count() as u64
    }

    fn take(&mut self, range: IovaRange) {
        for page in range.at.0 / PAGE..=(range.at.0 + (range.len_bytes - 1)) / PAGE {
            assert!(self.is_free(page), "{range}: page {page:#x} is allocated, reserved, or not in the space");
            self.is_out[(page - self.first) as usize] = true;
        }
    }

    fn give_back(&mut self, range: IovaRange) {
        for page in range.at.0 / PAGE..=(range.at.0 + (range.len_bytes - 1)) / PAGE {
            self.is_out[(page - self.first) as usize] = false;
        }
    }
}

/// Checks that a request of `longest_bytes` succeeds and a longer one fails.
fn is_longest(strategy: &mut dyn IovaAllocator, longest_bytes: u64) {
    let longer = strategy.alloc(AllocRequest::bytes(Device(0), longest_bytes + 1));
    assert!(matches!(longer, Err(AllocError::Exhausted { .. } | AllocError::TooLong { .. })), "{longer:?}");
    if longest_bytes > 0 {
        let longest = strategy.alloc(AllocRequest::bytes(Device(0), longest_bytes)).expect("it is reported as free");
        strategy.free(Device(0), longest).unwrap();
    }
}

#[derive(Debug, Clone)]
enum Act {
    Alloc { len_bytes: u64, align: Align },
    Free(prop::sample::Index),
}

fn acts(most_pages: u64, most_align_bits: u32) -> impl Strategy<Value = Vec<Act>> {
    let alloc = (1..=most_pages * PAGE, 0..=most_align_bits)
        .prop_map(|(len_bytes, bits)| Act::Alloc { len_bytes, align: Align::of_bytes(1 << bits).unwrap() });
    let free = any::<prop::sample::Index>().prop_map(Act::Free);
    prop::collection::vec(prop_oneof![3 => alloc, 2 => free], 1..200)
}

/// First and last byte of three spaces: around the MSI window, up to the last address, and one with unaligned ends.
const SPACES: [(u64, u64); 3] =
    [(0xfee0_0000 - 0x8_0000, 0xfef0_0000 + 0x8_0000), (u64::MAX - 0xf_ffff, u64::MAX), (0x10_3000, 0x1b_4fff)];

fn space(which: usize) -> (Space, u64, u64) {
    let (first, last) = SPACES[which];
    let space = Space::between(Iova(first), Iova(last), PAGE).unwrap();
    // The MSI window is in the first space only; one page in the middle is always reserved.
    let middle = Iova(first + (last - first) / 3);
    let space = space.without(MSI_WINDOW).unwrap();
    (space.without(Region { name: "one byte", first: middle, last: middle }).unwrap(), first, last)
}

/// Plays `acts` and checks each grant: free, in the space, long enough and aligned. A request is granted if and only if
/// `shape` (pages and their alignment for a request) fits somewhere.
fn play(
    strategy: &mut dyn IovaAllocator,
    (which, lowest_first): (usize, bool),
    acts: Vec<Act>,
    shape: impl Fn(u64, u64) -> (u64, u64),
) {
    let (space, first, last) = space(which);
    let mut model = Model::new(&space, first, last);
    let mut out = Vec::new();
    for act in acts {
        match act {
            Act::Alloc { len_bytes, align } => {
                let (pages, align_pages) = shape(len_bytes.div_ceil(PAGE), (align.bytes() / PAGE).max(1));
                let fits = model.lowest(pages, align_pages);
                match strategy.alloc(AllocRequest { device: Device(0), len_bytes, align }) {
                    Ok(range) => {
                        assert!(fits.is_some(), "{range} was granted, but nothing fits");
                        assert!(range.len_bytes >= len_bytes && range.at.0 % align.bytes().max(PAGE) == 0, "{range}");
                        assert!(!lowest_first || fits == Some(range.at.0 / PAGE), "{range} is not the lowest");
                        model.take(range);
                        out.push(range);
                    }
                    Err(AllocError::Exhausted { free_bytes, longest_bytes, .. }) => {
                        assert_eq!(fits, None, "refused, but it fits");
                        assert!(free_bytes <= model.free_pages() * PAGE && longest_bytes <= free_bytes);
                        is_longest(strategy, longest_bytes);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Act::Free(which) if !out.is_empty() => {
                let range = out.swap_remove(which.index(out.len()));
                strategy.free(Device(0), range).unwrap();
                model.give_back(range);
            }
            Act::Free(_) => {}
        }
    }
    for range in out {
        strategy.free(Device(0), range).unwrap();
        model.give_back(range);
    }
    let (pages, align_pages) = shape(1, 1);
    let mut count = 0;
    while let Some(at) = model.lowest(pages, align_pages) {
        model.take(IovaRange { at: Iova(at * PAGE), len_bytes: pages * PAGE });
        count += 1;
    }
    let all: Vec<_> =
        (0..count).map(|_| strategy.alloc(AllocRequest::bytes(Device(0), 1)).expect("everything is free")).collect();
    assert!(matches!(
        strategy.alloc(AllocRequest::bytes(Device(0), 1)),
        Err(AllocError::Exhausted { len_bytes: 1, .. })
    ));
    for range in all {
        strategy.free(Device(0), range).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_free_list_grants_the_lowest_place_that_fits(which in 0..3_usize, acts in acts(40, 18)) {
        play(&mut FreeList::new(space(which).0), (which, true), acts, |pages, align| (pages, align));
    }

    #[test]
    fn the_buddy_allocator_grants_a_power_of_two_wherever_one_is_free(which in 0..3_usize, acts in acts(40, 18)) {
        let shape = |pages: u64, align: u64| (pages.next_power_of_two().max(align), pages.next_power_of_two().max(align));
        play(&mut Buddy::new(space(which).0), (which, false), acts, shape);
    }

    #[test]
    fn magazines_grant_whatever_the_buddy_allocator_would_grant(
        which in 0..3_usize, half in 1..4_usize, acts in acts(40, 18), other in acts(4, 12),
    ) {
        let shape = |pages: u64, align: u64| (pages.next_power_of_two().max(align), pages.next_power_of_two().max(align));
        let magazine = Magazine::of_halves(space(which).0, 2, half).unwrap();
        // Pages in the other core's magazines are found when they are needed.
        play(&mut magazine.core(1).unwrap(), (which, false), other, shape);
        play(&mut magazine.core(0).unwrap(), (which, false), acts, shape);
    }

    #[test]
    fn ranges_grant_the_lowest_free_range(which in 0..3_usize, bits in 0..5_u32, acts in acts(1, 18)) {
        let pages = 1_u64 << bits;
        let mut ranges = match Ranges::of_pages(space(which).0, pages) {
            Ok(ranges) => ranges,
            Err(AllocError::Exhausted { .. }) => return Ok(()),
            Err(error) => panic!("{error}"),
        };
        play(&mut ranges, (which, true), acts, |_, align| (pages, align.max(pages)));
    }

    #[test]
    fn ranges_in_another_order_are_the_same_ranges(which in 0..3_usize, bits in 0..4_u32, acts in acts(8, 12)) {
        let mut ranges = Ranges::new(space(which).0).unwrap().over_entries(1 << bits).unwrap();
        play(&mut ranges, (which, false), acts, |_, _| (8, 8));
    }

    #[test]
    fn a_sequential_device_gets_pages_wherever_they_fit_in_its_ranges(acts in acts(8, 14)) {
        let mut strategy = Sequential::new(Ranges::new(space(0).0).unwrap()).unwrap();
        strategy.set_order(Device(0), AccessOrder::Sequential).unwrap();
        // It is the only device and may get every range, so whatever fits in a range is granted.
        let (space, first, last) = space(0);
        let mut model = Model::new(&space, first, last);
        let mut out: Vec<IovaRange> = Vec::new();
        for act in acts {
            match act {
                Act::Alloc { len_bytes, align } => {
                    let (pages, align_pages) = (len_bytes.div_ceil(PAGE), (align.bytes() / PAGE).max(1));
                    let whole = |range: u64| (range * 8..range * 8 + 8).all(|page| space.contains(Iova(page * PAGE), PAGE));
                    let fits = (first / PAGE / 8..=last / PAGE / 8).filter(|range| whole(*range)).any(|range| {
                        (range * 8..=range * 8 + 8 - pages)
                            .step_by(align_pages as usize)
                            .any(|at| (at..at + pages).all(|page| model.is_free(page)))
                    });
                    match strategy.alloc(AllocRequest { device: Device(0), len_bytes, align }) {
                        Ok(range) => {
                            prop_assert!(fits && range.len_bytes == pages * PAGE && range.at.0 % align.bytes().max(PAGE) == 0);
                            model.take(range);
                            out.push(range);
                        }
                        Err(error) => prop_assert!(!fits, "refused, but it fits: {}", error),
                    }
                }
                Act::Free(which) if !out.is_empty() => {
                    let range = out.swap_remove(which.index(out.len()));
                    strategy.free(Device(0), range).unwrap();
                    prop_assert!(strategy.free(Device(0), range).is_err(), "twice");
                    model.give_back(range);
                }
                Act::Free(_) => {}
            }
        }
    }

    #[test]
    fn freeing_what_is_not_allocated_is_refused_and_changes_nothing(at in 0..64_u64, pages in 1..10_u64, odd in 0..2_u64) {
        let space = || Space::between(Iova(0), Iova(64 * PAGE - 1), PAGE).unwrap();
        let gap = Region { name: "gap", first: Iova(16 * PAGE), last: Iova(24 * PAGE - 1) };
        let mut sequential = Sequential::new(Ranges::new(space().without(gap).unwrap()).unwrap()).unwrap();
        sequential.set_order(Device(0), AccessOrder::Sequential).unwrap();
        let mut strategies: [Box<dyn IovaAllocator>; 6] = [
            Box::new(FreeList::new(space().without(gap).unwrap())),
            Box::new(Buddy::new(space().without(gap).unwrap())),
            Box::new(Ranges::new(space().without(gap).unwrap()).unwrap()),
            Box::new(Ranges::new(space().without(gap).unwrap()).unwrap().over_entries(4).unwrap()),
            Box::new(sequential),
            Box::new(Pool::over(IovaRange { at: Iova(0), len_bytes: 64 * PAGE }, PAGE).unwrap()),
        ];
        for strategy in &mut strategies {
            let out = strategy.alloc(AllocRequest::bytes(Device(0), PAGE)).unwrap();
            let range = IovaRange { at: Iova(at * PAGE + odd), len_bytes: pages * PAGE };
            if range == out {
                continue;
            }
            let refused = strategy.free(Device(0), range);
            prop_assert!(matches!(refused, Err(AllocError::NotOut { .. })), "{}: {range}", strategy.name());
            prop_assert!(strategy.free(Device(0), out).is_ok(), "{}", strategy.name());
            prop_assert!(strategy.free(Device(0), out).is_err(), "{}: twice", strategy.name());
        }
    }
}

#[test]
fn a_range_that_begins_or_ends_inside_a_page_is_not_freed() {
    let space = || Space::between(Iova(0), Iova(64 * PAGE - 1), PAGE).unwrap();
    let mut sequential = Sequential::new(Ranges::new(space()).unwrap()).unwrap();
    sequential.set_order(Device(0), AccessOrder::Sequential).unwrap();
    let mut strategies: [Box<dyn IovaAllocator>; 4] = [
        Box::new(FreeList::new(space())),
        Box::new(Buddy::new(space())),
        Box::new(Ranges::new(space()).unwrap()),
        Box::new(sequential),
    ];
    for strategy in &mut strategies {
        let out = strategy.alloc(ask(PAGE)).unwrap();
        for (at, len_bytes) in [(1, 0), (0, 1), (1, 1)] {
            let range = IovaRange { at: Iova(out.at.0 + at), len_bytes: out.len_bytes + len_bytes };
            let refused = strategy.free(Device(0), range);
            assert_eq!(refused, Err(AllocError::NotOut { range }), "{}", strategy.name());
        }
        assert_eq!(strategy.free(Device(0), out), Ok(()), "{}", strategy.name());
    }
}

fn ask(len_bytes: u64) -> AllocRequest {
    AllocRequest::bytes(Device(0), len_bytes)
}

fn wide() -> Space {
    Space::between(Iova(0x1000), Iova((8 << 30) - 1), PAGE).unwrap()
}

#[test]
fn every_strategy_with_large_pages_aligns_them() {
    let mut strategies: [Box<dyn IovaAllocator>; 4] = [
        Box::new(FreeList::new(wide())),
        Box::new(Buddy::new(wide())),
        Box::new(Magazine::new(wide(), 1).unwrap().core(0).unwrap()),
        Box::new(Ranges::of_pages(wide(), 512).unwrap()),
    ];
    for strategy in &mut strategies {
        for align in [Align::MIB_2, Align::GIB_1] {
            let range = strategy.alloc(AllocRequest { align, ..ask(2 << 20) }).unwrap();
            assert_eq!(range.at.0 % align.bytes(), 0, "{}", strategy.name());
        }
        let beyond = Align::of_bytes(1 << 40).unwrap();
        assert!(strategy.alloc(AllocRequest { align: beyond, ..ask(4096) }).is_err(), "{}", strategy.name());
    }
    assert_eq!((Align::of_bytes(3), Align::of_bytes(0)), (None, None));
}

#[test]
fn a_request_longer_than_a_range_is_refused_by_ranges() {
    let mut ranges = Ranges::new(wide()).unwrap();
    assert_eq!(ranges.alloc(ask(8 * PAGE)).unwrap().len_bytes, 8 * PAGE);
    let refused = ranges.alloc(ask(8 * PAGE + 1));
    assert_eq!(refused, Err(AllocError::TooLong { len_bytes: 8 * PAGE + 1, longest_bytes: 8 * PAGE }));
    assert_eq!(ranges.alloc(ask(0)), Err(AllocError::Empty));
    let bits = |bits| Ranges::of_pages(Space::of_device(bits).unwrap(), 8).map(|ranges| ranges.free_ranges());
    assert_eq!(bits(39), Ok(Ranges::MOST));
    assert_eq!(bits(40), Err(AllocError::TooMany { what: "ranges", wanted: 2 * Ranges::MOST, most: Ranges::MOST }));
    assert!(Ranges::of_pages(wide(), 3).is_err() && Ranges::of_pages(wide(), 1 << 21).is_err());
}

#[test]
fn up_to_256_allocated_ranges_never_share_an_iotlb_entry() {
    let mut ranges = Ranges::new(Space::of_device(32).unwrap()).unwrap().over_entries(256).unwrap();
    let entry = |range: IovaRange| range.at.0 >> 24;
    let mut out: Vec<_> = (0..256).map(|_| ranges.alloc(ask(1)).unwrap()).collect();
    for owner in 0..1000 {
        let back = out.swap_remove(owner * 7919 % 256);
        ranges.free(Device(0), back).unwrap();
        out.push(ranges.alloc(ask(1)).unwrap());
        let mut entries: Vec<_> = out.iter().map(|range| entry(*range)).collect();
        entries.sort_unstable();
        entries.dedup();
        assert_eq!(entries.len(), 256);
    }
    let one_more = ranges.alloc(ask(1)).unwrap();
    assert!(out.iter().any(|range| entry(*range) == entry(one_more)));
}

#[test]
fn a_ring_of_104_buffers_keeps_13_ranges_and_reuses_their_pages_in_turn() {
    let mut strategy = Sequential::new(Ranges::new(wide()).unwrap()).unwrap();
    strategy.set_order(Device(1), AccessOrder::Sequential).unwrap();
    let of = |device| AllocRequest::bytes(Device(device), PAGE);
    let mut ring: Vec<_> = (0..104).map(|_| strategy.alloc(of(1)).unwrap()).collect();
    assert!(ring.windows(2).all(|pair| pair[1].at.0 == pair[0].at.0 + PAGE));
    assert_eq!(strategy.kept_by(Device(1)), 13);
    for owner in 0..1040 {
        let slot = owner % 104;
        strategy.free(Device(1), ring[slot]).unwrap();
        let next = strategy.alloc(of(1)).unwrap();
        assert_eq!(next.at, ring[slot].at, "the only free page");
        ring[slot] = next;
    }
    assert_eq!((strategy.purge(Device(1)), strategy.purge(Device(0))), (Purge::Matching, Purge::Entries));
    // A range of another device is separate, and no other device may free a page of the ring.
    let other = strategy.alloc(of(0)).unwrap();
    assert_eq!(other.len_bytes, 8 * PAGE);
    assert!(strategy.free(Device(0), ring[0]).is_err());
    for page in ring {
        strategy.free(Device(1), page).unwrap();
    }
    assert_eq!(strategy.kept_by(Device(1)), 13, "the device keeps its ranges");
    strategy.invalidate(Device(1));
    assert_eq!(strategy.kept_by(Device(1)), 0);
    assert_eq!(strategy.alloc(of(0)).unwrap().at, Iova(0x8000), "free after the device is detached");
}

#[test]
fn limits_on_devices_cores_and_pages_per_range_are_enforced() {
    let ranges = |pages| Ranges::of_pages(wide(), pages).unwrap();
    assert!(Sequential::new(ranges(64)).is_ok() && Sequential::new(ranges(128)).is_err());
    let mut strategy = Sequential::new(ranges(8)).unwrap();
    let last = Sequential::MOST_DEVICES as u32;
    assert_eq!(strategy.set_order(Device(last - 1), AccessOrder::Sequential), Ok(()));
    let most = Sequential::MOST_DEVICES;
    let refused = strategy.set_order(Device(last), AccessOrder::Sequential);
    assert_eq!(refused, Err(AllocError::TooMany { what: "devices", wanted: most + 1, most }));
    assert_eq!(ranges(8).set_order(Device(0), AccessOrder::Sequential), Err(AllocError::OneOrder));
    assert!(Magazine::new(wide(), 0).is_err() && Magazine::new(wide(), Magazine::MOST_CORES + 1).is_err());
    assert!(Magazine::of_halves(wide(), 1, 4096).is_ok() && Magazine::of_halves(wide(), 1, 4097).is_err());
    let two = Magazine::new(wide(), 2).unwrap();
    assert!(two.core(1).is_ok() && two.core(2).is_err());
}

#[test]
fn a_page_holds_exactly_128_objects_of_32_bytes() {
    let page = IovaRange { at: Iova(0x7000), len_bytes: PAGE };
    let mut pool = Pool::over(page, 32).unwrap();
    let objects: Vec<_> = (0..128).map(|_| pool.take().unwrap()).collect();
    assert!(objects.iter().enumerate().all(|(n, object)| object.at.0 == 0x7000 + 32 * n as u64));
    let none = AllocError::Exhausted { len_bytes: 32, align_bytes: 1, free_bytes: 0, longest_bytes: 0 };
    assert_eq!(pool.take(), Err(none));
    assert_eq!(pool.offset(objects[127]), Some(127 * 32));
    assert_eq!(pool.offset(IovaRange { at: Iova(0x8000), len_bytes: 32 }), None);
    pool.give_back(objects[5]).unwrap();
    assert!(pool.give_back(objects[5]).is_err());
    assert_eq!(pool.alloc(ask(32)), Ok(objects[5]));
    assert!(Pool::over(page, 24).is_err() && Pool::over(page, 8192).is_err());
    assert!(Pool::over(IovaRange { at: Iova(u64::MAX), len_bytes: 2 }, 1).is_err());
    assert_eq!(
        Pool::over(IovaRange { at: Iova(0x7001), len_bytes: 64 }, 32).unwrap().free_objects(),
        1,
        "whole objects only"
    );
}

#[test]
fn cores_that_run_concurrently_never_hold_the_same_page() {
    use std::sync::atomic::{AtomicBool, Ordering};
    const CORES: usize = 4;
    let (space, pages) = (Space::between(Iova(0), Iova(4096 * PAGE - 1), PAGE).unwrap(), 4096);
    let magazine = Magazine::of_halves(space, CORES, 8).unwrap();
    let is_out: Vec<AtomicBool> = (0..pages).map(|_| AtomicBool::new(false)).collect();
    let mark = |range: IovaRange, out: bool| {
        for page in range.at.0 / PAGE..(range.at.0 + range.len_bytes) / PAGE {
            assert_ne!(is_out[page as usize].swap(out, Ordering::Relaxed), out, "page {page:#x}");
        }
    };
    std::thread::scope(|scope| {
        for number in 0..CORES {
            let mut core = magazine.core(number).unwrap();
            scope.spawn(move || {
                let (mut held, mut random) = (Vec::new(), number as u64 + 1);
                for _ in 0..20_000 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    if random >> 63 == 0 || held.len() > 40 {
                        if let Some(range) = held.pop() {
                            mark(range, false);
                            core.free(Device(0), range).unwrap();
                        }
                    } else if let Ok(range) = core.alloc(ask((random >> 40) % (9 * PAGE) + 1)) {
                        mark(range, true);
                        held.push(range);
                    }
                }
                for range in held {
                    mark(range, false);
                    core.free(Device(0), range).unwrap();
                }
            });
        }
    });
    let mut core = magazine.core(0).unwrap();
    assert_eq!(core.alloc(ask(pages * PAGE)).unwrap().len_bytes, pages * PAGE, "all blocks are merged again");
}
