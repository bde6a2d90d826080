//! The host of a platform: cores with their buffers and caches, the calls of drivers and runtimes, and the root complex.
//!
//! A part is a file: `Spec` holds its constants, `State` its state, and the head of the file lists its ports and
//! stall causes. Start with `core.rs`, which executes a `program.rs`, instruction by instruction. `cores.rs` owns the
//! cores. `root_complex.rs` owns `core_requests.rs`, `root_port.rs`, `rc_ingress.rs` and `peer_forwarder.rs`; the last
//! three hold requests of devices. `dma_memory.rs` is the memory that devices access.
//!
//! Uses `fabric` only. Address translation is in `iommu`, so a host without an IOMMU does not depend on it.

pub mod cache;
pub mod coherent_memory;
pub mod core;
pub mod core_requests;
pub mod cores;
pub mod dma_memory;
pub mod driver;
pub mod handshake;
pub mod instruction;
pub mod last_level_cache;
pub mod peer_forwarder;
pub mod pins;
pub mod program;
pub mod rc_ingress;
mod read_spread;
pub mod root_complex;
pub mod root_port;
pub mod runtime;
pub mod small_copies;
pub mod stored_data;
pub mod streaming_buffer;
pub mod wc_buffer;
