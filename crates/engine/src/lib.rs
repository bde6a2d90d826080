//! Time, order and storage of an event simulation.
//!
//! The crate answers one question: which event is next? A simulation is a set of *ports*. Each port knows when
//! its next event is due and has one entry in the [`Schedule`]. Items that travel with a constant latency are
//! queued in a [`Wire`], which is a sorted FIFO. Bytes are stored in a
//! [`Slab`] while they travel and in a [`Memory`] where they arrive. There is no closure and no
//! allocation per event.
//!
//! The engine has no PCIe: it depends on `units` only, so it cannot import one. It does not run anything by
//! itself either: a board asks for the first due port, handles its event, and sets its next due time.
//!
//! Start with [`Schedule`], then [`Wire`]. [`Visitor`] lists the state of a simulation, value by value, so that
//! repetitions are found and skipped.

#![forbid(unsafe_code)]

mod memory;
mod queue;
mod schedule;
mod slab;
mod visitor;
mod wire;

pub use memory::{Memory, first_byte};
pub use queue::Queue;
pub use schedule::Schedule;
pub use slab::{Slab, Slot};
pub use visitor::Visitor;
pub use wire::Wire;
