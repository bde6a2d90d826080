//! PCIe errors as reported by Advanced Error Reporting, with the data that had arrived before.

use lanemark_units::Ticks;
use lanemark_wire::config::AerError;
use std::fmt;

/// A PCIe transaction that failed: the reporting port, the TLP, and the data that had arrived.
///
/// The displayed text begins like a Linux AER message and ends with the action to take.
///
/// ```
/// use lanemark_machine::BusError;
/// use lanemark_units::Ticks;
/// use lanemark_wire::config::AerError;
/// let error = BusError {
///     machine: "card-gen5-x16".to_owned(),
///     noticed_by: "00:01.0 (root/card)".to_owned(),
///     error: Some(AerError::CompletionTimeout),
///     header_log: Some([0x0000_0001, 0x0000_000f, 0xfe00_0010, 0]),
///     address: Some(0xfe00_0010),
///     what: "MRd of 4 B by core 0 (00:00.0), tag 0".to_owned(),
///     at: Ticks::whole_ns(50_000_250),
///     arrived: Vec::new(),
///     followed_by: Vec::new(),
///     to_do: "reset the card".to_owned(),
///     ends_plan_only: false,
/// };
/// assert_eq!(
///     error.to_string(),
///     "card-gen5-x16: 00:01.0 (root/card): PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, \
///      [14] CmpltTO (Completion Timeout), TLP Header: 00000001 0000000f fe000010 00000000; MRd of 4 B by core 0 (00:00.0), \
///      tag 0, at address 0xfe000010, at 50000250 ns; reset the card"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusError {
    /// Name of the machine.
    pub machine: String,
    /// Reporting port, by bus address and name.
    pub noticed_by: String,
    /// Bit in its AER status register; `None` if no PCIe error corresponds.
    pub error: Option<AerError>,
    /// First four DWs of the TLP, if the port logs headers.
    pub header_log: Option<[u32; 4]>,
    /// Bus address of the first byte of the TLP; `None` if it has none.
    pub address: Option<u64>,
    /// The TLP and what happened to it.
    pub what: String,
    /// Time since the machine was powered on.
    pub at: Ticks,
    /// Data that had arrived in this sample.
    pub arrived: Vec<Arrived>,
    /// Subsequent errors in order, each with the reporting port.
    pub followed_by: Vec<(AerError, String)>,
    /// Action to take.
    pub to_do: String,
    /// Whether the error aborts this plan only: the device is unaffected, and the next plan works.
    pub ends_plan_only: bool,
}

/// Bytes of one flow that had arrived when no transaction was outstanding any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// The flow, such as `0:host` or `stores by cores`.
    pub flow: String,
    /// Bytes that arrived at their destination.
    pub bytes: u64,
    /// Bytes of the whole plan; `None` if unknown.
    pub wanted_bytes: Option<u64>,
}

impl fmt::Display for Arrived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wanted_bytes {
            Some(wanted) => write!(f, "{} of {wanted} B of {}", self.bytes, self.flow),
            None => write!(f, "{} B of {}", self.bytes, self.flow),
        }
    }
}

impl fmt::Display for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: ", self.machine, self.noticed_by)?;
        match self.error.map(AerError::row) {
            Some(row) => {
                let (severity, layer) = (row.severity.name(), row.layer.name());
                write!(
                    f,
                    "PCIe Bus Error: severity={severity}, type={layer}, [{}] {} ({})",
                    row.bit, row.name, row.full_name
                )?;
            }
            None => f.write_str("not a PCIe error")?,
        }
        if let Some([a, b, c, d]) = self.header_log {
            write!(f, ", TLP Header: {a:08x} {b:08x} {c:08x} {d:08x}")?;
        }
        write!(f, "; {}", self.what)?;
        if let Some(address) = self.address {
            write!(f, ", at address {address:#x}")?;
        }
        write!(f, ", at {}", self.at)?;
        for (place, arrived) in self.arrived.iter().enumerate() {
            write!(f, "{}{arrived}", if place == 0 { "; arrived: " } else { ", " })?;
        }
        for (place, (error, by)) in self.followed_by.iter().enumerate() {
            let row = error.row();
            write!(f, "{}[{}] {} at {by}", if place == 0 { "; then " } else { ", " }, row.bit, row.name)?;
        }
        write!(f, "; {}", self.to_do)
    }
}
