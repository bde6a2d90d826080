//! Writes of a device that are shorter than a line.

use super::mapped_board::{AT, LINE, MappedBoard, NEW, OLD, PAGE, after, behind};
use crate::rule::{Outcome, as_text, hold};
use lanemark_coherent::TransactionKind;
use lanemark_dma::{Buffer, Hints};

/// A fast half-line write is one transaction and loses a processor's change of the other half; a safe one keeps it.
pub(crate) fn half_line_writes_are_fast_or_safe() -> Outcome {
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

/// Buffers that begin or end within a line, or are shorter than a line, are safe by default.
pub(crate) fn unaligned_or_short_buffers_are_safe() -> Outcome {
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

/// A page mapped twice is written fast at one address and safely at the other.
pub(crate) fn a_page_may_be_mapped_safe_and_fast() -> Outcome {
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

/// Memory accepts no write below half a line: the adapter reads, modifies and writes the whole line.
pub(crate) fn memory_accepts_no_write_below_half_a_line() -> Outcome {
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
pub(crate) fn a_flush_keeps_data_that_a_write_purge_loses() -> Outcome {
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
