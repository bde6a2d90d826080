//! Quantities, address spaces, and suggestions for mistyped names.
//!
//! Every number that travels through Lanemark says what it is: a span of time is [`Ticks`], a count
//! of bytes is written and read with its unit ([`size`]), a rate is [`Rate`], and an address says
//! whose address it is ([`address`]). Nothing here knows PCIe, reads a clock or does I/O.

#![forbid(unsafe_code)]

pub mod address;
pub mod memory_type;
pub mod rate;
pub mod size;
pub mod suggestion;
pub mod ticks;

pub use address::{BarOffset, HostPhys, HostVirt, Iova};
pub use memory_type::{MemoryType, UnknownMemoryType};
pub use rate::Rate;
pub use size::{SizeError, SizeRange, format_size, parse_size};
pub use suggestion::{closest, did_you_mean};
pub use ticks::{Ticks, TicksError};
