//! Real ways in: what runs a plan on hardware instead of in a simulator.
//!
//! One folder a way in, each a [`Machine`](lanemark_machine::Machine):
//!
//! - [`host_memory`]: the ordinary memory of this machine, which everybody has and which no plan can break. Start with
//!   [`HostMemory::open`].
//! - [`linux_sysfs`]: the BARs of a PCI device through the files that Linux offers for them. It is also a small library:
//!   start with `linux_sysfs::Card::attach`.
//!
//! - [`opencl`]: devices behind an OpenCL runtime. Start with `opencl::OpenClMachine::open`.
//! - [`sycl`]: the same behind a SYCL one. Start with `sycl::SyclMachine::open`.
//!
//! Beside them [`DeviceCopy`], a copy for programs, which picks its instruction by measurement.
//!
//! This is the only room with hand-written `unsafe`. Nothing here prints.

pub mod copy_to_device;
mod ending;
pub mod host_memory;
mod interpreter;
mod kernel_source;
pub mod linux_sysfs;
mod no_host_memory;
pub mod opencl;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod runtime_common;
pub mod sycl;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod watchdog;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86;

pub use copy_to_device::{Destination, DeviceCopy};
pub use ending::end_at_once;
pub use host_memory::HostMemory;
pub use interpreter::interpreter;
pub use kernel_source::every_kernel;
pub use no_host_memory::NoHostMemory;
