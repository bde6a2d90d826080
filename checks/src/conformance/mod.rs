//! Conformance tests of the [`Machine`] trait, one body per promise, for any machine.
//!
//! | file | holds |
//! | --- | --- |
//! | `promise` | the list, [`PROMISES`], and running it on a machine |
//! | `bodies` | a test body per promise |
//! | `plans` | plans built from a machine's facts |
//! | `dut` | files that name a real device, for `make conform` |
//! | `subjects` | machines under test: simulation, formulas, memory of this machine, real devices |
//!
//! `checks/tests/conformance` runs them, and shows that each detects a machine that breaks its promise. The program `promises`
//! runs them in the test guest.

mod bodies;
mod dut;
mod plans;
mod promise;
mod subjects;

pub use dut::Dut;
pub use promise::{PROMISES, Promise, Verdict, held_against};
pub use subjects::{
    CardEngine, Drive, DriveBehindVfio, Formulas, Host, Simulation, Storage, StorageBehindModule, StorageBehindVfio,
    Xdma,
};

use lanemark_machine::Machine;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes at the start of a storage region that are read through a separate path.
pub const WATCHED_BYTES: usize = 16 << 10;

/// A machine under test, which can be opened repeatedly.
pub trait Subject {
    /// Name in messages.
    fn name(&self) -> String;

    /// Opens the machine; `interrupted` ends its runs.
    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened>;

    /// Whether the machine takes samples; formulas give one figure for any number.
    fn takes_samples(&self) -> bool {
        true
    }
}

/// An opened machine, with a separate path to its bytes.
pub trait Opened {
    /// The machine.
    fn machine(&mut self) -> &mut dyn Machine;

    /// The first [`WATCHED_BYTES`] of its largest storage region, read without a plan; `None` if that is impossible.
    fn bytes(&mut self) -> Option<Vec<u8>>;
}
