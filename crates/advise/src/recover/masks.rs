//! What the masks of a function hold.

use lanemark_inventory::{Function, Seen, Why};
use lanemark_wire::config::{AerRegister, ConfigSpace};

/// The masks of a function's advanced error reporting, as far as they were seen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Masks {
    /// What they hold: uncorrectable, correctable.
    Seen([u32; 2]),
    /// There may be some, and what they hold was not seen, for this reason.
    Unseen(String),
    /// There are none to be written, for this reason.
    None(String),
}

impl Masks {
    pub(super) fn of(function: &Function) -> Masks {
        if function.aer.is_absent() {
            return Masks::None("it has no advanced error reporting, and nothing to mask".to_owned());
        }
        if function.aer.why() == Some(&Why::AllOnes) {
            return Masks::None("it does not answer, so nothing can be masked there".to_owned());
        }
        match &function.config {
            Seen::Known(bytes) => {
                let held = |register: AerRegister| {
                    ConfigSpace::new(bytes).error_reporting().and_then(|aer| register.of(&aer)).ok()
                };
                match AerRegister::MASKS.map(held) {
                    [Some(uncorrectable), Some(correctable)] => Masks::Seen([uncorrectable, correctable]),
                    _ => Masks::Unseen(format!(
                        "only {} B of its configuration space could be read, which needs root for more",
                        bytes.len()
                    )),
                }
            }
            Seen::Unseen(why) => Masks::Unseen(why.because()),
        }
    }
}
