//! The AER registers that software writes: status and mask.

use super::aer::ADVANCED_ERROR_REPORTING as AER;
use super::table::Spot;
use super::{ErrorReporting, Errors, Unknown};
use std::fmt;

/// A status or mask register of Advanced Error Reporting. `Display` prints the name that `setpci` uses.
///
/// A status bit is set when its error occurs, masked or not, and is cleared by writing 1. An error whose mask bit is
/// set is not reported: no message is sent to the root port, and Header Log and First Error Pointer are not updated.
///
/// Source: PCI Express Base Specification 6.0, sections 6.2.3.2.2 and 7.8.4.
///
/// ```
/// use lanemark_wire::config::AerRegister;
/// assert_eq!(AerRegister::UncorrectableMask.to_string(), "ECAP_AER+08.l");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AerRegister {
    /// Uncorrectable Error Status.
    UncorrectableStatus,
    /// Uncorrectable Error Mask.
    UncorrectableMask,
    /// Correctable Error Status.
    CorrectableStatus,
    /// Correctable Error Mask.
    CorrectableMask,
}

impl AerRegister {
    /// The mask registers.
    pub const MASKS: [AerRegister; 2] = [AerRegister::UncorrectableMask, AerRegister::CorrectableMask];
    /// The status registers.
    pub const STATUSES: [AerRegister; 2] = [AerRegister::UncorrectableStatus, AerRegister::CorrectableStatus];

    /// The first field of the register.
    #[must_use]
    pub const fn spot(self) -> Spot {
        match self {
            AerRegister::UncorrectableStatus => const { Spot::of(&AER, "UESta", "DLP") },
            AerRegister::UncorrectableMask => const { Spot::of(&AER, "UEMsk", "DLP") },
            AerRegister::CorrectableStatus => const { Spot::of(&AER, "CESta", "RxErr") },
            AerRegister::CorrectableMask => const { Spot::of(&AER, "CEMsk", "RxErr") },
        }
    }

    /// Offset from the start of the capability, in bytes.
    #[must_use]
    pub const fn offset(self) -> u16 {
        self.spot().register.offset
    }

    /// Name in the table of the capability, as printed by `lspci`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.spot().register.name
    }

    /// Whether it is a status register.
    #[must_use]
    pub const fn is_status(self) -> bool {
        matches!(self, AerRegister::UncorrectableStatus | AerRegister::CorrectableStatus)
    }

    /// The errors whose bits are set in `raw`.
    #[must_use]
    pub const fn errors(self, raw: u32) -> Errors {
        match self {
            AerRegister::UncorrectableStatus | AerRegister::UncorrectableMask => Errors::uncorrectable(raw),
            AerRegister::CorrectableStatus | AerRegister::CorrectableMask => Errors::correctable(raw),
        }
    }

    /// Value of the register.
    ///
    /// # Errors
    /// [`Unknown`] if it is not visible.
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
    fn registers_have_the_names_of_setpci() {
        let all = [AerRegister::STATUSES, AerRegister::MASKS].concat();
        let names: Vec<String> = all.iter().map(|register| format!("{register} {}", register.name())).collect();
        assert_eq!(names, ["ECAP_AER+04.l UESta", "ECAP_AER+10.l CESta", "ECAP_AER+08.l UEMsk", "ECAP_AER+14.l CEMsk"]);
    }
}
