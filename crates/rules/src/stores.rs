//! Stores of a core.

use crate::rule::{Outcome, hold};
use crate::trial::Trial;
use lanemark_machine::Width;
use lanemark_platform::Platform;
use lanemark_units::MemoryType;

/// Stores a line through UC in 16 parts: 16 writes of 4 B arrive in order.
pub(crate) fn uc_stores_arrive_one_by_one_in_order(platform: &Platform) -> Outcome {
    let mut board = Trial::new(platform)?;
    board.run(0, vec![board.store(0, 64, Width::B4, MemoryType::Uc)])?;
    let expected: Vec<(u64, u32)> = (0..16).map(|dw| (dw * 4, 4)).collect();
    let seen = board.writes();
    hold(seen == expected, format!("{} writes of 4 B in order", seen.len()))
}

/// Counts the stores of the platform's `memcpy` for each size.
pub(crate) fn memcpy_makes_the_counted_stores(platform: &Platform) -> Outcome {
    let variant = platform.core.memcpy.value;
    let counts: Vec<usize> =
        [64, 128, 256, 512, 1024].into_iter().filter_map(|len| variant.stores(len, 0)).map(Iterator::count).collect();
    let strings = variant.stores(2048, 0).is_none();
    hold(
        counts == [8, 16, 13, 21, 37] && strings,
        format!("{}: {counts:?} stores for 64 B to 1 KiB, rep movsb from 2 KiB", variant.name()),
    )
}
