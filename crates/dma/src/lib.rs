//! DMA mapping: IOVA allocation, map, unmap, remap, sync, and a ledger of live mappings.
//!
//! A device addresses memory by IOVAs. To *map* a buffer is to allocate IOVAs, to program their translations, and to
//! record both; to *unmap* it undoes that. This crate is the layer between a driver and the hardware that translates:
//! operating systems and simulated IOMMUs are [`Backend`]s of the same [`Domain`].
//!
//! ```
//! use lanemark_dma::*;
//! use lanemark_units::{HostPhys, Ticks};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = Ticks::ZERO;
//! let space = Space::of_device(32)?.without(MSI_WINDOW)?;
//! let mut domain = Domain::new("disks", Ranges::new(space)?, PageTable::new(4096), Invalidation::Strict)?;
//! let disk = domain.attach("disk 0")?;
//!
//! let buffer = Buffer::new(HostPhys(0x1234_5000), 8192);
//! domain.sync(buffer, Permission::Read, Owner::Device)?;
//! let mapping = domain.map(&mut buffer.clone(), MapRequest::new(disk, Permission::Read), now)?;
//! let for_the_device = (mapping.iova(), mapping.len_bytes());
//! // ... the device reads the buffer, and signals completion ...
//! domain.unmap(mapping, now)?;
//! domain.close(now)?;
//! # assert_eq!(for_the_device, (lanemark_units::Iova(0), 8192));
//! # Ok(())
//! # }
//! ```
//!
//! # Mapping in pieces
//!
//! One call of [`Domain::map`] maps as much as it can from the front of a buffer and leaves the rest. Where the first
//! or last cache line of a buffer holds other data too, its page becomes a separate piece with *safe* half-line writes:
//! they preserve the other half of the line. [`Domain::map_all`] runs this loop, and unmaps all pieces on an error.
//!
//! ```
//! # use lanemark_dma::*;
//! # use lanemark_units::{HostPhys, Ticks};
//! # let now = Ticks::ZERO;
//! # let ranges = Ranges::new(Space::of_device(32)?)?;
//! # let mut domain = Domain::new("nets", ranges, PageTable::new(4096), Invalidation::Strict)?;
//! # let net = domain.attach("net 0")?;
//! // From the middle of a line to the end of the third page.
//! let mut rest = Buffer::new(HostPhys(0x1010), 0x2ff0);
//! let mut pieces = Vec::new();
//! while !rest.is_empty() {
//!     pieces.push(domain.map(&mut rest, MapRequest::new(net, Permission::Write), now)?);
//! }
//! let shown: Vec<_> = pieces.iter().map(|piece| (piece.len_bytes(), piece.attributes().is_safe())).collect();
//! assert_eq!(shown, [(0xff0, true), (0x2000, false)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Many small objects
//!
//! An object smaller than a page is mapped with its whole page. [`Pool`] maps a page once and hands out objects in it:
//! 128 objects of 32 B take one entry of the IOMMU's table, not 128.
//!
//! ```
//! # use lanemark_dma::*;
//! # use lanemark_units::{HostPhys, Ticks};
//! # let now = Ticks::ZERO;
//! # let ranges = Ranges::new(Space::of_device(32)?)?;
//! # let mut domain = Domain::new("nets", ranges, PageTable::new(4096), Invalidation::Strict)?;
//! # let net = domain.attach("net 0")?;
//! let page = Buffer::new(HostPhys(0x7000), 4096);
//! let mapping = domain.map(&mut page.clone(), MapRequest::new(net, Permission::ReadWrite), now)?;
//! let mut pool = Pool::over(mapping.range(), 32)?;
//! let object = pool.take()?;
//! let for_the_host = pool.offset(object).and_then(|offset| page.address(offset));
//! assert_eq!((domain.backend().entries(), pool.free_objects()), (1, 127));
//! # assert_eq!(for_the_host, Some(HostPhys(0x7000)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # One page mapped twice
//!
//! The same memory may be mapped twice, with different attributes. The control words of a ring, which the device
//! updates by half lines, and the data in the same page then have two addresses:
//!
//! ```
//! # use lanemark_dma::*;
//! # use lanemark_units::{HostPhys, Ticks};
//! # let now = Ticks::ZERO;
//! # let ranges = Ranges::new(Space::of_device(32)?)?;
//! # let mut domain = Domain::new("nets", ranges, PageTable::new(4096), Invalidation::Strict)?;
//! # let net = domain.attach("net 0")?;
//! let page = Buffer::new(HostPhys(0x7000), 4096);
//! let request = MapRequest::new(net, Permission::ReadWrite);
//! let fast = domain.map(&mut page.clone(), request, now)?;
//! let safe = domain.map(&mut page.clone(), request.hints(Hints::SAFE), now)?;
//! let leads_to = |mapping: Mapping| domain.backend().translate(mapping.iova()).map(|page| page.memory);
//! assert_eq!(leads_to(fast), leads_to(safe));
//! assert!(safe.attributes().is_safe() && !fast.attributes().is_safe());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Access after unmap
//!
//! An IOMMU caches translations in an IOTLB. Until they are invalidated, a device can still access unmapped memory.
//! [`Invalidation::Strict`] leaves no such window, at the cost of an invalidation per `unmap`.
//! [`Invalidation::Deferred`] batches invalidations; [`Domain::windows`] reports how long the windows were. No IOVA is
//! reused before its invalidation is complete.
//!
//! ```
//! # use lanemark_dma::*;
//! # use lanemark_units::{HostPhys, Ticks};
//! # let ranges = Ranges::new(Space::of_device(32)?)?;
//! let mut domain = Domain::new("nets", ranges, PageTable::new(4096), Invalidation::DEFERRED)?;
//! # let net = domain.attach("net 0")?;
//! # let mut page = Buffer::new(HostPhys(0x7000), 4096);
//! let mapping = domain.map(&mut page, MapRequest::new(net, Permission::Write), Ticks::ZERO)?;
//! domain.unmap(mapping, Ticks::whole_ns(100))?;
//! assert!(domain.backend().reach(mapping.iova()).is_some(), "the IOTLB may still hold it");
//! domain.flush(Ticks::whole_ns(5100))?;
//! assert_eq!(domain.windows().longest, Ticks::whole_ns(5000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Double unmaps and leaks
//!
//! A [`Mapping`] is a handle that can be copied. A second unmap is an error that names three call sites: map, first
//! unmap and second unmap. [`Domain::close`] and [`Domain::detach`] report the call sites of mappings never unmapped.
//!
//! # Limits
//!
//! The crate has no hardware access, clock or thread: times are the caller's `now`. An operation that a backend does
//! not support is refused with the name of the [`Ability`], and never emulated. A domain is used by one thread at a
//! time; several cores use a domain each, over the same [`Magazine`]. A mapping is unmapped by the domain that made it.
#![forbid(unsafe_code)]

pub mod allocator;
mod attributes;
mod backend;
mod buffer;
mod domain;
mod error;
mod hints;
mod invalidation;
mod ledger;
mod mapping;
mod page_table;
mod space;
mod sync;

pub use allocator::{
    AccessOrder, Align, AllocError, AllocRequest, Buddy, Device, FreeList, IovaAllocator, IovaRange, Magazine,
    MagazineCore, Pool, PoolError, Purge, Ranges, Sequential,
};
pub use attributes::{Attributes, Permission};
pub use backend::{Abilities, Ability, Backend, BackendError, CacheCare, Coherence, Invalidated, NullBackend};
pub use buffer::{Buffer, HostAddress};
pub use domain::Domain;
pub use error::{DmaError, DmaErrorKind, Leak, Leaks};
pub use hints::{Hints, MapRequest};
pub use invalidation::{Invalidation, Windows};
pub use mapping::{CallSite, Mapping};
pub use page_table::{Counts, PageTable, Translation};
pub use space::{MSI_WINDOW, PAGE_ZERO, Region, Space, SpaceError};
pub use sync::Owner;
