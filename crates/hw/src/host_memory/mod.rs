//! Host memory: how fast a core of this machine loads and stores ordinary memory.
//!
//! It replaces a card: the plans, the instructions and the timing are the same, but the data goes to ordinary memory (WB).
//! It measures what the core alone can do, an upper bound for the CPU's side of a transfer. It is *not* a model of a BAR:
//! stores end in a cache, and loads come from one.
//!
//! | file | contents |
//! | --- | --- |
//! | `machine` | [`HostMemory`]: opening it, running a plan, verifying the data |
//! | `job` | the code that runs one sample |
//! | `memory_file` | memory file that replaces a driver |
//! | `kernel` | system calls that do no work |
//!
//! The check of plans, the instructions, the timestamps and the memory are those of `x86`, which all backends use.
//!
//! Verified on: Intel Xeon model 207 (KVM guest, 2 cores, TSC 2.3 GHz, CPUID leaf 15H empty), Linux 6.18, glibc 2.36.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod memory_file;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod job;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod kernel;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[path = "unsupported.rs"]
mod machine;

pub use machine::HostMemory;

/// Name of this machine in requests, records and messages.
const NAME: &str = "host";
