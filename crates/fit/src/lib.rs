//! Calibration: platform parameters from measurements.
//!
//! All fitting happens in this crate. [`fit`] takes parameters with bounds and a function from their values to
//! residuals. [`FitData`] builds such a function from a platform and a record or a [`Table`]. Besides the best values,
//! the result states which parameters the data determine separately, and the range of each when one datum is left out.
//!
//! Entry points: [`fit`] for any function, [`fill_in`] for a platform file with unknown numbers.

#![forbid(unsafe_code)]

mod apart;
mod calibrate;
mod contender;
mod data_error;
mod datum;
mod distinction;
mod evidence;
mod fill;
mod fill_error;
mod fit_data;
mod held_out;
mod least_squares;
mod mechanism;
mod memo;
mod parameter;
mod pattern;
mod reopened;
mod settled;
mod simulation;
mod start;
mod structure;
mod translated;
mod trial;
mod undetermined;
mod walkers;
mod whole;
mod windows;

pub use apart::measurement_for;
pub use contender::Contender;
pub use data_error::FitDataError;
pub use distinction::Distinction;
pub use fill::{FillOptions, Filled, LeftOut, Measured, Missed, fill_in};
pub use fill_error::FillError;
pub use fit_data::FitData;
pub use held_out::{Errors, Verdict};
pub use lanemark_import::{HEADER, Reading, Row, Table, TableError, Tool};
pub use least_squares::{Fit, FitError, Found, fit, fit_many, fit_with_progress};
pub use parameter::Parameter;
pub use pattern::{Pattern, Shape};
pub use reopened::Reopened;
pub use trial::MOST_PREDICTIONS;
pub use undetermined::Undetermined;
