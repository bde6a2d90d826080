//! Quantities, address spaces, and suggestions for mistyped names.
//!
//! Quantities carry their meaning in the type: a span of time is [`Ticks`], a rate is [`Rate`], and an address belongs
//! to an address space ([`address`]). Byte counts are parsed and printed with a unit ([`size`]), and
//! figures are printed with three digits ([`figures`]). This crate contains no PCIe, reads no clock and does no I/O.

#![forbid(unsafe_code)]

pub mod address;
pub mod figures;
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
