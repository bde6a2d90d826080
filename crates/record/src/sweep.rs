//! Results of a sweep: one row per point, the log of a sweep, and tables for other tools.

mod log;
mod row;
mod table;

pub use log::{SweepLog, is_sweep_log, read_sweep_log, sweep_log_schema};
pub use row::{SweepRow, SweptBy};
pub use table::{SweepTable, SweepTableBuilder};
