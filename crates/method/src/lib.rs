//! The vocabulary of methods: how bytes are moved, and other timed operations.
//!
//! A [`Method`] is data, with every parameter in a typed field. Plans of the crate `machine` and
//! answers of the crate `record` share the types of this crate: instructions ([`Access`],
//! [`Fence`]), DMA flows ([`Flow`], [`Reach`]), driver calls ([`Share`], [`Descriptors`],
//! [`Completion`]), runtimes ([`HostWait`], [`Allocation`], [`Arguments`], [`LaunchBy`], [`CopyBy`]), shared buffers
//! ([`Discipline`]) and mappings ([`Means`]).

#![forbid(unsafe_code)]

mod access;
mod allocation;
mod clock;
mod columns;
mod compute;
mod copy_by;
mod core_access;
mod discipline;
mod dma_call;
mod flow;
mod kernel_call;
mod kind;
mod label;
mod launch;
mod line_source;
mod means;
mod method;
mod name;
mod reach;
mod verb;

pub use access::{Access, Fence, Width};
pub use allocation::Allocation;
pub use clock::Clock;
pub use compute::ComputeWork;
pub use copy_by::CopyBy;
pub use core_access::{AccessPath, CoreAccess};
pub use discipline::{Discipline, Flush};
pub use dma_call::{Completion, Descriptors, Share};
pub use flow::{Flow, Peer};
pub use kernel_call::KernelCall;
pub use kind::MethodKind;
pub use launch::{Arguments, HostWait, LaunchBy};
pub use line_source::LineSource;
pub use means::{Invalidation, KernelMemory, KernelPart, Means, Strategy, Table};
pub use method::{CopyDirection, Lines, Method, WakeBy};
pub use name::UnknownName;
pub use reach::{CacheState, Reach, Socket};
pub use verb::Verb;
