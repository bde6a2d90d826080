//! Platform parameters from measurements.
//!
//! The only place where a parameter is fitted. It knows no paper: [`fit`] sees parameters with bounds and a
//! function from their values to residuals, and [`OfRecord`] makes such a function from a record or a
//! [`Table`] and a platform. Besides the best values it says how well the data tell each parameter from the others, and
//! how far it moves when one datum is left out.
//!
//! Start with [`fit`].

#![forbid(unsafe_code)]

mod apart;
mod calibrate;
mod fill;
mod held_out;
mod least_squares;
mod loose;
mod of_record;
mod table;
mod whole;

pub use apart::what_tells;
pub use fill::{FillError, Filled, Measured, fill_in};
pub use held_out::{Errors, Verdict};
pub use least_squares::{Fit, FitError, Found, Parameter, fit, fit_many, fit_told};
pub use loose::Loose;
pub use of_record::{OfRecord, OfRecordError};
pub use table::{HEADER, Row, Table, TableError};
