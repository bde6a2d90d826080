//! Rules of coherent I/O, each tested on a separate board by bytes, entries and bus transactions.

use super::as_text;
use super::mapped_board::{AT, LINE, MappedBoard, NEW, NOW, OLD, PAGE, after, behind};
use crate::rules::hold;
use lanemark_coherent::{CoherentBoard, Forbidden, LineState, NoAccess, Request, Spec, TlbCommand, TransactionKind};
use lanemark_dma::{AccessOrder, Buffer, Hints, MapRequest, Permission, Trouble, Turn};
use lanemark_units::{HostPhys, HostVirt, Iova, Ticks};

type Outcome = Result<String, String>;

/// A dirty line is copied from cache to cache to a reading processor or device.
pub fn dirty_lines_are_copied_to_the_reader() -> Outcome {
    let mut machine = MappedBoard::coherent()?;
    let mapping = machine.map(AT, PAGE, Hints::NO_PREFETCH)?;
    // The page directory entry is in a cache too; reading it first keeps its copy out of the count.
    machine.device_read(mapping.iova())?;
    let state = |machine: &mut MappedBoard, processor: usize| {
        let line = machine.board().line_of(AT);
        machine.board().processor(processor).and_then(|processor| processor.cache().state(line))
    };
    let mut seen = Vec::new();
    for reads in ["a processor", "a device"] {
        machine.store(1, AT, &NEW)?;
        let mut there = OLD;
        machine.board().in_memory(HostPhys(AT.0), &mut there);
        let was = state(&mut machine, 1);
        let copies = machine.board().counts().copies;
        let read = if reads == "a device" { machine.device_read(mapping.iova())? } else { machine.load(0, AT)? };
        let more = machine.board().counts().copies - copies;
        let right = (was, read, more) == (Some(LineState::Dirty), NEW, 1) && there != NEW;
        seen.push(hold(right, format!("{reads} receives it from the cache with the dirty line"))?);
        machine.store(0, AT, &OLD)?;
        machine.board().flush(0, AT, LINE).map_err(as_text)?;
    }
    Ok(seen.join(", "))
}

/// A processor that reads the line that the adapter is changing waits, and receives the merged line.
pub fn readers_wait_for_the_line_of_the_adapter() -> Outcome {
    let mut machine = MappedBoard::coherent()?;
    let mapping = machine.map(AT, PAGE, Hints::NONE)?;
    machine.store(1, AT, &[1; 4])?;
    let board = machine.board();
    let written = Request::DeviceWrite { device: 0, at: behind(mapping.iova(), 4), data: vec![9; 4] };
    let written = board.ask(written).map_err(as_text)?;
    until_held(board)?;
    let loaded = board.ask(Request::Load { processor: 0, at: AT }).map_err(as_text)?;
    let (loaded, written) = (board.wait(loaded).map_err(as_text)?, board.wait(written).map_err(as_text)?);
    let right = loaded.bytes[..12] == [1, 1, 1, 1, 9, 9, 9, 9, 13, 13, 13, 13]
        && loaded.at > written.at
        && (board.counts().held_up, board.adapter().held()) == (1, None);
    hold(right, "a processor that reads the adapter's line waits for it and receives it merged".to_owned())
}

/// Runs the board until the adapter holds a line that it changes.
fn until_held(board: &mut CoherentBoard) -> Result<(), String> {
    while board.adapter().held().is_none() {
        if board.next_at() == Ticks::NEVER {
            return Err("the adapter never holds a line".to_owned());
        }
        board.run_until(board.next_at());
    }
    Ok(())
}

/// Without coherence, a device reads stale data if the processor does not flush.
pub fn without_coherence_a_missing_flush_is_stale() -> Outcome {
    for (flushes, meant) in [(false, OLD), (true, NEW)] {
        let mut machine = MappedBoard::of(Spec::not_coherent(false))?;
        let mapping = machine.map(AT, PAGE, Hints::NONE)?;
        machine.store(1, AT, &NEW)?;
        if flushes {
            machine.sync(AT, PAGE, Permission::Read, Turn::Device)?;
        }
        let seen = machine.device_read(mapping.iova())?;
        hold(seen == meant, format!("outbound, flushed {flushes}: {seen:02x?}"))?;
    }
    Ok("outbound without a flush the device reads old bytes".to_owned())
}

/// Without coherence, a processor reads stale data if it does not purge; with prefetching, it must purge twice.
pub fn without_coherence_a_missing_purge_is_stale() -> Outcome {
    for (prefetches, before, behind_it, meant) in
        [(false, false, false, OLD), (false, true, false, NEW), (true, true, false, OLD), (true, true, true, NEW)]
    {
        let mut machine = MappedBoard::of(Spec::not_coherent(prefetches))?;
        // The line before the buffer belongs to the processor: with prefetching, reading it also fetches the next one.
        let buffer = after(AT, LINE as u64);
        let mapping = machine.map(buffer, PAGE - LINE as u64, Hints::ANY_ALIGNMENT)?;
        machine.load(1, buffer)?;
        if before {
            machine.sync(buffer, PAGE - LINE as u64, Permission::Write, Turn::Device)?;
        }
        machine.load(1, AT)?;
        machine.arbitrate();
        machine.device_write(mapping.iova(), &NEW)?;
        if behind_it {
            machine.sync(buffer, PAGE - LINE as u64, Permission::Write, Turn::Cpu)?;
        }
        let seen = machine.load(1, buffer)?;
        hold(seen == meant, format!("prefetches {prefetches}, purged {before} and {behind_it}: {seen:02x?}"))?;
    }
    Ok("inbound without a purge the processor reads old bytes; with prefetching a second purge is needed".to_owned())
}

/// A coherent machine flushes and purges nothing, and every byte is correct.
pub fn with_coherence_nothing_is_flushed() -> Outcome {
    let mut spec = Spec::coherent();
    spec.processor.prefetches = true;
    let mut machine = MappedBoard::of(spec)?;
    let mapping = machine.map(AT, PAGE, Hints::NONE)?;
    let maintained =
        |machine: &MappedBoard| machine.on_bus(TransactionKind::Flush) + machine.on_bus(TransactionKind::Purge);
    let before = maintained(&machine);
    machine.store(1, AT, &NEW)?;
    machine.sync(AT, PAGE, Permission::Read, Turn::Device)?;
    let out = machine.device_read(mapping.iova())?;
    machine.sync(AT, PAGE, Permission::Write, Turn::Device)?;
    machine.device_write(mapping.iova(), &[7; LINE])?;
    machine.sync(AT, PAGE, Permission::Write, Turn::Cpu)?;
    let back = machine.load(1, AT)?;
    let none = maintained(&machine) == before;
    hold(
        (out, back, none) == (NEW, [7; LINE], true),
        "with coherence sync flushes nothing, and bytes are right".to_owned(),
    )
}

/// A page of a device is one miss, which reads the page directory and asks no processor.
pub fn a_page_costs_one_tlb_miss() -> Outcome {
    let mut machine = MappedBoard::coherent()?;
    let mapping = machine.map(AT, PAGE, Hints::NO_PREFETCH)?;
    let reads = machine.on_bus(TransactionKind::Read(32));
    let mut page = [0; PAGE as usize];
    machine.board().device_read(0, mapping.iova(), &mut page).map_err(as_text)?;
    let (tlb, reads) = (machine.tlb(), machine.on_bus(TransactionKind::Read(32)) - reads);
    let words = format!("a page takes {} accesses, of which {} misses, with one read of memory", tlb.0 + tlb.1, tlb.1);
    hold((tlb, reads) == ((127, 1), 129), words)
}

/// The chain ID selects the entry, the block ID is its tag: two streams on one chain ID evict each other.
pub fn streams_on_one_chain_id_thrash() -> Outcome {
    let mut misses = [0; 2];
    for (misses, shared) in misses.iter_mut().zip([true, false]) {
        let mut machine = MappedBoard::coherent()?;
        let one = machine.map(AT, if shared { 2 * PAGE } else { PAGE }, Hints::NO_PREFETCH)?.iova();
        let other =
            if shared { behind(one, PAGE) } else { machine.map(after(AT, PAGE), PAGE, Hints::NO_PREFETCH)?.iova() };
        let board = machine.board();
        let ask = |board: &mut CoherentBoard, device, at| {
            board.ask(Request::DeviceRead { device, at, len_bytes: PAGE as usize }).map_err(as_text)
        };
        for ticket in [ask(board, 0, one)?, ask(board, 1, other)?] {
            board.wait(ticket).map_err(as_text)?;
        }
        *misses = machine.tlb().1;
    }
    hold(
        misses == [256, 2],
        format!("two pages read in turn: {} misses on one chain ID, {} on two", misses[0], misses[1]),
    )
}

/// A fast half-line write is one transaction and loses a processor's change of the other half; a safe one keeps it.
pub fn half_line_writes_are_fast_or_safe() -> Outcome {
    for (hints, other_half, meant) in [(Hints::NONE, OLD[0], [1, 0, 0]), (Hints::SAFE, 0x77, [0, 1, 1])] {
        let mut machine = MappedBoard::half_lines()?;
        let mapping = machine.map(AT, PAGE, hints)?;
        machine.store(1, AT, &[0x77; LINE])?;
        let kinds = [TransactionKind::WritePurge(16), TransactionKind::ReadPrivate(32), TransactionKind::Write(32)];
        let before = kinds.map(|kind| machine.on_bus(kind));
        machine.device_write(mapping.iova(), &[NEW[0]; 16])?;
        let mut made = kinds.map(|kind| machine.on_bus(kind));
        made.iter_mut().zip(before).for_each(|(made, before)| *made -= before);
        let line = machine.load(1, AT)?;
        let right = line[..16] == [NEW[0]; 16] && line[16..] == [other_half; 16] && made == meant;
        hold(right, format!("{hints:?}: {line:02x?}, transactions {made:?}"))?;
    }
    Ok("fast: WRITE16_PURGE, the other half is lost; safe: read private, merge, write, nothing is lost".to_owned())
}

/// A line prefetched for a device is stale after a processor writes it.
pub fn prefetch_must_be_off_where_processors_write() -> Outcome {
    for (hints, meant) in [(Hints::NONE, OLD), (Hints::NO_PREFETCH, NEW)] {
        let mut machine = MappedBoard::coherent()?;
        let mapping = machine.map(AT, PAGE, hints)?;
        machine.device_read(mapping.iova())?;
        machine.arbitrate();
        machine.store(1, after(AT, LINE as u64), &NEW)?;
        let seen = machine.device_read(behind(mapping.iova(), LINE as u64))?;
        hold(seen == meant, format!("{hints:?}: {seen:02x?}"))?;
    }
    Ok("a prefetched line that a processor then writes is read stale; without prefetch it is not".to_owned())
}

/// During an atomic transfer, no processor accesses memory.
pub fn an_atomic_transfer_locks_memory() -> Outcome {
    for (hints, waits) in [(Hints::NO_PREFETCH, false), (Hints::NO_PREFETCH | Hints::ATOMIC, true)] {
        let mut machine = MappedBoard::coherent()?;
        let mapping = machine.map(AT, 2 * PAGE, hints)?;
        let board = machine.board();
        let read = Request::DeviceRead { device: 0, at: mapping.iova(), len_bytes: 2 * PAGE as usize };
        let transfer = board.ask(read).map_err(as_text)?;
        board.run_until(board.now() + Ticks::whole_ns(2000));
        let miss = board.ask(Request::Load { processor: 0, at: HostVirt(0x10_0000) }).map_err(as_text)?;
        let (transfer, miss) = (board.wait(transfer).map_err(as_text)?, board.wait(miss).map_err(as_text)?);
        hold((miss.at > transfer.at) == waits, format!("{hints:?}: the processor waits: {}", !waits))?;
    }
    Ok("a processor that misses waits for the end of an atomic transfer, but not of another one".to_owned())
}

/// `map()` maps a piece and returns the rest; a second `unmap()` of a mapping is an error.
pub fn map_returns_the_unmapped_rest() -> Outcome {
    let mut machine = MappedBoard::coherent()?;
    let request = MapRequest::new(machine.device, Permission::ReadWrite);
    let mut rest = Buffer::new(after(AT, 16), 70 << 10);
    let (mut left, mut pieces) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        pieces.push(machine.domain.map(&mut rest, request, NOW).map_err(as_text)?);
        left.push(rest.len_bytes);
    }
    for piece in &pieces {
        machine.domain.unmap(*piece, NOW).map_err(as_text)?;
    }
    let again = pieces.first().map(|piece| machine.domain.unmap(*piece, NOW));
    let refused = matches!(again, Some(Err(error)) if matches!(error.trouble(), Trouble::UnmappedBefore { .. }));
    let one_piece = MapRequest::new(machine.device, Permission::ReadWrite).hints(Hints::ONE_PIECE);
    let whole = machine.domain.map(&mut Buffer::new(AT, 8 * PAGE + 1), one_piece, NOW);
    let none = matches!(whole, Err(error) if matches!(error.trouble(), Trouble::NoIova { .. }));
    let right = left == [67600, 34832, 2064, 0] && refused && none && machine.board().directory_entries() == 0;
    hold(
        right,
        format!(
            "70 KiB from the middle of a line: rest {left:?}; a second unmap and a too long CONTIGUOUS request are errors"
        ),
    )
}

/// Buffers that begin or end within a line, or are shorter than a line, are safe by default.
pub fn unaligned_or_short_buffers_are_safe() -> Outcome {
    for (first, len, is_safe) in [(0, 32, false), (16, 32, true), (0, 16, true), (0, 4096, false), (4, 64, true)] {
        for (hints, meant) in [(Hints::NONE, is_safe), (Hints::ANY_ALIGNMENT, false), (Hints::SAFE, true)] {
            let mut machine = MappedBoard::coherent()?;
            let mapping = machine.map(after(AT, first), len, hints)?;
            let entry = machine.board().directory_entry(mapping.iova()).ok_or("no entry")?;
            hold(entry.is_safe() == meant, format!("{len} B from byte {first} of a line, {hints:?}: {entry:?}"))?;
        }
    }
    Ok("16 B from the middle of a line are safe by default, a whole line is fast, IGN_ALIGNMENT makes all fast"
        .to_owned())
}

/// `dma_sync()` flushes a page line by line on a non-coherent machine only.
pub fn sync_flushes_only_without_coherence() -> Outcome {
    let mut flushed = [0; 2];
    for (flushed, spec) in flushed.iter_mut().zip([Spec::coherent(), Spec::not_coherent(false)]) {
        let mut machine = MappedBoard::of(spec)?;
        let before = machine.on_bus(TransactionKind::Flush);
        machine.sync(AT, PAGE, Permission::Read, Turn::Device)?;
        *flushed = machine.on_bus(TransactionKind::Flush) - before;
    }
    hold(flushed == [0, 128], format!("a page: {} flushes with coherence, {} without", flushed[0], flushed[1]))
}

/// Ranges are allocated in order: 256 have an entry each, the next one shares.
pub fn up_to_256_ranges_share_no_entry() -> Outcome {
    let mut misses = [0; 2];
    for (misses, count) in misses.iter_mut().zip([256, 257]) {
        let mut machine = MappedBoard::coherent()?;
        let mut at = Vec::new();
        for _ in 0..count {
            at.push(machine.map(AT, PAGE, Hints::NO_PREFETCH)?.iova());
        }
        for at in at.iter().chain(&at) {
            machine.device_read(*at)?;
        }
        *misses = machine.tlb().1 - count;
    }
    hold(
        misses == [0, 2],
        format!("read twice, 256 ranges have {} misses beyond the first of each, 257 have {}", misses[0], misses[1]),
    )
}

/// A sequential device keeps its ranges after unmapping their pages; other devices receive other ranges.
pub fn a_sequential_device_keeps_its_ranges() -> Outcome {
    let mut machine = MappedBoard::coherent()?;
    machine.domain.set_order(machine.device, AccessOrder::Sequential).map_err(as_text)?;
    let mut mapped = Vec::new();
    for _ in 0..9 {
        mapped.push(machine.map(AT, PAGE, Hints::NONE)?);
    }
    for mapping in &mapped {
        machine.domain.unmap(*mapping, NOW).map_err(as_text)?;
    }
    let kept = machine.domain.allocator().kept_by(machine.device);
    let disk = machine.domain.attach("disk").map_err(as_text)?;
    let request = MapRequest::new(disk, Permission::Read);
    let theirs = machine.domain.map(&mut Buffer::new(AT, PAGE), request, NOW).map_err(as_text)?;
    let range = |at: Iova| at.0 / (8 * PAGE);
    let apart = mapped.iter().all(|mapping| range(mapping.iova()) != range(theirs.iova()));
    hold(kept == 2 && apart, format!("9 pages take {kept} ranges, which are kept after all pages are unmapped"))
}

/// `remap()` makes one range out of scattered pages.
pub fn remap_joins_scattered_pages() -> Outcome {
    let mut machine = MappedBoard::coherent()?;
    let pages = [HostVirt(0x9_0000), HostVirt(0x6_2000), HostVirt(0x7_1000)];
    for (page, byte) in pages.iter().zip(1..) {
        machine.store(1, *page, &[byte; PAGE as usize])?;
    }
    let mapping = machine.map(AT, 8 * PAGE, Hints::NONE)?;
    machine.device_read(mapping.iova())?;
    machine.domain.remap(mapping, 0, &pages, NOW).map_err(as_text)?;
    let mut seen = vec![0; 3 * PAGE as usize];
    machine.board().device_read(0, mapping.iova(), &mut seen).map_err(as_text)?;
    let right = seen.chunks(PAGE as usize).zip(1..).all(|(page, byte)| page == [byte; PAGE as usize]);
    hold(right, "three scattered pages are read as one range".to_owned())
}

/// A page mapped twice is written fast at one address and safely at the other.
pub fn a_page_may_be_mapped_safe_and_fast() -> Outcome {
    let mut machine = MappedBoard::half_lines()?;
    let (fast, safe) = (machine.map(AT, PAGE, Hints::NONE)?, machine.map(AT, PAGE, Hints::SAFE)?);
    for (mapping, other_half) in [(safe, 0x77), (fast, NEW[0])] {
        machine.device_write(safe.iova(), &NEW)?;
        machine.store(1, after(AT, 16), &[0x77; 16])?;
        machine.device_write(mapping.iova(), &[NEW[0]; 16])?;
        let line = machine.load(1, AT)?;
        hold(line[16..] == [other_half; 16], format!("by {}: {line:02x?}", mapping.iova()))?;
    }
    Ok("the same line at both addresses: a processor's change is kept at the safe one and lost at the fast one"
        .to_owned())
}

/// A direct write invalidates an entry for any page, a purge command only for the given page.
pub fn the_tlb_is_purged_in_two_ways() -> Outcome {
    let mut lost = [0; 2];
    for (lost, order) in lost.iter_mut().zip([AccessOrder::Any, AccessOrder::Sequential]) {
        let mut machine = MappedBoard::coherent()?;
        machine.domain.set_order(machine.device, order).map_err(as_text)?;
        let one = machine.map(AT, PAGE, Hints::NO_PREFETCH)?;
        let beside = if order == AccessOrder::Sequential { 1 } else { 256 };
        let mut neighbour = one;
        for _ in 0..beside {
            neighbour = machine.map(AT, PAGE, Hints::NO_PREFETCH)?;
        }
        machine.device_read(neighbour.iova())?;
        let before = machine.tlb().1;
        machine.domain.unmap(one, NOW).map_err(as_text)?;
        machine.device_read(neighbour.iova())?;
        *lost = machine.tlb().1 - before;
        let gone = machine.board().device_read(0, one.iova(), &mut [0; 4]);
        hold(
            matches!(gone, Err(NoAccess::Fault(fault)) if fault.why == Forbidden::NotValid),
            format!("{order:?}: the unmapped page is still reached"),
        )?;
    }
    hold(
        lost == [1, 0],
        format!(
            "another page in the entry misses {} times after the direct write of a range, {} after a purge",
            lost[0], lost[1]
        ),
    )
}

/// The directory has 2^k entries, and an unmapped page stays reachable until a purge.
pub fn the_directory_is_2_to_the_k_and_a_purge_is_needed() -> Outcome {
    let mut spec = Spec::coherent();
    let k = spec.adapter.tlb.page_bits();
    hold(
        spec.adapter.tlb.directory_bytes() == 8 << k,
        format!("2^{k} entries: {} B", spec.adapter.tlb.directory_bytes()),
    )?;
    (spec.adapter.tlb.chain_bits, spec.adapter.tlb.block_bits) = (8, 8);
    let short = spec.adapter.tlb.directory_bytes();
    let mut machine = MappedBoard::of(spec)?;
    let mapping = machine.map(AT, PAGE, Hints::NONE)?;
    machine.device_read(mapping.iova())?;
    let directory = machine.board().spec().adapter.tlb.directory;
    // Clears only the entry, as a store of a processor does.
    machine.store(1, HostVirt(directory.0 + mapping.iova().0 / PAGE * 8), &[0; 8])?;
    let reached = machine.device_read(mapping.iova())? == OLD;
    machine.board().command(0, TlbCommand::Purge { at: mapping.iova() }).map_err(as_text)?;
    let faults = matches!(machine.board().device_read(0, mapping.iova(), &mut [0; 4]), Err(NoAccess::Fault(_)));
    hold(
        reached && faults,
        format!("k = {k}: 8 MiB; k = 16: {} KiB; a cleared entry is used until the TLB is purged", short >> 10),
    )
}

/// Memory accepts no write below half a line: the adapter reads, modifies and writes the whole line.
pub fn memory_accepts_no_write_below_half_a_line() -> Outcome {
    for bytes in [4, 8] {
        let mut machine = MappedBoard::coherent()?;
        let mapping = machine.map(AT, PAGE, Hints::NONE)?;
        machine.store(1, AT, &[0x77; LINE])?;
        machine.device_write(behind(mapping.iova(), 8), &NEW[..bytes])?;
        let short = [
            TransactionKind::Write(4),
            TransactionKind::Write(8),
            TransactionKind::WritePurge(4),
            TransactionKind::WritePurge(8),
        ];
        let line = machine.load(1, AT)?;
        let merged = line[8..8 + bytes] == NEW[..bytes] && line[8 + bytes..].iter().all(|byte| *byte == 0x77);
        let none = short.iter().all(|kind| machine.on_bus(*kind) == 0);
        hold(merged && none, format!("{bytes} B: {line:02x?}"))?;
    }
    Ok("4 and 8 B of a device become one line on the processors' bus, merged with a processor's changes".to_owned())
}

/// A structure that its driver flushes is preserved by a fast half-line write.
pub fn a_flush_keeps_data_that_a_write_purge_loses() -> Outcome {
    for (flushes, other_half) in [(false, OLD[0]), (true, 0x77)] {
        let mut machine = MappedBoard::half_lines()?;
        let mapping = machine.map(AT, PAGE, Hints::NONE)?;
        machine.store(1, AT, &[0x77; LINE])?;
        if flushes {
            machine.domain.flush_lines(Buffer::new(AT, LINE as u64)).map_err(as_text)?;
        }
        machine.device_write(mapping.iova(), &NEW[..16])?;
        let line = machine.load(1, AT)?;
        hold(line[16..] == [other_half; 16], format!("flushed {flushes}: {line:02x?}"))?;
    }
    Ok("if flushed before, the half that the device does not write is kept; otherwise it is lost".to_owned())
}
