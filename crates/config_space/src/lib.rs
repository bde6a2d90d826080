//! What software sees of a simulated platform: the configuration space of every function on its board.
//!
//! The crate answers one question: which bytes does an operating system read from each function of a platform? It is
//! a view of the platform only. It simulates no configuration request and keeps no state: what changes while a
//! machine runs (errors, hot-plug) is added by `sim`, which owns the events.
//!
//! Bus numbers are assigned depth first, as firmware does: root ports are on bus 0 from device 1 on, each link is a
//! bus, and the downstream ports of a switch are on a bus of their own behind its upstream port. The windows of a
//! bridge cover the BARs below it: a BAR that ends at or below 4 GiB is in the memory window, any other in the
//! prefetchable window, which is the only one that reaches there.
//!
//! The bytes are written by the rows of [`lanemark_wire::config`] that read them. What a platform does not say has its
//! value after a reset or, where Linux would have set it, the value of Linux: a port is capable of the speed and width
//! it trained at, ASPM and ACS are off, errors are reported. The simulated devices carry [`VENDOR_ID`], so that no
//! driver takes them for a real card.
//!
//! Start with [`functions`], then [`setpci`], which applies a write of configuration space to a platform.

#![forbid(unsafe_code)]

mod bar;
mod errors;
mod function;
mod registers;
mod setpci;
mod walk;

pub use bar::SimulatedBar;
pub use errors::LoggedError;
pub use function::{ConfigSpaceError, SimulatedFunction, VENDOR_ID, functions, lspci_text};
pub use setpci::{ConfigWrite, NoConfigWrite, SetpciError, WrittenCapability, setpci};
