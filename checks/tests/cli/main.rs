//! Does the program keep its promises to those who script it?
//!
//! Everything here runs `lanemark` as a stranger would, in a folder of its own, and looks at the exit code,
//! at standard output, at standard error and at what lies in the folder afterwards.

mod advise;
mod bad_input;
mod baselines;
mod bound;
mod commands;
mod compare;
mod copies;
mod corpus;
mod csv;
mod doctor;
mod ending;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod failing_runtime;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[path = "../../../crates/hw/tests/fake_card/mod.rs"]
mod fake_card;
mod fit_tools;
mod fleet;
mod folder;
mod gate;
mod import;
mod install;
mod json;
mod kernels;
#[cfg(target_os = "linux")]
mod odd_environment;
mod platform_file;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod real_card;
mod recover;
mod samples;
mod sweep;
mod trace;
