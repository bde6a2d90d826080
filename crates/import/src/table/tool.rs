//! Tools whose output is read.

use super::rows::{Table, TableError};
use super::{dd, dma_to_device, fio, nvbandwidth, perftest};

/// A tool whose output has figures of DMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// NVIDIA's nvbandwidth, text or JSON.
    Nvbandwidth,
    /// `ib_write_bw` and `ib_read_bw` of perftest.
    Perftest,
    /// fio with JSON output.
    Fio,
    /// `dd` on devices of the XDMA driver.
    Dd,
    /// `dma_to_device` and `dma_from_device` of the XDMA driver.
    DmaToDevice,
}

impl Tool {
    /// All tools.
    pub const ALL: [Tool; 5] = [Tool::Nvbandwidth, Tool::Perftest, Tool::Fio, Tool::Dd, Tool::DmaToDevice];

    /// Name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tool::Nvbandwidth => "nvbandwidth",
            Tool::Perftest => "perftest",
            Tool::Fio => "fio",
            Tool::Dd => "dd",
            Tool::DmaToDevice => "xdma",
        }
    }

    /// Reads the tool's output. Lines of other kinds are skipped and counted.
    ///
    /// # Errors
    /// [`TableError`] for an invalid figure, or if nothing was found.
    pub fn read(self, file: &str, text: &str) -> Result<Table, TableError> {
        let text = text.trim_start_matches('\u{feff}');
        let table = match self {
            Tool::Nvbandwidth => nvbandwidth::read(file, text),
            Tool::Perftest => perftest::read(file, text),
            Tool::Fio => fio::read(file, text),
            Tool::Dd => dd::read(file, text),
            Tool::DmaToDevice => dma_to_device::read(file, text),
        }?;
        let last = text.lines().count();
        if !text.ends_with('\n') && table.rows.iter().any(|row| row.line == last) {
            let message = "the last line has no end: is the file complete? If so, add an end of line".to_owned();
            return Err(TableError { file: table.file, line: last, message });
        }
        Ok(table)
    }
}
