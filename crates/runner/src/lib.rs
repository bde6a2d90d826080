//! Runner: opens targets, measures or predicts the cases of a request, and returns a record.
//!
//! A [`Request`] names [targets](Target), questions and their variants. [`run()`] opens the targets, plans the cases
//! and measures them (in rounds where time is real). It adds the formula and the ceiling of each answer and returns a
//! [`Record`](lanemark_record::Record). It reports progress as [`Event`]s and stops early when a [`Cancel`] is set. A
//! request with [`Answerer::Formulas`] evaluates the formulas of simulated targets instead.
//!
//! The crate prints nothing and interprets nothing: `lanemark-advise` adds findings and advice to the record. Every
//! user interface uses this crate.
//!
//! ```
//! use lanemark_bench::Axes;
//! use lanemark_runner::{Cancel, Request, Target, question, run};
//!
//! let request = Request {
//!     targets: vec!["card-gen5-x16".parse::<Target>()?],
//!     questions: vec![question("mmio_read_latency")?],
//!     axes: Axes { memory_types: Some(vec![lanemark_units::MemoryType::Uc]), ..Axes::default() },
//!     ..Request::default()
//! };
//! let record = run(&request, &mut |_event| {}, &Cancel::new())?.into_result()?;
//! assert_eq!(record.targets[0].name, "card-gen5-x16");
//! let answer = &record.answers[0];
//! assert!(answer.latency_ns.is_some() && answer.formula.is_some());
//! # Ok::<(), lanemark_runner::RunError>(())
//! ```
//!
//! Start with [`Request`], then read `run.rs`. At a lower level, [`Target::open`] returns an [`OpenTarget`] for single
//! cases, [`trace()`] traces one case on a simulated target, and [`dry_run`] lists the accesses of a request to a card.

#![forbid(unsafe_code)]

mod cancel;
mod card;
mod ceiling;
mod changes;
mod device_file;
mod dma_ceiling;
mod dry_run;
mod error;
mod event;
mod gpu;
mod host;
mod input;
mod local_targets;
mod matrix;
mod open;
mod open_target;
mod platform;
mod request;
mod rtl;
mod run;
mod runtime;
mod setup;
mod target;
mod tasks;
mod trace;
mod twin;
mod what_if;

pub use cancel::Cancel;
pub use changes::Changes;
pub use device_file::device_file;
pub use dry_run::{CaseAccesses, DryRun, RangeCheck, dry_run};
pub use error::{Class, RunError};
pub use event::Event;
pub use input::read_file;
pub use local_targets::LOCAL_TARGETS;
pub use matrix::matrix;
pub use open_target::{Answerer, OpenTarget};
pub use platform::{draft, draft_of, is_built_in, origins_of, part, platform};
pub use request::{Request, WhatIf, question, questions};
pub use run::{Outcome, run};
pub use runtime::{Runtimes, runtimes};
pub use setup::{CardAccess, OnHang, Setup};
pub use target::Target;
pub use trace::{TraceRequest, TracedCase, trace, trace_again};
pub use what_if::sensitivities;
