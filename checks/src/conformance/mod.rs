//! What every [`Machine`] promises, as one body per promise that any machine can be held against.
//!
//! | file | holds |
//! | --- | --- |
//! | `promise` | the list, [`PROMISES`], and how a machine is held against it |
//! | `bodies` | a body each |
//! | `plans` | plans made from what a machine says of itself |
//! | `subjects` | machines to hold against them: simulation, formulas, memory of this machine |
//!
//! `checks/tests/conformance` runs them here and shows that each catches a machine that breaks it; the program
//! `promises` runs them in the test guest too.

mod bodies;
mod plans;
mod promise;
mod subjects;

pub use promise::{PROMISES, Promise, Verdict, held_against};
pub use subjects::{Formulas, Host, Simulation, Storage};

use lanemark_machine::Machine;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes at the start of a storage region that are looked at from beside.
pub const WATCHED_BYTES: usize = 16 << 10;

/// A machine that can be opened again and again.
pub trait Subject {
    /// How it is called in messages.
    fn name(&self) -> String;

    /// Opens it; `interrupted` ends its runs.
    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened>;

    /// Whether it takes samples at all; formulas give one figure however many are wanted.
    fn takes_samples(&self) -> bool {
        true
    }
}

/// A machine, and what can be seen of it from beside.
pub trait Opened {
    /// The machine.
    fn machine(&mut self) -> &mut dyn Machine;

    /// The first [`WATCHED_BYTES`] of its largest storage region, read in another way than by a plan; `None` if there is
    /// no other way.
    fn bytes(&mut self) -> Option<Vec<u8>>;
}
