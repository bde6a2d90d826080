//! Platform parameters from measurements.
//!
//! The only place where a parameter is fitted. It knows no paper: [`fit`] sees parameters with bounds and a
//! function from their values to residuals, and [`OfRecord`] makes such a function from a record and a
//! platform. Besides the best values it says how well the data tell each parameter from the others, and
//! how far it moves when one datum is left out.
//!
//! Start with [`fit`].

#![forbid(unsafe_code)]

mod fill;
mod least_squares;
mod loose;
mod of_record;

pub use fill::{FillError, Filled, fill_in};
pub use least_squares::{Fit, FitError, Found, Parameter, fit, fit_many};
pub use loose::Loose;
pub use of_record::{OfRecord, OfRecordError};
