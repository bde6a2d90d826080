//! Snooping of processors and the I/O adapter.

use super::mapped_board::{AT, LINE, MappedBoard, NEW, OLD, PAGE, after, behind};
use crate::rule::{Outcome, as_text, hold};
use lanemark_coherent::{CoherentBoard, LineState, Request, Spec, TransactionKind};
use lanemark_dma::{Hints, Owner, Permission};
use lanemark_units::{HostPhys, Ticks};

/// A dirty line is copied from cache to cache to a reading processor or device.
pub(crate) fn dirty_lines_are_copied_to_the_reader() -> Outcome {
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
pub(crate) fn readers_wait_for_the_line_of_the_adapter() -> Outcome {
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
pub(crate) fn without_coherence_a_missing_flush_is_stale() -> Outcome {
    for (flushes, meant) in [(false, OLD), (true, NEW)] {
        let mut machine = MappedBoard::of(Spec::not_coherent(false))?;
        let mapping = machine.map(AT, PAGE, Hints::NONE)?;
        machine.store(1, AT, &NEW)?;
        if flushes {
            machine.sync(AT, PAGE, Permission::Read, Owner::Device)?;
        }
        let seen = machine.device_read(mapping.iova())?;
        hold(seen == meant, format!("outbound, flushed {flushes}: {seen:02x?}"))?;
    }
    Ok("outbound without a flush the device reads old bytes".to_owned())
}

/// Without coherence, a processor reads stale data if it does not purge; with prefetching, it must purge twice.
pub(crate) fn without_coherence_a_missing_purge_is_stale() -> Outcome {
    for (prefetches, before, behind_it, meant) in
        [(false, false, false, OLD), (false, true, false, NEW), (true, true, false, OLD), (true, true, true, NEW)]
    {
        let mut machine = MappedBoard::of(Spec::not_coherent(prefetches))?;
        // The line before the buffer belongs to the processor: with prefetching, reading it also fetches the next one.
        let buffer = after(AT, LINE as u64);
        let mapping = machine.map(buffer, PAGE - LINE as u64, Hints::ANY_ALIGNMENT)?;
        machine.load(1, buffer)?;
        if before {
            machine.sync(buffer, PAGE - LINE as u64, Permission::Write, Owner::Device)?;
        }
        machine.load(1, AT)?;
        machine.arbitrate();
        machine.device_write(mapping.iova(), &NEW)?;
        if behind_it {
            machine.sync(buffer, PAGE - LINE as u64, Permission::Write, Owner::Cpu)?;
        }
        let seen = machine.load(1, buffer)?;
        hold(seen == meant, format!("prefetches {prefetches}, purged {before} and {behind_it}: {seen:02x?}"))?;
    }
    Ok("inbound without a purge the processor reads old bytes; with prefetching a second purge is needed".to_owned())
}

/// A coherent machine flushes and purges nothing, and every byte is correct.
pub(crate) fn with_coherence_nothing_is_flushed() -> Outcome {
    let mut spec = Spec::coherent();
    spec.processor.prefetches = true;
    let mut machine = MappedBoard::of(spec)?;
    let mapping = machine.map(AT, PAGE, Hints::NONE)?;
    let maintained =
        |machine: &MappedBoard| machine.on_bus(TransactionKind::Flush) + machine.on_bus(TransactionKind::Purge);
    let before = maintained(&machine);
    machine.store(1, AT, &NEW)?;
    machine.sync(AT, PAGE, Permission::Read, Owner::Device)?;
    let out = machine.device_read(mapping.iova())?;
    machine.sync(AT, PAGE, Permission::Write, Owner::Device)?;
    machine.device_write(mapping.iova(), &[7; LINE])?;
    machine.sync(AT, PAGE, Permission::Write, Owner::Cpu)?;
    let back = machine.load(1, AT)?;
    let none = maintained(&machine) == before;
    hold(
        (out, back, none) == (NEW, [7; LINE], true),
        "with coherence sync flushes nothing, and bytes are right".to_owned(),
    )
}

/// `dma_sync()` flushes a page line by line on a non-coherent machine only.
pub(crate) fn sync_flushes_only_without_coherence() -> Outcome {
    let mut flushed = [0; 2];
    for (flushed, spec) in flushed.iter_mut().zip([Spec::coherent(), Spec::not_coherent(false)]) {
        let mut machine = MappedBoard::of(spec)?;
        let before = machine.on_bus(TransactionKind::Flush);
        machine.sync(AT, PAGE, Permission::Read, Owner::Device)?;
        *flushed = machine.on_bus(TransactionKind::Flush) - before;
    }
    hold(flushed == [0, 128], format!("a page: {} flushes with coherence, {} without", flushed[0], flushed[1]))
}
