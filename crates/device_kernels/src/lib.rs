//! Kernels that use the memory of their card: they compute real results and advance time without events.
//!
//! The crate answers one question: how long do the kernels of a card take for a work, and are their results right? It
//! is not a part of the board and sends no TLPs: [`compute`] is one call, which `sim` turns into one event, the end
//! of the work. While kernels run, nothing else uses their memory ports, so the next request of each unit follows from
//! the previous ones. The time can have its critical path ([`Traced`]). Only the execution time is here; the cost of a
//! launch from the host belongs to the runtime, in `sim`.
//!
//! Start with [`compute`] in `work.rs`, then `pipeline.rs` (the common part of kernels), `memory_port.rs`,
//! `kernel_time.rs` and `stream_kernel.rs`.

#![forbid(unsafe_code)]

mod kernel_time;
mod memory_port;
mod pipeline;
mod spmv_kernel;
mod stream_kernel;
mod work;

pub use kernel_time::{KernelPath, KernelTime, Part, Traced};
pub use work::{Computed, compute, refused};
