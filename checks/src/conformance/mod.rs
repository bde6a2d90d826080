//! What every [`Machine`] promises, as one body per promise that any machine can be held against.
//!
//! | file | holds |
//! | --- | --- |
//! | `promise` | the bodies and the list of them, [`PROMISES`] |
//! | `plans` | plans made from what a machine says of itself |
//! | `subjects` | machines to hold against them: simulation, formulas, memory of this machine |
//!
//! `checks/tests/conformance` runs them here and shows that each catches a machine that breaks it; the program
//! `promises` runs them in the test guest too.

mod plans;
mod promise;
mod subjects;

pub use promise::{PROMISES, Promise};
pub use subjects::{Formulas, Host, Simulation};

use lanemark_machine::Machine;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A machine that can be opened again and again, and what can be seen of it from beside.
pub trait Subject {
    /// What is opened.
    type Opened: Machine;

    /// How it is called in messages.
    fn name(&self) -> String;

    /// Opens it; `interrupted` ends its runs.
    fn open(&self, interrupted: Arc<AtomicBool>) -> Self::Opened;

    /// The bytes of its storage region, read by another way than its plans; `None` if there is none.
    fn bytes(&self, machine: &mut Self::Opened) -> Option<Vec<u8>>;
}
