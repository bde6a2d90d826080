//! How fast does this machine's core load and store, with nothing but memory behind it?
//!
//! The stand-in for a card: the same plans, the same instructions, real time, but the bytes go to
//! ordinary memory (WB). It tells what the core alone can do, so it is the measured bound for the CPU's
//! side of a transfer. It is *not* a model of a BAR: stores end in a cache, loads come from one.
//!
//! | file | holds |
//! | --- | --- |
//! | `machine` | [`HostMemory`]: opening, running a plan, checking the bytes |
//! | `job` | what runs a sample |
//! | `memory_file` | the file that stands in for a driver |
//! | `kernel` | calls for which the kernel has nothing to do |
//! | `lend` | memory that is lent to nobody and taken back |
//!
//! Which plans are possible, the instructions themselves, the timestamps and the memory are those of `x86`, which every
//! way in uses.
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
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod map_unmap;

pub use machine::HostMemory;

/// How a plan's asker names this machine.
const NAME: &str = "host";
