//! What went wrong between a requester and a completer, as advanced error reporting tells it, and what had arrived by then.

use lanemark_units::Ticks;
use lanemark_wire::config::AerError;
use std::fmt;

/// A transfer that failed on its way: who noticed, what it was about, what had arrived.
///
/// What is printed begins as Linux prints such an error, and ends with what to do.
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
    /// Of whom.
    pub machine: String,
    /// Which port noticed, by its bus address and its name.
    pub noticed_by: String,
    /// The bit in its status register; `None` if nobody on a bus notices such a thing.
    pub error: Option<AerError>,
    /// The first four DWs of the TLP that it is about, where the port logs them.
    pub header_log: Option<[u32; 4]>,
    /// The first byte that the TLP is about, as a bus address; `None` if it is about none.
    pub address: Option<u64>,
    /// What happened to whose TLP.
    pub what: String,
    /// When, in the machine's time since it was switched on.
    pub at: Ticks,
    /// What had arrived in this sample.
    pub arrived: Vec<Arrived>,
    /// The other errors that came of it, and who noticed them, in their order.
    pub followed_by: Vec<(AerError, String)>,
    /// What to do.
    pub to_do: String,
    /// Whether no device knows of it: this plan is over, and the next one works.
    pub ends_plan_only: bool,
}

/// Bytes of one flow that had come to their end when nothing was under way any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// Who moved them, and where: `0:host`, `stores by cores`.
    pub flow: String,
    /// How many are there, each where it belongs.
    pub bytes: u64,
    /// How many there would have been; `None` where the plan does not say.
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
            None => f.write_str("no error that a bus reports")?,
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
