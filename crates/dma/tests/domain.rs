//! Behaviour of a domain: access of devices, state after errors, double unmaps and leaks.

use lanemark_dma::*;
use lanemark_units::{HostPhys, HostVirt, Iova, Ticks};
use std::panic::Location;

const PAGE: u64 = 4096;
const NOW: Ticks = Ticks::ZERO;

type Table = PageTable<HostPhys>;

fn ranges() -> Ranges {
    Ranges::new(Space::of_device(32).unwrap()).unwrap()
}

/// A table on a platform with cache lines of 32 B.
fn table() -> Table {
    PageTable::new(PAGE).on_platform(Coherence::Coherent, 32)
}

fn domain(table: Table) -> (Domain<Ranges, Table>, Device) {
    let mut domain = Domain::new("disks", ranges(), table, Invalidation::Strict).unwrap();
    let disk = domain.attach("disk 0").unwrap();
    (domain, disk)
}

fn buffer(at: u64, len_bytes: u64) -> Buffer<HostPhys> {
    Buffer::new(HostPhys(at), len_bytes)
}

/// Length of each piece of `len_of`, and whether it is safe.
fn pieces(len_of: Buffer<HostPhys>, hints: Hints) -> Vec<(u64, bool)> {
    let (mut domain, disk) = domain(table());
    let pieces = domain.map_all(len_of, MapRequest::new(disk, Permission::Write).hints(hints), NOW).unwrap();
    for (piece, before) in pieces.iter().zip(std::iter::once(0).chain(pieces.iter().scan(0, |sum, piece| {
        *sum += piece.len_bytes();
        Some(*sum)
    }))) {
        let last = piece.len_bytes() - 1;
        for offset in [0, last] {
            let there = domain.backend().translate(Iova(piece.iova().0 + offset)).unwrap();
            assert_eq!(there.memory, HostPhys(len_of.at.0 + before + offset));
            assert_eq!(there.attributes, piece.attributes());
        }
    }
    pieces.iter().map(|piece| (piece.len_bytes(), piece.attributes().is_safe())).collect()
}

#[test]
fn each_map_call_advances_the_buffer_by_what_it_mapped() {
    let (mut domain, disk) = domain(table());
    let mut rest = buffer(0x10_0000, 9 * PAGE);
    let first = domain.map(&mut rest, MapRequest::new(disk, Permission::Read), NOW).unwrap();
    assert_eq!((first.len_bytes(), rest), (8 * PAGE, buffer(0x10_8000, PAGE)));
    let last = domain.map(&mut rest, MapRequest::new(disk, Permission::Read), NOW).unwrap();
    assert_eq!((last.len_bytes(), rest), (PAGE, buffer(0x10_9000, 0)));
    let error = domain.map(&mut rest, MapRequest::new(disk, Permission::Read), NOW).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::Buffer { len_bytes: 0, .. }), "{error}");
}

#[test]
fn only_pages_with_shared_lines_are_safe() {
    assert_eq!(pieces(buffer(0x1000, 3 * PAGE), Hints::NONE), [(3 * PAGE, false)]);
    assert_eq!(pieces(buffer(0x1020, 3 * PAGE), Hints::NONE), [(3 * PAGE, false)], "line-aligned at both ends");
    assert_eq!(pieces(buffer(0x1010, 2 * PAGE), Hints::NONE), [(0xff0, true), (PAGE, false), (0x10, true)]);
    assert_eq!(pieces(buffer(0x1000, 2 * PAGE + 16), Hints::NONE), [(2 * PAGE, false), (16, true)]);
    assert_eq!(pieces(buffer(0x1000, 31), Hints::NONE), [(31, true)], "shorter than a line");
    assert_eq!(pieces(buffer(0x1000, 32), Hints::NONE), [(32, false)], "one line");
    assert_eq!(pieces(buffer(0x1001, 32), Hints::NONE), [(32, true)], "parts of two lines");
}

#[test]
fn hints_override_the_treatment_of_shared_lines() {
    let ragged = buffer(0x1010, 2 * PAGE);
    assert_eq!(pieces(ragged, Hints::ANY_ALIGNMENT), [(2 * PAGE, false)]);
    assert_eq!(pieces(ragged, Hints::ONE_PIECE), [(2 * PAGE, false)]);
    assert_eq!(pieces(ragged, Hints::SAFE), [(2 * PAGE, true)]);
}

#[test]
fn one_piece_maps_the_whole_buffer_or_fails() {
    let (mut domain, disk) = domain(table());
    let request = MapRequest::new(disk, Permission::Read).hints(Hints::ONE_PIECE);
    assert!(domain.map(&mut buffer(0x1000, 8 * PAGE), request, NOW).is_ok());
    assert!(domain.map(&mut buffer(0x1010, 8 * PAGE - 0x10), request, NOW).is_ok());
    let mut rest = buffer(0x1010, 8 * PAGE);
    let error = domain.map(&mut rest, request, NOW).unwrap_err();
    assert_eq!(
        error.to_string(),
        "disks: ranges has no IOVA for disk 0: 32784 contiguous bytes requested; this strategy grants at most 32768 B; map in pieces"
    );
    assert_eq!((rest, domain.backend().entries()), (buffer(0x1010, 8 * PAGE), 16));
}

#[test]
fn the_last_page_of_the_address_space_can_be_mapped_and_nothing_beyond() {
    let (mut domain, disk) = domain(table());
    let request = MapRequest::new(disk, Permission::Read);
    let mut rest = buffer(u64::MAX - 4095, 4096);
    assert_eq!(domain.map(&mut rest, request, NOW).map(|piece| piece.len_bytes()).unwrap(), 4096);
    assert!(rest.is_empty());
    let error = domain.map(&mut buffer(u64::MAX - 4095, 4097), request, NOW).unwrap_err();
    assert_eq!(
        error.to_string(),
        "disks: 4097 B at 0xfffffffffffff000 cannot be mapped: it ends beyond the last address"
    );
}

#[test]
fn small_objects_take_one_entry_each_or_one_entry_in_a_pool() {
    let (mut domain, disk) = domain(table());
    let request = MapRequest::new(disk, Permission::ReadWrite);
    for object in 0..128 {
        let _ = domain.map(&mut buffer(0x7000 + 32 * object, 32), request, NOW).unwrap();
    }
    assert_eq!(domain.backend().entries(), 128);
    let before = domain.backend().entries();
    let page = domain.map(&mut buffer(0x7000, PAGE), request, NOW).unwrap();
    let mut pool = Pool::over(page.range(), 32).unwrap();
    assert_eq!((0..128).filter(|_| pool.take().is_ok()).count(), 128);
    assert_eq!(domain.backend().entries() - before, 1);
}

#[test]
fn an_unsupported_operation_is_refused_by_name_and_maps_nothing() {
    let bare = || domain(table().with_abilities(Abilities::NONE));
    for (hint, said) in [
        (Hints::SAFE, "a choice of safe or fast half-line writes; omit the hint, and map whole cache lines"),
        (Hints::ATOMIC, "atomic transfers; omit the hint"),
        (Hints::NO_PREFETCH, "disabling prefetch; omit the hint"),
    ] {
        let (mut domain, disk) = bare();
        let request = MapRequest::new(disk, Permission::Read).hints(hint);
        let error = domain.map(&mut buffer(0x1000, PAGE), request, NOW).unwrap_err();
        assert_eq!(error.to_string(), format!("disks: page table does not support {said}"));
        assert!(domain.map_scattered(&[HostPhys(0x1000)], request, NOW).is_err());
        assert_eq!((domain.backend().entries(), domain.allocator().free_ranges()), (0, 1 << 17));
    }
    let (mut domain, disk) = bare();
    let request = MapRequest::new(disk, Permission::Read);
    let pieces = domain.map_all(buffer(0x1010, 2 * PAGE), request, NOW).unwrap();
    assert_eq!(pieces.len(), 1, "without the ability, ends are not separate pieces");
    let refused = |result: Result<(), DmaError>, wanted| match result.unwrap_err().kind() {
        DmaErrorKind::Unsupported { ability, .. } => assert_eq!(*ability, wanted),
        kind => panic!("{kind}"),
    };
    refused(domain.remap(pieces[0], 0, &[HostPhys(0)], NOW), Ability::Remap);
    let attributes = domain.set_attributes(pieces[0], Permission::Write, Hints::NONE, NOW);
    refused(attributes.map(|_| ()), Ability::SetAttributes);
    refused(domain.unmap_tail(pieces[0], 1, NOW).map(|_| ()), Ability::PartialUnmap);
    refused(domain.flush_lines(buffer(0x1000, 32)), Ability::CacheCare);
    assert_eq!(domain.backend().entries(), 3);
    domain.unmap(pieces[0], NOW).unwrap();
}

#[test]
fn scattered_pages_are_one_range_for_the_device() {
    let (mut domain, disk) = domain(table());
    let pages = [0x9000, 0x3000, 0x4000, 0x1000].map(HostPhys);
    let mapping = domain.map_scattered(&pages, MapRequest::new(disk, Permission::Read), NOW).unwrap();
    assert_eq!(mapping.len_bytes(), 4 * PAGE);
    let memory = |domain: &Domain<Ranges, Table>, page: u64| {
        domain.backend().translate(Iova(mapping.iova().0 + page * PAGE)).map(|there| there.memory)
    };
    assert!((0..4).all(|page| memory(&domain, page) == Some(pages[page as usize])));
    domain.remap(mapping, 2, &[HostPhys(0x2_0000), HostPhys(0x3_0000)], NOW).unwrap();
    assert_eq!([1, 2, 3].map(|page| memory(&domain, page)), [0x3000, 0x2_0000, 0x3_0000].map(|at| Some(HostPhys(at))));
    let reach = domain.backend().reach(Iova(mapping.iova().0 + 2 * PAGE));
    assert_eq!(reach.map(|there| there.memory), Some(HostPhys(0x2_0000)), "the old page is invalidated");
    let error = domain.remap(mapping, 3, &[HostPhys(0x2_0000), HostPhys(0x3_0000)], NOW).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::Outside { .. }), "{error}");
    assert!(domain.remap(mapping, u64::MAX, &[HostPhys(0x2_0000)], NOW).is_err());
    for wrong in [&[][..], &[HostPhys(0x1001)]] {
        let error = domain.map_scattered(wrong, MapRequest::new(disk, Permission::Read), NOW).unwrap_err();
        assert!(matches!(error.kind(), DmaErrorKind::Buffer { .. }), "{error}");
    }
    let most = vec![HostPhys(0); 8];
    assert!(domain.map_scattered(&most, MapRequest::new(disk, Permission::Read), NOW).is_ok());
    let error = domain.map_scattered(&[HostPhys(0); 9], MapRequest::new(disk, Permission::Read), NOW).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::NoIova { why: AllocError::TooLong { .. }, .. }), "{error}");
}

#[test]
fn removed_permissions_and_pages_of_a_live_mapping_are_invalidated_at_once() {
    let mut domain = Domain::new("disks", ranges(), table(), Invalidation::DEFERRED).unwrap();
    let disk = domain.attach("disk 0").unwrap();
    let mapping = domain.map(&mut buffer(0x1020, 3 * PAGE), MapRequest::new(disk, Permission::ReadWrite), NOW).unwrap();
    let reach =
        |domain: &Domain<Ranges, Table>, page: u64| domain.backend().reach(Iova(mapping.iova().0 + page * PAGE));
    let read_only = domain.set_attributes(mapping, Permission::Read, Hints::NO_PREFETCH, NOW).unwrap();
    assert_eq!(format!("{:?}", read_only.attributes()), "Read fast");
    assert!((0..3).all(|page| reach(&domain, page).is_some_and(|there| there.attributes == read_only.attributes())));
    // An older handle does not restore what was removed.
    domain.remap(mapping, 1, &[HostPhys(0x5000)], NOW).unwrap();
    let changed = reach(&domain, 1).map(|there| (there.memory, there.attributes));
    assert_eq!(changed, Some((HostPhys(0x5020), read_only.attributes())));
    let shorter = domain.unmap_tail(mapping, PAGE - 0x20, NOW).unwrap();
    assert_eq!((shorter.len_bytes(), domain.backend().entries()), (PAGE - 0x20, 1));
    assert!(reach(&domain, 0).is_some() && reach(&domain, 1).is_none() && reach(&domain, 3).is_none());
    assert_eq!(domain.unmap_tail(mapping, 1, NOW).unwrap().len_bytes(), 1, "the first page stays");
    for keep_bytes in [0, 3 * PAGE + 1] {
        let error = domain.unmap_tail(mapping, keep_bytes, NOW).unwrap_err();
        assert!(matches!(error.kind(), DmaErrorKind::Outside { .. }), "{error}");
    }
    domain.unmap(shorter, NOW).unwrap();
    domain.flush(NOW).unwrap();
    assert_eq!((domain.backend().entries(), domain.allocator().free_ranges()), (0, 1 << 17));
}

#[test]
fn a_second_unmap_reports_three_call_sites() {
    let (mut domain, disk) = domain(table());
    let request = MapRequest::new(disk, Permission::Read);
    let (mapping, mapped) = (domain.map(&mut buffer(0x1000, PAGE), request, NOW).unwrap(), Location::caller());
    let before = Location::caller().line() + 1;
    domain.unmap(mapping, NOW).unwrap();
    let again = Location::caller().line() + 1;
    let error = domain.unmap(mapping, NOW).unwrap_err();
    match error.kind() {
        DmaErrorKind::UnmappedBefore { mapped_at, before_at, again_at, .. } => {
            assert_eq!(mapped_at.line(), mapped.line());
            assert_eq!((before_at.map(Location::line), again_at.line()), (Some(before), again));
            assert!(again_at.file().ends_with("domain.rs"), "{error}");
        }
        kind => panic!("{kind}"),
    }
    // The slot in the ledger is reused by another mapping, which is not affected.
    let other = domain.map(&mut buffer(0x2000, PAGE), request, NOW).unwrap();
    assert!(matches!(domain.unmap(mapping, NOW).unwrap_err().kind(), DmaErrorKind::UnmappedBefore { .. }));
    assert!(domain.set_attributes(mapping, Permission::Read, Hints::NONE, NOW).is_err());
    assert!(domain.remap(mapping, 0, &[HostPhys(0)], NOW).is_err() && domain.unmap_tail(mapping, 1, NOW).is_err());
    assert_eq!((domain.live_mappings(), domain.backend().entries()), (1, 1));
    domain.unmap(other, NOW).unwrap();
}

#[test]
fn a_mapping_of_another_domain_is_refused() {
    let ((mut here, disk), (mut there, other)) = (domain(table()), domain(table()));
    assert_eq!(disk, other);
    let mapping = here.map(&mut buffer(0x1000, PAGE), MapRequest::new(disk, Permission::Read), NOW).unwrap();
    let twin = there.map(&mut buffer(0x1000, PAGE), MapRequest::new(disk, Permission::Read), NOW).unwrap();
    assert_eq!(mapping.range(), twin.range());
    let error = there.unmap(mapping, NOW).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::NotMappedHere { .. }), "{error}");
    assert_eq!(there.live_mappings(), 1);
}

#[test]
fn detach_and_close_report_and_unmap_leaked_mappings() {
    let (mut domain, disk) = domain(table());
    let net = domain.attach("net 0").unwrap();
    let line = Location::caller().line() + 2;
    for page in 0..3 {
        let _ = domain.map(&mut buffer(page * PAGE, PAGE), MapRequest::new(disk, Permission::Read), NOW).unwrap();
    }
    let kept = domain.map(&mut buffer(0x9000, 2 * PAGE), MapRequest::new(net, Permission::Read), NOW).unwrap();
    let error = domain.detach(disk, NOW).unwrap_err();
    let DmaErrorKind::StillMapped { leaks, .. } = error.kind() else { panic!("{error}") };
    assert_eq!((leaks.0.len(), leaks.0[0].mappings, leaks.0[0].pages, leaks.0[0].mapped_at.line()), (1, 3, 3, line));
    assert!(error.to_string().starts_with("disks: 3 mappings (3 pages) of disk 0 from "), "{error}");
    assert_eq!(domain.backend().entries(), 2, "mappings of the other device stay");
    let gone = domain.map(&mut buffer(0, PAGE), MapRequest::new(disk, Permission::Read), NOW).unwrap_err();
    assert!(matches!(gone.kind(), DmaErrorKind::NoDevice { device: 0, .. }), "{gone}");
    assert!(domain.detach(disk, NOW).is_err() && domain.detach(Device(2), NOW).is_err());
    assert!(domain.close(NOW).is_err());
    assert_eq!((domain.backend().entries(), domain.backend().reach(kept.iova())), (0, None));
    assert!(domain.close(NOW).is_ok(), "no mapping is left");
}

#[test]
fn the_number_of_live_mappings_is_limited_as_configured() {
    let (domain, _) = domain(table());
    let mut domain = domain.most_mappings(2);
    let request = MapRequest::new(Device(0), Permission::Read);
    let first = domain.map(&mut buffer(0, PAGE), request, NOW).unwrap();
    let _ = domain.map(&mut buffer(0, PAGE), request, NOW).unwrap();
    let mut rest = buffer(0, PAGE);
    let error = domain.map(&mut rest, request, NOW).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::TooManyMappings { most: 2, .. }), "{error}");
    assert_eq!((rest.len_bytes, domain.allocator().free_ranges()), (PAGE, (1 << 17) - 2));
    domain.unmap(first, NOW).unwrap();
    assert!(domain.map(&mut rest, request, NOW).is_ok());
}

#[test]
fn a_million_mappings_take_less_than_100_mb() {
    let space = Space::of_device(39).unwrap();
    let mut domain =
        Domain::new("many", Ranges::new(space).unwrap(), NullBackend::<HostVirt>::new(), Invalidation::Strict).unwrap();
    let device = domain.attach("card").unwrap();
    for page in 0..1_000_000 {
        let mut page = Buffer::new(HostVirt(page * PAGE), PAGE);
        let _ = domain.map(&mut page, MapRequest::new(device, Permission::Read), NOW).unwrap();
    }
    let bitmap = usize::try_from(Ranges::MOST / 8 + Ranges::MOST / 8 / 63).unwrap();
    let total = domain.ledger_bytes() + bitmap;
    assert!(total < 100_000_000, "{total}");
}

#[test]
fn invalid_settings_are_refused() {
    let with =
        |lines, policy| Domain::new("d", ranges(), table().on_platform(Coherence::Coherent, lines), policy).is_ok();
    assert!(with(1, Invalidation::Strict) && with(PAGE, Invalidation::Strict));
    assert!(!with(0, Invalidation::Strict) && !with(2 * PAGE, Invalidation::Strict) && !with(48, Invalidation::Strict));
    let queue = |entries| with(64, Invalidation::Deferred { entries, longest: NOW });
    assert!(queue(1) && queue(Invalidation::MOST_ENTRIES) && !queue(0) && !queue(Invalidation::MOST_ENTRIES + 1));
    let small = Space::between(Iova(0), Iova(0xffff), 2048).unwrap();
    assert!(Domain::new("d", FreeList::new(small), table(), Invalidation::Strict).is_err());
}

#[test]
fn a_sequential_device_shares_ranges_only_among_its_own_mappings() {
    let strategy = Sequential::new(ranges()).unwrap();
    let mut domain = Domain::new("nets", strategy, table(), Invalidation::Strict).unwrap();
    let (net, disk) = (domain.attach("net").unwrap(), domain.attach("disk").unwrap());
    domain.set_order(net, AccessOrder::Sequential).unwrap();
    let mut map = |device| domain.map(&mut buffer(0, PAGE), MapRequest::new(device, Permission::Read), NOW).unwrap();
    let (first, other, second) = (map(net), map(disk), map(net));
    assert_eq!((second.iova().0 - first.iova().0, other.iova().0), (PAGE, 8 * PAGE));
    for mapping in [first, other, second] {
        domain.unmap(mapping, NOW).unwrap();
    }
    assert_eq!((domain.backend().counts().matching, domain.backend().counts().entries), (2, 1));
    domain.detach(net, NOW).unwrap();
    assert!(domain.set_order(net, AccessOrder::Any).is_err());
    let (mut plain, device) = self::domain(table());
    let error = plain.set_order(device, AccessOrder::Sequential).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::NoIova { why: AllocError::OneOrder, .. }), "{error}");
}

#[test]
fn sync_flushes_and_purges_on_a_platform_without_coherence() {
    use CacheCare::{Flush, Purge};
    let by_software = table().on_platform(Coherence::BySoftware { cpu_prefetches: true }, 32);
    let (mut domain, _) = domain(by_software);
    let inbound = buffer(0x1000, PAGE);
    domain.sync(inbound, Permission::Write, Owner::Device).unwrap();
    domain.sync(inbound, Permission::Write, Owner::Cpu).unwrap();
    domain.sync(inbound, Permission::Read, Owner::Device).unwrap();
    domain.sync(inbound, Permission::Read, Owner::Cpu).unwrap();
    domain.flush_lines(buffer(0x40, 32)).unwrap();
    let cared = domain.backend_mut().take_cared();
    assert_eq!(cared, [(Purge, inbound), (Purge, inbound), (Flush, inbound), (Flush, buffer(0x40, 32))]);
    let (mut coherent, _) = self::domain(table());
    coherent.sync(inbound, Permission::ReadWrite, Owner::Device).unwrap();
    assert_eq!(coherent.backend_mut().take_cared(), []);
    let careless =
        table().on_platform(Coherence::BySoftware { cpu_prefetches: false }, 32).with_abilities(Abilities::NONE);
    let error = self::domain(careless).0.sync(inbound, Permission::Write, Owner::Device).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::Unsupported { ability: Ability::CacheCare, .. }), "{error}");
}
