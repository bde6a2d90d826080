//! Error masks of a function.

use lanemark_inventory::{Function, Seen, Why};
use lanemark_wire::config::{AerRegister, ConfigSpace};

/// Error masks of a function's Advanced Error Reporting, as far as they were seen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Masks {
    /// Values of the masks: uncorrectable, correctable.
    Seen([u32; 2]),
    /// Masks may exist but were not seen, for this reason.
    Unseen(String),
    /// No masks can be written, for this reason.
    None(String),
}

impl Masks {
    pub(super) fn of(function: &Function) -> Masks {
        if function.aer.is_absent() {
            return Masks::None("it has no Advanced Error Reporting, so there is nothing to mask".to_owned());
        }
        if function.aer.why() == Some(&Why::AllOnes) {
            return Masks::None("it does not respond, so nothing can be masked".to_owned());
        }
        match &function.config {
            Seen::Known(bytes) => {
                let held = |register: AerRegister| {
                    ConfigSpace::new(bytes).error_reporting().and_then(|aer| register.of(&aer)).ok()
                };
                match AerRegister::MASKS.map(held) {
                    [Some(uncorrectable), Some(correctable)] => Masks::Seen([uncorrectable, correctable]),
                    _ => Masks::Unseen(format!(
                        "only {} B of its configuration space were readable; reading more needs root",
                        bytes.len()
                    )),
                }
            }
            Seen::Unseen(why) => Masks::Unseen(why.because()),
        }
    }
}
