//! The closed set of measurement loops, and the choice among them.
//!
//! Every combination of access, stride and barrier is compiled separately. A plan selects one before the first sample, and
//! a sample is one call through its address, made before the first timestamp. [`alone`] selects the loops without a
//! stream.

#![allow(unsafe_code)]

use super::loops::{self, After, Again, Barrier, CopyToDevice, Ground, Lfence, Locked, Memcpy, Mfence};
use super::loops::{NoBarrier, Onwards, RepMovsb, Sfence, Stride};
use super::sample::{Limits, Stamps, stamp_after, stamp_before, timed};
use lanemark_machine::{Access, Clock, Fence, Order, Verb, Width};
use std::arch::asm;
use std::hint::black_box;
use std::time::Instant;

/// Times `passes` iterations, numbered from `first` on.
///
/// # Safety
/// Same as for [`loops::pass`] with the selected access and stride.
pub(crate) type Routine = unsafe fn(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps;

/// Parameters that select a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) verb: Verb,
    pub(crate) access: Access,
    pub(crate) order: Order,
    /// Fence after every access.
    pub(crate) each: Option<Fence>,
    /// Operation after every iteration; equal to that in the operands.
    pub(crate) after: After,
}

impl Shape {
    /// Returns the loop, or `None` if there is no such instruction or user-mode fence.
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

    /// Selects by stride and barrier. A fence after each iteration is not combined with a fence after every access: beside
    /// those, a branch costs nothing.
    fn with<A: loops::Access>(self) -> Option<Routine> {
        match self.order {
            Order::Ascending => self.each::<A, Onwards>(),
            // A copy always covers the whole span.
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

    /// Selects among stores narrower than a line, without fences in between.
    fn interleaved<A: loops::Access>(self) -> Option<Routine> {
        let leaves_lines_open = const { A::STORES && A::WIDTH > 0 && A::WIDTH < 64 };
        (leaves_lines_open && self.each.is_none()).then_some(sample_interleaved::<A> as Routine)
    }
}

/// # Safety
/// Same as for [`loops::pass`].
unsafe fn sample<A: loops::Access, S: Stride, B: Barrier>(
    ground: &Ground,
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: guaranteed by the caller.
        unsafe { loops::pass::<A, S, NoBarrier>(ground, n) };
        loops::barrier::<B>();
        Ok(())
    })
}

/// # Safety
/// Same as for [`loops::pass`] and [`Ground::after`].
unsafe fn sample_then<A: loops::Access, S: Stride, Each: Barrier>(
    ground: &Ground,
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            loops::pass::<A, S, Each>(ground, n);
            ground.after();
        }
        Ok(())
    })
}

/// # Safety
/// Same as for [`loops::interleaved_pass`] and [`Ground::after`].
unsafe fn sample_interleaved<A: loops::Access>(
    ground: &Ground,
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            loops::interleaved_pass::<A>(ground, n);
            ground.after();
        }
        Ok(())
    })
}

/// Returns the loop for an operation without a stream: a fence, a flush of the span, a pause.
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
/// None required; the signature is that of all routines.
unsafe fn sample_barrier<B: Barrier>(_: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |_| {
        loops::barrier::<B>();
        Ok(())
    })
}

/// # Safety
/// Same as for [`Ground::after`].
unsafe fn sample_after(ground: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |_| {
        // SAFETY: guaranteed by the caller.
        unsafe { ground.after() };
        Ok(())
    })
}

/// Returns the loop that reads a clock.
pub(crate) fn clock(clock: Clock) -> Routine {
    /// # Safety
    /// None required; the signature is that of all routines.
    unsafe fn sample<const CLOCK: u8>(_: &Ground, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
        timed(limits, first, passes, |_| {
            const RDTSC: u8 = Clock::Rdtsc as u8;
            const RDTSCP: u8 = Clock::Rdtscp as u8;
            const FENCED_RDTSC: u8 = Clock::FencedRdtsc as u8;
            const FENCED_PAIR: u8 = Clock::FencedPair as u8;
            match CLOCK {
                // SAFETY: reads a counter, as every timestamp does.
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
                    // `clock_gettime` of the C library, as programs call it.
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
