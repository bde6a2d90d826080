//! Backends that fail at some call, invalidations that are late or never complete, and the state afterwards.

use lanemark_dma::*;
use lanemark_units::{HostPhys, Iova, Ticks};
use proptest::prelude::*;

const PAGE: u64 = 4096;
const NOW: Ticks = Ticks::ZERO;

/// A page table whose call number `fails_at` fails, once or from then on.
struct Failing {
    table: PageTable<HostPhys>,
    calls: u32,
    fails_at: u32,
    for_ever: bool,
}

impl Failing {
    fn at(fails_at: u32, for_ever: bool) -> Failing {
        Failing { table: PageTable::new(PAGE), calls: 0, fails_at, for_ever }
    }

    fn call(&mut self) -> Result<(), BackendError> {
        self.calls += 1;
        let fails = if self.for_ever { self.calls >= self.fails_at } else { self.calls == self.fails_at };
        let source = std::io::Error::from_raw_os_error(12);
        if fails { Err(BackendError::Os { doing: "the call", source }) } else { Ok(()) }
    }
}

impl Backend for Failing {
    type Memory = HostPhys;
    fn name(&self) -> &'static str {
        "failing"
    }
    fn abilities(&self) -> Abilities {
        Abilities::ALL
    }
    fn map(&mut self, range: IovaRange, memory: HostPhys, attributes: Attributes) -> Result<(), BackendError> {
        self.call()?;
        self.table.map(range, memory, attributes)
    }
    fn unmap(&mut self, range: IovaRange) -> Result<(), BackendError> {
        self.call()?;
        self.table.unmap(range)
    }
    fn set_attributes(&mut self, range: IovaRange, attributes: Attributes) -> Result<(), BackendError> {
        self.call()?;
        self.table.set_attributes(range, attributes)
    }
    fn remap(&mut self, range: IovaRange, memory: HostPhys, attributes: Attributes) -> Result<(), BackendError> {
        self.call()?;
        self.table.remap(range, memory, attributes)
    }
    fn invalidate(&mut self, stale: Invalidated) -> Result<Ticks, BackendError> {
        self.call()?;
        self.table.invalidate(stale)
    }
}

fn domain(backend: Failing, policy: Invalidation) -> (Domain<Ranges, Failing>, Device) {
    let ranges = Ranges::new(Space::of_device(32).unwrap()).unwrap();
    let mut domain = Domain::new("disks", ranges, backend, policy).unwrap();
    let disk = domain.attach("disk 0").unwrap();
    (domain, disk)
}

fn buffer(at: u64, len_bytes: u64) -> Buffer<HostPhys> {
    Buffer::new(HostPhys(at), len_bytes)
}

#[test]
fn no_piece_of_a_buffer_stays_mapped_whichever_call_fails() {
    for fails_at in 1..=4 {
        let (mut domain, disk) = domain(Failing::at(fails_at, false), Invalidation::Strict);
        let request = MapRequest::new(disk, Permission::Read);
        let error = domain.map_all(buffer(0, 32 * PAGE), request, NOW).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "disks: failing, mapping 32768 B at {:#x}: the call: Cannot allocate memory (os error 12)",
                u64::from(fails_at - 1) * 8 * PAGE
            )
        );
        let left = (domain.backend().table.entries(), domain.allocator().free_ranges(), domain.live_mappings());
        assert_eq!(left, (0, 1 << 17, 0), "call {fails_at}");
        assert_eq!(domain.backend().table.reach(Iova(0)), None);
    }
    let (mut domain, disk) = domain(Failing::at(5, false), Invalidation::Strict);
    assert_eq!(domain.map_all(buffer(0, 32 * PAGE), MapRequest::new(disk, Permission::Read), NOW).unwrap().len(), 4);
}

#[test]
fn no_scattered_page_stays_mapped_whichever_call_fails() {
    let pages = [0x9000, 0x1000, 0x2000, 0x5000].map(HostPhys);
    for fails_at in 1..=3 {
        let (mut domain, disk) = domain(Failing::at(fails_at, false), Invalidation::Strict);
        let error = domain.map_scattered(&pages, MapRequest::new(disk, Permission::Read), NOW).unwrap_err();
        assert!(matches!(error.kind(), DmaErrorKind::Backend { .. }), "{error}");
        let left = (domain.backend().table.entries(), domain.allocator().free_ranges(), domain.live_mappings());
        assert_eq!(left, (0, 1 << 17, 0), "call {fails_at}");
        assert_eq!(domain.backend().table.reach(Iova(0)), None, "call {fails_at}");
    }
    let (mut domain, disk) = domain(Failing::at(2, true), Invalidation::Strict);
    let error = domain.map_scattered(&pages, MapRequest::new(disk, Permission::Read), NOW).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::Backend { doing: "unmapping", .. }), "{error}");
    assert_eq!((domain.live_mappings(), domain.backend().table.entries()), (1, 1), "the page can still be accessed");
    domain.backend_mut().fails_at = u32::MAX;
    assert!(domain.close(NOW).is_err());
    assert_eq!((domain.allocator().free_ranges(), domain.backend().table.entries()), (1 << 17, 0));
    assert!(
        self::domain(Failing::at(4, false), Invalidation::Strict)
            .0
            .map_scattered(&pages, MapRequest::new(Device(0), Permission::Read), NOW)
            .is_ok()
    );
}

#[test]
fn a_mapping_that_the_backend_fails_to_unmap_stays_mapped_and_can_be_unmapped_later() {
    let (mut domain, disk) = domain(Failing::at(2, false), Invalidation::Strict);
    let mapping = domain.map(&mut buffer(0, PAGE), MapRequest::new(disk, Permission::Read), NOW).unwrap();
    let error = domain.unmap(mapping, NOW).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::Backend { doing: "unmapping", .. }), "{error}");
    assert_eq!((domain.live_mappings(), domain.backend().table.entries()), (1, 1));
    domain.unmap(mapping, NOW).unwrap();
    assert_eq!(domain.allocator().free_ranges(), 1 << 17);
}

#[test]
fn iovas_of_a_failed_invalidation_stay_allocated_until_one_completes() {
    for policy in [Invalidation::Strict, Invalidation::Deferred { entries: 1, longest: NOW }] {
        let (mut domain, disk) = domain(Failing::at(4, false), policy);
        let request = MapRequest::new(disk, Permission::Read);
        let first = domain.map(&mut buffer(0, PAGE), request, NOW).unwrap();
        let second = domain.map(&mut buffer(0x9000, PAGE), request, NOW).unwrap();
        let error = domain.unmap(first, NOW).unwrap_err();
        assert!(matches!(error.kind(), DmaErrorKind::NotInvalidated { .. }), "{error}");
        assert!(domain.unmap(first, NOW).is_err(), "it is unmapped");
        // That call retried the invalidation; the fifth call of the backend succeeds.
        assert_eq!((domain.waiting(), domain.allocator().free_ranges()), (0, (1 << 17) - 1), "{policy:?}");
        domain.unmap(second, NOW).unwrap();
        assert_eq!(domain.windows().count(), 2);
    }
}

#[test]
fn failing_invalidations_block_unmap_and_no_iova_is_reused() {
    for policy in [Invalidation::Strict, Invalidation::Deferred { entries: 2, longest: Ticks::NEVER }] {
        // Calls before the failure: three maps, one unmap, and another unmap where two ranges may be queued.
        let fails_at = if policy == Invalidation::Strict { 5 } else { 6 };
        let (mut domain, disk) = domain(Failing::at(fails_at, true), policy);
        let request = MapRequest::new(disk, Permission::Read);
        let mappings: Vec<_> = (0..3).map(|n| domain.map(&mut buffer(n * PAGE, PAGE), request, NOW).unwrap()).collect();
        let results: Vec<_> = mappings.iter().map(|mapping| domain.unmap(*mapping, NOW).is_ok()).collect();
        let waiting = domain.waiting();
        assert!(!results[2] && waiting > 0, "{results:?}");
        assert_eq!(domain.live_mappings(), 3 - waiting, "mappings that could not be unmapped stay live");
        for mapping in &mappings[..waiting] {
            assert!(domain.backend().table.reach(mapping.iova()).is_some());
        }
        // Mapping still works, and gets none of their IOVAs.
        domain.backend_mut().fails_at = u32::MAX;
        let fresh = domain.map(&mut buffer(0x2_0000, PAGE), request, NOW).unwrap();
        assert!(mappings.iter().all(|mapping| mapping.iova() != fresh.iova()));
        domain.flush(NOW).unwrap();
        assert_eq!(domain.waiting(), 0);
        let error = domain.close(NOW).unwrap_err();
        assert!(matches!(error.kind(), DmaErrorKind::StillMapped { .. }), "{error}");
        assert_eq!((domain.backend().table.entries(), domain.allocator().free_ranges()), (0, 1 << 17));
    }
}

#[test]
fn a_failed_invalidation_of_a_change_is_retried_before_the_next_unmap() {
    let (mut domain, disk) = domain(Failing::at(3, false), Invalidation::Strict);
    let request = MapRequest::new(disk, Permission::ReadWrite);
    let mapping = domain.map(&mut buffer(0, PAGE), request, NOW).unwrap();
    let error = domain.set_attributes(mapping, Permission::Read, Hints::NONE, NOW).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::NotInvalidated { .. }), "{error}");
    let reach = |domain: &Domain<Ranges, Failing>| domain.backend().table.reach(mapping.iova());
    assert_eq!(
        (domain.waiting(), reach(&domain).map(|to| to.attributes.permission())),
        (1, Some(Permission::ReadWrite))
    );
    domain.flush(NOW).unwrap();
    assert_eq!((domain.waiting(), reach(&domain).map(|to| to.attributes.permission())), (0, Some(Permission::Read)));
    domain.unmap(mapping, NOW).unwrap();
}

#[test]
fn a_remap_that_fails_halfway_leaves_no_stale_translation() {
    let (mut domain, disk) = domain(Failing::at(3, false), Invalidation::Strict);
    let mapping = domain.map(&mut buffer(0, 2 * PAGE), MapRequest::new(disk, Permission::Read), NOW).unwrap();
    let error = domain.remap(mapping, 0, &[HostPhys(0x9000), HostPhys(0x7000)], NOW).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::Backend { doing: "changing the memory of", .. }), "{error}");
    let reach = |page| domain.backend().table.reach(Iova(page * PAGE)).map(|to| to.memory);
    assert_eq!([0, 1].map(reach), [Some(HostPhys(0x9000)), Some(HostPhys(PAGE))], "the first is new, the second old");
}

#[test]
fn windows_last_from_the_unmap_to_the_end_of_the_invalidation() {
    let table = || PageTable::<HostPhys>::new(PAGE).with_invalidation(Ticks(7));
    let ranges = || Ranges::new(Space::of_device(32).unwrap()).unwrap();
    let policy = Invalidation::Deferred { entries: 3, longest: Ticks(100) };
    let mut domain = Domain::new("nets", ranges(), table(), policy).unwrap();
    let net = domain.attach("net").unwrap();
    let request = MapRequest::new(net, Permission::Write);
    let unmap_at = |domain: &mut Domain<_, _>, now| {
        let mapping = domain.map(&mut buffer(0, PAGE), request, Ticks(now)).unwrap();
        domain.unmap(mapping, Ticks(now)).unwrap();
        domain.waiting()
    };
    assert_eq!([10, 20].map(|now| unmap_at(&mut domain, now)), [1, 2]);
    assert_eq!(unmap_at(&mut domain, 30), 0, "the third entry fills the queue");
    assert_eq!((domain.windows().count(), domain.windows().longest), (3, Ticks(27)));
    assert_eq!(domain.windows().sum_ticks, 27 + 17 + 7);
    assert_eq!(unmap_at(&mut domain, 40), 1);
    domain.flush_due(Ticks(139)).unwrap();
    assert_eq!(domain.waiting(), 1, "99 ticks are below the maximum");
    domain.flush_due(Ticks(140)).unwrap();
    assert_eq!((domain.waiting(), domain.windows().longest), (0, Ticks(107)));
    assert_eq!(domain.backend().counts().all, 2);

    let mut strict = Domain::new("nets", ranges(), table(), Invalidation::Strict).unwrap();
    let net = strict.attach("net").unwrap();
    let mapping = strict.map(&mut buffer(0, PAGE), MapRequest::new(net, Permission::Write), Ticks(5)).unwrap();
    strict.unmap(mapping, Ticks(50)).unwrap();
    assert_eq!((strict.windows().count(), strict.windows().longest), (1, Ticks(7)), "the duration of the invalidation");
}

#[test]
fn pending_iovas_are_invalidated_before_a_request_is_refused() {
    let space = Space::between(Iova(0), Iova(16 * PAGE - 1), PAGE).unwrap();
    let policy = Invalidation::Deferred { entries: 100, longest: Ticks::NEVER };
    let mut domain = Domain::new("small", Ranges::new(space).unwrap(), PageTable::new(PAGE), policy).unwrap();
    let card = domain.attach("card").unwrap();
    let request = MapRequest::new(card, Permission::Read);
    let map = |domain: &mut Domain<_, _>| domain.map(&mut buffer(0, PAGE), request, Ticks(9));
    let (first, _second) = (map(&mut domain).unwrap(), map(&mut domain).unwrap());
    let error = map(&mut domain).unwrap_err();
    assert_eq!(
        error.to_string(),
        "small: ranges has no IOVA for card: 4096 contiguous bytes requested; 0 B are free, the longest run is 0 B; unmap something, or use a larger space"
    );
    domain.unmap(first, Ticks(4)).unwrap();
    assert_eq!((domain.waiting(), domain.allocator().free_ranges()), (1, 0));
    assert_eq!(map(&mut domain).unwrap().iova(), first.iova());
    assert_eq!((domain.waiting(), domain.windows().longest), (0, Ticks(5)));
}

#[derive(Debug, Clone)]
enum Act {
    Map { at: u64, len_bytes: u64, safe: bool },
    Scatter(Vec<u64>),
    Unmap(prop::sample::Index),
    Again(prop::sample::Index),
    Tail(prop::sample::Index, u64),
    Wait(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let index = any::<prop::sample::Index>();
    let act = prop_oneof![
        4 => (0..1_u64 << 30, 1..20 * PAGE, any::<bool>()).prop_map(|(at, len_bytes, safe)| Act::Map { at, len_bytes, safe }),
        1 => prop::collection::vec(0..1_u64 << 20, 1..8).prop_map(Act::Scatter),
        4 => index.prop_map(Act::Unmap),
        1 => any::<prop::sample::Index>().prop_map(Act::Again),
        1 => (any::<prop::sample::Index>(), 1..20 * PAGE).prop_map(|(which, keep)| Act::Tail(which, keep)),
        1 => (0..50_u64).prop_map(Act::Wait),
    ];
    prop::collection::vec(act, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A device accesses exactly the mapped memory, at its IOVAs and with its attributes. It accesses unmapped memory
    /// only until the invalidation, and never through an IOVA that is mapped anew.
    #[test]
    fn a_device_accesses_exactly_the_mapped_memory(acts in acts(), deferred in any::<bool>()) {
        let policy = if deferred { Invalidation::Deferred { entries: 5, longest: Ticks(40) } } else { Invalidation::Strict };
        let space = Space::between(Iova(0), Iova(512 * PAGE - 1), PAGE).unwrap();
        let table = PageTable::<HostPhys>::new(PAGE);
        let mut domain = Domain::new("any", Ranges::new(space).unwrap(), table, policy).unwrap();
        let card = domain.attach("card").unwrap();
        // Each live mapping with the memory of each of its pages.
        let (mut live, mut ended): (Vec<(Mapping, Vec<u64>)>, Vec<Mapping>) = (Vec::new(), Vec::new());
        let mut now = 0;
        for act in acts {
            match act {
                Act::Map { at, len_bytes, safe } => {
                    let request = MapRequest::new(card, Permission::Write).hints(if safe { Hints::SAFE } else { Hints::NONE });
                    let mut rest = buffer(at, len_bytes);
                    while !rest.is_empty() {
                        let before = rest;
                        match domain.map(&mut rest, request, Ticks(now)) {
                            Ok(mapping) => {
                                prop_assert_eq!(mapping.len_bytes(), before.len_bytes - rest.len_bytes);
                                prop_assert!(!safe || mapping.attributes().is_safe());
                                let first = before.at.0 & !(PAGE - 1);
                                let last = before.at.0 + mapping.len_bytes() - 1;
                                live.push((mapping, (first..=last).step_by(PAGE as usize).collect()));
                            }
                            Err(error) => {
                                let is_full = matches!(error.kind(), DmaErrorKind::NoIova { why: AllocError::Exhausted { .. }, .. });
                                prop_assert!(is_full && rest == before && domain.waiting() == 0, "{}", error);
                                break;
                            }
                        }
                    }
                }
                Act::Scatter(pages) => {
                    let pages: Vec<_> = pages.iter().map(|page| HostPhys(page * PAGE)).collect();
                    if let Ok(mapping) = domain.map_scattered(&pages, MapRequest::new(card, Permission::Read), Ticks(now)) {
                        live.push((mapping, pages.iter().map(|page| page.0).collect()));
                    }
                }
                Act::Unmap(which) if !live.is_empty() => {
                    let (mapping, _) = live.swap_remove(which.index(live.len()));
                    domain.unmap(mapping, Ticks(now)).unwrap();
                    prop_assert!(deferred || domain.backend().reach(mapping.iova()).is_none());
                    ended.push(mapping);
                }
                Act::Tail(which, keep_bytes) if !live.is_empty() => {
                    let at = which.index(live.len());
                    let (mapping, memory) = &mut live[at];
                    if let Ok(shorter) = domain.unmap_tail(*mapping, keep_bytes, Ticks(now)) {
                        let offset = mapping.iova().0 % PAGE;
                        memory.truncate((offset + keep_bytes).div_ceil(PAGE) as usize);
                        *mapping = shorter;
                    } else {
                        prop_assert!(keep_bytes > mapping.len_bytes());
                    }
                }
                Act::Again(which) if !ended.is_empty() => {
                    prop_assert!(domain.unmap(ended[which.index(ended.len())], Ticks(now)).is_err());
                }
                Act::Wait(ticks) => {
                    now += ticks;
                    domain.flush_due(Ticks(now)).unwrap();
                }
                _ => {}
            }
            let mut pages = 0;
            for (mapping, memory) in &live {
                for (page, memory) in (0..).zip(memory) {
                    let at = Iova((mapping.iova().0 & !(PAGE - 1)) + page * PAGE);
                    let there = domain.backend().translate(at);
                    prop_assert_eq!(there.map(|to| (to.memory, to.attributes)), Some((HostPhys(*memory), mapping.attributes())));
                    prop_assert_eq!(domain.backend().reach(at), there, "the IOTLB holds another translation");
                    pages += 1;
                }
            }
            prop_assert_eq!(domain.backend().entries(), pages);
            prop_assert_eq!(domain.live_mappings(), live.len());
        }
        prop_assert_eq!(domain.close(Ticks(now)).is_err(), !live.is_empty());
        prop_assert!(domain.windows().longest < Ticks(90), "an entry is queued for at most the maximum plus one call");
        prop_assert_eq!((domain.backend().entries(), domain.allocator().free_ranges()), (0, 64));
        prop_assert!((0..512).all(|page| domain.backend().reach(Iova(page * PAGE)).is_none()));
    }
}
