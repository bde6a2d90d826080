//! The host of a platform: cores with their buffers and caches, the calls of drivers and runtimes, and the root complex.
//!
//! A part is a file: `Spec` never changes, `State` does, and a head says which ports it has and which waits it
//! records. Start with `core.rs`, which executes a `program.rs`, instruction by instruction. `root_complex.rs`, `root_port.rs`, `rc_ingress.rs`
//! and `peer_forwarder.rs` are the root complex: the last three hold what arrives from devices.
//!
//! Uses `fabric` only. Address translation is in `iommu`, so that a host without it has no trace of it.

pub mod cache;
pub mod coherent_memory;
pub mod core;
pub mod driver;
pub mod instruction;
pub mod last_level_cache;
pub mod peer_forwarder;
pub mod pins;
pub mod program;
pub mod rc_ingress;
pub mod root_complex;
pub mod root_port;
pub mod runtime;
pub mod stored_data;
pub mod streaming_buffer;
pub mod wc_buffer;
