//! Devices of an OpenCL runtime: latency of kernel launches, bandwidth of copies, compute kernels.
//!
//! Such a device offers a queue and no BARs. It supports a [`Launch`](lanemark_machine::Launch), a copy
//! ([`RuntimeCopy`](lanemark_machine::RuntimeCopy)) and kernels that [`Compute`](lanemark_machine::Compute); every other plan is refused
//! with a reason.
//!
//! | file | contents |
//! | --- | --- |
//! | `api` | OpenCL functions, loaded when first needed |
//! | `vendors` | installed runtimes, and why a runtime cannot be loaded |
//! | `device`, `devices` | [`Device`]: properties, and the list of all devices |
//! | `error`, `load_error` | [`OpenClError`]: messages |
//! | `finished` | [`FinishedKernels`]: prebuilt kernels, for boards without a compiler |
//! | `status` | status codes by name |
//! | `context` | an open device: memory sizes, extensions |
//! | `usm`, `ports`, `port_buffers` | extensions: unified shared memory, and selectable memory ports |
//! | `memory`, `memory_at` | device memory, and references to it |
//! | `program`, `prebuilt`, `commands` | kernels, command queues |
//! | `launches` | empty kernels and their arguments |
//! | `copies` | copies between host and device memory |
//! | `workers` | compute kernels, each with a queue of its own |
//! | `queue` | everything that is allocated on one device |
//! | `machine` | [`OpenClMachine`]: opening a device, running a plan |
//!
//! Verified on: PoCL 3.1 (Debian 12) behind ocl-icd 2.3.1; Intel's runtime for its processors and its emulation of an FPGA, 2025.0.5.

mod api;
mod device;
mod devices;
mod error;
mod finished;
mod load_error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[path = "unsupported.rs"]
mod machine;
mod status;
mod vendors;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod commands;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod context;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod copies;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod launches;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod memory;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod memory_at;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod port_buffers;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod ports;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod prebuilt;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod program;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod queue;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod reads;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod usm;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod workers;

pub use device::Device;
pub use error::OpenClError;
pub use finished::FinishedKernels;
pub(crate) use load_error::load_error;
pub use machine::OpenClMachine;
pub use status::Status;
pub use vendors::{Vendor, vendors};
