//! How memory is lent to a device.
//!
//! A device names memory by IOVAs. Whoever gives it a buffer *maps* it: finds free IOVAs, has somebody translate them,
//! and remembers that it did. Whoever takes the buffer back *unmaps* it. This crate is what stands between a driver
//! and whoever translates: real operating systems and simulated IOMMUs are [`Backend`]s of the same [`Domain`].
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
//! domain.sync(buffer, Permission::Read, Turn::Device)?;
//! let mapping = domain.map(&mut buffer.clone(), MapRequest::new(disk, Permission::Read), now)?;
//! let for_the_device = (mapping.iova(), mapping.len_bytes());
//! // ... the device reads it, and says that it is done ...
//! domain.unmap(mapping, now)?;
//! domain.close(now)?;
//! # assert_eq!(for_the_device, (lanemark_units::Iova(0), 8192));
//! # Ok(())
//! # }
//! ```
//!
//! # In a loop
//!
//! One call of [`Domain::map`] maps what it can from the front of a buffer and leaves the rest. A buffer that shares its
//! first or last line of the CPU's caches with something else gets pieces of its own there, whose half-line writes are
//! *safe*: they keep what is not the device's. [`Domain::map_all`] is this loop, and takes pieces back on an error.
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
//! # Many small things
//!
//! What is smaller than a page is mapped with its page. [`Pool`] maps once and hands out objects: 128 of 32 B take one
//! entry of the IOMMU's table, not 128.
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
//! # One page, two faces
//!
//! The same memory may be mapped twice. A ring's control words, which the device changes by half lines, and its data
//! in the same page are then reached by two addresses:
//!
//! ```
//! # use lanemark_dma::*;
//! # use lanemark_units::{HostPhys, Ticks};
//! # let now = Ticks::ZERO;
//! # let ranges = Ranges::new(Space::of_device(32)?)?;
//! # let mut domain = Domain::new("nets", ranges, PageTable::new(4096), Invalidation::Strict)?;
//! # let net = domain.attach("net 0")?;
//! let page = Buffer::new(HostPhys(0x7000), 4096);
//! let lend = MapRequest::new(net, Permission::ReadWrite);
//! let fast = domain.map(&mut page.clone(), lend, now)?;
//! let safe = domain.map(&mut page.clone(), lend.hints(Hints::SAFE), now)?;
//! let leads_to = |mapping: Mapping| domain.backend().translate(mapping.iova()).map(|page| page.memory);
//! assert_eq!(leads_to(fast), leads_to(safe));
//! assert!(safe.attributes().is_safe() && !fast.attributes().is_safe());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is unmapped and still in reach
//!
//! An IOMMU keeps translations in an IOTLB. Until they are invalidated, a device can still reach what was unmapped.
//! [`Invalidation::Strict`] leaves no such window and pays for it with every `unmap`; [`Invalidation::Deferred`]
//! collects, and [`Domain::windows`] says for how long devices were trusted. No IOVA is handed out twice before.
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
//! assert!(domain.backend().reach(mapping.iova()).is_some(), "an IOTLB may have it");
//! domain.flush(Ticks::whole_ns(5100))?;
//! assert_eq!(domain.windows().longest, Ticks::whole_ns(5000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Who forgot it
//!
//! A [`Mapping`] is a receipt that may be copied. Unmapping it twice is an error that names who mapped it, who unmapped
//! it and who tried again; [`Domain::close`] and [`Domain::detach`] name who mapped what nobody unmapped.
//!
//! # What is not here
//!
//! No hardware, no clock, no thread: times are the caller's `now`. What a backend cannot do is refused by name
//! ([`Ability`]) and never emulated. A domain has one thread at a time; several cores take a domain each, over the
//! same [`Magazine`], and a mapping goes back to the domain that made it.
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
    AccessOrder, Align, AllocError, Ask, Buddy, Device, FreeList, IovaAllocator, IovaRange, Magazine, MagazineCore,
    Pool, PoolError, Purge, Ranges, Sequential,
};
pub use attributes::{Attributes, Permission};
pub use backend::{Abilities, Ability, Backend, BackendError, CacheCare, Coherence, Nothing, Stale};
pub use buffer::{Buffer, HostAddress};
pub use domain::Domain;
pub use error::{DmaError, Leak, Leaks, Trouble};
pub use hints::{Hints, MapRequest};
pub use invalidation::{Invalidation, Windows};
pub use mapping::{CallSite, Mapping};
pub use page_table::{Counts, PageTable, Translation};
pub use space::{MSI_WINDOW, PAGE_ZERO, Region, Space, SpaceError};
pub use sync::Turn;
