//! Measured figures of a card's DMA as a table: a CSV file, or the output of a tool.

pub(crate) mod command;
mod csv;
mod dd;
mod dma_to_device;
mod fio;
mod nvbandwidth;
mod perftest;
pub(crate) mod reader;
mod rows;
mod tool;
mod units;

pub use csv::HEADER;
pub use rows::{Reading, Row, Table, TableError};
pub use tool::Tool;
