//! The engine: time, order and storage, without a PCIe word.
//!
//! A simulation is a set of *ports*; each port knows when its next event is due and has one entry in the
//! [`Schedule`]. What travels with a constant latency lies in a [`Wire`], which is sorted by itself. Bytes
//! lie in a [`Slab`]. There is no closure and no allocation per event.

mod schedule;
mod slab;
mod visitor;
mod wire;

pub use schedule::Schedule;
pub use slab::{Slab, Slot};
pub use visitor::Visitor;
pub use wire::Wire;
