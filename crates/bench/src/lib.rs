//! The questions: one file each and one catalogue row; sampling in rounds.
//!
//! A question knows which variants ([`Case`]) make sense for what a machine has, how a variant becomes a
//! [`Plan`](lanemark_machine::Plan), and what its samples mean. It never asks what time it is and never
//! names a way in.
//!
//! Start with [`CATALOGUE`] and one question file, `mmio_read_latency.rs`.

#![forbid(unsafe_code)]

mod case;
mod catalogue;
mod ceiling;
mod copy_routines;
mod core_to_core;
mod delivery;
mod dma;
mod dma_read_bandwidth;
mod dma_read_latency;
mod dma_write_bandwidth;
mod driver_call_overhead;
mod effort;
mod error;
mod fence_cost;
mod kernel_entry;
mod line_fit;
mod measured;
mod mmio_read_bandwidth;
mod mmio_read_latency;
mod mmio_write_bandwidth;
mod mmio_write_latency;
mod peer_latency;
mod peer_write_bandwidth;
mod question;
mod rounds;
mod sampling;
mod shared_link;
mod step;
mod streaming_load_bandwidth;
mod timer_cost;
mod wc_buffers;

pub use case::{Axes, Case, Through};
pub use catalogue::{CATALOGUE, question};
pub use ceiling::measured_ceiling;
pub use effort::Effort;
pub use error::BenchError;
pub use line_fit::line_fit;
pub use question::{AskItself, LeftOut, Question};
pub use sampling::{ask, ask_together, plan_for};
