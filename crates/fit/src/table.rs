//! Measured figures of a card's DMA as a table: a CSV file, or the output of a tool.

mod csv;
mod rows;
mod units;

pub use csv::HEADER;
pub use rows::{Row, Table, TableError};
