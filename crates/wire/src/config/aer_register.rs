//! The registers of advanced error reporting that software writes: status and mask.

use super::aer::ADVANCED_ERROR_REPORTING as AER;
use super::table::Spot;
use super::{ErrorReporting, Errors, Unknown};
use std::fmt;

/// A status or mask register of advanced error reporting. It is shown as `setpci` calls it.
///
/// A bit of a status register is set when its error happens, masked or not, and cleared by writing a one to it. An error
/// whose mask bit is set is not reported: no message goes to the root port, and neither header log nor First Error Pointer
/// tell of it.
///
/// Source: PCI Express Base Specification 6.0, sections 6.2.3.2.2 and 7.8.4.
///
/// ```
/// use lanemark_wire::config::AerRegister;
/// assert_eq!(AerRegister::UncorrectableMask.to_string(), "ECAP_AER+08.l");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AerRegister {
    /// Uncorrectable errors that have happened.
    UncorrectableStatus,
    /// Uncorrectable errors that are not reported.
    UncorrectableMask,
    /// Correctable errors that have happened.
    CorrectableStatus,
    /// Correctable errors that are not reported.
    CorrectableMask,
}

impl AerRegister {
    /// What hides errors.
    pub const MASKS: [AerRegister; 2] = [AerRegister::UncorrectableMask, AerRegister::CorrectableMask];
    /// What errors leave.
    pub const STATUSES: [AerRegister; 2] = [AerRegister::UncorrectableStatus, AerRegister::CorrectableStatus];

    /// Its first field.
    #[must_use]
    pub const fn spot(self) -> Spot {
        match self {
            AerRegister::UncorrectableStatus => const { Spot::of(&AER, "UESta", "DLP") },
            AerRegister::UncorrectableMask => const { Spot::of(&AER, "UEMsk", "DLP") },
            AerRegister::CorrectableStatus => const { Spot::of(&AER, "CESta", "RxErr") },
            AerRegister::CorrectableMask => const { Spot::of(&AER, "CEMsk", "RxErr") },
        }
    }

    /// Where it is, in bytes from the start of the capability.
    #[must_use]
    pub const fn offset(self) -> u16 {
        self.spot().register.offset
    }

    /// Its name in the tables of the capability, as `lspci` prints it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.spot().register.name
    }

    /// Whether it is a status register.
    #[must_use]
    pub const fn is_status(self) -> bool {
        matches!(self, AerRegister::UncorrectableStatus | AerRegister::CorrectableStatus)
    }

    /// These bits of it, by name.
    #[must_use]
    pub const fn errors(self, raw: u32) -> Errors {
        match self {
            AerRegister::UncorrectableStatus | AerRegister::UncorrectableMask => Errors::uncorrectable(raw),
            AerRegister::CorrectableStatus | AerRegister::CorrectableMask => Errors::correctable(raw),
        }
    }

    /// What it holds.
    ///
    /// # Errors
    /// [`Unknown`] if it cannot be seen.
    pub fn of(self, reporting: &ErrorReporting<'_>) -> Result<u32, Unknown> {
        reporting.region().register(self.spot()).map(|raw| raw as u32)
    }
}

impl fmt::Display for AerRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ECAP_AER+{:02x}.l", self.offset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_register_is_called_as_setpci_calls_it() {
        let all = [AerRegister::STATUSES, AerRegister::MASKS].concat();
        let names: Vec<String> = all.iter().map(|register| format!("{register} {}", register.name())).collect();
        assert_eq!(names, ["ECAP_AER+04.l UESta", "ECAP_AER+10.l CESta", "ECAP_AER+08.l UEMsk", "ECAP_AER+14.l CEMsk"]);
    }
}
