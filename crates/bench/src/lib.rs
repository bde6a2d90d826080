//! The catalogue of questions, one file per question, and sampling in rounds.
//!
//! A question defines its variants ([`Case`]) for a machine, the [`Plan`](lanemark_machine::Plan)
//! of a variant, and the meaning of its samples. It never reads a clock and never names a backend.
//!
//! Start with [`CATALOGUE`] and one question file, `mmio_read_latency.rs`.

#![forbid(unsafe_code)]

mod accessor_overhead;
mod again;
mod buffer_count;
mod cache_residency;
mod caller;
mod case;
mod catalogue;
mod ceiling;
mod coherence_cost;
mod computation;
mod copy_routines;
mod core_to_core;
mod delivery;
mod descriptor_overhead;
mod dma;
mod dma_call;
mod dma_map_cost;
mod dma_or_mmio;
mod dma_read_bandwidth;
mod dma_read_latency;
mod dma_read_write_mix;
mod dma_write_bandwidth;
mod dma_write_read_latency;
mod doorbell_to_completion;
mod driver_call_overhead;
mod effort;
mod error;
mod fence_cost;
mod interrupt_latency;
mod iotlb_reach;
mod iotlb_thrash;
mod kernel_case;
mod launch_latency;
mod line_fit;
mod loaded_latency;
mod many_small_few_large;
mod measured;
mod mmio_handshake;
mod mmio_read_bandwidth;
mod mmio_read_latency;
mod mmio_write_bandwidth;
mod mmio_write_latency;
mod needs;
mod p2p_latency;
mod p2p_read_bandwidth;
mod p2p_write_bandwidth;
mod partial_line_writes;
mod question;
mod relay_bandwidth;
mod rounds;
mod runtime_copy;
#[cfg(test)]
mod runtime_fixture;
mod sampling;
mod series;
mod shared_link;
mod small_copies;
mod spmv;
mod step;
mod stream_copy;
mod streaming_load_bandwidth;
mod syscall_latency;
mod timer_cost;
mod traced;
mod wc_buffers;

pub use again::case_again;
pub use caller::{Caller, Cores};
pub use case::{Axes, Case};
pub use catalogue::{CATALOGUE, question};
pub use ceiling::measured_ceiling;
pub use computation::{Computation, Matrix};
pub use effort::Effort;
pub use error::BenchError;
pub use line_fit::line_fit;
pub use question::{LeftOut, MeasureFn, Question, Watch, has_formula};
pub use sampling::{ask, measure_all, plan_for};
pub use traced::plan_to_trace;
