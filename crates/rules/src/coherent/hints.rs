//! Hints of a mapping: prefetch and atomic transfers.

use super::mapped_board::{AT, LINE, MappedBoard, NEW, OLD, PAGE, after, behind};
use crate::rule::{Outcome, as_text, hold};
use lanemark_coherent::Request;
use lanemark_dma::Hints;
use lanemark_units::{HostVirt, Ticks};

/// A line prefetched for a device is stale after a processor writes it.
pub(crate) fn prefetch_must_be_off_where_processors_write() -> Outcome {
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
pub(crate) fn an_atomic_transfer_locks_memory() -> Outcome {
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
