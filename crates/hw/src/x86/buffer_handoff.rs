//! Buffers that a core shares with a device: written or read, flushed or copied, a fence behind all.
//!
//! The span is the buffer that a device would see, and what lies behind a bounce is the other side. All bytes go by 8 B.

#![allow(unsafe_code)]
#![allow(clippy::inline_always)] // A call of ours between two timestamps would be measured too.

use super::loops::{self, Access, Ground, Load8, Mfence, NoBarrier, Onwards, Store8, StoreNonTemporal8};
use super::routine::Routine;
use super::sample::{Limits, Stamps, timed};
use lanemark_machine::{BufferHandoff, Discipline, Flush, Verb};
use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};

/// How a core of this processor can share ordinary memory, in the order they are listed: of what drops lines, the best there is.
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
        // A program cannot map ordinary memory otherwise.
        Discipline::Uncached | Discipline::Combining | Discipline::BouncedCombining => false,
    };
    Discipline::ALL.into_iter().filter(is_here).collect()
}

/// An instruction that flushes a line.
trait FlushLine {
    /// What the assembler's `.if` asks for.
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

/// Flushes every line of the span; nothing waits for it.
///
/// # Safety
/// The span is mapped and starts with a line, and the processor has the instruction.
#[inline(always)]
unsafe fn flush<F: FlushLine>(ground: &Ground) {
    for line in (0..ground.len).step_by(64) {
        // SAFETY: handed on to the caller; none of them changes what memory holds.
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

/// Copies as many bytes as the span has, by 8 B, a line a turn.
///
/// # Safety
/// Both are valid for the span's bytes, which are whole lines, and do not overlap.
#[inline(always)]
unsafe fn copy(to: *mut u8, from: *const u8, ground: &Ground) {
    // SAFETY: handed on to the caller; all registers written are declared.
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

/// The loop, or `None` if a program cannot do that.
pub(crate) fn routine(handover: &BufferHandoff) -> Option<Routine> {
    match (handover.verb, handover.discipline) {
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
/// As for [`loops::pass`].
unsafe fn written<A: Access>(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: handed on to the caller.
        unsafe { loops::pass::<A, Onwards, NoBarrier>(ground, n) };
        loops::barrier::<Mfence>();
        Ok(())
    })
}

/// # Safety
/// As for [`loops::pass`] and [`flush`].
unsafe fn written_and_flushed<F: FlushLine>(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: handed on to the caller.
        unsafe {
            loops::pass::<Store8, Onwards, NoBarrier>(ground, n);
            flush::<F>(ground);
        }
        loops::barrier::<Mfence>();
        Ok(())
    })
}

/// # Safety
/// As for [`copy`] between both sides, and [`Access::walk`] over the other.
unsafe fn written_and_copied(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: handed on to the caller.
        unsafe {
            Store8::walk::<Onwards, NoBarrier>(ground.other, ground.count, ground, n);
            copy(ground.at, ground.other, ground);
        }
        loops::barrier::<Mfence>();
        Ok(())
    })
}

/// # Safety
/// As for [`loops::pass`].
unsafe fn read(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: handed on to the caller.
        unsafe { loops::pass::<Load8, Onwards, NoBarrier>(ground, n) };
        loops::barrier::<Mfence>();
        Ok(())
    })
}

/// # Safety
/// As for [`loops::pass`] and [`flush`].
unsafe fn purged_and_read<F: FlushLine>(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: handed on to the caller.
        unsafe {
            flush::<F>(ground);
            loops::barrier::<Mfence>();
            // Here the device would write.
            flush::<F>(ground);
            loops::barrier::<Mfence>();
            loops::pass::<Load8, Onwards, NoBarrier>(ground, n);
        }
        loops::barrier::<Mfence>();
        Ok(())
    })
}

/// # Safety
/// As for [`copy`] between both sides, and [`Access::walk`] over the other.
unsafe fn copied_and_read(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: handed on to the caller.
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
    fn there_is_a_loop_for_every_discipline_of_any_processor_both_ways_where_it_makes_sense() {
        for (has_clflushopt, has_clwb) in [(false, false), (true, false), (true, true)] {
            let here = disciplines_of(has_clflushopt, has_clwb);
            assert_eq!(here.len(), 4 + usize::from(has_clwb));
            assert!(here.contains(&Discipline::Flushed(Flush::Clflush)) != has_clflushopt);
            for discipline in Discipline::ALL {
                for verb in [Verb::Store, Verb::Load] {
                    let handover = BufferHandoff { verb, discipline, bytes: 64 };
                    let can = here.contains(&discipline) && handover.nonsense().is_none();
                    assert!(!can || routine(&handover).is_some(), "{verb:?} {discipline}");
                }
            }
        }
    }
}
