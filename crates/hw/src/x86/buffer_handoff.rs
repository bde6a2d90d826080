//! Buffers that a core shares with a device: written or read, flushed or copied, followed by a fence.
//!
//! The span is the buffer that the device accesses; with a bounce buffer, `other` is the program's side. All accesses are
//! 8 B wide.

#![allow(unsafe_code)]
#![allow(clippy::inline_always)] // A function call between two timestamps would be measured too.

use super::loops::{self, Access, Ground, Load8, Mfence, NoBarrier, Onwards, Store8, StoreNonTemporal8};
use super::routine::Routine;
use super::sample::{Limits, Stamps, timed};
use lanemark_machine::{BufferHandoff, Discipline, Flush, Verb};
use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};

/// Disciplines that this processor supports for ordinary memory, in listing order; of the flushes that evict, the best one.
///
/// Source: Intel SDM volume 2, CPUID, leaf 7 subleaf 0, EBX bits 23 (CLFLUSHOPT) and 24 (CLWB); CLFLUSH came with SSE2.
pub(crate) fn disciplines() -> Vec<Discipline> {
    let leaf7 = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
    disciplines_of(leaf7 & 1 << 23 != 0, leaf7 & 1 << 24 != 0)
}

fn disciplines_of(has_clflushopt: bool, has_clwb: bool) -> Vec<Discipline> {
    let is_here = |discipline: &Discipline| match discipline {
        Discipline::Coherent | Discipline::Streaming | Discipline::Bounced => true,
        Discipline::Flushed(Flush::Clflush) => !has_clflushopt,
        Discipline::Flushed(Flush::Clflushopt) => has_clflushopt,
        Discipline::Flushed(Flush::Clwb) => has_clwb,
        // A user program cannot change the memory type of ordinary memory.
        Discipline::Uncached | Discipline::Combining | Discipline::BouncedCombining => false,
    };
    Discipline::ALL.into_iter().filter(is_here).collect()
}

/// Cache-line flush instruction.
trait FlushLine {
    /// Value for the assembler's `.if`.
    const CODE: u8;
}

struct Clflush;
struct Clflushopt;
struct Clwb;

impl FlushLine for Clflush {
    const CODE: u8 = 0;
}
impl FlushLine for Clflushopt {
    const CODE: u8 = 1;
}
impl FlushLine for Clwb {
    const CODE: u8 = 2;
}

/// Flushes every line of the span, without waiting for completion.
///
/// # Safety
/// The span must be mapped and line-aligned, and the processor must support the instruction.
#[inline(always)]
unsafe fn flush<F: FlushLine>(ground: &Ground) {
    for line in (0..ground.len).step_by(64) {
        // SAFETY: guaranteed by the caller; no flush changes the contents of memory.
        unsafe {
            asm!(
                ".if {code} == 0",
                "clflush [{at}]",
                ".elseif {code} == 1",
                "clflushopt [{at}]",
                ".else",
                "clwb [{at}]",
                ".endif",
                at = in(reg) ground.at.add(line),
                code = const F::CODE,
                options(nostack, preserves_flags)
            );
        }
    }
}

/// Copies a block of the span's length by 8 B, one line per loop iteration.
///
/// # Safety
/// Both ends must be valid for the span's length, a multiple of a line, and must not overlap.
#[inline(always)]
unsafe fn copy(to: *mut u8, from: *const u8, ground: &Ground) {
    // SAFETY: guaranteed by the caller; all written registers are declared.
    unsafe {
        asm!(
            ".p2align 5",
            "2:",
            "mov rax, [{from}]", "mov [{to}], rax",
            "mov rax, [{from} + 8]", "mov [{to} + 8], rax",
            "mov rax, [{from} + 16]", "mov [{to} + 16], rax",
            "mov rax, [{from} + 24]", "mov [{to} + 24], rax",
            "mov rax, [{from} + 32]", "mov [{to} + 32], rax",
            "mov rax, [{from} + 40]", "mov [{to} + 40], rax",
            "mov rax, [{from} + 48]", "mov [{to} + 48], rax",
            "mov rax, [{from} + 56]", "mov [{to} + 56], rax",
            "add {from}, 64",
            "add {to}, 64",
            "sub {lines}, 1",
            "jnz 2b",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            lines = inout(reg) ground.len / 64 => _,
            out("rax") _,
            options(nostack)
        );
    }
}

/// Returns the loop of a handoff, or `None` if a user program cannot do it.
pub(crate) fn routine(handoff: &BufferHandoff) -> Option<Routine> {
    match (handoff.verb, handoff.discipline) {
        (Verb::Store, Discipline::Coherent) => Some(written::<Store8>),
        (Verb::Store, Discipline::Streaming) => Some(written::<StoreNonTemporal8>),
        (Verb::Store, Discipline::Flushed(Flush::Clflush)) => Some(written_and_flushed::<Clflush>),
        (Verb::Store, Discipline::Flushed(Flush::Clflushopt)) => Some(written_and_flushed::<Clflushopt>),
        (Verb::Store, Discipline::Flushed(Flush::Clwb)) => Some(written_and_flushed::<Clwb>),
        (Verb::Store, Discipline::Bounced) => Some(written_and_copied),
        (Verb::Load, Discipline::Coherent) => Some(read),
        (Verb::Load, Discipline::Flushed(Flush::Clflush)) => Some(purged_and_read::<Clflush>),
        (Verb::Load, Discipline::Flushed(Flush::Clflushopt)) => Some(purged_and_read::<Clflushopt>),
        (Verb::Load, Discipline::Bounced) => Some(copied_and_read),
        _ => None,
    }
}

/// # Safety
/// Same as for [`loops::pass`].
unsafe fn written<A: Access>(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: guaranteed by the caller.
        unsafe { loops::pass::<A, Onwards, NoBarrier>(ground, n) };
        loops::barrier::<Mfence>();
        Ok(())
    })
}

/// # Safety
/// Same as for [`loops::pass`] and [`flush`].
unsafe fn written_and_flushed<F: FlushLine>(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            loops::pass::<Store8, Onwards, NoBarrier>(ground, n);
            flush::<F>(ground);
        }
        loops::barrier::<Mfence>();
        Ok(())
    })
}

/// # Safety
/// Same as for [`copy`] between both sides, and for [`Access::walk`] over the other side.
unsafe fn written_and_copied(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            Store8::walk::<Onwards, NoBarrier>(ground.other, ground.count, ground, n);
            copy(ground.at, ground.other, ground);
        }
        loops::barrier::<Mfence>();
        Ok(())
    })
}

/// # Safety
/// Same as for [`loops::pass`].
unsafe fn read(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: guaranteed by the caller.
        unsafe { loops::pass::<Load8, Onwards, NoBarrier>(ground, n) };
        loops::barrier::<Mfence>();
        Ok(())
    })
}

/// # Safety
/// Same as for [`loops::pass`] and [`flush`].
unsafe fn purged_and_read<F: FlushLine>(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            flush::<F>(ground);
            loops::barrier::<Mfence>();
            // A device would write here.
            flush::<F>(ground);
            loops::barrier::<Mfence>();
            loops::pass::<Load8, Onwards, NoBarrier>(ground, n);
        }
        loops::barrier::<Mfence>();
        Ok(())
    })
}

/// # Safety
/// Same as for [`copy`] between both sides, and for [`Access::walk`] over the other side.
unsafe fn copied_and_read(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            copy(ground.other, ground.at, ground);
            Load8::walk::<Onwards, NoBarrier>(ground.other, ground.count, ground, n);
        }
        loops::barrier::<Mfence>();
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_supported_discipline_has_a_loop_in_both_directions_where_it_is_valid() {
        for (has_clflushopt, has_clwb) in [(false, false), (true, false), (true, true)] {
            let here = disciplines_of(has_clflushopt, has_clwb);
            assert_eq!(here.len(), 4 + usize::from(has_clwb));
            assert!(here.contains(&Discipline::Flushed(Flush::Clflush)) != has_clflushopt);
            for discipline in Discipline::ALL {
                for verb in [Verb::Store, Verb::Load] {
                    let handoff = BufferHandoff { verb, discipline, bytes: 64 };
                    let can = here.contains(&discipline) && handoff.check().is_ok();
                    assert!(!can || routine(&handoff).is_some(), "{verb:?} {discipline}");
                }
            }
        }
    }
}
