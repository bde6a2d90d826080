//! Single volatile loads and stores of a fixed width, never merged, split or dropped by the compiler.

#![allow(unsafe_code)]
#![allow(clippy::cast_ptr_alignment)] // Alignment is a precondition of these functions.

/// Loads `width` bytes (1, 2, 4 or 8) at `at` with one load.
///
/// # Safety
/// `at` must be readable for `width` bytes and a multiple of `width`.
pub(crate) unsafe fn load(at: *const u8, width: usize) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match width {
            1 => u64::from(at.read_volatile()),
            2 => u64::from(at.cast::<u16>().read_volatile()),
            4 => u64::from(at.cast::<u32>().read_volatile()),
            _ => at.cast::<u64>().read_volatile(),
        }
    }
}

/// Stores the low `width` bytes (1, 2, 4 or 8) of `value` at `to` with one store.
///
/// # Safety
/// `to` must be writable for `width` bytes and a multiple of `width`.
pub(crate) unsafe fn store(to: *mut u8, width: usize, value: u64) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match width {
            1 => to.write_volatile(value as u8),
            2 => to.cast::<u16>().write_volatile(value as u16),
            4 => to.cast::<u32>().write_volatile(value as u32),
            _ => to.cast::<u64>().write_volatile(value),
        }
    }
}

/// Largest naturally aligned access width, at most 8 B, at `at` with `left` (at least 1) bytes remaining.
pub(super) const fn widest(at: usize, left: usize) -> usize {
    let mut width = 8;
    while width > left || !at.is_multiple_of(width) {
        width /= 2;
    }
    width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_access_is_aligned_and_within_the_remaining_bytes() {
        let widths: Vec<usize> = [(8, 8), (8, 9), (8, 7), (12, 8), (12, 3), (2, 8), (1, 8), (3, 1)]
            .into_iter()
            .map(|(at, left)| widest(at, left))
            .collect();
        assert_eq!(widths, [8, 8, 4, 4, 2, 2, 1, 1]);
    }

    #[test]
    fn an_access_moves_exactly_its_width() {
        let mut line = [0_u64; 2];
        let at: *mut u8 = line.as_mut_ptr().cast();
        for width in [1, 2, 4, 8] {
            // SAFETY: the array is 16 B long and aligned to 8 B.
            unsafe {
                at.cast::<[u64; 2]>().write([u64::MAX; 2]);
                store(at, width, 0x1122_3344_5566_7788);
                let wanted = 0x1122_3344_5566_7788 & (u64::MAX >> (64 - 8 * width));
                assert_eq!(load(at, width), wanted);
                assert_eq!(load(at, 8), wanted | u64::MAX.checked_shl(8 * width as u32).unwrap_or(0), "{width}");
            }
        }
    }
}
