//! Flushing cache lines from all caches.

#![allow(unsafe_code)]
#![allow(clippy::inline_always)] // A function call between two timestamps would be measured too.

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::LazyLock;

/// Whether `CLFLUSHOPT` is supported. Source: Intel SDM volume 2, CPUID, leaf 7 subleaf 0, EBX bit 23.
static HAS_CLFLUSHOPT: LazyLock<bool> =
    LazyLock::new(|| std::arch::x86_64::__cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx & (1 << 23) != 0);

/// Flushes every line that `len` bytes from `at` on touch, and waits for completion. Memory contents do not change:
/// modified lines are written back.
///
/// # Safety
/// The bytes must be mapped.
#[inline(always)]
pub(crate) unsafe fn flush_lines(at: *const u8, len: usize) {
    if len == 0 {
        return;
    }
    let start = at.wrapping_sub(at.addr() % 64);
    let lines = (at.addr() % 64 + len).div_ceil(64);
    // SAFETY: guaranteed by the caller; neither instruction changes the contents of memory. MFENCE orders both before
    // later instructions, including loads. Source: Intel SDM volume 2, CLFLUSHOPT and CLFLUSH.
    unsafe {
        if *HAS_CLFLUSHOPT {
            for line in 0..lines {
                asm!("clflushopt [{}]", in(reg) start.add(64 * line), options(nostack, preserves_flags));
            }
        } else {
            for line in 0..lines {
                asm!("clflush [{}]", in(reg) start.add(64 * line), options(nostack, preserves_flags));
            }
        }
        asm!("mfence", options(nostack, preserves_flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_does_not_change_memory_contents() {
        let bytes: Vec<u8> = (0..1000_u32).map(|place| place as u8).collect();
        for (from, len) in [(0, 1000), (1, 64), (63, 2), (999, 1), (5, 0)] {
            // SAFETY: the range lies within the vector.
            unsafe { flush_lines(bytes[from..].as_ptr(), len) };
        }
        assert!(bytes.iter().enumerate().all(|(place, byte)| *byte == place as u8));
    }
}
