//! Statements and pictures of papers, tested on simulated machines by bytes, TLPs and counters.
//!
//! A paper may state a result in words ("a seventh line evicts") or draw it without numbers. Such a statement is a [`Rule`]
//! here, with a name, and [`RULES`] lists all of them. A rule builds a board or a machine, performs accesses, and returns its
//! observation, or the violation as an error. [`count`] counts on a board, and [`picture`] draws lines over a parameter.
//!
//! Files are named after the mechanism that they test, and none after a paper: an experiment (`lanemark-experiment`) names the
//! rules and pictures of its paper. `coherent/` tests a machine without PCIe.

#![forbid(unsafe_code)]

mod beat_counters;
mod coherent;
mod condition;
mod copies;
mod count;
mod dma_or_loads;
mod fifo;
mod kernel_loads;
mod launches;
mod line;
mod listing;
mod loads;
mod max_payload;
mod memory_types;
mod one_sample;
mod picture;
mod pinning;
mod posted_queue;
mod recovery;
mod relay;
mod rule;
mod speedups;
mod spmv;
mod stores;
mod table;
mod trial;
mod write_combining;
mod write_payload;

pub use count::count;
pub use picture::picture;
pub use rule::{Check, Rule};
pub use table::RULES;
