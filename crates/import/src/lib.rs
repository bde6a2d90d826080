//! Figures that other tools printed.
//!
//! A [`Table`] has the figures of a card's DMA that a fit can use, a [`Tool`] reads them ([`table`](self)). An
//! [`ImportTool`] reads every figure that a record can hold, [`joined`] makes one of several
//! files, and [`record`] makes a record of them: what the tool does not say stays unknown. [`LinkLimit`] is the limit beside which an imported rate stands.

#![forbid(unsafe_code)]

mod joined;
mod limit;
mod output;
mod record;
mod table;

pub use joined::{SeveralTools, joined};
pub use limit::LinkLimit;
pub use output::ImportTool;
pub use record::record;
pub use table::{HEADER, Reading, Row, Table, TableError, Tool};
