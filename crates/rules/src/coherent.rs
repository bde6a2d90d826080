//! Coherent I/O: a board without PCIe, with memory mapped by `lanemark-dma`.

pub(crate) mod adapter_tlb;
pub(crate) mod cache_coherence;
pub(crate) mod half_lines;
pub(crate) mod hints;
mod mapped_board;
pub(crate) mod mapping;
pub(crate) mod packed_objects;
mod server;
pub(crate) mod server_picture;
pub(crate) mod stream_pictures;
mod streams;
