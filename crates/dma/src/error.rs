//! Errors of a domain: which domain, at which address, and what to try.

use crate::allocator::{AllocError, IovaRange};
use crate::backend::{Ability, BackendError};
use crate::mapping::CallSite;
use std::fmt;

/// Error of a domain: a boxed [`DmaErrorKind`], so that the success path stays small.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DmaError(#[from] Box<DmaErrorKind>);

impl DmaError {
    /// The reason.
    #[must_use]
    pub fn kind(&self) -> &DmaErrorKind {
        &self.0
    }
}

impl From<DmaErrorKind> for DmaError {
    #[cold]
    fn from(kind: DmaErrorKind) -> DmaError {
        DmaError(Box::new(kind))
    }
}

/// Reasons for an error. Unless a variant says otherwise, nothing has changed: partial work is rolled back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DmaErrorKind {
    /// An empty buffer, or one beyond the last address.
    #[error("{domain}: {len_bytes} B at {at:#x} cannot be mapped: {because}")]
    Buffer {
        /// Name of the domain.
        domain: Box<str>,
        /// Address of the buffer.
        at: u64,
        /// Length of the buffer.
        len_bytes: u64,
        /// The violated rule.
        because: &'static str,
    },
    /// An operation that the backend does not support. Nothing is emulated.
    #[error("{domain}: {backend} does not support {ability}; {}", ability.way_out())]
    Unsupported {
        /// Name of the domain.
        domain: Box<str>,
        /// Name of the backend.
        backend: Box<str>,
        /// The missing ability.
        ability: Ability,
    },
    /// No IOVA can be allocated.
    #[error("{domain}: {strategy} has no IOVA for {device}: {why}")]
    NoIova {
        /// Name of the domain.
        domain: Box<str>,
        /// Name of the device.
        device: Box<str>,
        /// Name of the strategy.
        strategy: &'static str,
        /// Error of the strategy.
        why: AllocError,
    },
    /// The maximum number of mappings is live.
    #[error(
        "{domain}: {most} mappings are live, which is the maximum; unmap some, or raise the maximum (most_mappings)"
    )]
    TooManyMappings {
        /// Name of the domain.
        domain: Box<str>,
        /// Maximum number of live mappings.
        most: u32,
    },
    /// An error of the backend.
    #[error("{domain}: {backend}, {doing} {range}: {source}")]
    Backend {
        /// Name of the domain.
        domain: Box<str>,
        /// Name of the backend.
        backend: Box<str>,
        /// The operation.
        doing: &'static str,
        /// The IOVAs or the memory of the operation.
        range: IovaRange,
        /// Error of the backend.
        source: BackendError,
    },
    /// The page table is changed, but devices may still use old translations. The IOVAs stay allocated until an
    /// invalidation is complete. The next call that unmaps retries, and so does `flush`.
    #[error(
        "{domain}: {backend} has not invalidated {range}: {source}; devices may still access the old memory, so the IOVAs stay allocated: flush again, or reset the device"
    )]
    NotInvalidated {
        /// Name of the domain.
        domain: Box<str>,
        /// Name of the backend.
        backend: Box<str>,
        /// The IOVAs; the first range, where there are several.
        range: IovaRange,
        /// Error of the backend.
        source: BackendError,
    },
    /// A mapping that was unmapped before.
    #[error("{domain}: {range}, mapped at {mapped_at}, is used at {again_at}, but it was unmapped before{}", UnmapSite(*before_at))]
    UnmappedBefore {
        /// Name of the domain.
        domain: Box<str>,
        /// IOVAs of the mapping.
        range: IovaRange,
        /// Call site that mapped it.
        mapped_at: CallSite,
        /// Call site that unmapped it; `None` if its slot in the ledger was reused since.
        before_at: Option<CallSite>,
        /// Call site of the failed call.
        again_at: CallSite,
    },
    /// A mapping of another domain.
    #[error(
        "{domain}: {range} is used at {again_at}, but another domain mapped it, at {mapped_at}; pass it to that domain"
    )]
    NotMappedHere {
        /// Name of the domain that was called.
        domain: Box<str>,
        /// IOVAs of the mapping.
        range: IovaRange,
        /// Call site that mapped it.
        mapped_at: CallSite,
        /// Call site of the failed call.
        again_at: CallSite,
    },
    /// A range outside a mapping.
    #[error("{domain}: {range}, mapped at {mapped_at}: {because}")]
    Outside {
        /// Name of the domain.
        domain: Box<str>,
        /// IOVAs of the mapping.
        range: IovaRange,
        /// Call site that mapped it.
        mapped_at: CallSite,
        /// The violated rule.
        because: &'static str,
    },
    /// Mappings left at detach or close; they are unmapped now.
    #[error("{domain}: {leaks}; they are unmapped now; unmap them before detach or close")]
    StillMapped {
        /// Name of the domain.
        domain: Box<str>,
        /// The mappings, grouped by call site.
        leaks: Leaks,
    },
    /// A device that is not attached.
    #[error(
        "{domain}: device {device} is not attached: it was detached, or belongs to another domain; attach it first"
    )]
    NoDevice {
        /// Name of the domain.
        domain: Box<str>,
        /// Number of the device.
        device: u32,
    },
    /// A setting out of range.
    #[error("{domain}: {what}: {wanted}; it must be {least} to {most}")]
    Setting {
        /// Name of the domain.
        domain: Box<str>,
        /// Name of the setting.
        what: &'static str,
        /// Requested value.
        wanted: u64,
        /// Minimum.
        least: u64,
        /// Maximum.
        most: u64,
    },
}

/// The call site of an earlier unmap as the end of a sentence.
struct UnmapSite(Option<CallSite>);

impl fmt::Display for UnmapSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(site) => write!(f, " at {site}"),
            None => f.write_str(", at a call site no longer recorded"),
        }
    }
}

/// Mappings that were never unmapped, grouped by device and call site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaks(pub Vec<Leak>);

/// The mappings of one device from one call site that were never unmapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// Name of the device.
    pub device: Box<str>,
    /// Call site that mapped them.
    pub mapped_at: CallSite,
    /// Number of mappings.
    pub mappings: u32,
    /// Total number of pages.
    pub pages: u64,
}

impl fmt::Display for Leaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        for (at, leak) in self.0.iter().take(SHOWN).enumerate() {
            let Leak { device, mapped_at, mappings, pages } = leak;
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{mappings} mappings ({pages} pages) of {device} from {mapped_at} are still mapped")?;
        }
        match self.0.len().checked_sub(SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, ", and those of {more} more call sites"),
        }
    }
}
