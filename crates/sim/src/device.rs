//! The device of a platform: an endpoint with its regions and registers, and its DMA engine.
//!
//! `endpoints.rs` owns the endpoints of a board. Start with `endpoint.rs`, then `dma_engine.rs` with its `channel.rs` and
//! `job.rs`. `atc.rs` caches translations of the IOMMU. `responder.rs` is a function that a core calls by stores.
//! `compiled_card.rs` is a card that is no model: what is behind the endpoint is compiled from its source. `kernels.rs` holds the doorbell and the completion of kernels; their execution time is in the crate
//! `device_kernels`.
//!
//! Uses `host` (what software wrote: programs, driver blocks), `iommu` and `fabric`; none of them uses it.

pub mod atc;
pub mod bells;
mod calls;
pub mod channel;
pub mod compiled_card;
pub mod data_path;
pub mod descriptor_fetcher;
pub mod dma_engine;
pub mod endpoint;
pub mod endpoints;
pub mod fifo;
pub mod interconnect;
pub mod job;
pub mod kernels;
pub mod msi_x;
pub mod region;
pub mod registers;
pub mod responder;
pub mod timer;
