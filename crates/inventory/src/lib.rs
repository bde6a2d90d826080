//! PCI tree, CPUs and kernel settings of a machine as data.
//!
//! [`Inventory`] holds what can be read of a machine without writing: its functions with configuration space, regions,
//! links, drivers and error counters; the tree they form; CPUs, MTRRs, IOMMU, kernel. It is read from this machine,
//! from a copy of another machine's `/sys`, or from output of `lspci`. A fact that the source does not provide is
//! [`Seen::Unseen`] with the reason, never a default. This crate does not judge the facts.
//!
//! | module | contents |
//! | --- | --- |
//! | [`function`] | one function |
//! | [`express`], [`link`], [`region`], [`acs`], [`aer`] | its capabilities |
//! | [`interrupt`] | its interrupts |
//! | [`config`] | decoding of configuration space |
//! | [`machine`] | CPUs, NUMA nodes, MTRR and PAT, IOMMU, kernel |
//! | [`tree`] | the tree of functions |
//! | [`seen`] | known and unseen facts |

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
pub mod interrupt;
mod inventory;
mod kernel_log;
pub mod link;
mod load;
mod lspci;
pub mod machine;
mod merge;
mod parents;
mod read;
mod recognise;
pub mod region;
pub mod seen;
mod shortened;
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
pub use interrupt::Interrupt;
pub use inventory::{Inventory, Note, Source};
pub use kernel_log::IommuFault;
pub use link::{Link, Width};
pub use load::{CpuTime, Load};
pub use machine::{Governor, IdleState, Iommu, Kernel, Mtrr, NumaNode, Package, Pat, PatRange, Processors};
pub use region::{Region, RegionKind};
pub use seen::{Seen, Unseen, Why};
pub use tree::{Root, Tree};

/// A shell script that copies what this crate reads of a machine into one file: `sudo sh capture.sh machine.tar.gz`.
///
/// A plain `tar` of `/sys` does not work: tar trusts the file sizes that sysfs reports, a page for most files and 0 in
/// `/proc`, and it reads files that access a device. The script is `crates/inventory/capture.sh`.
///
/// ```
/// assert!(lanemark_inventory::CAPTURE_SCRIPT.starts_with("#!/bin/sh"));
/// ```
pub const CAPTURE_SCRIPT: &str = include_str!("../capture.sh");
