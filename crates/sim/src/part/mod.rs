//! The parts: each a file of Spec, State, ports and handler.

pub mod cache;
pub mod core;
pub mod endpoint;
pub mod link;
pub mod memory;
pub mod program;
pub mod root_complex;
pub mod streaming_buffer;
pub mod wc_buffer;
