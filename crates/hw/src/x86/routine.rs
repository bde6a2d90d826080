//! The closed set of loops, and the choice among them.
//!
//! Every combination of access, stride and barrier is compiled on its own; a plan picks one before the first
//! sample, and a sample is one call through its address, made before the first timestamp. [`alone`] has what
//! is no stream.

#![allow(unsafe_code)]

use super::loops::{self, After, Again, Barrier, CopyToDevice, Ground, Lfence, Locked, Memcpy, Mfence};
use super::loops::{NoBarrier, Onwards, RepMovsb, Sfence, Stride};
use super::sample::{Limits, Stamps, stamp_after, stamp_before, timed};
use lanemark_machine::{Access, Clock, Fence, Order, Verb, Width};
use std::arch::asm;
use std::hint::black_box;
use std::time::Instant;

/// Times `passes` passes, numbered from `first` on.
///
/// # Safety
/// As for [`loops::pass`] with the chosen access and stride.
pub(crate) type Routine = unsafe fn(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps;

/// What tells one loop from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) verb: Verb,
    pub(crate) access: Access,
    pub(crate) order: Order,
    /// After every access.
    pub(crate) each: Option<Fence>,
    /// After every pass; the ground has the same.
    pub(crate) after: After,
}

impl Shape {
    /// The loop, or `None` if no instruction or no barrier of a program is like that.
    pub(crate) fn routine(self) -> Option<Routine> {
        use Width::{B1, B2, B4, B8, B16, B32, B64};
        match (self.verb, self.access) {
            (Verb::Store, Access::Plain(B1)) => self.with::<loops::Store1>(),
            (Verb::Store, Access::Plain(B2)) => self.with::<loops::Store2>(),
            (Verb::Store, Access::Plain(B4)) => self.with::<loops::Store4>(),
            (Verb::Store, Access::Plain(B8)) => self.with::<loops::Store8>(),
            (Verb::Store, Access::Plain(B16)) => self.with::<loops::Store16>(),
            (Verb::Store, Access::Plain(B32)) => self.with::<loops::Store32>(),
            (Verb::Store, Access::Plain(B64)) => self.with::<loops::Store64>(),
            (Verb::Store, Access::NonTemporal(B8)) => self.with::<loops::StoreNonTemporal8>(),
            (Verb::Store, Access::NonTemporal(B16)) => self.with::<loops::StoreNonTemporal16>(),
            (Verb::Store, Access::NonTemporal(B32)) => self.with::<loops::StoreNonTemporal32>(),
            (Verb::Store, Access::NonTemporal(B64)) => self.with::<loops::StoreNonTemporal64>(),
            (Verb::Store, Access::Movdiri(B4)) => self.with::<loops::StoreMovdiri4>(),
            (Verb::Store, Access::Movdiri(B8)) => self.with::<loops::StoreMovdiri8>(),
            (Verb::Store, Access::Movdir64b) => self.with::<loops::StoreMovdir64b>(),
            (Verb::Store, Access::Memcpy) => self.with::<Memcpy<true>>(),
            (Verb::Store, Access::RepMovsb) => self.with::<RepMovsb<true>>(),
            (Verb::Load, Access::Plain(B1)) => self.with::<loops::Load1>(),
            (Verb::Load, Access::Plain(B2)) => self.with::<loops::Load2>(),
            (Verb::Load, Access::Plain(B4)) => self.with::<loops::Load4>(),
            (Verb::Load, Access::Plain(B8)) => self.with::<loops::Load8>(),
            (Verb::Load, Access::Plain(B16)) => self.with::<loops::Load16>(),
            (Verb::Load, Access::Plain(B32)) => self.with::<loops::Load32>(),
            (Verb::Load, Access::Plain(B64)) => self.with::<loops::Load64>(),
            (Verb::Load, Access::NonTemporal(B16)) => self.with::<loops::LoadNonTemporal16>(),
            (Verb::Load, Access::NonTemporal(B32)) => self.with::<loops::LoadNonTemporal32>(),
            (Verb::Load, Access::NonTemporal(B64)) => self.with::<loops::LoadNonTemporal64>(),
            (Verb::Load, Access::Memcpy) => self.with::<Memcpy<false>>(),
            (Verb::Load, Access::RepMovsb) => self.with::<RepMovsb<false>>(),
            (Verb::Store, Access::CopyToDevice) => self.with::<CopyToDevice>(),
            (_, Access::NonTemporal(_) | Access::Movdiri(_) | Access::Movdir64b | Access::CopyToDevice) => None,
        }
    }

    /// Every combination of stride and barrier, but for a fence after each pass where every access has one
    /// already: beside those a branch after the pass is nothing.
    fn with<A: loops::Access>(self) -> Option<Routine> {
        match self.order {
            Order::Ascending => self.each::<A, Onwards>(),
            // Copies are of the whole span, wherever the next would go.
            Order::SameAddress { .. } if A::WIDTH == 0 => self.each::<A, Onwards>(),
            Order::SameAddress { .. } => self.each::<A, Again>(),
            Order::Interleaved { .. } => self.interleaved::<A>(),
        }
    }

    fn each<A: loops::Access, S: Stride>(self) -> Option<Routine> {
        match self.each {
            None => self.after::<A, S>(),
            Some(Fence::Sfence) => Some(sample_then::<A, S, Sfence>),
            Some(Fence::Lfence) => Some(sample_then::<A, S, Lfence>),
            Some(Fence::Mfence) => Some(sample_then::<A, S, Mfence>),
            Some(Fence::Locked) => Some(sample_then::<A, S, Locked>),
            Some(Fence::Interrupt) => None,
        }
    }

    fn after<A: loops::Access, S: Stride>(self) -> Option<Routine> {
        match self.after {
            After::Nothing => Some(sample::<A, S, NoBarrier>),
            After::Fence(Fence::Sfence) => Some(sample::<A, S, Sfence>),
            After::Fence(Fence::Lfence) => Some(sample::<A, S, Lfence>),
            After::Fence(Fence::Mfence) => Some(sample::<A, S, Mfence>),
            After::Fence(Fence::Locked) => Some(sample::<A, S, Locked>),
            After::Fence(Fence::Interrupt) => None,
            After::Flush | After::Pause(_) => Some(sample_then::<A, S, NoBarrier>),
        }
    }

    /// Stores of a width that leaves lines open, without a fence between them.
    fn interleaved<A: loops::Access>(self) -> Option<Routine> {
        let leaves_lines_open = const { A::STORES && A::WIDTH > 0 && A::WIDTH < 64 };
        (leaves_lines_open && self.each.is_none()).then_some(sample_interleaved::<A> as Routine)
    }
}

/// # Safety
/// As for [`loops::pass`].
unsafe fn sample<A: loops::Access, S: Stride, B: Barrier>(
    ground: &Ground,
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: handed on to the caller.
        unsafe { loops::pass::<A, S, NoBarrier>(ground, n) };
        loops::barrier::<B>();
        Ok(())
    })
}

/// # Safety
/// As for [`loops::pass`] and [`Ground::after`].
unsafe fn sample_then<A: loops::Access, S: Stride, Each: Barrier>(
    ground: &Ground,
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: handed on to the caller.
        unsafe {
            loops::pass::<A, S, Each>(ground, n);
            ground.after();
        }
        Ok(())
    })
}

/// # Safety
/// As for [`loops::interleaved_pass`] and [`Ground::after`].
unsafe fn sample_interleaved<A: loops::Access>(
    ground: &Ground,
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: handed on to the caller.
        unsafe {
            loops::interleaved_pass::<A>(ground, n);
            ground.after();
        }
        Ok(())
    })
}

/// A pass that is nothing but what stands after one: a fence, a flush of the span, a pause.
pub(crate) fn alone(after: After) -> Option<Routine> {
    match after {
        After::Nothing | After::Fence(Fence::Interrupt) => None,
        After::Fence(Fence::Sfence) => Some(sample_barrier::<Sfence>),
        After::Fence(Fence::Lfence) => Some(sample_barrier::<Lfence>),
        After::Fence(Fence::Mfence) => Some(sample_barrier::<Mfence>),
        After::Fence(Fence::Locked) => Some(sample_barrier::<Locked>),
        After::Flush | After::Pause(_) => Some(sample_after),
    }
}

/// # Safety
/// None is needed; it is one of the routines.
unsafe fn sample_barrier<B: Barrier>(_: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |_| {
        loops::barrier::<B>();
        Ok(())
    })
}

/// # Safety
/// As for [`Ground::after`].
unsafe fn sample_after(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |_| {
        // SAFETY: handed on to the caller.
        unsafe { ground.after() };
        Ok(())
    })
}

/// A pass that reads a clock.
pub(crate) fn clock(clock: Clock) -> Routine {
    /// # Safety
    /// None is needed; it is one of the routines.
    unsafe fn sample<const CLOCK: u8>(_: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
        timed(limits, first, passes, |_| {
            const RDTSC: u8 = Clock::Rdtsc as u8;
            const RDTSCP: u8 = Clock::Rdtscp as u8;
            const FENCED_RDTSC: u8 = Clock::FencedRdtsc as u8;
            const FENCED_PAIR: u8 = Clock::FencedPair as u8;
            match CLOCK {
                // SAFETY: reads a counter, as the stamps of every sample do.
                RDTSC => unsafe {
                    asm!("rdtsc", out("rax") _, out("rdx") _, options(nostack, preserves_flags));
                },
                // SAFETY: as above.
                RDTSCP => unsafe {
                    asm!("rdtscp", out("rax") _, out("rdx") _, out("rcx") _, options(nostack, preserves_flags));
                },
                FENCED_RDTSC => {
                    black_box(stamp_before());
                }
                FENCED_PAIR => {
                    black_box(stamp_before());
                    black_box(stamp_after());
                }
                _ => {
                    // The C library's `clock_gettime`, as every program calls it.
                    black_box(Instant::now());
                }
            }
            Ok(())
        })
    }
    match clock {
        Clock::Rdtsc => sample::<{ Clock::Rdtsc as u8 }>,
        Clock::Rdtscp => sample::<{ Clock::Rdtscp as u8 }>,
        Clock::FencedRdtsc => sample::<{ Clock::FencedRdtsc as u8 }>,
        Clock::FencedPair => sample::<{ Clock::FencedPair as u8 }>,
        Clock::ClockGettime => sample::<{ Clock::ClockGettime as u8 }>,
    }
}
