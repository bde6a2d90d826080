//! The closed set of loops, and the choice among them.
//!
//! Every combination of access, stride, barrier after each access and barrier after each pass is compiled
//! on its own; a plan picks one before the first sample, and a sample is one call through its address,
//! made before the first timestamp.

#![allow(unsafe_code)]

use super::loops::{self, Again, Barrier, Ground, Lfence, Locked, Memcpy, Mfence, NoBarrier, Onwards, RepMovsb};
use super::loops::{Sfence, Stride};
use super::sample::{Limits, Stamps, timed};
use lanemark_machine::{Access, Fence, Order, Verb, Width};

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
    /// After every pass.
    pub(crate) after: Option<Fence>,
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
            (_, Access::NonTemporal(_) | Access::Movdiri(_) | Access::Movdir64b) => None,
        }
    }

    fn with<A: loops::Access>(self) -> Option<Routine> {
        match self.order {
            Order::Ascending => self.each::<A, Onwards>(),
            Order::SameAddress { .. } => self.each::<A, Again>(),
        }
    }

    fn each<A: loops::Access, S: Stride>(self) -> Option<Routine> {
        match self.each {
            None => self.after::<A, S, NoBarrier>(),
            Some(Fence::Sfence) => self.after::<A, S, Sfence>(),
            Some(Fence::Lfence) => self.after::<A, S, Lfence>(),
            Some(Fence::Mfence) => self.after::<A, S, Mfence>(),
            Some(Fence::Locked) => self.after::<A, S, Locked>(),
            Some(Fence::Interrupt) => None,
        }
    }

    fn after<A: loops::Access, S: Stride, Each: Barrier>(self) -> Option<Routine> {
        match self.after {
            None => Some(sample::<A, S, Each, NoBarrier>),
            Some(Fence::Sfence) => Some(sample::<A, S, Each, Sfence>),
            Some(Fence::Lfence) => Some(sample::<A, S, Each, Lfence>),
            Some(Fence::Mfence) => Some(sample::<A, S, Each, Mfence>),
            Some(Fence::Locked) => Some(sample::<A, S, Each, Locked>),
            Some(Fence::Interrupt) => None,
        }
    }
}

/// # Safety
/// As for [`loops::pass`].
unsafe fn sample<A: loops::Access, S: Stride, Each: Barrier, After: Barrier>(
    ground: &Ground,
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
) -> Stamps {
    timed(limits, first, passes, |n| {
        // SAFETY: handed on to the caller.
        unsafe { loops::pass::<A, S, Each, After>(ground, n) };
        Ok(())
    })
}
