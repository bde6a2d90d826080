//! Devices of a SYCL runtime: the questions of the OpenCL backend, with the calls of a SYCL program.
//!
//! SYCL is a C++ library without a C interface. `shim.cpp`, which `make runtimes` compiles, provides one; it is loaded when a device is first
//! used, and nothing is linked. Kernels are built through OpenCL from the same source as in the OpenCL backend, because no package provides a SYCL
//! compiler. Devices of other SYCL backends are therefore listed but not measured.
//!
//! | file | contents |
//! | --- | --- |
//! | `shim.cpp` | C interface to SYCL |
//! | `api` | functions of the shim, loaded when first needed |
//! | `device`, `devices` | [`Device`]: properties, and the list of all devices |
//! | `error` | [`SyclError`]: messages |
//! | `queue` | queue of a device: launches and copies |
//! | `workers` | compute kernels, each with a queue of its own |
//! | `machine` | [`SyclMachine`]: opening a device, running a plan |
//!
//! Verified on: libsycl 8.0 of oneAPI 2025.0.5, on PoCL 3.1 (Debian 12) and on Intel's OpenCL for processors and its FPGA emulation, 2025.0.5.

mod api;
mod device;
mod devices;
mod error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[path = "unsupported.rs"]
mod machine;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod queue;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod workers;

pub use device::Device;
pub use error::SyclError;
pub use machine::SyclMachine;
