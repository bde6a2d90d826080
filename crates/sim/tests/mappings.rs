//! DMA mappings: the bytes of a device reach the mapped pages, and no others.

use lanemark_dma::{AccessOrder, Backend, BackendError, Buddy, Buffer, Device, Domain, FreeList, Hints, Invalidation};
use lanemark_dma::{
    Invalidated, IovaAllocator, IovaRange, Magazine, MapRequest, Mapping, Permission, Ranges, Sequential, Space,
};
use lanemark_machine::{BusError, Machine, MachineError, Partner, Pattern, Plan, Samples, Transfer, Verb, Window};
use lanemark_platform::{Origin, Platform, preset};
use lanemark_sim::{Board, CardIndex, SimulatedMachine, Tlp, TlpKind, span};
use lanemark_sim::{FaultReason, InvalidationCommand, QueueFull, TranslationFault};
use lanemark_units::{HostPhys, Iova, Ticks};
use lanemark_wire::config::AerError;

const PAGE: u64 = 4096;
/// Requester ID of the first card.
const CARD: u16 = 0x8000;
/// Number of pages of host memory that are compared; more than any test maps.
const LOOKED_AT: u64 = 64;

fn platform(set: &[(&str, &str)]) -> Platform {
    let preset = preset("card-gen5-x16-iommu").unwrap().unwrap();
    set.iter().fold(preset, |platform, (key, value)| {
        platform.with_text(key, value, Origin::Assumed("a test".to_owned())).unwrap()
    })
}

fn domain_on(platform: &Platform, policy: Invalidation) -> Domain<Ranges, Board> {
    domain_by(Ranges::of_pages(Space::of_device(32).unwrap(), 16).unwrap(), platform, policy)
}

fn domain_by<A: IovaAllocator>(strategy: A, platform: &Platform, policy: Invalidation) -> Domain<A, Board> {
    let mut board = Board::new(platform).unwrap();
    board.map_nothing().unwrap();
    let mut domain = Domain::new("test", strategy, board, policy).unwrap();
    domain.attach("card").unwrap();
    domain
}

fn domain(policy: Invalidation) -> Domain<Ranges, Board> {
    domain_on(&platform(&[]), policy)
}

/// Maps `pages` pages of the host from `page` on.
fn map_pages<A: IovaAllocator>(
    domain: &mut Domain<A, Board>,
    page: u64,
    pages: u64,
    permission: Permission,
) -> Mapping {
    try_map_pages(domain, page, pages, permission).unwrap()
}

/// Maps pages like `map_pages`, or returns the error.
fn try_map_pages<A: IovaAllocator>(
    domain: &mut Domain<A, Board>,
    page: u64,
    pages: u64,
    permission: Permission,
) -> Result<Mapping, String> {
    let at = domain.backend().mapped_at() + page * PAGE;
    let now = domain.backend().now();
    let mut buffer = Buffer::new(HostPhys(at), pages * PAGE);
    let mapped = domain.map(&mut buffer, MapRequest::new(Device(0), permission).hints(Hints::ONE_PIECE), now);
    assert!(mapped.is_ok() || (buffer.at.0, buffer.len_bytes) == (at, pages * PAGE), "the buffer is unchanged");
    mapped.map_err(|error| error.to_string())
}

/// Writes bytes by a card to an address, to its end.
fn write(board: &mut Board, at: u64, bytes: &[u8]) {
    let (address, length_dw, first_be, last_be) = span(at, bytes.len() as u64);
    let payload = board.payload(&[&vec![0; (at - address) as usize], bytes].concat());
    let of_card = Tlp { requester: CARD, payload, ..Tlp::of(TlpKind::MWr) };
    board.inject_at_card(CardIndex(0), Ticks::ZERO, Tlp { address, length_dw, first_be, last_be, ..of_card });
    while board.step() {}
}

/// Reads bytes by a card from an address; `None` if any of them was refused.
fn read(board: &mut Board, at: Iova, bytes: u64) -> Option<Vec<u8>> {
    let window = Window { offset: 0, len: bytes, pattern: Pattern::Sequential };
    let transfer =
        Transfer { card: 0, verb: Verb::Load, partner: Partner::Host, bytes, count: 1, window, outstanding: None };
    let before = board.moved(&transfer).0;
    board.start_transfer_at(&transfer, at, 1).unwrap();
    while board.step() {}
    let came = board.moved(&transfer).0 - before;
    let mut read = vec![0; bytes as usize];
    board.engine_mut(CardIndex(0)).unwrap().sink.read(0, &mut read);
    (came == bytes).then_some(read)
}

/// Returns all bytes that a test may have changed.
fn memory(board: &mut Board) -> Vec<u8> {
    let mut bytes = vec![0; (LOOKED_AT * PAGE) as usize];
    board.memory_mut().read(0, &mut bytes);
    bytes
}

/// Returns the memory after writing these bytes at an offset.
fn with(mut before: Vec<u8>, place: u64, bytes: &[u8]) -> Vec<u8> {
    before[place as usize..place as usize + bytes.len()].copy_from_slice(bytes);
    before
}

#[test]
fn a_device_reads_and_writes_the_mapped_page_only() {
    let mut domain = domain(Invalidation::Strict);
    let there = map_pages(&mut domain, 7, 1, Permission::ReadWrite);
    let board = domain.backend_mut();
    let before = memory(board);
    write(board, there.iova().0 + 100, b"where it belongs");
    let meant = with(before, 7 * PAGE + 100, b"where it belongs");
    assert_eq!(memory(board), meant);
    assert_eq!(read(board, there.iova(), PAGE).unwrap(), meant[7 * PAGE as usize..8 * PAGE as usize]);
    assert!(board.errors().is_empty() && board.take_translation_fault().is_none());
}

#[test]
fn scattered_pages_are_mapped_to_one_range() {
    let mut domain = domain(Invalidation::Strict);
    let (at, now) = (domain.backend().mapped_at(), Ticks::ZERO);
    let pages = [9, 3, 30].map(|page| HostPhys(at + page * PAGE));
    let range = domain.map_scattered(&pages, MapRequest::new(Device(0), Permission::Read), now).unwrap();
    let board = domain.backend_mut();
    let all = memory(board);
    let meant = [9_usize, 3, 30].map(|page| &all[page * PAGE as usize..(page + 1) * PAGE as usize]).concat();
    assert_eq!(read(board, range.iova(), 3 * PAGE), Some(meant));
}

#[test]
fn unmapped_or_forbidden_accesses_are_refused_and_recorded_without_changing_memory() {
    let mut domain = domain(Invalidation::Strict);
    let read_only = map_pages(&mut domain, 4, 1, Permission::Read).iova();
    let write_only = map_pages(&mut domain, 5, 1, Permission::Write).iova();
    let board = domain.backend_mut();
    let (before, nowhere) = (memory(board), 0x7654_3000);
    let at_host = board.mapped_at() + 6 * PAGE;
    for (at, reason) in [
        (nowhere, FaultReason::NotMapped),
        // A page of memory that is not mapped.
        (at_host, FaultReason::NotMapped),
        (read_only.0 + 8, FaultReason::NotWritable),
    ] {
        write(board, at, b"gone");
        let fault = board.take_translation_fault().unwrap();
        assert_eq!((fault.requester, fault.at, fault.reason), (CARD, Iova(at), reason));
    }
    for (at, reason) in [(Iova(nowhere), FaultReason::NotMapped), (write_only, FaultReason::NotReadable)] {
        assert_eq!(read(board, at, 64), None);
        assert_eq!(board.take_translation_fault().map(|fault| (fault.at, fault.reason)), Some((at, reason)));
    }
    assert_eq!(memory(board), before);
    assert!(board.take_translation_fault().is_none() && board.slots_in_use() == 0);
    assert_eq!(
        board.errors().iter().map(|noticed| (noticed.error, noticed.count)).collect::<Vec<_>>(),
        [(AerError::UnsupportedRequest, 5)]
    );
    // Permitted accesses still work.
    write(board, write_only.0, b"here");
    assert_eq!(memory(board), with(before, 5 * PAGE, b"here"));
}

#[test]
fn each_page_of_a_transfer_is_refused_separately() {
    let mut domain = domain(Invalidation::Strict);
    let there = map_pages(&mut domain, 10, 4, Permission::ReadWrite);
    let board = domain.backend_mut();
    let hole = IovaRange { at: Iova(there.iova().0 + PAGE), len_bytes: PAGE };
    board.unmap(hole).unwrap();
    let window = Window { offset: 0, len: 4 * PAGE, pattern: Pattern::Sequential };
    let (verb, partner) = (Verb::Store, Partner::Host);
    let transfer = Transfer { card: 0, verb, partner, bytes: 4 * PAGE, count: 1, window, outstanding: None };
    let before = memory(board);
    board.start_transfer_at(&transfer, there.iova(), 1).unwrap();
    while board.step() {}
    let after = memory(board);
    let changed = |page: u64| {
        let bytes = (page * PAGE) as usize..((page + 1) * PAGE) as usize;
        before[bytes.clone()] != after[bytes]
    };
    assert_eq!((0..LOOKED_AT).filter(|page| changed(*page)).collect::<Vec<_>>(), [10, 12, 13]);
    assert_eq!(board.moved(&transfer).0, 3 * PAGE, "the arrived bytes are known");
}

#[test]
fn faults_beyond_the_queue_are_counted() {
    let mut domain = domain(Invalidation::Strict);
    let board = domain.backend_mut();
    (0..10).for_each(|page| write(board, 0x10_0000 + page * PAGE, b"gone"));
    let kept: Vec<TranslationFault> = std::iter::from_fn(|| board.take_translation_fault()).collect();
    assert_eq!((kept.len(), board.lost_translation_faults()), (8, 2));
    assert!(kept.iter().zip(0..).all(|(fault, page)| fault.at.0 == 0x10_0000 + page * PAGE));
}

#[test]
fn a_device_reaches_an_unmapped_page_until_the_deferred_invalidation() {
    let longest = Ticks::whole_ns(1_000_000);
    let mut domain = domain(Invalidation::Deferred { entries: 8, longest });
    let mapping = map_pages(&mut domain, 20, 1, Permission::ReadWrite);
    let at = mapping.iova().0;
    write(domain.backend_mut(), at, b"known");
    let unmapped_at = domain.backend().now();
    domain.unmap(mapping, unmapped_at).unwrap();
    let board = domain.backend_mut();
    let before = memory(board);
    write(board, at + 16, b"through a stale entry");
    let stale = with(before, 20 * PAGE + 16, b"through a stale entry");
    assert_eq!(memory(board), stale, "the window is open");
    let now = board.now();
    domain.flush(now).unwrap();
    let board = domain.backend_mut();
    write(board, at + 16, b"not any more, whoever");
    assert_eq!(memory(board), stale, "the window is closed");
    assert_eq!(board.take_translation_fault().map(|fault| fault.reason), Some(FaultReason::NotMapped));
    // From the call of unmap until the only command has completed.
    let command = Ticks::whole_ns(1000);
    assert_eq!(domain.windows().longest, now.since(unmapped_at) + command);
}

#[test]
fn strict_invalidation_closes_the_window_before_unmap_returns() {
    let mut domain = domain(Invalidation::Strict);
    let mapping = map_pages(&mut domain, 20, 1, Permission::ReadWrite);
    write(domain.backend_mut(), mapping.iova().0, b"known");
    domain.unmap(mapping, Ticks::ZERO).unwrap();
    let board = domain.backend_mut();
    let before = memory(board);
    write(board, mapping.iova().0, b"gone");
    assert_eq!(memory(board), before);
    assert!(board.take_translation_fault().is_some());
}

#[test]
fn an_unmap_completes_after_delayed_partial_line_writes() {
    for [partial_ns, remote_ns] in [["0", "0"], ["10000", "0"], ["10000", "200"]] {
        let platform = platform(&[("memory.partial_line_ns", partial_ns), ("memory.remote_ns", remote_ns)]);
        let mut domain = domain_on(&platform, Invalidation::Strict);
        let mapping = map_pages(&mut domain, 7, 1, Permission::ReadWrite);
        let board = domain.backend_mut();
        for nth in 0..16 {
            let (address, length_dw, first_be, last_be) = span(mapping.iova().0 + nth * 128 + 4, 4);
            let of_card = Tlp { requester: CARD, payload: board.payload(&[0xaa; 4]), ..Tlp::of(TlpKind::MWr) };
            board.inject_at_card(CardIndex(0), Ticks::ZERO, Tlp { address, length_dw, first_be, last_be, ..of_card });
        }
        board.run_until(Ticks::whole_ns(2000));
        let now = domain.backend().now();
        domain.unmap(mapping, now).unwrap();
        let board = domain.backend_mut();
        let then = memory(board);
        while board.step() {}
        assert!(memory(board) == then, "{partial_ns} ns a line");
        assert_eq!(
            then[7 * PAGE as usize + 15 * 128 + 4..][..4],
            [0xaa; 4],
            "all of them were translated before the unmap"
        );
    }
}

#[test]
fn message_addresses_are_never_mapped_with_any_page_size() {
    let attributes = MapRequest::new(Device(0), Permission::ReadWrite).attributes();
    for (page_bytes, size, at) in [("4KiB", "1GiB", 0xfee0_0000), ("1GiB", "4GiB", 0xc000_0000)] {
        let platform = platform(&[("memory.size_bytes", size), ("iommu.page_bytes", page_bytes)]);
        let mut board = Board::new(&platform).unwrap();
        board.map_nothing().unwrap();
        let memory = HostPhys(board.mapped_at());
        let len_bytes = if page_bytes == "4KiB" { PAGE } else { 1 << 30 };
        let range = |at| IovaRange { at: Iova(at), len_bytes };
        assert!(matches!(board.map(range(at), memory, attributes), Err(BackendError::Overlap { .. })), "{page_bytes}");
        assert!(matches!(board.remap(range(at), memory, attributes), Err(BackendError::NotThere { .. })));
        assert!(matches!(board.unmap(range(at)), Err(BackendError::NotThere { .. })));
        board.map(range(at - len_bytes), memory, attributes).unwrap();
        board.unmap(range(at - len_bytes)).unwrap();
    }
}

#[test]
fn an_invalidation_works_before_any_change_of_the_table() {
    let mut board = Board::new(&platform(&[])).unwrap();
    assert!(board.put_invalidation(InvalidationCommand::All).is_ok());
    let mut none = Board::new(&preset("card-gen5-x16").unwrap().unwrap()).unwrap();
    assert_eq!(none.put_invalidation(InvalidationCommand::All).err(), Some(QueueFull { entries: 0 }));
}

#[test]
fn an_invalidation_completes_after_earlier_translated_requests() {
    // Slow enough for many requests to wait at the root port.
    let slow = platform(&[("memory.write_tlp_ns", "50")]);
    let mut domain = domain_on(&slow, Invalidation::Strict);
    let mapping = map_pages(&mut domain, 20, 16, Permission::ReadWrite);
    let range = IovaRange { at: mapping.iova(), len_bytes: 16 * PAGE };
    let board = domain.backend_mut();
    let window = Window { offset: 0, len: 16 * PAGE, pattern: Pattern::Sequential };
    let (verb, partner) = (Verb::Store, Partner::Host);
    let transfer = Transfer { card: 0, verb, partner, bytes: 16 * PAGE, count: 1, window, outstanding: None };
    board.start_transfer_at(&transfer, mapping.iova(), 100).unwrap();
    board.run_until(Ticks::whole_ns(3000));
    board.unmap(range).unwrap();
    let took = board.invalidate(Invalidated::Range { range, by: lanemark_dma::Purge::Matching }).unwrap();
    assert!(took > Ticks::whole_ns(1000), "it waits for requests: {took:?}");
    assert!(board.moved(&transfer).0 > 0 && !board.is_idle(), "the transfer is in progress");
    let after = memory(board);
    while board.step() {}
    assert_eq!(memory(board), after, "no write arrives after the invalidation");
}

#[test]
fn queued_invalidations_complete_after_a_link_reset() {
    let platform = platform(&[]);
    let mut domain = domain_on(&platform, Invalidation::Strict);
    let mapping = map_pages(&mut domain, 20, 1, Permission::ReadWrite);
    let board = domain.backend_mut();
    let number = board.put_invalidation(InvalidationCommand::All).unwrap();
    board.reset(&platform).unwrap();
    board.run_until(Ticks::whole_ns(1000));
    assert!(board.is_invalidated(number));
    let before = memory(board);
    write(board, mapping.iova().0, b"still mapped");
    assert_eq!(memory(board), with(before, 20 * PAGE, b"still mapped"));
}

#[test]
fn a_hung_invalidation_is_an_error_and_its_page_is_not_reused() {
    let fault = "stuck_invalidation@root/card:2".parse().unwrap();
    let platform = platform(&[]).with_fault(fault).unwrap();
    let mut domain = domain_on(&platform, Invalidation::Strict);
    let good = map_pages(&mut domain, 1, 1, Permission::ReadWrite);
    domain.unmap(good, Ticks::ZERO).unwrap();
    let stuck = map_pages(&mut domain, 2, 1, Permission::ReadWrite);
    assert_eq!(stuck.iova(), good.iova(), "an address is reused after its invalidation");
    let error = domain.unmap(stuck, Ticks::ZERO).unwrap_err().to_string();
    assert!(error.contains("no completion after"), "{error}");
    let other = domain.map(
        &mut Buffer::new(HostPhys(domain.backend().mapped_at()), PAGE),
        MapRequest::new(Device(0), Permission::Read),
        Ticks::ZERO,
    );
    assert_ne!(other.unwrap().iova(), stuck.iova());
    let injected_faults = domain.backend().injected_faults(&platform);
    assert_eq!(injected_faults[0].because_not, None);
}

#[test]
fn a_full_invalidation_queue_is_waited_for() {
    let few = platform(&[("iommu.invalidation_entries", "2")]);
    let mut domain = domain_on(&few, Invalidation::Strict);
    let board = domain.backend_mut();
    let [first, second] =
        [board.put_invalidation(InvalidationCommand::All), board.put_invalidation(InvalidationCommand::All)]
            .map(Result::unwrap);
    assert_eq!(board.put_invalidation(InvalidationCommand::All), Err(QueueFull { entries: 2 }));
    board.run_until(Ticks::whole_ns(1000));
    assert!(board.is_invalidated(first) && !board.is_invalidated(second));
    // Three commands in a queue of two: the caller waits.
    let range = IovaRange { at: Iova(3 * PAGE), len_bytes: 9 * PAGE };
    let took = board.invalidate(Invalidated::Range { range, by: lanemark_dma::Purge::Matching }).unwrap();
    assert_eq!(took, Ticks::whole_ns(4000), "with the one before them");
}

#[test]
fn memory_outside_the_board_cannot_be_pinned_and_is_not_mapped() {
    let mut domain = domain(Invalidation::Strict);
    let platform = platform(&[]);
    let (len, at) = (platform.memory.as_ref().unwrap().size_bytes.value, domain.backend().mapped_at());
    let mut map = |pages: u64| {
        let buffer = &mut Buffer::new(HostPhys(at + len - PAGE), pages * PAGE);
        domain.map(buffer, MapRequest::new(Device(0), Permission::Read), Ticks::ZERO)
    };
    let beyond = map(2).unwrap_err().to_string();
    assert!(beyond.contains("cannot be pinned"), "{beyond}");
    let last = map(1).unwrap();
    assert_eq!(domain.live_mappings(), 1);
    let board = domain.backend_mut();
    let next = IovaRange { at: Iova(last.iova().0 + PAGE), len_bytes: PAGE };
    assert!(matches!(board.unmap(next), Err(BackendError::NotThere { at }) if at == next.at), "neither page is mapped");
}

#[test]
fn message_addresses_and_ranges_below_root_ports_cannot_be_mapped() {
    let mut domain = domain(Invalidation::Strict);
    let board = domain.backend_mut();
    let attributes = MapRequest::new(Device(0), Permission::Read).attributes();
    let bar = platform(&[]).bars[0].address_bytes.value;
    for at in [0xFEE0_0000, bar] {
        let mapped = board.map(IovaRange { at: Iova(at), len_bytes: PAGE }, HostPhys(board.mapped_at()), attributes);
        assert!(matches!(mapped, Err(BackendError::Overlap { .. })), "{at:#x}: {mapped:?}");
    }
    let beside = IovaRange { at: Iova(0xFEF0_0000), len_bytes: PAGE };
    board.map(beside, HostPhys(board.mapped_at()), attributes).unwrap();
}

#[test]
fn without_translation_nothing_can_be_mapped_and_addresses_are_physical() {
    let through = platform(&[("iommu.pass_through", "true")]);
    let error = Board::new(&through).unwrap().map_nothing().unwrap_err().to_string();
    assert!(error.contains("no IOMMU that translates"), "{error}");
    let window = Window { offset: 0, len: 1 << 20, pattern: Pattern::Sequential };
    let (verb, partner) = (Verb::Store, Partner::Host);
    let transfer = Transfer { card: 0, verb, partner, bytes: 4096, count: 100, window, outstanding: None };
    let run = |platform: &Platform| {
        let mut samples = Samples::wanted(1);
        let plan = Plan::new(transfer, 1);
        SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap();
        samples.taken[0].delivered
    };
    let without = preset("card-gen5-x16").unwrap().unwrap();
    assert_eq!(run(&through), run(&without));
    assert!(run(&platform(&[])) > run(&without));
}

/// Runs a transfer of 64 KiB twice on a platform with this fault; returns each error, and the changed pieces of 512 B
/// in memory.
fn with_fault(fault: &str, verb: Verb) -> [(BusError, Vec<usize>); 2] {
    let platform = platform(&[]).with_fault(fault.parse().unwrap()).unwrap();
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    let window = Window { offset: 0, len: 16 * PAGE, pattern: Pattern::Sequential };
    let transfer =
        Transfer { card: 0, verb, partner: Partner::Host, bytes: PAGE, count: 16, window, outstanding: None };
    let plan = Plan::new(transfer, 1);
    [0, 1].map(|_| {
        let before = memory(machine.board_mut());
        let Err(MachineError::Bus(error)) = machine.run(&plan, &mut Samples::wanted(1)) else { panic!("{fault}") };
        let after = memory(machine.board_mut());
        assert_eq!(machine.board_mut().take_translation_fault(), None, "the error contains it");
        let pieces = before.chunks(512).zip(after.chunks(512));
        (*error, pieces.enumerate().filter(|(_, (before, after))| before != after).map(|piece| piece.0).collect())
    })
}

#[test]
fn a_page_unmapped_during_a_transfer_is_an_error_with_the_arrived_bytes() {
    // Requests have 512 B: the eighteenth is in the third page, whose eight pieces begin at 16.
    for (error, changed) in with_fault("unmapped@root/card:18", Verb::Store) {
        let said = error.to_string();
        assert!(said.contains("UnsupReq") && said.contains("by card (01:00.0)"), "{said}");
        assert!(said.contains("was refused by the IOMMU: the page is not mapped"), "{said}");
        assert!(said.contains("map that address"), "{said}");
        assert_eq!(error.address, Some(0x1_0000_2000));
        assert_eq!(error.arrived[0].bytes, 512 * changed.len() as u64, "{said}");
        assert!(changed.len() > 16 && changed.len() < 128 - 8, "{changed:?}");
        assert!(changed.iter().all(|piece| !(16..24).contains(piece) && *piece < 128), "{changed:?}");
    }
    for (error, changed) in with_fault("unmapped@root/card:3", Verb::Load) {
        let said = error.to_string();
        assert!(said.contains("MRd of ") && said.contains("the page is not mapped"), "{said}");
        assert!(error.arrived[0].bytes < 16 * PAGE && changed.is_empty(), "{said}");
    }
}

#[test]
fn a_write_to_a_read_only_page_is_an_error() {
    for (error, changed) in with_fault("read_only@root/card", Verb::Store) {
        let said = error.to_string();
        assert!(said.contains("the page is mapped for reads only"), "{said}");
        assert_eq!(error.arrived[0].bytes, 512 * changed.len() as u64, "{said}");
        assert!(changed.iter().all(|piece| (8..128).contains(piece)), "{changed:?}");
    }
}

/// Number of IOVA pages in tests of exhaustion, and the first of them.
const FEW: u64 = 16;
const FIRST: u64 = 1 << 20;

fn few() -> Space {
    Space::between(Iova(FIRST), Iova(FIRST + FEW * PAGE - 1), PAGE).unwrap()
}

/// Maps page after page, from the first one of host memory on, until a mapping fails. Returns the mappings and the
/// error. Checks that each mapping reaches its page, and no other IOVA any page.
fn map_until_refused<A: IovaAllocator>(domain: &mut Domain<A, Board>) -> (Vec<Mapping>, String) {
    let mut mapped = Vec::new();
    let said = loop {
        match try_map_pages(domain, mapped.len() as u64, 1, Permission::ReadWrite) {
            Ok(mapping) => mapped.push(mapping),
            Err(said) => break said,
        }
        assert!(mapped.len() as u64 <= FEW, "more pages than IOVAs");
    };
    let pages: Vec<(u64, Mapping)> = (0..).zip(mapped.iter().copied()).collect();
    check_mapped(domain, &pages);
    (mapped, said)
}

/// Checks that these pages of host memory are mapped as given, and no others.
fn check_mapped<A: IovaAllocator>(domain: &mut Domain<A, Board>, mapped: &[(u64, Mapping)]) {
    let board = domain.backend_mut();
    let mut meant = memory(board);
    for (page, mapping) in mapped {
        let bytes = format!("{page} by {}", mapping.iova());
        let place = page * PAGE + 64 * (page % 7);
        write(board, mapping.iova().0 + place % PAGE, bytes.as_bytes());
        meant = with(meant, place, bytes.as_bytes());
        let whole = &meant[(page * PAGE) as usize..((page + 1) * PAGE) as usize];
        assert_eq!(read(board, mapping.iova(), PAGE).as_deref(), Some(whole));
    }
    assert!(board.take_translation_fault().is_none());
    let is_mapped = |at: u64| mapped.iter().any(|(_, mapping)| mapping.iova().0 == at);
    for at in (FIRST - PAGE..=FIRST + FEW * PAGE).step_by(PAGE as usize).filter(|at| !is_mapped(*at)) {
        write(board, at, b"gone");
        assert_eq!(board.take_translation_fault().map(|fault| fault.reason), Some(FaultReason::NotMapped), "{at:#x}");
    }
    assert!(memory(board) == meant);
}

/// Exhausts the IOVAs by one device; a mapping of one page uses `of_one` pages of them.
fn exhausts<A: IovaAllocator>(strategy: A, order: AccessOrder, of_one: u64) {
    let name = strategy.name();
    let mut domain = domain_by(strategy, &platform(&[]), Invalidation::Strict);
    if order == AccessOrder::Sequential {
        domain.set_order(Device(0), order).unwrap();
    }
    let (mut mapped, said) = map_until_refused(&mut domain);
    assert_eq!(mapped.len() as u64, FEW / of_one, "{name}");
    let meant = format!(
        "test: {name} has no IOVA for card: 4096 contiguous bytes requested; 0 B are free, the longest run is 0 B; \
         unmap something, or use a larger space"
    );
    assert_eq!(said, meant);
    // After an unmap, another page gets its IOVA.
    let gone = mapped.remove(3);
    domain.unmap(gone, Ticks::ZERO).unwrap();
    let next = map_pages(&mut domain, 40, 1, Permission::ReadWrite);
    assert_eq!(next.iova(), gone.iova(), "{name}");
    assert_eq!(try_map_pages(&mut domain, 41, 1, Permission::Read), Err(meant));
    let stay = (0..).filter(|page| *page != 3).zip(mapped.iter().copied()).chain([(40, next)]);
    check_mapped(&mut domain, &stay.collect::<Vec<_>>());
    // Every mapping can be unmapped.
    mapped.into_iter().chain([next]).for_each(|mapping| domain.unmap(mapping, Ticks::ZERO).unwrap());
    check_mapped(&mut domain, &[]);
}

#[test]
fn exhausted_iovas_are_an_error_and_an_unmapped_one_is_reused() {
    exhausts(FreeList::new(few()), AccessOrder::Any, 1);
    exhausts(Buddy::new(few()), AccessOrder::Any, 1);
    exhausts(Magazine::new(few(), 2).unwrap().core(1).unwrap(), AccessOrder::Any, 1);
    let ranges = || Ranges::of_pages(few(), 4).unwrap();
    exhausts(ranges(), AccessOrder::Any, 4);
    exhausts(Sequential::new(ranges()).unwrap(), AccessOrder::Any, 4);
    exhausts(Sequential::new(ranges()).unwrap(), AccessOrder::Sequential, 1);
}

/// Unmaps every second page: there is space, but no free run of two pages until a neighbour is unmapped.
fn scatters<A: IovaAllocator>(strategy: A, order: AccessOrder) {
    let name = strategy.name();
    let mut domain = domain_by(strategy, &platform(&[]), Invalidation::Strict);
    if order == AccessOrder::Sequential {
        domain.set_order(Device(0), order).unwrap();
    }
    let (mapped, _) = map_until_refused(&mut domain);
    let (goes, stays): (Vec<_>, Vec<_>) = (0..).zip(mapped).partition(|(page, _)| page % 2 == 0);
    for (_, mapping) in goes {
        domain.unmap(mapping, Ticks::ZERO).unwrap();
    }
    let said = try_map_pages(&mut domain, 50, 2, Permission::ReadWrite).unwrap_err();
    let meant = "8192 contiguous bytes requested; 32768 B are free, the longest run is 4096 B; unmap something";
    assert!(said.contains(&format!("{name} has no IOVA for card: {meant}")), "{said}");
    check_mapped(&mut domain, &stays);
    domain.unmap(stays[0].1, Ticks::ZERO).unwrap();
    let two = map_pages(&mut domain, 50, 2, Permission::ReadWrite);
    let board = domain.backend_mut();
    let before = memory(board);
    write(board, two.iova().0 + PAGE - 4, b"over two pages");
    assert!(memory(board) == with(before, 51 * PAGE - 4, b"over two pages"), "{name}");
}

#[test]
fn fragmented_iovas_report_the_free_bytes_and_the_longest_run() {
    scatters(FreeList::new(few()), AccessOrder::Any);
    scatters(Buddy::new(few()), AccessOrder::Any);
    scatters(Magazine::new(few(), 2).unwrap().core(0).unwrap(), AccessOrder::Any);
    scatters(Sequential::new(Ranges::of_pages(few(), 4).unwrap()).unwrap(), AccessOrder::Sequential);
}

#[test]
fn iovas_that_wait_for_their_invalidation_are_reclaimed_when_needed() {
    let longest = Ticks::whole_ns(1_000_000_000);
    let policy = Invalidation::Deferred { entries: 64, longest };
    let mut domain = domain_by(FreeList::new(few()), &platform(&[]), policy);
    let (mapped, _) = map_until_refused(&mut domain);
    for mapping in mapped {
        domain.unmap(mapping, Ticks::ZERO).unwrap();
    }
    let again = map_pages(&mut domain, 20, FEW, Permission::ReadWrite);
    let board = domain.backend_mut();
    let before = memory(board);
    write(board, again.iova().0, b"through no stale entry");
    assert!(memory(board) == with(before, 20 * PAGE, b"through no stale entry"));
}

#[test]
fn a_buffer_with_an_unpinnable_page_is_not_mapped_and_the_page_is_named() {
    let len = platform(&[]).memory.as_ref().unwrap().size_bytes.value;
    let beyond = |domain: &Domain<FreeList, Board>| domain.backend().mapped_at() + len;
    let mut domain = domain_by(FreeList::new(few()), &platform(&[]), Invalidation::Strict);
    let kept = map_pages(&mut domain, 7, 1, Permission::ReadWrite);
    let names = |said: String, page: u64| {
        assert!(said.contains("test: IOMMU of the board, mapping"), "{said}");
        let meant = format!("the page at {page:#x} cannot be pinned: it is outside the {len} B of memory from");
        assert!(said.contains(&meant), "{said}, and not {meant}");
    };
    // Contiguous: the third of four pages is the first one beyond the end.
    let said = try_map_pages(&mut domain, len / PAGE - 2, 4, Permission::ReadWrite).unwrap_err();
    names(said, beyond(&domain));
    check_mapped(&mut domain, &[(7, kept)]);
    // Scattered: two pages are mapped before the failing one.
    let at = domain.backend().mapped_at();
    let pages = [HostPhys(at + 9 * PAGE), HostPhys(at + 3 * PAGE), HostPhys(beyond(&domain) + PAGE), HostPhys(at)];
    let map_all_request = MapRequest::new(Device(0), Permission::ReadWrite);
    let said = domain.map_scattered(&pages, map_all_request, Ticks::ZERO).unwrap_err().to_string();
    names(said, beyond(&domain) + PAGE);
    assert_eq!(domain.live_mappings(), 1);
    check_mapped(&mut domain, &[(7, kept)]);
    // Below the memory.
    let below = Buffer::new(HostPhys(at - PAGE), 2 * PAGE);
    names(domain.map_all(below, map_all_request, Ticks::ZERO).unwrap_err().to_string(), at - PAGE);
    // The next mapping takes every IOVA but the one in use: none was lost.
    let next = map_pages(&mut domain, 20, FEW - 1, Permission::ReadWrite);
    assert_eq!(next.iova().0, kept.iova().0 + PAGE);
    let board = domain.backend_mut();
    let before = memory(board);
    write(board, next.iova().0 + (FEW - 1) * PAGE - 4, b"last");
    assert!(memory(board) == with(before, (20 + FEW - 1) * PAGE - 4, b"last"));
}
