//! One load or one store, as wide as it says and neither merged, split nor dropped.

#![allow(unsafe_code)]
#![allow(clippy::cast_ptr_alignment)] // The callers vouch for it: alignment is the point here.

/// The bytes at `at`, by one load of `width` bytes: 1, 2, 4 or 8.
///
/// # Safety
/// `at` is readable for `width` bytes and a multiple of it.
pub(super) unsafe fn load(at: *const u8, width: usize) -> u64 {
    // SAFETY: handed on to the caller.
    unsafe {
        match width {
            1 => u64::from(at.read_volatile()),
            2 => u64::from(at.cast::<u16>().read_volatile()),
            4 => u64::from(at.cast::<u32>().read_volatile()),
            _ => at.cast::<u64>().read_volatile(),
        }
    }
}

/// One store of the low `width` bytes of `value`: 1, 2, 4 or 8.
///
/// # Safety
/// `to` is writable for `width` bytes and a multiple of it.
pub(super) unsafe fn store(to: *mut u8, width: usize, value: u64) {
    // SAFETY: handed on to the caller.
    unsafe {
        match width {
            1 => to.write_volatile(value as u8),
            2 => to.cast::<u16>().write_volatile(value as u16),
            4 => to.cast::<u32>().write_volatile(value as u32),
            _ => to.cast::<u64>().write_volatile(value),
        }
    }
}

/// The widest access of 8 B and fewer that may start at `at` and has `left` bytes to go, at least 1.
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
    fn the_widest_access_starts_at_its_multiple_and_ends_in_time() {
        let widths: Vec<usize> = [(8, 8), (8, 9), (8, 7), (12, 8), (12, 3), (2, 8), (1, 8), (3, 1)]
            .into_iter()
            .map(|(at, left)| widest(at, left))
            .collect();
        assert_eq!(widths, [8, 8, 4, 4, 2, 2, 1, 1]);
    }

    #[test]
    fn as_many_bytes_are_moved_as_the_width_says() {
        let mut line = [0_u64; 2];
        let at: *mut u8 = line.as_mut_ptr().cast();
        for width in [1, 2, 4, 8] {
            // SAFETY: the line is 16 B long and aligned.
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
