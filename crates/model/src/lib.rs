//! Formulas for latency and bandwidth, with their range of validity and the binding limit, and ceilings of transfers.
//!
//! A formula answers the same [`Plan`](lanemark_machine::Plan) as a machine, from the same platform. It shares no
//! code with the simulator, so that agreement of the two is meaningful.
//!
//! Start with [`predict`] and [`ceiling`]; [`Compiled`] predicts one plan for arrays of numbers. The formulas are in `store.rs`, `load.rs`, `transfer.rs`, `relay.rs`,
//! `loaded.rs`, `buffer_handoff.rs`, `handshake.rs`, `kernel.rs`, `runtime.rs` and `dma_call.rs`. They are composed of terms in
//! `costs.rs`, `path.rs` and `transfer/pools.rs`.

#![forbid(unsafe_code)]

mod bound;
mod bounds;
mod buffer_handoff;
mod ceiling;
mod ceilings;
mod compiled;
mod costs;
mod dma;
mod dma_call;
mod engine_timing;
mod handshake;
mod interval;
mod kernel;
mod load;
mod loaded;
mod machine;
mod number;
mod operation;
mod path;
mod predict;
mod prediction;
mod program;
mod queue;
mod relay;
mod runtime;
mod small_copies;
mod store;
mod summary;
mod symbol;
mod transfer;
mod vector;

pub use bound::Bound;
pub use ceiling::Ceiling;
pub use ceilings::{
    ceiling, copy_ceiling, link_ceiling, rate_ceiling, relay_ceiling, shared_ceiling, transfer_ceiling,
};
pub use compiled::{CompileError, Compiled, Predictions};
pub use dma::{completion_ceiling, dma_write_ceiling, outstanding_reads};
pub use kernel::compute_ceiling;
pub use machine::FormulaMachine;
pub use predict::predict;
pub use prediction::Prediction;
