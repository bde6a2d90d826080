//! Faults injected into a simulated machine.

use std::fmt;

/// An injected fault, and whether it has triggered.
///
/// ```
/// use lanemark_machine::InjectedFault;
/// let [what, origin] = ["poisoned@card:3", "--fault"].map(str::to_owned);
/// let done = InjectedFault { what, origin, because_not: None };
/// assert_eq!(done.to_string(), "poisoned@card:3 injected by --fault");
/// let missed = InjectedFault { because_not: Some("only 2 TLPs with data reached card".to_owned()), ..done };
/// assert_eq!(missed.to_string(), "poisoned@card:3 (from --fault) did not trigger: only 2 TLPs with data reached card");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InjectedFault {
    /// Kind, port and trigger, as on the command line: `poisoned@card:3`.
    pub what: String,
    /// Origin: `--fault`, or a section of a platform file.
    pub origin: String,
    /// The reason why it has not triggered; `None` if it has.
    pub because_not: Option<String>,
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InjectedFault { what, origin, because_not } = self;
        match because_not {
            None => write!(f, "{what} injected by {origin}"),
            Some(because) => write!(f, "{what} (from {origin}) did not trigger: {because}"),
        }
    }
}
