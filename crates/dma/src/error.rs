//! What can go wrong: who, at which address, and what to try.

use crate::allocator::{AllocError, IovaRange};
use crate::backend::{Ability, BackendError};
use crate::mapping::CallSite;
use std::fmt;

/// Why a domain did not do what it was asked: a pointer to [`Trouble`], so that a call that succeeds pays nothing for it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DmaError(#[from] Box<Trouble>);

impl DmaError {
    /// What it was.
    #[must_use]
    pub fn trouble(&self) -> &Trouble {
        &self.0
    }
}

impl From<Trouble> for DmaError {
    #[cold]
    fn from(trouble: Trouble) -> DmaError {
        DmaError(Box::new(trouble))
    }
}

/// What can be wrong. Unless a variant says otherwise, nothing has changed: what was mapped or taken on the way has
/// been given back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// No bytes, or bytes beyond the last address.
    #[error("{domain}: {len_bytes} B at {at:#x} cannot be lent: {because}")]
    Buffer {
        /// Of whom.
        domain: Box<str>,
        /// Where the buffer starts.
        at: u64,
        /// How long it is.
        len_bytes: u64,
        /// Why not.
        because: &'static str,
    },
    /// The backend cannot promise it, and nothing is emulated.
    #[error("{domain}: {backend} is not capable of {ability}; {}", ability.way_out())]
    Unsupported {
        /// Of whom.
        domain: Box<str>,
        /// Which backend.
        backend: Box<str>,
        /// What it cannot do.
        ability: Ability,
    },
    /// The strategy has no IOVA for it.
    #[error("{domain}: {strategy} has no IOVA for {device}: {why}")]
    NoIova {
        /// Of whom.
        domain: Box<str>,
        /// For whom.
        device: Box<str>,
        /// Which strategy.
        strategy: &'static str,
        /// Why not.
        why: AllocError,
    },
    /// More mappings than the domain keeps track of.
    #[error(
        "{domain}: {most} mappings are live, and no more are kept track of; unmap some, or allow more (most_mappings)"
    )]
    TooManyMappings {
        /// Of whom.
        domain: Box<str>,
        /// How many it may be.
        most: u32,
    },
    /// The backend failed.
    #[error("{domain}: {backend}, {doing} {range}: {source}")]
    Backend {
        /// Of whom.
        domain: Box<str>,
        /// Which backend.
        backend: Box<str>,
        /// What it was to do.
        doing: &'static str,
        /// With which IOVAs, or with which memory.
        range: IovaRange,
        /// Why not.
        source: BackendError,
    },
    /// What was asked for is done in the table, but devices may still reach what was there before: the IOVA is kept back
    /// until an invalidation is complete. The next call that unmaps tries again, and so does `flush`.
    #[error(
        "{domain}: {backend} has not invalidated {range}: {source}; devices may still reach what was there, so it is kept back: flush again, or reset the device"
    )]
    NotInvalidated {
        /// Of whom.
        domain: Box<str>,
        /// Which backend.
        backend: Box<str>,
        /// Which IOVAs; the first, where there are several.
        range: IovaRange,
        /// Why not.
        source: BackendError,
    },
    /// It was unmapped before.
    #[error("{domain}: {range}, mapped at {mapped_at}, is unmapped again at {again_at}; it was unmapped before{}", Before(*before_at))]
    UnmappedBefore {
        /// Of whom.
        domain: Box<str>,
        /// Which mapping.
        range: IovaRange,
        /// Where it was mapped.
        mapped_at: CallSite,
        /// Where it was unmapped; `None` where its place in the ledger has been used again since.
        before_at: Option<CallSite>,
        /// Where it was to be unmapped, or changed, now.
        again_at: CallSite,
    },
    /// It was mapped by another domain.
    #[error(
        "{domain}: {range} is given back at {again_at}, but another domain mapped it, at {mapped_at}; give it to that one"
    )]
    NotMappedHere {
        /// Of whom.
        domain: Box<str>,
        /// Which mapping.
        range: IovaRange,
        /// Where it was mapped.
        mapped_at: CallSite,
        /// Where it was given here.
        again_at: CallSite,
    },
    /// Something outside a mapping.
    #[error("{domain}: {range}, mapped at {mapped_at}: {because}")]
    Outside {
        /// Of whom.
        domain: Box<str>,
        /// Which mapping.
        range: IovaRange,
        /// Where it was mapped.
        mapped_at: CallSite,
        /// What lies outside.
        because: &'static str,
    },
    /// Mappings of a device that is gone: they have been unmapped now.
    #[error("{domain}: {leaks}; they are unmapped now, but somebody forgot to")]
    StillMapped {
        /// Of whom.
        domain: Box<str>,
        /// Who mapped them.
        leaks: Leaks,
    },
    /// No such device, or no more.
    #[error("{domain}: there is no device {device} (it was detached, or is another domain's); attach it first")]
    NoDevice {
        /// Of whom.
        domain: Box<str>,
        /// Its number.
        device: u32,
    },
    /// A domain that cannot be.
    #[error("{domain}: {what} of {wanted}: it must be {least} to {most}")]
    Setting {
        /// Of whom.
        domain: Box<str>,
        /// Of what.
        what: &'static str,
        /// How much.
        wanted: u64,
        /// How much it may be at least.
        least: u64,
        /// And at most.
        most: u64,
    },
}

/// Where it was unmapped before, if that is known.
struct Before(Option<CallSite>);

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(site) => write!(f, " at {site}"),
            None => f.write_str(", by whom is no longer known"),
        }
    }
}

/// Mappings that nobody unmapped, by who mapped them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaks(pub Vec<Leak>);

/// What one line of a program mapped for one device and nobody unmapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The device.
    pub device: Box<str>,
    /// The line.
    pub mapped_at: CallSite,
    /// How many mappings.
    pub mappings: u32,
    /// How many pages in all of them.
    pub pages: u64,
}

impl fmt::Display for Leaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        for (at, leak) in self.0.iter().take(SHOWN).enumerate() {
            let Leak { device, mapped_at, mappings, pages } = leak;
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{mappings} mappings ({pages} pages) of {device} from {mapped_at} are alive")?;
        }
        match self.0.len().checked_sub(SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, ", and those of {more} more lines"),
        }
    }
}
