//! What was told to go wrong with a machine.

use std::fmt;

/// Something that was told to go wrong, and whether it has.
///
/// ```
/// use lanemark_machine::InjectedFault;
/// let [what, told_by] = ["poisoned@card:3", "--fault"].map(str::to_owned);
/// let done = InjectedFault { what, told_by, because_not: None };
/// assert_eq!(done.to_string(), "poisoned@card:3 went wrong by --fault");
/// let missed = InjectedFault { because_not: Some("only 2 TLPs with data came to card".to_owned()), ..done };
/// assert_eq!(missed.to_string(), "poisoned@card:3 by --fault had no effect: only 2 TLPs with data came to card");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InjectedFault {
    /// What, where and when, as a command line says it: `poisoned@card:3`.
    pub what: String,
    /// Who said so: `--fault`, or a section of a platform file.
    pub told_by: String,
    /// Why nothing came of it; `None` if it has happened.
    pub because_not: Option<String>,
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InjectedFault { what, told_by, because_not } = self;
        match because_not {
            None => write!(f, "{what} went wrong by {told_by}"),
            Some(because) => write!(f, "{what} by {told_by} had no effect: {because}"),
        }
    }
}
