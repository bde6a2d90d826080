//! The TLB of the I/O adapter and its page directory.

use super::mapped_board::{AT, MappedBoard, NOW, OLD, PAGE, after, behind};
use crate::rule::{Outcome, as_text, hold};
use lanemark_coherent::{CoherentBoard, Forbidden, NoAccess, Request, Spec, TlbCommand, TransactionKind};
use lanemark_dma::{AccessOrder, Hints};
use lanemark_units::HostVirt;

/// A page of a device is one miss, which reads the page directory and asks no processor.
pub(crate) fn a_page_costs_one_tlb_miss() -> Outcome {
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
pub(crate) fn streams_on_one_chain_id_thrash() -> Outcome {
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

/// Ranges are allocated in order: 256 have an entry each, the next one shares.
pub(crate) fn up_to_256_ranges_share_no_entry() -> Outcome {
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

/// A direct write invalidates an entry for any page, a purge command only for the given page.
pub(crate) fn the_tlb_is_purged_in_two_ways() -> Outcome {
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
pub(crate) fn the_directory_is_2_to_the_k_and_a_purge_is_needed() -> Outcome {
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
