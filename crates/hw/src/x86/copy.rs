//! Copy routines from memory to a span.
//!
//! Each routine stores every byte once, in ascending order, with the instruction it is named after. Bytes before the first
//! aligned address of a non-temporal store, and the remainder at the end, are stored by 8, 4, 2 and 1 B. The routines are
//! therefore suitable for a BAR, where storing a byte twice would cost a TLP. None of them ends with a fence.

#![allow(unsafe_code)]

use super::sample::{Limits, Stamps, timed};
use lanemark_machine::{Access, Width};
use std::arch::asm;
use std::hint::black_box;

/// Routine that copies `len` bytes.
///
/// # Safety
/// Both ends must be valid for `len` bytes and must not overlap, and the processor must support the instruction.
pub(crate) type Copy = unsafe fn(to: *mut u8, from: *const u8, len: usize);

/// All copy routines, simplest first.
pub(crate) const ROUTINES: [(Access, Copy); 9] = [
    (Access::Memcpy, memcpy),
    (Access::RepMovsb, rep_movsb),
    (Access::Plain(Width::B16), plain16),
    (Access::Plain(Width::B32), plain32),
    (Access::Plain(Width::B64), plain64),
    (Access::NonTemporal(Width::B16), non_temporal16),
    (Access::NonTemporal(Width::B32), non_temporal32),
    (Access::NonTemporal(Width::B64), non_temporal64),
    (Access::Movdir64b, movdir64b),
];

/// Returns the routine that stores by `access`.
pub(crate) fn routine(access: Access) -> Option<Copy> {
    ROUTINES.into_iter().find(|(other, _)| *other == access).map(|(_, copy)| copy)
}

/// Copies of one block to the consecutive places of a zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    /// Start of the zone.
    pub(crate) to: *mut u8,
    /// Start of the block.
    pub(crate) from: *const u8,
    /// Length of the block in bytes.
    pub(crate) len: usize,
    /// Number of blocks in the zone.
    pub(crate) count: usize,
}

impl Blocks {
    /// Times `passes` iterations over the zone.
    ///
    /// # Safety
    /// Same as for [`Copy`], at every place of the zone.
    pub(crate) unsafe fn timed(&self, copy: Copy, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
        timed(limits, first, passes, |_| {
            // `black_box` hides the length, as it is hidden from the loop that chooses a routine by length.
            // SAFETY: guaranteed by the caller.
            self.each(|to| unsafe { copy(to, self.from, black_box(self.len)) });
            Ok(())
        })
    }

    /// Calls `copy` for every place of the zone, in ascending order.
    ///
    /// # Safety
    /// Same as for [`Blocks::timed`].
    #[inline(always)]
    #[allow(clippy::inline_always)] // A function call between two timestamps would be measured too.
    pub(crate) fn each(&self, mut copy: impl FnMut(*mut u8)) {
        let mut to = self.to;
        for _ in 0..self.count {
            copy(to);
            to = to.wrapping_add(self.len);
        }
    }
}

unsafe fn memcpy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

unsafe fn rep_movsb(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: guaranteed by the caller; the direction flag is clear on entry to assembly.
    unsafe {
        asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") len => _,
            options(nostack, preserves_flags));
    }
}

/// Copies the bytes before and after whole vectors, by 8, 4, 2 and 1 B.
///
/// # Safety
/// Same as for [`Copy`].
unsafe fn few(mut to: *mut u8, mut from: *const u8, mut len: usize) {
    macro_rules! step {
        ($bytes:literal, $register:literal) => {
            // SAFETY: guaranteed by the caller.
            unsafe {
                asm!(concat!("mov {value:", $register, "}, [{from}]"), concat!("mov [{to}], {value:", $register, "}"),
                    value = out(reg) _, from = in(reg) from, to = in(reg) to, options(nostack, preserves_flags));
                (to, from, len) = (to.add($bytes), from.add($bytes), len - $bytes);
            }
        };
    }
    while len >= 8 {
        step!(8, "r");
    }
    if len >= 4 {
        step!(4, "e");
    }
    if len >= 2 {
        step!(2, "x");
    }
    if len >= 1 {
        // SAFETY: guaranteed by the caller; byte registers are a class of their own.
        unsafe {
            asm!("mov {value}, byte ptr [{from}]", "mov byte ptr [{to}], {value}",
                value = out(reg_byte) _, from = in(reg) from, to = in(reg) to, options(nostack, preserves_flags));
        }
    }
}

/// `NAME: bytes, whether stores are aligned | load | store | operand size | registers | instruction after the loop`.
macro_rules! vectors {
    ($($name:ident: $width:literal, $aligned:literal | $load:literal | $store:literal | $size:literal
        | $r0:literal $r1:literal $r2:literal $r3:literal | $end:literal;)*) => {$(
        unsafe fn $name(mut to: *mut u8, mut from: *const u8, mut len: usize) {
            if $aligned {
                let before = to.addr().wrapping_neg() % $width;
                if before != 0 {
                    let before = before.min(len);
                    // SAFETY: guaranteed by the caller; each piece ends where the next one starts.
                    unsafe {
                        few(to, from, before);
                        (to, from, len) = (to.add(before), from.add(before), len - before);
                    }
                }
            }
            // SAFETY: as above; all written registers are declared.
            unsafe {
                asm!(
                    "sub {len}, 4 * {width}",
                    "jb 3f",
                    ".p2align 5",
                    "2:",
                    concat!($load, " ", $r0, ", ", $size, " [{from}]"),
                    concat!($load, " ", $r1, ", ", $size, " [{from} + {width}]"),
                    concat!($load, " ", $r2, ", ", $size, " [{from} + 2 * {width}]"),
                    concat!($load, " ", $r3, ", ", $size, " [{from} + 3 * {width}]"),
                    "add {from}, 4 * {width}",
                    concat!($store, " ", $size, " [{to}], ", $r0),
                    concat!($store, " ", $size, " [{to} + {width}], ", $r1),
                    concat!($store, " ", $size, " [{to} + 2 * {width}], ", $r2),
                    concat!($store, " ", $size, " [{to} + 3 * {width}], ", $r3),
                    "add {to}, 4 * {width}",
                    "sub {len}, 4 * {width}",
                    "jae 2b",
                    "3:",
                    "add {len}, 3 * {width}",
                    "jnc 5f",
                    "4:",
                    concat!($load, " ", $r0, ", ", $size, " [{from}]"),
                    "add {from}, {width}",
                    concat!($store, " ", $size, " [{to}], ", $r0),
                    "add {to}, {width}",
                    "sub {len}, {width}",
                    "jae 4b",
                    "5:",
                    "add {len}, {width}",
                    $end,
                    to = inout(reg) to,
                    from = inout(reg) from,
                    len = inout(reg) len,
                    width = const $width,
                    // The registers of every variant: `vzeroupper` writes the upper halves of the first sixteen.
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                    out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
                    options(nostack),
                );
                if len != 0 {
                    few(to, from, len);
                }
            }
        }
    )*};
}

vectors! {
    plain16: 16, false | "movdqu" | "movdqu" | "xmmword ptr" | "xmm0" "xmm1" "xmm2" "xmm3" | "";
    plain32: 32, false | "vmovdqu" | "vmovdqu" | "ymmword ptr" | "ymm0" "ymm1" "ymm2" "ymm3" | "vzeroupper";
    plain64: 64, false | "vmovdqu64" | "vmovdqu64" | "zmmword ptr" | "zmm16" "zmm17" "zmm18" "zmm19" | "";
    non_temporal16: 16, true | "movdqu" | "movntdq" | "xmmword ptr" | "xmm0" "xmm1" "xmm2" "xmm3" | "";
    non_temporal32: 32, true | "vmovdqu" | "vmovntdq" | "ymmword ptr" | "ymm0" "ymm1" "ymm2" "ymm3" | "vzeroupper";
    non_temporal64: 64, true | "vmovdqu64" | "vmovntdq" | "zmmword ptr" | "zmm16" "zmm17" "zmm18" "zmm19" | "";
}

unsafe fn movdir64b(mut to: *mut u8, mut from: *const u8, mut len: usize) {
    let before = (to.addr().wrapping_neg() % 64).min(len);
    // SAFETY: guaranteed by the caller; each piece ends where the next one starts.
    unsafe {
        few(to, from, before);
        (to, from, len) = (to.add(before), from.add(before), len - before);
        while len >= 64 {
            asm!("movdir64b {to}, zmmword ptr [{from}]", to = in(reg) to, from = in(reg) from,
                options(nostack, preserves_flags));
            (to, from, len) = (to.add(64), from.add(64), len - 64);
        }
        few(to, from, len);
    }
}

/// Inline version of [`routine`] for 64 B plain stores, for lengths at which a call is a large part of the time.
///
/// # Safety
/// Same as for [`Copy`].
#[inline(always)]
#[allow(clippy::inline_always)] // Avoiding the call is its purpose.
pub(crate) unsafe fn plain64_in_line(to: *mut u8, from: *const u8, len: usize) {
    let whole = len & !63;
    // SAFETY: guaranteed by the caller; the remainder starts where the whole vectors end, and all written registers are
    // declared.
    unsafe {
        asm!(
            "sub {left}, 256",
            "jb 3f",
            ".p2align 5",
            "2:",
            "vmovdqu64 zmm16, zmmword ptr [{from} + {at}]",
            "vmovdqu64 zmm17, zmmword ptr [{from} + {at} + 64]",
            "vmovdqu64 zmm18, zmmword ptr [{from} + {at} + 128]",
            "vmovdqu64 zmm19, zmmword ptr [{from} + {at} + 192]",
            "vmovdqu64 zmmword ptr [{to} + {at}], zmm16",
            "vmovdqu64 zmmword ptr [{to} + {at} + 64], zmm17",
            "vmovdqu64 zmmword ptr [{to} + {at} + 128], zmm18",
            "vmovdqu64 zmmword ptr [{to} + {at} + 192], zmm19",
            "add {at}, 256",
            "sub {left}, 256",
            "jae 2b",
            "3:",
            "test {left:e}, 128",
            "jz 4f",
            "vmovdqu64 zmm16, zmmword ptr [{from} + {at}]",
            "vmovdqu64 zmm17, zmmword ptr [{from} + {at} + 64]",
            "vmovdqu64 zmmword ptr [{to} + {at}], zmm16",
            "vmovdqu64 zmmword ptr [{to} + {at} + 64], zmm17",
            "add {at}, 128",
            "4:",
            "test {left:e}, 64",
            "jz 5f",
            "vmovdqu64 zmm16, zmmword ptr [{from} + {at}]",
            "vmovdqu64 zmmword ptr [{to} + {at}], zmm16",
            "5:",
            left = inout(reg) whole => _,
            at = inout(reg) 0_usize => _,
            from = in(reg) from,
            to = in(reg) to,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
            options(nostack),
        );
        if whole != len {
            few(to.add(whole), from.add(whole), len - whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86::cpu::Cpu;
    use crate::x86::pattern;
    use lanemark_machine::Verb;

    /// The inline copy as a routine.
    unsafe fn in_line(to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { plain64_in_line(to, from, len) }
    }

    #[test]
    fn every_routine_copies_its_bytes_and_no_others_at_any_alignment() {
        let cpu = Cpu::detected();
        let mut source = vec![0; 4096];
        pattern::fill(&mut source, 1);
        let mut to = vec![0_u8; 4096];
        let in_line = (Access::Plain(Width::B64), in_line as Copy);
        let all = ROUTINES.into_iter().chain([in_line]);
        for (access, copy) in all.filter(|(access, _)| cpu.lacks(Verb::Store, *access).is_none()) {
            for len in (0..200).chain([255, 256, 257, 511, 512, 1000, 2048, 2049]) {
                for (start, from) in [(0, 0), (1, 0), (64, 3), (127, 64), (40, 9), (33, 1)] {
                    to.fill(0);
                    // SAFETY: both ranges lie within their vectors, and the processor supports the instruction.
                    unsafe { copy(to.as_mut_ptr().add(start), source.as_ptr().add(from), len) };
                    assert_eq!(to[start..start + len], source[from..from + len], "{access}: {len} B to {start}");
                    let others = to[..start].iter().chain(&to[start + len..]);
                    assert!(others.copied().all(|byte| byte == 0), "{access}: {len} B to {start}: others");
                }
            }
        }
    }
}
