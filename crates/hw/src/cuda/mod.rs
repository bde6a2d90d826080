//! Devices of the CUDA driver: DMA by kernels, copies by the driver, kernel launches.
//!
//! Needs nothing but the driver of the GPU: its library is loaded at run time, and it compiles the kernels, which are
//! texts. Nothing on the machine is set, neither clocks nor power nor modes.
//!
//! | file | contents |
//! | --- | --- |
//! | `api` | functions of the driver, loaded when first needed |
//! | `device` | [`Device`]: properties, and the list of all devices |
//! | `error` | [`CudaError`]: messages |
//! | `status` | status codes by name |
//! | `health` | [`Health`]: link, clocks and temperature, from the management library |
//! | `context` | an open device |
//! | `memory` | memory of the device, and memory of the host that it can access |
//! | `transfers.ptx`, `clock.ptx`, `ping.ptx`, `pieces.ptx`, `ptx` | texts of the kernels |
//! | `kernel` | compilation and launch |
//! | `clock` | the clock of the device |
//! | `walk`, `transfers` | DMA: which warp moves what; times and verification |
//! | `ping` | doorbells that a kernel answers |
//! | `launches`, `graph` | empty kernels, by themselves, in graphs, and behind a word that the stream waits for |
//! | `copies` | copies by the driver |
//! | `pieces` | copies of many pieces |
//! | `queue` | everything that is allocated on one device |
//! | `machine` | [`CudaMachine`]: opening a device, running a plan |

mod api;
mod device;
mod error;
mod health;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[path = "unsupported.rs"]
mod machine;
mod ptx;
mod status;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod clock;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod context;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod copies;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod graph;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod kernel;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod launches;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod memory;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod pieces;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod ping;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod queue;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod transfers;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod walk;

pub use device::Device;
pub use error::CudaError;
pub use health::Health;
pub use machine::CudaMachine;
pub use ptx::every_kernel;
pub use status::Status;
