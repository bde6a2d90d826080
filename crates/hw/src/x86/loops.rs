//! The loads and stores: one loop for each instruction and direction.
//!
//! Each loop is one block of assembly, so that the compiler can neither merge, widen, move nor drop an
//! access. It is unrolled eight times: a store a cycle needs the loop's own two instructions out of the
//! way. What varies besides the instruction is a type, not a value, and is gone after compilation:
//! the [`Stride`] (onwards, the same address again, or line by line) and the [`Barrier`] after every access.
//! What stands after a whole pass is a type where nothing else would hide a branch, and else an [`After`].
//!
//! Stored values come from a register filled once a pass ([`value`]), except where the instruction
//! itself reads memory: `MOVDIR64B`, `REP MOVSB` and `memcpy`.

#![allow(unsafe_code)]
#![allow(clippy::inline_always)] // A call of ours between two timestamps would be measured too.

use super::copy_table::CopyTable;
use super::flush::flush_lines;
use super::pattern::{Lines, VALUES, value};
use super::sample::pause;
use lanemark_machine::Fence;
use std::arch::asm;

/// What one pass of a stream works on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground {
    /// The first byte of the span.
    pub(crate) at: *mut u8,
    /// The other side of a copy, as long as the span.
    pub(crate) other: *mut u8,
    /// Bytes of the span.
    pub(crate) len: usize,
    /// Accesses of full width in one pass; copies of the whole span for `memcpy` and `rep movsb`.
    pub(crate) count: usize,
    /// Bytes after the last of them, moved with narrower accesses.
    pub(crate) rest: usize,
    /// What `MOVDIR64B` stores.
    pub(crate) lines: *const Lines,
    /// Lines of a block, where lines are interleaved.
    pub(crate) interleaved: usize,
    /// What stands after every pass.
    pub(crate) after: After,
    /// What `copy_to_device` chooses from.
    pub(crate) copies: *const CopyTable,
}

/// What stands after a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    Nothing,
    Fence(Fence),
    /// The lines of the span are dropped from every cache, and gone before the next pass.
    Flush,
    /// Nothing is done for this many cycles of the time-stamp counter.
    Pause(u64),
}

impl Ground {
    /// Does what stands after a pass. A branch or two, for passes that have something slower in them.
    ///
    /// # Safety
    /// For [`After::Flush`], the span is mapped.
    #[inline(always)]
    pub(crate) unsafe fn after(&self) {
        match self.after {
            After::Nothing | After::Fence(Fence::Interrupt) => {}
            After::Fence(Fence::Sfence) => barrier::<Sfence>(),
            After::Fence(Fence::Lfence) => barrier::<Lfence>(),
            After::Fence(Fence::Mfence) => barrier::<Mfence>(),
            After::Fence(Fence::Locked) => barrier::<Locked>(),
            // SAFETY: handed on to the caller.
            After::Flush => unsafe { flush_lines(self.at, self.len) },
            After::Pause(cycles) => pause(cycles),
        }
    }
}

/// What stands after every access, or after every pass.
pub(crate) trait Barrier {
    /// What the assembler's `.if` asks for.
    const CODE: u8;
}

/// Nothing.
pub(crate) struct NoBarrier;
/// `SFENCE`.
pub(crate) struct Sfence;
/// `LFENCE`.
pub(crate) struct Lfence;
/// `MFENCE`.
pub(crate) struct Mfence;
/// A locked instruction that changes nothing, on the stack.
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

/// The barrier named by the operand `{barrier}`.
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

/// The barrier alone.
#[inline(always)]
pub(crate) fn barrier<B: Barrier>() {
    // SAFETY: fences change nothing; the locked instruction writes back the stack word it read, and without
    // `nostack` the compiler keeps nothing of its own below the stack pointer meanwhile.
    unsafe { asm!(barrier!(), barrier = const B::CODE) }
}

/// Where the next access goes: so many widths and so many bytes on.
pub(crate) trait Stride {
    /// Widths of the access.
    const WIDTHS: usize;
    /// Bytes besides.
    const BYTES: usize;
}

/// Behind this one.
pub(crate) struct Onwards;
/// To the same address.
pub(crate) struct Again;
/// To the same place of the next line.
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

/// One instruction in one direction.
pub(crate) trait Access {
    /// Whether it stores to the span, and the rest of a span is stored too.
    const STORES: bool;
    /// Bytes of one access; 0 for a copy, which is as long as the span.
    const WIDTH: usize;

    /// Makes `count` accesses from `at` on, a barrier after each.
    ///
    /// # Safety
    /// The processor has the instruction. `at` is valid, and aligned as the instruction wants it, for every access
    /// that `count` and the stride make; for copies `at` and `ground.other` are valid for `ground.len` bytes and do
    /// not overlap; `ground.lines` is valid.
    unsafe fn walk<S: Stride, B: Barrier>(at: *mut u8, count: usize, ground: &Ground, n: u64);
}

/// Eight accesses a turn, then four, two and one for what is left, so that few accesses need no loop; the address is
/// `[{at} + k*{step}]`.
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
            // VZEROUPPER writes to all sixteen.
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            $($operands)*
        )
    };
}

/// `NAME: bytes, what fills the register | mnemonic and size | register | what follows the loop`.
macro_rules! stores {
    ($($(#[$doc:meta])* $name:ident: $width:literal, $setup:literal | $head:literal | $tail:literal | $end:literal;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl Access for $name {
            const STORES: bool = true;
            const WIDTH: usize = $width;

            #[inline(always)]
            unsafe fn walk<S: Stride, B: Barrier>(at: *mut u8, count: usize, _: &Ground, n: u64) {
                // SAFETY: the caller vouches for the instruction and for every address the loop makes; all registers
                // written are declared, and the stack is as `barrier` says.
                unsafe {
                    walk!($setup, $head, $tail, $end, at, count,
                        value = in(reg) value(n), step = const $width * S::WIDTHS + S::BYTES, barrier = const B::CODE)
                }
            }
        }
    )*};
}

/// `NAME: bytes, mnemonic, register and size | what follows the loop`.
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
    /// `VMOVDQU64`, 64 B. Register 16 and above need no `VZEROUPPER`.
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

/// `MOVDIR64B`: a line from memory that the first-level cache holds, to an aligned line.
pub(crate) struct StoreMovdir64b;

impl Access for StoreMovdir64b {
    const STORES: bool = true;
    const WIDTH: usize = 64;

    #[inline(always)]
    unsafe fn walk<S: Stride, B: Barrier>(at: *mut u8, count: usize, ground: &Ground, n: u64) {
        // SAFETY: the caller vouches for the lines, and `n % VALUES` is one of them; the rest is as for stores. The
        // instruction takes its destination from a register without displacement, so there is no gain in unrolling.
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

/// `memcpy`; `STORE` says whether the span is its destination.
pub(crate) struct Memcpy<const STORE: bool>;
/// `REP MOVSB`; `STORE` says whether the span is its destination.
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
            // SAFETY: the caller vouches for both ends and that they do not overlap. The barrier, even an empty one,
            // is assembly that may read memory: no copy can be dropped or joined with the next.
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
            // SAFETY: the caller vouches for both ends; the direction flag is clear on entry to assembly.
            unsafe {
                asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") ground.len => _,
                    options(nostack, preserves_flags));
            }
            barrier::<B>();
        }
    }
}

/// Lanemark's own copy; the span is its destination.
pub(crate) struct CopyToDevice;

impl Access for CopyToDevice {
    const STORES: bool = true;
    const WIDTH: usize = 0;

    #[inline(always)]
    unsafe fn walk<S: Stride, B: Barrier>(_: *mut u8, count: usize, ground: &Ground, _: u64) {
        for _ in 0..count {
            // SAFETY: the caller vouches for both ends, that they do not overlap, and for the table.
            unsafe { (*ground.copies).copy(ground.at, ground.other, ground.len) };
            barrier::<B>();
        }
    }
}

/// One pass of a stream: the accesses and the rest.
///
/// # Safety
/// As for [`Access::walk`] with `ground.at` and `ground.count`, and `ground.at` is valid for the rest too.
#[inline(always)]
pub(crate) unsafe fn pass<A: Access, S: Stride, Each: Barrier>(ground: &Ground, n: u64) {
    // SAFETY: handed on to the caller.
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

/// One pass over a span of whole blocks, the lines of each interleaved.
///
/// # Safety
/// As for [`Access::walk`] over the whole span; the access has a width, of which a line has a whole number.
#[inline(always)]
pub(crate) unsafe fn interleaved_pass<A: Access>(ground: &Ground, n: u64) {
    for block in (0..ground.len).step_by(ground.interleaved * 64) {
        for place in (0..64).step_by(A::WIDTH) {
            // SAFETY: the block ends within the span, and every line of it has this place.
            unsafe { A::walk::<NextLine, NoBarrier>(ground.at.add(block + place), ground.interleaved, ground, n) };
        }
    }
}

/// The last `ground.rest` bytes of the span, in 8, 4, 2 and 1 B. Apart, because few sizes have a rest.
///
/// # Safety
/// Those bytes are valid, as for [`Access::walk`].
#[inline(never)]
unsafe fn rest<A8: Access, A4: Access, A2: Access, A1: Access, Each: Barrier>(ground: &Ground, n: u64) {
    let (len, left) = (ground.len, ground.rest);
    // SAFETY: each piece ends where the next starts, and the last at `len`.
    unsafe {
        A8::walk::<Onwards, Each>(ground.at.add(len - left), left / 8, ground, n);
        A4::walk::<Onwards, Each>(ground.at.add(len - left % 8), left / 4 % 2, ground, n);
        A2::walk::<Onwards, Each>(ground.at.add(len - left % 4), left / 2 % 2, ground, n);
        A1::walk::<Onwards, Each>(ground.at.add(len - left % 2), left % 2, ground, n);
    }
}
