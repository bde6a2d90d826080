//! The parts: each a file of Spec, State, ports and handler.

pub mod cache;
pub mod channel;
pub mod core;
pub mod credit;
pub mod data_path;
pub mod descriptor_fetcher;
pub mod dllp;
pub mod dma_engine;
pub mod driver;
pub mod endpoint;
pub mod fifo;
pub mod input;
pub mod interconnect;
pub mod job;
pub mod link;
pub mod memory;
pub mod pace;
pub mod peer_forwarder;
pub mod program;
pub mod root_complex;
pub mod root_port;
pub mod route;
pub mod streaming_buffer;
pub mod switch;
pub mod wc_buffer;
