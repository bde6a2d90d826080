//! Hardware cache coherent I/O of the HP 9000 J/K class as published: rules and interface, tested on the coherent board with
//! the `dma` crate. Comments name the rows of the paper, H1 to H8; H2 is in `sharing_a_buffer.rs`.

use lanemark_coherent::{
    CoherentBoard, Fault, Forbidden, Indexed, LineState, NoAccess, PageEntry, Request, Spec, TlbCommand,
    TransactionKind,
};
use lanemark_dma::{
    AccessOrder, AllocRequest, Buffer, Device, DmaError, DmaErrorKind, Domain, Hints, Invalidation, IovaAllocator,
    MapRequest, Mapping, Owner, Permission, Pool, Ranges, Sequential, Space,
};
use lanemark_units::{HostPhys, HostVirt, Iova, Ticks};

const NOW: Ticks = Ticks::ZERO;
const PAGE: u64 = 4096;
/// A buffer whose lines conflict with no other data in the caches.
const AT: HostVirt = HostVirt(0x2_5000);
const OLD: [u8; 32] = [0x0d; 32];
const NEW: [u8; 32] = [0xe3; 32];

/// A board with its page directory, a DMA domain and a device.
struct Machine {
    domain: Domain<Sequential, CoherentBoard>,
    device: Device,
}

impl Machine {
    /// A board with page numbers of 16 bits, which is fast to build: 8 bits of chain ID, 8 of block ID.
    fn new(mut spec: Spec) -> Machine {
        spec.adapter.tlb.block_bits = 8;
        let ranges = Ranges::new(Space::of_device(28).unwrap()).unwrap().over_entries(256).unwrap();
        let board = CoherentBoard::new(spec).unwrap();
        let mut domain = Domain::new("machine", Sequential::new(ranges).unwrap(), board, Invalidation::Strict).unwrap();
        let device = domain.attach("device 0").unwrap();
        Machine { domain, device }
    }

    fn coherent() -> Machine {
        Machine::new(Spec::coherent())
    }

    /// A board with old bytes in memory at `AT`, which are in no cache.
    fn with_old_bytes(spec: Spec) -> Machine {
        let mut machine = Machine::new(spec);
        machine.board().store(0, AT, &[0x0d; 2 * PAGE as usize]).unwrap();
        machine.board().flush(0, AT, 2 * PAGE as usize).unwrap();
        machine
    }

    fn board(&mut self) -> &mut CoherentBoard {
        self.domain.backend_mut()
    }

    fn request(&self, hints: Hints) -> MapRequest {
        MapRequest::new(self.device, Permission::ReadWrite).hints(hints)
    }

    fn map(&mut self, at: HostVirt, len_bytes: u64, hints: Hints) -> Mapping {
        let lend = self.request(hints);
        self.domain.map(&mut Buffer::new(at, len_bytes), lend, NOW).unwrap()
    }

    fn load(&mut self, processor: usize, at: HostVirt) -> [u8; 32] {
        let mut seen = [0; 32];
        self.board().load(processor, at, &mut seen).unwrap();
        seen
    }

    fn device_read(&mut self, at: Iova) -> [u8; 32] {
        let mut seen = [0; 32];
        self.board().device_read(0, at, &mut seen).unwrap();
        seen
    }

    fn in_memory(&mut self, at: HostVirt) -> [u8; 32] {
        let mut there = [0; 32];
        let physical = self.board().physical(at).unwrap();
        self.board().in_memory(physical, &mut there);
        there
    }

    fn state(&mut self, processor: usize, at: HostVirt) -> Option<LineState> {
        let line = self.board().line_of(at);
        self.board().processor(processor).unwrap().cache().state(line)
    }

    fn entry(&mut self, mapping: Mapping) -> PageEntry {
        self.board().directory_entry(mapping.iova()).unwrap()
    }

    fn bus(&self, kind: TransactionKind) -> u64 {
        self.domain.backend().bus().count(kind)
    }

    /// Hits and misses of the I/O TLB.
    fn tlb(&self) -> (u64, u64) {
        let counts = self.domain.backend().adapter().counts();
        (counts.hits, counts.misses)
    }
}

/// Runs the board until the adapter holds a line that it changes.
fn until_held(board: &mut CoherentBoard) {
    while board.adapter().held().is_none() {
        assert!(board.next_at() < Ticks::NEVER, "the board is idle");
        board.run_until(board.next_at());
    }
}

const fn after(at: HostVirt, bytes: u64) -> HostVirt {
    HostVirt(at.0 + bytes)
}

const fn iova(at: Iova, bytes: u64) -> Iova {
    Iova(at.0 + bytes)
}

// H1: private and dirty lines, snooping, cache-to-cache copies; the adapter's one-line cache; COH_OK and COH_CPY.

#[test]
fn a_dirty_line_is_copied_to_the_reading_processor_and_to_memory() {
    let mut machine = Machine::with_old_bytes(Spec::coherent());
    machine.board().store(0, AT, &NEW).unwrap();
    assert_eq!(
        (machine.state(0, AT), machine.in_memory(AT)),
        (Some(LineState::Dirty), OLD),
        "the line must not be written back yet"
    );
    let copies = machine.board().counts().copies;
    assert_eq!(machine.load(1, AT), NEW);
    assert_eq!(machine.board().counts().copies, copies + 1);
    assert_eq!(machine.in_memory(AT), NEW);
    let states = [machine.state(0, AT), machine.state(1, AT)];
    assert_eq!(states, [Some(LineState::Shared); 2]);
}

#[test]
fn a_store_takes_the_line_private_and_invalidates_other_copies() {
    let mut machine = Machine::with_old_bytes(Spec::coherent());
    assert_eq!((machine.load(0, AT), machine.load(1, AT)), (OLD, OLD));
    let private = machine.bus(TransactionKind::ReadPrivate(32));
    machine.board().store(1, AT, &[0xe3]).unwrap();
    assert_eq!(machine.bus(TransactionKind::ReadPrivate(32)), private + 1);
    assert_eq!((machine.state(0, AT), machine.state(1, AT)), (None, Some(LineState::Dirty)));
    machine.board().store(1, after(AT, 1), &[0xe3]).unwrap();
    assert_eq!(machine.bus(TransactionKind::ReadPrivate(32)), private + 1, "the processor already owns the line");
}

#[test]
fn a_device_read_returns_dirty_bytes_of_a_processor() {
    let mut machine = Machine::with_old_bytes(Spec::coherent());
    let mapping = machine.map(AT, PAGE, Hints::NONE);
    machine.board().store(1, AT, &NEW).unwrap();
    assert_eq!(machine.in_memory(AT), OLD);
    assert_eq!(machine.device_read(mapping.iova()), NEW);
    assert_eq!(machine.in_memory(AT), NEW);
}

#[test]
fn the_adapter_finds_a_line_only_by_the_virtual_index_of_its_page() {
    for (indexed, elsewhere) in [(Indexed::Virtually, OLD), (Indexed::Physically, NEW)] {
        let mut spec = Spec::coherent();
        spec.processor.cache.indexed = indexed;
        let mut machine = Machine::with_old_bytes(spec);
        // Programs map the page at two addresses with different indexes.
        let other = HostVirt(0x3_6000);
        machine.board().place(other, HostPhys(AT.0), 1).unwrap();
        machine.board().store(0, other, &NEW).unwrap();
        let (by_other, by_this) = (machine.map(other, PAGE, Hints::NONE), machine.map(AT, PAGE, Hints::NONE));
        assert_eq!((machine.entry(by_other).index(), machine.entry(by_this).index()), (other.0, AT.0));
        assert_eq!(machine.entry(by_other).physical(), machine.entry(by_this).physical());
        assert_eq!(machine.device_read(by_this.iova()), elsewhere, "{indexed:?}");
        assert_eq!(machine.device_read(by_other.iova()), NEW, "{indexed:?}");
    }
}

#[test]
fn a_device_write_reaches_caching_processors_and_keeps_their_changes_of_the_line() {
    let mut machine = Machine::with_old_bytes(Spec::coherent());
    let mapping = machine.map(AT, PAGE, Hints::NONE);
    assert_eq!((machine.load(0, AT), machine.load(1, AT)), (OLD, OLD));
    machine.board().device_write(0, mapping.iova(), &NEW).unwrap();
    assert_eq!((machine.load(0, AT), machine.load(1, AT)), (NEW, NEW));
    // One word, in a line whose other word a processor has changed.
    machine.board().store(0, AT, &[1, 2, 3, 4]).unwrap();
    machine.board().device_write(0, iova(mapping.iova(), 4), &[5, 6, 7, 8]).unwrap();
    let mut meant = NEW;
    meant[..8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!((machine.load(1, AT), machine.in_memory(AT)), (meant, meant));
}

#[test]
fn a_processor_read_of_the_adapters_line_waits_and_returns_it_merged() {
    let mut machine = Machine::with_old_bytes(Spec::coherent());
    let mapping = machine.map(AT, PAGE, Hints::NONE);
    machine.board().store(1, AT, &[1, 2, 3, 4]).unwrap();
    let board = machine.board();
    let written = board.ask(Request::DeviceWrite { device: 0, at: iova(mapping.iova(), 4), data: vec![9; 4] }).unwrap();
    until_held(board);
    assert_eq!(board.counts().held_up, 0);
    let loaded = board.ask(Request::Load { processor: 0, at: AT }).unwrap();
    let (loaded, written) = (board.wait(loaded).unwrap(), board.wait(written).unwrap());
    assert_eq!((board.counts().held_up, board.adapter().held()), (1, None));
    assert!(loaded.at > written.at, "{loaded:?} before {written:?}");
    assert_eq!(loaded.bytes[..12], [1, 2, 3, 4, 9, 9, 9, 9, 13, 13, 13, 13]);
}

#[test]
fn an_uncached_store_waits_for_the_adapters_line_and_without_coherence_is_overwritten() {
    for (spec, meant, waits) in [(Spec::coherent(), 7, 1), (Spec::not_coherent(false), 0x0d, 0)] {
        let mut machine = Machine::with_old_bytes(spec);
        let mapping = machine.map(AT, PAGE, Hints::NONE);
        let board = machine.board();
        let written = board.ask(Request::DeviceWrite { device: 0, at: mapping.iova(), data: vec![9; 4] }).unwrap();
        until_held(board);
        let stored = Request::StoreUncached { processor: 1, at: after(AT, 8), data: vec![7; 8] };
        let stored = board.ask(stored).unwrap();
        for ticket in [written, stored] {
            board.wait(ticket).unwrap();
        }
        assert_eq!(board.counts().held_up, waits);
        let there = machine.in_memory(AT);
        assert_eq!((&there[..4], &there[8..16]), (&[9; 4][..], &[meant; 8][..]));
    }
}

#[test]
fn other_lines_do_not_wait_for_the_adapters_line() {
    let mut machine = Machine::with_old_bytes(Spec::coherent());
    let mapping = machine.map(AT, PAGE, Hints::NONE);
    let board = machine.board();
    board.ask(Request::DeviceWrite { device: 0, at: mapping.iova(), data: vec![9; 4] }).unwrap();
    until_held(board);
    board.load(0, after(AT, 32), &mut [0; 32]).unwrap();
    assert_eq!(board.counts().held_up, 0);
}

// H3: the chain ID selects the entry of the I/O TLB, the block ID is its tag; a miss reads the page directory.

#[test]
fn a_page_takes_128_transactions_of_32_bytes_and_one_tlb_miss() {
    let mut machine = Machine::with_old_bytes(Spec::coherent());
    let mapping = machine.map(AT, PAGE, Hints::NO_PREFETCH);
    let (reads, writes) = (machine.bus(TransactionKind::Read(32)), machine.bus(TransactionKind::ReadPrivate(32)));
    machine.board().device_read(0, mapping.iova(), &mut [0; PAGE as usize]).unwrap();
    assert_eq!(machine.domain.backend().adapter().io_bus().count(TransactionKind::Read(32)), 128);
    assert_eq!(machine.tlb(), (127, 1));
    // The lines, and one of the page directory; processors issued no transaction.
    assert_eq!(
        (machine.bus(TransactionKind::Read(32)), machine.bus(TransactionKind::ReadPrivate(32))),
        (reads + 129, writes)
    );
}

#[test]
fn two_streams_miss_with_each_access_on_one_chain_id_and_once_per_page_on_two() {
    for (shared, meant) in [(true, (0, 256)), (false, (254, 2))] {
        let mut machine = Machine::coherent();
        let (one, other) = if shared {
            let both = machine.map(AT, 2 * PAGE, Hints::NO_PREFETCH);
            (both.iova(), iova(both.iova(), PAGE))
        } else {
            let one = machine.map(AT, PAGE, Hints::NO_PREFETCH);
            (one.iova(), machine.map(after(AT, PAGE), PAGE, Hints::NO_PREFETCH).iova())
        };
        let board = machine.board();
        let tlb = &board.spec().adapter.tlb;
        assert_eq!((tlb.chain_id(one) == tlb.chain_id(other), tlb.entries), (shared, 256));
        let begin = |board: &mut CoherentBoard, device, at| {
            board.ask(Request::DeviceRead { device, at, len_bytes: PAGE as usize }).unwrap()
        };
        let tickets = [begin(board, 0, one), begin(board, 1, other)];
        for ticket in tickets {
            board.wait(ticket).unwrap();
        }
        assert_eq!(machine.tlb(), meant, "shared: {shared}");
    }
}

#[test]
fn an_invalid_entry_is_a_recorded_fault_and_nothing_is_written() {
    let mut machine = Machine::with_old_bytes(Spec::coherent());
    let mapping = machine.map(AT, PAGE, Hints::NONE);
    let beside = iova(mapping.iova(), PAGE);
    let refused = machine.board().device_write(0, iova(beside, 64), &NEW).unwrap_err();
    let fault = Fault { device: 0, at: iova(beside, 64), is_write: true, why: Forbidden::NotValid };
    assert_eq!(refused, NoAccess::Fault(fault));
    // A transfer that begins in a mapped page ends at the page.
    let ends_outside = iova(mapping.iova(), PAGE - 32);
    let refused = machine.board().device_write(0, ends_outside, &[0xe3; 64]).unwrap_err();
    assert_eq!(refused, NoAccess::Fault(Fault { at: beside, ..fault }));
    assert_eq!((machine.load(0, after(AT, PAGE - 32)), machine.load(0, after(AT, PAGE))), (NEW, OLD));
    // Beyond the directory, and without permission.
    let above = Iova(1 << 28);
    let refused = machine.board().device_read(0, above, &mut [0; 4]).unwrap_err();
    assert_eq!(refused, NoAccess::Fault(Fault { device: 0, at: above, is_write: false, why: Forbidden::NoEntry }));
    let lend = MapRequest::new(machine.device, Permission::Read);
    let read_only = machine.domain.map(&mut Buffer::new(AT, PAGE), lend, NOW).unwrap().iova();
    let refused = machine.board().device_write(0, read_only, &NEW).unwrap_err();
    let not_permitted = Fault { device: 0, at: read_only, is_write: true, why: Forbidden::NotPermitted };
    assert_eq!((refused, machine.load(0, AT)), (NoAccess::Fault(not_permitted), OLD));
    assert_eq!(machine.board().faults().count(), 4);
    assert_eq!(machine.device_read(read_only), OLD, "the machine must continue");
}

// H4: page attributes: fast or safe half-line writes, prefetch, atomic.

#[test]
fn a_fast_half_line_write_loses_the_dirty_other_half_and_a_safe_one_keeps_it() {
    for (hints, other_half, meant) in [(Hints::NONE, 0x0d, [1, 0, 0]), (Hints::SAFE, 0x77, [0, 1, 1])] {
        let mut spec = Spec::coherent();
        spec.adapter.devices[0] = 16;
        let mut machine = Machine::with_old_bytes(spec);
        let mapping = machine.map(AT, PAGE, hints);
        machine.board().store(1, AT, &[0x77; 32]).unwrap();
        let counted = |machine: &Machine| {
            [TransactionKind::WritePurge(16), TransactionKind::ReadPrivate(32), TransactionKind::Write(32)]
                .map(|kind| machine.bus(kind))
        };
        let before = counted(&machine);
        machine.board().device_write(0, mapping.iova(), &[0xe3; 16]).unwrap();
        let after = counted(&machine);
        assert_eq!([after[0] - before[0], after[1] - before[1], after[2] - before[2]], meant, "{hints:?}");
        let seen = machine.load(1, AT);
        assert_eq!((&seen[..16], &seen[16..]), (&[0xe3; 16][..], &[other_half; 16][..]), "{hints:?}");
    }
}

#[test]
fn a_fast_half_line_write_takes_less_time_than_a_safe_one() {
    let took = |hints| {
        let mut spec = Spec::coherent();
        spec.adapter.devices[0] = 16;
        let mut machine = Machine::with_old_bytes(spec);
        let mapping = machine.map(AT, PAGE, hints);
        machine.board().device_write(0, mapping.iova(), &[0xe3; PAGE as usize]).unwrap()
    };
    assert!(took(Hints::NONE) < took(Hints::SAFE));
}

// H4, H7a: memory accepts no write below half a line.
#[test]
fn writes_below_half_a_line_are_read_modify_write_on_fast_pages_too() {
    for bytes in [4, 8] {
        let mut machine = Machine::with_old_bytes(Spec::coherent());
        let mapping = machine.map(AT, PAGE, Hints::NONE);
        machine.board().store(1, AT, &[0x77; 32]).unwrap();
        let modified = machine.board().adapter().counts().modified;
        machine.board().device_write(0, iova(mapping.iova(), 8), &[0xe3; 8][..bytes]).unwrap();
        let mut meant = [0x77; 32];
        meant[8..8 + bytes].fill(0xe3);
        assert_eq!((machine.load(1, AT), machine.in_memory(AT)), (meant, meant));
        assert_eq!(machine.board().adapter().counts().modified, modified + 1);
        let short = [
            TransactionKind::Write(4),
            TransactionKind::Write(8),
            TransactionKind::WritePurge(4),
            TransactionKind::WritePurge(8),
        ];
        assert_eq!(short.map(|kind| machine.bus(kind)), [0; 4]);
        assert_eq!(machine.domain.backend().adapter().io_bus().count(TransactionKind::Write(bytes as u64)), 1);
    }
}

#[test]
fn a_prefetched_line_is_stale_after_a_processor_write() {
    for (hints, meant) in [(Hints::NONE, OLD), (Hints::NO_PREFETCH, NEW)] {
        let mut machine = Machine::with_old_bytes(Spec::coherent());
        let mapping = machine.map(AT, PAGE, hints);
        assert_eq!(machine.device_read(mapping.iova()), OLD);
        machine.board().run_until(Ticks::whole_ns(100_000_000));
        machine.board().store(1, after(AT, 32), &NEW).unwrap();
        assert_eq!(machine.device_read(iova(mapping.iova(), 32)), meant, "{hints:?}");
        // Device writes are never prefetched.
        let fetched = machine.board().adapter().counts().prefetched;
        machine.board().device_write(0, mapping.iova(), &[0xe3; 256]).unwrap();
        assert_eq!(machine.board().adapter().counts().prefetched, fetched);
    }
}

#[test]
fn an_atomic_transfer_blocks_processor_accesses_to_memory() {
    for (hints, waits) in [(Hints::NO_PREFETCH, false), (Hints::NO_PREFETCH | Hints::ATOMIC, true)] {
        let mut machine = Machine::with_old_bytes(Spec::coherent());
        let mapping = machine.map(AT, 2 * PAGE, hints);
        let elsewhere = HostVirt(0x10_0000);
        machine.load(0, after(elsewhere, 1024));
        let board = machine.board();
        let transfer = board.ask(Request::DeviceRead { device: 0, at: mapping.iova(), len_bytes: 8192 }).unwrap();
        board.run_until(board.now() + Ticks::whole_ns(2000));
        let misses = [0, 1].map(|processor| board.ask(Request::Load { processor, at: elsewhere }).unwrap());
        let transfer = board.wait(transfer).unwrap();
        for miss in misses {
            let miss = board.wait(miss).unwrap();
            assert_eq!(miss.at > transfer.at, waits, "{hints:?}: {:?}, {:?}", miss.at, transfer.at);
        }
        // A cache hit needs no memory access.
        let transfer = board.ask(Request::DeviceRead { device: 0, at: mapping.iova(), len_bytes: 8192 }).unwrap();
        board.run_until(board.now() + Ticks::whole_ns(2000));
        let hit = board.ask(Request::Load { processor: 0, at: after(elsewhere, 1024) }).unwrap();
        let (hit, transfer) = (board.wait(hit).unwrap(), board.wait(transfer).unwrap());
        assert!(hit.at < transfer.at);
    }
}

#[test]
fn a_prefetched_line_is_dropped_by_a_purge_or_a_device_write() {
    for purges in [false, true] {
        let mut machine = Machine::with_old_bytes(Spec::coherent());
        let mapping = machine.map(AT, PAGE, Hints::NONE);
        assert_eq!(machine.device_read(mapping.iova()), OLD);
        machine.board().run_until(Ticks::whole_ns(100_000_000));
        if purges {
            machine.board().store(1, after(AT, 32), &NEW).unwrap();
            machine.board().command(0, TlbCommand::Purge { at: mapping.iova() }).unwrap();
        } else {
            machine.board().device_write(1, iova(mapping.iova(), 32), &NEW).unwrap();
        }
        assert_eq!(machine.device_read(iova(mapping.iova(), 32)), NEW, "purges: {purges}");
    }
}

#[test]
fn attributes_of_a_live_mapping_can_be_changed() {
    let mut machine = Machine::with_old_bytes(Spec::coherent());
    let mapping = machine.map(AT, PAGE, Hints::NONE);
    machine.board().device_write(0, mapping.iova(), &NEW).unwrap();
    let before = machine.entry(mapping);
    let mapping = machine.domain.set_attributes(mapping, Permission::Read, Hints::SAFE, NOW).unwrap();
    let entry = machine.entry(mapping);
    assert_eq!((entry.physical(), entry.index()), (before.physical(), before.index()));
    assert!(entry.is_safe() && !before.is_safe());
    assert!(machine.board().device_write(0, mapping.iova(), &OLD).is_err(), "the old translation must be invalidated");
    assert_eq!(machine.device_read(mapping.iova()), NEW);
}

// H5: map() maps pieces in a loop and returns the rest; unmap() releases; hints; dma_sync().

#[test]
fn map_is_repeated_until_the_rest_is_empty() {
    let mut machine = Machine::coherent();
    let lend = machine.request(Hints::NONE);
    // 70 KiB from the middle of a line.
    let mut rest = Buffer::new(after(AT, 16), 70 << 10);
    let (mut left, mut lengths, mut safe) = (Vec::new(), Vec::new(), Vec::new());
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let piece = machine.domain.map(&mut rest, lend, NOW).unwrap();
        left.push(rest.len_bytes);
        lengths.push(piece.len_bytes());
        safe.push(machine.entry(piece).is_safe());
        pieces.push(piece);
    }
    // The page with the shared first line, two ranges, a page, and the page with the shared last line.
    assert_eq!(lengths, [4080, 32 << 10, 32 << 10, 2048 + 16]);
    assert_eq!(left, [67600, 34832, 2064, 0]);
    assert_eq!(safe, [true, false, false, true]);
    assert_eq!(machine.board().directory_entries(), 1 + 8 + 8 + 1);
    for piece in &pieces {
        machine.domain.unmap(*piece, NOW).unwrap();
    }
    assert_eq!(machine.board().directory_entries(), 0);
    let error = machine.domain.unmap(pieces[0], NOW).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::UnmappedBefore { .. }), "{error}");
}

#[test]
fn an_entry_contains_page_virtual_index_and_hints() {
    let mut machine = Machine::coherent();
    let virt = HostVirt(0x46_5000);
    machine.board().place(virt, HostPhys(0xab_cdef_1000), 1).unwrap();
    for (hints, is) in [
        (Hints::NONE, [true, false, false]),
        (Hints::SAFE, [true, false, true]),
        (Hints::ATOMIC, [true, true, false]),
        (Hints::NO_PREFETCH, [false, false, false]),
    ] {
        let mapping = machine.map(virt, PAGE, hints);
        let entry = machine.entry(mapping);
        assert_eq!([entry.may_prefetch(), entry.is_atomic(), entry.is_safe()], is, "{hints:?}");
        assert_eq!((entry.physical(), entry.index()), (HostPhys(0xab_cdef_1000), 0x46_5000));
    }
}

#[test]
fn unaligned_or_short_buffers_are_safe_unless_a_hint_overrides_it() {
    for (first, len, is_safe) in [(0, 32, false), (16, 32, true), (0, 16, true), (0, 4096, false), (4, 64, true)] {
        let mut machine = Machine::coherent();
        for (hints, meant) in
            [(Hints::NONE, is_safe), (Hints::ANY_ALIGNMENT, false), (Hints::ONE_PIECE, false), (Hints::SAFE, true)]
        {
            let mapping = machine.map(after(AT, first), len, hints);
            assert_eq!(
                (machine.entry(mapping).is_safe(), mapping.len_bytes()),
                (meant, len),
                "{first} {len} {hints:?}"
            );
        }
    }
}

#[test]
fn a_too_long_one_piece_request_fails_without_mapping() {
    let mut machine = Machine::coherent();
    let lend = machine.request(Hints::ONE_PIECE);
    let mut long = Buffer::new(AT, 8 * PAGE + 1);
    let error: DmaError = machine.domain.map(&mut long, lend, NOW).unwrap_err();
    assert!(matches!(error.kind(), DmaErrorKind::NoIova { .. }), "{error}");
    assert_eq!((long.len_bytes, machine.board().directory_entries()), (8 * PAGE + 1, 0));
    let just = machine.domain.map(&mut Buffer::new(AT, 8 * PAGE), lend, NOW).unwrap();
    assert_eq!((just.len_bytes(), machine.board().directory_entries()), (8 * PAGE, 8));
}

#[test]
fn a_failing_map_releases_its_pieces() {
    let mut machine = Machine::coherent();
    let lend = machine.request(Hints::NONE);
    // Its third range is beyond the end of memory.
    let error = machine.domain.map_all(Buffer::new(HostVirt((1 << 40) - 16 * PAGE), 24 * PAGE), lend, NOW).unwrap_err();
    assert!(error.to_string().contains("memory ends at 2^40 B"), "{error}");
    assert_eq!((machine.board().directory_entries(), machine.domain.live_mappings()), (0, 0));
}

#[test]
fn sync_flushes_on_non_coherent_machines_only() {
    for (spec, flushes) in [(Spec::coherent(), 0), (Spec::not_coherent(false), 128)] {
        let mut machine = Machine::new(spec);
        machine.domain.sync(Buffer::new(AT, PAGE), Permission::Read, Owner::Device).unwrap();
        assert_eq!((machine.bus(TransactionKind::Flush), machine.bus(TransactionKind::Purge)), (flushes, 0));
    }
}

// H6: ranges of 8 pages are allocated in order, so that up to 256 of them share no TLB entry.

#[test]
fn up_to_256_ranges_share_no_tlb_entry() {
    for (count, shared) in [(256, 0), (257, 2)] {
        let mut machine = Machine::coherent();
        let at: Vec<Iova> = (0..count).map(|_| machine.map(AT, PAGE, Hints::NO_PREFETCH).iova()).collect();
        for _ in 0..2 {
            for at in &at {
                machine.device_read(*at);
            }
        }
        // The first time each misses; the second time only those that evicted each other.
        assert_eq!(machine.tlb(), (count - shared, count + shared), "{count}");
        assert_eq!(machine.board().adapter().tlb().valid(), 256);
    }
}

#[test]
fn ranges_have_eight_pages_and_the_lowest_free_one_is_next() {
    let mut machine = Machine::coherent();
    let of = |machine: &Machine, at| machine.domain.backend().spec().adapter.tlb.chain_id(at);
    let mapped: Vec<Mapping> = (0..4).map(|_| machine.map(AT, 8 * PAGE, Hints::NONE)).collect();
    let chains: Vec<u64> = mapped.iter().map(|mapping| of(&machine, mapping.iova())).collect();
    assert_eq!(chains, [0, 1, 2, 3]);
    machine.domain.unmap(mapped[1], NOW).unwrap();
    machine.domain.unmap(mapped[2], NOW).unwrap();
    let again = [machine.map(AT, PAGE, Hints::NONE), machine.map(AT, PAGE, Hints::NONE)];
    assert_eq!(again.map(|mapping| of(&machine, mapping.iova())), [1, 2]);
    // A page occupies its whole range: the second page is in another.
    assert_ne!(again[0].iova().0 / (8 * PAGE), again[1].iova().0 / (8 * PAGE));
}

// H6, H7a: set_attributes() selects the allocator of a device.
#[test]
fn a_sequential_device_keeps_its_ranges_after_unmap() {
    let mut machine = Machine::coherent();
    let (net, disk) = (machine.device, machine.domain.attach("disk").unwrap());
    machine.domain.set_order(net, AccessOrder::Sequential).unwrap();
    let mapped: Vec<Mapping> = (0..9).map(|_| machine.map(AT, PAGE, Hints::NONE)).collect();
    let range = |mapping: &Mapping| mapping.iova().0 / (8 * PAGE);
    assert!(mapped[..8].iter().all(|mapping| range(mapping) == range(&mapped[0])));
    assert_ne!(range(&mapped[8]), range(&mapped[0]));
    assert_eq!(machine.domain.allocator().kept_by(net), 2);
    for mapping in &mapped {
        machine.domain.unmap(*mapping, NOW).unwrap();
    }
    assert_eq!(machine.domain.allocator().kept_by(net), 2, "its ranges must not be released");
    let lend = MapRequest::new(disk, Permission::Read);
    let others = machine.domain.map(&mut Buffer::new(AT, PAGE), lend, NOW).unwrap();
    assert!(range(&others) != range(&mapped[0]) && range(&others) != range(&mapped[8]));
    assert!([range(&mapped[0]), range(&mapped[8])].contains(&range(&machine.map(AT, PAGE, Hints::NONE))));
}

// H7: remap() joins scattered pages in one range; one page is mapped twice, safe and fast.

#[test]
fn remap_joins_scattered_pages_in_one_range() {
    let mut machine = Machine::coherent();
    let pages = [HostVirt(0x9_0000), HostVirt(0x6_2000), HostVirt(0x7_1000)];
    for (page, byte) in pages.iter().zip(1..) {
        machine.board().store(1, *page, &[byte; PAGE as usize]).unwrap();
    }
    // The largest range, then a translation per page.
    let mapping = machine.map(AT, 8 * PAGE, Hints::NONE);
    machine.device_read(mapping.iova());
    machine.domain.remap(mapping, 0, &pages, NOW).unwrap();
    let mut seen = vec![0; 3 * PAGE as usize];
    machine.board().device_read(0, mapping.iova(), &mut seen).unwrap();
    let of_page = |page: usize| &seen[page * PAGE as usize..][..PAGE as usize];
    assert!((0..3).all(|page| of_page(page) == [page as u8 + 1; PAGE as usize]));
    let lend = machine.request(Hints::NONE);
    let at_once = machine.domain.map_scattered(&pages, lend, NOW).unwrap();
    let mut again = vec![0; 3 * PAGE as usize];
    machine.board().device_read(0, at_once.iova(), &mut again).unwrap();
    assert!(again == seen, "the same by one call");
}

#[test]
fn a_page_mapped_twice_is_written_fast_and_safely() {
    let mut spec = Spec::coherent();
    spec.adapter.devices[0] = 16;
    let mut machine = Machine::with_old_bytes(spec);
    let (fast, safe) = (machine.map(AT, PAGE, Hints::NONE), machine.map(AT, PAGE, Hints::SAFE));
    let entries = [machine.entry(fast), machine.entry(safe)];
    assert_eq!(
        entries.map(|entry| (entry.physical(), entry.is_safe())),
        [(HostPhys(AT.0), false), (HostPhys(AT.0), true)]
    );
    for (mapping, other_half) in [(safe, 0x77), (fast, 0xe3)] {
        machine.board().store(1, after(AT, 16), &[0x77; 16]).unwrap();
        machine.board().device_write(0, mapping.iova(), &[0xe3; 16]).unwrap();
        assert_eq!(machine.load(1, AT)[16..], [other_half; 16]);
        machine.board().device_write(0, safe.iova(), &[0xe3; 32]).unwrap();
    }
}

// H7a: the rest of the interface.

#[test]
fn a_direct_write_purges_an_entry_and_a_purge_command_only_its_page() {
    for (order, meant) in [(AccessOrder::Any, (0, 1)), (AccessOrder::Sequential, (1, 0))] {
        let mut machine = Machine::coherent();
        machine.domain.set_order(machine.device, order).unwrap();
        let one = machine.map(AT, PAGE, Hints::NO_PREFETCH);
        // Pages of one chain ID: in a sequential device's range, or in the range that shares the entry with the first.
        let neighbour = match order {
            AccessOrder::Sequential => machine.map(AT, PAGE, Hints::NO_PREFETCH),
            AccessOrder::Any => (0..256).map(|_| machine.map(AT, PAGE, Hints::NO_PREFETCH)).last().unwrap(),
        };
        let tlb = machine.board().spec().adapter.tlb.clone();
        assert_eq!(tlb.chain_id(one.iova()), tlb.chain_id(neighbour.iova()));
        machine.device_read(neighbour.iova());
        let before = machine.tlb();
        machine.domain.unmap(one, NOW).unwrap();
        machine.device_read(neighbour.iova());
        let after = machine.tlb();
        assert_eq!((after.0 - before.0, after.1 - before.1), meant, "{order:?}");
        assert!(matches!(machine.board().device_read(0, one.iova(), &mut [0; 4]), Err(NoAccess::Fault(_))));
    }
}

#[test]
fn an_unmapped_page_is_reachable_until_a_purge() {
    for command in [TlbCommand::Purge { at: Iova(0) }, TlbCommand::Invalidate { chain_id: 0 }] {
        let mut machine = Machine::with_old_bytes(Spec::coherent());
        let mapping = machine.map(AT, PAGE, Hints::NONE);
        assert_eq!(mapping.iova(), Iova(0));
        machine.device_read(mapping.iova());
        // Clears only the directory entry, by a store of a processor.
        let directory = machine.board().spec().adapter.tlb.directory;
        machine.board().store(1, HostVirt(directory.0), &[0; 8]).unwrap();
        machine.board().device_write(0, mapping.iova(), &NEW).unwrap();
        assert_eq!(machine.load(0, AT), NEW);
        machine.board().command(0, command).unwrap();
        assert!(matches!(machine.board().device_write(0, mapping.iova(), &OLD), Err(NoAccess::Fault(_))));
        assert_eq!(machine.load(0, AT), NEW);
    }
}

#[test]
fn a_purge_waits_for_the_transaction_that_uses_the_translation() {
    let mut machine = Machine::with_old_bytes(Spec::coherent());
    let mapping = machine.map(AT, PAGE, Hints::NONE);
    let board = machine.board();
    let written = board.ask(Request::DeviceWrite { device: 0, at: mapping.iova(), data: vec![9; 4] }).unwrap();
    until_held(board);
    let command = TlbCommand::Purge { at: mapping.iova() };
    let purged = board.ask(Request::TlbCommand { processor: 0, command }).unwrap();
    let (purged, written) = (board.wait(purged).unwrap(), board.wait(written).unwrap());
    assert!(purged.at > written.at, "{purged:?} before {written:?}");
    assert_eq!((board.counts().held_up, board.adapter().tlb().valid()), (1, 0));
}

#[test]
fn the_page_directory_has_2_to_the_k_entries() {
    for (chain_bits, block_bits, bytes) in [(8, 12, 8 << 20), (8, 8, 512 << 10), (4, 6, 8 << 10)] {
        let mut spec = Spec::coherent();
        (spec.adapter.tlb.chain_bits, spec.adapter.tlb.block_bits) = (chain_bits, block_bits);
        assert_eq!(spec.adapter.tlb.directory_bytes(), bytes);
        let mut board = CoherentBoard::new(spec).unwrap();
        let last = Iova((PAGE << (chain_bits + block_bits)) - 4);
        for (at, why) in [(last, Forbidden::NotValid), (iova(last, 4), Forbidden::NoEntry)] {
            let fault = Fault { device: 0, at, is_write: false, why };
            assert_eq!(board.device_read(0, at, &mut [0; 4]), Err(NoAccess::Fault(fault)));
        }
    }
}

#[test]
fn a_flushed_structure_is_preserved_by_a_fast_half_line_write() {
    for (flushes, other_half) in [(false, 0x0d), (true, 0x77)] {
        let mut spec = Spec::coherent();
        spec.adapter.devices[0] = 16;
        let mut machine = Machine::with_old_bytes(spec);
        let mapping = machine.map(AT, PAGE, Hints::NONE);
        machine.board().store(1, AT, &[0x77; 32]).unwrap();
        if flushes {
            machine.domain.flush_lines(Buffer::new(AT, 32)).unwrap();
        }
        machine.board().device_write(0, mapping.iova(), &[0xe3; 16]).unwrap();
        assert_eq!(machine.bus(TransactionKind::WritePurge(16)), 1);
        let seen = machine.load(1, AT);
        assert_eq!((&seen[..16], &seen[16..]), (&[0xe3; 16][..], &[other_half; 16][..]), "flushed: {flushes}");
    }
}

// H8: 128 objects of 32 B, mapped one by one, or packed in one page.

#[test]
fn packed_objects_take_one_entry_instead_of_128() {
    let mut machine = Machine::coherent();
    for object in 0..128 {
        let mapping = machine.map(HostVirt(0x10_0000 + object * 8192), 32, Hints::NONE);
        assert_eq!(mapping.len_bytes(), 32);
    }
    assert_eq!(machine.board().directory_entries(), 128);

    let mut machine = Machine::coherent();
    let page = machine.map(AT, PAGE, Hints::NONE);
    let mut pool = Pool::over(page.range(), 32).unwrap();
    let objects: Vec<Iova> = (0..128).map(|_| pool.take().unwrap().at).collect();
    assert!(pool.take().is_err());
    assert_eq!(machine.board().directory_entries(), 1);
    for (object, byte) in objects.iter().zip(0..) {
        machine.board().device_write(0, *object, &[byte; 32]).unwrap();
    }
    assert!((0..128).all(|object| machine.load(0, after(AT, 32 * u64::from(object))) == [object; 32]));
}

// H6, for the strategy alone: allocation order is by chain ID for any size of the directory.
#[test]
fn ranges_are_allocated_by_chain_id_for_any_directory_size() {
    for address_bits in [24, 28, 32] {
        let mut ranges = Ranges::new(Space::of_device(address_bits).unwrap()).unwrap().over_entries(256).unwrap();
        let mut spec = Spec::coherent();
        spec.adapter.tlb.block_bits = address_bits - 12 - 8;
        let count = 256.min(ranges.free_ranges());
        for meant in 0..count {
            let range = ranges.alloc(AllocRequest::bytes(Device(0), PAGE)).unwrap();
            assert_eq!(spec.adapter.tlb.chain_id(range.at), meant, "{address_bits} bits");
        }
    }
}
