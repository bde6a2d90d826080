//! The native module `lanemark._lanemark` of the Python package in `python/lanemark`.
//!
//! It opens, runs and renders what the other crates have, without the interpreter's lock, and decides nothing: names,
//! options and messages are those of the command. The Python files of the package have the public classes and functions.

#![forbid(unsafe_code)]
#![allow(clippy::needless_pass_by_value, reason = "arguments are converted to owned values from Python")]

mod advise;
mod board;
mod card_reads;
mod command;
mod doctor;
mod error;
mod file;
mod fit;
mod import;
mod listing;
mod partner;
mod platform;
mod record;
mod run;
mod sweep;
mod table;
mod trace;
mod wait;

#[pyo3::pymodule]
mod _lanemark {
    #[pymodule_export]
    use crate::advise::{advise, compare, compare_to_corpus, fleet};
    #[pymodule_export]
    use crate::board::Board;
    #[pymodule_export]
    use crate::command::main;
    #[pymodule_export]
    use crate::doctor::{doctor, draft_from_listing};
    #[pymodule_export]
    use crate::file::write_file;
    #[pymodule_export]
    use crate::fit::{Fitted, fit};
    #[pymodule_export]
    use crate::import::import;
    #[pymodule_export]
    use crate::listing::{is_real, option_names, platforms, questions, sizes, toml, version};
    #[pymodule_export]
    use crate::partner::{Partner, interface_of};
    #[pymodule_export]
    use crate::platform::Platform;
    #[pymodule_export]
    use crate::record::Record;
    #[pymodule_export]
    use crate::run::run;
    #[pymodule_export]
    use crate::sweep::{Points, SweepLog, sweep_table};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::trace::{Trace, trace};
}
