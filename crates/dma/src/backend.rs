//! Backends, which program translations: a table in memory, a simulated IOMMU, an operating system.

use crate::allocator::{IovaRange, Purge};
use crate::attributes::{ATOMIC, Attributes, PREFETCH, SAFE};
use crate::buffer::{Buffer, HostAddress};
use lanemark_units::{Iova, Ticks};
use std::fmt;
use std::marker::PhantomData;
use std::ops::BitOr;

/// An optional capability of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// Disabling prefetch ([`Hints::NO_PREFETCH`](crate::Hints::NO_PREFETCH)).
    NoPrefetch = PREFETCH as isize,
    /// Transfers that lock all of memory ([`Hints::ATOMIC`](crate::Hints::ATOMIC)).
    Atomic = ATOMIC as isize,
    /// A choice between safe and fast half-line writes ([`Hints::SAFE`](crate::Hints::SAFE)). Without it, `map` does
    /// not make the ends of buffers safe.
    HalfLine = SAFE as isize,
    /// Changing the attributes of a live mapping.
    SetAttributes = 1 << 5,
    /// Changing the memory of a live mapping: at any time, the device accesses either the old or the new memory.
    Remap = 1 << 6,
    /// Unmapping a part of a mapping.
    PartialUnmap = 1 << 7,
    /// Flushing and purging lines of the CPU's caches.
    CacheCare = 1 << 8,
}

impl Ability {
    /// All abilities.
    pub const ALL: [Ability; 7] = [
        Ability::NoPrefetch,
        Ability::Atomic,
        Ability::HalfLine,
        Ability::SetAttributes,
        Ability::Remap,
        Ability::PartialUnmap,
        Ability::CacheCare,
    ];

    const fn bit(self) -> u16 {
        self as u16
    }

    /// An alternative for a backend without this ability.
    #[must_use]
    pub const fn way_out(self) -> &'static str {
        match self {
            Ability::NoPrefetch | Ability::Atomic => "omit the hint",
            Ability::HalfLine => "omit the hint, and map whole cache lines",
            Ability::SetAttributes | Ability::Remap => "stop the device, then unmap and map again",
            Ability::PartialUnmap => "unmap the whole mapping, or map in pieces",
            Ability::CacheCare => "use memory that the CPU does not cache",
        }
    }
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ability::NoPrefetch => "disabling prefetch",
            Ability::Atomic => "atomic transfers",
            Ability::HalfLine => "a choice of safe or fast half-line writes",
            Ability::SetAttributes => "changing the attributes of a live mapping",
            Ability::Remap => "changing the memory of a live mapping",
            Ability::PartialUnmap => "unmapping part of a mapping",
            Ability::CacheCare => "flushing and purging the CPU's caches",
        })
    }
}

/// The set of abilities of a backend.
///
/// ```
/// use lanemark_dma::{Ability, Abilities};
/// let abilities = Abilities::NONE | Ability::Remap;
/// assert!(abilities.has(Ability::Remap) && !abilities.has(Ability::Atomic));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities(u16);

impl Abilities {
    /// No ability: map and unmap with permissions only, as VFIO type 1.
    pub const NONE: Abilities = Abilities(0);
    /// All abilities.
    pub const ALL: Abilities = Abilities(0b1_1111_1100);

    /// Whether `ability` is in the set.
    #[must_use]
    pub const fn has(self, ability: Ability) -> bool {
        self.0 & ability.bit() != 0
    }

    /// The first ability of `bits` that is not in the set.
    pub(crate) fn lacks(self, bits: u16) -> Option<Ability> {
        Ability::ALL.into_iter().find(|ability| bits & !self.0 & ability.bit() != 0)
    }

    /// Whether all of `bits` are in the set.
    #[inline]
    pub(crate) const fn covers(self, bits: u16) -> bool {
        bits & !self.0 == 0
    }
}

impl BitOr<Ability> for Abilities {
    type Output = Abilities;
    fn bitor(self, ability: Ability) -> Abilities {
        Abilities(self.0 | ability.bit())
    }
}

/// Whether the CPU's caches are coherent with device accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coherence {
    /// By hardware.
    Coherent,
    /// By flushes and purges of software.
    BySoftware {
        /// Whether the CPU prefetches lines speculatively. A purge before the transfer is not enough then: the CPU may
        /// have fetched the old bytes meanwhile.
        cpu_prefetches: bool,
    },
}

/// A maintenance operation on lines of the CPU's caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheCare {
    /// Writes modified lines to memory and removes all lines from the caches.
    Flush,
    /// Removes the lines from the caches; modifications are lost.
    Purge,
}

/// Translations to be invalidated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalidated {
    /// Translations of a range of pages.
    Range {
        /// The pages.
        range: IovaRange,
        /// The method, where hardware has two.
        by: Purge,
    },
    /// All translations of the domain.
    All,
}

/// Errors of a backend. Nothing has changed then, unless the function says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The operation is not supported; nothing is emulated.
    #[error("not supported: {0}")]
    Unsupported(Ability),
    /// The operating system refused.
    #[error("{doing}: {source}")]
    Os {
        /// The operation.
        doing: &'static str,
        /// Error of the operating system, with its number.
        source: std::io::Error,
    },
    /// A page that cannot be pinned.
    #[error("the page at {at:#x} cannot be pinned: {because}")]
    Pin {
        /// The page, in the address space of the backend.
        at: u64,
        /// The reason.
        because: String,
    },
    /// A page that is mapped already.
    #[error("{at} is mapped already")]
    Overlap {
        /// The first such page.
        at: Iova,
    },
    /// A page that is not mapped.
    #[error("{at} is not mapped")]
    NotThere {
        /// The first such page.
        at: Iova,
    },
    /// No completion in time.
    #[error("no completion after {after}")]
    Timeout {
        /// Time waited.
        after: Ticks,
    },
}

/// A backend, which programs translations. Addresses and lengths are whole pages unless a function says otherwise.
///
/// An operation that it does not support returns [`BackendError::Unsupported`]; it emulates nothing.
pub trait Backend {
    /// Kind of host address that it uses.
    type Memory: HostAddress;

    /// Name, for messages.
    fn name(&self) -> &str;

    /// Its abilities, which never change.
    fn abilities(&self) -> Abilities;

    /// Coherence of the platform, which never changes.
    fn coherence(&self) -> Coherence {
        Coherence::Coherent
    }

    /// Cache line size in bytes: a power of two, at most a page. Never changes.
    fn line_bytes(&self) -> u64 {
        64
    }

    /// Maps `range` to the same number of bytes from `memory`.
    ///
    /// # Errors
    /// [`BackendError`], with nothing mapped.
    fn map(&mut self, range: IovaRange, memory: Self::Memory, attributes: Attributes) -> Result<(), BackendError>;

    /// Unmaps `range`; an IOTLB may still hold its translations. The range covers one or several adjacent `map` calls
    /// as a whole; with [`Ability::PartialUnmap`], any part of them.
    ///
    /// # Errors
    /// [`BackendError`], with all of it still mapped.
    fn unmap(&mut self, range: IovaRange) -> Result<(), BackendError>;

    /// Changes the attributes of mapped pages.
    ///
    /// # Errors
    /// [`BackendError`], with nothing changed.
    fn set_attributes(&mut self, range: IovaRange, attributes: Attributes) -> Result<(), BackendError> {
        let _ = (range, attributes);
        Err(BackendError::Unsupported(Ability::SetAttributes))
    }

    /// Changes the memory of mapped pages.
    ///
    /// # Errors
    /// [`BackendError`], with nothing changed.
    fn remap(&mut self, range: IovaRange, memory: Self::Memory, attributes: Attributes) -> Result<(), BackendError> {
        let _ = (range, memory, attributes);
        Err(BackendError::Unsupported(Ability::Remap))
    }

    /// Invalidates translations: no device uses them when this returns. Returns the duration by the clock of the
    /// domain's caller; zero if it is unknown.
    ///
    /// # Errors
    /// [`BackendError::Timeout`] and others: devices may still use the translations.
    fn invalidate(&mut self, stale: Invalidated) -> Result<Ticks, BackendError>;

    /// Flushes or purges all cache lines that overlap `buffer`.
    ///
    /// # Errors
    /// [`BackendError`]; some lines may have been flushed or purged.
    fn care(&mut self, care: CacheCare, buffer: Buffer<Self::Memory>) -> Result<(), BackendError> {
        let _ = (care, buffer);
        Err(BackendError::Unsupported(Ability::CacheCare))
    }
}

/// A backend that programs nothing: measures the cost of the strategy and the ledger alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullBackend<M>(PhantomData<M>);

impl<M> NullBackend<M> {
    /// An instance.
    #[must_use]
    pub const fn new() -> NullBackend<M> {
        NullBackend(PhantomData)
    }
}

impl<M: HostAddress> Backend for NullBackend<M> {
    type Memory = M;

    fn name(&self) -> &'static str {
        "nothing"
    }
    fn abilities(&self) -> Abilities {
        Abilities::NONE | Ability::HalfLine
    }
    fn map(&mut self, _: IovaRange, _: M, _: Attributes) -> Result<(), BackendError> {
        Ok(())
    }
    fn unmap(&mut self, _: IovaRange) -> Result<(), BackendError> {
        Ok(())
    }
    fn invalidate(&mut self, _: Invalidated) -> Result<Ticks, BackendError> {
        Ok(Ticks::ZERO)
    }
}
