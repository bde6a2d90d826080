//! The virtual platform: parts, and boards built from a platform.
//!
//! A simulation is a value: two live side by side, and the same platform and plan give the same result to
//! the byte. Every wait of a core is charged to the constraint that became ready last.
//!
//! Start with [`SimulatedMachine`], which answers plans, or with [`Board`] and its three calls; then read
//! `part/link.rs` to see how a part looks and `board.rs` to see how parts meet.

#![forbid(unsafe_code)]

mod board;
mod bus_tree;
mod callers;
mod header;
mod machine;
mod noticed;
mod observer;
pub mod part;
mod ports;
mod steady;
mod tlp;
mod topology;

pub use board::{Board, BoardError, Crossing, CutOff, Invalidating, OUTSIDE, Withheld};
pub use bus_tree::{BusTree, BusTreeError, Loaded, Reported};
pub use machine::SimulatedMachine;
pub use noticed::Noticed;
pub use tlp::{AddressType, Flaw, Tlp, TlpKind, span};
