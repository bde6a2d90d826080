//! Output of `pcm-pcie -B -csv`: bytes per socket and interval, over all devices below it.
//!
//! Source: intel/pcm, `doc/PCM_PCIE_README.md` and `src/pcm-pcie.cpp`. *PCIe Rd* are bytes that devices read from memory,
//! *PCIe Wr* bytes that they write.

use super::collector::{Collector, figure};
use crate::table::TableError;
use lanemark_record::{BytePath, Imported, ImportedFigure, Measured};

const LOOKED_FOR: &str = "the columns 'Skt', 'PCIe Rd (B)' and 'PCIe Wr (B)' of pcm-pcie -B -csv";

/// Reads the CSV of pcm-pcie.
///
/// # Errors
/// [`TableError`] for a row with another number of cells, an invalid figure, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Imported, TableError> {
    let mut collector = Collector::new("pcm-pcie", file);
    let mut columns: Option<[usize; 3]> = None;
    let mut count = 0;
    for (line, text) in (1..).zip(text.lines()) {
        let cells: Vec<&str> = text.trim().trim_end_matches(',').split(',').map(str::trim).collect();
        let place = |name: &str| cells.iter().position(|cell| *cell == name);
        if let (Some(socket), Some(read), Some(write)) = (place("Skt"), place("PCIe Rd (B)"), place("PCIe Wr (B)")) {
            (columns, count) = (Some([socket, read, write]), cells.len());
            continue;
        }
        let Some([socket, read, write]) = columns.filter(|_| cells.len() > 1) else {
            collector.skip();
            continue;
        };
        if cells.len() != count {
            let message = format!("{} cells instead of {count}: is the file complete?", cells.len());
            return Err(collector.wrong(line, message));
        }
        // The sum over all sockets, and detailed rows of hits and misses.
        if !cells[socket].chars().all(|c| c.is_ascii_digit()) {
            collector.skip();
            continue;
        }
        for (place, test, path) in
            [(read, "PCIe Rd", BytePath::DevicesRead), (write, "PCIe Wr", BytePath::DevicesWrite)]
        {
            let value: f64 = cells[place]
                .parse()
                .map_err(|_| collector.wrong(line, format!("'{}' is not a number of bytes", cells[place])))?;
            // An interval without traffic is no figure.
            if value == 0.0 {
                collector.leave_out(line, format!("{test}: no bytes in this interval"));
                continue;
            }
            let found = figure(line, test, path, Measured::RateBytesPerS(value));
            collector.add(ImportedFigure { device: Some(format!("socket {}", cells[socket])), ..found })?;
        }
    }
    collector.note("figures of pcm-pcie are sums over all devices of a socket: one device's limit is no limit of them");
    collector.note("bytes are read as those of one second, the default interval of pcm-pcie");
    collector.unknown("interval, devices, sizes of transfers");
    collector.finish(text, LOOKED_FOR)
}
