//! Calls that map, remap and unmap buffers.

use super::mapped_board::{AT, MappedBoard, NOW, PAGE, after};
use crate::rule::{Outcome, as_text, hold};
use lanemark_dma::{AccessOrder, Buffer, DmaErrorKind, Hints, MapRequest, Permission};
use lanemark_units::{HostVirt, Iova};

/// `map()` maps a piece and returns the rest; a second `unmap()` of a mapping is an error.
pub(crate) fn map_returns_the_unmapped_rest() -> Outcome {
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
    let refused = matches!(again, Some(Err(error)) if matches!(error.kind(), DmaErrorKind::UnmappedBefore { .. }));
    let one_piece = MapRequest::new(machine.device, Permission::ReadWrite).hints(Hints::ONE_PIECE);
    let whole = machine.domain.map(&mut Buffer::new(AT, 8 * PAGE + 1), one_piece, NOW);
    let none = matches!(whole, Err(error) if matches!(error.kind(), DmaErrorKind::NoIova { .. }));
    let right = left == [67600, 34832, 2064, 0] && refused && none && machine.board().directory_entries() == 0;
    hold(
        right,
        format!(
            "70 KiB from the middle of a line: rest {left:?}; a second unmap and a too long CONTIGUOUS request are errors"
        ),
    )
}

/// A sequential device keeps its ranges after unmapping their pages; other devices receive other ranges.
pub(crate) fn a_sequential_device_keeps_its_ranges() -> Outcome {
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
pub(crate) fn remap_joins_scattered_pages() -> Outcome {
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
