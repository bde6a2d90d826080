//! Measurement loops: one per instruction and direction.
//!
//! Each loop is one block of assembly, so that the compiler cannot merge, widen, move or drop an access. It is unrolled
//! eight times: one store per cycle leaves no room for the loop's own two instructions. Everything that varies besides the
//! instruction is a type parameter, resolved at compile time: the [`Stride`] (ascending, same address, or next line) and
//! the [`Barrier`] after every access. The operation after an iteration is a type parameter where a branch would be
//! visible, otherwise an [`After`].
//!
//! Stored values come from a register that is loaded once per iteration ([`value`]), except for instructions that read
//! memory themselves: `MOVDIR64B`, `REP MOVSB` and `memcpy`.

#![allow(unsafe_code)]
#![allow(clippy::inline_always)] // A function call between two timestamps would be measured too.

use super::copy_table::CopyTable;
use super::flush::flush_lines;
use super::pattern::{Lines, VALUES, value};
use super::sample::pause;
use lanemark_machine::Fence;
use std::arch::asm;

/// Operands of one iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground {
    /// First byte of the span.
    pub(crate) at: *mut u8,
    /// Other end of a copy, as long as the span.
    pub(crate) other: *mut u8,
    /// Length of the span in bytes.
    pub(crate) len: usize,
    /// Number of full-width accesses per iteration; for `memcpy` and `rep movsb`, number of copies of the span.
    pub(crate) count: usize,
    /// Remaining bytes, moved by narrower accesses.
    pub(crate) rest: usize,
    /// Source lines of `MOVDIR64B`.
    pub(crate) lines: *const Lines,
    /// Lines per block if lines are interleaved.
    pub(crate) interleaved: usize,
    /// Operation after every iteration.
    pub(crate) after: After,
    /// Table from which `copy_to_device` chooses.
    pub(crate) copies: *const CopyTable,
}

/// Operation after an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    Nothing,
    Fence(Fence),
    /// Flushes the lines of the span from all caches, and waits for completion.
    Flush,
    /// Waits for this many cycles of the time-stamp counter.
    Pause(u64),
}

impl Ground {
    /// Executes the operation after an iteration; costs a branch or two, for iterations with slower parts.
    ///
    /// # Safety
    /// For [`After::Flush`], the span must be mapped.
    #[inline(always)]
    pub(crate) unsafe fn after(&self) {
        match self.after {
            After::Nothing | After::Fence(Fence::Interrupt) => {}
            After::Fence(Fence::Sfence) => barrier::<Sfence>(),
            After::Fence(Fence::Lfence) => barrier::<Lfence>(),
            After::Fence(Fence::Mfence) => barrier::<Mfence>(),
            After::Fence(Fence::Locked) => barrier::<Locked>(),
            // SAFETY: guaranteed by the caller.
            After::Flush => unsafe { flush_lines(self.at, self.len) },
            After::Pause(cycles) => pause(cycles),
        }
    }
}

/// Barrier after every access or every iteration.
pub(crate) trait Barrier {
    /// Value for the assembler's `.if`.
    const CODE: u8;
}

/// No barrier.
pub(crate) struct NoBarrier;
/// `SFENCE`.
pub(crate) struct Sfence;
/// `LFENCE`.
pub(crate) struct Lfence;
/// `MFENCE`.
pub(crate) struct Mfence;
/// Locked read-modify-write of the stack that changes nothing.
pub(crate) struct Locked;

impl Barrier for NoBarrier {
    const CODE: u8 = 0;
}
impl Barrier for Sfence {
    const CODE: u8 = 1;
}
impl Barrier for Lfence {
    const CODE: u8 = 2;
}
impl Barrier for Mfence {
    const CODE: u8 = 3;
}
impl Barrier for Locked {
    const CODE: u8 = 4;
}

/// Assembly of the barrier selected by the operand `{barrier}`.
macro_rules! barrier {
    () => {
        "
        .if {barrier} == 1
        sfence
        .elseif {barrier} == 2
        lfence
        .elseif {barrier} == 3
        mfence
        .elseif {barrier} == 4
        lock or dword ptr [rsp], 0
        .endif
        "
    };
}

/// Executes a barrier.
#[inline(always)]
pub(crate) fn barrier<B: Barrier>() {
    // SAFETY: fences change nothing. The locked instruction writes back the stack word that it read; without `nostack`
    // the compiler keeps no data below the stack pointer.
    unsafe { asm!(barrier!(), barrier = const B::CODE) }
}

/// Distance to the next access: a multiple of the width, plus a number of bytes.
pub(crate) trait Stride {
    /// Multiple of the access width.
    const WIDTHS: usize;
    /// Additional bytes.
    const BYTES: usize;
}

/// Next address after this access.
pub(crate) struct Onwards;
/// Same address.
pub(crate) struct Again;
/// Same offset in the next line.
pub(crate) struct NextLine;

impl Stride for Onwards {
    const WIDTHS: usize = 1;
    const BYTES: usize = 0;
}
impl Stride for Again {
    const WIDTHS: usize = 0;
    const BYTES: usize = 0;
}
impl Stride for NextLine {
    const WIDTHS: usize = 0;
    const BYTES: usize = 64;
}

/// Instruction with a direction.
pub(crate) trait Access {
    /// Whether it stores to the span; decides how the remainder is moved.
    const STORES: bool;
    /// Bytes per access; 0 for copies, which are as long as the span.
    const WIDTH: usize;

    /// Executes `count` accesses from `at` on, each followed by a barrier.
    ///
    /// # Safety
    /// The processor must support the instruction. `at` must be valid and aligned for every access that `count` and the
    /// stride make. For copies, `at` and `ground.other` must be valid for `ground.len` bytes and must not overlap.
    /// `ground.lines` must be valid.
    unsafe fn walk<S: Stride, B: Barrier>(at: *mut u8, count: usize, ground: &Ground, n: u64);
}

/// Eight accesses per loop iteration, then four, two and one for the remainder, so that few accesses need no loop. The
/// address is `[{at} + k*{step}]`.
macro_rules! walk {
    ($setup:literal, $head:literal, $tail:literal, $end:literal, $at:ident, $count:ident, $($operands:tt)*) => {
        asm!(
            $setup,
            "test {eights}, {eights}",
            "jz 3f",
            ".p2align 5",
            "2:",
            concat!($head, "[{at} + 0*{step}]", $tail), barrier!(),
            concat!($head, "[{at} + 1*{step}]", $tail), barrier!(),
            concat!($head, "[{at} + 2*{step}]", $tail), barrier!(),
            concat!($head, "[{at} + 3*{step}]", $tail), barrier!(),
            concat!($head, "[{at} + 4*{step}]", $tail), barrier!(),
            concat!($head, "[{at} + 5*{step}]", $tail), barrier!(),
            concat!($head, "[{at} + 6*{step}]", $tail), barrier!(),
            concat!($head, "[{at} + 7*{step}]", $tail), barrier!(),
            "add {at}, 8*{step}",
            "sub {eights}, 1",
            "jnz 2b",
            "3:",
            "test {count}, 4",
            "jz 4f",
            concat!($head, "[{at} + 0*{step}]", $tail), barrier!(),
            concat!($head, "[{at} + 1*{step}]", $tail), barrier!(),
            concat!($head, "[{at} + 2*{step}]", $tail), barrier!(),
            concat!($head, "[{at} + 3*{step}]", $tail), barrier!(),
            "add {at}, 4*{step}",
            "4:",
            "test {count}, 2",
            "jz 5f",
            concat!($head, "[{at} + 0*{step}]", $tail), barrier!(),
            concat!($head, "[{at} + 1*{step}]", $tail), barrier!(),
            "add {at}, 2*{step}",
            "5:",
            "test {count}, 1",
            "jz 6f",
            concat!($head, "[{at}]", $tail), barrier!(),
            "6:",
            $end,
            at = inout(reg) $at => _,
            eights = inout(reg) $count / 8 => _,
            count = in(reg) $count,
            out("rax") _, out("zmm16") _,
            // `VZEROUPPER` writes all sixteen.
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            $($operands)*
        )
    };
}

/// `NAME: bytes, instructions that fill the register | mnemonic and size | register | instruction after the loop`.
macro_rules! stores {
    ($($(#[$doc:meta])* $name:ident: $width:literal, $setup:literal | $head:literal | $tail:literal | $end:literal;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl Access for $name {
            const STORES: bool = true;
            const WIDTH: usize = $width;

            #[inline(always)]
            unsafe fn walk<S: Stride, B: Barrier>(at: *mut u8, count: usize, _: &Ground, n: u64) {
                // SAFETY: the caller guarantees the instruction and every address of the loop; all written registers are
                // declared, and the stack is used as in `barrier`.
                unsafe {
                    walk!($setup, $head, $tail, $end, at, count,
                        value = in(reg) value(n), step = const $width * S::WIDTHS + S::BYTES, barrier = const B::CODE)
                }
            }
        }
    )*};
}

/// `NAME: bytes, mnemonic, register and size | instruction after the loop`.
macro_rules! loads {
    ($($(#[$doc:meta])* $name:ident: $width:literal, $head:literal | $end:literal;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl Access for $name {
            const STORES: bool = false;
            const WIDTH: usize = $width;

            #[inline(always)]
            unsafe fn walk<S: Stride, B: Barrier>(at: *mut u8, count: usize, _: &Ground, _: u64) {
                // SAFETY: as for stores.
                unsafe {
                    walk!("", $head, "", $end, at, count,
                        step = const $width * S::WIDTHS + S::BYTES, barrier = const B::CODE)
                }
            }
        }
    )*};
}

stores! {
    /// `MOV`, 1 B.
    Store1: 1, "" | "mov byte ptr " | ", {value:l}" | "";
    /// `MOV`, 2 B.
    Store2: 2, "" | "mov word ptr " | ", {value:x}" | "";
    /// `MOV`, 4 B.
    Store4: 4, "" | "mov dword ptr " | ", {value:e}" | "";
    /// `MOV`, 8 B.
    Store8: 8, "" | "mov qword ptr " | ", {value}" | "";
    /// `MOVDQU`, 16 B.
    Store16: 16, "movq xmm0, {value}\npunpcklqdq xmm0, xmm0" | "movdqu xmmword ptr " | ", xmm0" | "";
    /// `VMOVDQU`, 32 B.
    Store32: 32, "vmovq xmm0, {value}\nvpbroadcastq ymm0, xmm0" | "vmovdqu ymmword ptr " | ", ymm0" | "vzeroupper";
    /// `VMOVDQU64`, 64 B. Registers from 16 on need no `VZEROUPPER`.
    Store64: 64, "vpbroadcastq zmm16, {value}" | "vmovdqu64 zmmword ptr " | ", zmm16" | "";
    /// `MOVNTI`, 8 B.
    StoreNonTemporal8: 8, "" | "movnti qword ptr " | ", {value}" | "";
    /// `MOVNTDQ`, 16 B, aligned.
    StoreNonTemporal16: 16, "movq xmm0, {value}\npunpcklqdq xmm0, xmm0" | "movntdq xmmword ptr " | ", xmm0" | "";
    /// `VMOVNTDQ`, 32 B, aligned.
    StoreNonTemporal32: 32, "vmovq xmm0, {value}\nvpbroadcastq ymm0, xmm0" | "vmovntdq ymmword ptr " | ", ymm0" | "vzeroupper";
    /// `VMOVNTDQ`, 64 B, aligned.
    StoreNonTemporal64: 64, "vpbroadcastq zmm16, {value}" | "vmovntdq zmmword ptr " | ", zmm16" | "";
    /// `MOVDIRI`, 4 B.
    StoreMovdiri4: 4, "" | "movdiri dword ptr " | ", {value:e}" | "";
    /// `MOVDIRI`, 8 B.
    StoreMovdiri8: 8, "" | "movdiri qword ptr " | ", {value}" | "";
}

loads! {
    /// `MOVZX`, 1 B.
    Load1: 1, "movzx eax, byte ptr " | "";
    /// `MOVZX`, 2 B.
    Load2: 2, "movzx eax, word ptr " | "";
    /// `MOV`, 4 B.
    Load4: 4, "mov eax, dword ptr " | "";
    /// `MOV`, 8 B.
    Load8: 8, "mov rax, qword ptr " | "";
    /// `MOVDQU`, 16 B.
    Load16: 16, "movdqu xmm0, xmmword ptr " | "";
    /// `VMOVDQU`, 32 B.
    Load32: 32, "vmovdqu ymm0, ymmword ptr " | "vzeroupper";
    /// `VMOVDQU64`, 64 B.
    Load64: 64, "vmovdqu64 zmm16, zmmword ptr " | "";
    /// `MOVNTDQA`, 16 B, aligned.
    LoadNonTemporal16: 16, "movntdqa xmm0, xmmword ptr " | "";
    /// `VMOVNTDQA`, 32 B, aligned.
    LoadNonTemporal32: 32, "vmovntdqa ymm0, ymmword ptr " | "vzeroupper";
    /// `VMOVNTDQA`, 64 B, aligned.
    LoadNonTemporal64: 64, "vmovntdqa zmm16, zmmword ptr " | "";
}

/// `MOVDIR64B`: copies a line that is in the first-level cache to an aligned line.
pub(crate) struct StoreMovdir64b;

impl Access for StoreMovdir64b {
    const STORES: bool = true;
    const WIDTH: usize = 64;

    #[inline(always)]
    unsafe fn walk<S: Stride, B: Barrier>(at: *mut u8, count: usize, ground: &Ground, n: u64) {
        // SAFETY: the caller guarantees the lines, of which `n % VALUES` is a valid index; the rest is as for stores. The
        // destination register takes no displacement, so unrolling gains nothing.
        unsafe {
            let line = &raw const (*ground.lines)[(n % VALUES) as usize];
            asm!(
                "test {count}, {count}",
                "jz 3f",
                "2:",
                "movdir64b {at}, zmmword ptr [{line}]",
                barrier!(),
                "add {at}, {step}",
                "sub {count}, 1",
                "jnz 2b",
                "3:",
                at = inout(reg) at => _,
                count = inout(reg) count => _,
                line = in(reg) line,
                step = const 64 * S::WIDTHS + S::BYTES,
                barrier = const B::CODE,
            );
        }
    }
}

/// `memcpy`; `STORE` means that the span is its destination.
pub(crate) struct Memcpy<const STORE: bool>;
/// `REP MOVSB`; `STORE` means that the span is its destination.
pub(crate) struct RepMovsb<const STORE: bool>;

/// Destination and source of a copy.
#[inline(always)]
const fn ends<const STORE: bool>(ground: &Ground) -> (*mut u8, *mut u8) {
    if STORE { (ground.at, ground.other) } else { (ground.other, ground.at) }
}

impl<const STORE: bool> Access for Memcpy<STORE> {
    const STORES: bool = STORE;
    const WIDTH: usize = 0;

    #[inline(always)]
    unsafe fn walk<S: Stride, B: Barrier>(_: *mut u8, count: usize, ground: &Ground, _: u64) {
        let (to, from) = ends::<STORE>(ground);
        for _ in 0..count {
            // SAFETY: the caller guarantees both ends and that they do not overlap. The barrier, even an empty one, is
            // assembly that may read memory, so no copy can be dropped or merged with the next.
            unsafe { std::ptr::copy_nonoverlapping(from, to, ground.len) };
            barrier::<B>();
        }
    }
}

impl<const STORE: bool> Access for RepMovsb<STORE> {
    const STORES: bool = STORE;
    const WIDTH: usize = 0;

    #[inline(always)]
    unsafe fn walk<S: Stride, B: Barrier>(_: *mut u8, count: usize, ground: &Ground, _: u64) {
        let (to, from) = ends::<STORE>(ground);
        for _ in 0..count {
            // SAFETY: the caller guarantees both ends; the direction flag is clear on entry to assembly.
            unsafe {
                asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") ground.len => _,
                    options(nostack, preserves_flags));
            }
            barrier::<B>();
        }
    }
}

/// Copy with the calibrated routine; the span is its destination.
pub(crate) struct CopyToDevice;

impl Access for CopyToDevice {
    const STORES: bool = true;
    const WIDTH: usize = 0;

    #[inline(always)]
    unsafe fn walk<S: Stride, B: Barrier>(_: *mut u8, count: usize, ground: &Ground, _: u64) {
        for _ in 0..count {
            // SAFETY: the caller guarantees both ends, that they do not overlap, and the table.
            unsafe { (*ground.copies).copy(ground.at, ground.other, ground.len) };
            barrier::<B>();
        }
    }
}

/// Executes one iteration of a stream: the accesses and the remainder.
///
/// # Safety
/// Same as for [`Access::walk`] with `ground.at` and `ground.count`; `ground.at` must be valid for the remainder too.
#[inline(always)]
pub(crate) unsafe fn pass<A: Access, S: Stride, Each: Barrier>(ground: &Ground, n: u64) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        A::walk::<S, Each>(ground.at, ground.count, ground, n);
        if ground.rest != 0 {
            if A::STORES {
                rest::<Store8, Store4, Store2, Store1, Each>(ground, n);
            } else {
                rest::<Load8, Load4, Load2, Load1, Each>(ground, n);
            }
        }
    }
}

/// Executes one iteration over a span of whole blocks, with interleaved lines.
///
/// # Safety
/// Same as for [`Access::walk`] over the whole span; the access must have a width that divides a line.
#[inline(always)]
pub(crate) unsafe fn interleaved_pass<A: Access>(ground: &Ground, n: u64) {
    for block in (0..ground.len).step_by(ground.interleaved * 64) {
        for place in (0..64).step_by(A::WIDTH) {
            // SAFETY: the block ends within the span, and every line of it contains this offset.
            unsafe { A::walk::<NextLine, NoBarrier>(ground.at.add(block + place), ground.interleaved, ground, n) };
        }
    }
}

/// Accesses the last `ground.rest` bytes of the span, by 8, 4, 2 and 1 B. Not inlined, because few sizes have a remainder.
///
/// # Safety
/// Those bytes must be valid, as for [`Access::walk`].
#[inline(never)]
unsafe fn rest<A8: Access, A4: Access, A2: Access, A1: Access, Each: Barrier>(ground: &Ground, n: u64) {
    let (len, left) = (ground.len, ground.rest);
    // SAFETY: each piece ends where the next one starts, and the last one at `len`.
    unsafe {
        A8::walk::<Onwards, Each>(ground.at.add(len - left), left / 8, ground, n);
        A4::walk::<Onwards, Each>(ground.at.add(len - left % 8), left / 4 % 2, ground, n);
        A2::walk::<Onwards, Each>(ground.at.add(len - left % 4), left / 2 % 2, ground, n);
        A1::walk::<Onwards, Each>(ground.at.add(len - left % 2), left % 2, ground, n);
    }
}
