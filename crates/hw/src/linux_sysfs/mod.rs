//! How fast does this machine load and store to a real card, through the files the kernel offers for its BARs?
//!
//! `/sys/bus/pci/devices/ADDRESS/resourceN` maps BAR N uncached (UC-), `resourceN_wc` write-combining; both want root
//! and neither wants a driver. Only ranges that were named are touched, and mapped only while a plan runs: a second
//! mapping of another type would silently get the type of the first.
//!
//! | file | holds |
//! | --- | --- |
//! | `card` | [`Card`]: the library face: attach, map, peek, poke, burst, copy, fence, detach |
//! | `machine` | [`CardMachine`]: plans run on a card |
//! | `rehearsal`, `touch` | what a plan would touch, without touching it |
//! | `attachment` | everything that is checked before the first mapping |
//! | `address`, `range`, `bar` | which device, which bytes, what there is |
//! | `device`, `system` | what the kernel says about a device, and where it says it |
//! | `state` | links and error counters before and after |
//! | `effective` | the memory type that a mapping really has |
//! | `window`, `access` | a mapped range, and one load or store in it |
//! | `sigbus` | a BAR that vanishes under a mapping |
//! | `error` | what can go wrong, and what to do |
//!
//! Verified on: folders of plain files that look like sysfs (the tests beside the code), and QEMU's `ivshmem` and `edu`
//! under Linux 6.1 (`checks/guest`). On no card yet.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod access;
mod address;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod allowance;
mod attachment;
mod bar;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod card;
mod device;
mod effective;
mod error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
mod range;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod rehearsal;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod sigbus;
mod state;
mod system;
mod touch;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod unsupported;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod window;

pub use address::{Address, NotAnAddress};
pub use attachment::{Attachment, Consent, Place};
pub use bar::{Bar, Space};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use card::{BarMapping, Card};
pub use device::Device;
pub use effective::{MappedType, Mapping};
pub use error::CardError;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use machine::CardMachine;
pub use range::{Kind, NotARange, Range};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use rehearsal::Rehearsal;
pub use state::{ErrorCount, Link, State};
pub use system::System;
pub use touch::{Notes, Touch};
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use unsupported::{BarMapping, Card, CardMachine, Rehearsal};
