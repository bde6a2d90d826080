//! The virtual platform: parts, and boards built from a platform.
//!
//! A simulation is a value: two can run side by side, and the same platform and plan give identical results. Every
//! stall of a core is charged to the constraint that became ready last.
//!
//! Start with [`SimulatedMachine`], which answers plans, or with [`Board`] and its three calls; then read
//! `fabric/link.rs` to see how a part looks and `board.rs` to see how parts meet. Parts are in `host/`, `fabric/`,
//! `iommu/` and `device/`, and none of these folders is public: a user of this crate sees boards and machines, and of
//! the parts only what a board returns.
//!
//! | path | contents |
//! | --- | --- |
//! | `host/` | cores, caches, write-combining buffers, driver, runtime, DMA memory, root complex and root ports |
//! | `fabric.rs`, `fabric/` | links, credits, DLLPs, switches, routing |
//! | `iommu.rs`, `iommu/` | IOTLB, translation table, mappings, invalidation queue, fault queue |
//! | `device/` | endpoints, registers, DMA engine and its channels, queues, ATS cache, MSI-X, kernels |
//! | `failures.rs`, `failures/` | detected errors, lost TLPs, injected faults |
//! | `observation.rs`, `observer.rs` | completions of injected reads, accepted TLPs, the trace |
//! | `events.rs`, `ports.rs` | the time, and when each port of a part is due |
//! | `critical_path.rs` | what each TLP, credit, tag and core waited for last, and the path that this makes |
//! | `topology.rs`, `board.rs`, `board/` | what is connected to what, and the routing of TLPs and events between the parts |
//! | `machine.rs`, `machine/` | a board as a [`Machine`](lanemark_machine::Machine): refused plans, runtimes, kernels, failures, tracing |
//! | `steady/` | fast-forward of repeated iterations, from the state that each part lists in its `visit` |
//! | `bus_tree.rs` | the platform as an operating system sees it while cards are masked, removed, programmed and rescanned |

#![forbid(unsafe_code)]

mod board;
mod bus_tree;
mod busy;
mod callers;
mod critical_path;
mod device;
mod error;
mod events;
mod fabric;
mod failures;
mod fast_forward;
mod header;
mod host;
mod index;
mod iommu;
mod machine;
mod noticed;
mod observation;
mod observer;
mod ports;
mod requester;
mod steady;
mod tlp;
mod topology;

pub use board::{Board, Invalidating};
pub use bus_tree::{BusTree, BusTreeError, Loaded, Reported};
pub use device::atc::Counted as AtcCounts;
pub use device::compiled_card::CompiledCard;
pub use device::dma_engine::Fetched;
pub use error::BoardError;
pub use fabric::link::Crossed;
pub use failures::{CutOff, Withheld};
pub use host::core::Seen;
pub use host::stored_data::stored_bytes;
pub use index::CardIndex;
pub use iommu::Spec as IommuSpec;
pub use iommu::fault_queue::{FaultQueue, FaultReason, TranslationFault};
pub use iommu::invalidation_queue::{Command as InvalidationCommand, QueueFull};
pub use iommu::iotlb::{Iotlb, Spec as IotlbSpec};
pub use machine::{SimulatedMachine, facts};
pub use noticed::Noticed;
pub use observation::{Completed, Crossing};
pub use requester::{FIRST_INJECTED_TAG, OUTSIDE};
pub use tlp::{AddressType, Flaw, Tlp, TlpKind, span};
