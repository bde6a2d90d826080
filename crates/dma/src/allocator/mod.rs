//! IOVA allocators: strategies behind one trait.
//!
//! | strategy | grants | used for |
//! | --- | --- | --- |
//! | [`Ranges`] | ranges of 8 pages, lowest free one first | disks: buffers of up to 32 KiB mapped and unmapped in any order |
//! | [`Sequential`] | pages of ranges that a device keeps | networks: many buffers that a device uses in turn |
//! | [`Pool`] | objects in memory that is mapped already | objects smaller than a page; backends that map in microseconds |
//! | [`MagazineCore`] | blocks that the same core freed last | many cores |
//! | [`Buddy`] | naturally aligned blocks of 2^n pages | large pages; behind the magazines |
//! | [`FreeList`] | the lowest hole that fits | reference in tests |

mod bitmap;
mod buddy;
mod free_list;
mod iova_allocator;
mod magazine;
mod pool;
mod ranges;
mod sequential;

pub use buddy::Buddy;
pub use free_list::FreeList;
pub use iova_allocator::{AccessOrder, Align, AllocError, AllocRequest, Device, IovaAllocator, IovaRange, Purge};
pub use magazine::{Magazine, MagazineCore};
pub use pool::{Pool, PoolError};
pub use ranges::Ranges;
pub use sequential::Sequential;

use iova_allocator::Pages;
