//! Rendering of records: tables for a terminal, and one HTML page.
//!
//! Every function turns plain data into text: [`tables`], [`reproduction_table`] and
//! [`comparison_table`] for a terminal of a given width, [`html()`] for a self-contained page that
//! loads nothing. This crate measures nothing and computes only shares, differences and ranks.
//!
//! [`machines_html`] compares the machines of several records on one page.
//!
//! [`waterfall`], [`waterfall_html`] and [`viewer_trace`] show a trace. [`probe`] makes a capture of it, and
//! [`capture_table`] shows a capture.
//!
//! A record is first cut into *panels* (`panel.rs`): one question on one target, its methods as
//! lines, best first. The terminal tables, the plots and the tables of figures are three views of
//! the same panels. [`figures`] formats all figures.
//!
//! ```
//! # let text = r#"{"schema": 4, "tool": {"name": "lanemark", "version": "0"}, "command": [],
//! #   "written_unix_s": null, "targets": [], "answers": [], "skipped": [], "warnings": [],
//! #   "advice": [], "findings": [], "interrupted": false}"#;
//! let record = lanemark_record::file::from_bytes(text.as_bytes(), "r.json".as_ref())?;
//! print!("{}", lanemark_report::tables(&record, Some(120)));
//! let page = lanemark_report::html(&record, &[])?;
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![allow(clippy::format_push_string, reason = "reads better than `write!`, and speed is irrelevant here")]

mod advice;
mod answer_trace;
mod bottleneck;
mod callers;
mod capture;
mod chart;
mod coherence;
mod comparison;
mod curve;
mod distribution;
mod doctor;
mod doctor_findings;
#[cfg(test)]
mod doctor_fixture;
mod doctor_tree;
mod error;
mod exact;
mod fabric;
mod first_screen;
#[cfg(test)]
mod fixture;
mod fleet;
mod grid;
mod guidance;
mod html;
mod import;
mod loaded;
mod machines;
mod matrix;
mod neighbours;
mod occupation;
mod page_parts;
mod panel;
mod picture;
mod plot;
mod probe;
mod recovery;
mod repeated;
mod reproduction;
mod residuals;
mod sensitivity;
mod svg;
mod sweep;
mod table;
mod timeline;
mod tlp;
mod tornado;
mod viewer;
mod waits;
mod what_if_page;

pub use answer_trace::{AnswerTrace, answers_to_trace};
pub use bottleneck::acts_on_bottleneck;
pub use capture::capture_table;
pub use comparison::comparison_table;
pub use doctor::diagnosis;
pub use error::ReportError;
pub use first_screen::first_screen;
pub use fleet::fleet_table;
pub use guidance::{guidance, unmet_goals};
pub use html::{html, html_with_traces};
pub use import::import_table;
pub use lanemark_units::figures;
pub use machines::{ComparedRecord, machines_html};
pub use neighbours::neighbours_table;
pub use plot::bandwidth_plot;
pub use probe::probe;
pub use recovery::{carried_out, recovery};
pub use repeated::repeated_table;
pub use reproduction::reproduction_table;
pub use residuals::residual_table;
pub use sweep::{
    Selection, Sensitivity, SweepPictureError, heat_map as sweep_heat_map, lines as sweep_lines,
    map_html as sweep_map_html, pareto as sweep_pareto, sensitivities as sweep_sensitivities, tornado,
};
pub use table::{counts_in_words, tables};
pub use timeline::{Traced, waterfall, waterfall_html};
pub use tlp::tlp_in_words;
pub use viewer::viewer_trace;
pub use what_if_page::requested_region;
