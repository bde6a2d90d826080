//! A machine with a coherent I/O adapter: processors, memory and the adapter share a bus.
//!
//! The crate answers one question: which bytes does each processor and device see, and when, if an I/O adapter takes
//! part in cache coherence? It does not depend on PCIe or platform files, unlike the boards of `sim`. Bytes are
//! simulated, so stale data shows in what is read.
//!
//! ```text
//!  processor, cache --+
//!  processor, cache --+== processor bus ==+-- memory, with the I/O page directory in it
//!                                         +-- I/O adapter == I/O bus == devices
//! ```
//!
//! [`CoherentBoard::ask`], [`CoherentBoard::run_until`] and [`CoherentBoard::next_at`] drive a board. Single calls
//! issue an access and wait for it: [`CoherentBoard::load`], [`CoherentBoard::device_write`] and the like;
//! [`CoherentBoard::load_uncached`] bypasses the caches.
//! A board is also a [`Backend`](lanemark_dma::Backend) of [`Domain`](lanemark_dma::Domain), which programs the page
//! directory by stores of a processor (`board/mapping.rs`).
//!
//! Start with [`Spec::coherent`] and [`CoherentBoard`]; then read `bus.rs` and `io_adapter.rs`.
//!
//! ```
//! use lanemark_coherent::{CoherentBoard, Spec};
//! use lanemark_dma::{Buffer, Domain, Invalidation, MapRequest, Permission, Ranges, Space};
//! use lanemark_units::{HostVirt, Ticks};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let board = CoherentBoard::new(Spec::coherent())?;
//! let ranges = Ranges::new(Space::of_device(32)?)?.over_entries(256)?;
//! let mut domain = Domain::new("disks", ranges, board, Invalidation::Strict)?;
//! let disk = domain.attach("disk 0")?;
//!
//! domain.backend_mut().store(1, HostVirt(0x5000), b"a line of processor 1, not written")?;
//! let buffer = Buffer::new(HostVirt(0x5000), 64);
//! let mapping = domain.map(&mut buffer.clone(), MapRequest::new(disk, Permission::Read), Ticks::ZERO)?;
//! let mut seen = [0; 64];
//! domain.backend_mut().device_read(0, mapping.iova(), &mut seen)?;
//! assert_eq!(&seen[..34], b"a line of processor 1, not written");
//! domain.unmap(mapping, Ticks::ZERO)?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod adapter_tlb;
mod board;
mod bus;
mod io_adapter;
mod processor;
mod processor_cache;

pub use adapter_tlb::{AdapterTlb, PAGE_BYTES, PageEntry, Spec as AdapterTlbSpec, TlbCommand};
pub use board::{Answer, CoherentBoard, Counts, NoAccess, NoBoard, Request, RequestId, Spec};
pub use bus::{Bus, Line, LineBytes, Spec as BusSpec, TransactionKind};
pub use io_adapter::{Counts as AdapterCounts, Fault, Forbidden, IoAdapter, Spec as IoAdapterSpec};
pub use processor::{Processor, Spec as ProcessorSpec};
pub use processor_cache::{Indexed, LineState, ProcessorCache, Spec as ProcessorCacheSpec};
