//! Who makes a mapping true: a table in memory, a simulated IOMMU, the operating system.

use crate::allocator::{IovaRange, Purge};
use crate::attributes::{ATOMIC, Attributes, PREFETCH, SAFE};
use crate::buffer::{Buffer, HostAddress};
use lanemark_units::{Iova, Ticks};
use std::fmt;
use std::marker::PhantomData;
use std::ops::BitOr;

/// Something that not every backend can promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// Nobody reads ahead of the device ([`Hints::NO_PREFETCH`](crate::Hints::NO_PREFETCH)).
    NoPrefetch = PREFETCH as isize,
    /// Transfers that own all of memory ([`Hints::ATOMIC`](crate::Hints::ATOMIC)).
    Atomic = ATOMIC as isize,
    /// A choice between safe and fast half-line writes ([`Hints::SAFE`](crate::Hints::SAFE)). Where there is none, `map`
    /// makes no ends of buffers safe by itself.
    HalfLine = SAFE as isize,
    /// Other attributes for a mapping that is in use.
    SetAttributes = 1 << 5,
    /// Other memory for a mapping that is in use: the device sees the old or the new, and never neither.
    Remap = 1 << 6,
    /// A part of a mapping is taken back.
    PartialUnmap = 1 << 7,
    /// Lines of memory are flushed from the CPU's caches, or purged.
    CacheCare = 1 << 8,
}

impl Ability {
    /// All of them.
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

    /// What to do without it.
    #[must_use]
    pub const fn way_out(self) -> &'static str {
        match self {
            Ability::NoPrefetch | Ability::Atomic => "leave the hint out",
            Ability::HalfLine => "leave the hint out, and lend whole lines",
            Ability::SetAttributes | Ability::Remap => "unmap it while the device is quiet, and map it anew",
            Ability::PartialUnmap => "unmap all of it, or map it in pieces",
            Ability::CacheCare => "take memory that the CPU does not cache",
        }
    }
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ability::NoPrefetch => "keeping prefetch off",
            Ability::Atomic => "atomic transfers",
            Ability::HalfLine => "a choice of safe or fast half-line writes",
            Ability::SetAttributes => "changing the attributes of a live mapping",
            Ability::Remap => "changing the memory of a live mapping",
            Ability::PartialUnmap => "unmapping a part of a mapping",
            Ability::CacheCare => "flushing and purging the CPU's caches",
        })
    }
}

/// What a backend can promise.
///
/// ```
/// use lanemark_dma::{Ability, Abilities};
/// let abilities = Abilities::NONE | Ability::Remap;
/// assert!(abilities.has(Ability::Remap) && !abilities.has(Ability::Atomic));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities(u16);

impl Abilities {
    /// None: mapping and unmapping with permissions only, as VFIO type 1 has them.
    pub const NONE: Abilities = Abilities(0);
    /// All of them.
    pub const ALL: Abilities = Abilities(0b1_1111_1100);

    /// Is this one among them?
    #[must_use]
    pub const fn has(self, ability: Ability) -> bool {
        self.0 & ability.bit() != 0
    }

    /// The first ability of those in `bits` that is not among these.
    pub(crate) fn lacks(self, bits: u16) -> Option<Ability> {
        Ability::ALL.into_iter().find(|ability| bits & !self.0 & ability.bit() != 0)
    }

    /// Has it all of these bits?
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

/// Whether a CPU's caches and a device see the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coherence {
    /// Hardware sees to it.
    Coherent,
    /// Software flushes and purges.
    BySoftware {
        /// Does the CPU fetch lines that nobody asked for? Then a purge before the transfer is not enough: it may
        /// have fetched the old bytes meanwhile.
        cpu_prefetches: bool,
    },
}

/// What is done to the lines of a CPU's caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheCare {
    /// What was changed is written to memory; the lines leave the caches.
    Flush,
    /// The lines leave the caches, and what was changed in them is lost.
    Purge,
}

/// Which translations are no longer to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// Those of these pages.
    Range {
        /// The pages.
        range: IovaRange,
        /// How, where there are two ways.
        by: Purge,
    },
    /// All of the domain.
    All,
}

/// Why a backend did not do what it was asked. It has then done nothing, unless its function says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// It cannot, and nothing is emulated.
    #[error("it cannot do that ({0})")]
    Unsupported(Ability),
    /// The operating system refused.
    #[error("{doing}: {source}")]
    Os {
        /// What was being done.
        doing: &'static str,
        /// What it said, with its number.
        source: std::io::Error,
    },
    /// Memory that cannot be kept in place.
    #[error("the page at {at:#x} cannot be pinned: {because}")]
    Pin {
        /// The page, in the address space of the backend.
        at: u64,
        /// Why not.
        because: String,
    },
    /// A page is mapped already.
    #[error("{at} translates already")]
    Overlap {
        /// The first such page.
        at: Iova,
    },
    /// A page is not mapped.
    #[error("{at} does not translate")]
    NotThere {
        /// The first such page.
        at: Iova,
    },
    /// No answer.
    #[error("no answer after {after}")]
    Timeout {
        /// How long it was waited for.
        after: Ticks,
    },
}

/// Who makes mappings true. Addresses and lengths it gets are whole pages, unless a function says otherwise.
///
/// What it cannot do answers [`BackendError::Unsupported`]; it emulates nothing.
pub trait Backend {
    /// By which addresses it is told where memory is.
    type Memory: HostAddress;

    /// Its name, for messages.
    fn name(&self) -> &str;

    /// What it can promise, always the same.
    fn abilities(&self) -> Abilities;

    /// Whether lent memory needs care, always the same.
    fn coherence(&self) -> Coherence {
        Coherence::Coherent
    }

    /// Bytes of a line of the caches: a power of two, up to a page. Always the same.
    fn line_bytes(&self) -> u64 {
        64
    }

    /// From now on `range` translates to as many bytes from `memory`.
    ///
    /// # Errors
    /// [`BackendError`], with nothing of it mapped.
    fn map(&mut self, range: IovaRange, memory: Self::Memory, attributes: Attributes) -> Result<(), BackendError>;

    /// From now on `range` translates to nothing, but where an IOTLB still has it. It is what one `map` or several with
    /// nothing between have mapped; with [`Ability::PartialUnmap`], any part of that.
    ///
    /// # Errors
    /// [`BackendError`], with all of it still mapped.
    fn unmap(&mut self, range: IovaRange) -> Result<(), BackendError>;

    /// Other attributes for pages that are mapped.
    ///
    /// # Errors
    /// [`BackendError`], with all of them as before.
    fn set_attributes(&mut self, range: IovaRange, attributes: Attributes) -> Result<(), BackendError> {
        let _ = (range, attributes);
        Err(BackendError::Unsupported(Ability::SetAttributes))
    }

    /// Other memory for pages that are mapped.
    ///
    /// # Errors
    /// [`BackendError`], with all of them as before.
    fn remap(&mut self, range: IovaRange, memory: Self::Memory, attributes: Attributes) -> Result<(), BackendError> {
        let _ = (range, memory, attributes);
        Err(BackendError::Unsupported(Ability::Remap))
    }

    /// No device uses these translations any more when it returns. How long that took, by the clock of whoever calls
    /// the domain; zero where it cannot be known.
    ///
    /// # Errors
    /// [`BackendError::Timeout`] and others: devices may still use them.
    fn invalidate(&mut self, stale: Stale) -> Result<Ticks, BackendError>;

    /// The lines that any byte of `buffer` is in are flushed or purged.
    ///
    /// # Errors
    /// [`BackendError`]; some lines may have been cared for.
    fn care(&mut self, care: CacheCare, buffer: Buffer<Self::Memory>) -> Result<(), BackendError> {
        let _ = (care, buffer);
        Err(BackendError::Unsupported(Ability::CacheCare))
    }
}

/// Programs nothing: for measuring what a strategy and the ledger cost by themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing<M>(PhantomData<M>);

impl<M> Nothing<M> {
    /// One of these.
    #[must_use]
    pub const fn new() -> Nothing<M> {
        Nothing(PhantomData)
    }
}

impl<M: HostAddress> Backend for Nothing<M> {
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
    fn invalidate(&mut self, _: Stale) -> Result<Ticks, BackendError> {
        Ok(Ticks::ZERO)
    }
}
