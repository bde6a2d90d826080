//! Loads and stores to a real card, through the sysfs files of its BARs.
//!
//! `/sys/bus/pci/devices/ADDRESS/resourceN` maps BAR N uncached (UC-), `resourceN_wc` write-combining. Both need root, and
//! neither needs a driver. Only named ranges are accessed, and they are mapped only while a plan runs, because a second
//! mapping of another type would silently get the type of the first.
//!
//! | file | contents |
//! | --- | --- |
//! | `card` | [`Card`]: library for programs: attach, map, peek, poke, burst, copy, fence, detach |
//! | `machine` | [`CardMachine`]: runs plans on a card |
//! | `calls` | plans of driver calls, through our module |
//! | `rehearsal`, `touch` | dry run: the accesses of a plan, without making them |
//! | `attachment` | all checks before the first mapping |
//! | `address`, `range`, `bar` | device addresses, named ranges, BARs |
//! | `bar_files` | files through which BARs are mapped: those of sysfs, or that of VFIO or our module |
//! | `device`, `system` | sysfs files of a device, and their location |
//! | `identity`, `opened` | identity of a device; its lock, and the check before and after each run |
//! | `state` | links and error counters before and after a run |
//! | `effective` | effective memory type of a mapping |
//! | `window`, `access` | a mapped range, and single loads and stores in it |
//! | `sigbus` | recovery from a BAR that vanishes under its mapping |
//! | `error` | errors, each with a remedy |
//!
//! Verified on: folders of plain files that imitate sysfs (the tests beside the code), and QEMU's `ivshmem` and `edu`
//! devices under Linux 6.1 (`checks/guest`). Not yet verified on a real card.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod access;
mod address;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod allowance;
mod attachment;
mod bar;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod bar_files;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod calls;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod card;
mod device;
mod effective;
mod error;
mod identity;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod opened;
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
pub(crate) use bar_files::{BarFile, BarFiles};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use card::{BarMapping, Card};
pub use device::Device;
pub use effective::{MappedType, Mapping};
pub use error::CardError;
pub use identity::Identity;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use machine::CardMachine;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use opened::{Opened, is_locked, locked};
pub(crate) use range::offsets;
pub use range::{Kind, NotARange, Range};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use rehearsal::Rehearsal;
pub use state::{ErrorCount, Link, State};
pub use system::System;
pub(crate) use system::text;
pub use touch::{Note, Notes, Touch};
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use unsupported::{BarMapping, Card, CardMachine, Rehearsal};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use window::Window;
