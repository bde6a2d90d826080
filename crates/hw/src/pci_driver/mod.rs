//! The driver of a PCI function: binding to another one, such as `vfio-pci`, and back to the former one.
//!
//! ```text
//!  Binding::new     checks, reads --> steps --carry_out--> journal, then one write for each step --> check
//!  Restoration::new journal       --> steps --carry_out--> one write for each step --> check, then no journal
//! ```
//!
//! All steps are known before the first one, so that they can be printed, or carried out by hand. The journal is a file
//! below `/run/lanemark`, written before the first step: it says how the function was bound before, and outlives a process
//! that is killed.
//!
//! | file | contents |
//! | --- | --- |
//! | `binding` | [`Binding`], [`Restoration`] and their [`Step`]s |
//! | `function` | [`PciFunction`]: identity, driver and IOMMU group |
//! | `journal` | [`Journal`] |
//! | `run_mark` | [`RunMark`]: whether the binding is for one run, and its process has ended |
//! | `user` | [`User`] of a function: a file system, a network interface, the console |
//! | `users` | the search for them |
//! | `error` | errors, each with a remedy |

mod binding;
mod error;
mod function;
mod journal;
mod run_mark;
mod user;
mod users;

pub use binding::{Binding, Restoration, Step};
pub use error::DriverError;
pub use function::PciFunction;
pub use journal::Journal;
pub use run_mark::RunMark;
pub use user::User;
