//! Kernels on a card's own memory: they compute their results, and keep time without events.
//!
//! The crate answers one question: how long do the kernels of a card take for a work, and are their results right? It
//! is not a part of the board and sends nothing: [`compute`] is one call, and to `sim` it is one event, its end. While
//! kernels run, nothing else uses their memory ports, so the next request of each unit follows from those before it.
//! Only the kernel's time is here; the cost of starting it from a host is the runtime's, in `sim`.
//!
//! Start with [`compute`] in `work.rs`, then `pipeline.rs` (what kernels have in common), `memory_port.rs` and
//! `stream_kernel.rs`.

#![forbid(unsafe_code)]

mod memory_port;
mod pipeline;
mod spmv_kernel;
mod stream_kernel;
mod work;

pub use work::{Computed, compute, refused};
