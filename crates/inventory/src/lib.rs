//! A machine's PCI tree and processor side as data.
//!
//! [`Inventory`] is what can be seen of a machine without writing to anything: its functions with their
//! config space, regions, links, drivers and counters; the tree they make; processors, memory type
//! ranges, IOMMU, kernel. It comes from this machine, from files of another one's `/sys`, or from what
//! `lspci` printed there. A fact that the source does not tell is [`Seen::Unseen`] with the reason, never
//! a default. Nothing here judges what is good or bad.
//!
//! | module | question |
//! | --- | --- |
//! | [`function`] | what is one function? |
//! | [`express`], [`link`], [`region`], [`acs`], [`aer`] | what do its capabilities say? |
//! | [`config`] | what do the bytes of config space say? |
//! | [`machine`] | what lies between a core and the first bus? |
//! | [`tree`] | which function is below which? |
//! | [`seen`] | is it a fact, and if not, why? |

#![forbid(unsafe_code)]

pub mod acs;
pub mod address;
pub mod aer;
pub mod class;
pub mod config;
pub mod cpu_set;
pub mod error;
pub mod express;
mod files;
pub mod function;
mod inventory;
pub mod link;
mod load;
mod lspci;
pub mod machine;
mod merge;
mod parents;
mod recognise;
pub mod region;
pub mod seen;
mod sysfs;
pub mod tree;
mod unseen;

pub use acs::Acs;
pub use address::{Address, NoAddress};
pub use aer::{Aer, ErrorCount};
pub use class::{Class, class_named};
pub use cpu_set::{CpuSet, NoCpuSet};
pub use error::InventoryError;
pub use express::{Express, Feature};
pub use function::{Function, Sriov};
pub use inventory::{Inventory, Note, Source};
pub use link::{Link, Width};
pub use load::Load;
pub use machine::{Governor, IdleState, Iommu, Kernel, Mtrr, NumaNode, Package, Pat, PatRange, Processors};
pub use region::{Region, RegionKind};
pub use seen::{Seen, Unseen, Why};
pub use tree::{Root, Tree};

/// A shell script that puts what is read of a machine into one file: `sudo sh capture.sh machine.tar.gz`.
///
/// A plain `tar` of `/sys` does not do: tar believes the sizes that sysfs gives, a page for most files and 0 for
/// those of `/proc`, and would read files that touch a device. The script is `crates/inventory/capture.sh`.
///
/// ```
/// assert!(lanemark_inventory::CAPTURE_SCRIPT.starts_with("#!/bin/sh"));
/// ```
pub const CAPTURE_SCRIPT: &str = include_str!("../capture.sh");

/// A text of somebody else for a message: without control characters, and not longer than a message can be.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let mut short: String = text.chars().take(MOST).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        short.push_str("...");
    }
    short
}
